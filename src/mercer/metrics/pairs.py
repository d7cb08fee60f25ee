"""Scores that count the pairs of rows that are together, or apart, in both labellings."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mercer.metrics.contingency import paired_codes


def rand_index(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of the pairs of rows on which the labellings agree, together or apart. Symmetric.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Two labellings of the same rows, by numbers, strings or booleans.

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

    Examples
    --------
    >>> adjusted_rand([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(*paired_codes(y_true, y_pred)))


def pairwise_f(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """F-measure of "these two rows belong together": 2TP / (2TP + FP + FN). Symmetric.

    TP counts the pairs together in both labellings, FP those together in y_pred only, FN those
    together in y_true only. Where neither has any pair together they are equal: 1.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Two labellings of the same rows, by numbers, strings or booleans.

    Examples
    --------
    >>> pairwise_f([0, 0, 1, 1], [0, 0, 0, 1])  # TP 1, FP 2, FN 1
    0.4
    """
    from sklearn.metrics.cluster import pair_confusion_matrix

    (_, FP), (FN, TP) = pair_confusion_matrix(*paired_codes(y_true, y_pred)).tolist()
    return 2 * TP / (2 * TP + FP + FN) if TP + FP + FN else 1.0
