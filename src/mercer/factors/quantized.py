"""Block-quantised kernels: near rows share a representative, and the kernel matrix is constant on
blocks of rows [zhang2006]. Its eigenproblem has the size of the number of blocks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Record, expect, stored
from mercer._run.threads import in_order, single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import Approximation, as_sample, check_whole
from mercer.factors.dense import NO_ROW, PivotFactor
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel, column_index
from mercer.linalg.lloyd import Sums, lloyd, nearest_center, scores_of_centers, sums_by_label
from mercer.rows.rows import BlockRows, Rows, cast, part
from mercer.rows.sample import Sample, evenly
from mercer.rows.source import TILE, spans

_jit = LazyModule("mercer.factors._quantized_jit")

MOST_STEPS = 30

MOST_BLOCKS = 4096  # the eigenproblem costs their cube
GROWTHS = 64

DEFAULT_RANK = 256
SWEEPS = 2  # of Lloyd, by refine="kmeans": all but the last on a part of the rows ...
SWEEP_ROWS = 10  # ... so many per representative
POWER_STEPS = 30
ERROR_ROWS = 200
DENSE_VALUES = 2**28  # sparse rows are made dense up to here


class Quantized(Approximation):
    """K_pq ≈ β_ij for rows p, q of the blocks i, j: an m×m eigenproblem for any number of rows.

    1. Rows are gathered into blocks: the first representative within `radius` (sequential
       sampling), or the nearest of `rank` ones. A block's representative is its mean t_i, its
       weight n_i the sum of weights, its variance v_i the mean of ‖x - t_i‖².
    2. β_ij = k(t_i, t_j), corrected for the variance within blocks.
    3. √n_i β_ij √n_j = U Λ Uᵀ; rows get F = k(x, t) @ mix, mix = √n U Λ^-½: at the representatives
       F Fᵀ = β. Kernel PCA and spectral clustering work on the m blocks alone.

    The order of "sequential" is the order of the rows given; estimators put rows into content
    order (the same for any permutation of them) first. Cost O(n·m·d + m³); the cheapest
    approximation per representative. `Nystrom` on the same ones projects exactly, at O(n·m²).

    Parameters
    ----------
    radius : float or None, default=None
        Euclidean radius of blocks; None makes as many blocks as `rank` says.
    rank : int or None, default=None
        Number of representatives (None: 256); with a radius, the most there may be (4,096).
    variance_correction : bool, default=True
        β_ij = k(t_i, t_j) g_i g_j with g = exp(-γ v), as the mean of ‖x_p-x_q‖² over a block is
        exactly ‖t_i-t_j‖² + v_i + v_j. Valid for RBF and its products and multiples; other kernels
        and sums are left as they are.
    refine : {"kmeans", "gradient"} or None, default="kmeans"
        "kmeans" moves rows to their nearest representative and these to their mean, twice;
        "gradient" then moves representatives down the error ‖W - W̄‖ ([zhang2006], section 4.3; RBF
        only). None leaves the blocks as they were sampled.

    Notes
    -----
    Any stationary kernel (RBF, Laplacian, their sums and products) on one dense table; sparse rows
    are made dense if that is affordable.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> factor = Quantized(radius=0.3).fit(RBF(0.1), X, rng=np.random.default_rng(0))
    >>> F = factor.rows(X)
    >>> factor.rank < 150, bool(np.abs(F @ F.T - RBF(0.1)(X)).max() < 0.1)
    (True, True)
    """

    makes_dense = True
    takes_cosine = False

    def __init__(
        self,
        radius: float | None = None,
        rank: int | None = None,
        *,
        variance_correction: bool = True,
        refine: Literal["kmeans", "gradient"] | None = "kmeans",
    ) -> None:
        self.radius = radius
        self.rank = rank
        self.variance_correction = variance_correction
        self.refine = refine

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (QuantizedFactor,)

    def fit(
        self,
        kernel: Kernel,
        X: Any,
        *,
        rng: np.random.Generator,
        threads: int = 1,
        keep_rows: bool = True,
    ) -> QuantizedFactor:
        """Quantise the rows of X; `keep_rows` computes F of them, which methods on blocks skip."""
        self.check(kernel)
        sample = as_sample(kernel, X)
        rows = _dense_rows(kernel, sample.rows)
        with single_threaded_blas():
            unit = 2.0**sample.format.exponent
            how: Any = {"unit": unit, "rng": rng, "threads": threads}
            labels, quantization = self._blocks(rows, sample.weights, **how)
            if self.refine == "gradient" and len(quantization) > 1:
                arrays = (rows, sample.weights, labels, quantization)
                quantization = self._descend(kernel, *arrays, unit=unit)
            correction = self.variance_correction
            beta = block_values(quantization, kernel, correction=correction)
            scale = block_scale(quantization, kernel, correction=correction)
            eps = float(np.finfo(sample.format.dtype).eps)
            mix = _mix(beta, scale, quantization.weights, eps)
            degrees = beta @ quantization.weights
            error, shifts = _block_errors(beta, degrees, kernel, rows, sample.weights, labels)
            factor = QuantizedFactor(
                kernel,
                sample.format,
                quantization.representatives,
                np.full(len(quantization), NO_ROW, np.intp),
                mix,
                None,
                block_weights=quantization.weights,
                block_variances=quantization.variances,
                correction=correction,
                kernel_error=error,
                perturbation=shifts[0],
                normalized_perturbation=shifts[1],
            )
            return _with_training_rows(factor, sample, threads) if keep_rows else factor

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        m = min(self._limit(), n_rows)
        few = min(n_rows, SWEEP_ROWS * m)
        tile = min(n_rows, TILE) * (8 * n_features + (4 + itemsize) * m)
        n_bytes = 3 * 8 * m * n_features + 5 * 8 * m**2 + 16 * n_rows + tile
        return n_bytes + few * n_features * itemsize

    def width(self, n_rows: int) -> int:
        return min(self._limit(), n_rows)

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """Those of the blocks."""
        blocks = self.width(n_rows)
        return 8 * blocks * (5 * blocks + 4 * n_vectors)

    def check(self, kernel: Any) -> None:
        radius, rank = self.radius, self.rank
        if radius is not None and not (np.isreal(radius) and 0 < radius < np.inf):
            raise ValueError(f"radius={radius!r} must be a positive number, or None")
        if rank is not None:
            check_whole("rank", rank, "None or ")
        if self.refine not in (None, "kmeans", "gradient"):
            raise ValueError(
                f"refine={self.refine!r} is unknown; choose 'kmeans', 'gradient', None"
            )
        if self.refine == "gradient" and not kernel.is_gaussian:
            raise ValueError(
                f"refine='gradient' has a gradient for RBF only, not for {kernel!r}; use 'kmeans'"
            )
        if not all(simple.stationary for simple in kernel.parts()):
            raise ValueError(
                f"a quantised kernel replaces rows by the mean of near rows, which {kernel!r} need "
                "not be like; use RBF or Laplacian, or approximation='cholesky' or 'nystrom'"
            )

    def _context(self, problem: Problem, n_clusters: int) -> dict[str, Any]:
        return {"keep_rows": False}  # `QuantizedFactor.dense` computes them where they are needed

    def _limit(self) -> int:
        if self.rank is not None:
            return int(self.rank)
        return DEFAULT_RANK if self.radius is None else MOST_BLOCKS

    def _blocks(
        self,
        X: FloatArray,
        weights: FloatArray,
        *,
        unit: float,
        rng: np.random.Generator,
        threads: int,
    ) -> tuple[IdArray, Quantization]:
        """The block of each row, and the blocks: none is empty."""
        if self.radius is not None:
            ids, labels = sequential_sample(X, self.radius, limit=self._limit(), unit=unit)
            if self.refine is None:
                return labels, quantize(X, labels, len(ids), weights)
            T = quantize(X, labels, len(ids), weights).representatives
        else:
            m = min(self._limit(), len(X))
            ids = np.sort(rng.choice(len(X), m, replace=False)) if m < len(X) else np.arange(m)
            T = X[ids].astype(np.float64)
        if len(ids) == len(X):  # each row for itself
            return np.arange(len(X)), quantize(X, np.arange(len(X)), len(X), weights)
        if self.refine is not None:
            T = _swept(X, weights, T, rng=rng, threads=threads)
        labels = _nearest(X, T, threads)
        found = quantize(X, labels, len(T), weights)
        return _without_empty(labels, found)

    def _descend(
        self,
        kernel: Kernel,
        X: FloatArray,
        weights: FloatArray,
        labels: IdArray,
        blocks: Quantization,
        *,
        unit: float,
    ) -> Quantization:
        spread = float(np.sqrt(np.average(blocks.variances.sum(axis=1), weights=blocks.weights)))
        radius = self.radius / unit / 2 if self.radius is not None else spread
        B = fine_block_sums(kernel, X, weights, labels, len(blocks), radius)
        scale = block_scale(blocks, kernel, correction=self.variance_correction)
        moved = move_representatives(kernel, blocks, B, scale)
        return Quantization(moved, blocks.weights, blocks.variances)


@frozen(kw_only=True)
class QuantizedFactor(PivotFactor):
    """F = k(X, representatives) @ mix, and the blocks it comes from."""

    block_weights: FloatArray = stored("(m,) float, finite, > 0")  # n
    block_variances: FloatArray = stored("(m, d) float, finite, >= 0")
    correction: bool = stored("bool")
    kernel_error: float = stored("float")  # ‖W - W̄‖ / ‖W‖ (Frobenius), on 200 rows
    perturbation: float = stored("float")  # ‖W - W̄‖₂, estimated from the same rows
    normalized_perturbation: float = stored("float")  # of D^-½ W D^-½

    def check(self) -> None:
        PivotFactor.check(self)
        expect(isinstance(self.pivots, np.ndarray), "the representatives are not a dense array")

    @property
    def quantization(self) -> Quantization:
        return Quantization(self.pivots, self.block_weights, self.block_variances)

    def weighted_rows(self, sample: Sample) -> tuple[FloatArray, FloatArray]:
        """Those of the blocks: constant on them, the eigenproblem is theirs."""
        return self.block_rows(), self.block_weights

    def dense(self, sample: Sample, *, rng: np.random.Generator, threads: int = 1) -> Any:
        has_rows = self.training_rows is not None
        return self if has_rows else _with_training_rows(self, sample, threads)

    def principal_form(self, sample: Sample, *, rng: np.random.Generator, threads: int = 1) -> Any:
        return self  # its blocks are enough

    def check_clusters(self, n_clusters: int) -> None:
        if len(self.block_weights) < n_clusters:
            raise ValueError(
                f"the blocks have {len(self.block_weights)} representatives, which cannot separate "
                f"n_clusters={n_clusters}; lower radius, or raise rank"
            )

    def notes(self) -> list[str]:
        return [
            f"{len(self.block_weights)} blocks; the block matrix is off by "
            f"{self.kernel_error:.2g} of its norm (200 rows)"
        ]

    def error_norm(self, total_weight: float, *, is_normalized: bool) -> float | None:
        return self.normalized_perturbation if is_normalized else self.perturbation

    def block_rows(self) -> FloatArray:
        """F of the blocks, n^-½ U Λ^½, from mix = g √n U Λ^-½: F Fᵀ = β."""
        scale = block_scale(self.quantization, self.kernel, correction=self.correction)
        thin = self.mix / (scale * np.sqrt(self.block_weights))[:, None]  # U Λ^-½
        values = 1.0 / np.einsum("ij,ij->j", thin, thin)
        rows: FloatArray = thin * values / np.sqrt(self.block_weights)[:, None]
        return rows

    def blocks(self) -> Sample:
        """The representatives as a sample of weighted rows."""
        return Sample(self.pivots, self.block_weights, self.pivot_ids, self.format)


def block_scale(quantization: Quantization, kernel: Kernel, *, correction: bool) -> FloatArray:
    """g_i with β_ij = k(t_i, t_j) g_i g_j; 1 where the correction is off or not valid."""
    return kernel.block_scale(quantization.variances) if correction else np.ones(len(quantization))


def block_values(quantization: Quantization, kernel: Kernel, *, correction: bool) -> FloatArray:
    """β, the value of the kernel matrix on pairs of blocks, (m, m)."""
    scale = block_scale(quantization, kernel, correction=correction)
    K = kernel.matrix(quantization.representatives, quantization.representatives)
    return (K + K.T) * (0.5 * scale[:, None] * scale)


def _mix(beta: FloatArray, scale: FloatArray, n: FloatArray, eps: float) -> FloatArray:
    """g √n U Λ^-½ of √n β √n = U Λ Uᵀ, without eigenvalues of rounding size, largest first."""
    roots = np.sqrt(n)
    values, U = np.linalg.eigh(roots[:, None] * beta * roots)
    rounding = 4 * np.sqrt(len(roots)) * np.finfo(np.float64).eps
    kept = values > max(rounding, eps) * values[-1]
    mix = (scale * roots)[:, None] * (U[:, kept] / np.sqrt(values[kept]))
    return np.ascontiguousarray(mix[:, ::-1])


def _dense_rows(kernel: Kernel, X: Rows) -> FloatArray:
    """One dense table; columns that the kernel does not look at are 0."""
    if isinstance(X, BlockRows):
        raise ValueError(
            "quantised kernels need one table of columns; column blocks work with "
            "approximation='cholesky' or 'nystrom'"
        )
    if sp.issparse(X):
        if X.shape[0] * X.shape[1] > DENSE_VALUES:
            raise ValueError(
                f"quantised kernels need dense rows, and {X.shape[0]:,} × {X.shape[1]:,} sparse "
                "values are too many to make dense; reduce the columns (TruncatedSVD), or use "
                "approximation='cholesky' or 'nystrom'"
            )
        X = X.toarray()
    seen = np.zeros(X.shape[1], bool)
    for simple in kernel.parts():
        seen[column_index(simple.columns, len(seen))] = True
    return X if seen.all() else np.where(seen, X, X.dtype.type(0))


def _nearest(X: FloatArray, T: FloatArray, threads: int) -> IdArray:
    """The nearest representative of each row; tile by tile, so the same for any threads."""
    A, b = (array.astype(X.dtype) for array in scores_of_centers(T))

    def assign(span: tuple[int, int]) -> IdArray:
        return nearest_center(X[slice(*span)] @ A + b)[0]

    return np.concatenate(list(in_order(assign, spans(len(X)), threads)))


def _swept(
    X: FloatArray,
    weights: FloatArray,
    T: FloatArray,
    *,
    rng: np.random.Generator,
    threads: int,
) -> FloatArray:
    """Representatives after all but the last of Lloyd's sweeps, on as many rows as it takes."""
    size = SWEEP_ROWS * len(T)
    if len(X) > size:
        few = np.sort(rng.choice(len(X), size, replace=False))
        X, weights = X[few], weights[few]

    def sweep(T: FloatArray, moves: FloatArray | None) -> Sums:
        return Sums(*sums_by_label(X, _nearest(X, T, threads), weights, len(T)))

    return lloyd(sweep, T, max_iter=SWEEPS - 1).centers


