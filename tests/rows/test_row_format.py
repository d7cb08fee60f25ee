"""Rows as kernels see them: those of unit length (the others by the laws of estimators)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from marking import seeds
from mercer.rows.format import RowFormat, unit_rows

UNIT = RowFormat(np.dtype(np.float64), unit_length=True)


def rows(seed, n=50, d=7):
    """Rows of many lengths with zeros in them, one of them all zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-5, 5, (n, 1))
    X[rng.random((n, d)) < 0.3] = 0.0
    X[3] = 0.0
    return X


@seeds(quick=3)
def test_rows_have_unit_length_and_their_direction(seed):
    X = rows(seed)
    U = UNIT.apply(X)
    lengths = np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(np.linalg.norm(U, axis=1), lengths > 0, rtol=1e-15)
    np.testing.assert_allclose(U * lengths[:, None], X, rtol=1e-14)
    np.testing.assert_array_equal(U[3], 0.0)


@seeds(quick=3)
def test_sparse_rows_have_the_bits_of_dense_ones(seed):
    X = rows(seed)
    np.testing.assert_array_equal(UNIT.apply(sp.csr_array(X)).toarray(), UNIT.apply(X))


@pytest.mark.parametrize("power", [-900, -40, 1, 900])
def test_powers_of_two_and_their_rows_are_the_same(power):
    X = rows(0)
    np.testing.assert_array_equal(UNIT.apply(X * 2.0**power), UNIT.apply(X))
    each = 2.0 ** np.random.default_rng(0).integers(-500, 500, (len(X), 1))
    np.testing.assert_array_equal(UNIT.apply(X * each), UNIT.apply(X))


def test_values_at_the_ends_of_the_range():
    tiny, huge = np.finfo(float).tiny, np.finfo(float).max
    X = np.array([[3 * tiny, 4 * tiny], [5e-324, 0.0], [huge, -huge]])
    expected = [[0.6, 0.8], [1.0, 0.0], [np.sqrt(0.5), -np.sqrt(0.5)]]
    np.testing.assert_allclose(UNIT.apply(X), expected, rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_mean_direction_goes_before_the_cast(dtype):
    X = rows(1).astype(dtype)
    found = RowFormat.centred(X, dtype, np.ones(7, bool), unit_length=True)
    U = unit_rows(X)
    np.testing.assert_allclose(found.shift, U.mean(axis=0), rtol=1e-13, atol=1e-16)
    moved = found.apply(X)
    assert moved.dtype == dtype
    np.testing.assert_array_equal(moved, (U - found.shift).astype(dtype))
    np.testing.assert_array_equal(found.apply_in_place(X.copy()), moved)


def test_undone_rows_have_the_same_direction_and_zeros_stay():
    X = rows(2)
    found = RowFormat.centred(X, np.float32, np.ones(7, bool), unit_length=True)
    again = found.undo(found.apply(X))
    np.testing.assert_allclose(again, unit_rows(X), atol=1e-6)
    np.testing.assert_array_equal(again[3], 0.0)
    np.testing.assert_array_equal(unit_rows(again)[3], 0.0)


def test_formats_of_unit_length_are_their_own():
    assert not UNIT.is_same(RowFormat(np.dtype(np.float64)))
    assert UNIT.is_same(RowFormat(np.dtype(np.float64), unit_length=True))
    with pytest.raises(ValueError, match="no other unit"):
        RowFormat(np.dtype(np.float64), exponent=3, unit_length=True).check()
