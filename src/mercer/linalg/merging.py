"""Nodes of a graph merged two by two, the most tightly connected first: one tree of partitions.

Two nodes a, b are as far apart as chance would have it that an edge connects them, beside how often
one does: d_a d_b / (D W_ab), with degrees d and the total D [bonald2018]. Merged nodes add their
edges and degrees, so that distances only grow on the way up, and nearest pairs can be merged in any
order: the nearest-neighbour chain needs no queue.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mercer._run.types import FloatArray, IdArray

NEARER = 1e-10  # relative
APART = np.log(2.0)  # by which unconnected parts of a graph are above all merges within them


def merge_graph(W: sp.csr_array) -> FloatArray:
    """The tree of a graph as a linkage matrix of scipy: (p - 1, 4), by growing height.

    W: (p, p) symmetric, not negative. Heights are logarithms of distances, above that of the first
    merge. Unconnected parts are joined last, the largest first.
    """
    graph = _Nodes(W)
    for node in range(2 * W.shape[0] - 1):  # those that merges make come last
        graph.follow(node)
    return _linkage(graph, W.shape[0])


def cut_tree(linkage: FloatArray, n_clusters: int) -> IdArray:
    """The cluster of each leaf when so many are left, numbered by their first leaves: (p,)."""
    p = len(linkage) + 1
    tops = np.arange(2 * p - 1)
    for merge in range(p - n_clusters - 1, -1, -1):
        tops[linkage[merge, :2].astype(np.intp)] = tops[p + merge]
    _, first, labels = np.unique(tops[:p], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]


class _Nodes:
    """Nodes that are left, their edges and degrees; merges so far."""

    def __init__(self, W: sp.csr_array) -> None:
        self.degrees: list[float] = W.sum(axis=1).tolist()
        self.edges: list[dict[int, float] | None] = []
        self.merges: list[tuple[int, int, float]] = []
        self.tops: list[int] = []  # of unconnected parts
        self.heights: list[float] = [0.0] * W.shape[0]
        for node, (start, stop) in enumerate(zip(W.indptr[:-1], W.indptr[1:], strict=True)):
            pairs = zip(W.indices[start:stop].tolist(), W.data[start:stop].tolist(), strict=True)
            self.edges.append({other: w for other, w in pairs if other != node and w > 0.0})

    def follow(self, node: int) -> None:
        """Merge along the chain of nearest neighbours that starts here, until it is used up."""
        chain = [node] if node < len(self.edges) and self.edges[node] is not None else []
        while chain:
            last, before = chain[-1], chain[-2] if len(chain) > 1 else -1
            nearest, distance = self._nearest(last, before)
            if nearest < 0:
                self.tops.append(chain.pop())
                self.edges[last] = None
            elif nearest == before:
                del chain[-2:]
                self._merge(before, last, distance)
            else:
                chain.append(nearest)

    def _nearest(self, node: int, before: int) -> tuple[int, float]:
        """The nearest neighbour, of equals the one before and then the first; -1 without any."""
        edges = self.edges[node]
        assert edges is not None
        best, most = -1, 0.0  # affinity beside the other's degree
        if before in edges:  # another must be nearer by more than rounding: chains never turn back
            best, most = before, edges[before] / self.degrees[before] * (1.0 + NEARER)
        for other, weight in edges.items():
            share = weight / self.degrees[other]
            if share > most or (share == most and best != before and other < best):
                best, most = other, share
        if best == before >= 0:
            most /= 1.0 + NEARER
        return best, self.degrees[node] / most if best >= 0 else np.inf

    def _merge(self, a: int, b: int, distance: float) -> None:
        joined, few = self.edges[a], self.edges[b]
        assert joined is not None
        assert few is not None
        new = len(self.edges)
        if len(joined) < len(few):
            joined, few = few, joined
        for other, weight in few.items():
            joined[other] = joined.get(other, 0.0) + weight
        for old in (a, b):
            joined.pop(old, None)
            self.edges[old] = None
        for other, weight in joined.items():
            edges = self.edges[other]
            assert edges is not None
            edges.pop(a, None)
            edges.pop(b, None)
            edges[new] = weight
        self.edges.append(joined)
        self.degrees.append(self.degrees[a] + self.degrees[b])
        # rounding must not put a merge below those of its parts
        self.heights.append(max(distance, self.heights[a], self.heights[b]))
        self.merges.append((a, b, self.heights[new]))


def _linkage(graph: _Nodes, p: int) -> FloatArray:
    """Merges in the order of their heights, with the numbers that scipy gives to their nodes."""
    linkage = np.zeros((p - 1, 4))
    distances = np.array([distance for _, _, distance in graph.merges])
    order = np.argsort(distances, kind="stable")
    names, sizes = list(range(p)) + [0] * len(order), [1] * p
    for place, merge in enumerate(order):
        names[p + merge] = p + place
    for place, merge in enumerate(order):
        _put(linkage, sizes, place, *(names[node] for node in graph.merges[merge][:2]))
    within = np.log(distances[order] / distances[order[0]]) if len(order) else np.zeros(0)
    linkage[: len(order), 2] = np.maximum.accumulate(within)
    tops = sorted((names[node] for node in graph.tops), key=lambda top: (-sizes[top], top))
    highest = within[-1] if len(within) else 0.0
    for place in range(len(order), p - 1):
        _put(linkage, sizes, place, tops[0], tops[place - len(order) + 1])
        tops[0] = p + place
        linkage[place, 2] = highest + APART * (place - len(order) + 1)
    return linkage


def _put(linkage: FloatArray, sizes: list[int], place: int, a: int, b: int) -> None:
    """One merge; leaves below it are counted."""
    sizes.append(sizes[a] + sizes[b])
    linkage[place, :2], linkage[place, 3] = sorted((a, b)), sizes[-1]
