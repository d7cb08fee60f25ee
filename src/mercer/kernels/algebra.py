"""Kernels made of kernels: sums, products, multiples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from mercer._run.types import FloatArray
from mercer.kernels.base import Kernel, RowsAgainst
from mercer.rows.rows import BlockRows, Rows


class Composite(Kernel):
    """A kernel that asks the kernels it is made of."""

    def members(self) -> Sequence[Kernel]:
        """The kernels it is made of."""
        raise NotImplementedError

    def _of(self, kernels: list[Kernel]) -> Kernel:
        """The same combination of other kernels."""
        raise NotImplementedError

    def resolve(self, X: Rows, weights: FloatArray, **how: Any) -> Kernel:
        return self._of([kernel.resolve(X, weights, **how) for kernel in self.members()])

    @property
    def has_units(self) -> bool:  # type: ignore[override]
        return all(kernel.has_units for kernel in self.members())

    def in_units(self, exponent: int) -> Kernel:
        return self._of([kernel.in_units(exponent) for kernel in self.members()])

    def named_columns(self, names: tuple[str, ...] | None) -> Kernel:
        return self._of([kernel.named_columns(names) for kernel in self.members()])

    def movable(self, X: Rows) -> Any:
        masks = [kernel.movable(X) for kernel in self.members()]
        if isinstance(X, BlockRows):
            return tuple(reduce(np.logical_and, blocks) for blocks in zip(*masks, strict=True))
        return reduce(np.logical_and, masks)

    def check_values(self, low: float) -> None:
        for kernel in self.members():
            kernel.check_values(low)

    def parts(self) -> list[Kernel]:
        return [part for kernel in self.members() for part in kernel.parts()]

    @property
    def is_function(self) -> bool:  # type: ignore[override]
        return any(kernel.is_function for kernel in self.members())


class Entrywise(Composite):
    """Several kernels whose matrices are combined entry by entry."""

    combine: Any = None  # a numpy ufunc of two arrays

    def __init__(self, kernels: list[Kernel]) -> None:
        self.kernels = kernels

    def members(self) -> Sequence[Kernel]:
        return self.kernels

    def _of(self, kernels: list[Kernel]) -> Kernel:
        return type(self)(kernels)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; those of the i-th kernel are named ``k{i}__…`` if `deep`."""
        params: dict[str, Any] = {"kernels": self.kernels}
        if deep:
            for i, kernel in enumerate(self.kernels):
                params[f"k{i}"] = kernel
                params |= {f"k{i}__{name}": v for name, v in kernel.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Entrywise:
        for i in range(len(self.kernels)):
            if f"k{i}" in params:
                self.kernels = [*self.kernels[:i], params.pop(f"k{i}"), *self.kernels[i + 1 :]]
        super().set_params(**params)
        return self

    def against(self, Y: Rows) -> RowsAgainst:
        parts = [kernel.against(Y) for kernel in self.kernels]
        return lambda X: reduce(type(self).combine, (part(X) for part in parts))

    def diagonal(self, X: Rows) -> FloatArray:
        diagonal: FloatArray = reduce(type(self).combine, (k.diagonal(X) for k in self.kernels))
        return diagonal

    def check_structure(self) -> None:
        is_list = isinstance(self.kernels, list) and len(self.kernels) > 0
        if not (is_list and all(isinstance(kernel, Kernel) for kernel in self.kernels)):
            raise TypeError("a sum or product of things that are not kernels")


class Sum(Entrywise):
    """The sum of kernels, k₁ + k₂ + …

    Parameters
    ----------
    kernels : list of Kernel
        The terms; ``k1 + k2`` makes the same.
    """

    combine = np.add


class Product(Entrywise):
    """The product of kernels, k₁ · k₂ · …

    Parameters
    ----------
    kernels : list of Kernel
        The factors; ``k1 * k2`` makes the same.
    """

    combine = np.multiply

    def block_scale(self, variances: Rows) -> FloatArray:
        scale: FloatArray = np.prod([k.block_scale(variances) for k in self.kernels], axis=0)
        return scale


class Scaled(Composite):
    """A multiple of a kernel, c · k.

    Parameters
    ----------
    factor : float
        c, a positive number.
    kernel : Kernel
        k; ``c * k`` makes the same.
    """

    def __init__(self, factor: float, kernel: Kernel) -> None:
        self.factor = factor
        self.kernel = kernel

    def members(self) -> Sequence[Kernel]:
        return (self.kernel,)

    def _of(self, kernels: list[Kernel]) -> Kernel:
        return Scaled(self.factor, *kernels)

    def against(self, Y: Rows) -> RowsAgainst:
        if not self.factor > 0 or not np.isfinite(self.factor):
            raise ValueError(
                f"factor={self.factor} of a kernel must be a positive number: a negative multiple "
                "is not positive semi-definite"
            )
        matrix = self.kernel.against(Y)
        return lambda X: matrix(X) * X.dtype.type(self.factor)

    def diagonal(self, X: Rows) -> FloatArray:
        return self.kernel.diagonal(X) * X.dtype.type(self.factor)

    def block_scale(self, variances: Rows) -> FloatArray:
        return self.kernel.block_scale(variances)

    def check_structure(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError("a multiple of something that is not a kernel")
