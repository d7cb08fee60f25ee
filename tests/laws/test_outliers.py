"""Laws of outlier scores and of noise, for every clusterer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import mercer
from estimators import ESTIMATORS
from marking import one_of_each_class
from mercer import MercerWarning, SpectralClustering, StreamingKernelKMeans
from mercer.datasets import blobs
from mercer.factors.base import Surroundings
from mercer.partitions.outliers import NOISE, fit_outliers, weighted_quantile

pytestmark = pytest.mark.filterwarnings("ignore::mercer.MercerWarning")

every_clusterer = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
one_of_each = one_of_each_class(ESTIMATORS)


def strayed(seed, n=600, n_strays=12):
    """Blobs, and a few rows that are nowhere near them."""
    X, y = blobs(n, n_clusters=3, random_state=seed)
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0) - 15, X.max(axis=0) + 15
    far = rng.uniform(low, high, (50 * n_strays, 2))
    near = np.linalg.norm(far[:, None] - X, axis=2).min(axis=1)
    return np.r_[X, far[near > 6][:n_strays]], np.r_[y, np.full(n_strays, NOISE)]


@every_clusterer
def test_scores_are_a_function_of_the_row(make, tmp_path):
    X, _ = strayed(0)
    model = make(3).fit(X)
    scores = model.outlier_scores_
    assert scores.shape == (len(X),)
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    assert np.array_equal(model.outlier_scores(X), scores)
    pieces = [model.outlier_scores(piece) for piece in np.split(X, [1, 100, 333])]
    assert np.array_equal(np.concatenate(pieces), scores)
    assert np.array_equal(model.set_params(n_jobs=2).outlier_scores(X), scores)
    model.save(tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert np.array_equal(loaded.outlier_scores(X), scores)
    with pytest.raises(AttributeError, match=r"outlier_scores\(X\)"):
        _ = loaded.outlier_scores_


@every_clusterer
def test_rows_outside_the_data_score_high(make):
    X, y = strayed(1)
    model = make(3).fit(X)
    far = X.mean(axis=0) + np.array([[500.0, -700.0], [9e4, 9e4]])
    usual = np.quantile(model.outlier_scores_[y >= 0], 0.95)
    assert (model.outlier_scores(far) > usual).all()
    assert roc_auc_score(y == NOISE, model.outlier_scores_) > 0.9


@one_of_each
def test_permuted_rows_have_permuted_scores(make):
    X, _ = strayed(2)
    order = np.random.default_rng(0).permutation(len(X))
    first, second = (make(3).fit(rows).outlier_scores_ for rows in (X, X[order]))
    np.testing.assert_allclose(second, first[order], rtol=1e-9)


@one_of_each
def test_weight_two_is_the_row_twice(make):
    X, _ = strayed(3, n_strays=0)
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = make(3).fit(X, sample_weight=weights.astype(float)).outlier_scores_
    repeated = make(3).fit(np.repeat(X, weights, axis=0)).outlier_scores_
    np.testing.assert_allclose(np.repeat(weighted, weights), repeated, rtol=1e-6)


@every_clusterer
@pytest.mark.parametrize("noise", [0.05, "auto"])
def test_noise_is_a_function_of_the_row(make, noise, tmp_path):
    X, _ = strayed(4)
    full, model = make(3).fit(X), make(3, noise=noise).fit(X)
    labels = model.labels_
    kept = labels != NOISE
    assert (full.labels_ >= 0).all()
    assert np.array_equal(labels[kept], full.labels_[kept])
    assert np.array_equal(model.cluster_weights_, full.cluster_weights_)
    assert model.outlier_scores_[~kept].min(initial=np.inf) > model.outlier_scores_[kept].max()
    if noise != "auto":
        assert 0.01 < np.mean(~kept) < 0.1
    assert np.array_equal(model.predict(X), labels)
    assert np.array_equal(np.r_[model.predict(X[:50]), model.predict(X[50:])], labels)
    model.save(tmp_path / "model.mercer")
    assert np.array_equal(mercer.load(tmp_path / "model.mercer").predict(X), labels)


def test_files_get_the_same_noise_labels(tmp_path):
    X, _ = strayed(5)
    np.save(tmp_path / "rows.npy", X)
    model = SpectralClustering(3, noise=0.05, random_state=0)
    labels = model.fit_predict(X)
    streamed = SpectralClustering(3, noise=0.05, random_state=0)
    assert np.array_equal(streamed.fit_predict(tmp_path / "rows.npy"), labels)
    out = streamed.fit_predict(tmp_path / "rows.npy", out=tmp_path / "labels.npy")
    assert np.array_equal(np.load(out), labels)
    streamed.predict(tmp_path / "rows.npy", out=tmp_path / "again.npy")
    assert np.array_equal(np.load(tmp_path / "again.npy"), labels)
    assert np.array_equal(streamed.outlier_scores(tmp_path / "rows.npy"), model.outlier_scores_)
    with pytest.raises(AttributeError, match=r"outlier_scores\(X\)"):
        _ = streamed.outlier_scores_


@pytest.mark.parametrize("algorithm", ["eigen", "means"])
def test_a_stream_says_which_rows_are_noise(algorithm):
    X, y = strayed(6, n=2000)
    stream = StreamingKernelKMeans(
        3, algorithm=algorithm, batch_size=400, noise=0.02, random_state=0
    )
    for batch in np.array_split(X[y >= 0], 5):
        stream.partial_fit(batch)
    assert np.mean(stream.predict(X[y >= 0]) == NOISE) < 0.1
    assert np.mean(stream.predict(X[y < 0]) == NOISE) > 0.9
    with pytest.raises(AttributeError, match=r"outlier_scores\(X\)"):
        _ = stream.outlier_scores_


def test_uniform_rows_and_one_blob_have_little_noise():
    rng = np.random.default_rng(0)
    for X, k in ((rng.random((2000, 2)), 3), (rng.normal(size=(2000, 2)), 1)):
        assert (
            SpectralClustering(k, noise="auto", random_state=0).fit(X).labels_ < 0
        ).mean() < 0.03


def test_two_far_rows_are_the_outliers():
    X, _ = blobs(500, n_clusters=2, random_state=0)
    X = np.r_[X, [[90.0, 90.0], [-90.0, 80.0]]]
    for k in (2, 4):  # with four clusters, each of them may be one
        model = SpectralClustering(k, noise="auto", random_state=0).fit(X)
        assert set(np.argsort(model.outlier_scores_)[-2:]) == {500, 501}
        assert (model.labels_[-2:] == NOISE).all()


def test_many_equal_rows_are_no_outliers():
    X, _ = blobs(500, n_clusters=2, random_state=0)
    X = np.r_[X, np.full((60, 2), 70.0)]
    scores = SpectralClustering(3, random_state=0).fit(X).outlier_scores_
    assert scores[-1] < np.median(scores)


def test_scores_are_those_of_the_formula():
    labels = np.repeat([0, 1], [30, 10])
    reach = np.r_[np.full(29, 2.0), 8.0, np.full(10, 5.0)]
    doubt = np.zeros(40)
    doubt[0] = 1.0
    around = Surroundings(labels, reach, doubt)
    model = fit_outliers(around, np.ones(40), 2)
    assert model.usual.tolist() == [2.0, 2.0]  # ten rows do not tell what is usual
    scores = model.scores(around)
    assert scores[0] == pytest.approx(np.e)
    assert scores[29] == 2.0
    assert scores[1] == 1.0


def test_a_weighted_quantile_counts_weights():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])
    assert weighted_quantile(values, weights, 0.5) == 2.0
    assert weighted_quantile(values, weights, 0.25) == 1.0
    assert weighted_quantile(values, weights, 1.0) == 3.0


def test_models_of_earlier_versions_say_that_they_cannot_score():
    X, _ = strayed(7)
    model = SpectralClustering(3, random_state=0).fit(X)
    del model.outliers_
    with pytest.raises(ValueError, match="fit it again"):
        model.outlier_scores(X)


@pytest.mark.parametrize("noise", [0.0, 1.0, -0.1, "some"])
def test_other_noise_is_refused(noise):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        with pytest.raises(ValueError, match="noise"):
            SpectralClustering(2, noise=noise).fit(np.eye(10))
