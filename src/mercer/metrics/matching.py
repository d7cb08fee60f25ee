"""Scores that match clusters with classes: accuracy, purity, mean F."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mercer.metrics.contingency import contingency, mean_best


def accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of the rows that are right under the best one-to-one match of clusters and classes.

    max over matchings m of Σ_c n_{c,m(c)} / n, by the Hungarian method; clusters left without a
    class count as wrong. Symmetric. It holds a dense n_classes × n_clusters table.

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
    >>> accuracy([0, 0, 1, 1], ["b", "b", "a", "b"])
    0.75
    """
    from scipy.optimize import linear_sum_assignment

    table = contingency(y_true, y_pred).toarray()
    classes, clusters = linear_sum_assignment(table, maximize=True)
    return float(table[classes, clusters].sum() / table.sum())


def purity(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of the rows that belong to the largest class of their cluster: Σ_k max_c n_ck / n.

    Not symmetric, and 1 for clusters of one row each: compare it at equal numbers of clusters.

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
    >>> purity([0, 0, 1, 1], [0, 1, 2, 2])
    1.0
    """
    table = contingency(y_true, y_pred)
    return float(table.max(axis=0).sum() / table.sum())


def mean_f(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """F-measure of the best cluster of each class, averaged with the class sizes as weights.

    Σ_c (n_c / n) · max_k F_ck with F_ck = 2PR / (P + R) = 2 n_ck / (n_c + n_k), for the precision
    P = n_ck / n_k and the recall R = n_ck / n_c of cluster k as a finder of class c. Here n_ck
    counts the rows of class c in cluster k, n_c those of the class, n_k those of the cluster. One
    cluster may be the best of several classes. Not symmetric. `pairwise_f` counts pairs instead.

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
    >>> mean_f([0, 0, 1, 1], [0, 0, 0, 1])  # (0.8 + 0.666...) / 2
    0.7333333333333334
    """
    return mean_best(contingency(y_true, y_pred), lambda n_ck, n_c, n_k: 2.0 * n_ck / (n_c + n_k))
