"""Which cluster of a stream a row is nearest to (step 12 of Algorithm 1 of [chitta2015]).

``"mean"``: a centre is the mean of its cluster's buffer rows in feature space, and a row is
compared with the clusters it has edges to: by its distance or, where the kernel is normalised and
lengths only reflect the number of edges, by its angle. Similarities without an edge are ignored
(the sparse kernel) or, once there is an edge to the cluster, count like others (the whole kernel).
The first follows clusters of any shape; the second uses all ten rows of a cluster that has only
ten. Where the buffer has few rows of each cluster, the means are of all rows seen (`StreamMeans`).
``"projected"``: centres and rows are projected on the eigenvectors first (eq. 8); slower, and
measured to be no better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import CountedLabels, Surroundings
from mercer.factors.mutual import BufferEdges, Groups, NeighborKernel
from mercer.linalg.lloyd import nearest_center, scores_of_centers
from mercer.linalg.products import row_products
from mercer.partitions.outliers import SEEN_ROWS, OutlierModel, fit_outliers
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, cast, take
from mercer.rows.sample import evenly
from mercer.rows.source import Source
from mercer.rows.sweep import TileFunction, is_weights
from mercer.stream.reservoir_means import ReservoirMeans
from mercer.stream.running_means import StreamMeans
from mercer.stream.warm_start import label_means

_jit = LazyModule("mercer.stream._means_jit")

HIDDEN = 1e-6  # of the length of others, or its square: shorter rows have no direction
TINY = np.finfo(float).tiny
WORK_ROWS = 512  # buffer rows whose similarities to their own clusters are held at once


def coordinates(graph: NeighborKernel, values: FloatArray, vectors: FloatArray) -> FloatArray:
    """V √λ (eq. 9) of one row each, so without its mass."""
    F = vectors * np.sqrt(values)
    F /= np.sqrt(graph.masses)[:, None]
    return F


def points(
    graph: NeighborKernel, values: FloatArray, vectors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What k-means clusters, and with which weights: V √λ, of a normalised kernel at length 1.

    There a row's length only tells how few edges it has, and rows with few would attract centres.
    """
    F = coordinates(graph, values, vectors)
    if graph.is_normalized:
        lengths = np.sqrt(np.einsum("ij,ij->i", F, F))
        F /= np.maximum(lengths, max(float(HIDDEN * lengths.max()), TINY))[:, None]
    return F, graph.weights


@frozen
class MeanCenters:
    """Centres that are means of buffer rows in the kernel's feature space.

    With a normalised kernel, rows and centres are brought to length 1: ‖x - c‖² = 2 - 2 cos.
    A row without an edge to a cluster is at a right angle to it.
    """

    graph: NeighborKernel
    groups: Groups  # the clusters, with the coefficients of rows in their centre
    lengths: FloatArray  # (k,) ‖c‖²

    @classmethod
    def of(
        cls, graph: NeighborKernel, clusters: IdArray, n_clusters: int, *, is_whole: bool = False
    ) -> MeanCenters:
        totals = np.bincount(clusters, weights=graph.weights, minlength=n_clusters)
        share = graph.weights / np.maximum(totals, TINY)[clusters]
        groups = Groups.of(clusters, share, n_clusters, is_whole=is_whole)
        lengths = _whole_lengths(graph, groups) if is_whole else _sparse_lengths(graph, groups)
        if graph.is_normalized:
            share = share / np.sqrt(np.maximum(lengths, TINY))[clusters]
            groups, lengths = replace(groups, coefficients=share), np.zeros(n_clusters)
        lengths[totals == 0] = np.inf
        return cls(graph, groups, lengths)

    @property
    def format(self) -> RowFormat:
        return self.graph.format

    def view(self, dtype: Any, *, nearest: bool) -> Callable[..., BufferEdges]:
        """Rows → their edges, with sums of similarities to each cluster."""
        return self.graph.edges(dtype, nearest=nearest, groups=self.groups)

    def nearest(self, edges: BufferEdges) -> tuple[IdArray, FloatArray]:
        """Labels and scores ‖c‖² - 2⟨x, c⟩ of rows with these edges."""
        csr = self._sums(edges)
        labels, scores = np.empty(len(edges), np.intp), np.empty(len(edges))
        arrays = (csr.indptr, csr.indices, csr.data, self._scale(edges), self.lengths)
        _jit.nearest_mean(*arrays, labels, scores)
        return labels, scores

    def scores(self, edges: BufferEdges) -> FloatArray:
        """‖c‖² - 2⟨x, c⟩ for every cluster."""
        return self.lengths - 2.0 * self._sums(edges).toarray() * self._scale(edges)[:, None]

    def _sums(self, edges: BufferEdges) -> sp.csr_array:
        assert edges.sums is not None, "edges that were made without groups"
        return edges.sums

    def lengths_of(self, edges: BufferEdges) -> FloatArray:
        """‖x‖², which turns scores into squared distances."""
        return np.full(len(edges), 2.0) if self.graph.is_normalized else edges.own

    def n_unseen(self, X: Rows, edges: BufferEdges, scores: FloatArray) -> int:
        """How many of these rows are similar to nothing in the buffer."""
        return edges.n_unseen()

    def around(self, edges: BufferEdges, labels: IdArray, scores: FloatArray) -> Surroundings:
        """By the similarities of rows to the buffer's."""
        return edges.around(labels, self.groups.labels, self.graph.weights)

    def _scale(self, edges: BufferEdges) -> FloatArray:
        """1/√k(x, x) where rows are brought to length 1."""
        if not self.graph.is_normalized:
            return np.ones(len(edges))
        lengths = np.sqrt(np.maximum(edges.own, 0.0))
        return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _sparse_lengths(graph: NeighborKernel, groups: Groups) -> FloatArray:
    """Σ_ij a_i a_j k(x_i, x_j) over the edges inside each group: ‖c‖² of its mean."""
    s, k = len(graph), len(groups.starts) - 1
    entries = groups.coefficients * graph.degrees / np.sqrt(graph.masses)
    P = sp.csr_array((entries, (np.arange(s), groups.labels)), shape=(s, k))
    return np.asarray(P.multiply(graph.matrix @ P).sum(axis=0)).ravel()


