"""Which cluster is number 0: label numbers that do not depend on how a fit went."""

from __future__ import annotations

import numpy as np

from mercer._run.types import FloatArray, IdArray


def content_order(centers: FloatArray) -> IdArray:
    """The clusters by their centres, lexicographically: an order that numbering does not change."""
    return np.lexsort(tuple(centers.T[::-1]))


def numbering(cluster_weights: FloatArray, centers: FloatArray) -> IdArray:
    """The clusters by decreasing weight, ties by the lexicographically smallest centre."""
    columns = tuple(centers.T[::-1])
    return np.lexsort((*columns, -cluster_weights))
