"""Values that a kernel is defined for."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._run.records import expect
from mercer.kernels.base import Kernel, column_index
from mercer.rows.rows import Rows, part
from mercer.rows.summary import Columns, Summary

DOUBLE_RANGE = (1e-140, 1e140)
LISTED = 10**5  # columns of a range that is not a slice: they are listed one by one


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
    for simple in kernel.parts():
        simple.check_values(float(_selected_low(simple, summary, columns)))


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


def check_kernel(kernel: Kernel, rows: Rows) -> None:
    """Refuse (ValueError) a kernel whose parameters or columns do not fit these rows."""
    first = part(rows, 0, 1)
    check_columns(kernel, first.shape[1])
    try:
        kernel.against(first)
        if not kernel.is_precomputed:
            kernel.diagonal(first)
    except Exception as error:
        raise ValueError(f"the kernel cannot be evaluated on its pivots ({error})") from error


def check_columns(kernel: Kernel, n_columns: int) -> None:
    """Refuse (ValueError) a kernel that looks at columns which are not there.

    The numbers are compared, not tried: scipy crashes on some that are out of range.
    """
    for columns in (simple.columns for simple in kernel.parts()):
        if columns is None or isinstance(columns, str | int | slice):
            continue
        chosen = columns.tolist() if isinstance(columns, np.ndarray) else columns
        if isinstance(chosen, range):
            ends = [*chosen[:1], *chosen[-1:]]
            is_short = len(chosen) <= LISTED or min(ends) >= 0
            expect(is_short, "the kernel's columns are a long range counted from the end")
            chosen = ends
        expect(isinstance(chosen, list | tuple), "the kernel's columns are not numbers")
        is_ids = all(type(c) is int and -n_columns <= c < n_columns for c in chosen)
        is_mask = all(type(c) is bool for c in chosen) and len(chosen) == n_columns
        expect(is_ids or is_mask, f"the kernel's columns are out of range: X has {n_columns}")


def n_selected(columns: Any, n_features: int) -> int:
    """How many of so many columns a kernel looks at; 0 if it names a block."""
    if columns is None or isinstance(columns, slice):
        return len(range(n_features)[columns or slice(None)])
    if isinstance(columns, str | int):
        return 0
    is_mask = len(columns) > 0 and isinstance(columns[0], bool | np.bool_)
    return int(sum(columns)) if is_mask else len(columns)
