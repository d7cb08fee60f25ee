"""Graphs between the rows themselves: nearest neighbours, or affinities given as a matrix.

For small data and for people who have a graph already. A graph of landmarks (factors/landmarks)
is quicker and takes any number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import as_sample
from mercer.factors.landmarks import (
    EXACT_NEIGHBORS,
    PRODUCT_ROWS,
    PRODUCTS,
    LandmarkGraph,
    Landmarks,
)
from mercer.kernels.base import Kernel
from mercer.kernels.given import GramMatrix, Precomputed
from mercer.rows.format import RowFormat

MOST_NEIGHBORS = 80  # ties per row, when fewer leave the graph in pieces
TIE = 1e-6  # weaker ones do not hold parts of a graph together
SPARSE = 0.1  # of the values that are not zero: below, a sparse matrix is quicker
ASYMMETRY = 1e-8  # of the largest affinity: more is not rounding


class Neighbors(BaseEstimator):
    """W = (A + Aᵀ)/2, where A ties each row to its nearest rows by Gaussian weights.

    What scikit-learn's SpectralClustering(affinity="nearest_neighbors") does, with weights that
    fall with the distance and a rule for new rows: the mean of their neighbours' coordinates. A row
    is its own first neighbour. While the graph has more parts than clusters are asked for, each row
    is tied to twice as many others, up to 80.

    Cost: n² d products for the search (a grid for up to 3 features), then an iterative eigensolver
    on n·n_neighbors numbers. Up to 100,000 rows take part, as everywhere.

    Parameters
    ----------
    n_neighbors : ties per row, itself among them.
    weights : "gaussian" with a bandwidth of the mean distance, or "rank" for 1, 1/2, 1/3 …

    Examples
    --------
    >>> from mercer import Neighbors, SpectralClustering
    >>> from mercer.datasets import moons
    >>> from mercer.metrics import adjusted_rand
    >>> X, y = moons(400, random_state=0)
    >>> graph = Neighbors(n_neighbors=12)
    >>> model = SpectralClustering(2, approximation=graph, random_state=0).fit(X)
    >>> adjusted_rand(y, model.labels_)
    1.0
    """

    def __init__(
        self,
        n_neighbors: int = EXACT_NEIGHBORS,
        *,
        weights: Literal["gaussian", "rank"] = "gaussian",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights

    def fit(
        self,
        kernel: Kernel | None,
        X: Any,
        *,
        rng: np.random.Generator,
        threads: int = 1,
        n_clusters: int = 1,
    ) -> LandmarkGraph:
        """Tie the rows of X to each other; kernel None scales itself."""
        sample = as_sample(kernel, X)
        n_neighbors = self.n_neighbors
        while True:
            graph = self._landmarks(len(sample), n_neighbors).fit(
                kernel, sample, rng=rng, threads=threads, n_clusters=n_clusters
            )
            graph = replace(graph, ties_rows=True)
            n_parts = sp.csgraph.connected_components(_felt(graph.affinities()))[0]
            n_neighbors *= 2
            if n_parts <= n_clusters or n_neighbors > min(MOST_NEIGHBORS, len(sample)):
                return graph

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        most = max(self.n_neighbors, MOST_NEIGHBORS)
        return 8 * n_rows * (2 * n_features + 6 * most) + 4 * max(PRODUCTS, PRODUCT_ROWS * n_rows)

    def width(self, n_rows: int) -> int:
        return 2 * max(self.n_neighbors, MOST_NEIGHBORS)

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """Ties, the graph both ways, and the vectors of an eigensolver."""
        return 8 * n_rows * (3 * self.width(n_rows) + 8 * n_vectors + 20)

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        return self._landmarks(n_rows, self.n_neighbors).label_memory(n_rows, n_features, tile_rows)

    def check(self, kernel: Kernel | None) -> None:
        """Refuse parameters and kernels that no data could make right."""
        self._landmarks(1, self.n_neighbors).check(kernel)

    def _landmarks(self, n_rows: int, n_neighbors: int) -> Landmarks:
        """The same graph, seen as one in which every row is a landmark."""
        return Landmarks(n_rows, n_neighbors=n_neighbors, weights=self.weights)


class GivenAffinity(BaseEstimator):
    """The matrix that came as X is the graph: symmetric, no value below zero, dense or sparse."""

    def fit(
        self,
        kernel: Kernel,
        X: Any,
        *,
        rng: np.random.Generator,
        threads: int = 1,
    ) -> AffinityGraph:
        """Check the affinities of the items in X."""
        assert isinstance(kernel, GramMatrix)
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


@dataclass(frozen=True, slots=True)
class AffinityGraph:
    """Items and their affinities; a new item is a row of affinities to those of the fit."""

    n_items: int  # columns of a row
    items: IdArray  # that took part: those of positive weight
    training_matrix: Any = field(default=None, repr=False, compare=False)  # dense or CSR

    @property
    def rank(self) -> int:
        return self.n_items

    @property
    def trace_error(self) -> float:
        return 0.0

    @property
    def format(self) -> RowFormat:
        return RowFormat(np.dtype(np.float64))

    @property
    def kernel(self) -> Precomputed:
        return Precomputed()

    def forget_training(self) -> AffinityGraph:
        """The same without the matrix: what a model keeps."""
        return replace(self, training_matrix=None)


def _felt(W: sp.csr_array) -> sp.csr_array:
    """The ties that an eigensolver can see."""
    return sp.csr_array(W.multiply(W > TIE))


def _check_affinities(W: Any) -> None:
    values: FloatArray = W.data if sp.issparse(W) else W
    least, most = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if least < 0:
        raise ValueError(
            f"the precomputed affinities go down to {least:g}; a graph has no ties below zero: "
            "shift or clip them (for a positive semi-definite kernel with negative values use "
            "approximation='exact')"
        )
    if most == 0:
        raise ValueError(
            "the precomputed affinities are all zero: nothing is tied to anything; check what "
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
