"""Eigenvectors of a kernel matrix that is constant on blocks (paper 002, sections 2 and 4.5).

Rows are gathered in m blocks of weight n_i; W̄ has the value β_ij where a row of block i meets one
of block j. The eigenvectors of the N×N matrix are constant on blocks, and their values φ_i are
those of a symmetric m×m matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mercer._run.types import FloatArray
from mercer.factors.quantized import Quantization, block_scale, block_values
from mercer.kernels.base import Kernel
from mercer.linalg.eigen import Solver, leading_eigenpairs

Normalization = Literal["none", "additive", "divisive"]


@dataclass(frozen=True, slots=True)
class BlockEigen:
    """Leading eigenvectors on blocks, and how they extend to any row: k(x, t) @ `C` + `offset`.

    For "divisive" the extension lacks the factor d(x)^-½ (of the unit eigenvector) or 1/d(x) (of
    the random-walk vector φ/√d): a length, which normalised cuts remove. `degree` gives d(x).
    """

    values: FloatArray  # (k,) eigenvalues of W̄ (normalised), largest first
    vectors: FloatArray  # (m, k) φ: Σ_i n_i φ_i² = 1
    residuals: FloatArray  # (k,)
    solver: str
    C: FloatArray  # (m, k)
    offset: FloatArray  # (k,)
    degrees: FloatArray  # (m,) d = β n
    degree: FloatArray  # (m,) d(x) = k(x, t) @ degree


def quantized_eigen(
    quantization: Quantization,
    kernel: Kernel,
    k: int,
    *,
    correction: bool = True,
    normalization: Normalization = "none",
    solver: Solver = "auto",
    rng: np.random.Generator | None = None,
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
    rng = np.random.default_rng(0) if rng is None else rng
    pairs = leading_eigenpairs(roots[:, None] * beta * roots, k, solver=solver, rng=rng)
    kept = pairs.values > len(n) * np.finfo(np.float64).eps * pairs.values[0]
    values, U = pairs.values[kept], pairs.vectors[:, kept]
    folded = roots[:, None] * U / values  # Σ_j n_j β_ij φ_j / λ = φ_i
    offset = -means @ folded if normalization == "additive" else np.zeros(len(values))
    return BlockEigen(
        values,
        U / np.sqrt(n)[:, None],
        pairs.residuals[kept],
        pairs.solver,
        scale[:, None] * folded,
        offset,
        degrees,
        scale * n,
    )
