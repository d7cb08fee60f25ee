"""A report as Markdown: for files, tickets and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mercer._run.budget import human_bytes
from mercer._run.printable import printable
from mercer.report.words import facts, number

if TYPE_CHECKING:
    from mercer.report.report import Report


MOST_CLUSTERS = 50  # that the table of sizes shows


def markdown(report: Report) -> str:
    """Title, facts, warnings, clusters, columns, stages."""
    parts = [f"# {_text(report.estimator)}", _table(("what", "value"), facts(report))]
    parts += _list("Warnings", report.warnings) + _list("Notes", report.notes)
    if report.cluster_weights:
        parts += ["## Clusters", _clusters(report)]
    if report.data is not None:
        n = report.data.n_sampled
        parts += ["## Columns", f"Ranges over all rows, mean and spread over {n:,} of them."]
        rows = ((c.name, *map(number, (c.low, c.high, c.mean, c.spread))) for c in _columns(report))
        parts.append(_table(("column", "lowest", "highest", "mean", "spread"), rows))
    stages = (
        (
            stage.name,
            f"{stage.seconds:.3f}",
            f"{stage.cpu_seconds:.3f}",
            human_bytes(stage.peak_memory),
            f"{stage.kernel_evaluations:,}",
        )
        for stage in report.stages
    )
    head = ("stage", "seconds", "CPU seconds", "peak memory", "kernel values")
    return "\n\n".join([*parts, "## Stages", _table(head, stages)]) + "\n"


def _columns(report: Report) -> Sequence[Any]:
    return () if report.data is None else report.data.columns


def _clusters(report: Report) -> str:
    total = sum(report.cluster_weights) or 1.0
    each = report.quality.cluster_separation if report.quality else ()
    rows = [
        (
            f"{c}",
            number(weight),
            f"{100 * weight / total:.1f} %",
            number(each[c]) if c < len(each) and each[c] is not None else "–",
        )
        for c, weight in enumerate(report.cluster_weights[:MOST_CLUSTERS])
    ]
    table = _table(("cluster", "weight", "share", "separation"), rows)
    left = len(report.cluster_weights) - MOST_CLUSTERS
    return f"{table}\n\nand {left} smaller ones" if left > 0 else table


def _list(title: str, texts: Iterable[str]) -> list[str]:
    lines = [f"- {_text(text)}" for text in texts]
    return [f"## {title}", "\n".join(lines)] if lines else []


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_text, line)) + " |" for line in lines)


def _text(value: str) -> str:
    """Names of files and columns stay text: no table is cut and no markup begins in them."""
    flat = printable(" ".join(str(value).split()))
    for sign in "\\`*_|[]#":
        flat = flat.replace(sign, f"\\{sign}")
    return flat.replace("<", "&lt;").replace(">", "&gt;")
