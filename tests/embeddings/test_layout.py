"""The map of the rows: near rows stay near, separate clusters are separate spots."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness
from sklearn.metrics import silhouette_score

import mercer
from estimators import ESTIMATORS
from mercer import SpectralClustering
from mercer.datasets import blobs, rings
from mercer.embeddings import _layout_jit
from mercer.embeddings.layout import lay_out, principal_axes


def spots(n_rows, n_clusters, n_features, seed):
    """Gaussians far from each other."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % n_clusters
    centers = 8.0 * rng.normal(size=(n_clusters, n_features))
    return centers[labels] + rng.normal(size=(n_rows, n_features)), labels


def moved_slowly(xy, near, others, rate):
    """`move_points`, pair by pair."""
    xy, m = xy.copy(), near.shape[1]
    n_others = others.shape[1] // m
    for i, neighbors in enumerate(near):
        for s, j in enumerate(neighbors):
            step = xy[i] - xy[j]
            step = np.clip(2 * rate * step / (1 + step @ step), -4 * rate, 4 * rate)
            xy[i] -= step
            xy[j] += step
            for k in others[i, s * n_others : (s + 1) * n_others]:
                away = xy[i] - xy[k]
                push = 2 * rate * away / ((0.001 + away @ away) * (1 + away @ away))
                xy[i] += np.clip(push, -4 * rate, 4 * rate)
    return xy


def test_the_loop_is_gradient_descent_pair_by_pair():
    rng = np.random.default_rng(0)
    xy = rng.normal(size=(30, 2))
    near, others = rng.integers(0, 30, (30, 4)), rng.integers(0, 30, (30, 12), dtype=np.int32)
    expected = moved_slowly(xy, near, others, 0.7)
    _layout_jit.move_points(xy, near, others, 0.7)
    np.testing.assert_allclose(xy, expected, rtol=1e-6, atol=1e-8)  # steps magnify rounding


@pytest.mark.parametrize("seed", range(3))
def test_twenty_separate_blobs_are_separate_spots(seed):
    X, labels = spots(1000, 20, 10, seed)
    xy = lay_out(X, rng=np.random.default_rng(seed))
    assert silhouette_score(xy, labels) > 0.7
    centers = np.stack([xy[labels == c].mean(axis=0) for c in range(20)])
    inside = np.hypot(*(centers - xy.mean(axis=0)).T)
    assert inside.min() < 0.5 * inside.max()  # not a ring


@pytest.mark.parametrize("seed", range(2))
def test_neighbours_of_digits_are_kept(seed):
    X, _ = load_digits(return_X_y=True)
    X = X[:1000]
    xy = lay_out(X, rng=np.random.default_rng(seed))
    assert trustworthiness(X, xy, n_neighbors=12) > 0.96
    assert trustworthiness(X, principal_axes(X), n_neighbors=12) < 0.86


def test_two_thousand_rows_take_less_than_a_second():
    X, _ = spots(2000, 5, 20, 0)
    lay_out(X[:20], rng=np.random.default_rng(0))  # compiles
    start = time.process_time()
    lay_out(X, rng=np.random.default_rng(0))
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("n_features", [1, 2, 300])
def test_few_rows_have_a_place(n_rows, n_features):
    X = np.random.default_rng(0).normal(size=(n_rows, n_features))
    xy = lay_out(X, rng=np.random.default_rng(0))
    assert xy.shape == (n_rows, 2)
    assert np.isfinite(xy).all()


@pytest.mark.parametrize("size", [0.0, 1e-200, 1.0, 1e150])
def test_rows_of_any_size_have_a_place(size):
    X = np.random.default_rng(0).normal(size=(60, 4)) * size
    xy = lay_out(X, rng=np.random.default_rng(0))
    assert np.isfinite(xy).all()
    assert len(np.unique(xy, axis=0)) == 60  # equal rows come apart


def test_units_do_not_matter():
    X, _ = spots(200, 4, 5, 0)
    maps = [lay_out(X * unit, rng=np.random.default_rng(0)) for unit in (1.0, 2.0**-20, 2.0**30)]
    np.testing.assert_array_equal(maps[0], maps[1])
    np.testing.assert_array_equal(maps[0], maps[2])


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_every_clusterer_has_a_map(make):
    X, y = blobs(240, n_clusters=3, random_state=0)
    model = make(3).fit(X)
    found = model.embedding_map(100, X)
    assert found.xy.shape == (100, 2)
    assert (np.diff(found.rows) > 0).all()
    np.testing.assert_array_equal(found.labels, model.predict(X[found.rows]))
    assert silhouette_score(found.xy, y[found.rows]) > 0.6
    np.testing.assert_array_equal(found.xy, model.embedding_map(100, X).xy)
    other = model.embedding_map(100, X, random_state=1)
    assert not np.array_equal(found.rows, other.rows)


def test_a_fit_remembers_rows_to_map_and_a_file_does_not(tmp_path):
    X, _ = rings(1500, random_state=0)
    model = SpectralClustering(3, random_state=0).fit(X)
    found = model.embedding_map(500)
    np.testing.assert_array_equal(found.labels, model.labels_[found.rows])
    assert len(model.embedding_map(10**6).rows) == 1000
    model.save(tmp_path / "rings.mercer")
    loaded = mercer.load(tmp_path / "rings.mercer")
    with pytest.raises(ValueError, match=r"pass the rows, embedding_map\(n, X\)"):
        loaded.embedding_map(500)
    np.testing.assert_array_equal(loaded.embedding_map(500, X).xy, model.embedding_map(500, X).xy)


def test_threads_and_names_of_columns_change_nothing():
    pd = pytest.importorskip("pandas")
    X, _ = blobs(300, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    one = SpectralClustering(3, random_state=0).fit(frame).embedding_map(300)
    two = SpectralClustering(3, random_state=0, n_jobs=2).fit(frame).embedding_map(300, frame)
    np.testing.assert_array_equal(one.xy, two.xy)


@pytest.mark.parametrize("n", [0, -1, 2.5, "all", None])
def test_numbers_of_rows_that_make_no_sense_are_refused(n):
    X, _ = blobs(60, random_state=0)
    model = SpectralClustering(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="whole number of 1 or more"):
        model.embedding_map(n)
