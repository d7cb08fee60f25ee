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


def rows(seed=0, n=ROWS, d=400):
    return directions(n, 30, n_features=d, random_state=seed)[0]


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
    assert told >= 0.999


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


def near_ties(seed, jitter):
    """Landmarks that share their leading coordinates up to `jitter`, and rows midway between.

    The other coordinates differ, so that each landmark that is not a candidate is missed.
    """
    rng = np.random.default_rng(seed)
    few = by_decreasing_variance(100, 160, seed)
    copies = np.repeat(few, rng.integers(1, 41, len(few)), axis=0)
    L = rng.permutation(copies + jitter * rng.normal(size=copies.shape))
    L[:, 40:] += 0.1 * rng.normal(size=(len(L), 120))
    ends = rng.integers(len(few), size=(2, 700))
    Z = np.concatenate([0.5 * (few[ends[0]] + few[ends[1]]), few])
    return L.astype(np.float32), Z.astype(np.float32)


@pytest.mark.parametrize("jitter", [0.0, 1e-8, 1e-7, 1e-6])
@pytest.mark.parametrize("n_leading", [32, 39])
def test_what_is_found_depends_on_the_row_alone_where_landmarks_tie(n_leading, jitter):
    L, Z = near_ties(0, jitter)
    search = LeadingSearch(L, n_leading, 16, 1.0)
    idx, dist = search.nearest(Z, 4)
    order = np.random.default_rng(1).permutation(len(Z))
    cuts = np.sort(np.random.default_rng(2).integers(1, len(Z), 40))
    pieces = [search.nearest(piece, 4) for piece in np.split(Z[order], cuts) if len(piece)]
    assert np.array_equal(np.concatenate([piece[0] for piece in pieces]), idx[order])
    assert np.array_equal(np.concatenate([piece[1] for piece in pieces]), dist[order])


@pytest.mark.parametrize("jitter", [1e-6, 1e-2])
def test_candidates_are_the_nearest_by_the_leading_coordinates(jitter):
    L, Z = near_ties(1, jitter)
    idx, _ = LeadingSearch(L, 40, 16, 1.0).nearest(Z, 4)
    Z, L = Z.astype(float), L.astype(float)
    candidates = Search(L[:, :40]).nearest(Z[:, :40], 16)[0]
    candidates = np.sort(candidates, axis=1)  # ties by the smaller number
    squares = ((Z[:, None] - L[candidates]) ** 2).sum(axis=2)
    nearest = np.argsort(squares, axis=1, kind="stable")[:, :4]
    expected = np.take_along_axis(candidates, nearest, axis=1)
    spread = ((Z[:, None, :40] - L[candidates][:, :, :40]) ** 2).sum(axis=2)
    is_apart = np.ptp(spread, axis=1) > 1e-3  # others are searched exactly
    assert is_apart.mean() > 0.1
    assert np.array_equal(idx[is_apart], expected[is_apart])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_belong_to_the_row_where_landmarks_and_rows_tie(dtype):
    X = rows(2, 1500, 768).astype(dtype)  # so wide that leading coordinates suffice
    X = np.concatenate([X, X, X[::-1] + X, X])  # each three times, and sums of two
    model = clustered(X, rank=1200)
    assert isinstance(model.factor_.search, LeadingSearch)
    order = np.random.default_rng(0).permutation(len(X))
    pieces = [model.predict(piece) for piece in np.array_split(X[order], 37)]
    assert np.array_equal(np.concatenate(pieces), model.labels_[order])
