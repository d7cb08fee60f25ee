"""Leading eigenpairs of a symmetric matrix that gains and loses rows ([chitta2015], corrected).

The paper borders the matrix in (5) but updates K + φφᵀ in (11): two different matrices. Here the
bordered one is followed. V, λ are Ritz pairs of K: V orthonormal, VᵀKV = diag(λ).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._run.types import FloatArray
from mercer.linalg.eigen import polish_eigenpairs
from mercer.linalg.eigenpairs import dense_eigenpairs

POSITIVE = 1e-8  # of the largest eigenvalue: smaller ones carry no coordinate
RANK_TOLERANCE = 1e-12  # squared, beside the longest column of W: shorter ones add no direction,
NOISE = 1e-16  # nor do those that are so short beside the longest of Φ


def append(
    K: Any, values: FloatArray, vectors: FloatArray, Phi: Any, K_bb: FloatArray, rank: int
) -> tuple[FloatArray, FloatArray]:
    """The `rank` leading eigenpairs of [[K, Φ], [Φᵀ, K_bb]] in span(V, Φ) ⊕ the new unit vectors.

    Phi: (s, b), dense or sparse. With A = VᵀΦ and W = Φ - VA = QR, the matrix is, in the basis
    [V, Q, e₁…e_b],

        M = [[diag(λ), VᵀKQ, A], [·, QᵀKQ, R], [Aᵀ, Rᵀ, K_bb]].

    Brand's update takes the blocks with Q for 0, at a drift of several per cent instead of a few in
    ten thousand.
    """
    c, b = len(values), K_bb.shape[0]
    A, W = _projected(vectors, Phi)
    Q = _orthonormal(W, vectors, noise=NOISE * _longest(Phi))
    q = Q.shape[1]
    M = np.zeros((c + q + b, c + q + b))
    M[:c, :c][np.diag_indices(c)] = values
    M[:c, c + q :] = A
    M[c : c + q, c + q :] = Q.T @ W
    KQ = K @ Q
    M[:c, c : c + q] = vectors.T @ KQ
    M[c : c + q, c : c + q] = Q.T @ KQ
    M[c + q :, c + q :] = K_bb
    M = np.triu(M) + np.triu(M, 1).T
    values, G = dense_eigenpairs(M, rank)
    old = vectors @ G[:c]
    old += Q @ G[c : c + q]
    return positive(values, np.vstack([old, G[c + q :]]))


def evict(
    K: Any, values: FloatArray, vectors: FloatArray, keep: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """The eigenpairs of K, the sparse matrix of the rows that are kept, from those with all rows.

    The kept rows of V are no longer orthonormal; a filter by K makes them Ritz vectors again.
    """
    return positive(*polish_eigenpairs(K, values, vectors[keep], degree=1))


def leverage_of_rows(vectors: FloatArray) -> FloatArray:
    """‖V⁽ⁱ⁾‖²: how much of the leading eigenspace each row holds (eq. 3, without 1/C)."""
    return np.einsum("ij,ij->i", vectors, vectors)


def positive(values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The pairs that carry a coordinate √λ·v: a mutual-neighbour kernel is indefinite."""
    kept = values > POSITIVE * max(float(values[0]), 0.0)
    kept[0] = True
    if kept.all():
        return values, np.ascontiguousarray(vectors)
    return values[kept], np.ascontiguousarray(vectors[:, kept])


def _projected(V: FloatArray, Phi: Any) -> tuple[FloatArray, FloatArray]:
    """A = VᵀΦ and W = Φ - VA, by two Gram–Schmidt passes: one leaves W not orthogonal to V."""
    A = np.asarray((Phi.T @ V).T)
    W = (Phi.toarray() if sp.issparse(Phi) else Phi) - V @ A
    more = V.T @ W
    return A + more, W - V @ more


def _orthonormal(W: FloatArray, V: FloatArray, *, noise: float) -> FloatArray:
    """An orthonormal basis of the columns of W orthogonal to V, without rounding errors."""
    squares, U = np.linalg.eigh(W.T @ W)
    kept = squares > max(RANK_TOLERANCE * squares[-1], noise, np.finfo(float).tiny)
    Q, _ = np.linalg.qr(W @ (U[:, kept] / np.sqrt(squares[kept])))
    Q, _ = np.linalg.qr(Q - V @ (V.T @ Q))
    return Q


def _longest(Phi: Any) -> float:
    """The largest squared length of a column."""
    squares = Phi.multiply(Phi) if sp.issparse(Phi) else Phi**2
    return float(squares.sum(axis=0).max())


def rows_to_keep(scores: FloatArray, n_gone: int) -> NDArray[np.bool_]:
    """Marks of the rows to keep: all but those of the smallest scores."""
    keep = np.ones(len(scores), bool)
    keep[np.argsort(scores, kind="stable")[:n_gone]] = False
    return keep
