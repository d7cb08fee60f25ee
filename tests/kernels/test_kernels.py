"""Laws of every kernel: forms agree, matrices are symmetric and positive semi-definite."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

import reference
from mercer import KernelKMeans
from mercer.kernels import (
    RBF,
    Chi2,
    Cosine,
    FunctionKernel,
    HistogramIntersection,
    Laplacian,
    Polynomial,
    UnitRows,
    as_kernel,
)
from mercer.kernels.algebra import Product, Scaled, Sum
from mercer.kernels.bandwidth import choose_gamma
from mercer.kernels.given import GramMatrix, Precomputed
from mercer.kernels.probe import probe_kernel
from mercer.kernels.registry import is_precomputed

pytestmark = pytest.mark.numeric

KERNELS = {
    "rbf": (RBF(0.7), reference.rbf(0.7)),
    "laplacian": (Laplacian(0.4), reference.laplacian(0.4)),
    "chi2": (Chi2(0.9), reference.chi2(0.9)),
    "cosine": (Cosine(), reference.cosine),
    "polynomial": (Polynomial(2, 0.3), reference.polynomial(2, 0.3, 1.0)),
    "histogram": (HistogramIntersection(), reference.histogram_intersection),
    "function": (FunctionKernel(lambda X, Y: X @ Y.T), lambda x, y: x @ y),
    "sum": (
        0.5 * RBF(0.7) + 2 * Cosine(),
        lambda x, y: 0.5 * reference.rbf(0.7)(x, y) + 2 * reference.cosine(x, y),
    ),
    "product": (
        RBF(0.2) * Laplacian(0.3),
        lambda x, y: reference.rbf(0.2)(x, y) * reference.laplacian(0.3)(x, y),
    ),
    "unit rows": (
        UnitRows(RBF(0.7)),
        lambda x, y: reference.rbf(0.7)(reference.unit(x), reference.unit(y)),
    ),
}
every_kernel = pytest.mark.parametrize("name", KERNELS)


@st.composite
def histograms(draw):
    """Non-negative rows with many zeros, of 1 to 60 columns (direct sums and products)."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    shape = draw(st.tuples(st.integers(1, 12), st.sampled_from([1, 2, 5, 33, 60])))
    values = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 3.0])
    return draw(hnp.arrays(dtype, shape, elements=values))


@every_kernel
@given(X=histograms())
def test_kernel_agrees_with_its_definition(name, X):
    kernel, definition = KERNELS[name]
    expected = reference.kernel_values(definition, X, X)
    scale = max(np.abs(expected).max(), 1.0)
    tol = reference.TOL[X.dtype] * scale
    assert np.abs(kernel.matrix(X, X) - expected).max() <= tol
    assert np.abs(kernel.diagonal(X) - expected.diagonal()).max() <= tol
    assert kernel.matrix(X, X).dtype == X.dtype


@every_kernel
@given(X=histograms())
def test_dense_and_sparse_rows_give_the_same(name, X):
    if name == "function":
        pytest.skip("a user's function decides itself what it takes")
    kernel, _ = KERNELS[name]
    dense, sparse = kernel.matrix(X, X), kernel.matrix(sp.csr_array(X), sp.csr_array(X))
    scale = max(np.abs(dense).max(), 1.0)
    assert np.abs(dense - sparse).max() <= reference.TOL[X.dtype] * scale


@every_kernel
@given(X=histograms())
def test_matrix_is_symmetric_and_positive_semidefinite(name, X):
    K = KERNELS[name][0].matrix(X.astype(np.float64), X.astype(np.float64))
    scale = max(np.abs(K).max(), 1.0)
    assert np.abs(K - K.T).max() <= 1e-12 * scale
    assert np.linalg.eigvalsh((K + K.T) / 2)[0] >= -1e-9 * scale * len(K)


@pytest.mark.parametrize("d", [2, 16, 33, 100])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "cosine", "polynomial"])
def test_a_float64_row_has_the_same_bits_wherever_it_stands(name, d):
    rng = np.random.default_rng(0)
    X, Y = rng.random((1000, d)), rng.random((37, d))
    columns = KERNELS[name][0].against(Y)
    whole = columns(X)
    for cut in (1, 255, 256, 300, 999):
        assert np.array_equal(np.concatenate([columns(X[:cut]), columns(X[cut:])]), whole)
    order = rng.permutation(len(X))
    assert np.array_equal(columns(X[order]), whole[order])


