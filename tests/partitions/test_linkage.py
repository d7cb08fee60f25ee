"""Genie and its tree beside slow references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from mercer.partitions.linkage import MOST_UNEQUAL, _Clusters, genie_labels, shortest_tree


def cloud(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, cdist(X, X)


def gini(sizes):
    """Mean absolute difference of two sizes, relative to the largest that is possible."""
    sizes = np.asarray(sizes, float)
    n = len(sizes)
    return np.abs(sizes[:, None] - sizes).sum() / (2 * (n - 1) * sizes.sum())


def slow_genie(distances, n_clusters):
    """Clusters as sets; the nearest pair is merged, or the nearest one of a smallest cluster."""
    clusters = [{i} for i in range(len(distances))]
    while len(clusters) > n_clusters:
        sizes = [len(c) for c in clusters]
        is_unequal = len(sizes) > 1 and gini(sizes) > MOST_UNEQUAL
        best = None
        for a, one in enumerate(clusters):
            for b, other in enumerate(clusters[:a]):
                if is_unequal and min(sizes) not in (len(one), len(other)):
                    continue
                length = distances[np.ix_(sorted(one), sorted(other))].min()
                best = min(best or (np.inf, 0, 0), (length, a, b))
        _, a, b = best
        clusters[b] |= clusters.pop(a)
    labels = np.empty(len(distances), int)
    for number, members in enumerate(clusters):
        labels[sorted(members)] = number
    return labels


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_is_as_short_as_scipys(seed):
    _, distances = cloud(80, seed)
    tree = shortest_tree(distances)
    lengths = distances[tree[:, 0], tree[:, 1]]
    assert lengths.sum() == pytest.approx(minimum_spanning_tree(distances).sum())
    assert (np.diff(lengths) >= 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_genie_is_the_slow_one(seed):
    _, distances = cloud(40, seed)
    found = genie_labels(shortest_tree(distances), [2, 5, 11, 40])
    for k, labels in found.items():
        assert adjusted_rand_score(labels, slow_genie(distances, k)) == 1.0
        assert len(np.unique(labels)) == k


def test_the_gini_index_is_kept_while_clusters_merge():
    rng, n = np.random.default_rng(0), 60
    clusters = _Clusters(n)
    for n_clusters in range(n - 1, 1, -1):
        roots = np.unique([clusters.root(row) for row in range(n)])
        clusters.merge(*map(int, rng.choice(roots, 2, replace=False)))
        sizes = np.bincount(clusters.labels())
        assert len(sizes) == n_clusters
        assert clusters.differences / (n * (n_clusters - 1)) == pytest.approx(gini(sizes))
