"""The same recipe on part of the rows: how the labels of a fixed sample would come out again.

The factor is kept; what is made from it (eigenvectors, centres) is made anew where that is cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.embeddings.scores import training_scores
from mercer.embeddings.weighted_kpca import weighted_kpca
from mercer.factors.base import Resampling
from mercer.kernels.base import Kernel
from mercer.linalg.lloyd import nearest_center, scores_of_centers
from mercer.linalg.products import unit_rows
from mercer.partitions.cones import find_cones
from mercer.partitions.evidence import agreement
from mercer.partitions.kmeans import kmeans
from mercer.rows.rows import Rows
from mercer.rows.sample import Sample, evenly

JUDGES = 2000  # rows that are clustered again
STARTS = 3  # of k-means, each time
SWEEPS = 50


@frozen(slots=False)
class Resampler:
    """A recipe that can be followed again on part of the rows."""

    n_rows: int  # to draw from
    labels: Callable[[IdArray, np.random.Generator], IdArray]  # rows drawn → labels of the judges

    def agreement(self, splits: int) -> float:
        """ARI of partitions made from disjoint halves of the rows: the median split."""
        for seed in range(len(self._agreements), splits):
            self._agreements.append(agreement(self.labels, self.n_rows, seed))
        return float(np.median(self._agreements[:splits]))

    @cached_property
    def _agreements(self) -> list[float]:
        """Of the splits that were asked for so far."""
        return []


@frozen
class FitEvidence:
    """What a fit knows of itself when it is done."""

    weights: FloatArray  # (k,) of the clusters
    labels: IdArray | None  # of all rows, where they are in memory
    decide: Callable[[Rows], IdArray]  # raw rows → labels
    resampler: Resampler  # the same recipe on part of the rows: the `judges` of the sample
    kernel: Kernel | None  # of the rows' similarities; None: plain distances
    is_graph: bool = False  # X is a graph: rows have no neighbours beside its edges
    trace_error: float | None = None
    explained: float | None = None
    n_clamped: int = 0
    eigenvalues: FloatArray | None = None
    residuals: FloatArray | None = None


def judges(sample: Sample) -> IdArray:
    """Rows of the sample that are clustered again; of a factor, no others need be kept."""
    return evenly(len(sample), JUDGES)


def by_centers(F: FloatArray, weights: FloatArray, k: int, *, starts: int = STARTS) -> Resampler:
    """k-means on rows of a factor."""

    def labels(ids: IdArray, rng: np.random.Generator) -> IdArray:
        found = kmeans(F[ids], weights[ids], k, n_init=starts, max_iter=SWEEPS, tol=1e-4, rng=rng)
        A, b = scores_of_centers(found.centers)
        return nearest_center(F @ A + b)[0]

    return Resampler(len(F), labels)


def by_cones(resampling: Resampling, k: int) -> Resampler:
    """Cones of the coordinates that part of the rows lead to."""

    def labels(ids: IdArray, rng: np.random.Generator) -> IdArray:
        points, weights, judged = resampling.points(ids, rng)
        return _nearest_cone(judged, _directions(points, weights, k, rng))

    return Resampler(resampling.n_rows, labels)


def by_scores(F: FloatArray, weights: FloatArray, k: int) -> Resampler:
    """Weighted kernel PCA of part of the rows, then directions of their scores."""

    def labels(ids: IdArray, rng: np.random.Generator) -> IdArray:
        found = weighted_kpca(F[ids], weights[ids], k - 1, rng=rng)
        n_separable = len(found.values) + 1
        Y = unit_rows(training_scores(F, found).coordinates("bas", n_separable))
        return _nearest_cone(Y, _directions(Y[ids], weights[ids], k, rng))

    return Resampler(len(F), labels)


def _directions(Y: FloatArray, weights: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    cones = find_cones(
        Y, weights, k, assign_labels="kmeans", n_init=STARTS, rng=rng, max_iter=SWEEPS
    )
    return cones.directions


def _nearest_cone(Y: FloatArray, directions: FloatArray) -> IdArray:
    labels: IdArray = (Y @ directions.T).argmax(axis=1)
    return labels
