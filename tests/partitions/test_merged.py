"""Very many clusters merged from landmarks: quality, labels of any rows, laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram

import mercer
from mercer import SpectralClustering
from mercer.datasets import directions, many_clusters
from mercer.metrics import adjusted_rand, normalized_mutual_info
from mercer.rows.distinct import sample_size


@pytest.fixture(scope="module")
def many():
    return many_clusters(8000, 150, n_features=16, separation=2.0, random_state=0)


@pytest.fixture(scope="module")
def model(many):
    return SpectralClustering(150, random_state=0).fit(many[0])


def test_many_clusters_are_found(many, model):
    assert adjusted_rand(many[1], model.labels_) > 0.95
    assert model.n_clusters_ == 150
    assert model.factor_.rank <= 1500
    assert len(model.eigenvalues_) < 150  # no eigenvector for each of them


def test_few_rows_per_cluster_are_cut_as_before(many):
    X, _ = many
    model = SpectralClustering(150, random_state=0).fit(X[:1500])
    assert model.vectors_.shape[1] == 150


def test_predict_knows_the_rows_of_the_fit_and_pieces_of_them(many, model):
    X, _ = many
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    pieces = [model.predict(X[start : start + 999]) for start in range(0, len(X), 999)]
    np.testing.assert_array_equal(np.concatenate(pieces), model.labels_)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_two_fits_agree_for_any_number_of_threads(many, model, n_jobs):
    again = SpectralClustering(150, n_jobs=n_jobs, random_state=0).fit(many[0])
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.layers_, model.layers_)
    np.testing.assert_array_equal(again.tree_, model.tree_)


def test_permuted_rows_and_doubled_weights(many, model):
    X, _ = many
    order = np.random.default_rng(0).permutation(len(X))
    permuted = SpectralClustering(150, random_state=0).fit(X[order])
    assert adjusted_rand(permuted.labels_, model.labels_[order]) == 1.0
    twice = np.concatenate([X, X[:500]])
    weights = np.r_[np.full(500, 2.0), np.ones(len(X) - 500)]
    by_rows = SpectralClustering(150, random_state=0).fit(twice)
    by_weight = SpectralClustering(150, random_state=0).fit(X, sample_weight=weights)
    assert adjusted_rand(by_rows.labels_[: len(X)], by_weight.labels_) == 1.0


def test_memberships_are_shares(many, model):
    X, _ = many
    shares = model.memberships(X[:100])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.shape == (100, 150)
    assert (shares.argmax(axis=1) == model.labels_[:100]).mean() > 0.99
    assert model.transform(X[:100]).shape == (100, 150)


def test_saved_models_give_the_same_labels_and_layers(many, model, tmp_path):
    X, _ = many
    model.save(tmp_path / "many.mercer")
    loaded = mercer.load(tmp_path / "many.mercer")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_array_equal(loaded.layers_, model.layers_)
    np.testing.assert_array_equal(loaded.tree_, model.tree_)


def test_files_of_many_rows_are_labelled_alike(many, model, tmp_path):
    X, _ = many
    np.save(tmp_path / "rows.npy", X)
    by_file = SpectralClustering(150, random_state=0).fit(tmp_path / "rows.npy")
    np.testing.assert_array_equal(by_file.predict(X), model.labels_)


@pytest.mark.slow
def test_overlapping_directions_beyond_a_hundred_thousand_rows():
    X, y = directions(101_000, 200, n_features=96, random_state=0)
    model = SpectralClustering(200, kernel="cosine", random_state=0).fit(X)
    by_means = _nmi_of_kmeans(X, y, 200)
    assert normalized_mutual_info(y, model.labels_) > by_means + 0.02


def test_more_clusters_want_a_larger_sample_within_bounds():
    assert sample_size(50_000, 768) == 50_000
    assert sample_size(10**6, 768) == 2**24 // 768
    assert sample_size(10**6, 768, 40_000) == 40_000
    assert sample_size(10**6, 768, 10**6) == 2**26 // 768
    assert sample_size(10**6, 2, 10**6) == 100_000


def _nmi_of_kmeans(X, y, k):
    from sklearn.cluster import MiniBatchKMeans

    means = MiniBatchKMeans(k, batch_size=4096, n_init=1, random_state=0)
    return normalized_mutual_info(y, means.fit_predict(X))


# Layers of any fit


def nested_blobs(seed=0):
    """Four groups of three clusters in the plane."""
    rng = np.random.default_rng(seed)
    groups = 20.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    around = 3.0 * np.array([[0.0, 1.0], [0.87, -0.5], [-0.87, -0.5]])
    centers = (groups[:, None] + around).reshape(12, 2)
    y = rng.permutation(np.arange(2400) % 12)
    return centers[y] + 0.9 * rng.standard_normal((2400, 2)), y


@pytest.mark.parametrize("approximation", ["auto", "landmarks"])
def test_layers_show_groups_of_clusters(approximation):
    X, y = nested_blobs()
    model = SpectralClustering(12, approximation=approximation, random_state=0).fit(X)
    numbers = [int(parents.max()) + 1 for parents in model.layers_]
    assert 4 in numbers
    layer = numbers.index(4)
    assert adjusted_rand(y // 3, model.predict(X, layer=layer)) > 0.99
    np.testing.assert_array_equal(
        model.predict(X, layer=layer), model.layers_[layer][model.labels_]
    )
    assert model.layer_evidence_[layer] >= 1.0
    assert len(dendrogram(model.tree_, no_plot=True)["leaves"]) == 12


def test_layers_are_numbered_like_labels_and_nested():
    X, _ = nested_blobs()
    model = SpectralClustering(12, random_state=0).fit(X)
    for layer in range(len(model.layers_)):
        labels = model.predict(X, layer=layer)
        sizes = np.bincount(labels)
        assert (np.diff(sizes) <= 0).all()
        assert len(np.unique(model.labels_ * 12 + labels)) == 12


def test_layers_that_do_not_exist_are_refused():
    X, _ = nested_blobs()
    model = SpectralClustering(12, random_state=0).fit(X)
    for layer in (99, "1", True):
        with pytest.raises(ValueError, match="must be a whole number below"):
            model.predict(X, layer=layer)
    ensemble = SpectralClustering(12, approximation="landmarks", ensemble=3, random_state=0).fit(X)
    assert ensemble.layers_.shape == (0, 12)
    with pytest.raises(ValueError, match="below 0"):
        ensemble.predict(X, layer=0)


def test_labels_of_a_layer_are_written_to_files(tmp_path):
    X, _ = nested_blobs()
    model = SpectralClustering(12, random_state=0).fit(X)
    path = model.predict(X, layer=-1, out=tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(path), model.layers_[-1][model.labels_])
