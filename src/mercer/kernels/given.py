"""Kernels that come from outside: a function, or a matrix computed beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.types import FloatArray
from mercer.kernels.base import ColumnChoice, Kernel, RowsAgainst
from mercer.rows.rows import Rows


class FunctionKernel(Kernel):
    """A function of the user's. Models with one cannot be saved.

    Parameters
    ----------
    function : callable
        Takes X (n, d) and Y (m, d) and returns their similarities, (n, m).
    columns : None, slice, list, str or int, default=None
        The columns it uses: all (None), a slice, a list of numbers or of feature names, or the
        name or number of a column block.
    """

    is_function = True

    def __init__(
        self, function: Callable[[Any, Any], Any], *, columns: ColumnChoice = None
    ) -> None:
        self.function = function
        self.columns = columns

    def _against(self, Y: Rows) -> RowsAgainst:
        fixed = self.select(Y)
        return lambda X: self._call(self.select(X), fixed)

    def diagonal(self, X: Rows) -> FloatArray:
        rows = self.select(X)
        n = rows.shape[0]
        if n == 0:
            return np.empty(0, X.dtype)
        return np.concatenate(
            [self._call(rows[i : i + 64], rows[i : i + 64]).diagonal() for i in range(0, n, 64)]
        )

    def _call(self, X: Rows, Y: Rows) -> FloatArray:
        K = np.asarray(self.function(_guarded(X), _guarded(Y)))
        if K.shape != (X.shape[0], Y.shape[0]) or K.dtype.kind not in "fiub":
            raise ValueError(
                f"the kernel function returned {K.dtype} of shape {K.shape} for {X.shape[0]} and "
                f"{Y.shape[0]} rows; it must return numbers of shape {(X.shape[0], Y.shape[0])}"
            )
        return K.astype(X.dtype)  # a copy: what the function returns is its owner's


def _guarded(X: Rows) -> Rows:
    """The rows, safe from a function that would write into them: they may be the caller's own."""
    if not isinstance(X, np.ndarray):
        return X
    view = X.view()
    view.flags.writeable = False
    return view


class Precomputed(Kernel):
    """X is itself a kernel matrix, k(rows, training rows); pivots are column numbers."""

    is_precomputed = True

    def against(self, Y: Rows) -> RowsAgainst:
        items = Y[:, 0].astype(np.intp)
        return lambda X: np.ascontiguousarray(X[:, items])

    def diagonal(self, X: Rows) -> FloatArray:
        raise NotImplementedError("the rows of a precomputed kernel do not hold k(x, x)")

    def sees(self, X: Rows, K: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(K.any(axis=1))


class GramMatrix(Kernel):
    """A precomputed matrix while fitting: the 'rows' are item numbers, one column."""

    is_precomputed = True

    def __init__(self, matrix_of_items: FloatArray) -> None:
        self.matrix_of_items = matrix_of_items

    def against(self, Y: Rows) -> RowsAgainst:
        columns = Y[:, 0].astype(np.intp)
        return lambda X: self.matrix_of_items[np.ix_(X[:, 0].astype(np.intp), columns)]

    def diagonal(self, X: Rows) -> FloatArray:
        items = X[:, 0].astype(np.intp)
        return self.matrix_of_items[items, items]

    def for_new_rows(self) -> Kernel:
        return Precomputed()  # new rows bring their part of the matrix
