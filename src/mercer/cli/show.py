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


def show_report(report: Report) -> None:
    """The report as a table on standard output (its warnings went to standard error)."""
    from mercer.report.facts import list_facts, stages_table

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="cyan")
    facts.add_column()
    for fact in list_facts(report):
        facts.add_row(fact.name, printable(fact.text))
    for note in report.notes:
        facts.add_row("note", printable(note))
    found = stages_table(report)
    stages = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for number, name in enumerate(found.head):
        stages.add_column(name, justify="right" if number else "left")
    for row in found.rows:
        stages.add_row(*map(printable, row))
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(Text(printable(report.estimator), "bold"), facts, "", stages, "", sep="\n")


def show_json(values: Mapping[str, object], written: Mapping[str, Path | None]) -> None:
    """Values and the paths written, for machines."""
    paths = {what: str(path) for what, path in written.items() if path is not None}
    typer.echo(json.dumps({**values, "written": paths}, indent=2))


def show_written(written: Mapping[str, Path | None], *, err: bool = False) -> None:
    """A line for each file that was written."""
    for what, path in written.items():
        if path is not None:
            say(f"wrote {path}  ({what})", err=err)


def show_segments(outcomes: Sequence[Outcome], *, quiet: bool) -> None:
    """A line for each image; those that failed on standard error, and how many at the end."""
    failed = [outcome for outcome in outcomes if outcome.error]
    for outcome in outcomes:
        if not outcome.error and not quiet:
            height, width = outcome.shape
            paths = (outcome.job.picture, outcome.job.labels, outcome.job.report)
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
