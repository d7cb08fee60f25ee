"""How much a new row would hold of the leading eigenspace, before it joins.

A row x has edges φ to the buffer, where K ≈ V diag(λ) Vᵀ, and κ = k(x, x); a = Vᵀφ and
ρ² = ‖φ‖² - ‖a‖².
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray

_jit = LazyModule("mercer.stream._leverage_jit")


def secular_leverage(
    A: FloatArray, rho2: FloatArray, kappa: FloatArray, values: FloatArray
) -> FloatArray:
    """The leverage of eq. (3) that a row would have in the bordered matrix.

    That matrix has C + 2 eigenvalues, roots of f(μ) = κ - μ + Σ a²/(μ - λ) + ρ²/μ, and the C
    largest are kept; what the two others have in the new row is lost:
    ℓ = 1 - t²(μ_{C+1}) - t²(μ_{C+2}), t²(μ) = 1/(1 + Σ a²/(μ - λ)² + ρ²/μ²). O(C) per step.
    Rows unlike anything in the buffer have ℓ = 0 while κ < λ_C: see `ridge_leverage`.
    """
    out = np.empty(len(A))
    _jit.secular_leverage(np.ascontiguousarray(A, np.float64), rho2, kappa, values, out)
    return out


def ridge_leverage(
    A: FloatArray, rho2: FloatArray, kappa: FloatArray, values: FloatArray, ridge: float
) -> FloatArray:
    """τ = 1 - g/(κ + g - Σ a²/(λ + g) - ρ²/g): the diagonal of K(K + gI)⁻¹ for the new row."""
    explained = (A**2 / (values + ridge)).sum(axis=1) + rho2 / ridge
    return np.clip(1.0 - ridge / np.maximum(kappa + ridge - explained, ridge), 0.0, 1.0)


def squared_remainders(phi: Any, A: FloatArray) -> FloatArray:
    """ρ² = ‖φ‖² - ‖a‖² of sparse rows φ."""
    lengths = np.asarray(phi.multiply(phi).sum(axis=1)).ravel()
    return np.maximum(lengths - np.einsum("ij,ij->i", A, A), 0.0)
