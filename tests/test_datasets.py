"""Shape generators: laws of all of them, then what each shape promises."""

from __future__ import annotations

import doctest
from functools import partial

import numpy as np
import pytest

from marking import seeds
from mercer import datasets

SHAPES = {name: getattr(datasets, name) for name in datasets.__all__}
SHAPES["many_clusters"] = partial(
    datasets.many_clusters, n_clusters=5, n_features=2, separation=300.0
)
SHAPES["directions"] = partial(
    datasets.directions,
    n_clusters=2,
    n_features=2,
    sizes="equal",
    spread=1e-4,
    dtype=np.float64,
)
N_CLUSTERS = dict.fromkeys(SHAPES, 2) | {
    "blobs": 3,
    "circles_and_gaussians": 11,
    "many_clusters": 5,
    "rings": 3,
}
SEEDS = range(10)

every_shape = pytest.mark.parametrize("name", SHAPES)
every_seed = seeds(len(SEEDS), quick=3)


def nearest_neighbour_agreement(X, y):
    """Share of the rows whose nearest other row has the same label."""
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.mean(y[distances.argmin(axis=1)] == y)


# Laws


@every_shape
@every_seed
def test_shapes_and_types(name, seed):
    X, y = SHAPES[name](100, random_state=seed)
    assert X.shape == (100, 2)
    assert X.dtype == np.float64
    assert y.shape == (100,)
    assert y.dtype == np.intp
    assert np.isfinite(X).all()


@every_shape
@pytest.mark.parametrize("n", [11, 100, 101, 999])
def test_clusters_have_equal_shares(name, n):
    _, y = SHAPES[name](n, random_state=0)
    counts = np.bincount(y, minlength=N_CLUSTERS[name])
    assert len(counts) == N_CLUSTERS[name]
    assert counts.max() - counts.min() <= 1


@every_shape
@every_seed
def test_a_seed_gives_the_same_rows(name, seed):
    X, y = SHAPES[name](50, random_state=seed)
    again, y_again = SHAPES[name](50, random_state=seed)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, y_again)
    other, _ = SHAPES[name](50, random_state=seed + 1)
    assert not np.array_equal(X, other)


@every_shape
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_are_taken_and_move_on(name, make):
    state = make(0)
    first, _ = SHAPES[name](50, random_state=state)
    second, _ = SHAPES[name](50, random_state=state)
    again, _ = SHAPES[name](50, random_state=make(0))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, again)


@every_shape
def test_no_seed_gives_new_rows(name):
    first, _ = SHAPES[name](50)
    second, _ = SHAPES[name](50)
    assert not np.array_equal(first, second)


@every_shape
@every_seed
def test_float32_is_float64_rounded(name, seed):
    X, y = SHAPES[name](100, random_state=seed)
    X32, y32 = SHAPES[name](100, random_state=seed, dtype=np.float32)
    assert X32.dtype == np.float32
    np.testing.assert_array_equal(X32, X.astype(np.float32))
    np.testing.assert_array_equal(y32, y)


@every_shape
@every_seed
def test_rows_are_shuffled(name, seed):
    _, y = SHAPES[name](500, random_state=seed)
    n_clusters = N_CLUSTERS[name]
    # Runs of equal labels: about n (1 - 1/k) of them in random order, with a deviation of √n / 2.
    n_runs = 1 + np.count_nonzero(np.diff(y))
    assert abs(n_runs - 500 * (1 - 1 / n_clusters)) < 5 * np.sqrt(500) / 2


@pytest.mark.parametrize("name", sorted(set(SHAPES) - {"blobs", "gaussian_pair"}))
@every_seed
def test_clusters_are_apart(name, seed):
    X, y = SHAPES[name](1000, random_state=seed)
    assert nearest_neighbour_agreement(X, y) > 0.99


@pytest.mark.slow
@every_shape
def test_ten_million_rows(name):
    X, y = SHAPES[name](10_000_000, random_state=0, dtype=np.float32)
    assert X.shape == (10_000_000, 2)
    assert np.ptp(np.bincount(y)) <= 1


# What each shape promises


