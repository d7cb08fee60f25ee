"""From what the user passes to a well-posed problem: rows checked, kernel resolved, budget known.

Every estimator begins here; what cannot work is refused here, before the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.budget import Budget
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads
from mercer._run.types import FloatArray, IdArray
from mercer.estimators.needs import demand_sample, demand_start
from mercer.factors.problem import Problem
from mercer.kernels.bandwidth import describe_bandwidth
from mercer.kernels.base import Kernel
from mercer.kernels.domain import check_values
from mercer.kernels.given import GramMatrix
from mercer.kernels.probe import is_resolved, probe_kernel
from mercer.kernels.registry import as_kernel
from mercer.partitions.quality import SAMPLE_ROWS
from mercer.rows.arrays import ArraySource
from mercer.rows.checks import checked_source, checked_weights
from mercer.rows.data_summary import summarize_data, uneven_columns
from mercer.rows.distinct import EXACT_ROWS, distinct_rows
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, take
from mercer.rows.sample import Sample
from mercer.rows.source import Source
from mercer.rows.summary import Columns, Summary, summarize
from mercer.rows.weights import in_own_unit

UNIT = 4e-3  # of a length of 1, which half precision and rounding to 8 bits leave
SINGLE_RANGE = (1e-9, 1e9)  # float32 works within, where a kernel needs rows in their own units


def prepare_problem(
    estimator: Any,
    X: Any,
    sample_weight: Any,
    *,
    rng: np.random.Generator,
    record: Recorder,
    kernel: Kernel | None = None,
    least_mean: float = 0.0,
    least_rows: int = 1,
    most_rows: int | None = None,
    wanted_rows: int = 0,
    is_used: bool = True,
    takes_graph: bool = False,
) -> Problem:
    """Check X and the weights, draw the sample, resolve the kernel.

    `least_mean`: the mean similarity that an automatic bandwidth must reach (see Kernel.resolve).
    `least_rows`: as many rows as clusters are asked for. `most_rows`: a sample of so many is
    enough. `wanted_rows`: so many are wanted of more. `kernel`: instead of the estimator's.
    `is_used`: whether the kernel will be evaluated, or only tells how rows are to be formatted.
    `takes_graph`: whether a precomputed matrix may be sparse.
    """
    budget = Budget.of(estimator.max_memory)
    kernel = as_kernel(estimator.kernel, estimator.gamma) if kernel is None else kernel
    for part in kernel.parts():
        part.check_parameters()
    with record.stage("check"):
        source = checked_source(X, least_rows)
        weights, unit = in_own_unit(checked_weights(sample_weight, source.n_rows))
        kernel = kernel.named_columns(source.feature_names)
        unit_length, kernel = kernel.scales_rows, kernel.of_unit_rows()
        if unit_length:
            record.note(
                f"rows are scaled to unit length and compared by {type(kernel).__name__}: "
                "distances are those of angles"
            )
        record.gives_back = source.n_rows > EXACT_ROWS or not source.in_memory
        needs, block_rows = demand_start(estimator, source, budget, has_weights=weights is not None)
        threads = n_threads(estimator.n_jobs)
        summary = summarize(source, block_rows=block_rows, weights=weights, threads=threads)
        check_values(kernel, summary, Columns.of(source))
    with record.stage("sample"):
        if kernel.is_precomputed:
            sample, kernel = _precomputed_sample(source, weights, takes_graph)
        else:
            size = most_rows, wanted_rows
            sample = _sample(
                source, weights, kernel, summary, size, unit_length=unit_length, rng=rng
            )
            _note_unit_rows(source, sample, record, is_scaled=unit_length)
            kernel = kernel.in_units(sample.format.exponent)
        demand_sample(needs, budget, len(sample))
    with record.stage("kernel"):
        bandwidth = describe_bandwidth(kernel, least_mean)
        if is_used:
            kernel = kernel.resolve(sample.rows, sample.weights, rng=rng, least_mean=least_mean)
            for text in probe_kernel(kernel, sample.rows):
                record.warn(text)
            if sample.format.dtype == np.float32 and not is_resolved(kernel, sample.rows):
                sample = sample.in_double()
    is_isotropic = (kernel.is_gaussian or kernel.has_bins) and kernel.columns is None
    if is_isotropic and (words := uneven_columns(source, sample)) is not None:
        record.note(words)
    data = summarize_data(source, sample, summary)
    return Problem(source, weights, sample, kernel, bandwidth, budget, block_rows, data, unit)


def sampled_rows(problem: Problem, most: int = SAMPLE_ROWS) -> tuple[IdArray, Rows]:
    """A few rows of the sample as they came, and their places there, by ascending row number.

    The sample has an order of its own, by hash: its first rows are a draw.
    """
    sample = problem.sample
    places = np.argsort(sample.ids[:most], kind="stable")
    if problem.source.in_memory:
        return places, problem.source.take(sample.ids[places])
    return places, sample.format.undo(take(sample.rows, places))


def _sample(
    source: Source,
    weights: FloatArray | None,
    kernel: Kernel,
    summary: Summary,
    size: tuple[int | None, int],
    *,
    unit_length: bool,
    rng: np.random.Generator,
) -> Sample:
    unit = summary.exponent(is_centred=False)
    most, wanted = size
    chosen = distinct_rows(source, weights, rng=rng, most=most, wanted=wanted, exponent=unit)
    single = source.dtype == np.float32 and (
        kernel.has_units
        or summary.extent == 0
        or SINGLE_RANGE[0] < summary.extent < SINGLE_RANGE[1]
    )
    movable = kernel.movable(chosen.rows)
    exponent = 0 if unit_length else format_exponent(kernel, summary, chosen.rows)
    dtype = np.float32 if single else np.float64
    row_format = RowFormat.centred(chosen.rows, dtype, movable, exponent, unit_length=unit_length)
    rows: Rows = row_format.apply_in_place(chosen.rows)
    return Sample(rows, chosen.weights, chosen.ids, row_format, chosen.inverse)


def _note_unit_rows(source: Source, sample: Sample, record: Recorder, *, is_scaled: bool) -> None:
    """Say so where rows have unit length as they came, which embeddings often have."""
    if source.in_memory:
        raw = source.take(np.sort(sample.ids[:SAMPLE_ROWS]))
    elif is_scaled:  # lengths were not kept
        return
    else:
        raw = sample.format.undo(take(sample.rows, np.arange(min(len(sample), SAMPLE_ROWS))))
    if not isinstance(raw, np.ndarray):
        return
    lengths = np.sqrt(np.einsum("ij,ij->i", raw, raw, dtype=np.float64))
    if raw.shape[1] > 1 and np.abs(lengths - 1.0).max(initial=0.0) < UNIT:
        more = "" if is_scaled else ": their distances are those of angles, as with kernel='cosine'"
        record.note(f"rows already have unit length{more}")


def format_exponent(kernel: Kernel, summary: Summary, rows: Rows) -> int:
    """Of the unit in which the largest value that the kernel sees is about 1, if it can follow."""
    if not kernel.has_units:
        return 0
    is_centred = isinstance(rows, np.ndarray) and bool(np.all(kernel.movable(rows)))
    return summary.exponent(is_centred=is_centred)


def _precomputed_sample(
    source: Source, weights: FloatArray | None, takes_graph: bool
) -> tuple[Sample, Kernel]:
    """Items instead of rows; the matrix itself is the kernel while fitting."""
    K: Any = source.X if isinstance(source, ArraySource) else source.read(0, source.n_rows)
    is_graph = takes_graph and sp.issparse(K)
    shape = getattr(K, "shape", None)
    if not (isinstance(K, np.ndarray) or is_graph) or shape is None or shape[0] != shape[1]:
        kind = "square matrix of affinities" if takes_graph else "dense square matrix k(X, X)"
        raise ValueError(
            f"kernel='precomputed' needs a {kind}, but X is {type(K).__name__} of shape {shape}"
        )
    K = sp.csr_array(K, dtype=np.float64) if is_graph else np.asarray(K, source.dtype)
    items = np.arange(K.shape[0]) if weights is None else np.flatnonzero(weights > 0)
    kept = np.ones(len(items)) if weights is None else weights[items]
    rows = items.astype(np.float64)[:, None]
    return Sample(rows, kept, items, RowFormat(np.dtype(np.float64))), GramMatrix(K)
