"""Joined grids and the Lanczos iteration beside slow, obvious references."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.factors.binning import bundled, neighbor_sums, parts_of_rows
from mercer.linalg.lanczos import lanczos


def rng(seed=0):
    return np.random.default_rng(seed)


def random_bins(n, n_bins, seed=0):
    """Bins of n rows in grids; the number of its bins stands for rows that are in none."""
    return np.array([rng(seed + g).integers(0, b + 1, n) for g, b in enumerate(n_bins)], np.int32)


def dense_sums(ids, n_bins, v):
    out = np.zeros(len(v))
    for row, b in zip(ids, n_bins, strict=True):
        Z = (row[:, None] == np.arange(b)).astype(float)
        out += Z @ (Z.T @ v)
    return out


@pytest.mark.parametrize(
    "n_bins",
    [[1], [3, 2], [2] * 13, [700, 1, 2, 3, 5, 40, 41, 60], [0, 2, 5, 0], [900, 800, 1000]],
)
@pytest.mark.parametrize("n", [7, 1001, 20_000])
def test_joined_grids_sum_what_each_would(n, n_bins):
    ids, v = random_bins(n, n_bins), rng(9).normal(size=n)
    kinds = bundled(ids, np.array(n_bins))
    assert sum(len(kind.widths) for kind in kinds) == len(n_bins)
    found = [neighbor_sums(kinds, v, threads) for threads in (1, 2)]
    np.testing.assert_allclose(found[0], dense_sums(ids, n_bins, v), rtol=1e-10, atol=1e-9)
    assert np.array_equal(*found)


def test_coarse_grids_are_joined():
    n_bins = [9] * 60 + [5000]
    joined, alone = bundled(random_bins(20_000, n_bins), np.array(n_bins))
    assert len(joined) == 20  # 10³ cells each
    assert len(alone) == 1
    assert joined.most_cells() == 1000


def test_parts_are_those_of_a_search_by_hand():
    n_bins = [40, 30]
    ids = random_bins(60, n_bins, seed=3)
    tied = (ids < np.array(n_bins)[:, None]).any(axis=0)
    same = np.eye(60, dtype=bool)
    for row, b in zip(ids, n_bins, strict=True):
        same |= (row[:, None] == row) & (row < b)
    while not np.array_equal(same, same @ same):
        same = same @ same
    assert np.array_equal(parts_of_rows(ids, np.array(n_bins), tied), same.argmax(axis=1))


def symmetric(values, seed=0):
    Q, _ = np.linalg.qr(rng(seed).normal(size=(len(values), len(values))))
    return (Q * values) @ Q.T, Q


def until(tol):
    return lambda values, residuals, n_products: residuals.max() <= tol


@pytest.mark.parametrize("k", [1, 4, 9])
def test_lanczos_finds_the_largest(k):
    values = np.sort(rng(k).random(300))[::-1] ** 3
    A, Q = symmetric(values)
    found = lanczos(A.dot, 300, k, is_enough=until(1e-9), most_products=2000, rng=rng())
    np.testing.assert_allclose(found.values, values[:k], atol=1e-12)
    np.testing.assert_allclose(
        np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0), 0, atol=2e-9
    )
    np.testing.assert_allclose(np.abs(np.sum(found.vectors * Q[:, :k], axis=0)), 1, atol=1e-6)
    beside = lanczos(
        A.dot, 300, 2, is_enough=until(1e-9), most_products=2000, rng=rng(), known=Q[:, :k].T
    )
    np.testing.assert_allclose(beside.values, values[k : k + 2], atol=1e-12)


def test_lanczos_goes_on_where_its_space_is_closed_and_stops_when_told():
    A, _ = symmetric(np.r_[np.ones(5), np.zeros(35)])  # two steps close the space of any start
    found = lanczos(A.dot, 40, 5, is_enough=lambda *_: False, most_products=500, rng=rng())
    np.testing.assert_allclose(found.values, 1.0)
    A, _ = symmetric(np.linspace(1, 1 + 1e-9, 400))
    stopped = lanczos(A.dot, 400, 3, is_enough=until(1e-16), most_products=50, rng=rng())
    assert stopped.n_products == 50
    true = np.linalg.norm(A @ stopped.vectors - stopped.vectors * stopped.values, axis=0)
    np.testing.assert_allclose(true, stopped.residuals, atol=1e-12)


def test_a_long_run_keeps_its_basis_orthogonal():
    """Hundreds of products on a spectrum without gaps: errors of projection must not grow."""
    values = 1 - np.linspace(0, 1, 2000) ** 0.5 * 0.01
    values[1000:] = 0.2
    found = lanczos(
        lambda v: values * v, 2000, 26, is_enough=until(1e-15), most_products=600, rng=rng()
    )
    assert found.values.max() <= 1 + 1e-12
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(26), atol=1e-10)


def test_nearly_unconnected_graphs_end_soon_and_are_said():
    import mercer

    X = rng(5).normal(size=(3000, 6))
    model = mercer.SpectralClustering(8, gamma=4.0, approximation="binning", random_state=0)
    with pytest.warns(mercer.MercerWarning, match="solver|unconnected|no two rows|alike"):
        model.fit(X)
    assert model.eigenvalues_.max() <= 1 + 1e-9
    assert np.array_equal(model.predict(X), model.labels_)
