"""Ranges, means and standard deviations of the columns of X."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer.rows.rows import BlockRows, part
from mercer.rows.sample import Sample
from mercer.rows.source import Source
from mercer.rows.summary import Summary

MOST_COLUMNS = 20  # of a report
SAMPLE_ROWS = 1000  # for means and standard deviations
UNEVEN = 100  # times the spread of a column: it decides distances alone
CONSTANT = 1e-12  # of the largest spread: a column that does not vary


@frozen
class Column:
    """One column: its range over all rows, its mean and standard deviation on a sample.

    Attributes
    ----------
    name : str
        The name of the column, or its number.
    low, high : float
        The smallest and the largest value of all rows.
    mean, spread : float
        Mean and standard deviation on the sample.
    """

    name: str
    low: float
    high: float
    mean: float
    spread: float


@frozen
class DataSummary:
    """The first columns of a table, and how much of it is not zero where it is sparse.

    Attributes
    ----------
    columns : tuple of Column
        At most the first 20.
    n_sampled : int
        Distinct rows behind means and standard deviations, drawn with the seed of the fit.
    density : float or None
        The share of entries that a sparse table stores; None where X is dense.
    """

    columns: tuple[Column, ...]
    n_sampled: int
    density: float | None = None

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> DataSummary:
        """Read what a model file holds."""
        density = values.get("density")
        return cls(
            tuple(_read_column(column) for column in values["columns"]),
            int(values["n_sampled"]),
            None if density is None else float(density),
        )


def summarize_data(source: Source, sample: Sample, ranges: Summary) -> DataSummary | None:
    """Describe the first columns by the sample; None where rows are not one table."""
    few = part(sample.rows, 0, SAMPLE_ROWS)
    if isinstance(few, BlockRows) or few.shape[1] != source.n_features:
        return None
    n, weights = min(source.n_features, MOST_COLUMNS), sample.weights[: few.shape[0]]
    if sample.format.unit_length:  # the sample does not know the lengths of its rows
        if not source.in_memory:
            return None
        order = np.argsort(sample.ids[: few.shape[0]])
        few, weights = source.take(sample.ids[order]), weights[order]
        mean, spread = _moments(few[:, :n], weights)
    else:
        mean, spread = _moments(few[:, :n], weights)
        unit = 2.0**sample.format.exponent
        mean, spread = mean * unit, spread * unit
        if sample.format.shift is not None:
            mean = mean + sample.format.shift[:n]
    names = source.feature_names or tuple(f"column {j}" for j in range(n))
    numbers = np.stack([ranges.low[:n], ranges.high[:n], mean, spread], axis=1)
    columns = tuple(Column(str(names[j]), *map(float, numbers[j])) for j in range(n))
    return DataSummary(columns, int(few.shape[0]), _density(few))


def uneven_columns(source: Source, sample: Sample) -> str | None:
    """In words, that one column decides all distances and half of the others none; or None.

    A few columns of small spread beside many others, as at the border of pictures, are usual.
    """
    few = part(sample.rows, 0, SAMPLE_ROWS)
    if not isinstance(few, np.ndarray) or few.shape[1] < 2 or sample.format.unit_length:
        return None
    spread = _moments(few, sample.weights[: len(few)])[1]
    largest = int(spread.argmax())
    varied = np.flatnonzero(spread > CONSTANT * spread[largest])
    lost = varied[spread[varied] * UNEVEN < spread[largest]]
    if not len(lost) or 2 * len(lost) < len(varied):
        return None
    names = source.feature_names or tuple(f"column {j}" for j in range(few.shape[1]))
    least, unit = int(lost[spread[lost].argmin()]), 2.0**sample.format.exponent
    others = f" and {len(lost) - 1} others" if len(lost) > 1 else ""
    return (
        f"the spreads of columns differ more than a hundredfold: {names[largest]} "
        f"({spread[largest] * unit:.3g}) decides the distances between rows, and {names[least]} "
        f"({spread[least] * unit:.2g}){others} hardly count; unless all columns have one unit, "
        "scale them first (StandardScaler, --scaler standard)"
    )


def _moments(X: Any, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)
    mean = np.average(dense, axis=0, weights=weights)
    return mean, np.sqrt(np.average((dense - mean) ** 2, axis=0, weights=weights))


def _density(X: Any) -> float | None:
    return float(X.nnz / max(X.shape[0] * X.shape[1], 1)) if sp.issparse(X) else None


def _read_column(values: dict[str, Any]) -> Column:
    numbers = (float(values[name]) for name in ("low", "high", "mean", "spread"))
    return Column(str(values["name"]), *numbers)
