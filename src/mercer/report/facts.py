"""What a report states: one list of facts and three tables, which every form of it renders."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from mercer._run.budget import human_bytes
from mercer._run.frozen import frozen

if TYPE_CHECKING:
    from mercer.report.report import Report


SIZES, VALUES = 12, 8  # clusters and eigenvalues that a fact lists
MOST_CLUSTERS = 50  # rows of the table of clusters
ROUNDING = 1e-12  # of the size of values: a mean of less is 0
LONG = re.compile(r"\d+\.\d{4,}(e[+-]?\d+)?")  # numbers with more digits than a reader needs


@frozen
class Fact:
    """One statement about a fit; those with a `headline` are the figures a reader looks at first.

    Attributes
    ----------
    name : str
        What is stated, in at most 14 characters.
    value : Any
        The number or word, as the report holds it.
    text : str
        The value in words, with its unit.
    headline : str
        The value alone; empty where it is a detail.
    meaning : str
        How to read the headline.
    """

    name: str
    value: Any
    text: str
    headline: str = ""
    meaning: str = ""


@frozen
class Table:
    """Cells as text: names in the first column, numbers in the others."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def list_facts(report: Report, noun: str = "cluster") -> list[Fact]:
    """What is known about a fit, in the order in which it is shown."""
    r, weights, quality = report, report.cluster_weights, report.quality
    n, k, columns = f"{r.n_rows:,}", len(weights), f"{r.n_features:,} columns, {r.dtype}"
    apart = None if quality is None else quality.separation
    n_judged = 0 if quality is None else quality.n_rows
    largest = share(max(weights, default=0.0) / (sum(weights) or 1.0)).replace(" ", "\u00a0")
    seconds = sum(stage.seconds for stage in r.stages)
    peak = max((stage.peak_memory for stage in r.stages), default=0)
    time, memory = f"{seconds:.3g} s", human_bytes(peak)
    stream = ", ".join(count_of(name, value) for name, value in r.stream.items())
    work = ", ".join(_work(name, count) for name, count in r.work.items())
    solver = f"; solver: {r.solver}" if r.solver else ""
    clear, touching = f"1: the number of {noun}s is clear", "1: far apart, 0: touching"
    listed = [
        Fact("rows", r.n_rows, f"{n} ({r.n_distinct:,} distinct rows in the sample)", n, columns),
        Fact("columns", r.n_features, f"{r.n_features:,}, {r.dtype}"),
        Fact("kernel", r.kernel, LONG.sub(lambda found: f"{float(found[0]):.4g}", r.kernel)),
        Fact("bandwidth", r.bandwidth, r.bandwidth or "as given"),
        Fact("approximation", r.rank, f"{r.approximation}: rank {r.rank:,}"),
        Fact("trace error", r.trace_error, f"{number(r.trace_error)} of the trace"),
        Fact(f"{noun}s", weights, f"{k:,}", f"{k:,}", f"the largest holds {largest}"),
        Fact(f"{noun} sizes", weights, _first(weights, SIZES, number)),
        Fact("inertia", r.inertia, f"{number(r.inertia)} after {r.n_iter} sweeps"),
        Fact("explained", r.explained, f"{share(r.explained)} of the kernel, by the centres"),
        Fact("eigenvalues", r.eigenvalues, _first(r.eigenvalues, VALUES, "{:.4f}".format)),
        Fact("residual", r.residuals, f"{max(r.residuals, default=0):.1e} at most{solver}"),
        _score("spectral gap", r.gap, f"(relative, after the eigenvalues of the {noun}s)", clear),
        _score("separation", apart, f"(on {n_judged:,} rows; {touching})", touching),
        _score("stability", r.stability, "(ARI of two halves of the rows)", "1: two halves agree"),
        Fact("trust", r.trust, str(r.trust)),
        Fact("stream", r.stream, stream),
        Fact("work", r.work, work),
        Fact("time", seconds, time, time, f"peak memory {memory}"),
        Fact("peak memory", peak, memory),
        Fact("kernel values", r.kernel_evaluations, f"{r.kernel_evaluations:,} computed"),
    ]
    return [fact for fact in listed if fact.value not in (None, (), {})]


