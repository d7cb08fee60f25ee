"""The graph that came as X: a symmetric matrix of affinities between items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored, unstored
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import (
    Approximation,
    ConeLabeller,
    CountedLabels,
    Factor,
    SpectralMap,
)
from mercer.kernels.base import Kernel
from mercer.kernels.given import Precomputed
from mercer.linalg.eigen import Solver
from mercer.linalg.lloyd import nearest_center
from mercer.linalg.numbering import content_order
from mercer.linalg.products import row_products, unit_rows
from mercer.linalg.walks import leading_walk
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import Rows, cast
from mercer.rows.sample import Sample

SPARSE = 0.1  # of the values that are not zero: below, a sparse matrix is quicker
ASYMMETRY = 1e-8  # of the largest affinity: more is not rounding
LEAST_VALUE = 1e-8  # smaller eigenvalues (negative: a graph between two sides) show no clusters


class GivenAffinity(Approximation):
    """The matrix that came as X is the graph: symmetric, no value below zero, dense or sparse."""

    takes_graph = True
    is_sparse = True
    has_dense_form = False

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (AffinityGraph,)

    def fit(
        self,
        kernel: Kernel,
        X: Any,
        *,
        rng: np.random.Generator,
        threads: int = 1,
    ) -> AffinityGraph:
        """Check the affinities of the items in X."""
        items = np.asarray(X.ids)
        W: Any = kernel.matrix_of_items
        if len(items) < W.shape[0]:
            W = W[items][:, items]
        _check_affinities(W)
        if not sp.issparse(W) and np.count_nonzero(W) < SPARSE * W.size:
            W = sp.csr_array(W)
        return AffinityGraph(kernel.matrix_of_items.shape[0], items, W)

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        return 0  # nothing beside what was given; the eigensolver's vectors are few

    def width(self, n_rows: int) -> int:
        return 0

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        return 8 * n_rows * (8 * n_vectors + 20)

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        return 0


@frozen
class AffinityGraph(Factor):
    """Items and their affinities; a new item is a row of affinities to those of the fit."""

    is_graph = True

    n_items: int = stored("int n, >= 1")  # columns of a row
    items: IdArray = stored("(m?,) int, in [0, n)")  # that took part: those of positive weight
    training_matrix: Any = unstored()  # dense or CSR

    def check_model(self, kernel: Kernel, n_features: int) -> None:
        """The items are the columns of X."""
        is_same = kernel.is_precomputed and self.n_items == n_features
        expect(is_same, f"the graph has {self.n_items} items, but X has {n_features} columns")

    @property
    def rank(self) -> int:
        return self.n_items

    @property
    def trace_error(self) -> float:
        return 0.0

    @property
    def format(self) -> RowFormat:  # type: ignore[override]
        return RowFormat(np.dtype(np.float64))

    @property
    def kernel(self) -> Precomputed:
        return Precomputed()

    def rows(self, X: Any) -> Any:
        """Affinities to the items of the fit: the rows themselves."""
        source = as_source(X)
        return source.read(0, source.n_rows)

    def spectral_map(
        self,
        sample: Sample,
        n_vectors: int,
        *,
        solver: Solver,
        rng: np.random.Generator,
        threads: int = 1,
    ) -> SpectralMap:
        """The walk on the graph. W diag(w) φ = λ D φ, so affinities @ (w φ/λ) point along φ."""
        walk = leading_walk(self.training_matrix, sample.weights, n_vectors, solver=solver, rng=rng)
        kept = walk.values > LEAST_VALUE
        values, points = walk.values[kept], walk.vectors[:, kept]
        vectors = np.zeros((self.n_items, len(values)))
        vectors[self.items] = sample.weights[:, None] * points / values
        return SpectralMap(
            vectors,
            points,
            walk.weights,
            values,
            walk.residuals[kept],
            walk.solver,
            n_isolated=walk.n_alone,
            most_clusters=len(values),
        )

    def labeller(self, vectors: FloatArray, directions: FloatArray) -> AffinityLabeller:
        return AffinityLabeller(self, vectors, directions)

    def densities(self, mass: FloatArray | None) -> Callable[[Rows], FloatArray]:
        """Affinities → their sum: the degree of each item."""
        return lambda rows: np.asarray(rows.sum(axis=1), np.float64).ravel()


def refuse_matrix(approximation: Approximation) -> Any:
    """A graph between rows cannot be made of a matrix of affinities."""
    raise ValueError(
        f"{type(approximation).__name__} needs rows, but kernel='precomputed' says that X is a "
        "matrix: leave approximation as it is to cluster by these affinities, or use 'exact' or "
        "'cholesky'"
    )


def refuse_rank(rank: Any) -> None:
    """A graph between the rows themselves has no rank."""
    raise ValueError(
        f"rank={rank} is given, but a graph between the rows themselves has no rank; leave "
        "rank='auto' (Neighbors(n_neighbors=…) says how many edges a row has)"
    )


def _check_affinities(W: Any) -> None:
    values: FloatArray = W.data if sp.issparse(W) else W
    least, most = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if least < 0:
        raise ValueError(
            f"the precomputed affinities go down to {least:g}; a graph has no edges below zero: "
            "shift or clip them (for a positive semi-definite kernel with negative values use "
            "approximation='exact')"
        )
    if most == 0:
        raise ValueError(
            "the precomputed affinities are all zero: no row is connected to another; check what "
            "computed them (a bandwidth that is far too small?)"
        )
    if (uneven := _asymmetry(W)) > ASYMMETRY * most:
        raise ValueError(
            f"the precomputed affinities are not symmetric (they differ by up to {uneven:g}); "
            "use (A + A.T) / 2, or np.maximum(A, A.T)"
        )


def _asymmetry(W: Any) -> float:
    if sp.issparse(W):
        return float(abs(W - W.T).max())
    step = max(1, 2**22 // len(W))
    starts = range(0, len(W), step)
    return max(float(np.abs(W[i : i + step] - W[:, i : i + step].T).max()) for i in starts)


@frozen
class AffinityLabeller(ConeLabeller):
    """Rows are affinities to the items of the fit."""

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Affinities → labels, and how many items have no edge: they go with one cone."""
        order = content_order(self.directions)
        against = np.ascontiguousarray(self.directions[order].T)
        embed = self.coordinates()

        def decide(rows: Rows) -> CountedLabels:
            U = embed(rows)
            nowhere = np.flatnonzero(~U.any(axis=1))
            n_connected = np.count_nonzero(abs(rows[nowhere]).sum(axis=1)) if len(nowhere) else 0
            labels = order[nearest_center(-row_products(U, against))[0]]
            return labels, len(nowhere) - int(n_connected)

        return decide

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Affinities → unit coordinates."""

        def embed(rows: Rows) -> FloatArray:
            if sp.issparse(rows):
                return unit_rows(cast(rows, np.float64) @ self.vectors)
            return unit_rows(row_products(rows.astype(np.float64, copy=False), self.vectors))

        return embed
