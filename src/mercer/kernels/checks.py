"""Values that a kernel is defined for."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.base import Kernel, column_index
from mercer.rows.summary import Columns, Summary

DOUBLE_RANGE = (1e-140, 1e140)


def check_values(kernel: Kernel, summary: Summary, columns: Columns) -> None:
    """Refuse values whose squares leave float64, or that the kernel is not defined for."""
    low, high = DOUBLE_RANGE
    if summary.magnitude > high:
        raise ValueError(
            f"X has values up to {summary.magnitude:.3g}, whose squares overflow; "
            "scale its columns, e.g. with sklearn.preprocessing.StandardScaler"
        )
    if 0 < summary.extent < low:
        raise ValueError(
            f"the values of X differ by at most {2 * summary.extent:.3g}, whose square "
            "underflows to 0; scale its columns, e.g. with sklearn.preprocessing.StandardScaler"
        )
    for part in kernel.parts():
        part.check_values(float(_selected_low(part, summary, columns)))


def _selected_low(kernel: Kernel, summary: Summary, columns: Columns) -> float:
    """The smallest value in the columns this kernel looks at."""
    low = summary.low
    if summary.blocks:
        names: Any = columns.names
        number = names.index(kernel.columns) if kernel.columns in names else kernel.columns
        low = summary.blocks[number].low if isinstance(number, int) else low
    elif not isinstance(kernel.columns, str | int):
        low = low[column_index(kernel.columns, len(low))]
    return float(low.min(initial=np.inf))
