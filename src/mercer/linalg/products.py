"""Products whose bits belong to the row: one shape for all of them."""

from __future__ import annotations

import numpy as np

from mercer._run.types import FloatArray
from mercer.rows.rows import pad

SCORE_ROWS = 256  # rows per product with the centres: one shape, so a row's bits are its own


def row_products(G: FloatArray, A: FloatArray) -> FloatArray:
    """G @ A in pieces of one shape: a float64 row's bits do not depend on its neighbours."""
    out = np.empty((len(G), A.shape[1]), G.dtype)
    for start in range(0, len(G), SCORE_ROWS):
        rows = G[start : start + SCORE_ROWS]
        out[start : start + SCORE_ROWS] = (pad(rows, SCORE_ROWS) @ A)[: len(rows)]
    return out


def unit_rows(Y: FloatArray) -> FloatArray:
    """Rows scaled to length 1 (rows of zeros stay)."""
    norms = np.linalg.norm(Y, axis=1, keepdims=True)
    return Y / np.where(norms > 0, norms, 1.0)
