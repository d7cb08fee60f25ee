"""A first pass over all rows: they must be finite, and their range is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.checkpoint import is_numbers
from mercer._run.frozen import frozen
from mercer._run.lazy import FEW_VALUES, LazyModule
from mercer._run.types import FloatArray
from mercer.rows.arrays import BlockSource
from mercer.rows.rows import BlockRows, Rows, take
from mercer.rows.source import Source
from mercer.rows.sweep import TileFunction, total

_jit = LazyModule("mercer.rows._jit")


@frozen
class Summary:
    """The range of each column; a tuple of summaries where the rows come in column blocks."""

    low: FloatArray  # (d,) float64
    high: FloatArray  # (d,)
    blocks: tuple[Summary, ...] = ()
    weighted: Summary | None = None  # of the rows of positive weight, where some have none

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return float(max(np.abs(self.low).max(initial=0), np.abs(self.high).max(initial=0)))

    @property
    def extent(self) -> float:
        """The largest distance between two values of one column (half, to stay finite)."""
        return float((self.high / 2 - self.low / 2).max(initial=0))

    def exponent(self, *, is_centred: bool) -> int:
        """Of the power of two just above the largest value (that remains after centring).

        Rows without weight are ignored.
        """
        rows = self.weighted or self
        return int(np.frexp(rows.extent if is_centred else rows.magnitude)[1])


def summarize(
    source: Source, *, block_rows: int, weights: FloatArray | None = None, threads: int = 1
) -> Summary:
    """Read every row once; raise ValueError at the first that is not finite."""
    make = ColumnRanges(Columns.of(source))
    along = None if weights is None or weights.min() > 0 else weights
    how: Any = {"block_rows": block_rows, "threads": threads, "stage": "check"}
    (low, *weighted_low), (high, *weighted_high) = total(source, make, _wider, along=along, **how)
    ends = np.cumsum(make.columns.widths)[:-1]
    blocks = zip(np.split(low, ends), np.split(high, ends), strict=True) if len(ends) else ()
    weighted = None if along is None else Summary(weighted_low[0], weighted_high[0])
    return Summary(low, high, tuple(Summary(*block) for block in blocks), weighted)


@frozen
class Columns:
    """The names of a source's columns and column blocks, for messages."""

    feature_names: tuple[str, ...] | None
    names: tuple[str, ...] = ()  # of column blocks
    widths: tuple[int, ...] = ()

    @classmethod
    def of(cls, source: Source) -> Columns:
        if not isinstance(source, BlockSource):
            return cls(source.feature_names)
        widths = tuple(part.n_features for part in source.sources)
        return cls(source.feature_names, source.names, widths)


@frozen
class ColumnRanges:
    """The smallest and largest value of each column in a tile: (1, d), or (2, d) with weights.

    The second row is of the rows of positive weight.
    """

    columns: Columns

    def __call__(self) -> TileFunction[tuple[FloatArray, FloatArray]]:
        return self._ranges

    def fits(self, result: Any, source: Source, along: FloatArray | None) -> bool:
        low, high = result
        shape = (1 if along is None else 2, source.n_features)
        if not all(is_numbers(end, shape) for end in (low, high)):
            return False
        first = check_rows(source.read(0, 1), 0, self.columns)
        return bool((low[0] <= first.low).all() and (first.high <= high[0]).all())

    def _ranges(
        self, rows: Rows, start: int, along: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        summary = check_rows(rows, start, self.columns)
        if along is None:
            return summary.low[None], summary.high[None]
        heavy = np.flatnonzero(along > 0)
        inner = check_rows(take(rows, heavy), start, self.columns)
        is_empty = len(heavy) == 0
        low = np.full_like(inner.low, np.inf) if is_empty else inner.low
        high = np.full_like(inner.high, -np.inf) if is_empty else inner.high
        return np.stack([summary.low, low]), np.stack([summary.high, high])


def _wider(
    a: tuple[FloatArray, FloatArray], b: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def check_rows(X: Rows, first_row: int, columns: Columns) -> Summary:
    """The range of a few rows that start at `first_row`; ValueError where one is not finite."""
    if isinstance(X, BlockRows):
        blocks = tuple(check_rows(part, first_row, columns) for part in X.parts)
        low, high = (np.concatenate([getattr(b, end) for b in blocks]) for end in ("low", "high"))
        return Summary(low, high, blocks)
    if sp.issparse(X):
        return _sparse_summary(X, first_row)
    low = np.full(X.shape[1], np.inf)
    high = np.full(X.shape[1], -np.inf)
    bad = (_range_of_few if X.size <= FEW_VALUES else _jit.column_range)(X, low, high)
    if bad >= 0:
        column = int(np.flatnonzero(~np.isfinite(X[bad]))[0])
        names = columns.feature_names
        where = f"column {column}" + (f" ({names[column]!r})" if names else "")
        raise ValueError(_not_finite(X[bad, column], f"row {first_row + bad}, {where}"))
    return Summary(low, high)


def _range_of_few(X: FloatArray, low: FloatArray, high: FloatArray) -> int:
    """What `column_range` does, without compiling it."""
    finite = np.isfinite(X).all(axis=1)
    np.minimum(low, X.min(axis=0, initial=np.inf), out=low)
    np.maximum(high, X.max(axis=0, initial=-np.inf), out=high)
    return -1 if finite.all() else int(finite.argmin())


def _sparse_summary(X: sp.csr_array, first_row: int) -> Summary:
    finite = np.isfinite(X.data)
    if not finite.all():
        entry = int(np.flatnonzero(~finite)[0])
        row = first_row + int(np.searchsorted(X.indptr, entry, side="right")) - 1
        where = f"row {row}, column {int(X.indices[entry])}"
        raise ValueError(_not_finite(X.data[entry], where))
    low, high = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    np.minimum.at(low, X.indices, X.data)
    np.maximum.at(high, X.indices, X.data)
    return Summary(low, high)


def _not_finite(value: float, where: str) -> str:
    what = "NaN" if np.isnan(value) else "infinity"
    return (
        f"Input X contains {what} at {where}; kernels are not defined for NaN and infinity: drop "
        "such rows or fill them, e.g. with sklearn.impute.SimpleImputer"
    )
