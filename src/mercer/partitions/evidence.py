"""What speaks for or against a clustering, measured on a bounded sample of rows.

Nothing here knows an estimator: arrays in, numbers out. `edges` are the nearest rows of each row of
a sample, `labels` the clusters these rows were given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mercer._run.types import FloatArray, IdArray
from mercer.metrics.pairs import adjusted_rand


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
    return float(cluster_cuts(edges, labels, weights, n_clusters, closeness).mean())


def cluster_cuts(
    edges: IdArray,
    labels: IdArray,
    weights: FloatArray,
    n_clusters: int,
    closeness: FloatArray | None = None,
) -> FloatArray:
    """The share of each cluster's edges that leave it; 1 for a cluster without rows."""
    w = weights / weights.max()
    strength = w[:, None] * w[edges]
    strength = (strength if closeness is None else strength * closeness).ravel()
    one, other = np.repeat(labels, edges.shape[1]), labels[edges].ravel()
    leaving = strength * (one != other)

    def by_cluster(values: FloatArray) -> Any:
        return np.bincount(one, values, n_clusters) + np.bincount(other, values, n_clusters)

    total = by_cluster(strength)
    shares: FloatArray = np.where(
        total > 0, by_cluster(leaving) / np.where(total > 0, total, 1.0), 1.0
    )
    return shares


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
    recluster: Callable[[IdArray, np.random.Generator], IdArray], n: int, seed: int
) -> float:
    """ARI of clusterings made from two disjoint halves of n rows, on all of them."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    halves = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    one, other = (recluster(half, rng) for half in halves)
    return float(adjusted_rand(one, other))
