"""A few rows and all distances between them: their graph, and what other methods make of them.

A partition of many rows is examined on a sample: how many close rows it separates, and whether
methods that share nothing with it come to the same clusters. Arrays in, numbers out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.kernels.base import Kernel
from mercer.linalg.eigen import Solver
from mercer.linalg.products import unit_rows
from mercer.linalg.walks import Walk, leading_walk
from mercer.metrics.pairs import adjusted_rand
from mercer.partitions.cones import find_cones
from mercer.partitions.evidence import cluster_cuts, cut_share
from mercer.partitions.linkage import genie_labels, shortest_tree
from mercer.rows.rows import Rows, cast, part, take
from mercer.rows.sample import Sample, evenly

EXAMINED = 1000  # rows at most, where nothing else is said
BLOCK = 256  # of them, whose distances are in float64 at a time
NEAR = 7  # nearest rows that a partition should not separate
NARROW, WIDE = 10, 30  # neighbours of two graphs
N_WEAK, WEAK_EDGE = 3, 0.3  # edges to the nearest rows, whether mutual or not: three of ten
BRIDGE = 0.01  # edges of the spanning tree
SMALL_PART = 0.01  # of the weight: a part below this is connected to its nearest rows elsewhere
WARD_ROWS = 700  # of which all distances are held twice
LEAST_GROUP, FAR = 3, 2.0  # rows of a small cluster; its distance over its longest inner edge
CELLINGS = 8  # partitions into cells around random rows
STARTS, SWEEPS = 2, 30  # of k-means in the coordinates of eigenvectors


@frozen(slots=False)
class ExaminedRows:
    """Some rows by their squared distances to each other."""

    squared: FloatArray  # (n, n) float32
    weights: FloatArray  # (n,)

    def __len__(self) -> int:
        return len(self.squared)

    def take(self, ids: IdArray) -> ExaminedRows:
        """Part of the rows."""
        return ExaminedRows(self.squared[np.ix_(ids, ids)], self.weights[ids])

    @cached_property
    def near(self) -> IdArray:
        """The nearest rows of each row, itself apart, nearest first: (n, WIDE) at most."""
        n, q = len(self), min(WIDE, len(self) - 1)
        near = np.empty((n, q), np.intp)
        for start in range(0, n, BLOCK):
            block = self.squared[start : start + BLOCK].copy()
            rows = np.arange(len(block))
            block[rows, start + rows] = np.inf
            found = np.sort(np.argpartition(block, q - 1, axis=1)[:, :q], axis=1)
            order = np.argsort(np.take_along_axis(block, found, axis=1), axis=1, kind="stable")
            near[start : start + BLOCK] = np.take_along_axis(found, order, axis=1)
        near.setflags(write=False)  # graphs are made of it
        return near

    @cached_property
    def tree(self) -> IdArray:
        """The minimum spanning tree: (n - 1, 2) rows, the shortest edge first."""
        return shortest_tree(self.squared)

    def cuts(self, labels: IdArray, n_clusters: int) -> FloatArray:
        """Share of each cluster's close pairs that leave it."""
        return cluster_cuts(self.near[:, :NEAR], labels, self.weights, n_clusters)

    def chance_share(self, edges: IdArray, n_clusters: int) -> float:
        """The share of these edges that such cells cut; 1 is what labels at random would cut."""
        return float(np.mean([cut_share(edges, labels) for labels in self._cells(n_clusters)]))

    def _cells(self, n_clusters: int) -> Iterator[IdArray]:
        rng = np.random.default_rng(n_clusters)
        for _ in range(CELLINGS):
            centers = rng.choice(len(self), n_clusters, replace=False)
            labels = self.squared[:, centers].argmin(axis=1)
            labels[centers] = np.arange(n_clusters)
            yield labels

    def set_apart(self, labels: IdArray, n_clusters: int) -> NDArray[np.bool_]:
        """Which small clusters are dense groups far from all other rows: (n_clusters,).

        Other methods and a graph of neighbours cannot tell them from stray rows: they have fewer
        rows than a row has neighbours. Such a cluster is connected by edges much shorter than its
        distance to the nearest other row.
        """
        sizes = np.bincount(labels, minlength=n_clusters)
        found = np.zeros(n_clusters, bool)
        for cluster in np.flatnonzero((sizes >= LEAST_GROUP) & (sizes <= NARROW)):
            is_inside = labels == cluster
            within = self.squared[np.ix_(is_inside, is_inside)]
            longest = within[tuple(shortest_tree(within)[-1])]
            found[cluster] = self.squared[np.ix_(is_inside, ~is_inside)].min() > FAR**2 * longest
        return found

    def n_groups(self, n_neighbors: int, least_rows: int) -> int:
        """Unconnected parts of the graph of mutual neighbours that have at least so many rows."""
        _, parts = connected_components(self._edges(n_neighbors, 0.0), directed=False)
        return int((np.bincount(parts) >= least_rows).sum())

    def linkage_labels(self, sizes: Iterable[int]) -> dict[int, IdArray]:
        """Clusters by single linkage that keeps sizes balanced."""
        return genie_labels(self.tree, sizes)

    def ward_labels(self, sizes: Iterable[int], ids: IdArray | None = None) -> dict[int, IdArray]:
        """Clusters of least variance, by merging; of some of the rows."""
        from scipy.cluster.hierarchy import fcluster, linkage  # a quarter of mercer's import time

        ids = np.arange(len(self)) if ids is None else ids
        pairs = [self.squared[i, ids[place + 1 :]] for place, i in enumerate(ids)]
        merges = linkage(np.sqrt(np.concatenate(pairs), dtype=np.float64), "ward")
        return {k: fcluster(merges, k, "maxclust").astype(np.intp) - 1 for k in sizes}

    def agreements(self, labels: IdArray, n_clusters: int) -> dict[str, float]:
        """ARI with the clusters of methods that have little in common."""
        k, some = n_clusters, evenly(len(self), WARD_ROWS)
        graphs = {"neighbors": NARROW, "wide neighbors": WIDE}
        found = {
            "linkage": adjusted_rand(labels, self.linkage_labels([k])[k]),
            "ward": adjusted_rand(labels[some], self.ward_labels([k], some)[k]),
            **{
                name: adjusted_rand(
                    labels, self.spectral_labels(self.walk(q, k, solver="inverted"), k)
                )
                for name, q in graphs.items()
            },
        }
        return {name: float(value) for name, value in found.items()}

    def walk(
        self,
        n_neighbors: int,
        n_vectors: int,
        *,
        small_part: float = SMALL_PART,
        solver: Solver = "auto",
    ) -> Walk:
        """Leading eigenvectors of the graph of mutual neighbours, connected by the tree."""
        edges = self._edges(n_neighbors, small_part)
        rng = np.random.default_rng(0)
        return leading_walk(
            edges, self.weights, n_vectors, bridges=self._bridges(edges), solver=solver, rng=rng
        )

    def spectral_labels(self, walk: Walk, n_clusters: int) -> IdArray:
        """Clusters of the first coordinates of a walk."""
        m = min(n_clusters, walk.vectors.shape[1])
        points = unit_rows(walk.vectors[:, :m])
        cones = find_cones(
            points,
            walk.weights,
            n_clusters,
            assign_labels="kmeans",
            n_init=STARTS,
            rng=np.random.default_rng(n_clusters),
            max_iter=SWEEPS,
        )
        labels: IdArray = (points @ cones.directions.T).argmax(axis=1)
        return labels

    def _edges(self, n_neighbors: int, small_part: float) -> sp.csr_array:
        """Mutual edges, weak ones to the nearest rows, and some from small parts to others."""
        near = _adjacency(self.near[:, :n_neighbors])
        weak = _adjacency(self.near[:, : max(N_WEAK, n_neighbors * N_WEAK // NARROW)])
        edges = sp.csr_array(near.minimum(near.T).maximum(weak.maximum(weak.T) * WEAK_EDGE))
        n_parts, parts = connected_components(edges, directed=False)
        if n_parts == 1:
            return edges
        share = np.bincount(parts, weights=self.weights) / self.weights.sum()
        small = np.flatnonzero(share[parts] < small_part)
        outward = parts[self.near[small]] != parts[small, None]
        outward &= np.cumsum(outward, axis=1) <= N_WEAK
        one, other = np.repeat(small, outward.sum(axis=1)), self.near[small][outward]
        more = sp.csr_array((np.full(len(one), WEAK_EDGE), (one, other)), shape=edges.shape)
        return sp.csr_array(edges.maximum(more).maximum(more.T))

    def _bridges(self, edges: sp.csr_array) -> sp.csr_array:
        """The edges of the spanning tree between parts."""
        _, parts = connected_components(edges, directed=False)
        one, other = self.tree[parts[self.tree[:, 0]] != parts[self.tree[:, 1]]].T
        tree = sp.csr_array((np.full(len(one), BRIDGE), (one, other)), shape=edges.shape)
        return sp.csr_array(tree + tree.T)


def examine(kernel: Kernel | None, sample: Sample, ids: IdArray) -> ExaminedRows:
    """Some rows of a sample, by the distances that the kernel's space has, or by their own.

    A Gaussian orders pairs of rows as their distance does, and a narrow one underflows: so theirs
    are the rows' own.
    """
    rows = cast(take(sample.rows, ids), np.float64)
    is_own = kernel is None or (kernel.is_gaussian and kernel.columns is None)
    measure = _plain_products if is_own or kernel is None else kernel.matrix
    squared = np.empty((len(ids), len(ids)), np.float32)
    own = _own_products(kernel, rows, is_own=is_own)
    lengths = np.sqrt(np.where(own > 0, own, 1.0))
    for start in range(0, len(ids), BLOCK):
        block = slice(start, start + BLOCK)
        products = np.asarray(measure(part(rows, start, start + BLOCK), rows), np.float64)
        squared[block] = (
            np.maximum(own[block, None] + own - 2.0 * products, 0.0)
            if is_own
            else np.maximum(2.0 - 2.0 * products / lengths[block, None] / lengths, 0.0)
        )
    np.fill_diagonal(squared, 0.0)
    return ExaminedRows(squared, sample.weights[ids])


def similarities(kernel: Kernel, sample: Sample, ids: IdArray) -> tuple[float, float, float]:
    """Median similarity of a row to its nearest row; mean and least similarity of two rows."""
    rows = cast(take(sample.rows, ids), np.float64)
    alike = np.asarray(kernel.matrix(rows, rows), np.float64)
    diagonal = np.diagonal(alike)
    length = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    alike /= length[:, None]  # in place, here and below: the widest matrix of many fits
    alike /= length
    n, own = len(alike), alike.trace()
    least, mean = float(alike.min()), float((alike.sum() - own) / (n * (n - 1)))
    np.fill_diagonal(alike, -np.inf)
    return float(np.median(alike.max(axis=1))), mean, least


def _own_products(kernel: Kernel | None, rows: Rows, *, is_own: bool) -> FloatArray:
    """<x, x> of each row, in its own space or in the kernel's."""
    if kernel is not None and not is_own:
        return np.asarray(kernel.diagonal(rows), np.float64)
    squares = rows.multiply(rows).sum(axis=1) if sp.issparse(rows) else np.square(rows).sum(axis=1)
    return np.asarray(squares, np.float64).ravel()


def _plain_products(X: Rows, Y: Rows) -> FloatArray:
    products = X @ Y.T
    found: FloatArray = products.toarray() if sp.issparse(products) else products
    return found


def _adjacency(near: IdArray) -> sp.csr_array:
    """1 for each edge from a row to those listed."""
    n, q = near.shape
    in_order = np.sort(near, axis=1).ravel()
    return sp.csr_array((np.ones(n * q), in_order, np.arange(n + 1) * q), shape=(n, n))
