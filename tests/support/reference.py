"""Slow, obvious versions of what the library does fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.factors.quantized import Quantization, block_scale, block_values
from mercer.kernels.base import Kernel

TOL = {np.dtype(np.float32): 3e-5, np.dtype(np.float64): 1e-10}  # rounding of sums of ~100 terms


def kernel_values(function: Callable, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """k(x, y) one pair at a time, in float64."""
    X, Y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    return np.array([[function(x, y) for y in Y] for x in X])


def rbf(gamma: float) -> Callable:
    return lambda x, y: np.exp(-gamma * ((x - y) ** 2).sum())


def laplacian(gamma: float) -> Callable:
    return lambda x, y: np.exp(-gamma * np.abs(x - y).sum())


def chi2(gamma: float) -> Callable:
    def value(x, y):
        total = x + y
        terms = np.divide((x - y) ** 2, total, out=np.zeros_like(total), where=total > 0)
        return np.exp(-gamma * 0.5 * terms.sum())

    return value


def cosine(x, y):
    lengths = np.sqrt((x @ x) * (y @ y))
    return x @ y / lengths if lengths > 0 else 0.0


def unit(x):
    length = np.sqrt(x @ x)
    return x / length if length > 0 else x


def polynomial(degree: int, gamma: float, coef0: float) -> Callable:
    return lambda x, y: (gamma * (x @ y) + coef0) ** degree


def histogram_intersection(x, y):
    return np.minimum(x, y).sum()


def lloyd(F, weights, centers, max_iter=300):
    """Weighted k-means from given centres, row by row; returns labels and inertia."""
    labels = None
    for _ in range(max_iter):
        distances = ((F[:, None, :] - centers[None]) ** 2).sum(axis=2)
        new = distances.argmin(axis=1)
        if labels is not None and np.array_equal(new, labels):
            break
        labels = new
        centers = np.array(
            [
                np.average(F[labels == c], axis=0, weights=weights[labels == c])
                for c in range(len(centers))
            ]
        )
    return labels, float((weights * distances.min(axis=1)).sum())


def neighbor_gamma(X: np.ndarray) -> float:
    """gamma="auto" for at most 1,000 distinct rows, word for word: 1/(2(2s)²)."""
    n = len(X)
    rank = max(1, round(7 * n / 1000))
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    s = np.median(np.sort(distances, axis=1)[:, rank])
    return 1 / (2 * (2 * s) ** 2)


def textbook_cholesky(K: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Greedy incomplete Cholesky of a whole matrix, a column per step: G and its pivots."""
    G, residual, pivots = np.zeros((len(K), rank)), K.diagonal().copy(), np.empty(rank, int)
    for r in range(rank):
        p = pivots[r] = residual.argmax()
        G[:, r] = (K[:, p] - G[:, :r] @ G[p, :r]) / np.sqrt(residual[p])
        residual = np.maximum(residual - G[:, r] ** 2, 0.0)
        residual[p] = 0.0
    return G, pivots


def best_of_each(S: np.ndarray, rivals: int, least: float) -> list[int]:
    """The largest residual of all, then of each few rows in turn, while above `least`."""
    S, chosen = S.copy(), []
    for start in range(0, len(S), rivals):
        few = np.arange(start, len(S) if not chosen else min(start + rivals, len(S)))
        j = few[S.diagonal()[few].argmax()]
        if S[j, j] <= (least if chosen else 0):
            continue
        chosen.append(int(j))
        S -= np.outer(S[:, j], S[j]) / S[j, j]
        S[j, :] = S[:, j] = 0.0
    return chosen


