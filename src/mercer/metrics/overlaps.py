"""How well the regions of a segmentation agree with those that people draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer._run.types import FloatArray
from mercer.metrics.contingency import check_label_images, contingency, mean_best
from mercer.metrics.pairs import rand_index


def segmentation_covering(segments: ArrayLike, humans: Sequence[ArrayLike]) -> float:
    """How well regions of ours cover each region drawn by people, averaged over people.

    Σ_R |R| · max_R' |R ∩ R'| / |R ∪ R'| over a person's regions R and ours R', over the number of
    pixels [arbelaez2011]. 1 is best; not symmetric.

    Parameters
    ----------
    segments : array-like of shape (height, width)
        A label image.
    humans : sequence of array-like of shape (height, width)
        Label images drawn by people (a single one as ``[labels]``).

    Returns
    -------
    float
        The score; 1 is best.

    Examples
    --------
    >>> segmentation_covering([[1, 1, 2, 2]], [[[1, 1, 1, 1]]])
    0.5
    """
    return float(np.mean([_covering(contingency(*pair)) for pair in _pairs(segments, humans)]))


def probabilistic_rand(segments: ArrayLike, humans: Sequence[ArrayLike]) -> float:
    """Share of the pairs of pixels on which we agree with a person, averaged over people.

    Parameters
    ----------
    segments : array-like of shape (height, width)
        A label image.
    humans : sequence of array-like of shape (height, width)
        Label images drawn by people (a single one as ``[labels]``).

    Returns
    -------
    float
        The score; 1 is best.

    Examples
    --------
    >>> probabilistic_rand([[1, 1, 2]], [[[5, 5, 3]]])
    1.0
    """
    return float(np.mean([rand_index(*pair) for pair in _pairs(segments, humans)]))


def variation_of_information(segments: ArrayLike, humans: Sequence[ArrayLike]) -> float:
    """H(ours | theirs) + H(theirs | ours) in nats, averaged over people; 0 is best [meila2007].

    Parameters
    ----------
    segments : array-like of shape (height, width)
        A label image.
    humans : sequence of array-like of shape (height, width)
        Label images drawn by people (a single one as ``[labels]``).

    Returns
    -------
    float
        The distance; 0 is best.

    Examples
    --------
    >>> variation_of_information([[1, 1, 2, 2]], [[[7, 7, 9, 9]]])
    0.0
    """
    return float(np.mean([_information(contingency(*pair)) for pair in _pairs(segments, humans)]))


def _pairs(segments: ArrayLike, humans: Sequence[ArrayLike]) -> list[tuple[Any, Any]]:
    """Each person's labels and ours, pixel by pixel."""
    labels = np.asarray(segments)
    return [(h.ravel(), labels.ravel()) for h in check_label_images(humans, labels.shape)]


def _covering(table: Any) -> float:
    """Of one person: rows of the table are their regions, columns ours."""
    return mean_best(table, lambda both, theirs, ours: both / (theirs + ours - both))


def _information(table: Any) -> float:
    """2 H(both) - H(theirs) - H(ours)."""
    n = table.sum()
    both = _entropy(table.data / n)
    return max(2.0 * both - _entropy(table.sum(axis=1) / n) - _entropy(table.sum(axis=0) / n), 0.0)


def _entropy(shares: FloatArray) -> float:
    p = shares[shares > 0]
    return float(-(p * np.log(p)).sum())
