"""What a report says, as short texts: shared by the page, the card and Markdown."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from mercer._run.budget import human_bytes

if TYPE_CHECKING:
    from mercer.report.report import Report


def facts(report: Report) -> list[tuple[str, str]]:
    """(what, value) pairs, the same everywhere a report is shown."""
    told = [
        ("rows", f"{report.n_rows:,} ({report.n_distinct:,} distinct rows chose)"),
        ("columns", f"{report.n_features:,}, {report.dtype}"),
        ("kernel", report.kernel),
        ("bandwidth", report.bandwidth or "as given"),
        ("approximation", f"{report.approximation}: rank {report.rank:,}"),
        ("trace error", _trace_error(report)),
    ]
    if report.cluster_weights:
        told.append(("clusters", f"{len(report.cluster_weights)}"))
    if report.inertia is not None:
        told.append(("inertia", f"{number(report.inertia)} after {report.n_iter} sweeps"))
    if report.explained is not None:
        told.append(("explained by centres", share(report.explained)))
    told += _spectrum(report) + quality_facts(report)
    seconds = sum(stage.seconds for stage in report.stages)
    peak = max((stage.peak_memory for stage in report.stages), default=0)
    told.append(("time", f"{seconds:.3g} s"))
    told.append(("peak memory", human_bytes(peak)))
    told.append(("kernel values computed", f"{report.kernel_evaluations:,}"))
    return told


def number(value: float | None) -> str:
    """Four digits, thousands told apart; whole numbers whole."""
    if value is None or not isfinite(value):
        return "–"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.4g}" if 1e-3 <= abs(value) < 1e6 else f"{value:.3g}"


def share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _trace_error(report: Report) -> str:
    if report.trace_error is None:
        return "unknown (a graph has none)"
    return f"{report.trace_error:.3g} of the trace"


def _spectrum(report: Report) -> list[tuple[str, str]]:
    if not report.eigenvalues:
        return []
    more = ", …" if len(report.eigenvalues) > 8 else ""
    told = [("eigenvalues", ", ".join(f"{v:.4f}" for v in report.eigenvalues[:8]) + more)]
    if report.residuals:
        told.append(("largest residual", f"{max(report.residuals):.1e}"))
    if report.gap is not None:
        told.append(("relative gap", f"{report.gap:.2f} after the clusters' own eigenvalues"))
    return told


def quality_facts(report: Report) -> list[tuple[str, str]]:
    """How far the clusters stand apart, and how firmly."""
    quality, told = report.quality, []
    if quality is not None and quality.separation is not None:
        told.append(("separation", f"{quality.separation:.2f} (on {quality.n_rows:,} rows)"))
    if report.stability is not None:
        told.append(("stability", f"{report.stability:.2f} (clusters made from two halves)"))
    if report.trust is not None:
        told.append(("trust", report.trust.grade))
    return told