def _without_empty(labels: IdArray, found: Quantization) -> tuple[IdArray, Quantization]:
    held = found.weights > 0
    if held.all():
        return labels, found
    place = np.cumsum(held) - 1
    kept = (found.representatives[held], found.weights[held], found.variances[held])
    return place[labels], Quantization(*kept)


def _block_errors(
    beta: FloatArray,
    degrees: FloatArray,
    kernel: Kernel,
    X: FloatArray,
    weights: FloatArray,
    labels: IdArray,
) -> tuple[float, tuple[float, float]]:
    """‖W - W̄‖/‖W‖, and ‖W - W̄‖₂ raw and normalised, estimated on up to 200 rows evenly spaced.

    The diagonal is left out: it counts once in the whole, and would count n/200 times here.
    """
    few = evenly(len(X), ERROR_ROWS)
    rows, w, d = X[few].astype(np.float64), np.sqrt(weights[few]), degrees[labels[few]]
    W = w[:, None] * kernel.matrix(rows, rows) * w
    E = W - w[:, None] * beta[np.ix_(labels[few], labels[few])] * w
    np.fill_diagonal(E, 0.0)
    share = float(weights.sum() / (w @ w))
    normal = E / np.sqrt(np.outer(d, d))
    shifts = [share * _spectral_norm(A) for A in (E, normal)]
    return float(np.linalg.norm(E) / np.linalg.norm(W)), (shifts[0], shifts[1])


