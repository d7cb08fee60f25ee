"""Nyström factors: the kernel as a few pivots see it, however these are chosen."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.linalg import rq, solve_triangular

from mercer._run.lazy import LazyModule
from mercer._run.records import Record
from mercer._run.threads import in_order, single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import Approximation, as_sample, check_whole
from mercer.factors.cholesky import IncompleteCholesky
from mercer.factors.dense import DRAW, NO_ROW, PivotFactor
from mercer.kernels.base import Kernel, column_index
from mercer.linalg.lloyd import WeightedRows
from mercer.rows.rows import BlockRows, Rows, cast, part, take
from mercer.rows.sample import Sample
from mercer.rows.source import TILE, spans

_jit = LazyModule("mercer.factors._cholesky_jit")

SAMPLINGS = ("uniform", "kmeans", "leverage")
KMEANS_SWEEPS = 3  # of Lloyd: later ones change the error by less than a hundredth
KMEANS_ROWS = 10_000  # so many rows (or 20 per centre) are enough to place the centres


class Nystrom(Approximation):
    """K ≈ F Fᵀ with F = K[:, B] V Λ^-½ Q, K[B, B] = V Λ Vᵀ, for pivots B drawn beforehand.

    The projection onto the span of the pivots, like `IncompleteCholesky`, but with pivots that are
    chosen independently of the remaining error: simpler, less exact at the same rank, and the
    basis of approximate kernel k-means [chitta2011]. Cost: O(n·rank²) products, n·rank kernel
    values, n·rank numbers of memory.

    Parameters
    ----------
    rank : int, default=256
        Number of pivots; the factor has fewer columns where K[B, B] is nearly singular.
    sampling : {"uniform", "kmeans", "leverage"}, default="uniform"
        "uniform" draws rows in proportion to their weight, without replacement. "kmeans" takes the
        centres of weighted k-means [zhang2008], started at the pivots of an incomplete Cholesky
        factor: for dense rows and kernels of vectors. Such pivots are not rows of X, so their
        `pivot_ids` are -1. "leverage" draws rows by their ridge leverage scores, found by recursion
        over halves of the rows [musco2017, Algorithm 3]: unusual rows are drawn more often. Both
        cost two to three times "uniform"; at rank 256 "leverage" leaves 0.5 to 1.0 and "kmeans" 0.3
        to 0.8 of the trace it leaves.
    cutoff : float or None, default=None
        Eigenvalues of K[B, B] below this part of the largest are left out, with their columns of F:
        dividing by their root would blow up rounding errors. None is the machine epsilon of the
        rows' type, or 4√pivots times that of K[B, B] (float64 but for a precomputed float32 matrix)
        if this is more.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> factor = Nystrom(rank=50).fit(RBF(0.1), X, rng=np.random.default_rng(0))
    >>> F = factor.rows(X)
    >>> bool(np.abs(F @ F.T - RBF(0.1)(X)).max() < 0.01)
    True
    """

    def __init__(
        self,
        rank: int = 256,
        *,
        sampling: Literal["uniform", "kmeans", "leverage"] = "uniform",
        cutoff: float | None = None,
    ) -> None:
        self.rank = rank
        self.sampling = sampling
        self.cutoff = cutoff

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (PivotFactor,)

    def fit(
        self, kernel: Kernel, X: Any, *, rng: np.random.Generator, threads: int = 1
    ) -> PivotFactor:
        """Choose pivots for the rows of X; `trace_error` is exact on these rows."""
        self.check(kernel)
        sample = as_sample(kernel, X)
        with single_threaded_blas():
            pivots, ids = self._choose_pivots(kernel, sample, rng=rng, threads=threads)
            K = kernel.matrix(pivots, pivots)
            mix = _whitening(K.astype(np.float64), self._cutoff(K, sample))
            F, error = _project(kernel, sample, pivots, mix, threads=threads)
        return PivotFactor(
            kernel, sample.format, pivots, ids, mix, trace_error=error, training_rows=F
        )

    def enough_rows(self) -> int | None:
        """Ten rows per uniform pivot; centres and leverage scores are of all rows."""
        self.check(None)
        return DRAW * self.rank if self.sampling == "uniform" else None

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        rank = min(self.rank, n_rows)
        n_bytes = (n_rows + 2 * min(n_rows, TILE)) * rank * itemsize + 3 * 8 * rank**2
        if self.sampling == "kmeans":
            n_bytes += min(n_rows, max(KMEANS_ROWS, 20 * rank)) * (rank + n_features) * itemsize
        return n_bytes

    def _choose_pivots(
        self, kernel: Kernel, sample: Sample, *, rng: np.random.Generator, threads: int
    ) -> tuple[Rows, IdArray]:
        """Pivots in float64 and their row numbers."""
        size = min(self.rank, len(sample))
        if self.sampling == "kmeans":
            centers = _centers(kernel, sample, size, rng=rng, threads=threads)
            return centers, np.full(len(centers), NO_ROW, np.intp)
        if self.sampling == "uniform":
            is_something = kernel.diagonal(sample.rows) > 0  # a row like nothing explains nothing
            log_mass = np.where(is_something, np.log(sample.weights), -np.inf)
            chosen = _draw(log_mass, size, rng=rng)
        else:
            chosen = _draw_by_leverage(kernel, sample, size, rng=rng, threads=threads)
        return cast(take(sample.rows, chosen), np.float64), sample.ids[chosen]

    def _cutoff(self, K: FloatArray, sample: Sample) -> float:
        if self.cutoff is not None:
            return self.cutoff
        rounding = 4 * np.sqrt(len(K)) * np.finfo(K.dtype).eps  # of the eigenvalues themselves
        return float(max(rounding, np.finfo(sample.format.dtype).eps))

    def check(self, kernel: Kernel | None) -> None:
        if self.sampling not in SAMPLINGS:
            raise ValueError(f"sampling={self.sampling!r} is unknown; choose one of {SAMPLINGS}")
        check_whole("rank", self.rank)
        if self.cutoff is not None and not 0 <= self.cutoff < 1:
            raise ValueError(
                f"cutoff={self.cutoff!r} must be None or in [0, 1): it is relative to the largest "
                "eigenvalue"
            )


def _whitening(K: FloatArray, cutoff: float) -> FloatArray:
    """V Λ^-½ of K = V Λ Vᵀ, without eigenvalues of rounding size, turned to be triangular.

    F Fᵀ does not see an orthogonal matrix to the right; products with zeros are saved.
    """
    values, V = np.linalg.eigh((K + K.T) / 2)
    kept = (values > cutoff * values[-1]) & (values > 0)
    mix: FloatArray = rq(V[:, kept] / np.sqrt(values[kept]))[0]
    return np.ascontiguousarray(mix)


def _project(
    kernel: Kernel, sample: Sample, pivots: Rows, mix: FloatArray, *, threads: int
) -> tuple[FloatArray, float]:
    """F = k(X, pivots) @ mix, and Σ w(k_ii - ‖f_i‖²) / Σ w k_ii."""
    X, weights = sample.rows, sample.weights
    columns, tile_mix = kernel.against(cast(pivots, X.dtype)), mix.astype(X.dtype)
    F = np.empty((len(sample), mix.shape[1]), X.dtype)
    residual = kernel.diagonal(X).astype(np.float64)
    trace = float(weights @ residual)

    def fill(span: tuple[int, int]) -> None:
        tile = slice(*span)
        np.matmul(columns(part(X, *span)), tile_mix, out=F[tile])
        _jit.subtract_squares(F[tile], residual[tile])

    for _ in in_order(fill, spans(len(F)), threads):
        pass
    return F, float(weights @ residual) / trace if trace > 0 else 0.0


def _draw(log_mass: FloatArray, size: int, *, rng: np.random.Generator) -> IdArray:
    """Rows in proportion to their mass, without replacement, ascending.

    Each row has a clock that rings after an exponential time at the rate of its mass; the first
    to ring are drawn [efraimidis2006]. Logarithms, because weights may span any range.
    """
    if size == len(log_mass):
        return np.arange(size)
    rings = np.log(rng.standard_exponential(len(log_mass))) - log_mass
    return np.sort(np.argpartition(rings, size - 1)[:size])


def _centers(
    kernel: Kernel, sample: Sample, size: int, *, rng: np.random.Generator, threads: int
) -> FloatArray:
    """Centres of weighted k-means in the columns that the kernel looks at."""
    X = sample.rows
    for what, is_given in {
        "a precomputed kernel has": kernel.is_precomputed,
        "sparse rows have": sp.issparse(X),
        "column blocks have": isinstance(X, BlockRows),
    }.items():
        if is_given:
            raise ValueError(
                f"sampling='kmeans' needs dense rows, whose mean is again a row, and {what} none; "
                "use sampling='leverage' or 'uniform', or IncompleteCholesky"
            )
    if size == len(sample):
        return np.array(X, np.float64)
    few = _few_seen_rows(kernel, sample, max(KMEANS_ROWS, 20 * size), rng=rng)
    start = IncompleteCholesky(size).fit(kernel, few, rng=rng, threads=threads).pivots
    norms = np.einsum("ij,ij->i", few.rows, few.rows, dtype=np.float64)
    rows = WeightedRows(few.rows, few.weights, norms, threads)
    found = rows.lloyd(start, max_iter=KMEANS_SWEEPS)
    # a mean lies between its rows; rounding must not make a histogram's negative
    return np.clip(found.centers, few.rows.min(axis=0), few.rows.max(axis=0))


def _few_seen_rows(
    kernel: Kernel, sample: Sample, size: int, *, rng: np.random.Generator
) -> Sample:
    """A part of the sample; columns that the kernel does not look at are 0 and draw no centre."""
    few = _draw(np.zeros(len(sample)), min(size, len(sample)), rng=rng)
    rows = sample.rows[few]
    seen = np.zeros(rows.shape[1], bool)
    for simple in kernel.parts():
        seen[column_index(simple.columns, len(seen))] = True
    rows[:, ~seen] = 0
    return Sample(rows, sample.weights[few], sample.ids[few], sample.format)


def _draw_by_leverage(
    kernel: Kernel, sample: Sample, size: int, *, rng: np.random.Generator, threads: int
) -> IdArray:
    """Rows drawn by ridge leverage scores [musco2017, Algorithm 3].

    A random half of the rows is understood first (by the same method); rows drawn from it tell
    the scores of all. Unrolled: from the smallest level, of at most `size` rows, to all rows.
    """
    n, oversampling = len(sample), max(np.log(size), 1.0)
    n_directions = max(int(size / (4 * oversampling)), 1)  # the leading ones are not penalised
    order = rng.permutation(n)
    n_halvings = max(int(np.ceil(np.log2(n / size))), 0)
    chosen = order[: -(-n // 2**n_halvings)]
    chances = np.ones(len(chosen))
    for halvings in reversed(range(n_halvings)):
        level = np.sort(order[: -(-n // 2**halvings)])
        scores = _ridge_scores(
            kernel, sample, level, chosen, chances, n_directions=n_directions, threads=threads
        )
        if halvings == 0:
            return _draw(np.log(scores), size, rng=rng)
        level_chances = np.minimum(oversampling * scores, 1.0)
        is_chosen = rng.random(len(level)) < level_chances
        is_chosen[level_chances.argmax()] = True  # never none
        chosen, chances = level[is_chosen], level_chances[is_chosen]
    return np.sort(chosen)


def _ridge_scores(
    kernel: Kernel,
    sample: Sample,
    level: IdArray,
    chosen: IdArray,
    chances: FloatArray,
    *,
    n_directions: int,
    threads: int,
) -> FloatArray:
    """(K̃ - K̃S (SᵀK̃S + λI)⁻¹ SᵀK̃)_ii / λ in (0, 1], for K̃ = √w K √w and rows i of `level`.

    S picks the chosen rows, each over the root of its chance; λ is the mean of what the leading
    directions of SᵀK̃S leave.
    """
    X, weights = sample.rows, sample.weights / sample.weights.max()
    pivots = cast(take(X, chosen), np.float64)
    scale = np.sqrt(weights[chosen] / chances)
    K = kernel.matrix(pivots, pivots)
    M = scale[:, None] * K * scale  # SᵀK̃S
    values = np.maximum(np.linalg.eigvalsh(M), 0.0)
    eps = max(np.finfo(K.dtype).eps, np.finfo(X.dtype).eps)
    rounding = eps * values.sum() + np.finfo(np.float64).tiny
    ridge = max(values[:-n_directions].sum() / n_directions, len(M) * rounding)
    L = np.linalg.cholesky(M + ridge * np.eye(len(M)))
    Q = scale[:, None] * solve_triangular(L, np.eye(len(M)), lower=True).T
    columns, tile_Q = kernel.against(cast(pivots, X.dtype)), Q.astype(X.dtype)

    def left(span: tuple[int, int]) -> FloatArray:
        rows = take(X, level[slice(*span)])
        residual = kernel.diagonal(rows).astype(np.float64)
        _jit.subtract_squares(columns(rows) @ tile_Q, residual)
        return residual

    residual = np.concatenate(list(in_order(left, spans(len(level)), threads)))
    return np.clip(weights[level] * residual / ridge, np.finfo(np.float64).eps, 1.0)
