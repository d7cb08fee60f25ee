"""Eigenpairs, largest first, with their residuals: what every eigensolver returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._run.types import FloatArray


@dataclass(frozen=True, slots=True)
class Eigenpairs:
    """Eigenvalues, largest first, with orthonormal vectors and ‖A v - λ v‖ for each."""

    values: FloatArray  # (k,)
    vectors: FloatArray  # (n, k)
    residuals: FloatArray  # (k,)
    solver: str


def checked_pairs(A: Any, values: FloatArray, vectors: FloatArray, solver: str) -> Eigenpairs:
    """Largest first, signs settled, with the residuals that A itself gives."""
    order = np.argsort(values)[::-1]
    values, vectors = np.asarray(values)[order], np.asarray(vectors)[:, order]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))])
    vectors = vectors * np.where(signs == 0, 1.0, signs)
    residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals, solver)
