"""`mercer tune`: compare numbers of clusters and bandwidths on the rows of a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

WIDTH = 80
COLUMNS = 9  # numbers of clusters beside each other, at this width


def read_sizes(text: str) -> list[int]:
    """Numbers of clusters: 2:10 means 2 to 10, and 3,5,8 a list."""
    try:
        if ":" in text:
            low, high = (int(part) for part in text.split(":"))
            sizes = list(range(low, high + 1))
        else:
            sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 2:
        raise ValueError(f"{text!r} is neither a range like 2:10 nor a list like 3,5,8, from 2 up")
    return sizes


def read_gammas(text: str) -> list[float]:
    """Bandwidths: 0.001:1:30 means 30 in geometric progression, and 0.1,1 a list."""
    import numpy as np

    try:
        if ":" in text:
            low, high, count = text.split(":")
            gammas = np.geomspace(float(low), float(high), int(count)).tolist()
        else:
            gammas = [float(part) for part in text.split(",")]
    except ValueError:
        gammas = []
    if not gammas or not all(np.isfinite(gamma) and gamma > 0 for gamma in gammas):
        raise ValueError(
            f"{text!r} is neither a range like 0.001:1:30 (from, to, how many) nor a list like "
            "0.1,1,10 of positive numbers"
        )
    return gammas


def tune_file(
    file: Path,
    estimator: Any,
    *,
    columns: Sequence[str] | None,
    id_column: str | None,
    scaler: str,
    out: Path | None,
    plot: Path | None,
    **options: Any,
) -> Any:
    """Search on the rows of a file; write the table and the picture if requested."""
    from mercer._run.atomic import check_writable, replacing
    from mercer._run.extras import require
    from mercer.cli.work import open_rows, scaled
    from mercer.report.heat_map import draw_selection
    from mercer.rows.places import check_apart
    from mercer.selection import search

    if plot is not None:
        require("matplotlib", "plot", "--plot")
    written = [path for path in (out, plot) if path is not None]
    check_apart([file], written)
    for path in written:
        check_writable(path)
    source, _ = scaled(open_rows(file, columns, id_column), scaler)
    selection = search(estimator, source, **options)
    if out is not None:
        with replacing(out) as temporary:
            temporary.write_text(json.dumps(selection.to_dict(), indent=2) + "\n")
    if plot is not None:
        draw_selection(plot, selection)
    return selection


def show_selection(selection: Any) -> None:
    """The table, the best pair and the runners-up on standard output."""
    console = Console(highlight=False, markup=False, emoji=False, width=WIDTH)
    typer.echo(
        f"{selection.criterion} on {selection.n_validation:,} held-out rows (1 is best, * the "
        "choice)\n"
    )
    for start in range(0, len(selection.n_clusters), COLUMNS):
        console.print(_table(selection, slice(start, start + COLUMNS)), "")
    others = selection.ranking()[1:4]
    rule = ", the widest kernel within 0.01 of the highest score"
    best = f"best: {_words(selection.best)}{rule if len(selection.gammas) > 1 else ''}"
    runners_up = "next: " + "; ".join(map(_words, others)) if others else ""
    for line in filter(None, (best, runners_up)):
        typer.echo(fill(line, WIDTH, subsequent_indent=" " * 6))


def _table(selection: Any, part: slice) -> Table:
    """Scores of some numbers of clusters, a row for each bandwidth."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="cyan")
    table.add_column("gamma", justify="right", no_wrap=True)
    for k in selection.n_clusters[part]:
        table.add_column(f"K={k}", justify="right", no_wrap=True)
    best = selection.best if selection.is_feasible else None
    for gamma, row in zip(selection.gammas, selection.scores, strict=True):
        pairs = zip(selection.n_clusters[part], row[part], strict=True)
        cells = [_cell(score, is_best=_is(best, k, gamma)) for k, score in pairs]
        table.add_row("" if gamma is None else f"{gamma:.4g}", *cells)
    return table


def _is(best: Any, n_clusters: int, gamma: float | None) -> bool:
    return best is not None and (best.n_clusters, best.gamma) == (n_clusters, gamma)


def _cell(score: float, *, is_best: bool) -> str:
    return ("-" if score != score else f"{score:.3f}") + ("*" if is_best else " ")


def _words(candidate: Any) -> str:
    gamma = "" if candidate.gamma is None else f", gamma {candidate.gamma:.4g}"
    return f"{candidate.n_clusters} clusters{gamma} ({candidate.score:.3f})"
