"""Scores that count the pairs of rows that are together, or apart, in both labellings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.metrics.contingency import contingency, paired_codes


def rand_index(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of the pairs of rows on which the labellings agree, together or apart. Symmetric.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Two labellings of the same rows, by numbers, strings or booleans.

    Returns
    -------
    float
        The score; 1 is best.

    Examples
    --------
    >>> rand_index([0, 0, 1], [0, 1, 1])  # of three pairs only (0, 2) is apart in both
    0.3333333333333333
    """
    from sklearn.metrics import rand_score

    return float(rand_score(*paired_codes(y_true, y_pred)))


def adjusted_rand(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Rand index corrected for chance: 1 for equal partitions, near 0 for random ones. Symmetric.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Two labellings of the same rows, by numbers, strings or booleans.

    Returns
    -------
    float
        The score; 1 is best.

    Examples
    --------
    >>> adjusted_rand([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    cells = contingency(y_true, y_pred)
    n = int(cells.sum())
    one, other = (_pairs_together(cells.sum(axis=axis)) for axis in (0, 1))
    both, expected = _pairs_together(cells.data), one * other  # times n·(n - 1)
    most = (one + other) * n * (n - 1)
    if most == 2 * expected:  # all rows together in both, or all apart
        return 1.0
    return 2 * (both * n * (n - 1) - expected) / (most - 2 * expected)


def _pairs_together(counts: Any) -> int:
    """Ordered pairs of different rows in the same group, from the sizes of all groups."""
    counts = np.asarray(counts)
    return int(counts @ (counts - 1))


def pairwise_f(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """F-measure of "these two rows belong together": 2TP / (2TP + FP + FN). Symmetric.

    TP counts the pairs together in both labellings, FP those together in y_pred only, FN those
    together in y_true only. Where neither has any pair together they are equal: 1.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Two labellings of the same rows, by numbers, strings or booleans.

    Returns
    -------
    float
        The score; 1 is best.

    Examples
    --------
    >>> pairwise_f([0, 0, 1, 1], [0, 0, 0, 1])  # TP 1, FP 2, FN 1
    0.4
    """
    from sklearn.metrics.cluster import pair_confusion_matrix

    (_, FP), (FN, TP) = pair_confusion_matrix(*paired_codes(y_true, y_pred)).tolist()
    return 2 * TP / (2 * TP + FP + FN) if TP + FP + FN else 1.0
