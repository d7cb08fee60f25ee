"""The two discarded roots of the secular equation of a bordered matrix, one row at a time."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit

MOST_STEPS = 60
CLOSE = 1e-10  # of the bracket


@jit
def secular(mu, a2, values, kappa, rho2):
    """f(μ) = κ - μ + Σ a²/(μ - λ) + ρ²/μ."""
    total = 0.0
    for j in range(a2.shape[0]):
        total += a2[j] / (mu - values[j])
    return kappa - mu + total + rho2 / mu


@jit
def root(low, high, a2, values, kappa, rho2, top):
    """The root of f between two poles, by the Illinois rule on f·μ·(top - μ), which has none.

    `top` is the pole at the upper end, or inf where the upper end is the pole at 0.
    """
    upper_pole = top if np.isfinite(top) else 1.0
    middle = 0.5 * (low + high)
    at_low, at_high = 0.0, 0.0
    has_low, has_high = False, False
    for step in range(MOST_STEPS):
        if has_low and has_high and step % 4 != 3:
            middle = high - at_high * (high - low) / (at_high - at_low)
        else:
            middle = 0.5 * (low + high)
        if not (low < middle < high):
            break
        f = secular(middle, a2, values, kappa, rho2)
        g = f * abs(middle) * (upper_pole - middle if np.isfinite(top) else 1.0)
        if f > 0:
            if has_low and has_high:
                at_high *= 0.5
            low, at_low, has_low = middle, g, True
        elif f < 0:
            if has_low and has_high:
                at_low *= 0.5
            high, at_high, has_high = middle, g, True
        else:
            break
        if high - low <= CLOSE * max(abs(low), abs(high)):
            break
    return middle


@jit
def share(mu, a2, values, rho2):
    """t²(μ): what the eigenvector of this root has in the new row."""
    if mu == 0.0:
        return 0.0
    total = 1.0 + rho2 / (mu * mu)
    for j in range(a2.shape[0]):
        gap = mu - values[j]
        if gap == 0.0:
            return 0.0
        total += a2[j] / (gap * gap)
    return 1.0 / total


@jit
def secular_leverage(A, rho2, kappa, values, out):  # out: OUT (n,)
    """ℓ = 1 - t²(μ_{C+1}) - t²(μ_{C+2}) for rows with a = Vᵀφ."""
    c = values.shape[0]
    a2 = np.empty(c)
    for i in range(A.shape[0]):
        length = 0.0
        for j in range(c):
            a2[j] = A[i, j] * A[i, j]
            length += a2[j]
        scale = max(abs(kappa[i]), values[0])
        rest = max(rho2[i], 1e-18 * scale * scale)
        lowest = values[c - 1]
        above = root(0.0, lowest, a2, values, kappa[i], rest, lowest)
        bottom = min(kappa[i], 0.0) - np.sqrt(length + rest) - 1e-12 * scale
        below = root(bottom, 0.0, a2, values, kappa[i], rest, np.inf)
        leverage = 1.0 - share(above, a2, values, rest) - share(below, a2, values, rest)
        out[i] = min(max(leverage, 0.0), 1.0)
