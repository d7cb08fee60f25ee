"""All scores of one partition at once."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mercer.metrics.contingency import paired_codes
from mercer.metrics.information import normalized_mutual_info
from mercer.metrics.matching import accuracy, mean_f, purity
from mercer.metrics.pairs import adjusted_rand, pairwise_f, rand_index


def evaluate(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """Every score of this package by its function's name; 1 is best in each.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Two labellings of the same rows, by numbers, strings or booleans.

    Returns
    -------
    dict of str to float
        Scores by name.

    Examples
    --------
    >>> evaluate([0, 0, 1, 1], [0, 0, 0, 1])["accuracy"]
    0.75
    """
    scores = (
        accuracy,
        purity,
        normalized_mutual_info,
        adjusted_rand,
        rand_index,
        pairwise_f,
        mean_f,
    )
    codes = paired_codes(y_true, y_pred)
    return {score.__name__: score(*codes) for score in scores}
