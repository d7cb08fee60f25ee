"""Representatives moved down the error of the block matrix (paper 002, section 4.3 and appendix).

f(t) = Σ_ij A_ij β_ij² - 2 B_ij β_ij with β_ij = k(t_i, t_j) g_i g_j, A = n nᵀ and B_ij the sum of
the kernel over the rows of both blocks: ‖W - W̄‖² but for a constant.
"""

from __future__ import annotations

import numpy as np

from mercer._run.types import FloatArray, IdArray
from mercer.factors.quantization import Quantization, quantize, sequential_sample
from mercer.kernels.base import Kernel

MOST_STEPS = 30


def fine_block_sums(
    kernel: Kernel,
    X: FloatArray,
    weights: FloatArray,
    labels: IdArray,
    m: int,
    radius: float,
) -> FloatArray:
    """B by a finer partition (appendix): blocks cut by sequential sampling with a smaller radius.

    B_ij = Σ_ab l_ia l_jb k(o_ia, o_jb) over the pieces o of both blocks, of weight l.
    """
    _, fine = sequential_sample(X, radius)
    _, pieces = np.unique(labels * (fine.max() + 1) + fine, return_inverse=True)
    n_pieces = int(pieces.max()) + 1
    cut = quantize(X, pieces.ravel(), n_pieces, weights)
    block_of = np.empty(n_pieces, np.intp)
    block_of[pieces.ravel()] = labels
    sums = kernel.matrix(cut.representatives, cut.representatives) * cut.weights[:, None]
    sums *= cut.weights
    B = np.zeros((m, n_pieces))
    np.add.at(B, block_of, sums)
    total = np.zeros((m, m))
    np.add.at(total, block_of, B.T)
    return (total + total.T) / 2


def block_objective(
    kernel: Kernel, T: FloatArray, n: FloatArray, B: FloatArray, scale: FloatArray
) -> tuple[float, FloatArray]:
    """f(t), eq. (10) without its constant, and its gradient for an RBF kernel.

    df/dt_k = 8γ Σ_j (B_kj β_kj - A_kj β_kj²)(t_k - t_j): the stationarity behind eq. (11), whose
    iteration as printed goes uphill where its denominator is negative.
    """
    beta = kernel.matrix(T, T) * (scale[:, None] * scale)
    A = np.outer(n, n)
    C = B * beta - A * beta**2
    np.fill_diagonal(C, 0.0)
    gamma: float = kernel.gamma
    gradient = 8.0 * gamma * (C.sum(axis=1)[:, None] * T - C @ T)
    return float((A * beta**2 - 2.0 * B * beta).sum()), gradient


def move_representatives(
    kernel: Kernel, blocks: Quantization, B: FloatArray, scale: FloatArray
) -> FloatArray:
    """Representatives with a smaller f, by L-BFGS; the old ones where it finds none."""
    from scipy.optimize import minimize

    T, n = blocks.representatives, blocks.weights
    seen = kernel.select(np.arange(T.shape[1])[None, :])[0]
    start, _ = block_objective(kernel, T, n, B, scale)
    size = max(abs(start), np.finfo(float).tiny)

    def at(flat: FloatArray) -> FloatArray:
        moved = T.copy()
        moved[:, seen] = flat.reshape(len(T), len(seen))
        return moved

    def value_and_slope(flat: FloatArray) -> tuple[float, FloatArray]:
        f, gradient = block_objective(kernel, at(flat), n, B, scale)
        return f / size, gradient[:, seen].ravel() / size

    flat = T[:, seen].ravel()
    best = minimize(
        value_and_slope, flat, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS}
    )
    moved = at(best.x)
    return moved if block_objective(kernel, moved, n, B, scale)[0] <= start else T
