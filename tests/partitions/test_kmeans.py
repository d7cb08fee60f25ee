"""Weighted k-means against a slow, obvious one; its bounds, repairs and draws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

import reference
from mercer.linalg.lloyd import WeightedRows
from mercer.linalg.numbering import content_order, numbering
from mercer.partitions.kmeans import INIT_ROWS, kmeans, kmeans_plus_plus

pytestmark = pytest.mark.numeric


def problem(seed, n=400, d=4, k=5, dtype=np.float64):
    rng = np.random.default_rng(seed)
    F = make_blobs(n, d, centers=k, cluster_std=3.0, random_state=seed)[0].astype(dtype)
    weights = rng.integers(1, 4, n).astype(float)
    return F, weights, np.einsum("ij,ij->i", F, F, dtype=np.float64), rng


@pytest.mark.parametrize("seed", range(10))
def test_lloyd_ends_where_the_plain_algorithm_ends(seed):
    F, weights, norms, rng = problem(seed)
    rows = WeightedRows(F, weights, norms)
    start = kmeans_plus_plus(rows, 5, rng=rng)
    found = rows.lloyd(start, max_iter=300)
    labels, inertia = reference.lloyd(F, weights, start)
    assert found.is_converged
    assert found.inertia == pytest.approx(inertia, rel=1e-9)
    distances = ((F[:, None] - found.centers) ** 2).sum(axis=2)
    assert np.array_equal(distances.argmin(axis=1), labels)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 8), n=st.integers(8, 60))
def test_inertia_never_rises_with_more_sweeps(seed, k, n):
    F, weights, norms, rng = problem(seed, n=n, k=3)
    rows = WeightedRows(F, weights, norms)
    start = kmeans_plus_plus(rows, k, rng=rng)
    costs = [rows.lloyd(start, max_iter=sweeps).inertia for sweeps in (1, 2, 5, 50)]
    assert all(a >= b * (1 - 1e-12) for a, b in pairwise(costs))


@pytest.mark.parametrize("seed", range(10))
def test_threads_and_float32_change_nothing_that_matters(seed):
    F, weights, norms, _ = problem(seed, n=20_000)
    params = {"n_init": 1, "max_iter": 100, "tol": 1e-4}
    one = kmeans(F, weights, 5, **params, rng=np.random.default_rng(seed))
    two = kmeans(F, weights, 5, **params, rng=np.random.default_rng(seed), threads=2)
    assert np.array_equal(one.centers, two.centers)
    single = kmeans(F.astype(np.float32), weights, 5, **params, rng=np.random.default_rng(seed))
    assert single.inertia == pytest.approx(one.inertia, rel=0.02)
    assert one.mean_norm == pytest.approx(weights @ norms / weights.sum())


def test_an_empty_cluster_gets_the_costliest_row():
    F = np.array([[0.0], [0.1], [5.0], [5.1], [30.0]])
    start = np.array([[0.0], [5.0], [1000.0]])  # nobody is nearest to the last
    found = WeightedRows.of(F, np.ones(5)).lloyd(start, max_iter=50)
    assert sorted(found.centers.ravel()) == pytest.approx([0.05, 5.05, 30.0])


def test_many_rows_start_from_a_sample():
    F, weights, _, _ = problem(0, n=3 * INIT_ROWS, d=2, k=4)
    found = kmeans(F, weights, 4, n_init=1, max_iter=300, tol=1e-4, rng=np.random.default_rng(0))
    thorough = kmeans(
        F[:10_000],
        weights[:10_000],
        4,
        n_init=20,
        max_iter=300,
        tol=0,
        rng=np.random.default_rng(1),
    )
    per_row = found.inertia / weights.sum()
    assert per_row == pytest.approx(thorough.inertia / weights[:10_000].sum(), rel=0.05)


def test_k_means_plus_plus_never_draws_a_row_of_no_weight_or_twice_the_same_point():
    F = np.repeat(np.eye(3), [5, 5, 5], axis=0)
    weights = np.r_[np.ones(5), np.zeros(5), np.ones(5)]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        chosen = kmeans_plus_plus(WeightedRows(F, weights, np.ones(15)), 2, rng=rng)
        assert {tuple(row) for row in chosen} == {(1, 0, 0), (0, 0, 1)}


def test_clusters_are_numbered_by_weight_then_content():
    centers = np.array([[2.0, 0.0], [1.0, 5.0], [1.0, 4.0]])
    assert list(numbering(np.array([3.0, 7.0, 7.0]), centers)) == [2, 1, 0]
    assert list(content_order(centers)) == [2, 1, 0]
