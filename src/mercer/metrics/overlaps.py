"""Do the regions of a segmentation cover those that people see?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._run.types import FloatArray
from mercer.metrics.contingency import contingency
from mercer.metrics.pairs import rand_index


def segmentation_covering(segments: ArrayLike, humans: Sequence[ArrayLike]) -> float:
    """How well regions of ours cover each region drawn by people, averaged over people.

    Σ_R |R| · max_R' |R ∩ R'| / |R ∪ R'| over a person's regions R and ours R', over the number of
    pixels [arbelaez2011]. 1 is best; not symmetric.

    Examples
    --------
    >>> segmentation_covering([[1, 1, 2, 2]], [[[1, 1, 1, 1]]])
    0.5
    """
    return float(np.mean([_covering(table) for table in _tables(segments, humans)]))


def probabilistic_rand(segments: ArrayLike, humans: Sequence[ArrayLike]) -> float:
    """Share of the pairs of pixels on which we agree with a person, averaged over people.

    Examples
    --------
    >>> probabilistic_rand([[1, 1, 2]], [[[5, 5, 3]]])
    1.0
    """
    labels = np.asarray(segments)
    return float(np.mean([rand_index(h.ravel(), labels.ravel()) for h in _checked(labels, humans)]))


def variation_of_information(segments: ArrayLike, humans: Sequence[ArrayLike]) -> float:
    """H(ours | theirs) + H(theirs | ours) in nats, averaged over people; 0 is best [meila2007].

    Examples
    --------
    >>> variation_of_information([[1, 1, 2, 2]], [[[7, 7, 9, 9]]])
    0.0
    """
    return float(np.mean([_information(table) for table in _tables(segments, humans)]))


def _tables(segments: ArrayLike, humans: Sequence[ArrayLike]) -> list[Any]:
    labels = np.asarray(segments)
    return [contingency(h.ravel(), labels.ravel()) for h in _checked(labels, humans)]


def _checked(labels: NDArray[Any], humans: Sequence[ArrayLike]) -> list[NDArray[Any]]:
    maps = [np.asarray(human) for human in humans]
    if not maps:
        raise ValueError("humans is empty; pass at least one label image to compare with")
    for number, human in enumerate(maps):
        if human.shape != labels.shape:
            raise ValueError(
                f"humans[{number}] has shape {human.shape}, the segments {labels.shape}; pass "
                "label images of one size (a single one as [labels])"
            )
    return maps


def _covering(table: Any) -> float:
    """Of one person: rows of the table are their regions, columns ours."""
    theirs, ours = table.sum(axis=1), table.sum(axis=0)
    cells = table.tocoo()
    overlap = cells.data / (theirs[cells.row] + ours[cells.col] - cells.data)
    best = np.zeros(len(theirs))
    np.maximum.at(best, cells.row, overlap)
    return float(best @ theirs / theirs.sum())


def _information(table: Any) -> float:
    """2 H(both) - H(theirs) - H(ours)."""
    n = table.sum()
    both = _entropy(table.data / n)
    return max(2.0 * both - _entropy(table.sum(axis=1) / n) - _entropy(table.sum(axis=0) / n), 0.0)


def _entropy(shares: FloatArray) -> float:
    p = shares[shares > 0]
    return float(-(p * np.log(p)).sum())
