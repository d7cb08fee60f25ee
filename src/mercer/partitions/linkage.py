"""Clusters by merging along a minimum spanning tree, the sizes kept from becoming too unequal."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mercer._run.types import FloatArray, IdArray

MOST_UNEQUAL = 0.3  # Gini index of cluster sizes, from which on the smallest cluster is merged


def shortest_tree(distances: FloatArray) -> IdArray:
    """The minimum spanning tree of all rows, by Prim: (n - 1, 2), the shortest edge first."""
    n = len(distances)
    edges, lengths = np.zeros((n - 1, 2), np.intp), np.empty(n - 1)
    nearest, shortest = np.zeros(n, np.intp), distances[0].copy()
    is_outside = np.ones(n, bool)
    is_outside[0] = False
    shortest[0] = np.inf
    for i in range(n - 1):
        new = int(shortest.argmin())
        edges[i], lengths[i] = (nearest[new], new), shortest[new]
        is_outside[new] = False
        closer = is_outside & (distances[new] < shortest)
        shortest[closer], nearest[closer] = distances[new][closer], new
        shortest[new] = np.inf
    return edges[np.argsort(lengths, kind="stable")]


def genie_labels(tree: IdArray, sizes: Iterable[int]) -> dict[int, IdArray]:
    """Genie [gagolewski2016]: single linkage, unless cluster sizes are too unequal.

    Edges of the minimum spanning tree (the shortest first) merge clusters. Where the Gini index of
    the sizes exceeds 0.3, the next edge is the shortest one of a smallest cluster: so stray rows
    join clusters instead of being some. About O(n √n) for n rows: so many sizes differ at most.
    """
    n, wanted = len(tree) + 1, {int(k) for k in sizes}
    found = {n: np.arange(n)} if n in wanted else {}
    clusters, edges = _Clusters(n), _OpenEdges(tree)
    for n_clusters in range(n - 1, min(wanted, default=n) - 1, -1):
        is_uneven = clusters.differences > MOST_UNEQUAL * n * n_clusters  # the Gini index
        one, other = edges.pop(clusters, min(clusters.n_of_size) if is_uneven else None)
        clusters.merge(one, other)
        if n_clusters in wanted:
            found[n_clusters] = clusters.labels()
    return found


class _Clusters:
    """Sets of rows that are merged, and how much their sizes differ."""

    def __init__(self, n: int) -> None:
        self.parents = list(range(n))
        self.sizes = [1] * n  # of the cluster of a root
        self.n_of_size = {1: n}
        self.differences = 0  # Σ |a - b| over pairs of sizes

    def root(self, row: int) -> int:
        parents = self.parents
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    def merge(self, one: int, other: int) -> None:
        """Make one cluster of those of two roots."""
        a, b = self.sizes[one], self.sizes[other]
        for size in (a, b):
            self.differences -= self._difference(size)
            self.n_of_size[size] -= 1
            if not self.n_of_size[size]:
                del self.n_of_size[size]
        self.differences += self._difference(a + b)
        self.n_of_size[a + b] = self.n_of_size.get(a + b, 0) + 1
        large, small = (one, other) if a >= b else (other, one)
        self.parents[small] = large
        self.sizes[large] = a + b

    def labels(self) -> IdArray:
        roots = [self.root(row) for row in range(len(self.parents))]
        return np.unique(roots, return_inverse=True)[1]

    def _difference(self, size: int) -> int:
        return sum(count * abs(size - other) for other, count in self.n_of_size.items())


class _OpenEdges:
    """The edges of the tree that have merged nothing yet, the shortest first."""

    def __init__(self, tree: IdArray) -> None:
        self.ends: list[list[int]] = tree.tolist()
        self.is_open = [True] * len(tree)
        self.first = 0  # no edge before this one is open
        self.place, self.smallest = 0, 0  # none before `place` ends in a cluster of that size

    def pop(self, clusters: _Clusters, smallest: int | None) -> tuple[int, int]:
        """The roots that the next edge connects: any edge, or one of a cluster of this size."""
        while not self.is_open[self.first]:
            self.first += 1
        edge = self.first
        if smallest is not None:
            if smallest != self.smallest:
                self.smallest, self.place = smallest, edge
            edge = max(self.place, edge)
            while not (self.is_open[edge] and self._is_at(edge, clusters, smallest)):
                edge += 1
            self.place = edge
        self.is_open[edge] = False
        one, other = self.ends[edge]
        return clusters.root(one), clusters.root(other)

    def _is_at(self, edge: int, clusters: _Clusters, size: int) -> bool:
        return any(clusters.sizes[clusters.root(row)] == size for row in self.ends[edge])
