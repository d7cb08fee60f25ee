"""Incomplete Cholesky factorisation by blocks of pivots [chen2020, novak2023]."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular

from mercer._run.checkpoint import is_numbers
from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Record
from mercer._run.threads import in_order, single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import Approximation, as_sample, check_whole
from mercer.factors.dense import DRAW, PivotFactor, pivot_factor
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.rows.distinct import row_hashes
from mercer.rows.gather import gather
from mercer.rows.rows import Rows, cast, part, stack, take
from mercer.rows.sample import Sample
from mercer.rows.source import TILE, Source, spans
from mercer.rows.sweep import TileFunction, total

RARE_CANDIDATES = 32  # for each pivot: enough that one rare cluster does not crowd out the others

_jit = LazyModule("mercer.factors._cholesky_jit")

# random is the default: at rank 256 it leaves .58, .02 and .74 of greedy's trace (pendigits,
# shuttle, mnist), and kernel k-means finds as good clusters (NMI over four sets: .475 and .477).
PIVOTS = ("random", "greedy", "spread")
CANDIDATES = 4  # greedy: candidates per pivot of a block
KEEP = 0.3  # greedy: a candidate is kept while its residual is this part of the block's best
RIVALS = 8  # spread: draws that each pivot is chosen from
SPREAD_KEEP = 0.1  # spread: a pivot has this part of the largest residual of its block
SHRUNK = 1e-3  # random: a candidate that lost this much to its own block waits for another


class IncompleteCholesky(Approximation):
    """K ≈ F Fᵀ with F = K[:, B] L⁻ᵀ, K[B, B] = L Lᵀ, for a few pivot rows B.

    Pivots are chosen in blocks: candidates are compared on their own small residual matrix, then
    all rows are updated with matrix products. (The textbook algorithm reads all of F once per
    pivot.) Cost: O(n·rank²) products, n·rank kernel values, n·rank numbers of memory.

    Parameters
    ----------
    rank : int, default=256
        Maximum number of pivots; fewer if the kernel has a lower rank.
    tol : float, default=0.0
        Stop when trace(K - F Fᵀ) ≤ tol · trace(K). ([chen2020] means the trace itself, [novak2023]
        the trace over n: divide by trace(K), or use theirs as it is for kernels with k(x, x) = 1.)
    pivots : {"random", "greedy", "spread"}, default="random"
        "random" draws a pivot with probability proportional to its residual [chen2022,
        epperly2024], which gives the smallest error; "greedy" takes the largest residual, as
        published: deterministic, but it spends pivots on outliers; "spread" takes the largest
        residual of eight random draws: nearly the error of "random", and every region of the rows
        gets a pivot, which the graphs of `KernelSpectralClustering` need.
    block : int, default=64
        Pivots chosen together. 1 with greedy pivots is the textbook algorithm, pivot by pivot;
        ties go to the first row, so the first pivot of an RBF kernel is row 0: of the rows that
        `fit` is given, and of X in `KernelSpectralClustering`. The other estimators keep rows in
        an order of their content.
    rare : float, default=0.0
        Share of the pivots, e.g. 1/8, that are chosen greedily among all rows, in one more pass,
        instead of in the sample: for clusters so rare that the sample hardly contains them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> factor = IncompleteCholesky(rank=20).fit(RBF(0.1), X, rng=np.random.default_rng(0))
    >>> F = factor.rows(X)
    >>> bool(np.abs(F @ F.T - RBF(0.1)(X)).max() < 0.01)
    True
    """

    def __init__(
        self,
        rank: int = 256,
        *,
        tol: float = 0.0,
        pivots: Literal["random", "greedy", "spread"] = "random",
        block: int = 64,
        rare: float = 0.0,
    ) -> None:
        self.rank = rank
        self.tol = tol
        self.pivots = pivots
        self.block = block
        self.rare = rare

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (PivotFactor,)

    def fit(
        self,
        kernel: Kernel,
        X: Any,
        *,
        rng: np.random.Generator,
        threads: int = 1,
        source: Source | None = None,
        block_rows: int = TILE,
    ) -> PivotFactor:
        """Choose pivots among the rows of X, and rare ones among those of the source."""
        self.check(kernel)
        sample = as_sample(kernel, X)
        choose = {
            "random": partial(_random_block, rng=rng),
            "spread": partial(_spread_block, rng=rng),
            "greedy": _greedy_block,
        }[self.pivots]
        n_rare = self._n_rare(len(sample))
        with single_threaded_blas():
            found = _blocked(
                kernel,
                sample,
                rank=min(self.rank, len(sample)) - n_rare,
                tol=self.tol,
                block=self.block,
                choose=choose,
                threads=threads,
            )
            mix = _whitening(kernel, sample.rows, found)
            factor = pivot_factor(
                kernel, sample, found.pivots, mix, trace_error=found.error, training_rows=found.F
            )
            if n_rare and (source is not None or found.error > self.tol):
                how = {"block_rows": block_rows, "threads": threads}
                factor = with_rare_pivots(factor, sample, source, n_rare, **how)
        return factor

    def is_published(self) -> bool:
        """The textbook algorithm, as [novak2023] has it."""
        return self.pivots == "greedy" and self.block == 1

    def enough_rows(self) -> int | None:
        """Ten rows per random pivot; the others look for the extremes of all rows."""
        self.check(None)
        return DRAW * self.rank if self.pivots == "random" else None

    def extra_passes(self, n_rows: int) -> int:
        """Rare rows are found by one pass, and read by another."""
        return 2 if self._n_rare(n_rows) else 0

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        rank = min(self.rank, n_rows)
        made = 3 if self.rare else 1  # with rare pivots F is made again, in pieces that are joined
        tiles = 3 * min(n_rows, TILE) * min(self.block, rank) * itemsize
        return made * n_rows * rank * itemsize + tiles + 8 * rank**2

    def check(self, kernel: Kernel | None) -> None:
        if self.pivots not in PIVOTS:
            raise ValueError(f"pivots={self.pivots!r} is unknown; choose one of {list(PIVOTS)}")
        check_whole("rank", self.rank)
        check_whole("block", self.block)
        if not 0 <= self.rare < 1:
            raise ValueError(f"rare={self.rare!r} must be in [0, 1): a share of the pivots")
        if not 0 <= self.tol < 1:
            raise ValueError(f"tol={self.tol!r} must be in [0, 1): it is relative to trace(K)")

    def _n_rare(self, n_rows: int) -> int:
        return int(self.rare * min(self.rank, n_rows))

    def _context(self, problem: Problem, n_clusters: int) -> dict[str, Any]:
        assert problem.kernel is not None
        if not self.rare or problem.kernel.is_precomputed:
            return {}
        return {"source": problem.source, "block_rows": problem.block_rows}


@frozen
class Factorization:
    """Where the factorisation ended."""

    F: FloatArray  # (n, r)
    pivots: IdArray  # (r,)
    error: float  # Σ w·residual / Σ w·diagonal


@frozen
class Block:
    """Pivots accepted together: rows of the sample and L with L Lᵀ = their residual matrix."""

    pivots: IdArray
    L: FloatArray

    def first(self, n: int) -> Block:
        return Block(self.pivots[:n], self.L[:n, :n])


def pivoted_cholesky(kernel: Kernel, X: Rows, *, rank: int, tol: float = 0.0) -> Factorization:
    """Greedy incomplete Cholesky, one column per step: the textbook, for comparison (Alg. 1)."""
    residual = kernel.diagonal(X).astype(np.float64)
    trace, floor = residual.sum(), np.sqrt(rank) * _rounding(residual, residual.dtype)
    F, pivots = np.zeros((len(residual), rank)), np.empty(rank, np.intp)
    for r in range(rank):
        p = pivots[r] = residual.argmax()
        if residual.sum() <= tol * trace or residual[p] <= floor:
            return Factorization(F[:, :r], pivots[:r], residual.sum() / trace)
        column = kernel.matrix(X, take(X, pivots[r : r + 1]))[:, 0]
        F[:, r] = (column - F[:, :r] @ F[p, :r]) / np.sqrt(residual[p])  # Theorem 1
        residual = np.maximum(residual - F[:, r] ** 2, 0.0)
        residual[p] = 0.0  # rounding must not pick p twice
    return Factorization(F, pivots, residual.sum() / trace)


def _blocked(
    kernel: Kernel,
    sample: Sample,
    *,
    rank: int,
    tol: float,
    block: int,
    choose: Any,
    threads: int,
) -> Factorization:
    """Choose a block of pivots, bring all rows up to date, until rank or tolerance is reached."""
    X, weights = sample.rows, sample.weights
    residual = kernel.diagonal(X).astype(np.float64)  # d_i = K_ii - (F Fᵀ)_ii
    noise = _rounding(residual, X.dtype)
    trace, floor = float(weights @ residual), np.sqrt(rank) * noise
    F, pivots, r = np.empty((len(weights), rank), X.dtype), np.empty(rank, np.intp), 0
    L_inverse = np.zeros((rank, rank))  # L Lᵀ = K[B, B]
    while r < rank and (left := float(weights @ residual)) > tol * trace and left > 0:
        competing = Competition(kernel, X, F[:, :r], residual, weights, floor)
        chosen = choose(competing, size=min(block, rank - r))
        if chosen is None:
            break
        below = _inverse_rows(L_inverse[:r, :r], F[chosen.pivots, :r], chosen.L)
        sound = _n_sound(below, noise)
        if not sound:  # nor is a smaller residual more than rounding
            floor = max(floor, float(residual[chosen.pivots[0]]))
            continue
        chosen, stop = chosen.first(sound), r + sound
        L_inverse[r:stop, :stop] = below[:sound, :stop]
        update = _tile_update(kernel, X, F, residual, r, chosen)
        for _ in in_order(update, spans(len(weights)), threads):
            pass
        pivots[r:stop] = chosen.pivots
        residual[chosen.pivots] = 0.0
        r = stop
    error = float(weights @ residual) / trace if trace > 0 else 0.0
    return Factorization(F[:, :r] if r == rank else F[:, :r].copy(), pivots[:r], error)


def _tile_update(
    kernel: Kernel, X: Rows, F: FloatArray, residual: FloatArray, r: int, chosen: Block
) -> Any:
    """F[tile, r:] = (K[tile, p] - F[tile, :r] F[p, :r]ᵀ) L⁻ᵀ, and the residuals after it."""
    columns = kernel.against(take(X, chosen.pivots))
    q = len(chosen.pivots)
    Fp = np.ascontiguousarray(F[chosen.pivots, :r].T)
    L_inverse = solve_triangular(chosen.L, np.eye(q), lower=True).T.astype(F.dtype)

    def update(span: tuple[int, int]) -> None:
        start, stop = span
        C = columns(part(X, start, stop))
        if r:
            C -= F[start:stop, :r] @ Fp
        np.matmul(C, L_inverse, out=F[start:stop, r : r + q])
        _jit.subtract_squares(F[start:stop, r : r + q], residual[start:stop])

    return update


@frozen
class Competition:
    """What the next block of pivots is chosen by."""

    kernel: Kernel
    X: Rows
    F: FloatArray  # (n, r) so far
    residual: FloatArray  # (n,)
    weights: FloatArray  # (n,)
    floor: float  # a residual of rounding size: never a pivot

    def draw(self, size: int, *, rng: np.random.Generator) -> IdArray | None:
        """Rows in proportion to residual times weight; None where none is left."""
        mass = np.cumsum(np.where(self.residual > self.floor, self.residual, 0.0) * self.weights)
        if mass[-1] <= 0:
            return None
        drawn = np.searchsorted(mass, rng.random(size) * mass[-1], side="right")
        return np.minimum(drawn, len(mass) - 1)

    def residual_matrix(self, rows: IdArray) -> FloatArray:
        """K - F Fᵀ among a few rows, in float64."""
        few = cast(take(self.X, rows), np.float64)
        F = self.F[rows].astype(np.float64)
        matrix: FloatArray = self.kernel.matrix(few, few) - F @ F.T
        return matrix


def _greedy_block(competing: Competition, *, size: int) -> Block | None:
    """The largest residuals, re-judged after each pivot among a few times as many candidates."""
    residual = competing.residual
    n, n_candidates = len(residual), size if size == 1 else min(CANDIDATES * size, len(residual))
    if n_candidates == 1:
        candidates = np.array([residual.argmax()])
    elif residual.min() == residual.max():  # nothing chosen yet: all are alike
        candidates = np.arange(n_candidates) * n // n_candidates
    else:
        candidates = np.sort(np.argpartition(residual, n - n_candidates)[n - n_candidates :])
    S = competing.residual_matrix(candidates)
    left = residual[candidates]  # rather than S's diagonal, whose rounding would break ties
    least = max(competing.floor, KEEP * float(left.max()))
    L, order = np.zeros((size, len(S))), np.empty(size, np.intp)
    n_taken = _jit.take_largest(S, left, least, competing.floor, L, order)
    return _block(candidates, L, order[:n_taken])


def _random_block(competing: Competition, *, size: int, rng: np.random.Generator) -> Block | None:
    """Draws in proportion to the residual, each kept with the chance it still deserves.

    Rejection makes the block distributed as if each pivot had been drawn after the update by
    those before it [epperly2024, Algorithm 2.2].
    """
    drawn = competing.draw(size, rng=rng)
    if drawn is None:
        return None
    chances = rng.random(size)
    S = competing.residual_matrix(drawn)
    proposed = competing.residual[drawn]
    L, order = np.zeros((size, size)), np.empty(size, np.intp)
    left = S.diagonal().copy()
    n_taken = _jit.take_by_chance(S, proposed, chances, SHRUNK, competing.floor, left, L, order)
    return _block(drawn, L, order[:n_taken])


def _spread_block(competing: Competition, *, size: int, rng: np.random.Generator) -> Block | None:
    """Draws in proportion to the residual, and of each few of them the largest residual.

    What is far from all pivots is drawn nearly always, where one draw alone may pass it by. The
    first pivot is the largest of all draws, so that residuals of rounding size end soon.
    """
    drawn = competing.draw(RIVALS * size, rng=rng)
    if drawn is None:
        return None
    S = competing.residual_matrix(drawn)
    left = competing.residual[drawn]  # rather than S's diagonal, whose rounding would break ties
    wanted = max(SPREAD_KEEP * float(left.max()), competing.floor)
    L, order = np.zeros((size, len(S))), np.empty(size, np.intp)
    n_taken = _jit.take_best_of(S, RIVALS, wanted, left, L, order)
    return _block(drawn, L, order[:n_taken])


def _block(candidates: IdArray, L: FloatArray, order: IdArray) -> Block | None:
    """The candidates that were taken, with the factor of their residual matrix."""
    if not len(order):
        return None
    return Block(candidates[order], L[: len(order), order].T)


def _rounding(diagonal: FloatArray, dtype: Any) -> float:
    """A bound of the rounding error of one kernel value.

    8 units: the largest residual of a row that rounding alone had left was 1.8 units times
    1 + ‖w‖² (see `_n_sound`), in 5,400 factorisations of rank 6 to 70 in both precisions.
    """
    return float(8 * np.finfo(dtype).eps * diagonal.max(initial=0.0))


def _inverse_rows(L_inverse: FloatArray, Fp: FloatArray, L: FloatArray) -> FloatArray:
    """The rows that a block adds to L⁻¹: [-L_b⁻¹ F_p L⁻¹, L_b⁻¹], after the F_p of its pivots."""
    own = solve_triangular(L, np.eye(len(L)), lower=True)
    return np.hstack([-own @ (Fp.astype(np.float64) @ L_inverse), own])


def _n_sound(rows: FloatArray, noise: float) -> int:
    """How many of the new pivots come before the first whose residual is of rounding size.

    With w the coefficients of a pivot's kernel function in those before it, its residual is
    d = (1, -w) K (1, -w)ᵀ. Errors of size `noise` in K, independent of each other, become one of
    noise·(1 + ‖w‖²) in d. Greedy pivots keep w small; random ones do not: drawn by volume,
    ‖w‖² has mean rank and no variance, so that no fixed bound of d would do. The pivot's row of
    L⁻¹ is (-w, 1)/√d: d is more than rounding while noise·‖row‖² < 1.
    """
    is_rounding = noise * np.einsum("ij,ij->i", rows, rows) >= 1
    return int(is_rounding.argmax()) if is_rounding.any() else len(rows)


def _whitening(kernel: Kernel, X: Rows, found: Factorization) -> FloatArray:
    """L⁻ᵀ with K[B, B] = L Lᵀ, in float64 where it succeeds."""
    pivots = cast(take(X, found.pivots), np.float64)
    try:
        L = np.linalg.cholesky(kernel.matrix(pivots, pivots))
    except np.linalg.LinAlgError:
        L = np.tril(found.F[found.pivots].astype(np.float64))
    inverse: FloatArray = solve_triangular(L, np.eye(len(L)), lower=True).T
    return inverse


Worst: TypeAlias = tuple[FloatArray, IdArray, IdArray]  # residuals, row numbers, hashes of rows


def with_rare_pivots(
    factor: PivotFactor,
    sample: Sample,
    source: Source | None,
    n_pivots: int,
    *,
    block_rows: int = TILE,
    threads: int = 1,
) -> PivotFactor:
    """The factor and so many more pivots, by greedy choice among the rows it explains worst.

    They are looked for among all rows of the source (None: of the sample). The residual of a row is
    k(x, x) - ‖f‖²; it costs rank² products a row. Fewer pivots come where nothing is left.
    """
    n = RARE_CANDIDATES * n_pivots
    if source is None:
        ids = _largest(_residuals(factor, sample.rows, factor.training_rows), n)
        rows, ids = take(sample.rows, ids), sample.ids[ids]
    else:
        make, combine = WorstRows(factor.forget_training(), n), partial(_worst, n)
        how: Any = {"block_rows": block_rows, "threads": threads}
        ids = np.sort(total(source, make, combine, stage="rare rows", **how)[1])
        raw = source.take(ids) if source.in_memory else gather(source, ids)
        rows = factor.format.apply(raw, np.float64)
    return _extended(factor, sample, cast(rows, np.float64), ids, n_pivots)


@frozen
class WorstRows:
    """Tiles → the n different rows with the largest residuals."""

    factor: PivotFactor
    n: int

    def __call__(self) -> TileFunction[Worst]:
        F_of = self.factor.row_function(self.factor.format.dtype)

        def find(raw: Rows, start: int, weights: FloatArray | None) -> Worst:
            rows = self.factor.format.apply(raw)
            residual = _residuals(self.factor, rows, F_of(rows))
            ids = np.arange(start, start + len(residual))
            return _worst(self.n, (residual, ids, row_hashes(raw).view(np.int64)), None)

        return find

    def fits(self, result: Any, source: Source, along: FloatArray | None) -> bool:
        residuals, ids, hashes = result
        shape = (min(len(ids), self.n, source.n_rows),)
        are_ids = is_numbers(ids, shape, np.intp) and is_numbers(hashes, shape, np.int64)
        is_inside = are_ids and len(np.unique(ids)) == len(ids) > 0
        is_inside = is_inside and bool(ids.min() >= 0 and ids.max() < source.n_rows)
        return is_inside and is_numbers(residuals, shape) and bool((residuals >= 0).all())


def _worst(n: int, a: Worst, b: Worst | None) -> Worst:
    """The n largest residuals of different rows; of equals, the first row."""
    if b is not None:
        a = tuple(np.concatenate(pair) for pair in zip(a, b, strict=True))  # type: ignore[assignment]
    order = np.lexsort((a[1], -a[0]))
    _, first = np.unique(a[2][order], return_index=True)
    kept = order[np.sort(first)[:n]]
    return a[0][kept], a[1][kept], a[2][kept]


def _extended(
    factor: PivotFactor, sample: Sample, rows: Rows, ids: IdArray, n_pivots: int
) -> PivotFactor:
    """Greedy choice among the candidates, by their own residual matrix in float64."""
    kernel = factor.kernel
    F = factor.features(np.float64)(rows) @ factor.mix
    S = kernel.matrix(rows, rows) - F @ F.T
    left = np.maximum(S.diagonal(), 0.0).copy()
    floor = 1e-9 * float(kernel.diagonal(rows).max())
    size = min(n_pivots, len(left))
    L, order = np.zeros((size, len(S))), np.empty(size, np.intp)
    n_taken = _jit.take_largest(S, left, floor, floor, L, order)
    chosen = order[:n_taken]
    pivots = stack([factor.pivots, take(rows, chosen)])
    try:
        lower = np.linalg.cholesky(kernel.matrix(pivots, pivots))  # K[B, B] = L Lᵀ
    except np.linalg.LinAlgError:  # nothing to be gained beyond rounding
        return factor
    mix = solve_triangular(lower, np.eye(len(lower)), lower=True).T
    extended = replace(
        factor,
        pivots=pivots,
        pivot_ids=np.concatenate([factor.pivot_ids, ids[chosen]]),
        mix=mix,
        training_rows=None,
    )
    F_of = extended.row_function(extended.format.dtype)
    F = np.concatenate([F_of(part(sample.rows, *span)) for span in spans(len(sample))])
    residual, w = _residuals(extended, sample.rows, F), sample.weights
    error = float(w @ residual) / float(w @ kernel.diagonal(sample.rows).astype(np.float64))
    return replace(extended, training_rows=F, trace_error=error)


def _residuals(factor: PivotFactor, rows: Rows, F: Any) -> FloatArray:
    """k(x, x) - ‖f‖² of rows in the factor's format."""
    diagonal = factor.kernel.diagonal(rows).astype(np.float64)
    return np.maximum(diagonal - np.einsum("ij,ij->i", F, F, dtype=np.float64), 0.0)


def _largest(values: FloatArray, n: int) -> IdArray:
    """The places of the n largest values; of equals, the first."""
    order: IdArray = np.argsort(-values, kind="stable")[:n]
    return order
