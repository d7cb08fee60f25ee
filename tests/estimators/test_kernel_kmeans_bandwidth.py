"""The bandwidth that KernelKMeans chooses by the neighbours its clusters split, and its starts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from mercer import RBF, KernelKMeans, Laplacian
from mercer.datasets import moons, ring_and_core
from mercer.kernels.bandwidth import other_gammas
from mercer.partitions.evidence import normalized_cut
from mercer.partitions.kmeans import kmeans

THREE = [(0.0, 0.0), (10.0, 0.0), (0.0, 10.0)]


def unequal(sizes, apart, d=2, seed=0):
    """Gaussians of unit spread in a row."""
    rng = np.random.default_rng(seed)
    means = np.zeros((len(sizes), d))
    means[:, 0] = apart * np.arange(len(sizes))
    y = np.repeat(np.arange(len(sizes)), sizes)
    return means[y] + rng.normal(size=(len(y), d)), y


def ari(k, X, y, **params):
    return adjusted_rand_score(y, KernelKMeans(k, **params).fit(X).labels_)


@pytest.mark.parametrize("n", [60, 150])
def test_three_clear_blobs_are_found_whatever_the_seed(n):
    X, y = make_blobs(n, centers=THREE, random_state=0)
    assert min(ari(3, X, y, random_state=seed) for seed in range(10)) == 1.0


@pytest.mark.slow
def test_three_clear_blobs_are_found_for_each_of_a_hundred_seeds():
    X, y = make_blobs(150, centers=THREE, random_state=0)
    assert min(ari(3, X, y, random_state=seed) for seed in range(100)) == 1.0


@pytest.mark.parametrize("d", [2, 10])
def test_a_few_rows_apart_are_a_cluster_beside_a_thousand(d):
    X, y = unequal([1000, 100, 20], 13.0, d)
    assert min(ari(3, X, y, random_state=seed) for seed in range(3)) >= 0.99


def test_many_compact_blobs_are_not_cut_into_denser_pieces():
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    X, y = make_blobs(2000, centers=10 * grid, random_state=0)
    assert ari(16, X, y, random_state=0) >= 0.99


def test_a_ring_keeps_a_kernel_that_sees_it():
    X, y = ring_and_core(1000, random_state=0)
    assert ari(2, X, y, random_state=0) >= 0.99


def test_the_choice_is_told_and_kept_as_a_number():
    X, _ = unequal([1000, 100, 20], 13.0)
    model = KernelKMeans(3, random_state=0).fit(X)
    assert "gamma by four mean distances" in model.report_.bandwidth
    assert "among 4 bandwidths" in model.report_.bandwidth
    assert isinstance(model.kernel_.gamma, float)
    assert "bandwidth" in {stage.name for stage in model.report_.stages}


@pytest.mark.parametrize("gamma", [0.3, "median", "scale"])
def test_a_bandwidth_that_was_asked_for_is_not_compared(gamma):
    X, _ = moons(300, random_state=0)
    model = KernelKMeans(2, gamma=gamma, random_state=0).fit(X)
    assert "bandwidths" not in model.report_.bandwidth
    assert model.kernel_.gamma == KernelKMeans(2, kernel=RBF(gamma)).fit(X).kernel_.gamma


def test_the_kernel_object_and_its_name_are_one():
    X, _ = moons(300, random_state=0)
    by_name = KernelKMeans(2, kernel="rbf", random_state=0).fit(X)
    by_object = KernelKMeans(2, kernel=RBF(), random_state=0).fit(X)
    assert by_name.kernel_.gamma == by_object.kernel_.gamma
    assert np.array_equal(by_name.labels_, by_object.labels_)


def test_too_few_rows_per_cluster_keep_the_neighbour_rule():
    X, _ = moons(30, random_state=0)
    model = KernelKMeans(8, random_state=0).fit(X)
    assert model.report_.bandwidth.startswith("gamma by the neighbour rule")
    assert "bandwidths" not in model.report_.bandwidth


@pytest.mark.parametrize(("kernel", "power"), [(RBF(), 2), (Laplacian(), 1)])
@pytest.mark.parametrize("t", [-300, -1, 1, 301])
def test_compared_bandwidths_follow_a_power_of_two_exactly(kernel, power, t):
    X = np.random.default_rng(0).normal(size=(200, 3))
    w = np.random.default_rng(1).integers(1, 4, 200).astype(float)
    one = other_gammas(kernel.distances(X, X), w, 0.7)
    scaled = np.ldexp(X, t)
    scaled = other_gammas(kernel.distances(scaled, scaled), w, np.ldexp(0.7, -power * t))
    assert {name: np.ldexp(g, power * t) for name, g in scaled.items()} == one


def test_rows_that_agree_in_the_kernels_columns_are_not_compared():
    assert other_gammas(np.zeros((50, 50)), np.ones(50), 1.0) == {}


def test_normalized_cut_by_hand():
    ties = np.array([[1], [0], [1], [4], [3]])  # 2 → 1 is the only edge that leaves its cluster
    labels, weights = np.array([0, 0, 1, 1, 1]), np.ones(5)
    # cluster 0: ends of 0→1, 1→0 (4) and one of 2→1; cluster 1: four of 3→4, 4→3, one of 2→1
    assert normalized_cut(ties, labels, weights, 2) == pytest.approx((1 / 5 + 1 / 5) / 2)
    assert normalized_cut(ties, labels, 1e200 * weights, 2) == pytest.approx(1 / 5)
    assert normalized_cut(ties, labels, weights, 3) == pytest.approx((1 / 5 + 1 / 5 + 1) / 3)


@pytest.mark.parametrize("seed", range(10))
def test_a_start_that_spends_two_centres_on_one_cluster_is_mended(seed):
    X, y = unequal([1000, 100, 20], 13.0, d=10, seed=seed)
    rng = np.random.default_rng(seed)
    found = kmeans(X, np.ones(len(X)), 3, n_init=1, max_iter=100, tol=1e-4, rng=rng)
    labels = ((X[:, None] - found.centers) ** 2).sum(axis=2).argmin(axis=1)
    assert adjusted_rand_score(y, labels) == 1.0
