"""The same recipe on part of the rows: how labels of a fixed sample would come out again.

The factor is kept; what is made from it (eigenvectors, centres) is made anew where that is cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.embeddings.scores import training_scores
from mercer.embeddings.spectral import SpectralMap, factor_map
from mercer.embeddings.weighted_kpca import weighted_kpca
from mercer.factors.landmarks import LandmarkGraph
from mercer.kernels.base import Kernel
from mercer.linalg.eigen import leading_eigenpairs
from mercer.linalg.lloyd import nearest_center, scores_of_centers
from mercer.linalg.products import unit_rows
from mercer.partitions.cones import find_cones
from mercer.partitions.kmeans import kmeans
from mercer.rows.rows import Rows
from mercer.rows.sample import Sample, evenly

JUDGES = 2000  # rows that are clustered again, for trust

_jit = LazyModule("mercer.factors._landmarks_jit")

STARTS = 3  # of k-means, each time
SWEEPS = 50


@dataclass(frozen=True, slots=True)
class Again:
    """A recipe that can be followed again on part of the rows."""

    n_choosing: int  # rows that may choose
    labels: Callable[[IdArray, np.random.Generator], IdArray]  # those that do → labels of judges


def by_centers(F: FloatArray, weights: FloatArray, k: int) -> Again:
    """k-means on rows of a factor."""

    def again(ids: IdArray, rng: np.random.Generator) -> IdArray:
        found = kmeans(F[ids], weights[ids], k, n_init=STARTS, max_iter=SWEEPS, tol=1e-4, rng=rng)
        A, b = scores_of_centers(found.centers)
        return nearest_center(F @ A + b)[0]

    return Again(len(F), again)


def by_cones(points: FloatArray, weights: FloatArray, k: int) -> Again:
    """Cones of coordinates that stay as they are."""
    Y = unit_rows(np.asarray(points, np.float64))

    def again(ids: IdArray, rng: np.random.Generator) -> IdArray:
        return _nearest_cone(Y, _directions(Y[ids], weights[ids], k, rng))

    return Again(len(Y), again)


def by_factor(F: FloatArray, weights: FloatArray, k: int) -> Again:
    """Eigenvectors of the rows that choose, then cones."""

    def again(ids: IdArray, rng: np.random.Generator) -> IdArray:
        found = factor_map(F[ids], weights[ids], k, solver="dense", rng=rng)
        directions = _directions(unit_rows(found.points), weights[ids], k, rng)
        return _nearest_cone(unit_rows(F @ found.vectors), directions)

    return Again(len(F), again)


def by_landmarks(
    graph: LandmarkGraph, found: SpectralMap, weights: FloatArray, k: int, judges: IdArray
) -> Again:
    """Eigenvectors of the landmarks as part of the rows tie them, then cones."""
    edges: Any = graph.training_edges
    p = graph.rank

    def again(ids: IdArray, rng: np.random.Generator) -> IdArray:
        E = np.zeros((p, p))
        _jit.landmark_graph(edges.idx[ids], edges.weights[ids], weights[ids], E)
        degrees = E.sum(axis=1)
        scale = 1.0 / np.sqrt(np.maximum(degrees, 1e-10 * degrees.mean()))
        start = found.values, found.vectors / scale[:, None]
        pairs = leading_eigenpairs(scale[:, None] * E * scale, k, start=start, rng=rng)
        vectors = (scale[:, None] * pairs.vectors)[:, :k]
        directions = _directions(unit_rows(vectors), degrees, k, rng)
        coordinates = np.empty((len(judges), vectors.shape[1]))
        _jit.mean_vectors(edges.idx[judges], edges.weights[judges], vectors, coordinates)
        return _nearest_cone(coordinates, directions)

    return Again(len(weights), again)


def by_scores(F: FloatArray, weights: FloatArray, k: int) -> Again:
    """Weighted kernel PCA of the rows that choose, then directions of their scores."""

    def again(ids: IdArray, rng: np.random.Generator) -> IdArray:
        found = weighted_kpca(F[ids], weights[ids], k - 1, rng=rng)
        told = len(found.values) + 1
        Y = unit_rows(training_scores(F, found).coordinates("bas", told))
        return _nearest_cone(Y, _directions(Y[ids], weights[ids], k, rng))

    return Again(len(F), again)


def _directions(Y: FloatArray, weights: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    cones = find_cones(
        Y, weights, k, assign_labels="kmeans", n_init=STARTS, rng=rng, max_iter=SWEEPS
    )
    return cones.directions


def _nearest_cone(Y: FloatArray, directions: FloatArray) -> IdArray:
    labels: IdArray = (Y @ directions.T).argmax(axis=1)
    return labels


@dataclass(frozen=True, slots=True)
class Fit:
    """What a fit knows of itself when it is done."""

    weights: FloatArray  # (k,) of the clusters
    labels: IdArray | None  # of all rows, where they are in memory
    decide: Callable[[Rows], IdArray]  # raw rows → labels
    again: Again  # the same recipe on part of the rows: the `judges` of the sample
    kernel: Kernel | None  # what tells rows apart; None: plain distances
    is_graph: bool = False  # X is a graph: rows have no neighbours beside its ties
    trace_error: float | None = None
    explained: float | None = None
    n_clamped: int = 0
    eigenvalues: FloatArray | None = None
    residuals: FloatArray | None = None


def judges(sample: Sample) -> IdArray:
    """Rows of the sample that are clustered again; of a factor, no others need be kept."""
    return evenly(len(sample), JUDGES)
