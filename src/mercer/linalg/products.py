"""Products whose bits belong to the row: one shape for all of them."""

from __future__ import annotations

import numpy as np

from mercer._run.types import FloatArray
from mercer.rows.rows import pad

# Rows of every product that decides: one shape (padded), so that a row's bits are its own, and a
# multiple of the 16 and 24 that loops of BLAS take at once: some sum up the rest in another order.
PRODUCT_ROWS = 192


def row_products(G: FloatArray, A: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """G @ A in pieces of one shape: a float64 row's bits do not depend on its neighbours."""
    if out is None:
        out = np.empty((len(G), A.shape[1]), G.dtype)
    for start in range(0, len(G), PRODUCT_ROWS):
        rows = G[start : start + PRODUCT_ROWS]
        if len(rows) == PRODUCT_ROWS:
            np.matmul(rows, A, out=out[start : start + PRODUCT_ROWS])
        else:
            out[start:] = (pad(rows, PRODUCT_ROWS) @ A)[: len(rows)]
    return out


def unit_rows(Y: FloatArray) -> FloatArray:
    """Rows scaled to length 1 (rows of zeros stay)."""
    norms = np.linalg.norm(Y, axis=1, keepdims=True)
    return Y / np.where(norms > 0, norms, 1.0)
