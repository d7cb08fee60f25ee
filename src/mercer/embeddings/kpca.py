"""Kernel principal components from any factor.

K ≈ F Fᵀ, so the centred kernel matrix is that of F - μ, and its eigenvectors come from the small
matrix (F - μ)ᵀ W (F - μ) = V Λ Vᵀ: the scores of any row are (f - μ) V, with Σ w score² = λ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer.kernels.base import Kernel
from mercer.linalg.eigen import Solver, leading_eigenpairs
from mercer.rows.sample import Sample
from mercer.rows.source import spans


@frozen
class PrincipalMap:
    """Scores of a row = (its F) @ `vectors` - `offset`."""

    vectors: FloatArray  # (rank, k)
    offset: FloatArray  # (k,) μ V
    values: FloatArray  # (k,) eigenvalues of the centred kernel matrix, largest first
    next_value: float  # the eigenvalue after these
    residuals: FloatArray  # (k,)
    solver: str
    total: float  # trace of the centred kernel matrix


def principal_map(
    factor: Any,
    kernel: Kernel,
    sample: Sample,
    k: int | None,
    *,
    solver: Solver,
    rng: np.random.Generator,
) -> PrincipalMap:
    """k leading principal directions (None: all); a quantised kernel is solved on its blocks."""
    F, weights = factor.weighted_rows(sample)
    mean = _mean(F, weights)
    G = np.zeros((F.shape[1], F.shape[1]))
    for start, stop in spans(len(F)):
        centred = (F[start:stop] - mean) * np.sqrt(weights[start:stop])[:, None]
        G += centred.T @ centred
    diagonal = np.asarray(kernel.diagonal(sample.rows), np.float64)
    total = float(max(sample.weights @ diagonal - sample.weights.sum() * (mean @ mean), 0.0))
    asked = len(G) if k is None else min(k, len(G))
    pairs = leading_eigenpairs((G + G.T) / 2, asked + 1, solver=solver, rng=rng)
    values = np.maximum(pairs.values, 0.0)
    is_rounding = values <= 1e-12 * max(float(sample.weights @ diagonal), np.finfo(float).tiny)
    V = np.where(is_rounding, 0.0, pairs.vectors)  # rows that are all alike score 0
    n_kept = max(min(asked, int((~is_rounding).sum())), 1)
    return PrincipalMap(
        V[:, :n_kept],
        mean @ V[:, :n_kept],
        values[:n_kept],
        float(values[n_kept]) if len(values) > n_kept else 0.0,
        pairs.residuals[:n_kept],
        pairs.solver,
        total,
    )


def _mean(F: FloatArray, weights: FloatArray) -> FloatArray:
    sums = np.zeros(F.shape[1])
    for start, stop in spans(len(F)):
        sums += weights[start:stop] @ F[start:stop].astype(np.float64)
    mean: FloatArray = sums / weights.sum()
    return mean
