"""Laws of the graph whose neighbours are sought in inverted lists, single and in an ensemble.

Small sets are searched exactly; here the bound is lowered, so that lists answer for all of them.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from mercer import SpectralClustering, load
from mercer.factors import neighbors
from mercer.factors.search import ListSearch

pytestmark = pytest.mark.numeric
single_and_ensemble = pytest.mark.parametrize("ensemble", [None, 20], ids=["single", "ensemble"])


@pytest.fixture(autouse=True)
def lists(monkeypatch):
    """Lists of 16 rows for more than 300."""
    monkeypatch.setattr(neighbors, "EXACT_ROWS", 300)
    monkeypatch.setattr(neighbors, "LIST_ROWS", 16)


def touching(seed=0, n=1200, d=6, std=4.0):
    """Blobs that touch, so that other neighbours would give other labels."""
    return make_blobs(n, d, centers=4, cluster_std=std, random_state=seed)[0]


def clustered(X, ensemble, sample_weight=None, **params):
    params = {"approximation": "neighbors", "random_state": 0} | params
    return SpectralClustering(4, ensemble=ensemble, **params).fit(X, sample_weight=sample_weight)


@single_and_ensemble
def test_threads_and_memory_change_no_label(ensemble):
    X = touching(n=10_000)  # two tiles
    model = clustered(X, ensemble)
    for other in ({"n_jobs": 2}, {"max_memory": "300MB", "n_jobs": 3}):
        assert np.array_equal(clustered(X, ensemble, **other).labels_, model.labels_)


@single_and_ensemble
def test_predict_in_pieces_is_predict_at_once(ensemble):
    X, new = touching(), touching(1)
    model = clustered(X, ensemble)
    assert isinstance(model.factor_.search, ListSearch)
    assert np.array_equal(model.predict(X), model.labels_)
    cuts = np.sort(np.random.default_rng(0).integers(1, len(new), 9))
    pieces = [model.predict(piece) for piece in np.split(new, cuts) if len(piece)]
    assert np.array_equal(np.concatenate(pieces), model.predict(new))
    assert np.array_equal(model.predict(new[::-1]), model.predict(new)[::-1])


@single_and_ensemble
def test_permuted_rows_are_the_same_problem(ensemble):
    X = touching()
    order = np.random.default_rng(0).permutation(len(X))
    model, shuffled = clustered(X, ensemble), clustered(X[order], ensemble)
    assert np.array_equal(shuffled.labels_, model.labels_[order])


@single_and_ensemble
def test_weight_two_is_the_row_twice(ensemble):
    X = touching(n=600)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = clustered(X, ensemble, sample_weight=weights)
    repeated = clustered(np.repeat(X, weights, axis=0), ensemble)
    assert adjusted_rand_score(weighted.predict(X), repeated.predict(X)) == 1.0
    assert weighted.cluster_weights_ == pytest.approx(repeated.cluster_weights_)


@single_and_ensemble
def test_what_is_loaded_predicts_what_was_saved(ensemble, tmp_path):
    model, new = clustered(touching(), ensemble), touching(1)
    model.save(tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    assert isinstance(again.factor_.search, ListSearch)
    assert np.array_equal(again.predict(new), model.predict(new))
    assert np.array_equal(again.transform(new), model.transform(new))


@single_and_ensemble
def test_a_power_of_two_times_the_rows_changes_no_label(ensemble):
    X = touching()
    assert np.array_equal(clustered(2.0**20 * X, ensemble).labels_, clustered(X, ensemble).labels_)


@single_and_ensemble
def test_single_precision_finds_the_same_clusters(ensemble):
    """Its rows come in another order, so that other lists are searched."""
    X = touching(std=1.5)
    single = clustered(X.astype(np.float32), ensemble)
    assert adjusted_rand_score(single.labels_, clustered(X, ensemble).labels_) > 0.98


def test_lists_searched_for_all_rows_find_what_each_row_finds():
    """The search of a fit shares work between rows and their landmarks; answers are the same."""
    graph = neighbors.Neighbors().fit(None, touching(), rng=np.random.default_rng(0))
    lists, search = graph.lists, graph.search
    alone = [search.nearest(row[None], lists.idx.shape[1] + 1)[0][0, 1:] for row in search.rows]
    assert np.array_equal(np.array(alone), lists.idx)


def test_the_recall_is_measured_and_told():
    report = str(clustered(touching(), None).report_)
    told = float(report.partition("recall")[2].split()[0])
    assert 0.9 < told <= 1.0
