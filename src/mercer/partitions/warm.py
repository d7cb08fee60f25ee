"""k-means again after the rows, or their coordinates, have changed a little."""

from __future__ import annotations

import numpy as np

from mercer._lazy import LazyModule
from mercer._types import FloatArray, IdArray
from mercer.partitions.kmeans import lloyd, nearest_center, scores_of_centers, sums_by_label

__all__ = ["label_means", "relabelled"]

_jit = LazyModule("mercer.partitions._jit")


def relabelled(
    F: FloatArray,
    weights: FloatArray,
    labels: IdArray,
    n_clusters: int,
    *,
    max_iter: int,
    threads: int = 1,
) -> IdArray:
    """Labels after a few of Lloyd's sweeps that start from *labels*.

    Coordinates in an eigenspace are known up to a rotation, so centres of an earlier one mean
    nothing in the next; labels do. Clusters without rows are given the rows that fit worst.
    """
    norms = np.empty(len(F))
    _jit.row_norms(F, norms)
    start = label_means(F, weights, labels, n_clusters)
    found = lloyd(F, weights, norms, start, max_iter=max_iter, least_shift=0.0, threads=threads)
    A, b = scores_of_centers(found.centers)
    return nearest_center(F @ A + b)[0]


def label_means(F: FloatArray, weights: FloatArray, labels: IdArray, n_clusters: int) -> FloatArray:
    """The mean of the rows with each label; where there are none, a point that none is near."""
    sums, counts = sums_by_label(F, labels, weights, n_clusters)
    far = 1.0 + 2.0 * float(np.sqrt(np.einsum("ij,ij->i", F, F).max(initial=0.0)))
    means = sums / np.maximum(counts, np.finfo(float).tiny)[:, None]
    return np.where(counts[:, None] > 0, means, far)
