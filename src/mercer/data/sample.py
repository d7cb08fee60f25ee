"""The rows that choose: distinct, weighted, in the form kernels see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._types import FloatArray, IdArray
from mercer.data.format import RowFormat
from mercer.data.inputs import as_source
from mercer.data.rows import Rows, cast
from mercer.data.summary import Columns, check_rows
from mercer.kernels.base import Kernel

__all__ = ["Sample", "as_sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows in memory that pivots and centres are chosen from."""

    rows: Rows  # as kernels see them: `format` has been applied
    weights: FloatArray  # (n,) float64, positive
    ids: IdArray  # (n,) their numbers in the source
    format: RowFormat
    inverse: IdArray | None = None  # (n_rows,) the place here of each row there, if all are here

    def __len__(self) -> int:
        return len(self.weights)

    def in_double(self) -> Sample:
        """The same in float64."""
        return replace(self, rows=cast(self.rows, np.float64), format=self.format.in_double())


def as_sample(kernel: Kernel | None, X: Any, sample_weight: FloatArray | None = None) -> Sample:
    """X as it stands, in its own order: for using a factor without an estimator around it.

    kernel None: what scales itself sees the rows in units of their own size.
    """
    if isinstance(X, Sample):
        return X
    source = as_source(X)
    raw = source.read(0, source.n_rows)
    if kernel is None and isinstance(raw, np.ndarray):
        summary = check_rows(raw, 0, Columns.of(source))
        exponent = summary.exponent(is_centred=True)
        row_format = RowFormat.centred(raw, source.dtype, np.ones(raw.shape[1], bool), exponent)
    else:
        movable = True if kernel is None else kernel.movable(raw)
        row_format = RowFormat.centred(raw, source.dtype, movable)
    weights = np.ones(source.n_rows) if sample_weight is None else np.asarray(sample_weight, float)
    return Sample(row_format.apply(raw), weights, np.arange(source.n_rows), row_format)