def messages(report: Report) -> list[tuple[str, str]]:
    """("warning" or "note", text), warnings first."""
    return [
        *(("warning", text) for text in report.warnings),
        *(("note", text) for text in report.notes),
    ]


def clusters_table(report: Report) -> Table:
    """Weight, share and separation of the largest clusters."""
    weights = report.cluster_weights
    rows = tuple(
        (f"{c}", number(weight), share(weight / (sum(weights) or 1.0)), separation(report, c))
        for c, weight in enumerate(weights[:MOST_CLUSTERS])
    )
    left = len(weights) - MOST_CLUSTERS
    note = f"and {left} smaller ones" if left > 0 else ""
    return Table("Clusters", ("cluster", "weight", "share", "separation"), rows, note)


def columns_table(report: Report) -> Table:
    """Ranges, means and standard deviations of the first columns."""
    if report.data is None:
        return Table("Columns", (), ())
    columns, n_sampled = report.data.columns, report.data.n_sampled
    rows = tuple(
        (c.name, *map(number, (c.low, c.high, rounded(c.mean, c.spread), c.spread)))
        for c in columns
    )
    note = "Ranges over all rows; mean and standard deviation"
    note = f"{note} on {n_sampled:,} distinct rows."
    if report.data.density is not None:
        note += f" {share(report.data.density)} of the entries are not zero."
    return Table("Columns", ("column", "lowest", "highest", "mean", "std. dev."), rows, note)


def stages_table(report: Report) -> Table:
    """Time, memory and kernel values of each stage."""
    rows = tuple(
        (
            stage.name,
            f"{stage.seconds:.3f}",
            f"{stage.cpu_seconds:.3f}",
            human_bytes(stage.peak_memory),
            f"{stage.kernel_evaluations:,}",
        )
        for stage in report.stages
    )
    return Table("Stages", ("stage", "seconds", "CPU", "peak memory", "kernel values"), rows)


def count_of(name: str, value: float) -> str:
    """One number of a stream in words: 399 batches, 2,500 rows in the buffer."""
    words = {"buffer": "rows in the buffer", "n_batches": "batches"}.get(name, name)
    if name == "unexplained":
        return f"{share(value)} of the latest rows unexplained"
    return f"{number(value)} {words}"


def number(value: float | None) -> str:
    """Four digits, or all before the decimal point with thousands separators."""
    if value is None or not isfinite(value):
        return "–"
    if abs(value) < 1e15 and (float(value).is_integer() or abs(value) >= 1e3):
        return f"{value:,.0f}"
    return f"{value:.4g}" if 1e-3 <= abs(value) < 1e3 else f"{value:.3g}"


def rounded(mean: float, size: float) -> float:
    """A mean of values of this size; 0 where it is only what rounding left of a sum of zero."""
    return mean if abs(mean) > ROUNDING * size else 0.0


def share(value: float | None) -> str:
    """A percentage with one decimal."""
    return "–" if value is None else f"{100 * value:.1f} %"


def separation(report: Report, cluster: int) -> str:
    """How far one cluster stands apart from the others."""
    each = () if report.quality is None else report.quality.cluster_separation
    return number(each[cluster]) if cluster < len(each) else "–"


def _score(name: str, value: float | None, text: str, meaning: str) -> Fact:
    """A figure, mostly between 0 and 1, that is also a headline."""
    figure = "–" if value is None else f"{value:.2f}"
    return Fact(name, value, f"{figure} {text}", figure, meaning)


def _work(name: str, count: int) -> str:
    return f"{human_bytes(count)} read" if name == "bytes read" else f"{count:,} {name}"


def _first(values: Sequence[float], most: int, form: Callable[[float], str]) -> str:
    """The first values, and how many more there are."""
    more = f", and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(map(form, values[:most])) + more
