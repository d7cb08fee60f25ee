"""Nested partitions: the clusters of a fit merged two by two, and which of the steps to keep.

A partition that persists while the height of the tree grows is a layer of the data: below it tight
clusters merge, and the next merge joins clusters that are connected far more loosely. How long it
persists is compared with the partitions into half to twice as many clusters, and it is kept where
that is more than the longest of them would by chance.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.linalg.merging import cut_tree, merge_graph
from mercer.linalg.numbering import numbering
from mercer.partitions.many_means import nearest_centers

FEWER = 1.5  # times as many clusters in the next layer, at least
MOST_LAYERS = 6
BEYOND = 0.01  # of what chance gives: below, a graph does not connect two clusters
NEAREST = 10  # other clusters that a cluster's mean is compared with
WORK_ROWS = 8192
TINY = np.finfo(float).tiny
EULER = float(np.euler_gamma)


@frozen
class Layers:
    """A tree over clusters, and the levels of it that are worth a look, coarse to fine."""

    tree: FloatArray  # (k - 1, 4) a linkage matrix of scipy
    parents: IdArray  # (n_layers, k) the cluster of each layer that a cluster belongs to
    evidence: FloatArray  # (n_layers,) how long each persists; 1 is what chance gives to the best

    @classmethod
    def none(cls, n_clusters: int) -> Layers:
        """A tree without layers, where no graph between clusters is known."""
        return cls(np.zeros((0, 4)), np.zeros((0, n_clusters), np.intp), np.zeros(0))


def find_layers(W: FloatArray | sp.csr_array, cluster_weights: FloatArray) -> Layers:
    """The layers of k clusters with these affinities; numbered by decreasing weight like labels."""
    k = len(cluster_weights)
    if k < 2:
        return Layers.none(k)
    tree = merge_graph(sp.csr_array(W))
    evidence = persistence(tree)
    numbers = _kept(evidence, k)
    parents = [_numbered(cut_tree(tree, number), cluster_weights) for number in numbers]
    table = np.array(parents, np.intp).reshape(len(numbers), k)
    return Layers(tree, table, np.array([evidence[number] for number in numbers], np.float64))


def with_distances(
    W: FloatArray | sp.csr_array, rows: FloatArray, weights: FloatArray, labels: IdArray
) -> sp.csr_array:
    """Affinities between clusters, to which their nearest means add what the graph cannot see.

    A graph of near rows does not tell how far apart clusters are that it does not connect. So each
    cluster gets edges to the nearest others, of a hundredth of what chance gives and less:
    exp(-‖a - b‖² / 2s²), s the mean distance of the nearest two means.
    """
    k, d = W.shape[0], rows.shape[1]
    sums, counts = np.zeros((k, d)), np.bincount(labels, weights, k)
    for start in range(0, len(rows), WORK_ROWS):
        some = slice(start, start + WORK_ROWS)
        shape = len(labels[some]), k
        places = (np.arange(shape[0]), labels[some])
        sums += sp.csr_array((weights[some], places), shape=shape).T @ rows[some]
    means = sums / np.maximum(counts, TINY)[:, None]
    near = nearest_centers(means, NEAREST + 1)
    a, b = np.repeat(np.arange(k), near.shape[1]), near.ravel()
    a, b = a[a != b], b[a != b]
    squares = ((means[a] - means[b]) ** 2).sum(axis=1)
    unit = np.full(k, np.inf)
    np.minimum.at(unit, a, squares)
    similar = np.exp(-squares / max(2.0 * float(np.mean(np.sqrt(unit))) ** 2, TINY))
    degrees = np.asarray(W.sum(axis=1))
    edges = BEYOND * similar * degrees[a] * degrees[b] / max(float(degrees.sum()), TINY)
    extra = sp.csr_array((edges, (a, b)), shape=(k, k))
    return sp.csr_array(sp.csr_array(W) + extra.maximum(extra.T))


def persistence(tree: FloatArray) -> dict[int, float]:
    """For 2 to k - 1 clusters: how long the partition persists, beside the longest by chance.

    Lifetimes of w partitions that appear at random are exponential, and the longest of them is
    expected to be ln w + 0.577 times as long as the mean.
    """
    heights, k = tree[:, 2], len(tree) + 1
    lifetimes = np.diff(heights)[::-1]  # of 2, 3, … k - 1 clusters
    found = {}
    for number in range(2, k):
        near = lifetimes[max(-(-number // 2), 2) - 2 : 2 * number - 1]
        by_chance = float(near.mean()) * (np.log(len(near)) + EULER)
        found[number] = float(lifetimes[number - 2]) / by_chance if by_chance > 0 else 0.0
    return found


def _kept(evidence: dict[int, float], k: int) -> list[int]:
    """Numbers of clusters with the most evidence, well apart from each other, by growing number."""
    kept = [k]
    for number in sorted(evidence, key=lambda number: -evidence[number]):
        if evidence[number] < 1.0 or len(kept) > MOST_LAYERS:
            break
        if all(max(number, other) >= FEWER * min(number, other) for other in kept):
            kept.append(number)
    return sorted(kept[1:])


def _numbered(labels: IdArray, cluster_weights: FloatArray) -> IdArray:
    """Clusters of a layer, numbered by decreasing weight and then by their first cluster."""
    totals = np.bincount(labels, weights=cluster_weights).astype(np.float64)
    order = numbering(totals, np.arange(float(len(totals)))[:, None])
    return np.argsort(order)[labels]
