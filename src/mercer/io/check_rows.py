"""Are the rows, formats and kernels of a model file sound? Shapes fit, numbers are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.io.damage import damaged, demand, reason
from mercer.kernels.algebra import Product, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.given import Precomputed
from mercer.rows.format import RowFormat
from mercer.rows.rows import BlockRows, Rows, part

LISTED = 10**5  # columns of a range that is not a slice: they are listed one by one
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
MOST_EXPONENT = 500  # of the unit of rows: squares of larger values leave float64


def is_array(value: Any, ndim: int, kind: str = "f") -> bool:
    """Is this a dense array of numbers of this kind, all finite?"""
    return (
        isinstance(value, np.ndarray)
        and value.ndim == ndim
        and value.dtype.kind == kind
        and bool(np.isfinite(value).all())
    )


def is_double(value: Any, ndim: int) -> bool:
    """The same in float64, which jitted loops were compiled for."""
    return is_array(value, ndim) and value.dtype == np.float64


def is_table(rows: Any) -> bool:
    """Is this a dense or CSR table of numbers, with a row and a column at least?"""
    if sp.issparse(rows):
        return rows.ndim == 2 and min(rows.shape) > 0 and is_array(rows.data, 1)
    return is_array(rows, 2) and min(rows.shape) > 0


def check_row_format(row_format: RowFormat) -> None:
    """A floating type, a shift or none, and formats for the blocks."""
    shift, blocks = row_format.shift, row_format.blocks
    is_floating = isinstance(row_format.dtype, np.dtype) and row_format.dtype in FLOATS
    demand(is_floating, "the format of the rows has no floating type")
    demand(shift is None or is_array(shift, 1), "the shift of the rows is no array of numbers")
    exponent = row_format.exponent
    is_exponent = type(exponent) is int and abs(exponent) <= MOST_EXPONENT
    is_shared = all(getattr(block, "exponent", exponent) == exponent for block in blocks)
    demand(is_exponent and is_shared, "the unit of the rows is no power of two in range")
    demand(
        isinstance(blocks, tuple) and all(isinstance(block, RowFormat) for block in blocks),
        "the format of the rows has blocks that are no formats",
    )
    names, widths = row_format.names, row_format.widths
    is_named = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    is_sized = isinstance(widths, tuple) and all(type(width) is int for width in widths)
    demand(
        is_named and is_sized and len(names) == len(widths) == len(blocks),
        "the format of the rows does not name each block and its width",
    )


def check_block_rows(rows: BlockRows) -> None:
    """One name per part, and the same number of rows in each."""
    names, parts = rows.names, rows.parts
    demand(
        isinstance(names, tuple) and all(isinstance(name, str) for name in names),
        "the names of the column blocks are no names",
    )
    demand(
        isinstance(parts, tuple) and len(parts) == len(set(names)) == len(names) > 0,
        "the column blocks and their names do not match",
    )
    demand(all(map(is_table, parts)), "a column block is no table of numbers")
    demand(len({part.shape[0] for part in parts}) == 1, "the column blocks differ in length")


def check_format_fits(row_format: RowFormat, rows: Rows) -> None:
    """Rows like these can be brought into the format."""
    if isinstance(rows, BlockRows):
        demand(
            len(row_format.blocks) == len(rows.parts) and row_format.shift is None,
            "the format of the rows does not match the column blocks",
        )
        widths = tuple(int(table.shape[1]) for table in rows.parts)
        demand(
            row_format.names == rows.names and row_format.widths == widths,
            "the format of the rows names other column blocks, or other widths of them",
        )
        for block, table in zip(row_format.blocks, rows.parts, strict=True):
            check_format_fits(block, table)
        return
    demand(not row_format.blocks, "the format of the rows has blocks, but the pivots have none")
    shift = row_format.shift
    demand(
        shift is None or (not sp.issparse(rows) and len(shift) == rows.shape[1]),
        "the shift of the rows does not match their columns",
    )


def check_combination(kernel: Any) -> None:
    """A kernel made of kernels is made of nothing else."""
    if isinstance(kernel, Scaled):
        demand(isinstance(kernel.kernel, Kernel), "a multiple of something that is no kernel")
    if isinstance(kernel, Sum | Product):
        kernels = kernel.kernels
        sound = isinstance(kernels, list) and all(isinstance(k, Kernel) for k in kernels)
        demand(sound and len(kernels) > 0, "a sum or product of things that are no kernels")


def check_kernel(kernel: Any, pivots: Rows) -> None:
    """The kernel's parameters and columns are such that it can look at the pivots."""
    demand(isinstance(kernel, Kernel), f"the kernel is a {type(kernel).__name__}")
    first = part(pivots, 0, 1)
    check_columns(kernel, first.shape[1])
    try:
        kernel.against(first)
        if not isinstance(kernel, Precomputed):
            kernel.diagonal(first)
    except Exception as error:
        raise damaged(f"its kernel cannot look at its own pivots ({reason(error)})") from error


def check_columns(kernel: Kernel, n_columns: int) -> None:
    """The kernel looks at columns that are there.

    These are looked up, not tried out: scipy crashes on some that are not.
    """
    for columns in (simple.columns for simple in kernel.parts()):
        if columns is None or isinstance(columns, str | int | slice):
            continue
        chosen = columns.tolist() if isinstance(columns, np.ndarray) else columns
        if isinstance(chosen, range):
            ends = [*chosen[:1], *chosen[-1:]]
            is_short = len(chosen) <= LISTED or min(ends) >= 0
            demand(is_short, "its kernel looks at a long range of columns, counted from the end")
            chosen = ends
        demand(isinstance(chosen, list | tuple), "its kernel looks at columns that are no numbers")
        is_ids = all(type(c) is int and -n_columns <= c < n_columns for c in chosen)
        is_mask = all(type(c) is bool for c in chosen) and len(chosen) == n_columns
        demand(is_ids or is_mask, f"its kernel looks at columns that are not among {n_columns}")