def _spectral_norm(A: FloatArray) -> float:
    """‖A‖₂ of a symmetric matrix by the power method: an estimate from below."""
    v = np.cos(np.arange(1.0, len(A) + 1))  # in no special direction, and always the same
    length = 0.0
    for _ in range(POWER_STEPS):
        v = v / np.linalg.norm(v)
        v = A @ v
        length = float(np.linalg.norm(v))
        if length == 0.0:
            break
    return length


def _with_training_rows(factor: QuantizedFactor, sample: Sample, threads: int) -> QuantizedFactor:
    """F of the rows it was fitted on, and what it leaves of their trace."""
    X, weights = sample.rows, sample.weights
    features, mix = factor.features(X.dtype), factor.mix.astype(X.dtype)
    F = np.empty((len(sample), factor.rank), X.dtype)

    def fill(span: tuple[int, int]) -> None:
        np.matmul(features(part(X, *span)), mix, out=F[slice(*span)])

    for _ in in_order(fill, spans(len(F)), threads):
        pass
    diagonal = cast(factor.kernel.diagonal(X), np.float64)
    left = np.abs(diagonal - np.einsum("ij,ij->i", F, F, dtype=np.float64))
    error = float(weights @ left / max(weights @ diagonal, np.finfo(float).tiny))
    return replace(factor, training_rows=F, trace_error=error)


