"""Scores from information theory."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mercer.metrics.contingency import paired_codes


def normalized_mutual_info(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mutual information over the mean entropy: 2 I(y_true, y_pred) / (H(y_true) + H(y_pred)).

    Between 0 and 1, symmetric; not corrected for chance, so that many small clusters score high.

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
    >>> normalized_mutual_info([0, 0, 1, 1], [0, 1, 0, 1])
    0.0
    """
    from sklearn.metrics import normalized_mutual_info_score

    codes = paired_codes(y_true, y_pred)
    return float(normalized_mutual_info_score(*codes, average_method="arithmetic"))
