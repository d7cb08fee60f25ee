"""Eigenpairs, largest first, with their residuals: what every eigensolver returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray


@frozen
class Eigenpairs:
    """Eigenvalues, largest first, with orthonormal vectors and ‖A v - λ v‖ for each."""

    values: FloatArray  # (k,)
    vectors: FloatArray  # (n, k)
    residuals: FloatArray  # (k,)
    solver: str


def checked_pairs(A: Any, values: FloatArray, vectors: FloatArray, solver: str) -> Eigenpairs:
    """Largest first, the largest entry of each vector positive, with residuals computed from A."""
    order = np.argsort(values)[::-1]
    values, vectors = np.asarray(values)[order], np.asarray(vectors)[:, order]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))])
    vectors = vectors * np.where(signs == 0, 1.0, signs)
    return Eigenpairs(values, vectors, residuals(A, values, vectors), solver)


def residuals(A: Any, values: FloatArray, vectors: FloatArray) -> FloatArray:
    """‖A v - λ v‖ of each pair."""
    return np.linalg.norm(A @ vectors - vectors * values, axis=0)


def dense_eigenpairs(A: FloatArray, k: int | None = None) -> tuple[FloatArray, FloatArray]:
    """The k largest of all eigenvalues of a small dense matrix, largest first, and vectors."""
    values, vectors = np.linalg.eigh(A)
    return values[::-1][:k], vectors[:, ::-1][:, :k]
