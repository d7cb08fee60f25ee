"""X times a power of two is the same problem, and groups far apart keep what is inside them.

A power of two changes no digit of a float64, so the labels must agree bit for bit: whatever differs
is a constant, or a float32, that should not have seen the unit.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from estimators import ESTIMATORS, TRANSFORMERS
from marking import slow_beyond
from mercer import (
    RBF,
    KernelKMeans,
    KernelSpectralClustering,
    Laplacian,
    MercerWarning,
    Polynomial,
    Quantized,
    SpectralClustering,
    load,
)
from mercer.factors.landmarks import Search
from mercer.kernels import Chi2, Cosine
from mercer.selection import search

FACTORS = ("nystrom", "fourier", "exact")
EVERY = ESTIMATORS | {
    f"SpectralClustering-{name}": lambda n_clusters=3, name=name, **params: SpectralClustering(
        n_clusters, approximation=name, random_state=0, **params
    )
    for name in FACTORS
}
every_estimator = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY.keys())
POWERS = (-400, -80, -66, -1, 7, 60, 63, 66, 400)
SINGLE_POWERS = (-60, -7, 1, 60)


def touching(d, n=240, dtype=np.float64):
    """Blobs that touch, so that labels near borders are easily flipped by rounding."""
    X, _ = make_blobs(n, d, centers=3, cluster_std=3.0, random_state=d)
    return X.astype(dtype)


def labels_of(make, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # touching blobs look unreliable
        model = make().fit(X)
    assert np.array_equal(model.predict(X[:40]), model.labels_[:40])
    return model.labels_


@every_estimator
@pytest.mark.parametrize("d", slow_beyond((1, 2, 3, 4, 20, 100), quick=(20,)))
def test_a_power_of_two_times_the_rows_gives_the_same_labels(make, d):
    X = touching(d)
    first = labels_of(make, X)
    for power in POWERS if d not in (2, 20) else (-400, 63, 400):
        assert np.array_equal(labels_of(make, np.ldexp(X, power)), first), power


@every_estimator
@pytest.mark.parametrize("d", slow_beyond((1, 2, 3, 4, 20, 100), quick=(4,)))
def test_a_power_of_two_times_float32_rows_gives_the_same_labels(make, d):
    X = touching(d, dtype=np.float32)
    first = labels_of(make, X)
    for power in SINGLE_POWERS if d != 4 else (-60, 60):
        assert np.array_equal(labels_of(make, np.ldexp(X, power)), first), power


@pytest.mark.parametrize("d", [1, 4, 100])
@pytest.mark.parametrize("ensemble", [None, 20])
def test_landmarks_that_are_means_do_not_see_the_unit(d, ensemble):
    X = touching(d, n=1500)

    def make():
        return SpectralClustering(3, ensemble=ensemble, random_state=0)

    first = labels_of(make, X)
    for power in (-400, 66):
        assert np.array_equal(labels_of(make, np.ldexp(X, power)), first), power


@every_estimator
def test_sparse_rows_do_not_see_the_unit(make):
    X = sp.csr_array(np.maximum(touching(5), 0.0))
    first = labels_of(make, X)
    for power in (-300, 300):
        scaled = sp.csr_array((np.ldexp(X.data, power), X.indices, X.indptr), shape=X.shape)
        assert np.array_equal(labels_of(make, scaled), first), power


@pytest.mark.parametrize("make", TRANSFORMERS.values(), ids=TRANSFORMERS.keys())
@pytest.mark.parametrize("d", [2, 20])
def test_transformers_do_not_see_the_unit(make, d):
    X = touching(d)
    first = make().fit(X).transform(X)
    for power in (-400, 400):
        scaled = np.ldexp(X, power)
        assert np.array_equal(make().fit(scaled).transform(scaled), first), power


@pytest.mark.parametrize(
    ("kernel", "scaled"),
    [
        (RBF(0.01), lambda t: RBF(math.ldexp(0.01, -2 * t))),
        (Laplacian(0.1), lambda t: Laplacian(math.ldexp(0.1, -t))),
        (Polynomial(2, 0.05), lambda t: Polynomial(2, math.ldexp(0.05, -2 * t))),
        (
            0.5 * RBF(0.01) + Cosine(),
            lambda t: 0.5 * RBF(math.ldexp(0.01, -2 * t)) + Cosine(),
        ),
        (
            RBF(0.02) * Laplacian(0.1),
            lambda t: RBF(math.ldexp(0.02, -2 * t)) * Laplacian(math.ldexp(0.1, -t)),
        ),
    ],
    ids=["rbf", "laplacian", "polynomial", "sum", "product"],
)
def test_given_bandwidths_are_in_the_units_of_the_rows(kernel, scaled):
    X, _ = make_blobs(240, 4, centers=np.eye(3, 4) * 20, random_state=0)
    model = KernelKMeans(3, kernel=kernel, random_state=0)
    first = labels_of(lambda: model, X)
    assert repr(model.kernel_) == repr(kernel)
    for t in (-30, 30):
        other = KernelKMeans(3, kernel=scaled(t), random_state=0)
        assert np.array_equal(labels_of(lambda other=other: other, np.ldexp(X, t)), first)
        assert repr(other.kernel_) == repr(scaled(t))


@pytest.mark.parametrize(
    "kernel", [RBF(0.3), Laplacian(0.3), Chi2(0.3), Polynomial(3, 0.3), Cosine()]
)
@given(exponent=st.integers(-60, 60))
def test_a_kernel_in_other_units_is_the_same_kernel(kernel, exponent):
    X = np.random.default_rng(0).random((7, 4))
    there = kernel.in_units(exponent).matrix(np.ldexp(X, -exponent))
    assert np.array_equal(there, kernel.matrix(X))
    assert repr(kernel.in_units(exponent).in_units(-exponent)) == repr(kernel)


def test_the_bandwidth_that_a_fit_finds_is_in_the_units_of_the_rows():
    X = touching(4)
    for make in (KernelKMeans, SpectralClustering, KernelSpectralClustering):
        gamma = labels_and_gamma(make, X)
        assert labels_and_gamma(make, np.ldexp(X, 20)) == np.ldexp(gamma, -40)


def labels_and_gamma(make, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        return make(3, random_state=0).fit(X).kernel_.gamma


def test_a_search_names_bandwidths_in_the_units_of_the_rows():
    X, _ = make_blobs(600, 3, centers=np.eye(3) * 20, random_state=0)
    model = KernelSpectralClustering(random_state=0)
    here = search(model, X, n_clusters=(2, 3))
    there = search(model, np.ldexp(X, 40), n_clusters=(2, 3))
    assert there.gammas == tuple(np.ldexp(here.gammas, -80))
    with pytest.warns(MercerWarning, match="edge"):  # the widest does as well as any
        given = search(model, X, n_clusters=(2, 3), gamma=here.gammas)
    assert given.gammas == here.gammas
    assert np.array_equal(given.scores, here.scores)


def test_a_radius_is_in_the_units_of_the_rows():
    X = touching(2)
    first = SpectralClustering(3, approximation=Quantized(radius=2.0), random_state=0).fit(X)
    for t in (-9, 9):
        blocks = Quantized(radius=2.0 * 2.0**t)
        other = SpectralClustering(3, approximation=blocks, random_state=0).fit(np.ldexp(X, t))
        assert other.factor_.rank == first.factor_.rank
        assert np.array_equal(other.labels_, first.labels_)


@pytest.mark.parametrize("name", ["KernelKMeans", "SpectralClustering", "StreamingKernelKMeans"])
def test_models_of_rows_in_odd_units_are_saved(name, tmp_path):
    X = np.ldexp(touching(4), 90)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = ESTIMATORS[name]().fit(X)
    model.save(tmp_path / "m.mercer")
    assert np.array_equal(load(tmp_path / "m.mercer").predict(X), model.labels_)


def groups_far_apart(d, gap, n=600):
    """Two groups, and three clusters of spread 0.1 inside each."""
    X = np.random.default_rng(0).normal(size=(n, d)) * 0.1
    X[:, -1] += np.repeat([0.0, 4.0, 8.0], n // 3)
    X[::2, 0] += gap
    return X, np.repeat([0, 1, 2], n // 3) * 2 + np.arange(n) % 2


GRAPHS = [name for name in EVERY if "KernelKMeans" not in name or "Streaming" in name]


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in GRAPHS
        if n
        not in (
            "SpectralClustering-binning",
            "SpectralClustering-fourier",
            "StreamingKernelKMeans-small",
        )
    ],
)
@pytest.mark.parametrize("d", slow_beyond((2, 4, 20, 100), quick=(4,)))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_groups_far_apart_keep_their_clusters(name, d, dtype):
    """Spreads of 0.1 beside gaps of 10,000 and more: products in float32 saw two clusters."""

    def found(gap):
        X, y = groups_far_apart(d, gap)
        return adjusted_rand_score(y, labels_of(lambda: EVERY[name](n_clusters=6), X.astype(dtype)))

    least = 0.999 * found(20.0)  # where no digit is lost
    assert least > 0.99
    for gap in (1e4, 1e5) if dtype == np.float64 else (1e4,):
        assert found(gap) >= least


@given(
    d=st.integers(4, 12),
    gap=st.sampled_from([0.0, 1e2, 1e5, 1e9, 1e30]),
    m=st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_nearest_landmarks_are_the_nearest_whatever_the_rounding(d, gap, m, seed):
    rng = np.random.default_rng(seed)
    L, Z = rng.normal(size=(40, d)), rng.normal(size=(30, d))
    L[::2, 0] += gap
    Z[::3, 0] += gap
    idx, dist = Search(L).nearest(Z, m)
    exact = ((Z[:, None] - L[None]) ** 2).sum(axis=2)
    order = np.argsort(exact, axis=1, kind="stable")[:, :m]
    assert np.allclose(dist, np.take_along_axis(exact, order, axis=1), rtol=1e-12)
    assert np.allclose(np.take_along_axis(exact, idx, axis=1), dist, rtol=1e-12)


@pytest.mark.parametrize(
    ("d", "gap", "scale"), [(4, 1e4, 1.0), (20, 3e3, 1.0), (3, 0.0, 1e19), (4, 0.0, 1e-39)]
)
def test_every_row_is_its_own_neighbor(d, gap, scale):
    """Rows that float32 took for one were nobody's neighbours: "index pointer size 301"."""
    X, y = groups_far_apart(d, gap + 10.0, n=300)
    model = SpectralClustering(6, approximation="neighbors", random_state=0).fit(X * scale)
    assert adjusted_rand_score(y, model.labels_) == 1.0


@pytest.mark.slow
def test_one_blob_in_the_plane_has_its_eigenvectors_soon():
    """A graph of neighbours without a gap: an iterative solver took minutes, a factor seconds."""
    import time

    X = np.random.default_rng(0).normal(size=(100_000, 2))
    started = time.process_time()
    labels_of(lambda: SpectralClustering(3, approximation="neighbors", random_state=0), X)
    assert time.process_time() - started < 30.0


def test_rows_far_beyond_float32_are_labelled_without_a_warning():
    X, _ = make_blobs(200, 4, centers=np.eye(3, 4) * 20, random_state=0)
    model = SpectralClustering(3, random_state=0).fit(X)
    for factor in (1e40, 1e130):
        assert model.predict(X * factor).shape == (200,)
