"""`mercer explain`: the report, the profiles and the exemplars of a model, at 80 columns."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
import typer

from mercer._run.printable import printable
from mercer.cli.sparklines import bar, sparkline

WIDTH = 80
MOST_CLUSTERS = 60  # that are printed; --json has all
SHOWN_COLUMNS = 5  # of a profile
SHOWN_BARS = 50  # of a sparkline, and clusters of a layer


def explained(model: Any) -> dict[str, Any]:
    """The same for machines."""
    from dataclasses import asdict

    found = vars(model).get("explained_")
    return {
        "report": model.report_.to_dict(),
        "profiles": [] if found is None else [asdict(profile) for profile in model.profiles()],
        "exemplars": [] if found is None else found.exemplars.tolist(),
    }


def show_explanation(model: Any) -> None:
    """Lines of at most 80 columns on standard output."""
    report = model.report_
    typer.echo(_narrow(str(report)))
    for name, values in (("sizes", report.cluster_weights), ("spectrum", report.eigenvalues)):
        if len(values) > 1:
            more = f" and {len(values) - SHOWN_BARS:,} more" if len(values) > SHOWN_BARS else ""
            typer.echo(f"{name:<14}{sparkline(values, SHOWN_BARS)}{more}")
    if report.trust is not None and report.trust.reasons:
        typer.echo("\nWhat speaks against these clusters")
        for reason in report.trust.reasons:
            typer.echo(_narrow(f"  - {reason}", indent=4))
    _show_layers(model)
    found = vars(model).get("explained_")
    if found is None:
        typer.echo("\nThis model holds no profiles and exemplars of clusters.")
        return
    typer.echo("\nClusters: columns by effect (mean inside less outside, in standard deviations)")
    profiles = model.profiles()
    largest = max((profile.weight for profile in profiles), default=1.0) or 1.0
    for profile, rows in list(zip(profiles, found.exemplars, strict=True))[:MOST_CLUSTERS]:
        words = ", ".join(f"{c.name} {c.effect:+.1f}" for c in profile.columns[:SHOWN_COLUMNS])
        numbers = ", ".join(f"{row:,}" for row in rows if row >= 0)
        head = f"{profile.cluster:>4}  {bar(profile.weight / largest)} {profile.weight:,.6g}"
        typer.echo(_narrow(f"{head}: {words or 'like all others'}", indent=6))
        if numbers:
            typer.echo(_narrow(f"      exemplars: rows {numbers}", indent=6))
    if len(profiles) > MOST_CLUSTERS:
        typer.echo(f"… and {len(profiles) - MOST_CLUSTERS} more clusters (--json has all)")


def _show_layers(model: Any) -> None:
    """Coarser partitions, with the clusters that belong together."""
    layers = vars(model).get("layers_", ())
    if len(layers):
        typer.echo("\nLayers: clusters that belong together, coarse to fine")
    for layer, evidence in zip(layers, vars(model).get("layer_evidence_", ()), strict=True):
        members = [np.flatnonzero(layer == c).tolist() for c in range(int(layer.max()) + 1)]
        shown = " | ".join(" ".join(map(str, group[:SHOWN_BARS])) for group in members[:SHOWN_BARS])
        head = f"{len(members):>4}  evidence {evidence:.1f}"
        typer.echo(_narrow(f"{head}: {shown}", indent=6))


def _narrow(text: str, indent: int = 14) -> str:
    """Long lines broken at spaces, the rest of each indented."""
    lines = (printable(line) for line in text.splitlines())
    return "\n".join(
        line
        if len(line) <= WIDTH
        else fill(line, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)
        for line in lines
    )
