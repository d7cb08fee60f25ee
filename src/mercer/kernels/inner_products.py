"""Kernels of inner products and overlaps: Cosine, Polynomial, HistogramIntersection."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer._run.types import FloatArray
from mercer.kernels.bandwidth import scaled_gamma
from mercer.kernels.base import ColumnChoice, Kernel, RowsAgainst
from mercer.kernels.sums import CoordinateSums
from mercer.rows.rows import Rows


class Cosine(Kernel):
    """The cosine of the angle, x·y / (‖x‖‖y‖), for text and directions.

    A row of zeros has similarity 0 to every row, itself included. Approximations that have a kernel
    of their own (landmarks, neighbors, binning, quantized, fourier) take ``kernel="cosine"`` as
    that kernel of rows scaled to unit length (`UnitRows`).

    Parameters
    ----------
    columns : None, slice, list, str or int, default=None
        The columns it uses: all (None), a slice, a list of numbers or of feature names, or the
        name or number of a column block.

    Examples
    --------
    >>> from mercer import Cosine
    >>> Cosine()([[2.0, 0.0], [0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.7071],
           [0.    ]])
    """

    has_units = True

    def __init__(self, *, columns: ColumnChoice = None) -> None:
        self.columns = columns

    @property
    def is_cosine(self) -> bool:  # type: ignore[override]
        return self.columns is None

    def in_units(self, exponent: int) -> Kernel:
        return clone(self)

    def _against(self, Y: Rows) -> RowsAgainst:
        selected = self.select(Y)
        products, y_scale = CoordinateSums(selected, "product"), _inverse_norms(selected)

        def matrix(X: Rows) -> FloatArray:
            rows = self.select(X)
            K = products(rows)
            K *= _inverse_norms(rows)[:, None].astype(K.dtype)
            K *= y_scale.astype(K.dtype)
            return K

        return matrix

    def diagonal(self, X: Rows) -> FloatArray:
        return (_inverse_norms(self.select(X)) > 0).astype(X.dtype)


class Polynomial(Kernel):
    """(γ x·y + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
        The power, 1 or more.
    gamma : float or "auto", default="auto"
        γ, a positive number; "auto" is one over the mean squared length of a row.
    coef0 : float, default=1.0
        A number ≥ 0; larger ones favour the lower powers.
    columns : None, slice, list, str or int, default=None
        The columns it uses: all (None), a slice, a list of numbers or of feature names, or the
        name or number of a column block.

    Examples
    --------
    >>> from mercer import Polynomial
    >>> Polynomial(2, gamma=1.0)([[1.0, 2.0]], [[1.0, 1.0]])
    array([[16.]])
    """

    has_units = True

    def __init__(
        self,
        degree: int = 3,
        gamma: float | str = "auto",
        *,
        coef0: float = 1.0,
        columns: ColumnChoice = None,
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.columns = columns

    def _against(self, Y: Rows) -> RowsAgainst:
        products = CoordinateSums(self.select(Y), "product")
        return lambda X: self._power(products(self.select(X)))

    def diagonal(self, X: Rows) -> FloatArray:
        return self._power(_squared_norms(self.select(X)).astype(X.dtype))

    def resolve(self, X: Rows, weights: FloatArray, **how: Any) -> Kernel:
        if self.gamma != "auto":
            return clone(self)
        mean = float(np.average(_squared_norms(self.select(X)), weights=weights))
        return self.with_gamma(1.0 / mean if mean > 0 else 1.0)

    def in_units(self, exponent: int) -> Kernel:
        if isinstance(self.gamma, str):
            return clone(self)
        return self.with_gamma(scaled_gamma(float(self.gamma), 2 * exponent))

    def check_parameters(self) -> None:
        gamma: Any = self.gamma
        is_number = isinstance(gamma, Real) and 0 < float(gamma) < np.inf
        if not is_number and not (isinstance(gamma, str) and gamma == "auto"):
            raise ValueError(f"gamma={self.gamma!r} must be a positive number, or 'auto'")
        if not isinstance(self.degree, Integral) or self.degree < 1:
            raise ValueError(f"degree={self.degree!r} must be a whole number of 1 or more")
        if not self.coef0 >= 0:
            raise ValueError(
                f"coef0={self.coef0!r} is negative: the kernel would not be positive semi-definite"
            )

    def _power(self, products: FloatArray) -> FloatArray:
        self.check_parameters()
        if isinstance(self.gamma, str):
            raise ValueError("gamma='auto' is chosen from data: fit an estimator with this kernel")
        products *= products.dtype.type(self.gamma)
        products += products.dtype.type(self.coef0)
        return products**self.degree


class HistogramIntersection(Kernel):
    """Σ_j min(x_j, y_j): how much two histograms share. Values must not be negative.

    Parameters
    ----------
    columns : None, slice, list, str or int, default=None
        The columns it uses: all (None), a slice, a list of numbers or of feature names, or the
        name or number of a column block.

    Examples
    --------
    >>> from mercer import HistogramIntersection
    >>> HistogramIntersection()([[3.0, 1.0]], [[1.0, 2.0]])
    array([[2.]])
    """

    nonnegative = True

    def __init__(self, *, columns: ColumnChoice = None) -> None:
        self.columns = columns

    def _against(self, Y: Rows) -> RowsAgainst:
        overlaps = CoordinateSums(self.select(Y), "minimum")
        return lambda X: overlaps(self.select(X))

    def diagonal(self, X: Rows) -> FloatArray:
        return np.asarray(self.select(X).sum(axis=1), dtype=X.dtype).ravel()


def _squared_norms(X: Rows) -> FloatArray:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _inverse_norms(X: Rows) -> FloatArray:
    norms = np.sqrt(_squared_norms(X))
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
