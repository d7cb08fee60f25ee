"""What speaks for or against a clustering, measured on a bounded sample of rows.

Nothing here knows an estimator: arrays in, numbers out. `alike` is a matrix of similarities between
the rows of a sample (any increasing function of them does, e.g. minus a distance), `labels` are the
clusters these rows were given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mercer._run.types import FloatArray, IdArray
from mercer.metrics.pairs import adjusted_rand

BLOCK = 32  # rows that neighbours are sought for at a time: little memory
CHANCE_CUTS = 8  # partitions by random centres that the found one is compared with


def nearest_edges(alike: FloatArray, n_neighbors: int) -> IdArray:
    """The rows most like each row, itself apart: (n, n_neighbors)."""
    n = len(alike)
    edges = np.empty((n, n_neighbors), np.intp)
    for start in range(0, n, BLOCK):
        unlike = -alike[start : start + BLOCK]
        rows = np.arange(len(unlike))
        unlike[rows, start + rows] = np.inf
        order = np.argpartition(unlike, n_neighbors - 1, axis=1)
        edges[start : start + BLOCK] = order[:, :n_neighbors]
    return edges


def cut_share(edges: IdArray, labels: IdArray) -> float:
    """Share of edges that leave their cluster; 1 is what labels at random would cut."""
    shares = np.bincount(labels) / len(labels)
    by_chance = 1.0 - float(shares @ shares)
    if by_chance <= 0:
        return 0.0
    return float((labels[edges] != labels[:, None]).mean()) / by_chance


def normalized_cut(
    edges: IdArray,
    labels: IdArray,
    weights: FloatArray,
    n_clusters: int,
    closeness: FloatArray | None = None,
) -> float:
    """The mean over clusters of the share of a cluster's edges that leave it, in [0, 1].

    The normalised cut [shi2000] of the graph of nearest rows; a cluster without rows counts as 1.
    `closeness`: what each edge counts, (n, n_neighbors); None is 1.
    """
    w = weights / weights.max()
    strength = w[:, None] * w[edges]
    strength = (strength if closeness is None else strength * closeness).ravel()
    one, other = np.repeat(labels, edges.shape[1]), labels[edges].ravel()
    leaving = strength * (one != other)

    def by_cluster(values: FloatArray) -> Any:
        return np.bincount(one, values, n_clusters) + np.bincount(other, values, n_clusters)

    total = by_cluster(strength)
    shares = np.where(total > 0, by_cluster(leaving) / np.where(total > 0, total, 1.0), 1.0)
    return float(shares.mean())


def chance_cut(
    alike: FloatArray, edges: IdArray, n_clusters: int, *, rng: np.random.Generator
) -> float:
    """`cut_share` of cells around random rows: clusters that no structure guides."""
    cuts = []
    for _ in range(CHANCE_CUTS):
        centers = rng.choice(len(alike), n_clusters, replace=False)
        labels = alike[:, centers].argmax(axis=1)
        labels[centers] = np.arange(n_clusters)
        cuts.append(cut_share(edges, labels))
    return float(np.mean(cuts))


def loose_share(edges: IdArray, labels: IdArray) -> float:
    """Share of rows that no path of edges within their cluster leads to its largest part."""
    n, q = edges.shape
    rows, columns = np.repeat(np.arange(n), q), edges.ravel()
    inside = labels[rows] == labels[columns]
    graph = sp.csr_array(
        (np.ones(int(inside.sum())), (rows[inside], columns[inside])), shape=(n, n)
    )
    _, parts = connected_components(graph, directed=False)
    sizes = np.bincount(parts)
    largest = np.zeros(int(labels.max()) + 1)
    np.maximum.at(largest, labels, sizes[parts])
    return 1.0 - float(largest.sum()) / n


def agreement(
    recluster: Callable[[IdArray, np.random.Generator], IdArray], n: int, *, seeds: int = 1
) -> float:
    """ARI of clusterings made from disjoint halves of n rows, on all of them: the median split."""
    scores = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        order = rng.permutation(n)
        halves = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        one, other = (recluster(half, rng) for half in halves)
        scores.append(adjusted_rand(one, other))
    return float(np.median(scores))
