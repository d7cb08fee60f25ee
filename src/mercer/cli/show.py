"""What a verb prints when it is done: the report as a table, and the files it wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mercer._run.printable import printable
from mercer.cli.vocabulary import say

if TYPE_CHECKING:
    from mercer.cli.segment import Outcome
    from mercer.report import Report


SIZES = 12  # clusters whose size is shown
VALUES = 8  # eigenvalues that are shown


def show_report(report: Report) -> None:
    """The report as a table on standard output (its warnings went to standard error)."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(Text.assemble((report.estimator, "bold"), f"  {_shape(report)}"))
    console.print(_facts(report), "", _stages(report), "", sep="\n")


def show_json(values: Mapping[str, object], written: Mapping[str, Path | None]) -> None:
    """Values and the paths written, for machines."""
    paths = {what: str(path) for what, path in written.items() if path is not None}
    typer.echo(json.dumps({**values, "written": paths}, indent=2))


def show_written(written: Mapping[str, Path | None]) -> None:
    """A line for each file that was written."""
    for what, path in written.items():
        if path is not None:
            say(f"wrote {path}  ({what})")


def show_segments(outcomes: Sequence[Outcome], *, quiet: bool) -> None:
    """A line for each image; those that failed on standard error, and how many at the end."""
    failed = [outcome for outcome in outcomes if outcome.error]
    for outcome in outcomes:
        if not outcome.error and not quiet:
            height, width = outcome.shape
            paths = (outcome.job.picture, outcome.job.labels)
            written = ", ".join(str(path) for path in paths if path is not None)
            say(
                f"{outcome.job.image}  {height:,} × {width:,}, {outcome.n_segments} segments, "
                f"{outcome.seconds:.2f} s  → {written}"
            )
    for outcome in failed:
        name = f"{outcome.job.image}"
        where = "" if outcome.error.startswith(name) else f"{name}: "
        say(f"error: {where}{outcome.error}", err=True)
    if failed and len(outcomes) > 1:
        typer.echo(f"{len(failed)} of {len(outcomes)} images failed", err=True)


def _shape(report: Report) -> str:
    return f"{report.n_rows:,} rows × {report.n_features:,} columns, {report.dtype}"


def _facts(report: Report) -> Table:
    from mercer.report.words import quality_facts

    error = "" if report.trace_error is None else f", error {report.trace_error:.3g} of the trace"
    facts = [
        ("kernel", report.kernel),
        ("bandwidth", report.bandwidth),
        ("approximation", f"{report.approximation}: rank {report.rank}{error}"),
        ("cluster sizes", _sizes(report)),
    ]
    if report.inertia is not None:
        facts.append(("inertia", f"{report.inertia:.6g} after {report.n_iter} sweeps"))
    if report.eigenvalues:
        facts.append(("eigenvalues", _eigenvalues(report)))
    facts += quality_facts(report)
    facts += [("note", note) for note in report.notes]
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan")
    table.add_column()
    for name, value in facts:
        table.add_row(name, printable(value))
    return table


def _sizes(report: Report) -> str:
    sizes = report.cluster_weights
    more = f", and {len(sizes) - SIZES} more" if len(sizes) > SIZES else ""
    return ", ".join(f"{size:,.6g}" for size in sizes[:SIZES]) + more


def _eigenvalues(report: Report) -> str:
    values = report.eigenvalues
    more = f", and {len(values) - VALUES} more" if len(values) > VALUES else ""
    return ", ".join(f"{value:.4f}" for value in values[:VALUES]) + more


def _stages(report: Report) -> Table:
    from mercer._run.budget import human_bytes

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    table.add_column("stage")
    for name in ("seconds", "CPU", "peak memory", "kernel values"):
        table.add_column(name, justify="right")
    for stage in report.stages:
        times = (f"{stage.seconds:.3f}", f"{stage.cpu_seconds:.3f}")
        values = f"{stage.kernel_evaluations:,}" if stage.kernel_evaluations else ""
        table.add_row(stage.name, *times, human_bytes(stage.peak_memory), values)
    return table
