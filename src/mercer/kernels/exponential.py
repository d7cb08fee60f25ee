"""Kernels of the form exp(-γ·D(x, y)): RBF, Laplacian, Chi2."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.base import clone

from mercer._run.types import FloatArray
from mercer.kernels.bandwidth import Rule, check_rule, choose_gamma, scaled_gamma
from mercer.kernels.base import Columns, Kernel, RowsAgainst
from mercer.kernels.sums import CoordinateSums, Term
from mercer.rows.rows import Rows


class Exponential(Kernel):
    """exp(-γ·D(x, y)), where D is a sum over coordinates.

    `power` says how D grows with the size of a step: 2 if like a squared distance, 1 if like a
    distance; the bandwidth rule needs to know.
    """

    term: Term
    factor = 1.0  # D = factor · Σ_j g(x_j, y_j)
    power = 2
    homogeneity = 2  # D(2x, 2y) = 2^homogeneity · D(x, y)
    has_units = True

    def __init__(self, gamma: float | Rule = "auto", *, columns: Columns = None) -> None:
        self.gamma = gamma
        self.columns = columns

    def _against(self, Y: Rows) -> RowsAgainst:
        sums, scale = CoordinateSums(self.select(Y), self.term), -self._number() * self.factor
        return lambda X: sums.exp(self.select(X), scale)

    def diagonal(self, X: Rows) -> FloatArray:
        return np.ones(X.shape[0], X.dtype)

    def distances(self, X: Rows, Y: Rows) -> FloatArray:
        """D(x, y), what γ multiplies."""
        return self.factor * CoordinateSums(self.select(Y), self.term)(self.select(X))

    def resolve(
        self,
        X: Rows,
        weights: FloatArray,
        *,
        rng: np.random.Generator,
        least_mean: float = 0.0,
    ) -> Exponential:
        if isinstance(self.gamma, str):
            gamma = choose_gamma(self, X, weights, rule=self.gamma, rng=rng, least_mean=least_mean)
        else:
            gamma = self._number()
        resolved: Exponential = clone(self).set_params(gamma=gamma)
        return resolved

    def in_units(self, exponent: int) -> Exponential:
        if isinstance(self.gamma, str):
            return clone(self)
        gamma = scaled_gamma(self._number(), self.homogeneity * exponent)
        moved: Exponential = clone(self).set_params(gamma=gamma)
        return moved

    def check_parameters(self) -> None:
        if isinstance(self.gamma, str):
            check_rule(self.gamma)
        else:
            self._number()

    def _number(self) -> float:
        if isinstance(self.gamma, str):
            raise ValueError(
                f"gamma={self.gamma!r} is chosen from data; fit an estimator with this kernel "
                "or give gamma as a number"
            )
        if not isinstance(self.gamma, Real) or not np.isfinite(self.gamma) or self.gamma <= 0:
            raise ValueError(f"gamma={self.gamma!r} must be a positive number, or 'auto'")
        return float(self.gamma)


class RBF(Exponential):
    """The Gaussian kernel exp(-γ‖x - y‖²).

    Paper 001's σ is this γ; 004's γ is its inverse; 002's σ is 1/√(2γ).

    Parameters
    ----------
    gamma : γ, a positive number; or the rule that finds it when an estimator is fitted: "auto"
        (by near neighbours), "median" or "scale" (see `mercer.kernels.bandwidth`).
    columns : the columns it looks at: None for all, a slice, numbers, names, or the name or number
        of a column block.

    Examples
    --------
    >>> from mercer import RBF
    >>> RBF(0.5)([[0.0, 0.0], [1.0, 1.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    >>> mixed = 0.5 * RBF(1.0, columns=slice(0, 1)) + 0.5 * RBF(2.0, columns=slice(1, 2))
    >>> mixed([[0.0, 0.0], [1.0, 0.0]]).round(4)
    array([[1.    , 0.6839],
           [0.6839, 1.    ]])
    """

    term = "squared"
    stationary = True


class Laplacian(Exponential):
    """exp(-γ‖x - y‖₁): heavier tails than RBF, and the kernel of random binning.

    Parameters
    ----------
    gamma : γ, a positive number; or the rule that finds it when an estimator is fitted: "auto"
        (by near neighbours), "median" or "scale" (see `mercer.kernels.bandwidth`).
    columns : the columns it looks at: None for all, a slice, numbers, names, or the name or number
        of a column block.

    Examples
    --------
    >>> from mercer import Laplacian
    >>> Laplacian(0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    term = "absolute"
    stationary = True
    power = 1
    homogeneity = 1


class Chi2(Exponential):
    """exp(-γ·½Σ(x - y)²/(x + y)) for histograms; terms with x + y = 0 are 0.

    Values must not be negative. Paper 004's σ is 1/γ.

    Parameters
    ----------
    gamma : γ, a positive number; or the rule that finds it when an estimator is fitted: "auto"
        (by near neighbours), "median" or "scale" (see `mercer.kernels.bandwidth`).
    columns : the columns it looks at: None for all, a slice, numbers, names, or the name or number
        of a column block.

    Examples
    --------
    >>> from mercer import Chi2
    >>> Chi2(1.0)([[3.0, 1.0, 0.0]], [[1.0, 3.0, 0.0]]).round(4)
    array([[0.3679]])
    """

    term = "chi2"
    nonnegative = True
    homogeneity = 1
    factor = 0.5


def is_automatic(kernel: Kernel) -> bool:
    """Whether the bandwidth is left to the estimator, and is a single number."""
    return (
        isinstance(kernel, Exponential)
        and isinstance(kernel.gamma, str)
        and (kernel.gamma == "auto")
    )
