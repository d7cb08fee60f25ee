"""Measure how reliable a fit is: a bounded sample of rows is clustered again and examined.

The cost does not grow with the number of rows. Nothing is drawn from the fit's random stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._run.recorder import Recorder
from mercer._run.types import IdArray
from mercer.embeddings.gaps import is_determined, relative_gap
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.partitions.evidence import cut_share, loose_share
from mercer.partitions.examined import EXAMINED, NARROW, NEAR, examine, similarities
from mercer.partitions.resampling import FitEvidence
from mercer.rows.data_summary import uneven_columns
from mercer.rows.rows import take
from mercer.rows.sample import Sample, evenly
from mercer.trust.grade import METHODS, Measurements, Trust, judge

FEW_ROWS = 200  # examined where the user's function computes each similarity
PER_CLUSTER = 10  # rows of each cluster that a comparison with other methods needs
ENOUGH = 5  # rows per cluster that a half of the rows needs at least
SPLITS, MANY_ROWS = 3, 2000  # into halves; one of more rows, where it changes little


def diagnose(fit: FitEvidence, problem: Problem, record: Recorder) -> Trust | None:
    """Grade a fit; None for a single cluster.

    A poor grade is a warning, unless another warning of this fit already says what to change.
    """
    if len(fit.weights) < 2:
        return None
    with record.stage("trust"):
        trust = judge(_measure(fit, problem))
    if trust.grade == "poor" and not record.warnings:
        reasons = "; ".join(trust.worst())
        record.warn(f"these clusters look unreliable: {reasons} (see trust in the report)")
    return trust


def _measure(fit: FitEvidence, problem: Problem) -> Measurements:
    k, sample = len(fit.weights), problem.sample
    shares = fit.weights / fit.weights.sum()
    found: dict[str, Any] = {}
    resampler = fit.resampler
    if resampler.n_rows >= 2 * ENOUGH * k:
        splits = SPLITS if resampler.n_rows <= MANY_ROWS else 1
        found["stability"] = resampler.agreement(splits)
        found["n_halved"] = resampler.n_rows
    if not fit.is_graph:
        found |= _examine(fit, problem, k)
    if fit.eigenvalues is not None and fit.residuals is not None and len(fit.eigenvalues) > k:
        found["gap"] = relative_gap(fit.eigenvalues, k)
        found["is_undetermined"] = not is_determined(fit.eigenvalues, fit.residuals, k)
    return Measurements(
        k,
        explained=fit.explained,
        trace_error=fit.trace_error,
        ignored=fit.n_clamped / len(sample),
        largest=float(shares.max()),
        smallest=float(shares.min()),
        spreads=_spread_ratio(sample),
        is_uneven=_is_isotropic(fit.kernel) and uneven_columns(problem.source, sample) is not None,
        **found,
    )


def _examine(fit: FitEvidence, problem: Problem, k: int) -> dict[str, Any]:
    """How often boundaries split close rows, which rows are disconnected, what others find."""
    few = fit.kernel is not None and fit.kernel.is_function
    ids = _examined_rows(fit, problem.sample, FEW_ROWS if few else EXAMINED)
    if len(ids) < 3:
        return {}
    found: dict[str, Any] = {}
    if fit.kernel is not None:
        found["similarities"] = similarities(fit.kernel, problem.sample, ids)
    q = min(NEAR, len(ids) // (4 * k))
    if q < 2:
        return found
    rows, labels = examine(fit.kernel, problem.sample, ids), _labels_of(fit, problem, ids)
    apart = rows.set_apart(labels, k)
    if apart.any():  # right by themselves: the others are examined without them
        rest = np.flatnonzero(~apart[labels])
        k, labels = k - int(apart.sum()), (np.cumsum(~apart) - 1)[labels[rest]]
        if k <= 1:
            return found | {"borders": 0.0, "agreements": dict.fromkeys(METHODS, 1.0)}
        rows = rows.take(rest)
    edges = rows.near[:, :q]
    if (by_chance := rows.chance_share(edges, k)) > 0:
        found["borders"] = cut_share(edges, labels) / by_chance
    if q == NEAR:
        found["pieces"] = loose_share(edges, labels)
    if len(ids) >= PER_CLUSTER * k:
        found["agreements"] = rows.agreements(labels, k)
    return found


def _examined_rows(fit: FitEvidence, sample: Sample, most: int) -> IdArray:
    """Some rows of the sample, and all of the smallest clusters where the labels are known."""
    ids = evenly(len(sample), most)
    if fit.labels is None or len(ids) == len(sample):
        return ids
    labels = fit.labels[sample.ids]
    sizes = np.bincount(labels)
    return np.union1d(ids, np.flatnonzero(sizes[labels] <= NARROW))


def _is_isotropic(kernel: Kernel | None) -> bool:
    """Whether all columns count alike."""
    return kernel is None or (kernel.is_gaussian and kernel.columns is None)


def _spread_ratio(sample: Sample) -> float:
    """The largest over the smallest standard deviation of columns that vary."""
    if not isinstance(sample.rows, np.ndarray):
        return 1.0
    spread = sample.rows[evenly(len(sample), EXAMINED)].std(axis=0, dtype=np.float64)
    spread = spread[spread > 0]
    return float(spread.max() / spread.min()) if len(spread) else 1.0


def _labels_of(fit: FitEvidence, problem: Problem, ids: IdArray) -> IdArray:
    sample = problem.sample
    if fit.labels is not None:
        return fit.labels[sample.ids[ids]]
    return fit.decide(sample.format.undo(take(sample.rows, ids)))
