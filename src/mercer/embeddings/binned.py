"""Coordinates from random bins: eigenvectors of Z Zᵀ, by products that only ever see bin numbers.

A row's coordinates are sums over its bins, one per grid, of vectors that belong to bins: for rows
of the fit and new rows alike (the right singular vectors of the scaled Z, paper 003, eq. 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._lazy import LazyModule
from mercer._threads import in_order
from mercer._types import FloatArray
from mercer.data.format import RowFormat
from mercer.data.inputs import as_source
from mercer.data.rows import Rows, cast
from mercer.data.sample import Sample
from mercer.data.source import spans
from mercer.embeddings.eigen import Eigenpairs, Solver, leading_eigenpairs
from mercer.factors.binning import BinningFactor
from mercer.kernels.base import Kernel

__all__ = [
    "BinComponents",
    "BinGraph",
    "bin_components",
    "complete_eigenpairs",
    "densified",
    "settled_eigenpairs",
]

_jit = LazyModule("mercer.factors._binning_jit")

GROUPS = 8  # of grids; their sums are added in order, so threads do not change the bits
TOL = 1e-4  # of the first solution ...
LOOK_TOL = 1e-2  # enough to see whether an eigenvector was overlooked
ROUGH_TOL = 1e-2  # of principal directions, of which the last matter little
GAP_SHARE = 0.01  # ... which is repeated where residuals are above this share of the last gap
LEAST_TOL = 1e-8
LEAST_VALUE = 1e-10  # eigenvalues below are rounding


@dataclass(frozen=True, slots=True)
class BinGraph:
    """K ≈ Z Zᵀ on the rows of a fit, as products with vectors."""

    factor: BinningFactor
    threads: int = 1

    def product(self, V: FloatArray) -> FloatArray:
        """Z Zᵀ V over the kept bins: scatter into bins, gather from them, grid by grid."""
        training, starts = self._training(), self.factor.bins.starts
        V = np.ascontiguousarray(V[:, 0] if V.ndim == 2 and V.shape[1] == 1 else V, np.float64)
        loop = _jit.neighbor_sums if V.ndim == 1 else _jit.block_neighbor_sums
        width = int(np.diff(starts).max()) + 1
        ends = np.linspace(0, len(training.ids), GROUPS + 1).astype(np.intp)

        def group(number: int) -> FloatArray:
            y, out = np.empty((width, *V.shape[1:])), np.empty_like(V)
            loop(training.ids, starts, ends[number], ends[number + 1], V, y, out)
            return out

        total = np.zeros_like(V)
        for part in in_order(group, range(GROUPS), self.threads):
            total += part
        total /= self.factor.rank
        return total

    def diagonal(self) -> FloatArray:
        """What bins with one row alone add to the diagonal of Z Zᵀ; 0 for rows without ties."""
        n_alone = self._training().n_alone
        return np.where(n_alone < self.factor.rank, n_alone, 0) / self.factor.rank

    def is_tied(self) -> Any:
        """Which rows are in a kept bin at all."""
        return self._training().n_alone < self.factor.rank

    def operator(self, scale: FloatArray, diagonal: FloatArray) -> Any:
        """diag(s) (Z Zᵀ + diag) diag(s) as scipy's linear operator."""
        from scipy.sparse.linalg import LinearOperator

        def apply(V: FloatArray) -> FloatArray:
            s, on_diagonal = (x if V.ndim == 1 else x[:, None] for x in (scale, diagonal))
            scaled = s * V
            return s * (self.product(scaled).reshape(V.shape) + on_diagonal * scaled)

        n = len(scale)
        return LinearOperator((n, n), matvec=apply, matmat=apply, rmatvec=apply, dtype=np.float64)

    def bin_vectors(self, V: FloatArray) -> FloatArray:
        """Zᵀ V (unscaled) over the kept bins: a vector for each, (D, m) float32."""
        ids, starts = self._training().ids, self.factor.bins.starts
        out = np.empty((len(self.factor.bins), V.shape[1]), np.float32)

        def fill(g: int) -> None:
            Y = np.empty((int(starts[g + 1] - starts[g]) + 1, V.shape[1]))
            _jit.sums_of_bins(ids[g], V, Y)
            out[starts[g] : starts[g + 1]] = Y[:-1]

        for _ in in_order(fill, range(len(ids)), self.threads):
            pass
        return out

    def _training(self) -> Any:
        assert self.factor.training_bins is not None
        return self.factor.training_bins


