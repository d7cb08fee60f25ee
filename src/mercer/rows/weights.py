"""Weights in a unit of their own, so that products and sums of them stay within float64."""

from __future__ import annotations

import numpy as np

from mercer._run.types import FloatArray


def in_own_unit(weights: FloatArray | None) -> tuple[FloatArray | None, float]:
    """Weights whose largest is in [1, 2), and the power of two they are multiples of.

    Dividing by a power of two rounds nothing, so weights and 2ᵗ times these weights are the same
    problem to the last bit. What is reported in the user's units is multiplied by the unit again.
    None (every row counts once) stays None, with the unit 1.
    """
    if weights is None:
        return None, 1.0
    unit = float(np.ldexp(1.0, np.frexp(weights.max())[1] - 1))
    return weights / unit, unit