@every_seed
def test_rings_have_their_radii_and_noise(seed):
    X, y = datasets.rings(3000, radii=(1, 2, 5), noise=0.1, random_state=seed)
    radius = np.hypot(*X.T)
    for ring, expected in enumerate((1, 2, 5)):
        # E‖r u + noise ε‖ ≈ r + noise²/2r; four deviations of the mean of 1,000 radii
        bias = 0.1**2 / (2 * expected)
        assert radius[y == ring].mean() == pytest.approx(expected + bias, abs=4 * 0.1 / 1000**0.5)
        assert radius[y == ring].std() == pytest.approx(0.1, rel=0.15)
    assert np.abs(X.mean(axis=0)).max() < 0.3  # all the way round


def test_rings_without_noise_are_circles():
    X, y = datasets.rings(300, noise=0, random_state=0)
    np.testing.assert_allclose(np.hypot(*X.T), y + 1.0, rtol=1e-12)


@every_seed
def test_the_core_is_within_the_ring(seed):
    X, y = datasets.ring_and_core(random_state=seed)
    radius = np.hypot(*X.T)
    assert len(X) == 1000
    assert radius[y == 0].max() < 2 < radius[y == 1].min()


@every_seed
def test_gaussians_stand_around_the_circles(seed):
    X, y = datasets.circles_and_gaussians(2200, random_state=seed)
    radius = np.hypot(*X.T)
    assert radius[y < 3].max() < 4 < radius[y >= 3].min()
    centres = np.array([X[y == k].mean(axis=0) for k in range(3, 11)])
    np.testing.assert_allclose(np.hypot(*centres.T), 6.0, atol=0.2)


def test_circles_without_gaussians_and_gaussians_without_circles():
    _, y = datasets.circles_and_gaussians(100, n_gaussians=0, random_state=0)
    assert set(y) == {0, 1, 2}
    _, y = datasets.circles_and_gaussians(100, radii=(), n_gaussians=5, random_state=0)
    assert set(y) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("arms", [1, 2, 3, 5])
def test_spiral_arms_are_turned_copies_of_one_curve(arms):
    X, y = datasets.spirals(500, arms, turns=1.5, inner=0.1, noise=0, random_state=0)
    radius = np.hypot(*X.T)
    t = (radius - 0.1) / 0.9
    angle = 2 * np.pi * (1.5 * t + y / arms)
    assert set(y) == set(range(arms))
    assert 0.1 <= radius.min() < radius.max() <= 1.0
    np.testing.assert_allclose(X, radius[:, None] * np.c_[np.cos(angle), np.sin(angle)], atol=1e-12)


def test_parabolas_without_noise_lie_on_their_curves():
    X, y = datasets.parabolas(noise=0, random_state=0)
    x, height = X.T
    assert len(X) == 1000
    np.testing.assert_allclose(height[y == 0], 0.3 * x[y == 0] ** 2, atol=1e-12)
    np.testing.assert_allclose(height[y == 1], 2.9 - 0.3 * (x[y == 1] - 1) ** 2, atol=1e-12)


def test_zigzag_without_noise_lies_on_its_lines():
    X, y = datasets.zigzag(noise=0, random_state=0)
    corners = np.interp(X[:, 0], [0, 2, 4, 6], [1, -1, 1, -1])
    assert len(X) == 1000
    np.testing.assert_allclose(X[:, 1], corners + 2.7 * y, atol=1e-12)


@pytest.mark.parametrize("name", ["ring_and_core", "zigzag"])
@every_seed
def test_kmeans_fails_where_it_should(name, seed):
    from sklearn.cluster import KMeans

    from mercer.metrics import adjusted_rand

    X, y = SHAPES[name](random_state=seed)
    labels = KMeans(2, n_init=3, random_state=seed).fit_predict(X)
    assert adjusted_rand(y, labels) < 0.3


def test_blobs_take_any_number_of_clusters_and_features():
    X, y = datasets.blobs(70, n_clusters=7, n_features=5, spread=0.01, random_state=0)
    assert X.shape == (70, 5)
    assert set(y) == set(range(7))
    assert all(X[y == k].std(axis=0).max() < 0.05 for k in range(7))


