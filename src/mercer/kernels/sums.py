"""Sums over coordinates, Σ_j g(x_j, y_j), of many rows against a few fixed ones.

For dense and CSR rows alike: direct loops for few features, matrix products for many.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray
from mercer.linalg.products import row_products
from mercer.rows.rows import Rows

_jit = LazyModule("mercer.kernels._jit")

Term = Literal["squared", "absolute", "chi2", "minimum", "product"]
CODES: dict[str, int] = {"squared": 0, "absolute": 1, "chi2": 2, "minimum": 3, "product": 4}

DIRECT_FEATURES = 32  # up to here a loop over coordinates beats a matrix product


class CoordinateSums:
    """``sums(X)[i, q] = Σ_j g(X[i, j], Y[q, j])`` for fixed rows Y.

    Dense float64 results do not depend on where in X a row stands, nor on how many rows X has
    (float32 matrix products do, by a rounding error: labels are therefore decided in float64).
    """

    def __init__(self, Y: Rows, term: Term) -> None:
        self.code = CODES[term]
        self.term = term
        self.is_sparse = sp.issparse(Y)
        self.for_sparse: CoordinateSums | None = None
        if self.is_sparse:
            self._bind_sparse(Y)
        else:
            self.YT: FloatArray = np.ascontiguousarray(Y.T)
            self.y_norms: FloatArray = np.einsum("ij,ij->i", Y, Y, dtype=np.float64).astype(Y.dtype)

    def __call__(self, X: Rows) -> FloatArray:
        out = np.empty((X.shape[0], self.YT.shape[1]), X.dtype)
        if self.is_sparse or sp.issparse(X):
            return self._sparse(X).astype(X.dtype, copy=False)
        if self._by_products(X):
            row_products(X, self.YT, out)
            if self.term == "squared":
                _jit.squared_from_products(X, self.y_norms, out, np.empty(8))
        else:
            self._direct(X, out, 0.0, _scratch(0, X.dtype))
        return out

    def exp(self, X: Rows, scale: float) -> FloatArray:
        """exp(scale · sums), for scale ≤ 0 and sums ≥ 0."""
        scratch = _scratch(self.YT.shape[1], X.dtype)
        if self.is_sparse or sp.issparse(X) or self._by_products(X):
            out = self(X)
            loop = _jit.exp_rows_32 if X.dtype == np.float32 else _jit.exp_rows
            loop(X.dtype.type(scale), out, *scratch)
            return out
        out = np.empty((X.shape[0], self.YT.shape[1]), X.dtype)
        self._direct(X, out, scale, scratch)
        return out

    def _direct(self, X: FloatArray, out: FloatArray, scale: float, scratch: Any) -> None:
        loop = _jit.dense_sums_32 if X.dtype == np.float32 else _jit.dense_sums
        loop(np.ascontiguousarray(X), self.YT, self.code, X.dtype.type(scale), out, *scratch)

    def _by_products(self, X: FloatArray) -> bool:
        return self.term in ("squared", "product") and X.shape[1] > DIRECT_FEATURES

    def _bind_sparse(self, Y: Any) -> None:
        """Keep the columns that some row of Y has, densely; most columns have none.

        Nothing here has the length of a row: text may be hashed to 2³¹ columns.
        """
        csr = sp.csr_array(Y)
        present, places = np.unique(csr.indices, return_inverse=True)
        self.columns = present.astype(np.intp)
        found = sp.csr_array((csr.data, places, csr.indptr), shape=(Y.shape[0], len(present)))
        self.YT = np.ascontiguousarray(found.toarray().T, dtype=np.float64)
        at_zero: Any = {
            "squared": np.square,
            "absolute": np.abs,
            "chi2": np.positive,
            "minimum": np.zeros_like,
            "product": np.zeros_like,
        }[self.term]
        self.base = at_zero(self.YT).sum(axis=0)

    def _sparse(self, X: Rows) -> FloatArray:
        if not self.is_sparse:  # one for sparse rows beside this one, which other threads may use
            if self.for_sparse is None:
                self.for_sparse = CoordinateSums(sp.csr_array(self.YT.T), self.term)
            return self.for_sparse._sparse(X)
        csr = sp.csr_array(X)
        out = np.empty((X.shape[0], self.YT.shape[1]))
        arrays = (csr.data, csr.indices, csr.indptr, self.columns, self.YT, self.base)
        _jit.sparse_sums(*arrays, self.code, out)
        if self.term in ("squared", "absolute", "chi2"):
            np.maximum(out, 0.0, out=out)
        return out


def _scratch(size: int, dtype: Any) -> tuple[Any, FloatArray]:
    """Room for the bits of a row of exponentials, as integers and as numbers."""
    bits = np.empty(size, np.int32 if dtype == np.float32 else np.int64)
    return bits, bits.view(dtype)