class TooManyBlocksError(ValueError):
    """The radius is so small that almost every row would represent itself."""


@frozen
class Quantization:
    """Blocks of rows: what each stands for, how much it weighs, how wide it is."""

    representatives: FloatArray  # (m, d) float64: the mean t_i of the rows of a block
    weights: FloatArray  # (m,) n_i, the sum of their weights
    variances: FloatArray  # (m, d) the mean of (x - t_i)², column by column

    def __len__(self) -> int:
        return len(self.weights)


def sequential_sample(
    X: FloatArray,
    radius: float,
    *,
    width: int = 0,
    mask: NDArray[np.bool_] | None = None,
    limit: int = MOST_BLOCKS,
    unit: float = 1.0,
) -> tuple[IdArray, IdArray]:
    """Numbers of the representing rows, and for each row the first of them within the radius.

    One pass in the order of the rows: a row that no representative is within `radius` of becomes
    one. Distances are Euclidean, in float64. O(n·m·d) at most, much less where blocks are far
    apart.

    width : rows are the pixels of an image of this width, row by row: the representatives of the
        left and the upper neighbour are tried first. The representatives are the same; a pixel
        within reach of several goes with its neighbour instead of the first.
    mask : rows that take part; others get the label -1.
    limit : more representatives than this raise `TooManyBlocksError` with an estimate.
    unit : of the rows; the radius is not in it.
    """
    X = np.ascontiguousarray(X)
    n, d = X.shape
    limit = min(limit, n)
    lanes = np.empty((-(-limit // 8), d, 8))
    ids, labels = np.empty(limit, np.intp), np.empty(n, np.intp)
    growth = np.zeros(GROWTHS, np.intp)
    is_used = np.empty(0, np.bool_) if mask is None else np.ascontiguousarray(mask, np.bool_)
    args = (X, float(radius / unit) ** 2, width, is_used, lanes, ids, labels, growth)
    n_found, n_seen = _jit.sequential(*args)
    _demand_all_seen(n, n_seen, n_found, growth, radius)
    return ids[:n_found].copy(), labels


def quantize(
    X: FloatArray, labels: IdArray, m: int, weights: FloatArray | None = None
) -> Quantization:
    """Means, weights and variances of the m blocks that the labels make (label -1: no block).

    A block without rows gets the weight 0.
    """
    X = np.ascontiguousarray(X)
    w = np.empty(0) if weights is None else np.ascontiguousarray(weights, np.float64)
    sums, counts = np.zeros((m, X.shape[1])), np.zeros(m)
    _jit.add_block_sums(X, labels, w, sums, counts)
    held = np.where(counts > 0, counts, 1.0)[:, None]
    means, squares = sums / held, np.zeros_like(sums)
    _jit.add_block_squares(X, labels, w, means, squares)
    return Quantization(means, counts, squares / held)


def _demand_all_seen(n: int, n_seen: int, n_found: int, growth: Any, radius: float) -> None:
    """Refuse a radius that makes more blocks than wanted, and say how many there would be.

    The number of representatives grows like a power of the number of rows: estimated from the last
    doubling that was seen.
    """
    if n_seen == n:
        return
    doublings = max(n_seen.bit_length() - 2, 0)
    half, seen = max(int(growth[doublings]), 1), 1 << doublings
    power = np.log(max(n_found / half, 1.0)) / np.log(max(n_seen / seen, 2.0))
    estimate = min(n_found * (n / n_seen) ** min(power, 1.0), n)
    raise TooManyBlocksError(
        f"radius={radius:g} makes more than {n_found:,} representatives, by estimate "
        f"{float(f'{estimate:.2g}'):,.0f} for {n:,} rows; raise radius, or allow more"
    )


def fine_block_sums(
    kernel: Kernel,
    X: FloatArray,
    weights: FloatArray,
    labels: IdArray,
    m: int,
    radius: float,
) -> FloatArray:
    """B by a finer partition (appendix): blocks cut by sequential sampling with a smaller radius.

    B_ij = Σ_ab l_ia l_jb k(o_ia, o_jb) over the pieces o of both blocks, of weight l.
    """
    _, fine = sequential_sample(X, radius)
    _, pieces = np.unique(labels * (fine.max() + 1) + fine, return_inverse=True)
    n_pieces = int(pieces.max()) + 1
    cut = quantize(X, pieces.ravel(), n_pieces, weights)
    block_of = np.empty(n_pieces, np.intp)
    block_of[pieces.ravel()] = labels
    sums = kernel.matrix(cut.representatives, cut.representatives) * cut.weights[:, None]
    sums *= cut.weights
    B = np.zeros((m, n_pieces))
    np.add.at(B, block_of, sums)
    total = np.zeros((m, m))
    np.add.at(total, block_of, B.T)
    return (total + total.T) / 2


def block_objective(
    kernel: Kernel, T: FloatArray, n: FloatArray, B: FloatArray, scale: FloatArray
) -> tuple[float, FloatArray]:
    """f(t), eq. (10) without its constant, and its gradient for an RBF kernel.

    df/dt_k = 8γ Σ_j (B_kj β_kj - A_kj β_kj²)(t_k - t_j): the stationarity behind eq. (11), whose
    iteration as printed goes uphill where its denominator is negative.
    """
    beta = kernel.matrix(T, T) * (scale[:, None] * scale)
    A = np.outer(n, n)
    C = B * beta - A * beta**2
    np.fill_diagonal(C, 0.0)
    gamma: float = kernel.gamma
    gradient = 8.0 * gamma * (C.sum(axis=1)[:, None] * T - C @ T)
    return float((A * beta**2 - 2.0 * B * beta).sum()), gradient


def move_representatives(
    kernel: Kernel, blocks: Quantization, B: FloatArray, scale: FloatArray
) -> FloatArray:
    """Representatives with a smaller f, by L-BFGS; the old ones where it finds none."""
    from scipy.optimize import minimize

    T, n = blocks.representatives, blocks.weights
    seen = kernel.select(np.arange(T.shape[1])[None, :])[0]
    start, _ = block_objective(kernel, T, n, B, scale)
    size = max(abs(start), np.finfo(float).tiny)

    def at(flat: FloatArray) -> FloatArray:
        moved = T.copy()
        moved[:, seen] = flat.reshape(len(T), len(seen))
        return moved

    def value_and_slope(flat: FloatArray) -> tuple[float, FloatArray]:
        f, gradient = block_objective(kernel, at(flat), n, B, scale)
        return f / size, gradient[:, seen].ravel() / size

    flat = T[:, seen].ravel()
    best = minimize(
        value_and_slope, flat, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS}
    )
    moved = at(best.x)
    return moved if block_objective(kernel, moved, n, B, scale)[0] <= start else T