def published_ksc(
    K: np.ndarray, rank: int, n_directions: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pivots, eigenvalues and training scores of [novak2023], equations (9) and (10) and bias."""
    G, pivots = textbook_cholesky(K, rank)
    d = G @ G.sum(axis=0)
    v = 1 / d
    X = (G - v @ G / v.sum()) * np.sqrt(v)[:, None]
    Q, R = np.linalg.qr(X)
    U, sigma, _ = np.linalg.svd(R)
    beta = (Q @ U[:, :n_directions]) * np.sqrt(v)[:, None]
    values = sigma[:n_directions] ** 2
    bias = (values - 1) * (d @ beta) / len(K)
    return pivots, values, G @ (G.T @ beta) + bias


def original_ksc(G: np.ndarray, n_directions: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and U Uᵀβ by the original algorithm [alzate2011]: the SVD of G, then eq. (7).

    U Uᵀβ has the same Gᵀβ as β, and so the same scores, up to its length.
    """
    n = len(G)
    d = G @ G.sum(axis=0)
    centring = np.eye(n) - np.outer(np.ones(n), 1 / d) / (1 / d).sum()  # M_D
    U, sigma, _ = np.linalg.svd(G, full_matrices=False)
    values, gammas = np.linalg.eig(U.T @ np.diag(1 / d) @ centring @ U @ np.diag(sigma**2))
    order = np.argsort(-values.real)[:n_directions]
    return values[order].real, U @ gammas[:, order].real


def reduced_set(K_pivots: np.ndarray, K_rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """ξ of eq. (6): Ω_ΨΨ ξ = Ω_ΨΦ β."""
    return np.linalg.solve(K_pivots, K_rows.T @ beta)


def original_bias(K_pivots: np.ndarray, xi: np.ndarray) -> np.ndarray:
    """b by the reduced set alone, as Alzate and Suykens have it (paper 004, section 3.1.2)."""
    v = 1 / K_pivots.sum(axis=1)
    return -(v @ K_pivots @ xi) / v.sum()


def exact_bias(K: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """b = -1ᵀ D⁻¹ Ω β / 1ᵀ D⁻¹ 1, by the optimality conditions."""
    v = 1 / K.sum(axis=1)
    return -(v @ K @ beta) / v.sum()


@dataclass(frozen=True)
class BlockEigen:
    """Leading eigenvectors on blocks [zhang2006], extended to any row: k(x, t) @ `C` + `offset`.

    For "divisive" the extension lacks the factor d(x)^-½ (of the unit eigenvector) or 1/d(x) (of
    the random-walk vector φ/√d): a length, which normalised cuts remove. `degree` gives d(x).
    """

    values: np.ndarray  # (k,) eigenvalues of W̄ (normalised), largest first
    vectors: np.ndarray  # (m, k) φ: Σ_i n_i φ_i² = 1
    C: np.ndarray  # (m, k)
    offset: np.ndarray  # (k,)
    degrees: np.ndarray  # (m,) d = β n
    degree: np.ndarray  # (m,) d(x) = k(x, t) @ degree


def quantized_eigen(
    quantization: Quantization,
    kernel: Kernel,
    k: int,
    *,
    correction: bool = True,
    normalization: str = "none",
) -> BlockEigen:
    """The k leading eigenvectors of the block matrix, by a symmetric m×m problem.

    none: S = √n_i β_ij √n_j. additive (kernel PCA): of the centred β. divisive (normalised cut):
    S = √(n_i/d_i) β_ij √(n_j/d_j). φ = u/√n in each case. `correction`: of β by the variance
    within blocks, see `block_values`; it has no effect on kernels it is not valid for.
    """
    n = quantization.weights
    beta = block_values(quantization, kernel, correction=correction)
    scale = block_scale(quantization, kernel, correction=correction)
    degrees, p = beta @ n, n / n.sum()
    means = beta @ p
    if normalization == "additive":
        beta = beta - means[:, None] - means + p @ means
    weights = n / degrees if normalization == "divisive" else n
    roots = np.sqrt(weights)
    values, U = np.linalg.eigh(roots[:, None] * beta * roots)
    values, U = values[::-1][:k], U[:, ::-1][:, :k]
    kept = values > len(n) * np.finfo(np.float64).eps * values[0]
    values, U = values[kept], U[:, kept]
    folded = roots[:, None] * U / values  # Σ_j n_j β_ij φ_j / λ = φ_i
    offset = -means @ folded if normalization == "additive" else np.zeros(len(values))
    return BlockEigen(
        values,
        U / np.sqrt(n)[:, None],
        scale[:, None] * folded,
        offset,
        degrees,
        scale * n,
    )
