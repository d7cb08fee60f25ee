"""Loops of the factorisations."""

from __future__ import annotations

import numpy as np

from mercer._numba import jit


@jit
def subtract_squares(F, residual):  # residual: INOUT (n,) float64
    """residual[i] -= Σ_j F[i, j]², clamped at 0."""
    for i in range(F.shape[0]):
        total = 0.0
        for j in range(F.shape[1]):
            f = np.float64(F[i, j])
            total += f * f
        residual[i] = max(residual[i] - total, 0.0)
