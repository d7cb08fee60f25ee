"""Laws of landmark graphs whose search proposes candidates by the leading coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import SpectralClustering, load
from mercer.datasets import directions
from mercer.factors.leading_search import LeadingSearch, search_landmarks
from mercer.factors.search import Search

pytestmark = pytest.mark.numeric
ROWS, LANDMARKS = 9000, 600  # two tiles


def rows(seed=0, n=ROWS):
    return directions(n, 30, n_features=400, random_state=seed)[0]


def clustered(X, **params):
    params = {"approximation": "landmarks", "rank": LANDMARKS, "random_state": 0} | params
    return SpectralClustering(8, kernel="cosine", **params).fit(X)


@pytest.fixture(scope="module")
def model():
    return clustered(rows())


def by_decreasing_variance(n=4000, d=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))


def test_labels_belong_to_the_row(model):
    X, new = rows(), rows(1, 1500)
    assert isinstance(model.factor_.search, LeadingSearch)
    assert np.array_equal(model.predict(X), model.labels_)
    cuts = np.sort(np.random.default_rng(0).integers(1, len(new), 9))
    pieces = [model.predict(piece) for piece in np.split(new, cuts) if len(piece)]
    assert np.array_equal(np.concatenate(pieces), model.predict(new))
    assert np.array_equal(model.predict(new[::-1]), model.predict(new)[::-1])


def test_threads_and_scale_change_no_label(model):
    assert np.array_equal(clustered(rows(), n_jobs=2).labels_, model.labels_)
    assert np.array_equal(clustered(2.0**20 * rows()).labels_, model.labels_)


def test_what_is_loaded_predicts_what_was_saved(model, tmp_path):
    model.save(tmp_path / "model.mercer")
    again, new = load(tmp_path / "model.mercer"), rows(1, 500)
    assert isinstance(again.factor_.search, LeadingSearch)
    assert np.array_equal(again.predict(new), model.predict(new))


def test_the_recall_is_measured_and_told(model):
    told = float(str(model.report_).partition("coordinates: recall")[2].split()[0])
    assert told == pytest.approx(model.factor_.search.recall, abs=1e-3)
    assert told >= 0.99


@pytest.mark.parametrize("seed", range(3))
def test_candidates_are_the_least_sums_and_distances_those_of_all_coordinates(seed):
    Z = by_decreasing_variance(seed=seed)
    L, new = Z[:700], Z[700:1300]
    search = search_landmarks(L, Z, 4)
    idx, dist = search.nearest(new, 4)
    true, true_dist = Search(L).nearest(new, 4)
    assert isinstance(search, LeadingSearch)
    assert (idx[:, :, None] == true[:, None, :]).any(axis=1).mean() > 0.97
    same = idx == true
    assert np.allclose(dist[same], true_dist[same], rtol=1e-5)
    assert (np.diff(dist) >= 0).all()


def test_where_no_coordinates_lead_the_search_is_exact():
    Z = np.random.default_rng(0).normal(size=(3000, 200))
    assert isinstance(search_landmarks(Z[:700], Z, 4), Search)


@pytest.mark.parametrize("far", [1e7, 1e30, 1e200])
def test_rows_that_single_precision_cannot_place_are_searched_exactly(far):
    """Far away, products in float32 round away which landmark is nearer, or overflow."""
    Z = by_decreasing_variance()
    search = search_landmarks(Z[:700], Z, 4)
    assert isinstance(search, LeadingSearch)
    new = Z[700:800] + far
    found = search.nearest(new, 4)[0]
    assert np.array_equal(found, Search(search.landmarks.astype(float)).nearest(new, 4)[0])