def _whole_lengths(graph: NeighborKernel, groups: Groups) -> FloatArray:
    """The same over all pairs of rows inside each group."""
    lengths = np.zeros(len(groups.starts) - 1)
    order, labels = groups.members, groups.labels[groups.members]
    for start in range(0, len(order), WORK_ROWS):
        some = slice(start, min(start + WORK_ROWS, len(order)))
        first, last = groups.starts[labels[some.start]], groups.starts[labels[some.stop - 1] + 1]
        K = np.asarray(
            graph.kernel.matrix(take(graph.rows, order[some]), take(graph.rows, order[first:last]))
        )
        K = np.where(labels[some, None] == labels[first:last], K, 0.0)
        a, b = groups.coefficients[order[some]], groups.coefficients[order[first:last]]
        lengths += np.bincount(labels[some], weights=a * (K @ b), minlength=len(lengths))
    return lengths


def whole_is_better(graph: NeighborKernel, n_clusters: int) -> bool:
    """Whether clusters have fewer rows in the buffer than rows have neighbours.

    Then edges lead out of every cluster, and those inside it are too few to rely on.
    """
    return graph.is_normalized and len(graph) < graph.n_neighbors * n_clusters


@frozen
class ProjectedCenters:
    """Means of clusters in the leading eigenspace of the buffer's kernel."""

    graph: NeighborKernel
    projection: FloatArray  # (s, r) V λ^-½
    centers: FloatArray  # (k, r)
    clusters: IdArray  # (s,) the cluster of each buffer row
    shortest: float  # rows that are shorter count as orthogonal to the eigenvectors

    @classmethod
    def of(
        cls,
        graph: NeighborKernel,
        values: FloatArray,
        vectors: FloatArray,
        clusters: IdArray,
        n_clusters: int,
    ) -> ProjectedCenters:
        F, weights = points(graph, values, vectors)
        centers = label_means(F, weights, clusters, n_clusters)
        F = coordinates(graph, values, vectors)
        shortest = np.sqrt(HIDDEN * np.median(np.einsum("ij,ij->i", F, F)))
        return cls(graph, vectors / np.sqrt(values), centers, clusters, float(shortest))

    @property
    def format(self) -> RowFormat:
        return self.graph.format

    def view(self, dtype: Any, *, nearest: bool) -> Callable[..., BufferEdges]:
        """Rows → their edges."""
        return self.graph.edges(dtype, nearest=nearest)

    def nearest(self, edges: BufferEdges) -> tuple[IdArray, FloatArray]:
        E = self._rows(edges)
        A, b = scores_of_centers(self.centers)
        labels, scores = nearest_center(row_products(E, A) + b)
        return self._label_hidden(edges, E, labels, scores)

    def scores(self, edges: BufferEdges) -> FloatArray:
        A, b = scores_of_centers(self.centers)
        return row_products(self._rows(edges), A) + b

    def lengths_of(self, edges: BufferEdges) -> FloatArray:
        E = self._rows(edges)
        return np.einsum("ij,ij->i", E, E)

    def n_unseen(self, X: Rows, edges: BufferEdges, scores: FloatArray) -> int:
        """How many of these rows are similar to nothing in the buffer."""
        return edges.n_unseen()

    def around(self, edges: BufferEdges, labels: IdArray, scores: FloatArray) -> Surroundings:
        """By the similarities of rows to the buffer's."""
        return edges.around(labels, self.clusters, self.graph.weights)

    def _rows(self, edges: BufferEdges) -> FloatArray:
        """Vᵀφ λ^-½ of one row each: 0 where it is too short, else of length 1 if normalised."""
        phi = self.graph.normalized(edges)
        E = np.asarray(phi @ self.projection) / np.sqrt(edges.weights * edges.degrees)[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->i", E, E))
        E[lengths <= self.shortest] = 0.0
        if self.graph.is_normalized:
            E /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return E

    def _label_hidden(
        self, edges: BufferEdges, E: FloatArray, labels: IdArray, scores: FloatArray
    ) -> tuple[IdArray, FloatArray]:
        """Rows orthogonal to the eigenvectors get the cluster of the most similar buffer row."""
        lengths = np.einsum("kr,kr->k", self.centers, self.centers)
        csr = edges.similarities
        for i in np.flatnonzero(~E.any(axis=1)):
            near = slice(csr.indptr[i], csr.indptr[i + 1])
            if near.stop > near.start:
                labels[i] = self.clusters[csr.indices[near][csr.data[near].argmax()]]
                scores[i] = lengths[labels[i]] - 2.0 * E[i] @ self.centers[labels[i]]
        return labels, scores


Centers = MeanCenters | ProjectedCenters | StreamMeans | ReservoirMeans


@frozen
class NearestCounts:
    """Tiles → each cluster's weight and the inertia; if wanted, the first row and labels too."""

    by: Centers
    n_clusters: int
    outliers: OutlierModel
    keeps_labels: bool

    def __call__(self) -> TileFunction[tuple[Any, ...]]:
        nearest = _nearest_and_around(self.by)

        def label(rows: Rows, start: int, weights: FloatArray | None) -> tuple[Any, ...]:
            distances, around = nearest(rows)
            tile, w = around.labels, np.ones(len(distances)) if weights is None else weights
            counts = np.bincount(tile, weights=w, minlength=self.n_clusters).astype(np.float64)
            found = counts, float(w @ distances)
            if not self.keeps_labels:
                return found
            return *found, start, tile, self.outliers.scores(around)

        return label

    def fits(self, result: Any, source: Source, along: FloatArray | None) -> bool:
        counts, inertia = result
        is_cost = isinstance(inertia, float) and bool(np.isfinite(inertia))
        return is_cost and is_weights(counts, self.n_clusters, source, along)


def labels_of_rows(by: Centers) -> Callable[[Rows], IdArray]:
    """Raw rows → labels, decided in float64."""
    counted = counted_labels_of_rows(by)
    return lambda rows: counted(rows)[0]


def counted_labels_of_rows(by: Centers) -> Callable[[Rows], CountedLabels]:
    """Raw rows → labels, and how many rows are similar to nothing in the buffer."""
    view: Callable[[Rows], Any] = by.view(np.float64, nearest=True)
    row_format = by.format

    def decide(rows: Rows) -> CountedLabels:
        X = row_format.apply(rows, np.float64)
        seen = view(X)
        labels, scores = by.nearest(seen)
        return labels, by.n_unseen(X, seen, scores)

    return decide


def nearest_of_rows(by: Centers) -> Callable[[Rows], tuple[IdArray, FloatArray]]:
    """Raw rows → labels and squared distances to their centres."""
    view = _view_of_raw(by)

    def nearest(rows: Rows) -> tuple[IdArray, FloatArray]:
        seen = view(rows)
        labels, scores = by.nearest(seen)
        return labels, np.maximum(scores + by.lengths_of(seen), 0.0)

    return nearest


def surroundings_of_rows(by: Centers) -> Callable[[Rows], Surroundings]:
    """Raw rows → what lies around them."""
    both = _nearest_and_around(by)
    return lambda rows: both(rows)[1]


def outliers_of_stream(
    by: Centers, rows: Rows, n_clusters: int, noise: float | str | None
) -> OutlierModel:
    """What is usual around the rows that a stream holds, which are in format."""
    view: Callable[[Rows], Any] = by.view(np.float64, nearest=True)
    some, found = evenly(rows.shape[0], SEEN_ROWS), []
    for start in range(0, len(some), WORK_ROWS):
        seen = view(cast(take(rows, some[start : start + WORK_ROWS]), np.float64))
        found.append(by.around(seen, *by.nearest(seen)))
    return fit_outliers(Surroundings.stack(found), np.ones(len(some)), n_clusters, noise=noise)


def _nearest_and_around(by: Centers) -> Callable[[Rows], tuple[FloatArray, Surroundings]]:
    """Raw rows → squared distances to their centres, and what lies around them."""
    view = _view_of_raw(by)

    def both(rows: Rows) -> tuple[FloatArray, Surroundings]:
        seen = view(rows)
        labels, scores = by.nearest(seen)
        around = by.around(seen, labels, scores)
        return np.maximum(scores + by.lengths_of(seen), 0.0), around

    return both


def distances_of_rows(by: Centers) -> Callable[[Rows], FloatArray]:
    """Raw rows → ‖x - c‖ for each centre."""
    view = _view_of_raw(by)

    def distances(rows: Rows) -> FloatArray:
        seen = view(rows)
        squares = by.scores(seen) + by.lengths_of(seen)[:, None]
        return np.sqrt(np.maximum(squares, 0.0))

    return distances


def _view_of_raw(by: Centers) -> Callable[[Rows], Any]:
    view, row_format = by.view(np.float64, nearest=True), by.format
    return lambda rows: view(row_format.apply(rows, np.float64))