def test_exponentials_match_numpy_over_their_whole_range():
    for dtype, tol in ((np.float64, 1e-15), (np.float32, 3e-7)):
        x = np.linspace(0, 80, 5000, dtype=dtype)[:, None]
        K = RBF(1.0).matrix(np.sqrt(x), np.zeros((1, 1), dtype))[:, 0]
        expected = np.exp(-(np.sqrt(x[:, 0]) ** 2).astype(np.float64))
        assert np.abs(K / expected - 1).max() < tol * 20
    far = RBF(1.0).matrix(np.array([[1e6]]), np.zeros((1, 1)))
    assert 0 <= far[0, 0] < 1e-300


def test_columns_select_by_slice_list_name_and_block():
    rng = np.random.default_rng(0)
    X = rng.random((20, 5))
    expected = RBF(0.5).matrix(np.ascontiguousarray(X[:, 1:3]))
    for columns in (slice(1, 3), [1, 2], (1, 2), np.array([1, 2]), range(1, 3)):
        assert np.allclose(RBF(0.5, columns=columns)(X), expected)
    named = RBF(0.5, columns=["b", "c"]).named_columns(("a", "b", "c", "d", "e"))
    assert np.allclose(named(X), expected)
    blocks = {"first": X[:, :1], "rest": sp.csr_array(X[:, 1:3])}
    assert np.allclose(RBF(0.5, columns="rest")(blocks), expected)
    assert np.allclose(RBF(0.5, columns=1)(blocks), expected)
    with pytest.raises(ValueError, match=r"columns=.*'first'"):
        RBF(0.5)(blocks)
    for bad in ([0, 9], [0.5], [np.nan], [], [[0]]):
        with pytest.raises(ValueError, match="columns="):
            RBF(0.5, columns=bad)(X)
    with pytest.raises(ValueError, match="no feature names"):
        RBF(0.5, columns=["b"]).named_columns(None)


def test_a_shift_does_not_change_a_kernel_of_differences():
    X = np.random.default_rng(0).random((50, 40))
    assert np.abs(RBF(0.5)(X + 1e9) - RBF(0.5)(X)).max() < 1e-5
    assert np.abs(RBF(0.5)(X + 1e6) - RBF(0.5)(X)).max() < 1e-8


def test_parameters_of_nested_kernels_can_be_set():
    kernel = 0.5 * RBF("auto") + Cosine()
    kernel.set_params(k0__kernel__gamma=2.0)
    assert kernel.kernels[0].kernel.gamma == 2.0
    model = KernelKMeans(kernel=RBF(1.0)).set_params(kernel__gamma=3.0)
    assert model.kernel.gamma == 3.0
    assert clone(kernel) is not kernel
    assert repr(clone(kernel)) == repr(kernel)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n", [20, 100, 300, 1000])
def test_automatic_gamma_is_the_documented_rule(seed, n):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    rng = np.random.default_rng(0)
    assert choose_gamma(RBF(), X, np.ones(n), rule="auto", rng=rng) == pytest.approx(
        reference.neighbor_gamma(X), rel=1e-9
    )


@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1.0, 1e20])
def test_automatic_gamma_follows_the_scale(scale):
    X = np.random.default_rng(0).normal(size=(200, 3))
    rng = np.random.default_rng(0)
    for kernel, power in ((RBF(), 2), (Laplacian(), 1)):
        for rule in ("auto", "median", "scale"):
            if rule == "scale" and power == 1:
                continue
            one = choose_gamma(kernel, X, np.ones(200), rule=rule, rng=rng)
            scaled = choose_gamma(kernel, X * scale, np.ones(200), rule=rule, rng=rng)
            assert scaled * scale**power == pytest.approx(one, rel=1e-9)


def test_automatic_gamma_is_widened_to_a_mean_similarity():
    X = np.random.default_rng(0).normal(size=(200, 2))
    gamma = choose_gamma(
        RBF(), X, np.ones(200), rule="auto", rng=np.random.default_rng(0), least_mean=0.4
    )
    K = RBF(gamma)(X)
    assert K[~np.eye(200, dtype=bool)].mean() == pytest.approx(0.4, rel=1e-3)


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda X, Y: np.full((len(X), len(Y)), np.nan), "NaN"),
        (lambda X, Y: np.zeros((len(X), len(Y))), "zero"),
        (lambda X, Y: X @ (Y * [1, 2]).T + X[:, :1] - 2 * Y[:, :1].T, "symmetric"),
        (lambda X, Y: -np.exp(-((X[:, None] - Y[None]) ** 2).sum(2)), "< 0"),
        (lambda X, Y: np.tanh(3 * X @ Y.T - 1) + 1.0 * (X[:, :1] == Y[:, :1].T), "semi-definite"),
        (lambda X, Y: X, "shape"),
    ],
)
def test_what_is_no_kernel_is_refused(function, match):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match=match):
        probe_kernel(FunctionKernel(function), X)


