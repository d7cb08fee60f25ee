"""How many clusters a spectrum shows, and whether it determines them."""

from __future__ import annotations

import numpy as np

from mercer._run.recorder import Recorder
from mercer._run.types import FloatArray

LEAST = 1e-8  # 1 - λ below this is a component of its own, up to rounding
UNSOLVED = 1e-3  # an error of eigenvectors that no gap can excuse
CLEAR = 0.5  # a relative gap that speaks for a number of clusters ...
SURE = 0.65  # ... and one that one cloud of points rarely has


def ranked_gaps(values: FloatArray, most: int) -> list[tuple[int, float]]:
    """(k, relative gap) for k = 2 … most, the largest gap first.

    With μ = 1 - λ, the gap after the k-th eigenvalue is (μ_{k+1} - μ_k) / μ_{k+1}: near 1 where k
    clusters are connected to each other much more loosely than within.
    """
    sizes = range(2, min(most, len(values) - 1) + 1)
    gaps = [(k, relative_gap(values, k) or 0.0) for k in sizes]
    return sorted(gaps, key=lambda pair: -pair[1])


def relative_gap(values: FloatArray, k: int) -> float | None:
    """(μ_{k+1} - μ_k) / μ_{k+1} with μ = 1 - λ; None where the next one was not computed."""
    if not 1 < k < len(values):
        return None
    here, after = np.maximum(1.0 - values[k - 1 : k + 1], LEAST)
    return float((after - here) / after)


def strengths(values: FloatArray) -> FloatArray:
    """log(μ_{k+1} / μ_k) for k = 1, 2, …: tells a gap of 0.95 from one of 0.9999."""
    logs: FloatArray = np.log(np.maximum(1.0 - values, LEAST))
    return np.diff(logs)


def n_components(values: FloatArray) -> int:
    """Connected parts of the graph: eigenvalues equal to 1."""
    return int((1.0 - values < LEAST).sum())


def is_determined(values: FloatArray, residuals: FloatArray, k: int) -> bool:
    """Whether the eigenvectors are settled: no more parts than clusters, a gap beyond the error."""
    error = float(residuals[: k + 1].max())
    return (
        n_components(values) <= k
        and error <= UNSOLVED
        and float(values[k - 1] - values[k]) >= 10 * error
    )


def gap_warnings(
    values: FloatArray, residuals: FloatArray, k: int, record: Recorder, *, n_parts: int = 1
) -> None:
    """Say in words where the labels are not determined by the data.

    `n_parts`: unconnected parts of the graph, where the eigenvalues do not show them.
    """
    parts = max(n_components(values), n_parts)
    if parts > k:
        is_counted = n_parts > 1 or parts < len(values)
        record.warn(
            f"the graph falls into {parts if is_counted else 'more than ' + str(k)} "
            f"unconnected parts, but n_clusters is {k}: which parts share a cluster is "
            "arbitrary; ask for more clusters, or connect rows to more others (a smaller gamma, "
            "more neighbours)"
        )
        return
    if len(values) <= k:
        return
    gap, error = float(values[k - 1] - values[k]), float(residuals[: k + 1].max())
    if error > UNSOLVED:
        record.warn(
            f"the eigensolver did not converge (its error is {error:.1e}): the labels may be far "
            "from what the graph says; try another eigen_solver, or connect rows more closely (a "
            "smaller gamma, more neighbours)"
        )
    elif gap < 10 * error:
        record.warn(
            f"eigenvalues {k} and {k + 1} differ by {gap:.1e}, little more than the solver's error "
            f"({error:.1e}): the labels are not determined by the data; try another n_clusters"
        )
