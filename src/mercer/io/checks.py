"""Is what a model file says sound? Shapes that fit each other, numbers that are numbers.

A file can be whole and still be wrong; after these checks `predict` meets no surprise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.data.format import RowFormat
from mercer.data.rows import BlockRows, Rows, part
from mercer.exceptions import ModelFileError
from mercer.factors.base import PivotFactor
from mercer.kernels.algebra import Product, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.given import Precomputed

__all__ = [
    "FACTORS",
    "check_block_rows",
    "check_combination",
    "check_factor_model",
    "check_kernel_kmeans",
    "check_pivot_factor",
    "check_row_format",
    "damaged",
    "demand",
    "is_array",
]

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def damaged(
    problem: str, advice: str = "copy the file again, or save the model again"
) -> ModelFileError:
    """The error for a file that is not what it should be, in one sentence."""
    return ModelFileError(f"{problem}; {advice}")


def demand(holds: bool, problem: str) -> None:
    """Refuse the file unless the condition holds."""
    if not holds:
        raise damaged(problem)


def is_array(value: Any, ndim: int, kind: str = "f") -> bool:
    """Is this a dense array of numbers of this kind, all finite?"""
    return (
        isinstance(value, np.ndarray)
        and value.ndim == ndim
        and value.dtype.kind == kind
        and bool(np.isfinite(value).all())
    )


def check_combination(kernel: Any) -> None:
    """A kernel made of kernels is made of nothing else."""
    if isinstance(kernel, Scaled):
        demand(isinstance(kernel.kernel, Kernel), "a multiple of something that is no kernel")
    if isinstance(kernel, Sum | Product):
        kernels = kernel.kernels
        sound = isinstance(kernels, list) and all(isinstance(k, Kernel) for k in kernels)
        demand(sound and len(kernels) > 0, "a sum or product of things that are no kernels")


def check_row_format(row_format: RowFormat) -> None:
    """A floating type, a shift or none, and formats for the blocks."""
    shift, blocks = row_format.shift, row_format.blocks
    is_floating = isinstance(row_format.dtype, np.dtype) and row_format.dtype in FLOATS
    demand(is_floating, "the format of the rows has no floating type")
    demand(shift is None or is_array(shift, 1), "the shift of the rows is no array of numbers")
    demand(
        isinstance(blocks, tuple) and all(isinstance(block, RowFormat) for block in blocks),
        "the format of the rows has blocks that are no formats",
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
    demand(all(map(_is_table, parts)), "a column block is no table of numbers")
    demand(len({part.shape[0] for part in parts}) == 1, "the column blocks differ in length")


def check_pivot_factor(factor: PivotFactor) -> None:
    """F = k(X, pivots) @ mix can be computed."""
    pivots, ids, mix = factor.pivots, factor.pivot_ids, factor.mix
    is_rows = isinstance(pivots, BlockRows) or _is_table(pivots)
    demand(is_rows, "the pivots are no table of numbers")
    demand(is_array(mix, 2) and min(mix.shape) > 0, "the factor's mix is no matrix of numbers")
    demand(
        mix.shape[0] == pivots.shape[0],
        f"the factor has {pivots.shape[0]} pivots, but its mix has {mix.shape[0]} rows",
    )
    demand(
        is_array(ids, 1, "i") and len(ids) == len(mix),
        "the numbers of the pivots do not match the pivots",
    )
    error = factor.trace_error
    demand(error is None or isinstance(error, float), "the trace error is no number")
    demand(isinstance(factor.format, RowFormat), "the factor has no format for its rows")
    if not isinstance(factor.kernel, Precomputed):
        _check_format_fits(factor.format, pivots)
    _check_kernel(factor.kernel, pivots)


def check_factor_model(model: Any) -> None:
    """The factor, the kernel and the columns of a model belong together."""
    demand(model.n_features_in_ > 0, f"n_features_in_ is {model.n_features_in_}")
    FACTORS[type(model.factor_)](model)
    names = getattr(model, "feature_names_in_", None)
    demand(
        names is None or len(names) == model.n_features_in_,
        "there are more or fewer feature names than features",
    )


def check_kernel_kmeans(model: Any) -> None:
    """The centres live in the factor's space."""
    check_factor_model(model)
    centers, weights = model.cluster_centers_, model.cluster_weights_
    demand(is_array(centers, 2) and len(centers) > 0, "the centres are no matrix of numbers")
    demand(
        centers.shape[1] == model.factor_.rank,
        f"the centres have {centers.shape[1]} columns, but the factor has rank "
        f"{model.factor_.rank}",
    )
    demand(
        is_array(weights, 1) and len(weights) == len(centers),
        "the weights of the clusters do not match the centres",
    )


