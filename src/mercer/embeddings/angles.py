"""How far an approximation can have turned the leading eigenvectors."""

from __future__ import annotations

from typing import Any

from mercer._run.recorder import Recorder
from mercer._run.types import FloatArray


def angle_bound(perturbation: float, gap: float) -> float | None:
    """sin θ ≤ ‖E‖ / (gap - ‖E‖) between the spaces of leading eigenvectors of W and W + E.

    Davis and Kahan with the gap of the approximate eigenvalues, of which Weyl's inequality takes
    ‖E‖; None where this says nothing.
    """
    left = gap - perturbation
    return perturbation / left if left > perturbation else None


def angle_note(perturbation: float, gap: float, k: int, record: Recorder) -> None:
    """Say by how much at most the space of k eigenvectors may have turned."""
    sine = angle_bound(perturbation, gap)
    words = f"at most sin θ = {sine:.2g}" if sine is not None else "no bound: the gap is too small"
    record.note(f"rotation of the {k} leading eigenvectors by approximation: {words} (Davis-Kahan)")


def factor_notes(
    factor: Any, values: FloatArray, k: int, record: Recorder, *, total_weight: float
) -> None:
    """What an approximation that knows its error costs a spectral clustering."""
    for note in factor.notes():
        record.note(note)
    error = factor.error_norm(total_weight, is_normalized=True)
    if error is not None and len(values) > k:
        angle_note(error, float(values[k - 1] - values[k]), k, record)
