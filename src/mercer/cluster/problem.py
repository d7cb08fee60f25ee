"""From what the user passes to a well-posed problem: rows checked, kernel resolved, budget known.

Every estimator begins here; what cannot work is refused here, before the work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._memory import Budget
from mercer._printable import PrintableErrors
from mercer._types import FloatArray
from mercer._warn import warn
from mercer.cluster.memory import demand_sample, demand_start
from mercer.data.arrays import ArraySource
from mercer.data.distinct import EXACT_ROWS, distinct_rows
from mercer.data.format import RowFormat
from mercer.data.inputs import as_source
from mercer.data.rows import Rows, n_bytes, take
from mercer.data.sample import Sample
from mercer.data.source import Source
from mercer.data.summary import Columns, Summary, summarize
from mercer.data.weights import in_own_unit
from mercer.factors.base import PivotFactor
from mercer.kernels.base import Kernel, column_index
from mercer.kernels.choice import as_kernel
from mercer.kernels.given import GramMatrix, Precomputed
from mercer.kernels.probe import is_resolved, probe_kernel
from mercer.report import Recorder
from mercer.report.quality import SAMPLE_ROWS
from mercer.report.summary import DataSummary, summarize_data
from mercer.selection.bandwidths import around, with_gamma

__all__ = [
    "Problem",
    "check_features",
    "check_values",
    "checked_source",
    "checked_weights",
    "demand_rank",
    "fit_factor",
    "pose",
    "raw_kernel",
    "sampled_rows",
]

SINGLE_RANGE = (1e-9, 1e9)  # float32 works within, where a kernel needs rows in their own units
DOUBLE_RANGE = (1e-140, 1e140)


@dataclass(frozen=True, slots=True)
class Problem:
    """What an estimator works on."""

    source: Source
    weights: FloatArray | None  # (n_rows,) float64, in units of `weight_unit`
    sample: Sample  # the rows that choose
    kernel: Kernel | None  # resolved: its parameters are numbers, in the units of the sample's
    # format (None: the graph scales itself)
    bandwidth: str  # how they came about
    budget: Budget
    block_rows: int
    data: DataSummary | None = None  # what the rows look like
    weight_unit: float = 1.0  # a power of two: what a weight of 1 is in the user's units

    def with_gamma(self, gamma: float) -> Kernel:
        """The kernel with another bandwidth, which is given for raw rows."""
        assert self.kernel is not None
        exponent = self.sample.format.exponent
        return with_gamma(self.kernel.in_units(-exponent), gamma).in_units(exponent)

    def gammas_around(self) -> tuple[float, ...]:
        """The bandwidth, for raw rows, and wider and narrower ones; () for a kernel without."""
        assert self.kernel is not None
        return around(self.kernel.in_units(-self.sample.format.exponent))


def pose(
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
    is_used: bool = True,
    takes_graph: bool = False,
) -> Problem:
    """Check X and the weights, choose the rows that choose, resolve the kernel.

    `least_mean`: the mean similarity that an automatic bandwidth must reach (see Kernel.resolve).
    `least_rows`: as many rows as clusters are asked for. `most_rows`: so many are enough to choose
    by. `kernel`: instead of the estimator's.
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
        record.gives_back = source.n_rows > EXACT_ROWS or not source.in_memory
        needs, block_rows = demand_start(estimator, source, budget, has_weights=weights is not None)
        summary = summarize(source, block_rows=block_rows, weights=weights)
        check_values(kernel, summary, Columns.of(source))
    with record.stage("sample"):
        if isinstance(kernel, Precomputed):
            sample, kernel = _precomputed_sample(source, weights, takes_graph)
        else:
            sample = _sample(source, weights, kernel, summary, most_rows, rng=rng)
            kernel = kernel.in_units(sample.format.exponent)
        demand_sample(needs, budget, len(sample))
    with record.stage("kernel"):
        bandwidth = _bandwidth_words(kernel, least_mean)
        if is_used:
            kernel = kernel.resolve(sample.rows, sample.weights, rng=rng, least_mean=least_mean)
            for text in probe_kernel(kernel, sample.rows):
                record.warn(text)
            if sample.format.dtype == np.float32 and not is_resolved(kernel, sample.rows):
                sample = sample.in_double()
    data = summarize_data(source, sample, summary)
    return Problem(source, weights, sample, kernel, bandwidth, budget, block_rows, data, unit)