def _is_table(rows: Any) -> bool:
    """Is this a dense or CSR table of numbers, with a row and a column at least?"""
    if sp.issparse(rows):
        return rows.ndim == 2 and min(rows.shape) > 0 and is_array(rows.data, 1)
    return is_array(rows, 2) and min(rows.shape) > 0


def _check_format_fits(row_format: RowFormat, rows: Rows) -> None:
    """Rows like these can be brought into the format."""
    if isinstance(rows, BlockRows):
        demand(
            len(row_format.blocks) == len(rows.parts) and row_format.shift is None,
            "the format of the rows does not match the column blocks",
        )
        for block, table in zip(row_format.blocks, rows.parts, strict=True):
            _check_format_fits(block, table)
        return
    demand(not row_format.blocks, "the format of the rows has blocks, but the pivots have none")
    shift = row_format.shift
    demand(
        shift is None or (not sp.issparse(rows) and len(shift) == rows.shape[1]),
        "the shift of the rows does not match their columns",
    )


def _check_pivot_model(model: Any) -> None:
    """The pivots have the columns that rows will have, or are among them if precomputed."""
    factor, n_features = model.factor_, model.n_features_in_
    if model.kernel_ is not factor.kernel:
        _check_kernel(model.kernel_, factor.pivots)
    if not isinstance(factor.kernel, Precomputed):
        n_columns = factor.pivots.shape[1]
        demand(
            n_columns == n_features,
            f"the pivots have {n_columns} columns, but n_features_in_ is {n_features}",
        )
        return
    items = factor.pivots
    demand(
        isinstance(items, np.ndarray) and items.shape[1] == 1,
        "the pivots of a precomputed kernel are one column of item numbers",
    )
    demand(
        bool(((items >= 0) & (items < n_features)).all()) and factor.format.shift is None,
        f"a pivot is not among the {n_features} items of the precomputed kernel",
    )


def _check_kernel(kernel: Any, pivots: Rows) -> None:
    """The kernel's parameters and columns are such that it can look at the pivots."""
    demand(isinstance(kernel, Kernel), f"the kernel is a {type(kernel).__name__}")
    first = part(pivots, 0, 1)
    for simple in kernel.parts():
        _check_selection(simple.columns, first.shape[1])
    try:
        kernel.against(first)
        if not isinstance(kernel, Precomputed):
            kernel.diagonal(first)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise damaged(f"its kernel cannot look at its own pivots ({reason})") from error


def _check_selection(columns: Any, n_columns: int) -> None:
    """The columns are there. (scipy would crash on some that are not, so none is tried out.)"""
    if columns is None or isinstance(columns, str | int | slice):
        return
    if isinstance(columns, range):
        columns = [*columns[:1], *columns[-1:]]
    try:
        chosen = np.asarray(columns)
    except ValueError as error:
        raise damaged("its kernel looks at columns that are no list of numbers") from error
    is_mask = chosen.dtype.kind == "b" and chosen.shape == (n_columns,)
    is_ids = chosen.dtype.kind == "i" and chosen.ndim == 1
    within = is_ids and bool(((chosen >= -n_columns) & (chosen < n_columns)).all())
    demand(is_mask or within, f"its kernel looks at columns that are not among {n_columns}")


# How a model with each kind of factor is checked. A new factor is a new line.
FACTORS: dict[type[Any], Callable[[Any], None]] = {PivotFactor: _check_pivot_model}
