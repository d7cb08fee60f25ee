"""Kernels made of kernels: sums, products, multiples."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from mercer._run.types import FloatArray
from mercer.kernels.base import Kernel, RowsAgainst
from mercer.rows.rows import BlockRows, Rows


class _Combined(Kernel):
    """Several kernels whose matrices are combined entry by entry."""

    combine: Any = None  # an in-place-able numpy ufunc

    def __init__(self, kernels: list[Kernel]) -> None:
        self.kernels = kernels

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; the i-th kernel's are named ``k{i}__…`` when deep."""
        params: dict[str, Any] = {"kernels": self.kernels}
        if deep:
            for i, kernel in enumerate(self.kernels):
                params[f"k{i}"] = kernel
                params |= {f"k{i}__{name}": v for name, v in kernel.get_params().items()}
        return params

    def set_params(self, **params: Any) -> _Combined:
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

    def resolve(self, X: Rows, weights: FloatArray, **how: Any) -> Kernel:
        return type(self)([kernel.resolve(X, weights, **how) for kernel in self.kernels])

    @property
    def has_units(self) -> bool:  # type: ignore[override]
        return all(kernel.has_units for kernel in self.kernels)

    def in_units(self, exponent: int) -> Kernel:
        return type(self)([kernel.in_units(exponent) for kernel in self.kernels])

    def named_columns(self, names: tuple[str, ...] | None) -> Kernel:
        return type(self)([kernel.named_columns(names) for kernel in self.kernels])

    def movable(self, X: Rows) -> Any:
        return _all_movable([kernel.movable(X) for kernel in self.kernels], X)

    def check_values(self, low: float) -> None:
        for kernel in self.kernels:
            kernel.check_values(low)

    def parts(self) -> list[Kernel]:
        return [part for kernel in self.kernels for part in kernel.parts()]


class Sum(_Combined):
    """k₁ + k₂ + …"""

    combine = np.add


class Product(_Combined):
    """k₁ · k₂ · …"""

    combine = np.multiply


class Scaled(Kernel):
    """c · k, for c > 0."""

    def __init__(self, factor: float, kernel: Kernel) -> None:
        self.factor = factor
        self.kernel = kernel

    def against(self, Y: Rows) -> RowsAgainst:
        if not self.factor > 0 or not np.isfinite(self.factor):
            raise ValueError(f"a kernel can be multiplied by a positive number, not {self.factor}")
        matrix = self.kernel.against(Y)
        return lambda X: matrix(X) * X.dtype.type(self.factor)

    def diagonal(self, X: Rows) -> FloatArray:
        return self.kernel.diagonal(X) * X.dtype.type(self.factor)

    def resolve(self, X: Rows, weights: FloatArray, **how: Any) -> Kernel:
        return Scaled(self.factor, self.kernel.resolve(X, weights, **how))

    @property
    def has_units(self) -> bool:  # type: ignore[override]
        return self.kernel.has_units

    def in_units(self, exponent: int) -> Kernel:
        return Scaled(self.factor, self.kernel.in_units(exponent))

    def named_columns(self, names: tuple[str, ...] | None) -> Kernel:
        return Scaled(self.factor, self.kernel.named_columns(names))

    def movable(self, X: Rows) -> Any:
        return self.kernel.movable(X)

    def check_values(self, low: float) -> None:
        self.kernel.check_values(low)

    def parts(self) -> list[Kernel]:
        return self.kernel.parts()


def _all_movable(masks: list[Any], X: Rows) -> Any:
    if isinstance(X, BlockRows):
        return tuple(reduce(np.logical_and, blocks) for blocks in zip(*masks, strict=True))
    return reduce(np.logical_and, masks)