def raw_kernel(factor: Any) -> Kernel:
    """The kernel of a factor, as a function of raw rows: what users see."""
    kernel: Kernel = factor.kernel.in_units(-factor.format.exponent)
    return kernel


def fit_factor(
    approximation: Any, problem: Problem, *, rng: np.random.Generator, threads: int, **more: Any
) -> Any:
    """A factor of the problem's kernel on its sample, if it fits into memory."""
    demand_factor(approximation, problem)
    if getattr(approximation, "rare", 0) and not isinstance(problem.kernel, GramMatrix):
        more = {"source": problem.source, "block_rows": problem.block_rows, **more}
    factor: Any = approximation.fit(
        problem.kernel, problem.sample, rng=rng, threads=threads, **more
    )
    if isinstance(factor, PivotFactor) and isinstance(problem.kernel, GramMatrix):
        return replace(factor, kernel=Precomputed())  # new rows bring their part of the matrix
    return factor


def sampled_rows(problem: Problem) -> Rows:
    """A few of the rows that choose, as they came: the sample has an order of its own, by hash."""
    sample = problem.sample
    few = sample.ids[:SAMPLE_ROWS]
    if problem.source.in_memory:
        return problem.source.take(np.sort(few))
    return sample.format.undo(take(sample.rows, np.arange(len(few))))


def checked_source(X: Any, least_rows: int = 1) -> Source:
    """A source with at least one column and so many rows."""
    source = as_source(X)
    for count, what in ((source.n_rows, "sample(s)"), (source.n_features, "feature(s)")):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={(source.n_rows, source.n_features)}) while a "
                "minimum of 1 is required."
            )
    if source.n_rows < least_rows:
        raise ValueError(
            f"n_samples={source.n_rows} should be >= n_clusters={least_rows}: "
            "there are fewer rows than clusters"
        )
    return source


def checked_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Weights as float64, non-negative and of a finite sum, in the user's units; None for None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, np.ma.MaskedArray):
        raise TypeError(
            "sample_weight is a masked array, whose mask would be ignored; fill it "
            "(sample_weight.filled(0) leaves the masked rows out)"
        )
    weights = np.asarray(sample_weight)
    if weights.ndim == 0 and weights.dtype.kind in "fiu":
        weights = np.full(n_rows, weights)
    if weights.dtype.kind not in "fiub" or weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} and dtype {weights.dtype}; "
            f"one number per row is wanted: shape ({n_rows},)"
        )
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity; give each row a finite weight")
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight has the negative value {weights.min():g} at row "
            f"{int(weights.argmin())}; weights count rows and cannot be below 0"
        )
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not np.isfinite(total):
        raise ValueError(
            f"sample_weight has values up to {weights.max():.3g}, whose sum overflows; divide them "
            "by their mean"
        )
    if not (weights > 0).any():
        raise ValueError("every sample_weight is zero: there is nothing to cluster")
    return weights


