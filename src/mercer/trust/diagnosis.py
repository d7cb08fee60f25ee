"""Measure how reliable a fit is: a bounded sample of rows is clustered again and examined.

The cost does not grow with the number of rows. Nothing is drawn from the fit's random stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.recorder import Recorder
from mercer._run.types import FloatArray, IdArray
from mercer.embeddings.gaps import is_determined, relative_gap
from mercer.estimators.needs import LOOKED_AT
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.partitions.evidence import agreement, chance_cut, cut_share, loose_share, nearest_edges
from mercer.partitions.resampling import FitEvidence
from mercer.rows.rows import cast, take
from mercer.rows.sample import Sample, evenly
from mercer.trust.grade import Measurements, Trust, judge

NEAR_ROWS = LOOKED_AT  # rows whose neighbours are examined
FEW_ROWS = 200  # the same where the user's function computes each similarity
NEIGHBORS = 7
ENOUGH = 5  # rows per cluster that a half of the rows needs at least


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
        record.warn(f"these clusters look unreliable: {reasons} (see report_.trust)")
    return trust


def _measure(fit: FitEvidence, problem: Problem) -> Measurements:
    k, sample = len(fit.weights), problem.sample
    shares = fit.weights / fit.weights.sum()
    found: dict[str, Any] = {}
    resampler = fit.resampler
    if resampler.n_rows >= 2 * ENOUGH * k:
        found["stability"] = agreement(resampler.labels, resampler.n_rows)
        found["n_halved"] = resampler.n_rows
    if not fit.is_graph:
        found |= _measure_neighbors(fit, problem, k)
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
        **found,
    )


def _measure_neighbors(fit: FitEvidence, problem: Problem, k: int) -> dict[str, Any]:
    """How often boundaries split close rows, which rows are disconnected, how similar rows are."""
    few = fit.kernel is not None and fit.kernel.is_function
    ids = evenly(len(problem.sample), FEW_ROWS if few else NEAR_ROWS)
    if len(ids) < 3:
        return {}
    alike = _similarity_matrix(fit.kernel, problem.sample, ids)
    found: dict[str, Any] = {}
    if fit.kernel is not None:
        found["similarities"] = _similarities(alike)
    q = min(NEIGHBORS, len(ids) // (4 * k))
    if q < 2:
        return found
    labels, edges = _labels_of(fit, problem, ids), nearest_edges(alike, q)
    by_chance = chance_cut(alike, edges, k, rng=np.random.default_rng(0))
    if by_chance > 0:
        found["borders"] = cut_share(edges, labels) / by_chance
    if q == NEIGHBORS:
        found["pieces"] = loose_share(edges, labels)
    return found


def _similarities(alike: FloatArray) -> tuple[float, float, float]:
    """Median similarity of a row to its nearest row; mean and least similarity of two rows."""
    n, own = len(alike), alike.trace()
    least, mean = float(alike.min()), float((alike.sum() - own) / (n * (n - 1)))
    np.fill_diagonal(alike, -np.inf)  # nothing reads the diagonal after this
    return float(np.median(alike.max(axis=1))), mean, least


def _similarity_matrix(kernel: Kernel | None, sample: Sample, ids: IdArray) -> FloatArray:
    """Similarities of some rows: cosines in the kernel's space, or minus squared distances."""
    rows = cast(take(sample.rows, ids), np.float64)
    if kernel is not None:
        K = np.asarray(kernel.matrix(rows, rows), np.float64)
        diagonal = np.diagonal(K)
        length = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        K /= length[:, None]  # in place, here and below: the widest matrix of many fits
        K /= length
        return K
    products = rows @ rows.T
    products = products.toarray() if sp.issparse(products) else products
    norms = np.diagonal(products).copy()
    products *= 2.0
    products -= norms[:, None]
    products -= norms
    return products


def _labels_of(fit: FitEvidence, problem: Problem, ids: IdArray) -> IdArray:
    sample = problem.sample
    if fit.labels is not None:
        return fit.labels[sample.ids[ids]]
    return fit.decide(sample.format.undo(take(sample.rows, ids)))
