"""Normalised spectral coordinates from any factor.

For an affinity W ≈ F Fᵀ with degrees d = F(Fᵀ1), the leading eigenvectors of D^-½ W D^-½ come from
the small matrix Fᵀ D⁻¹ F. A row's coordinates are a linear function of its F, up to its length; and
length is removed before clustering. So new rows need neither degrees nor the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray
from mercer.factors.bin_graph import LEAST_VALUE, TOL, BinGraph, part_vectors
from mercer.factors.binning import BinningFactor
from mercer.factors.landmarks import LandmarkGraph
from mercer.factors.neighbors import AffinityGraph
from mercer.factors.quantized import QuantizedFactor
from mercer.linalg.eigen import Eigenpairs, Solver, leading_eigenpairs
from mercer.linalg.walks import leading_walk
from mercer.rows.sample import Sample
from mercer.rows.source import spans

_jit = LazyModule("mercer.factors._landmarks_jit")

LEAST_DEGREE = 1e-10  # of the mean: below, a landmark has no say
TELLING = 1e-8  # eigenvalues below (or negative: a graph between two sides) tell no clusters


@dataclass(frozen=True, slots=True)
class SpectralMap:
    """Coordinates of a row = (its F) @ `vectors`; what they are clustered on, and how sure."""

    vectors: FloatArray  # (rank, m): eigenvector coordinates of landmarks, or of F's columns
    points: FloatArray  # (n, m) coordinates of what is clustered: landmarks, or sampled rows
    point_weights: FloatArray  # (n,)
    values: FloatArray  # (m,) eigenvalues, largest first, 1 at the top
    residuals: FloatArray  # (m,)
    solver: str
    n_clamped: int = 0  # rows whose low-rank degree was not positive
    n_alone: int = 0  # rows that nothing ties to another


def spectral_map(
    factor: Any,
    sample: Sample,
    m: int,
    *,
    solver: Solver,
    rng: np.random.Generator,
    threads: int = 1,
) -> SpectralMap:
    """m leading coordinates, for the kind of factor: the one place that knows which."""
    if isinstance(factor, AffinityGraph):
        return affinity_map(factor, sample, m, solver=solver, rng=rng)
    if isinstance(factor, LandmarkGraph) and factor.ties_rows:
        return neighbor_map(factor, sample, m, solver=solver, rng=rng)
    if isinstance(factor, BinningFactor):
        return binning_map(factor, sample, m, solver=solver, rng=rng, threads=threads)
    if isinstance(factor, LandmarkGraph):
        return landmark_map(factor, sample, m, solver=solver, rng=rng)
    if isinstance(factor, QuantizedFactor):  # constant on blocks: their eigenproblem is the rows'
        return factor_map(factor.block_rows(), factor.blocks().weights, m, solver=solver, rng=rng)
    return factor_map(factor.training_rows, sample.weights, m, solver=solver, rng=rng)


def landmark_map(
    graph: LandmarkGraph, sample: Sample, m: int, *, solver: Solver, rng: np.random.Generator
) -> SpectralMap:
    """Transfer cut [li2012]: the eigenproblem of rows and landmarks, solved on landmarks alone."""
    p = graph.rank
    E = np.zeros((p, p))
    edges = graph.training_edges
    assert edges is not None
    _jit.landmark_graph(edges.idx, edges.weights, sample.weights, E)
    degrees = E.sum(axis=1)
    least = LEAST_DEGREE * degrees.mean()  # landmarks that are only ever a far fourth
    scale = 1.0 / np.sqrt(np.maximum(degrees, least))
    pairs = leading_eigenpairs(scale[:, None] * E * scale, m, solver=solver, rng=rng)
    vectors = scale[:, None] * pairs.vectors
    return _map(vectors, vectors, degrees, pairs)


def neighbor_map(
    graph: LandmarkGraph, sample: Sample, m: int, *, solver: Solver, rng: np.random.Generator
) -> SpectralMap:
    """The walk between rows; a new row's coordinates are the mean of its neighbours'."""
    walk = leading_walk(graph.affinities(), sample.weights, m, solver=solver, rng=rng)
    return SpectralMap(
        walk.vectors, walk.vectors, walk.weights, walk.values, walk.residuals, walk.solver
    )


def affinity_map(
    graph: AffinityGraph, sample: Sample, m: int, *, solver: Solver, rng: np.random.Generator
) -> SpectralMap:
    """The walk on a given graph. W diag(w) φ = λ D φ, so affinities @ (w φ/λ) point along φ."""
    walk = leading_walk(graph.training_matrix, sample.weights, m, solver=solver, rng=rng)
    kept = walk.values > TELLING
    values, points = walk.values[kept], walk.vectors[:, kept]
    vectors = np.zeros((graph.n_items, len(values)))
    vectors[graph.items] = sample.weights[:, None] * points / values
    return SpectralMap(
        vectors,
        points,
        walk.weights,
        values,
        walk.residuals[kept],
        walk.solver,
        n_alone=walk.n_alone,
    )


def factor_map(
    F: FloatArray,
    w: FloatArray,
    m: int,
    *,
    solver: Solver,
    rng: np.random.Generator,
) -> SpectralMap:
    """The Gram matrix of a thin dense factor, Fᵀ D⁻¹ F = V Λ Vᵀ, gives coordinates F V Λ^-½."""
    degrees = F @ (F.T @ w.astype(F.dtype)).astype(F.dtype)
    least = 1e-6 * float(np.average(degrees, weights=w))
    clamped = degrees <= least
    scale = np.sqrt(w / np.maximum(degrees, least)).astype(F.dtype)[:, None]
    G = np.zeros((F.shape[1], F.shape[1]))
    for start, stop in spans(len(F)):
        scaled = F[start:stop] * scale[start:stop]
        G += scaled.T @ scaled
    pairs = leading_eigenpairs((G + G.T) / 2, m, solver=solver, rng=rng)
    kept = pairs.values > 1e-10 * pairs.values[0]
    V = pairs.vectors[:, kept] / np.sqrt(pairs.values[kept])
    trimmed = Eigenpairs(pairs.values[kept], V, pairs.residuals[kept], pairs.solver)
    return _map(V, F @ V.astype(F.dtype), w, trimmed, int(clamped.sum()))


def binning_map(
    factor: BinningFactor,
    sample: Sample,
    m: int,
    *,
    solver: Solver,
    rng: np.random.Generator,
    threads: int = 1,
) -> SpectralMap:
    """Algorithm 2 of [wu2018]: D^-½ Z Zᵀ D^-½ u = λu by products, then Zᵀ D^-½ u / λ for bins.

    Rows without ties have no part in it. A row's coordinates are the sums over its bins, and these
    are what is clustered, so a label is the same function of a row in the fit and after it.
    """
    graph, w = BinGraph(factor, threads), sample.weights
    alone, is_tied = graph.diagonal(), graph.is_tied()
    degrees = graph.product(w) + alone * w  # eq. 6: d = Z(Zᵀ1)
    scale = np.sqrt(np.where(is_tied, w / np.where(is_tied, degrees, 1.0), 0.0))
    m = min(m, int(is_tied.sum()))
    known = part_vectors(graph, np.where(is_tied, w * degrees, 0.0), m)
    A = graph.operator(scale, alone)
    pairs = leading_eigenpairs(A, m, solver=solver, tol=TOL, known=known, complete=True, rng=rng)
    kept = pairs.values > LEAST_VALUE
    U, values = pairs.vectors[:, kept], pairs.values[kept]
    vectors = graph.bin_vectors(scale[:, None] * U / values)
    trimmed = Eigenpairs(values, U, pairs.residuals[kept], pairs.solver)
    return _map(vectors, factor.sums_of_training(sample, vectors, threads), w, trimmed)


def _map(
    vectors: FloatArray,
    points: FloatArray,
    weights: FloatArray,
    pairs: Eigenpairs,
    n_clamped: int = 0,
) -> SpectralMap:
    return SpectralMap(
        vectors, points, weights, pairs.values, pairs.residuals, pairs.solver, n_clamped
    )
