"""Coordinates from random bins: eigenvectors of Z Zᵀ, by products that only ever see bin numbers.

A row's coordinates are sums over its bins, one per grid, of vectors that belong to bins: for rows
of the fit and new rows alike (the right singular vectors of the scaled Z, paper 003, eq. 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._run.lazy import LazyModule
from mercer._run.threads import in_order
from mercer._run.types import FloatArray
from mercer.factors.binning import BinningFactor
from mercer.factors.bundles import Bundles, bundled, neighbor_sums, parts_of_rows
from mercer.kernels.base import Kernel
from mercer.linalg.eigen import leading_eigenpairs
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import Rows, cast
from mercer.rows.sample import Sample
from mercer.rows.source import spans

_jit = LazyModule("mercer.factors._binning_jit")

TOL = 1e-4  # of the singular vectors of the scaled Z, as in the paper
ROUGH_TOL = 1e-2  # of principal directions, of which the last matter little
LEAST_VALUE = 1e-10  # eigenvalues below are rounding


@dataclass(frozen=True, slots=True)
class BinGraph:
    """K ≈ Z Zᵀ on the rows of a fit, as products with vectors."""

    factor: BinningFactor
    threads: int = 1
    bundles: tuple[Bundles, Bundles] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bundles = bundled(self._training().ids, np.diff(self.factor.bins.starts))
        object.__setattr__(self, "bundles", bundles)

    def product(self, V: FloatArray) -> FloatArray:
        """Z Zᵀ V over the kept bins: sums over bins, read by the rows in them."""
        if V.ndim == 2:
            return np.stack([self.product(v) for v in V.T], axis=1)
        v = np.ascontiguousarray(V, np.float64)
        return neighbor_sums(self.bundles, v, self.threads) / self.factor.rank

    def diagonal(self) -> FloatArray:
        """What bins with one row alone add to the diagonal of Z Zᵀ; 0 for rows without ties."""
        n_alone = self._training().n_alone
        return np.where(n_alone < self.factor.rank, n_alone, 0) / self.factor.rank

    def is_tied(self) -> Any:
        """Which rows are in a kept bin at all."""
        return self._training().n_alone < self.factor.rank

    def parts(self) -> Any:
        """The unconnected part of the graph that each row is in, as the number of a row."""
        n_bins = np.diff(self.factor.bins.starts)
        return parts_of_rows(self._training().ids, n_bins, self.is_tied())

    def operator(self, scale: FloatArray, diagonal: FloatArray) -> Any:
        """diag(s) (Z Zᵀ + diag) diag(s) as scipy's linear operator."""
        from scipy.sparse.linalg import LinearOperator

        def apply(V: FloatArray) -> FloatArray:
            s, on_diagonal = (x if V.ndim == 1 else x[:, None] for x in (scale, diagonal))
            scaled = s * V
            return s * (self.product(scaled) + on_diagonal * scaled)

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


def part_vectors(graph: BinGraph, masses: FloatArray, m: int) -> FloatArray:
    """Eigenvectors of D^-½ W D^-½ that are known: one for each of the ≤ m heaviest parts (rows).

    D^½ 1 on an unconnected part belongs to the eigenvalue 1; masses are the squares, w·d.
    """
    parts = graph.parts()
    weights = np.bincount(parts, masses)
    heaviest = np.argsort(-weights, kind="stable")[: min(m, np.count_nonzero(weights))]
    return np.array([np.sqrt(np.where(parts == c, masses, 0.0) / weights[c]) for c in heaviest])


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
    pairs = leading_eigenpairs(A, factor.components, tol=ROUGH_TOL, complete=True, rng=rng)
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
