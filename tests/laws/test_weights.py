"""Laws of the unit of weights: 2ᵗ times the weights is the same problem, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from estimators import ESTIMATORS, TRANSFORMERS
from mercer import Quantized, load
from mercer.selection import search

SMALL_STREAM = {"initial_size": 100, "batch_size": 50}
VARIANTS = {  # what the table of estimators leaves out
    f"{name}-{approximation}": lambda k=3, name=name, approximation=approximation: ESTIMATORS[name](
        k, approximation=approximation, rank=60
    )
    for name in ("KernelKMeans", "SpectralClustering", "KernelSpectralClustering")
    for approximation in ("nystrom", "fourier")
    if (name, approximation) != ("KernelSpectralClustering", "fourier")
} | {
    "SpectralClustering-exact": lambda k=3: ESTIMATORS["SpectralClustering"](
        k, approximation="exact"
    ),
    "SpectralClustering-blocks": lambda k=3: ESTIMATORS["SpectralClustering"](
        k, approximation=Quantized(radius=1.0)
    ),
    "KernelSpectralClustering-auto": lambda k=3: ESTIMATORS["KernelSpectralClustering"]("auto"),
    "StreamingKernelKMeans-unnormalized": lambda k=3: ESTIMATORS["StreamingKernelKMeans"](
        k, normalize=False, **SMALL_STREAM
    ),
    "StreamingKernelKMeans-means": lambda k=3: ESTIMATORS["StreamingKernelKMeans"](
        30, **SMALL_STREAM
    ),
}
EVERY = ESTIMATORS | VARIANTS
every_estimator = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY.keys())
EXPONENTS = (-900, 900)
pytestmark = pytest.mark.filterwarnings("ignore::mercer.MercerWarning")


def weighted_rows(n=300):
    """Blobs that touch, with weights of which some are 0; small whole numbers of 2⁻¹⁰."""
    X, _ = make_blobs(n, 4, centers=4, cluster_std=3.0, random_state=0)
    return X, np.random.default_rng(0).integers(0, 5000, n) * 2.0**-10 * (np.arange(n) % 9 > 0)


@every_estimator
def test_labels_do_not_depend_on_the_unit_of_weights(make):
    X, w = weighted_rows()
    model = make().fit(X, sample_weight=w)
    assert model.cluster_weights_ == pytest.approx(np.bincount(model.labels_, w), rel=1e-12)
    for t in EXPONENTS:
        other = make().fit(X, sample_weight=w * 2.0**t)
        assert np.array_equal(other.labels_, model.labels_), t
        assert np.array_equal(other.predict(X), model.predict(X)), t
        assert np.array_equal(other.cluster_weights_, model.cluster_weights_ * 2.0**t), t
        assert other.report_.cluster_weights == tuple(other.cluster_weights_), t
        if hasattr(model, "inertia_"):
            assert other.inertia_ == model.inertia_ * 2.0**t
            assert other.score(X, sample_weight=w * 2.0**t) == pytest.approx(
                model.score(X, sample_weight=w) * 2.0**t
            )
        elif hasattr(model, "score"):
            assert other.score(X, sample_weight=w * 2.0**t) == model.score(X, sample_weight=w)


@every_estimator
def test_the_smallest_numbers_there_are_can_be_weights(make):
    X, _ = weighted_rows(200)
    w = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    model, tiny = make().fit(X, sample_weight=w), make().fit(X, sample_weight=w * 5e-324)
    assert np.array_equal(tiny.labels_, model.labels_)
    assert np.array_equal(tiny.cluster_weights_, model.cluster_weights_ * 5e-324)


@pytest.mark.parametrize("make", TRANSFORMERS.values(), ids=TRANSFORMERS.keys())
@pytest.mark.parametrize("approximation", ["cholesky", "nystrom", "fourier", "quantized"])
def test_features_do_not_depend_on_the_unit_of_weights(make, approximation):
    X, w = weighted_rows(200)
    model = make(approximation=approximation).fit(X, sample_weight=w)
    for t in EXPONENTS:
        other = make(approximation=approximation).fit(X, sample_weight=w * 2.0**t)
        assert np.array_equal(other.transform(X), model.transform(X)), t
        if hasattr(model, "eigenvalues_"):
            assert np.array_equal(other.eigenvalues_, model.eigenvalues_ * 2.0**t), t


@pytest.mark.parametrize(
    "make", [make for name, make in EVERY.items() if name.startswith("Streaming")]
)
@pytest.mark.parametrize("t", EXPONENTS)
def test_a_stream_goes_on_in_the_unit_it_began_with(make, t, tmp_path):
    X, w = weighted_rows(600)
    one, other = make().set_params(**SMALL_STREAM), make().set_params(**SMALL_STREAM)
    for start in range(0, len(X), 70):
        batch, weights = X[start : start + 70], w[start : start + 70]
        one.partial_fit(batch, sample_weight=weights)
        other.partial_fit(batch, sample_weight=weights * 2.0**t)
        other.save(tmp_path / "stream.model")
        other = load(tmp_path / "stream.model")
        assert np.array_equal(other.cluster_weights_, one.cluster_weights_ * 2.0**t)
    assert one.report_.stream["n_batches"] > 0
    assert np.array_equal(other.predict(X), one.predict(X))


def test_batches_of_a_stream_whose_weights_cannot_be_compared_are_refused():
    X, w = weighted_rows(300)
    w += 1.0
    model = ESTIMATORS["StreamingKernelKMeans"](**SMALL_STREAM)
    model.partial_fit(X[:200], sample_weight=w[:200] * 1e-200)
    before = model.predict(X)
    for weights in (w[200:] * 1e-50, w[200:], None):
        with pytest.raises(ValueError, match="one unit"):
            model.partial_fit(X[200:], sample_weight=weights)
    assert np.array_equal(model.predict(X), before)
    model.partial_fit(X[200:], sample_weight=w[200:] * 1e-210)


@pytest.mark.parametrize("name", ["KernelKMeans", "KernelSpectralClustering"])
@pytest.mark.parametrize("outlier", [0.0, 100.0])
def test_a_search_does_not_depend_on_the_unit_of_weights(name, outlier):
    X, w = weighted_rows()
    found = [
        search(
            ESTIMATORS[name](),
            X,
            sample_weight=w * 2.0**t,
            n_clusters=[2, 4],
            outlier=outlier * 2.0**t,
        ).scores
        for t in (0, -900, 900)
    ]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
