"""How many clusters: known cases, bounds, and rows that show none."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score

import mercer
from mercer import MercerWarning, SpectralClustering
from mercer.datasets import rings


def fitted(X, n_clusters="auto", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        return SpectralClustering(n_clusters, random_state=0, **options).fit(X)


def is_unclear(model):
    return any("not clear" in text for text in model.report_.warnings)


def grid_blobs(n_rows, side):
    centers = 10.0 * np.stack(np.meshgrid(np.arange(side), np.arange(4)), -1).reshape(-1, 2)
    return make_blobs(n_rows, 2, centers=centers, random_state=0)


def test_twenty_separate_blobs():
    X, y = grid_blobs(2000, 5)
    model = fitted(X)
    assert model.n_clusters_ == 20
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.report_.trust.grade == "good"
    assert not model.report_.warnings


def test_three_rings():
    assert fitted(rings(3000, random_state=0)[0]).n_clusters_ == 3


@pytest.mark.parametrize(
    "k", [100, pytest.param(150, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.slow)]
)
def test_hundreds_of_blobs(k):
    """Some 15 rows of each are looked at, where there are 200."""
    X, _ = make_blobs(30 * k, 8, centers=k, cluster_std=0.3, random_state=0)
    assert fitted(X).n_clusters_ == pytest.approx(k, abs=k // 50)


def test_digits_are_not_two():
    model = fitted(load_digits().data)
    assert 8 <= model.n_clusters_ <= 16


@pytest.mark.parametrize("n_features", [2, 10])
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_rows_without_clusters_are_called_unclear(kind, n_features):
    draw = getattr(np.random.default_rng(0), kind)
    model = fitted(draw(size=(1500, n_features)))
    assert is_unclear(model)
    assert model.report_.trust.grade != "good"


def test_two_far_rows_are_no_clear_number():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    X[:2] += 1000.0
    assert is_unclear(fitted(X))


def test_the_labels_are_those_of_the_number():
    X, _ = make_blobs(900, 4, centers=5, random_state=3)
    found = fitted(X)
    given = fitted(X, found.n_clusters_)
    assert np.array_equal(found.labels_, given.labels_)


def test_ensembles_find_the_same_number():
    X, _ = rings(2000, random_state=1)
    assert fitted(X, ensemble=5).n_clusters_ == fitted(X).n_clusters_


@pytest.mark.parametrize("bounds", [(2, 4), (7, 12), [5, 5]])
def test_bounds_hold(bounds):
    X, _ = grid_blobs(1000, 5)
    model = fitted(X, bounds)
    assert bounds[0] <= model.n_clusters_ <= bounds[1]
    assert all(bounds[0] <= k <= bounds[1] for k, *_ in model.n_clusters_ranking_)


@pytest.mark.parametrize("bounds", [(3, 2), (0, 5), (2,), (2, 3, 4), (2.5, 4), ("a", "b"), ()])
def test_bounds_that_mean_nothing_are_refused(bounds):
    with pytest.raises(ValueError, match="the least and the most"):
        SpectralClustering(bounds).fit(np.eye(30))


def test_the_ranking_keeps_the_evidence_and_is_saved(tmp_path):
    X, _ = make_blobs(600, 3, centers=10 * np.eye(3), random_state=0)
    model = fitted(X)
    ranking = model.n_clusters_ranking_
    assert ranking[0][0] == model.n_clusters_ == 3
    assert sum(probability for _, probability, *_ in ranking) == pytest.approx(1.0)
    assert {len(entry) for entry in ranking} == {8}
    model.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert loaded.n_clusters_ranking_ == ranking
    assert np.array_equal(loaded.predict(X), model.labels_)


def test_permuted_rows_and_weights_give_the_same_number():
    X, _ = make_blobs(800, 3, centers=6, random_state=1)
    model = fitted(X)
    order = np.random.default_rng(0).permutation(len(X))
    permuted = fitted(X[order])
    assert permuted.n_clusters_ == model.n_clusters_
    assert adjusted_rand_score(permuted.labels_, model.labels_[order]) == 1.0
    twice = fitted(np.r_[X, X])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        weighted = SpectralClustering("auto", random_state=0).fit(X, sample_weight=np.full(800, 2))
    assert twice.n_clusters_ == weighted.n_clusters_ == model.n_clusters_


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 6])
def test_a_few_rows(n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    assert 1 <= fitted(X).n_clusters_ <= n_rows


def test_a_given_graph_is_counted_by_its_gaps():
    noise = np.random.default_rng(0).uniform(0.5, 1.0, (40, 40))
    W = np.kron(np.eye(4), np.ones((10, 10))) * (noise + noise.T) + 1e-3
    assert fitted(W, kernel="precomputed").n_clusters_ == 4
    assert fitted(W, (5, 6), kernel="precomputed").n_clusters_ in (5, 6)
