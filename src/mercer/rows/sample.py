"""The sample of a fit: distinct, weighted rows in the form kernels see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, cast, take


@frozen
class Sample:
    """Rows in memory from which pivots and centres are chosen."""

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


@frozen
class RowSample:
    """A few rows as they came."""

    ids: IdArray  # (n,) their numbers, ascending
    rows: Rows


def draw_rows(n_rows: int, most: int, rng: np.random.Generator) -> IdArray:
    """Row numbers, ascending: all, or a sample of at most `most`."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, most, replace=False)).astype(np.intp)


def evenly(n: int, most: int) -> IdArray:
    """Evenly spaced numbers below n: of rows in content order, as good as a random draw."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def subsample(sample: Sample, ids: Any) -> Sample:
    """Some rows of a sample."""
    return replace(
        sample,
        rows=take(sample.rows, ids),
        weights=sample.weights[ids],
        ids=sample.ids[ids],
        inverse=None,
    )