def test_a_kernel_that_sees_nothing_is_called_out():
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert "identity" in probe_kernel(RBF(1e12), X)[0]
    assert "constant" in probe_kernel(RBF(1e-300), X)[0]
    assert probe_kernel(RBF(0.5), X) == []


def test_wrong_kernels_and_gammas_are_refused_in_words():
    with pytest.raises(ValueError, match=r"unknown.*rbf"):
        as_kernel("rbff")
    with pytest.raises(ValueError, match="has no gamma"):
        as_kernel("cosine", 1.0)
    with pytest.raises(ValueError, match="together with a kernel object"):
        as_kernel(RBF(1.0), 2.0)
    with pytest.raises(TypeError, match="name"):
        as_kernel(3)
    with pytest.raises(ValueError, match="positive"):
        RBF(-1.0).matrix(np.ones((2, 2)))
    with pytest.raises(ValueError, match="chosen from data"):
        RBF("auto").matrix(np.ones((2, 2)))


@every_kernel
def test_frequencies_have_the_mean_of_the_kernel(name):
    kernel, step = KERNELS[name][0], np.array([[0.3, -0.5]])
    if not kernel.has_spectrum:
        with pytest.raises(NotImplementedError):
            kernel.frequencies((1, 2), rng=np.random.default_rng(0))
        return
    waves = kernel.frequencies((40_000, 2), rng=np.random.default_rng(0))
    assert np.cos(waves @ step[0]).mean() == pytest.approx(kernel(step, 0 * step)[0, 0], abs=0.02)


@every_kernel
def test_random_grids_share_bins_as_often_as_the_kernel_says(name):
    kernel, step, rng = KERNELS[name][0], np.array([[0.3, -0.5]]), np.random.default_rng(0)
    if not kernel.has_bins:
        with pytest.raises(NotImplementedError):
            kernel.bin_scales(2, rng=rng)
        return
    scales = np.array([kernel.bin_scales(2, rng=rng) for _ in range(20_000)])
    offsets = rng.random(scales.shape)
    share = (np.floor(offsets) == np.floor(step * scales + offsets)).all(axis=1).mean()
    assert share == pytest.approx(kernel(step, 0 * step)[0, 0], abs=0.02)


def test_block_scales_multiply_and_ignore_what_has_no_correction():
    variances = np.array([[0.1, 0.2], [0.0, 0.0]])
    narrow = RBF(2.0).block_scale(variances)
    assert narrow == pytest.approx(np.exp([-0.6, 0.0]))
    product = RBF(2.0) * (3.0 * RBF(1.0)) * Laplacian(1.0)
    assert product.block_scale(variances) == pytest.approx(np.exp([-0.9, 0.0]))
    assert (RBF(2.0) + RBF(1.0)).block_scale(variances) == pytest.approx(np.ones(2))


def test_kernels_say_what_they_are():
    assert [as_kernel(name).is_precomputed for name in ("rbf", "precomputed")] == [False, True]
    assert all(map(is_precomputed, ("precomputed", Precomputed())))
    assert not any(map(is_precomputed, ("rbf", None, RBF(1.0))))
    assert isinstance(GramMatrix(np.eye(2)).for_new_rows(), Precomputed)
    assert (RBF(1.0) + FunctionKernel(lambda X, Y: X @ Y.T)).is_function
    assert RBF("auto").is_automatic
    assert not any(k.is_automatic for k in (RBF(1.0), RBF("median"), Polynomial(), Cosine()))
    assert RBF("auto").with_gamma(2).gamma == 2.0
    with pytest.raises(ValueError, match="no gamma"):
        Cosine().with_gamma(1.0)


@pytest.mark.parametrize("kernel", [Sum([]), Product(["rbf"]), Sum("rbf"), Scaled(2.0, None)])
def test_combinations_of_other_things_are_refused(kernel):
    with pytest.raises(TypeError, match="not"):
        kernel.check_structure()
