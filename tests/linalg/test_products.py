"""A row's bits of a product of one shape, wherever the row stands."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._run.threads import single_threaded_blas
from mercer.linalg.products import PRODUCT_ROWS, row_products

pytestmark = pytest.mark.numeric
# Of 256 rows, some kinds of CPU give the last 16 other bits where there are 201 columns and more.
COLUMNS = (*range(1, 26), 31, 63, 64, 65, 100, 127, 200, 201, 255, 257, 284, 297, 301, 999, 2001)


@pytest.mark.parametrize("inner", [1, 5, 64, 100, 769])
def test_equal_rows_have_equal_products_at_every_place(inner):
    rng = np.random.default_rng(inner)
    row = rng.standard_normal(inner)
    for n_columns in COLUMNS:
        A = rng.standard_normal((inner, n_columns))
        with single_threaded_blas():
            found = row_products(np.tile(row, (PRODUCT_ROWS + 40, 1)), A)
        assert np.array_equal(found, np.broadcast_to(found[0], found.shape)), n_columns


def test_products_go_to_a_given_array():
    G, A = np.arange(1200.0).reshape(400, 3), np.arange(6.0).reshape(3, 2)
    out = np.empty((400, 2))
    assert row_products(G, A, out) is out
    np.testing.assert_array_equal(out, G @ A)
