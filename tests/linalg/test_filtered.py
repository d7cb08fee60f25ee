"""Leading eigenpairs by filtered subspaces, against a dense decomposition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from mercer.linalg.chebyshev import chebyshev, filtered_eigenpairs, lower_bound, ritz_pairs
from mercer.linalg.eigen import polish_eigenpairs

pytestmark = pytest.mark.numeric

seeds = pytest.mark.parametrize("seed", range(3))


def sparse_symmetric(seed, n=400, density=0.05):
    """Indefinite, as kernels of mutual neighbours are, with some eigenvalues that stand out."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, rng=rng, format="csr")
    blocks = sp.block_diag([np.full((n // 20, n // 20), 1.0 + i / 20) for i in range(20)])
    return sp.csr_array(blocks + 0.3 * (A + A.T))


@seeds
@pytest.mark.parametrize("k", [5, 20, 60])
def test_many_pairs_are_those_of_a_dense_decomposition(seed, k):
    K, rng = sparse_symmetric(seed), np.random.default_rng(seed)
    found = filtered_eigenpairs(K, k, tol=1e-7, rng=rng)
    values, vectors = found.values, found.vectors
    exact, basis = np.linalg.eigh(K.toarray())
    assert values == pytest.approx(exact[::-1][:k], rel=1e-9)
    assert vectors.T @ vectors == pytest.approx(np.eye(k), abs=1e-10)
    cosines = scipy.linalg.svdvals(vectors.T @ basis[:, -k:])
    assert cosines.min() > 1 - 1e-6


@seeds
def test_a_start_that_is_nearly_right_needs_fewer_products(seed, monkeypatch):
    K, more = sparse_symmetric(seed), sparse_symmetric(seed + 10)
    changed = sp.csr_array(0.99 * K + 0.01 * more)
    values, basis = (part[..., ::-1] for part in np.linalg.eigh(K.toarray()))
    applied = []

    def counted(*arguments, **options):
        applied.append(arguments)
        return chebyshev(*arguments, **options)

    monkeypatch.setattr("mercer.linalg.chebyshev.chebyshev", counted)
    cycles = []
    for start in ((values[:20], basis[:, :20]), None):
        applied.clear()
        rng = np.random.default_rng(0)
        found = filtered_eigenpairs(changed, 20, start, tol=1e-4, rng=rng)
        assert found.values == pytest.approx(
            np.linalg.eigvalsh(changed.toarray())[::-1][:20], rel=1e-6
        )
        cycles.append(len(applied))
    assert 1 <= cycles[0] <= cycles[1]


def test_blocks_that_do_not_pay_are_refused():
    K = sparse_symmetric(0)
    rng = np.random.default_rng(0)
    assert filtered_eigenpairs(K, 250, tol=1e-3, rng=rng) is None
    nothing = filtered_eigenpairs(K, 20, tol=0.0, rng=rng)
    assert nothing is None  # never reached


@seeds
def test_the_filter_is_the_polynomial(seed):
    K = sparse_symmetric(seed, 60).toarray()
    V = np.random.default_rng(seed).normal(size=(60, 3))
    low, high = lower_bound(sp.csr_array(K)), 2.0
    values, basis = np.linalg.eigh(K)
    x = (2 * values - high - low) / (high - low)
    expected = (basis * np.polynomial.Chebyshev.basis(5)(x)) @ (basis.T @ V)
    expected /= np.linalg.norm(expected, axis=0)
    assert chebyshev(K, V, 5, low, high) == pytest.approx(expected, abs=1e-9)


@seeds
def test_the_filter_in_float32_is_nearly_that_in_float64(seed):
    K = sparse_symmetric(seed)
    V = np.random.default_rng(seed).normal(size=(400, 300))  # more columns than are taken at once
    low, high = lower_bound(K), 1.0
    exact = chebyshev(K, V, 8, low, high)
    rounded = chebyshev(K, V, 8, low, high, dtype=np.float32)
    assert rounded.dtype == exact.dtype == np.float64
    assert 0 < np.abs(rounded - exact).max() < 1e-4


def test_a_filter_that_grows_beyond_float32_is_one_of_float64():
    K = sp.csr_array(np.diag(np.r_[1e6, np.linspace(0.0, 1.0, 99)]))
    V = np.random.default_rng(0).normal(size=(100, 4))
    exact = chebyshev(K, V, 8, -1e-3, 1.0)
    assert np.array_equal(chebyshev(K, V, 8, -1e-3, 1.0, dtype=np.float32), exact)
    assert np.isfinite(exact).all()


@pytest.mark.parametrize("n", [1, 2, 20, 60, 400])
def test_the_lower_bound_is_below_all(n):
    for seed in range(3):
        K = sparse_symmetric(seed, 400).toarray()[:n, :n]
        assert lower_bound(sp.csr_array(K)) <= np.linalg.eigvalsh(K)[0]
    assert lower_bound(sp.csr_array((n, n))) <= 0.0


def test_columns_that_depend_on_each_other_give_an_orthonormal_basis_all_the_same():
    K, rng = sparse_symmetric(0), np.random.default_rng(0)
    for noise in (0.0, 1e-12, 1e-7, 1e-3, 1.0):
        Y = rng.normal(size=(400, 1)) + noise * rng.normal(size=(400, 6))
        values, vectors = ritz_pairs(K, Y / np.linalg.norm(Y, axis=0))
        assert vectors.T @ vectors == pytest.approx(np.eye(6), abs=1e-10)
        assert vectors.T @ (K @ vectors) == pytest.approx(np.diag(values), abs=1e-9)


@seeds
def test_polishing_brings_the_subspace_nearer(seed):
    K = sparse_symmetric(seed)
    exact, basis = (part[..., ::-1] for part in np.linalg.eigh(K.toarray()))
    noise = 0.02 * np.random.default_rng(seed).normal(size=(400, 20))
    rough, _ = np.linalg.qr(basis[:, :20] + noise)
    cosines = [scipy.linalg.svdvals(basis[:, :20].T @ rough).min()]
    for degree in (1, 2, 4):
        _, vectors = polish_eigenpairs(K, exact[:20], rough, degree=degree)
        cosines.append(scipy.linalg.svdvals(basis[:, :20].T @ vectors).min())
    assert cosines == sorted(cosines)
    assert cosines[-1] > 0.9999