def settled_eigenpairs(
    A: Any, m: int, *, solver: Solver, rng: np.random.Generator, tol: float = TOL
) -> Eigenpairs:
    """Leading eigenpairs to a tolerance that follows the last gap: what labels depend on."""
    pairs = complete_eigenpairs(A, m, solver=solver, tol=tol, rng=rng)
    if len(pairs.values) < 2:
        return pairs
    wanted = GAP_SHARE * float(pairs.values[-2] - pairs.values[-1])
    if pairs.residuals.max() <= max(wanted, LEAST_TOL):
        return pairs
    finer = max(wanted, LEAST_TOL) / 2
    better = complete_eigenpairs(A, m, solver=solver, tol=finer, rng=rng)
    return better if len(better.values) == len(pairs.values) else pairs


def complete_eigenpairs(
    A: Any, m: int, *, solver: Solver, tol: float, rng: np.random.Generator
) -> Eigenpairs:
    """Leading eigenpairs, none of them forgotten.

    A Krylov space of one start holds one vector for each eigenvalue, so ARPACK overlooks copies,
    such as the ones of a graph of several parts. What is left beside the vectors found is looked at
    until its largest eigenvalue is below all of theirs.
    """
    pairs = leading_eigenpairs(A, m, solver=solver, tol=tol, rng=rng)
    for _ in range(len(pairs.values) if pairs.solver == "arpack" else 0):
        rest = _beside(A, pairs.vectors)
        largest = leading_eigenpairs(rest, 1, solver="arpack", tol=LOOK_TOL, rng=rng)
        if not len(largest.values) or largest.values[0] <= pairs.values[-1] + tol:
            break
        missed = leading_eigenpairs(rest, 1, solver="arpack", tol=tol, rng=rng)
        basis, _ = np.linalg.qr(np.c_[pairs.vectors, missed.vectors])
        values, turn = np.linalg.eigh(basis.T @ (A @ basis))
        last = slice(None, -len(pairs.values) - 1, -1)
        values, vectors = values[last], basis @ turn[:, last]
        residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
        pairs = Eigenpairs(values, vectors, residuals, pairs.solver)
    return pairs


def _beside(A: Any, U: FloatArray) -> Any:
    """A on the complement of orthonormal columns U."""
    from scipy.sparse.linalg import LinearOperator

    def apply(V: FloatArray) -> FloatArray:
        Y = A @ (V - U @ (U.T @ V))
        return Y - U @ (U.T @ Y)

    return LinearOperator(A.shape, matvec=apply, matmat=apply, rmatvec=apply, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class BinComponents:
    """F = Z V, the leading principal directions of the bins: a dense factor K ≈ F Fᵀ."""

    binning: BinningFactor
    vectors: FloatArray  # (D, r) float32
    trace_error: float  # trace(K - F Fᵀ) / trace(K)
    training_rows: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def rank(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def kernel(self) -> Kernel:
        return self.binning.kernel

    @property
    def format(self) -> RowFormat:
        return self.binning.format

    @property
    def mix(self) -> FloatArray:
        """The identity: the features are F."""
        return np.eye(self.rank)

    def features(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        """F for rows in `format`, from the bins that rows of the fit's type fall into."""

        def sums(rows: Rows) -> FloatArray:
            F = self.binning.sums(cast(rows, self.format.dtype), self.vectors)
            F /= self.binning.rank
            return F.astype(dtype, copy=False)

        return sums

    def rows(self, X: Any) -> FloatArray:
        source, features = as_source(X), self.features(self.format.dtype)
        F = np.empty((source.n_rows, self.rank), self.format.dtype)
        for start, stop in spans(source.n_rows):
            F[start:stop] = features(self.format.apply(source.read(start, stop)))
        return F

    def forget_training(self) -> BinComponents:
        return replace(self, binning=self.binning.forget_training(), training_rows=None)


def bin_components(
    factor: BinningFactor, sample: Sample, *, rng: np.random.Generator, threads: int = 1
) -> BinComponents:
    """Principal directions: Z Zᵀ = U Λ Uᵀ (weighted) gives F = Z (Zᵀ U Λ^-½) ≈ U Λ^½."""
    graph, roots = BinGraph(factor, threads), np.sqrt(sample.weights)
    A = graph.operator(roots, np.zeros(len(sample)))
    pairs = complete_eigenpairs(A, factor.components, solver="auto", tol=ROUGH_TOL, rng=rng)
    kept = pairs.values > LEAST_VALUE * pairs.values[0]
    values, U = pairs.values[kept], pairs.vectors[:, kept]
    vectors = graph.bin_vectors(roots[:, None] * U / np.sqrt(values))
    F = factor.sums_of_training(sample, vectors, threads) / factor.rank
    error = max(1.0 - float(values.sum() / sample.weights.sum()), 0.0)
    return BinComponents(factor, vectors, error, F)


def densified(factor: Any, sample: Sample, *, rng: np.random.Generator, threads: int = 1) -> Any:
    """The factor itself, or dense features in place of bins, for methods that want them."""
    if isinstance(factor, BinningFactor):
        return bin_components(factor, sample, rng=rng, threads=threads)
    return factor
