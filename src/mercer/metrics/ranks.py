"""Average ranks: one number per method from many scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mercer._run.types import FloatArray


def average_ranks(scores: ArrayLike, *, higher_is_better: bool = True) -> FloatArray:
    """Rank the methods under each metric, 1 for the best, and average the ranks of each method.

    Methods with equal scores share the mean of their ranks. Lower is better in the result.

    Parameters
    ----------
    scores : array-like of shape (n_methods, n_metrics)
        Finite or infinite, but not NaN.
    higher_is_better : bool, default=True
        False for errors and times.

    Returns
    -------
    ranks : array of shape (n_methods,)

    Examples
    --------
    >>> average_ranks([[0.9, 0.8], [0.7, 0.8], [0.1, 0.2]])
    array([1.25, 1.75, 3.  ])
    """
    from scipy.stats import rankdata

    table = _checked_table(scores)
    return np.asarray(rankdata(-table if higher_is_better else table, axis=0).mean(axis=1))


def _checked_table(scores: ArrayLike) -> FloatArray:
    """The scores as a table that can be ranked."""
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"scores has shape {table.shape}; pass a table of methods × metrics")
    if np.isnan(table).any():
        method, metric = np.argwhere(np.isnan(table))[0].tolist()
        raise ValueError(f"scores[{method}, {metric}] is NaN and has no rank; drop or replace it")
    return table
