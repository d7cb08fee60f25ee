"""Leading eigenpairs by a filtered subspace: many at once, or from vectors that are nearly right.

Chebyshev-filtered subspace iteration (Zhou, Saad, Tiago and Chelikowsky 2006): a polynomial that
is small on the unwanted part of the spectrum and grows quickly above it is applied to a block of
vectors, then the block is made orthonormal and Ritz pairs are taken. Hundreds of eigenpairs of a
sparse matrix cost few products of the matrix with all vectors, where Lanczos' method orthogonalises
one vector after the other; and any start helps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackError, eigsh

from mercer._run.types import FloatArray
from mercer.linalg.eigenpairs import Eigenpairs, dense_eigenpairs

DEGREE = 12  # of the filter
GUARDS = 0.1  # as many vectors more than wanted: the last wanted ones converge by their distance
LEAST_GUARDS = 8
CYCLES = 12
LEAST_DIAGONAL = 1e-5  # of a Cholesky factor of columns of length 1: below, they depend
WELL_CONDITIONED = 0.05  # the same: from here on, once is enough
MARGIN = 0.02  # of the spectrum, below what a few steps of Lanczos' method find
COLUMNS = 128  # filtered at once
LARGEST_POWER = 30  # of ten: a filter that grows further is no matter for float32
SINGLE = 5e-4  # the least tolerance that a filter in float32 serves well
SMALL = 32  # rows: bounds of the spectrum are not worth a search


def filtered_eigenpairs(
    K: Any,
    k: int,
    start: tuple[FloatArray, FloatArray] | None = None,
    *,
    tol: float,
    rng: np.random.Generator,
) -> Eigenpairs | None:
    """The k largest eigenvalues of a sparse symmetric matrix with vectors, or None if not found.

    start: k values and vectors of a similar matrix, which may lack the last rows. Found is what has
    ‖KV - Vλ‖ ≤ tol·‖λ‖; None is for blocks too large to pay, and for what does not converge.
    """
    n = K.shape[0]
    size = k + max(LEAST_GUARDS, int(GUARDS * k))
    if 2 * size > n:
        return None
    low = lower_bound(K)
    if start is None or len(start[0]) != k:
        values, V = ritz_pairs(K, _unit_columns(K @ rng.standard_normal((n, size))))
    else:
        values, V = start
        V = np.vstack([V, np.zeros((n - len(V), k))])
        V = np.hstack([V, rng.standard_normal((n, size - k))])
    high = float(values[-1])  # where the unwanted part of the spectrum ends
    dtype = np.float32 if tol >= SINGLE else np.float64
    for _ in range(CYCLES):
        values, V = ritz_pairs(K, chebyshev(K, V, DEGREE, low, high, dtype=dtype))
        wanted = np.ascontiguousarray(V[:, :k])
        rest = K @ wanted - wanted * values[:k]
        if np.linalg.norm(rest) <= tol * np.linalg.norm(values[:k]):
            return Eigenpairs(values[:k], wanted, np.linalg.norm(rest, axis=0), "chebyshev filter")
        high = float(values[-1])
    return None


def chebyshev(
    K: Any, V: FloatArray, degree: int, low: float, high: float, *, dtype: Any = np.float64
) -> FloatArray:
    """T_degree of K, with [low, high] brought to [-1, 1], times V; columns are brought to length 1.

    T stays within 1 there and grows like cosh(degree · arcosh x) above. A few columns at a time,
    which the caches hold with K; in float32 that takes a quarter of the time, and what it rounds
    the next Ritz pairs put right but for some 1e-5.
    """
    middle, half = (high + low) / 2, max((high - low) / 2, np.finfo(float).tiny)
    largest = 2.0 * float(abs(K).sum(axis=1).max()) / half + 2.0 * abs(middle) / half + 1.0
    if degree * np.log10(largest) > LARGEST_POWER:
        dtype = np.float64
    scaled, shift = (K / half).astype(dtype), dtype(middle / half)
    found = np.empty(V.shape)
    for start in range(0, V.shape[1], COLUMNS):
        columns = slice(start, start + COLUMNS)
        found[:, columns] = _filtered(scaled, V[:, columns].astype(dtype), degree, shift)
    return _unit_columns(found)


def _filtered(K: Any, V: FloatArray, degree: int, shift: Any) -> FloatArray:
    """T_degree(K - shift) V by T_j = 2 x T_{j-1} - T_{j-2}."""
    before, Y = V, K @ V - shift * V
    for _ in range(degree - 1):
        after = K @ Y
        after -= shift * Y
        after *= 2
        after -= before
        before, Y = Y, after
    return Y


def _unit_columns(Y: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->j", Y, Y))
    Y /= np.where(lengths > 0, lengths, 1.0)
    return Y


def ritz_pairs(K: Any, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values, largest first, and vectors of K in the span of the columns of Y.

    With YᵀY = LLᵀ, they are those of L⁻¹YᵀKYL⁻ᵀ, turned by YL⁻ᵀ. That is orthonormal as far as Y
    is well conditioned; where it is not, Y is made orthonormal first.
    """
    L = _cholesky(Y.T @ Y)
    if L is None:
        Y = np.linalg.qr(Y)[0]
        L = np.eye(Y.shape[1])
    elif np.diag(L).min() < WELL_CONDITIONED:
        Y = Y @ _inverse(L).T
        L = np.linalg.cholesky(Y.T @ Y)  # near the identity
    inverse = _inverse(L)
    M = inverse @ (Y.T @ (K @ Y)) @ inverse.T
    values, G = dense_eigenpairs((M + M.T) / 2)
    return values, Y @ (inverse.T @ G)


def _cholesky(gram: FloatArray) -> FloatArray | None:
    """L of LLᵀ, or None where columns depend on each other."""
    try:
        L = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return None
    return L if np.diag(L).min() >= LEAST_DIAGONAL else None


def _inverse(L: FloatArray) -> FloatArray:
    found = scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False)
    return np.ascontiguousarray(found)


def lower_bound(K: Any) -> float:
    """A number a little below the smallest eigenvalue, and below 0."""
    n, spread = K.shape[0], float(abs(K).sum(axis=1).max())
    if n <= SMALL:
        return -spread
    try:  # any start that is no eigenvector will do
        start = np.cos(np.arange(n) ** 1.5)
        least = eigsh(K, 1, which="SA", tol=1e-2, v0=start, return_eigenvectors=False)[0]
    except ArpackError:
        return -spread
    return min(float(least), 0.0) - MARGIN * spread
