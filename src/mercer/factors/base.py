"""What a factor is: a low-rank stand-in for the kernel matrix, K ≈ F Fᵀ, row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from mercer._run.types import FloatArray, IdArray
from mercer.kernels.base import Kernel
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import Rows, cast
from mercer.rows.sample import Sample
from mercer.rows.source import TILE, spans
from mercer.rows.summary import Columns, check_rows

DRAW = 10  # rows per pivot to draw pivots from: more of them do not lower the error


class Factor(Protocol):
    """Frozen; the same verbs for every approximation.

    F = G @ mix, where G are cheap features of a row (kernel values against pivots, random
    features) and `mix` a small matrix, so that what is linear in F can be folded into `mix` and
    costs nothing per row.
    """

    @property
    def rank(self) -> int: ...
    @property
    def trace_error(self) -> float | None:
        """trace(K - F Fᵀ) / trace(K) on the rows it was fitted on, or None if unknown."""
        ...

    @property
    def format(self) -> RowFormat: ...
    @property
    def mix(self) -> FloatArray: ...
    @property
    def training_rows(self) -> FloatArray | None:
        """F of the rows it was fitted on, while it is kept."""
        ...

    def features(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        """G for rows in `format`, computed in `dtype`."""
        ...

    def rows(self, X: Any) -> FloatArray:
        """F for any rows, seen or new."""
        ...

    def forget_training(self) -> Factor:
        """The same without `training_rows`: what a fitted model keeps."""
        ...


class Approximation(Protocol):
    """Makes factors; its parameters are the user's."""

    def fit(self, kernel: Kernel, X: Any, *, rng: np.random.Generator, threads: int = 1) -> Factor:
        """A factor of the kernel on these rows (anything `as_source` takes, or a Sample)."""
        ...

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        """Bytes that `fit` will hold on so many rows."""
        ...

    def width(self, n_rows: int) -> int:
        """Columns of the dense factor of so many rows."""
        ...

    def dense_bytes(self, n_rows: int, itemsize: int) -> int:
        """Bytes of the dense factor of so many rows, and of what it keeps of its fit."""
        ...

    def dense_memory(self, n_rows: int, itemsize: int) -> int:
        """Bytes while that is made of what `fit` gives."""
        ...

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """Bytes while leading directions of its factor are found, the factor included."""
        ...

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        """Bytes while so many rows are labelled by a factor of `n_rows`."""
        ...

    def enough_rows(self) -> int | None:
        """A draw of so many rows chooses as well as all of them (None: each row counts)."""
        ...


class DenseSizes:
    """How large a thin dense factor and the work with it are; for `rank` columns."""

    rank: Any

    def width(self, n_rows: int) -> int:
        return min(int(self.rank), n_rows)

    def dense_bytes(self, n_rows: int, itemsize: int) -> int:
        return n_rows * self.width(n_rows) * itemsize

    def dense_memory(self, n_rows: int, itemsize: int) -> int:
        return self.dense_bytes(n_rows, itemsize)

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """F, and scaled tiles of it or coordinates of all rows and the cones found in them."""
        width = self.width(n_rows)
        tile = min(n_rows, TILE) * width * (itemsize + 8) + 5 * 8 * width**2
        cones = n_rows * (2 * itemsize * n_vectors + 80)
        return n_rows * width * itemsize + max(tile, cones)

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        """Features of a tile in float64, and half as much while they are made."""
        return 12 * tile_rows * self.width(n_rows)


@dataclass(frozen=True, slots=True)
class PivotFactor:
    """F = k(X, pivots) @ mix: Cholesky, Nyström and exact factors."""

    kernel: Kernel
    format: RowFormat
    pivots: Rows  # (r, d) float64 in `format`: the rows the kernel is evaluated against
    pivot_ids: IdArray  # (r,) their numbers in the source
    mix: FloatArray  # (r, rank) float64
    trace_error: float | None  # trace(K - F Fᵀ) / trace(K)
    training_rows: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def rank(self) -> int:
        return int(self.mix.shape[1])

    def features(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        return self.kernel.against(cast(self.pivots, dtype))

    def rows(self, X: Any) -> FloatArray:
        source, dtype = as_source(X), self.format.dtype
        features, mix = self.features(dtype), self.mix.astype(dtype)
        F = np.empty((source.n_rows, self.rank), dtype)
        for start, stop in spans(source.n_rows):
            F[start:stop] = features(self.format.apply(source.read(start, stop))) @ mix
        return F

    def forget_training(self) -> PivotFactor:
        return replace(self, training_rows=None)


def pivot_factor(
    kernel: Kernel, sample: Sample, pivots: IdArray, mix: FloatArray, **values: Any
) -> PivotFactor:
    """A PivotFactor whose pivots are rows of the sample."""
    from mercer.rows.rows import take

    rows = cast(take(sample.rows, pivots), np.float64)
    mix = np.ascontiguousarray(mix)  # as a model file keeps it: products have the same bits
    return PivotFactor(kernel, sample.format, rows, sample.ids[pivots], mix, **values)


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
