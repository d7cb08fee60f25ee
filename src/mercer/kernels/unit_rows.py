"""Any kernel of rows scaled to unit length: what the angle between rows makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer._run.types import FloatArray
from mercer.kernels.algebra import Composite
from mercer.kernels.base import Kernel, RowsAgainst
from mercer.rows.format import unit_rows
from mercer.rows.rows import BlockRows, Rows, cast


class UnitRows(Composite):
    """k(x/‖x‖, y/‖y‖): a kernel of rows scaled to unit length.

    What ``kernel="cosine"`` stands for where an approximation has a kernel of its own: Euclidean
    distances between rows of unit length are those of their angles, ‖x - y‖² = 2 - 2 cos. Rows of
    zeros stay zero.

    Parameters
    ----------
    kernel : Kernel
        k. Rows are scaled by all of their columns, whichever of them k looks at.

    Examples
    --------
    >>> from mercer.kernels import RBF, UnitRows
    >>> UnitRows(RBF(0.5))([[3.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    scales_rows = True

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def of_unit_rows(self) -> Kernel:
        inner: Kernel = clone(self.kernel)
        return inner

    @property
    def gamma(self) -> Any:
        return self.kernel.gamma

    @property
    def has_bandwidth(self) -> bool:  # type: ignore[override]
        return self.kernel.has_bandwidth

    @property
    def has_units(self) -> bool:  # type: ignore[override]
        return True

    def in_units(self, exponent: int) -> Kernel:
        return UnitRows(clone(self.kernel))

    def members(self) -> Sequence[Kernel]:
        return (self.kernel,)

    def _of(self, kernels: list[Kernel]) -> Kernel:
        return UnitRows(*kernels)

    def movable(self, X: Rows) -> Any:
        """None of the columns: a shift changes angles."""
        if isinstance(X, BlockRows):
            return tuple(np.zeros(part.shape[1], bool) for part in X.parts)
        return np.zeros(X.shape[1], bool)

    def resolve(self, X: Rows, weights: FloatArray, **how: Any) -> Kernel:
        return UnitRows(self.kernel.resolve(_scaled(X), weights, **how))

    def with_gamma(self, gamma: float) -> Kernel:
        return UnitRows(self.kernel.with_gamma(gamma))

    def against(self, Y: Rows) -> RowsAgainst:
        matrix = self.kernel.against(_scaled(Y))
        return lambda X: matrix(_scaled(X))

    def diagonal(self, X: Rows) -> FloatArray:
        return self.kernel.diagonal(_scaled(X))

    def distances(self, X: Rows, Y: Rows) -> FloatArray:
        return self.kernel.distances(_scaled(X), _scaled(Y))

    def check_structure(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError("UnitRows of something that is not a kernel")


def _scaled(X: Rows) -> Rows:
    if isinstance(X, BlockRows):
        raise ValueError(
            "UnitRows scales the rows of one table, but X has column blocks; use "
            "Cosine(columns=…), or one table"
        )
    return cast(unit_rows(X), X.dtype)
