"""k-means for very many clusters, and the search for the nearest of their centres."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from marking import seeds
from mercer.datasets import many_clusters
from mercer.partitions import center_index, many_means
from mercer.partitions.center_index import build_index, search_centers
from mercer.partitions.many_means import cluster_many, nearest_centers, seed_centers


def found(X, k, *, seed=0, rounds=12, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    rng = np.random.default_rng(seed)
    centers = seed_centers(X, weights, k, rng=rng)
    return cluster_many(X, weights, centers, rounds=rounds, rng=rng)


def by_hand(X, C):
    return ((X[:, None, :].astype(float) - C) ** 2).sum(axis=2)


def test_labels_are_those_of_the_nearest_centre():
    X = np.random.default_rng(0).normal(size=(400, 5))
    means = found(X, 20)
    D = by_hand(X, means.centers)
    assert np.array_equal(means.labels, D.argmin(axis=1))
    assert np.allclose(means.distances, D.min(axis=1))


@seeds(5, quick=2)
@pytest.mark.parametrize("sizes", ["equal", "zipf"])
def test_moves_find_clusters_that_sweeps_do_not(sizes, seed):
    X, y = many_clusters(6000, 60, sizes=sizes, separation=1.0, random_state=seed, dtype=np.float32)
    stuck, moved = (found(X, 60, seed=seed, rounds=rounds) for rounds in (0, 12))
    assert moved.n_moves > 0
    score = normalized_mutual_info_score(y, moved.labels)
    assert score > max(normalized_mutual_info_score(y, stuck.labels), 0.97)


def test_a_centre_too_many_in_a_large_cluster_moves_to_a_small_one():
    """Ward's criterion alone would leave it: half of 2,000 rows weigh more than ten."""
    rng = np.random.default_rng(0)
    large, small = rng.normal(size=(2000, 16)), rng.normal(size=(10, 16)) + 4.0
    X = np.concatenate([large, small])
    start = np.array([large[large[:, 0] > 0].mean(axis=0), large[large[:, 0] < 0].mean(axis=0)])
    means = cluster_many(X, np.ones(len(X)), start, rounds=12, rng=rng)
    assert set(means.labels[2000:]).isdisjoint(means.labels[:2000])


def test_one_cluster_is_not_cut_for_another_centre():
    """Two clusters and three centres: the third may be anywhere in one of them."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(500, 8)), rng.normal(size=(500, 8)) + 9.0])
    means = found(X, 3)
    assert normalized_mutual_info_score(np.arange(1000) // 500, means.labels) > 0.7


def test_a_weight_of_two_is_a_row_twice():
    X, _ = many_clusters(900, 12, n_features=6, separation=4.0, random_state=0)
    weights = 1.0 + np.arange(len(X)) % 2
    start = seed_centers(X, weights, 12, rng=np.random.default_rng(0))
    twice = np.repeat(X, weights.astype(int), axis=0)
    rows = {"rounds": 12, "rng": np.random.default_rng(1)}
    one = cluster_many(X, weights, start, **rows)
    two = cluster_many(
        twice, np.ones(len(twice)), start, **(rows | {"rng": np.random.default_rng(1)})
    )
    labels = np.repeat(one.labels, weights.astype(int))
    assert adjusted_rand_score(labels, two.labels) > 0.95


@pytest.mark.parametrize("n", [5, 6, 50])
def test_equal_and_few_rows_are_taken(n):
    means = found(np.ones((n, 3)), 5)
    assert np.allclose(means.centers, 1.0)
    assert np.isfinite(means.distances).all()


@pytest.mark.numeric
def test_rows_beside_their_centres_neighbours_are_as_good_as_all(monkeypatch):
    X, y = many_clusters(8000, 100, separation=1.0, random_state=0, dtype=np.float32)
    exact = found(X, 100)
    monkeypatch.setattr(many_means, "EXHAUSTIVE", 50)
    near = found(X, 100)
    scores = [normalized_mutual_info_score(y, means.labels) for means in (exact, near)]
    assert scores[1] > scores[0] - 0.01


def test_neighbours_of_centres_are_the_nearest():
    C = np.random.default_rng(0).normal(size=(70, 4))
    nearest = np.sort(by_hand(C, C).argsort(axis=1)[:, :9], axis=1)
    assert np.array_equal(nearest_centers(C, 9), nearest)


@pytest.mark.numeric
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e12])
def test_the_search_is_exact_whatever_single_precision_sees(offset):
    rng = np.random.default_rng(0)
    C, Z = rng.normal(size=(300, 7)) + offset, rng.normal(size=(500, 7)) + offset
    labels, distances = search_centers(C)(Z)
    D = by_hand(Z, C)
    assert np.array_equal(labels, D.argmin(axis=1))
    assert np.allclose(distances, D.min(axis=1), rtol=1e-12)


def test_the_index_has_the_recall_that_it_states():
    """Centres in two levels: a few lists hold the nearest one, and pieces have the same labels."""
    rng = np.random.default_rng(0)
    C = np.repeat(4.0 * rng.normal(size=(120, 16)), 50, axis=0) + rng.normal(size=(6000, 16))
    Z = C[rng.integers(0, 6000, 12_000)] + 0.5 * rng.normal(size=(12_000, 16))
    index = build_index(C, Z[:8000], rng=rng)
    assert index is not None
    assert index.recall >= 0.99
    assert len(index.groups) + index.n_probes * 6000 / len(index.groups) < 6000 / 4
    search, new = search_centers(C, index), Z[8000:]
    labels = search(new)[0]
    assert (labels == search_centers(C)(new)[0]).mean() > 0.99
    pieces = [search(new[at : at + 33])[0] for at in range(0, len(new), 33)]
    assert np.array_equal(np.concatenate(pieces), labels)
    order = rng.permutation(6000)
    renumbered = search_centers(C[order], index.renumber(order))(new)[0]
    assert np.array_equal(order[renumbered], labels)


def test_there_is_no_index_without_structure(monkeypatch):
    monkeypatch.setattr(center_index, "INDEXED", 500)
    rng = np.random.default_rng(0)
    C = rng.normal(size=(1000, 64))
    Z = C[rng.integers(0, 1000, 5000)] + rng.normal(size=(5000, 64))
    assert build_index(C, Z, rng=rng) is None


def test_a_heavy_row_keeps_its_centre():
    """One row of weight 50 is a cluster of 50 equal rows, not a stray one."""
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((1, 3)), rng.normal(8.0, 1.0, (100, 3))])
    weights = np.concatenate([[50.0], np.ones(100)])
    for seed in range(5):
        labels = found(X, 2, seed=seed, rounds=20, weights=weights).labels
        assert (labels == labels[0]).sum() == 1


def test_max_iter_bounds_the_sweeps():
    X = np.random.default_rng(0).normal(size=(200, 2))
    start, rng = X[:10].copy(), np.random.default_rng(0)
    short = cluster_many(X, np.ones(200), start, rounds=5, max_iter=1, rng=rng)
    assert (short.n_iter, short.is_converged) == (1, False)
    assert cluster_many(X, np.ones(200), start, rounds=5, rng=rng).is_converged
