"""Are the factors and estimators of a model file sound? What belongs together fits together.

A file can be whole and still be wrong; after these checks `predict` meets no surprise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.factors.binning import BinComponents
from mercer.factors.dense import PivotFactor
from mercer.factors.fourier import FourierFactor
from mercer.factors.quantized import QuantizedFactor
from mercer.io.check_binning import check_binning_model
from mercer.io.check_rows import (
    check_columns,
    check_format_fits,
    check_kernel,
    is_array,
    is_table,
)
from mercer.io.damage import demand
from mercer.kernels.base import Kernel
from mercer.kernels.given import Precomputed
from mercer.rows.format import RowFormat
from mercer.rows.rows import BlockRows


def check_pivot_factor(factor: PivotFactor) -> None:
    """F = k(X, pivots) @ mix can be computed."""
    pivots, ids, mix = factor.pivots, factor.pivot_ids, factor.mix
    is_rows = isinstance(pivots, BlockRows) or is_table(pivots)
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
        check_format_fits(factor.format, pivots)
    check_kernel(factor.kernel, pivots)


def check_fourier_factor(factor: FourierFactor) -> None:
    """There is a cosine and a sine for each wave, but for the last of an odd rank."""
    waves, phases, rank = factor.waves, factor.phases, factor.rank
    demand(isinstance(factor.kernel, Kernel), "the factor has no kernel")
    demand(isinstance(factor.format, RowFormat), "the factor has no format for its rows")
    demand(is_table(waves), "the waves are no table of numbers")
    demand(
        is_array(phases, 1) and len(phases) == waves.shape[0],
        "the phases of the waves do not match the waves",
    )
    demand(
        type(rank) is int and rank > 0 and -(-rank // 2) == len(phases),
        f"the factor's rank does not match its {len(phases)} waves",
    )
    demand(isinstance(factor.kernel_error, float), "the kernel error is no number")


def check_factor_model(model: Any) -> None:
    """The factor, the kernel and the columns of a model belong together."""
    check_features(model)
    check_columns(model.kernel_, model.n_features_in_)
    FACTORS[type(model.factor_)](model)


def check_features(model: Any) -> None:
    """The features have a number, and names or none."""
    n_features = model.n_features_in_
    demand(0 < n_features < 2**62, "n_features_in_ is no number of features")
    names = getattr(model, "feature_names_in_", None)
    demand(
        names is None or (names.dtype == object and names.shape == (n_features,)),
        "feature_names_in_ does not name each feature once",
    )
    pivots = getattr(model, "pivots_", None)
    demand(pivots is None or is_array(pivots, 1, "i"), "the numbers of the pivots are no numbers")


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


def _check_pivot_model(model: Any) -> None:
    """The pivots have the columns that rows will have, or are among them if precomputed."""
    factor, n_features = model.factor_, model.n_features_in_
    if model.kernel_ is not factor.kernel:
        check_kernel(model.kernel_, factor.pivots)
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
        bool(((items >= 0) & (items < n_features)).all())
        and factor.format.shift is None
        and factor.format.exponent == 0,
        f"a pivot is not among the {n_features} items of the precomputed kernel",
    )


def _check_fourier_model(model: Any) -> None:
    """The waves have the columns that the kernel looks at."""
    factor, n_features = model.factor_, model.n_features_in_
    check_columns(factor.kernel, n_features)
    columns, row_format = factor.kernel.columns, factor.format
    if row_format.blocks:
        is_block = isinstance(columns, str) or columns in range(len(row_format.blocks))
        demand(is_block, "the kernel does not say which column block it looks at")
        return
    n_waved, n_selected = factor.waves.shape[1], _n_selected(columns, n_features)
    demand(
        n_waved == n_selected,
        f"the waves have {n_waved} columns, but the kernel looks at {n_selected}",
    )
    demand(
        row_format.shift is None
        or (len(row_format.shift) == n_features and not sp.issparse(factor.waves)),
        "the shift of the rows does not match their columns",
    )


def _n_selected(columns: Any, n_features: int) -> int:
    """How many columns a kernel looks at, of so many; 0 if it names a block."""
    if columns is None or isinstance(columns, slice):
        return len(range(n_features)[columns or slice(None)])
    if isinstance(columns, str | int):
        return 0
    is_mask = len(columns) > 0 and isinstance(columns[0], bool | np.bool_)
    return int(sum(columns)) if is_mask else len(columns)


# How a model with each kind of factor is checked. A new factor is a new line.
FACTORS: dict[type[Any], Callable[[Any], None]] = {
    PivotFactor: _check_pivot_model,
    QuantizedFactor: _check_pivot_model,
    FourierFactor: _check_fourier_model,
    BinComponents: check_binning_model,
}