@pytest.mark.parametrize("shape", ["normal", "hub"])
@pytest.mark.parametrize("spread", [1, 3, 8])
@pytest.mark.parametrize("n_features", [1, 2, 4, 8, 16, 32, 64, 128])
@seeds(3, quick=1)
def test_kmeans_finds_gaussian_pairs_with_some_errors(n_features, spread, shape, seed):
    from sklearn.cluster import KMeans

    from mercer.metrics import adjusted_rand

    X, y = datasets.gaussian_pair(
        n_features=n_features, spread=spread, shape=shape, random_state=seed
    )
    labels = KMeans(2, n_init=20, random_state=seed).fit_predict(X)
    assert X.shape == (2048, n_features)
    assert 0.7 < adjusted_rand(y, labels) < 1.0


@every_seed
@pytest.mark.parametrize("shape", ["normal", "hub"])
def test_gaussian_pairs_have_their_spreads_and_distance(shape, seed):
    X, y = datasets.gaussian_pair(
        4000, 5, spread=0.25, shape=shape, separation=6.0, random_state=seed
    )
    first, second = X[y == 0], X[y == 1]
    # Five standard errors: of a deviation at most σ/√2,000, of a mean σ/√2,000 in each column
    assert np.sqrt(first.var(axis=0).mean()) == pytest.approx(1.0, abs=5 / 2000**0.5)
    assert np.sqrt(second.var(axis=0).mean()) == pytest.approx(0.25, abs=0.25 * 5 / 2000**0.5)
    along = (second.mean(axis=0) - first.mean(axis=0)).sum() / np.sqrt(5)
    assert along == pytest.approx(6.0, abs=5 * 1.03 / 2000**0.5)


@every_seed
def test_hubs_have_a_dense_middle_in_many_columns(seed):
    radii = {}
    for shape in ("normal", "hub"):
        X, y = datasets.gaussian_pair(2000, 64, shape=shape, random_state=seed)
        radii[shape] = np.linalg.norm(X[y == 0], axis=1) / 8
    assert radii["normal"].min() > 0.6  # 1 ± 1/√128
    assert np.mean(radii["hub"] < 0.6) == pytest.approx(0.451, abs=0.08)  # |N(0, 1)| < 0.6


# Errors


@every_shape
def test_fewer_rows_than_clusters(name):
    with pytest.raises(ValueError, match=f"n=1 rows cannot fill {N_CLUSTERS[name]} clusters"):
        SHAPES[name](1)


@every_shape
def test_dtypes_that_are_not_floating(name):
    with pytest.raises(ValueError, match="dtype=int64 is not a floating type"):
        SHAPES[name](100, dtype=np.int64)


@pytest.mark.parametrize("name", ["rings", "ring_and_core", "spirals", "parabolas", "zigzag"])
def test_negative_noise(name):
    with pytest.raises(ValueError, match=r"the standard deviation -0\.1 is negative"):
        SHAPES[name](100, noise=-0.1)


def test_negative_spread_of_a_gaussian_pair():
    with pytest.raises(ValueError, match=r"the standard deviation -2\.0 is negative"):
        datasets.gaussian_pair(100, spread=-2.0)


def test_unknown_shapes_of_gaussian_pairs():
    with pytest.raises(ValueError, match="shape='disc' must be 'normal' or 'hub'"):
        datasets.gaussian_pair(100, shape="disc")


def test_no_clusters():
    with pytest.raises(ValueError, match="must be 1 or more"):
        datasets.rings(10, radii=())


# Documentation


def test_examples_in_docstrings():
    assert doctest.testmod(datasets).failed == 0


@every_seed
def test_directions_overlap_as_documented(seed):
    X, y = datasets.directions(4000, 200, random_state=seed, dtype=np.float64)
    means = np.array([X[y == c].mean(axis=0) for c in range(10)])  # of 68 rows at least
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    large = y < 10
    cosines = X[large] @ means.T
    assert cosines[np.arange(large.sum()), y[large]].mean() == pytest.approx(0.56, abs=0.06)
    assert (cosines.argmax(axis=1) == y[large]).mean() > 0.9
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
    assert (y == 0).sum() > 5 * (y == 20).sum()


def test_directions_of_unknown_sizes_are_refused():
    with pytest.raises(ValueError, match="sizes='large' must be 'equal' or 'zipf'"):
        datasets.directions(10, 2, sizes="large")
