"""Kernels of the form exp(-γ·D(x, y)): RBF, Laplacian, Chi2."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer._run.types import FloatArray
from mercer.kernels.bandwidth import Rule, check_rule, choose_gamma, scaled_gamma
from mercer.kernels.base import ColumnChoice, Kernel, RowsAgainst
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
    has_bandwidth = True

    def __init__(self, gamma: float | Rule = "auto", *, columns: ColumnChoice = None) -> None:
        self.gamma = gamma
        self.columns = columns

    def _against(self, Y: Rows) -> RowsAgainst:
        sums, scale = CoordinateSums(self.select(Y), self.term), -self._number() * self.factor
        return lambda X: sums.exp(self.select(X), scale)

    def diagonal(self, X: Rows) -> FloatArray:
        return np.ones(X.shape[0], X.dtype)

    def distances(self, X: Rows, Y: Rows) -> FloatArray:
        return self.factor * CoordinateSums(self.select(Y), self.term)(self.select(X))

    def resolve(self, X: Rows, weights: FloatArray, **how: Any) -> Kernel:
        if isinstance(self.gamma, str):
            return self.with_gamma(choose_gamma(self, X, weights, rule=self.gamma, **how))
        return self.with_gamma(self._number())

    def in_units(self, exponent: int) -> Kernel:
        if isinstance(self.gamma, str):
            return clone(self)
        return self.with_gamma(scaled_gamma(self._number(), self.homogeneity * exponent))

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
        is_real = isinstance(self.gamma, Real)
        if not is_real or not np.isfinite(float(self.gamma)) or self.gamma <= 0:
            raise ValueError(f"gamma={self.gamma!r} must be a positive number, or 'auto'")
        return float(self.gamma)


class RBF(Exponential):
    """The Gaussian kernel exp(-γ‖x - y‖²).

    γ is the σ of kernel k-means by incomplete Cholesky, the inverse of γ in sparse kernel spectral
    clustering, and 1/(2σ²) for the σ of block-quantised kernels.

    Parameters
    ----------
    gamma : float or {"auto", "median", "scale"}, default="auto"
        γ, a positive number, or the rule that chooses it when an estimator is fitted: "auto"
        follows the distance to near neighbours, "median" is one over the median distance, and
        "scale" is scikit-learn's 1 / (n_features · variance).
    columns : None, slice, list, str or int, default=None
        The columns it uses: all (None), a slice, a list of numbers or of feature names, or the
        name or number of a column block.

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
    has_spectrum = True
    is_gaussian = True

    def frequencies(
        self, shape: tuple[int, int], *, rng: np.random.Generator, orthogonal: bool = False
    ) -> FloatArray:
        normal = _orthogonal_normals(shape, rng=rng) if orthogonal else rng.standard_normal(shape)
        return np.sqrt(2 * self._number()) * normal

    def block_scale(self, variances: Rows) -> FloatArray:
        spread: FloatArray = self.select(variances).sum(axis=1)
        return np.exp(-self._number() * spread)


class Laplacian(Exponential):
    """exp(-γ‖x - y‖₁): heavier tails than RBF, and the kernel of random binning.

    Parameters
    ----------
    gamma : float or {"auto", "median", "scale"}, default="auto"
        γ, a positive number, or the rule that chooses it when an estimator is fitted: "auto"
        follows the distance to near neighbours, "median" is one over the median distance, and
        "scale" is scikit-learn's 1 / (n_features · variance).
    columns : None, slice, list, str or int, default=None
        The columns it uses: all (None), a slice, a list of numbers or of feature names, or the
        name or number of a column block.

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
    has_spectrum = True
    has_bins = True

    def frequencies(
        self, shape: tuple[int, int], *, rng: np.random.Generator, orthogonal: bool = False
    ) -> FloatArray:
        return self._number() * rng.standard_cauchy(shape)

    def bin_scales(self, n_features: int, *, rng: np.random.Generator) -> FloatArray:
        return self._number() / np.maximum(rng.gamma(2.0, 1.0, n_features), np.finfo(float).tiny)


class Chi2(Exponential):
    """exp(-γ·½Σ(x - y)²/(x + y)) for histograms; terms with x + y = 0 are 0.

    Values must not be negative. In sparse kernel spectral clustering σ is 1/γ.

    Parameters
    ----------
    gamma : float or {"auto", "median", "scale"}, default="auto"
        γ, a positive number, or the rule that chooses it when an estimator is fitted: "auto"
        follows the distance to near neighbours, "median" is one over the median distance, and
        "scale" is scikit-learn's 1 / (n_features · variance).
    columns : None, slice, list, str or int, default=None
        The columns it uses: all (None), a slice, a list of numbers or of feature names, or the
        name or number of a column block.

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


def _orthogonal_normals(shape: tuple[int, int], *, rng: np.random.Generator) -> FloatArray:
    """Normal vectors, every d of them orthogonal: the axes of random bases, with normal lengths."""
    n, d = shape
    bases = [
        np.linalg.qr(rng.standard_normal((d, min(d, n - start))))[0].T for start in range(0, n, d)
    ]
    axes = np.ascontiguousarray(np.concatenate(bases))
    return np.sqrt(rng.chisquare(d, n))[:, None] * axes