@PrintableErrors()
def check_features(estimator: Any, source: Source) -> None:
    """Refuse rows whose columns are not those of the fit; warn where names are missing."""
    name = type(estimator).__name__
    fitted = getattr(estimator, "feature_names_in_", None)
    given = source.feature_names
    if given is not None and fitted is None:
        warn(f"X has feature names, but {name} was fitted without feature names", UserWarning)
    elif given is None and fitted is not None:
        warn(
            f"X does not have valid feature names, but {name} was fitted with feature names",
            UserWarning,
        )
    elif given is not None and fitted is not None and tuple(fitted) != given:
        raise ValueError(_names_differ(tuple(fitted), given))
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def _names_differ(fitted: tuple[str, ...], given: tuple[str, ...]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    unseen, missing = sorted(set(given) - set(fitted)), sorted(set(fitted) - set(given))
    for title, names in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if names:
            lines += [title, *(f"- {name}" for name in names[:5])]
            lines += ["- ..."] if len(names) > 5 else []
    if not unseen and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"


def check_values(kernel: Kernel, summary: Summary, columns: Columns) -> None:
    """Refuse values whose squares leave float64, or that the kernel is not defined for."""
    low, high = DOUBLE_RANGE
    if summary.magnitude > high:
        raise ValueError(
            f"X has values up to {summary.magnitude:.3g}, whose squares overflow; "
            "scale its columns, e.g. with sklearn.preprocessing.StandardScaler"
        )
    if 0 < summary.extent < low:
        raise ValueError(
            f"the values of X differ by at most {2 * summary.extent:.3g}, whose square "
            "underflows to 0; scale its columns, e.g. with sklearn.preprocessing.StandardScaler"
        )
    for part in kernel.parts():
        part.check_values(float(_selected_low(part, summary, columns)))


def _selected_low(kernel: Kernel, summary: Summary, columns: Columns) -> float:
    """The smallest value in the columns this kernel looks at."""
    low = summary.low
    if summary.blocks:
        names: Any = columns.names
        number = names.index(kernel.columns) if kernel.columns in names else kernel.columns
        low = summary.blocks[number].low if isinstance(number, int) else low
    elif not isinstance(kernel.columns, str | int):
        low = low[column_index(kernel.columns, len(low))]
    return float(low.min(initial=np.inf))


def _sample(
    source: Source,
    weights: FloatArray | None,
    kernel: Kernel,
    summary: Summary,
    most_rows: int | None,
    *,
    rng: np.random.Generator,
) -> Sample:
    unit = summary.exponent(is_centred=False)
    chosen = distinct_rows(source, weights, rng=rng, most=most_rows, exponent=unit)
    single = source.dtype == np.float32 and (
        kernel.has_units
        or summary.extent == 0
        or SINGLE_RANGE[0] < summary.extent < SINGLE_RANGE[1]
    )
    movable = kernel.movable(chosen.rows)
    exponent = format_exponent(kernel, summary, chosen.rows)
    dtype = np.float32 if single else np.float64
    row_format = RowFormat.centred(chosen.rows, dtype, movable, exponent)
    rows: Rows = row_format.apply_in_place(chosen.rows)
    return Sample(rows, chosen.weights, chosen.ids, row_format, chosen.inverse)


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
            f"kernel='precomputed' wants a {kind}, but X is {type(K).__name__} of shape {shape}"
        )
    K = sp.csr_array(K, dtype=np.float64) if is_graph else np.asarray(K, source.dtype)
    items = np.arange(K.shape[0]) if weights is None else np.flatnonzero(weights > 0)
    kept = np.ones(len(items)) if weights is None else weights[items]
    rows = items.astype(np.float64)[:, None]
    return Sample(rows, kept, items, RowFormat(np.dtype(np.float64))), GramMatrix(K)


def _bandwidth_words(kernel: Kernel, least_mean: float) -> str:
    widened = f", mean similarity at least {least_mean:.2g}" if least_mean else ""
    rules = {
        "auto": f"gamma by the neighbour rule (7th nearest of 1,000 rows{widened})",
        "median": "gamma by the median distance",
        "scale": "gamma by the variance",
    }
    gammas = [getattr(part, "gamma", None) for part in kernel.parts()]
    words = [rules.get(g, str(g)) if isinstance(g, str) else "gamma as given" for g in gammas if g]
    return ", ".join(dict.fromkeys(words)) or "no bandwidth"


def demand_factor(approximation: Any, problem: Problem) -> None:
    """Refuse a factor that cannot fit, before the work, and say which rank would."""
    sample, n_features = problem.sample, problem.source.n_features
    n, itemsize = len(sample), sample.format.dtype.itemsize
    held = n_bytes(sample.rows)
    if getattr(approximation, "makes_dense", False) and sp.issparse(sample.rows):
        held += n * n_features * itemsize
    demand_rank(approximation, (n, n_features), itemsize, held, problem.budget)


def demand_rank(
    approximation: Any, shape: tuple[int, int], itemsize: int, held: int, budget: Budget
) -> None:
    """Refuse a factor of so many rows that does not fit beside what is held."""
    n, n_features = shape
    needed = approximation.memory(n, n_features, itemsize)
    advice = "raise max_memory"
    rank = getattr(approximation, "rank", None)
    if isinstance(rank, int):
        share = (budget.n_bytes - held) / max(needed, 1)
        fitting = int(0.9 * min(rank, n) * share)
        advice += f", or lower the rank to about {fitting}" if fitting >= 1 else ""
    what = f"{approximation!r} on {n:,} rows"
    budget.demand(needed + held, what=what, advice=advice)
