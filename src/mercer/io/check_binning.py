"""Random binning in a model file: what it keeps, and whether what was read is sound.

Loops without bounds checks follow the slots of known bins, so a file is not trusted with them: it
holds the bins' hashes, and the slots are made anew. What is found is the same.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.types import IdArray
from mercer.factors.binning import (
    MOST_BINS,
    REFERENCES,
    BinComponents,
    BinningFactor,
    Grids,
    KnownBins,
    n_slots,
)
from mercer.io.allowance import Allowance
from mercer.io.check_rows import check_format_fits, check_kernel, is_array, is_double, is_table
from mercer.io.damage import demand
from mercer.kernels.exponential import Laplacian
from mercer.rows.format import RowFormat
from mercer.rows.rows import BlockRows

MOST_GRIDS = 2**16
MOST_RUN = 512  # slots: half of them are free, so honest hashes make runs of a hundred at most
KEY_BYTES = 56  # for each key of a grid, while its hashes are checked


@dataclass(frozen=True, slots=True)
class BinList:
    """The known bins as a file holds them."""

    keys: IdArray  # (D,) int64: the bits of their hashes
    starts: IdArray  # (R + 1,) int64

    @classmethod
    def of(cls, bins: KnownBins) -> BinList:
        if len(bins.starts) > MOST_GRIDS:
            raise ValueError(f"a model file holds fewer than {MOST_GRIDS:,} grids; lower rank")
        return cls(bins.keys.view(np.int64), bins.starts)

    def rebuilt(self, allowance: Allowance) -> KnownBins:
        """The bins, with slots that were made here."""
        n_bins = np.diff(self.starts)
        allowance.hold(16 * len(self.keys))  # slots
        allowance.borrow(KEY_BYTES * max(int(n_bins.max()), 1))
        keys = self.keys.view(np.uint64)
        for g in np.flatnonzero(n_bins > MOST_RUN):
            run = _longest_run(keys[self.starts[g] : self.starts[g + 1]])
            demand(run <= MOST_RUN, f"the hashes of {run:,} known bins fall into one place")
        return KnownBins.of(keys, self.starts)


def _longest_run(keys: NDArray[np.uint64]) -> int:
    """The longest run of slots without a free one, in a circle, if these keys are filled in."""
    size = n_slots(len(keys))
    places = np.sort((keys & np.uint64(size - 1)).astype(np.int64))
    numbers = np.arange(len(keys))
    first = int(np.argmax(places - numbers))  # no run leads from before into this one's slot
    places = np.concatenate([places[first:], places[:first] + size])
    taken = np.maximum.accumulate(places - numbers) + numbers
    ends = np.flatnonzero(np.diff(taken, append=taken[-1] + 2) > 1)
    return int(np.diff(ends, prepend=-1).max())


def check_grids(grids: Grids) -> None:
    """Each grid has dimensions of the box, and cells of positive size."""
    low, high, dims = grids.low, grids.high, grids.dims
    is_box = is_double(low, 1) and is_double(high, 1) and len(low) == len(high) > 0
    demand(is_box and bool((low <= high).all()), "the box of the grids is no box")
    _check_starts(grids.starts, dims, "the dimensions of the grids")
    is_dims = is_array(dims, 1, "i") and dims.dtype == np.int32
    demand(
        is_dims and bool(((dims >= 0) & (dims < len(low))).all()),
        "a grid divides a dimension that the box has not",
    )
    parts = (grids.scales, grids.biases)
    demand(
        all(is_double(part, 1) and len(part) == len(dims) for part in parts),
        "the widths and offsets of the grids do not match their dimensions",
    )
    demand(bool((grids.scales > 0).all()), "a grid has a width that is not positive")
    is_bias = bool(((grids.biases >= 0) & (grids.biases < 1)).all())
    demand(is_bias, "a grid has an offset outside its first cell")


def check_bin_list(bins: BinList) -> None:
    """Hashes, divided among grids; no two alike in one."""
    keys = bins.keys
    is_keys = is_array(keys, 1, "i") and keys.dtype == np.int64
    demand(is_keys and 0 < len(keys) <= MOST_BINS, "the known bins have no hashes")
    _check_starts(bins.starts, keys, "the known bins")
    demand(len(bins.starts) <= MOST_GRIDS, f"there are {MOST_GRIDS:,} grids or more")
    for start, stop in itertools.pairwise(bins.starts.tolist()):
        again = np.diff(np.sort(keys[start:stop])) == 0
        demand(not again.any(), "a bin is known twice")


def check_binning_factor(factor: BinningFactor) -> None:
    """Any row finds its bins, or a reference row instead."""
    demand(isinstance(factor.format, RowFormat), "the factor has no format for its rows")
    demand(isinstance(factor.grids, Grids), "the factor has no grids")
    demand(isinstance(factor.bins, KnownBins), "the factor has no known bins")
    demand(
        len(factor.grids.starts) == len(factor.bins.starts),
        "the known bins are not those of the grids",
    )
    rows, kernel = factor.references, factor.kernel
    demand(isinstance(rows, BlockRows) or is_table(rows), "the reference rows are no table")
    demand(0 < rows.shape[0] <= REFERENCES, "there are no reference rows, or too many")
    check_format_fits(factor.format, rows)
    demand(isinstance(kernel, Laplacian), "the kernel is not that of random binning")
    check_kernel(kernel, rows)
    n_columns = kernel.select(rows).shape[1]
    demand(
        n_columns == len(factor.grids.low),
        f"the kernel looks at {n_columns} columns, but the grids have {len(factor.grids.low)}",
    )
    is_count = type(factor.components) is int and factor.components > 0
    demand(is_count, "the number of components is no number")
    demand(factor.training_bins is None, "the factor holds bins of rows that it was fitted on")


def check_bin_components(factor: BinComponents) -> None:
    """There is a vector for each known bin."""
    demand(isinstance(factor.binning, BinningFactor), "the components have no bins")
    check_bin_vectors(factor.vectors, factor.binning)
    demand(isinstance(factor.trace_error, float), "the trace error is no number")
    demand(factor.training_rows is None, "the factor holds rows that it was fitted on")


def check_bin_vectors(vectors: Any, factor: BinningFactor) -> None:
    """A float32 vector for each known bin."""
    is_vectors = is_array(vectors, 2) and vectors.dtype == np.float32 and vectors.shape[1] > 0
    demand(
        is_vectors and len(vectors) == len(factor.bins),
        f"the vectors do not match the {len(factor.bins)} known bins",
    )


def check_binning_model(model: Any) -> None:
    """Rows have the columns of the reference rows, and the kernel is the factor's."""
    factor = model.factor_
    binning = factor.binning if isinstance(factor, BinComponents) else factor
    n_columns = binning.references.shape[1]
    demand(
        n_columns == model.n_features_in_,
        f"the reference rows have {n_columns} columns, but n_features_in_ is "
        f"{model.n_features_in_}",
    )
    kernel = model.kernel_
    own = binning.kernel.in_units(-binning.format.exponent)
    is_same = isinstance(kernel, Laplacian) and kernel.gamma == own.gamma
    demand(is_same, "the kernel is not that of the grids")
    check_kernel(kernel, binning.references)


def _check_starts(starts: Any, items: Any, what: str) -> None:
    is_starts = is_array(starts, 1, "i") and starts.dtype == np.int64 and len(starts) > 1
    demand(
        is_starts
        and bool((starts[1:] >= starts[:-1]).all())
        and starts[0] == 0
        and isinstance(items, np.ndarray)
        and starts[-1] == len(items),
        f"{what} are not divided among the grids",
    )
