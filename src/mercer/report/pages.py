"""One self-contained HTML page about one fit.

`page` is a pure function of a report and a view. Texts are escaped by the template; what the script
reads is JSON in which no tag can end; the page's own policy refuses any script but its two.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import chain, repeat
from math import isfinite
from typing import TYPE_CHECKING, Any

from mercer._run.extras import require
from mercer.report.charts import chart_item, inline_script, scatter, spectrum
from mercer.report.facts import (
    Fact,
    Table,
    columns_table,
    list_facts,
    number,
    rounded,
    share,
    stages_table,
)
from mercer.report.palette import DARK, DARK_REST, LIGHT, LIGHT_REST
from mercer.report.view import Group, Levels, View, gather
from mercer.trust.grade import UNSCALED

if TYPE_CHECKING:
    from mercer.report.report import Report
    from mercer.selection.result import Selection


MOST_MARKED = 40  # clusters that carry their number in the map
MOST_OUTLIERS = 20  # rows in the table of outliers
MOST_MEMBERS = 30  # clusters of a layer that are listed, and clusters of each
STRONG = 2.0  # standard deviations from the mean at which a cell of a profile is fully coloured


def write_page(path: str | os.PathLike[str], model: Any, X: Any, **options: Any) -> None:
    """Write `report_page` to a file, which appears once it is complete.

    Parameters
    ----------
    path : str or path
        The file to write.
    model : estimator
        A fitted estimator of Mercer, or a fitted `Segmenter` (then X is the image).
    X : array, path or source
        The rows.
    **options
        `title`, `seed` and `texts` of `report_page`.
    """
    from mercer._run.atomic import replacing
    from mercer.rows.places import check_apart, paths_of

    check_apart([X] if isinstance(X, str | os.PathLike) else paths_of(X), [path])
    text = report_page(model, X, **options)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def report_page(model: Any, X: Any, *, title: str = "", seed: int = 0, **options: Any) -> str:
    """A self-contained HTML page about a fitted model and (a sample of) the rows of X.

    Parameters
    ----------
    model : estimator
        A fitted estimator of Mercer, or a fitted `Segmenter` (then X is the image).
    X : array, path or source
        The rows; up to 5,000 are drawn, and the page says so.
    title : str, default=""
        What the page calls the data.
    seed : int, default=0
        Of the draw, of the map, and of the k-means that the clusters are compared with.
    **options
        `texts`: a sequence with a text for each row, which the page shows with the row.

    Returns
    -------
    str
        The HTML.
    """
    require("bokeh", "report", "the report page")
    return page(model.report_, gather(model, X, title=title, seed=seed, **options))


def page(report: Report, view: View) -> str:
    """The page as text: its bytes depend on nothing but its arguments."""
    require("bokeh", "report", "the report page")
    import jinja2

    script, charts = _template("page.js"), _charts(report, view)
    levels_script = _template("levels.js") if view.levels else ""
    library = inline_script() if charts else ""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    fitted = replace(report, cluster_weights=view.weights) if view.is_of_fit else report
    known = list_facts(fitted, view.noun)
    spreads = [] if report.data is None else [column.spread for column in report.data.columns]
    longest = max((stage.seconds for stage in report.stages), default=0.0) or 1.0
    markup = jinja2.utils.markupsafe.Markup
    return environment.from_string(_template("page.html")).render(
        report=report,
        view=view,
        facts=known,
        tiles=_tiles(report, view),
        marked=MOST_MARKED,
        stages=stages_table(report),
        columns=columns_table(report),
        clusters=_clusters(view),
        profiles=[_profile(group, view) for group in view.groups],
        distinctions=[_distinction(group, view) for group in view.groups],
        outliers=_outlier_rows(view),
        layers=_layers_table(view),
        scales=[100 * spread / (max(spreads) or 1.0) for spread in spreads],
        scale_note=_scale_note(report),
        selection=_heat_map(view.selection),
        trust=report.trust,
        pictures=[(p.caption, b64encode(p.png).decode(), p.shape) for p in view.pictures],
        eigenvalues=_eigenvalues(report),
        bars=[100 * stage.seconds / longest for stage in report.stages],
        has_spectrum=any(item["target_id"] == "spectrum-chart" for item in charts),
        level_image=b64encode(view.levels.png).decode() if view.levels else "",
        policy=_policy(library, script, levels_script),
        style=markup(_template("page.css") + _palette_css()),
        library=markup(library),
        script=markup(script),
        data=markup(_script_json(_data(view, charts))),
        levels_script=markup(levels_script),
        levels_data=markup(_script_json(_levels_data(view.levels))) if view.levels else "",
    )


def _charts(report: Report, view: View) -> list[dict[str, Any]]:
    charts = [chart_item(scatter(view), "scatter-chart")] if view.maps else []
    if len(report.eigenvalues) > 1:
        charts.append(chart_item(spectrum(report), "spectrum-chart"))
    return charts


def _data(view: View, charts: list[dict[str, Any]]) -> dict[str, Any]:
    """What the script of the page reads."""
    return {
        "charts": charts,
        "maps": [{"axes": list(m.axes), "flipped": m.is_flipped} for m in view.maps],
        "noun": view.noun,
        "first": view.first,
        "values": list(view.value_names),
        "clusters": len(view.weights),
        "marked": MOST_MARKED,
        "light": [*LIGHT, LIGHT_REST],
        "dark": [*DARK, DARK_REST],
        "texts": list(view.texts),
        "outliers": list(view.outliers),
        "exemplars": [place for group in view.groups for place in group.exemplars],
        "words": [_words(group) for group in view.groups],
    }


def _levels_data(levels: Levels) -> dict[str, Any]:
    """What the script of the levels reads."""
    return {
        "height": levels.shape[0],
        "width": levels.shape[1],
        "runs": levels.runs.tolist(),
        "pairs": levels.pairs.tolist(),
        "strengths": [round(float(strength), 4) for strength in levels.strengths],
        "sizes": levels.sizes.tolist(),
        "colors": levels.colors.tolist(),
    }


def _script_json(values: Any) -> str:
    """JSON for a script element: no tag, comment or line can end in it."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _policy(*scripts: str) -> str:
    """A policy by which only these scripts run and nothing is fetched."""
    hashes = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts if script)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "font-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _template(name: str) -> str:
    return (files("mercer.report") / "templates" / name).read_text(encoding="utf-8")


def _palette_css() -> str:
    """The colours of clusters as properties of the page, for both themes."""
    light = "".join(f"--c{j}:{color};" for j, color in enumerate((*LIGHT, LIGHT_REST)))
    dark = "".join(f"--c{j}:{color};" for j, color in enumerate((*DARK, DARK_REST)))
    return (
        f":root{{{light}}}:root[data-theme=dark]{{{dark}}}"
        f"@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}}}}}"
    )


def _color_number(cluster: int, view: View) -> int:
    """Twelve clusters have a colour, others the last; colours of very many clusters repeat."""
    is_crowded = len(view.weights) > MOST_MARKED
    return cluster % len(LIGHT) if is_crowded else min(cluster, len(LIGHT))


def _clusters(view: View) -> list[dict[str, Any]]:
    """Size, share and colour of each cluster, and its size by k-means."""
    total, largest = sum(view.weights) or 1.0, max(view.weights, default=1.0) or 1.0
    sampled = {group.number: group.n_sampled for group in view.groups}
    by_peer = () if view.peer is None else view.peer.sizes
    return [
        {
            "number": c,
            "name": c + view.first,
            "weight": number(weight),
            "share": share(weight / total),
            "width": f"{100 * weight / largest:.2f}",
            "color": _color_number(c, view),
            "sampled": sampled.get(c),
            "peer": by_peer[c] if c < len(by_peer) else 0,
        }
        for c, weight in enumerate(view.weights)
    ]


def _profile(group: Group, view: View) -> dict[str, Any]:
    """Cells of a cluster's row: the mean, and how strongly and which way it is coloured."""
    cells = [
        {
            "mean": number(mean),
            "z": f"{z:+z.1f}" if isfinite(z) else "–",
            "strength": f"{min(abs(z) / STRONG, 1.0) * 55:.0f}" if isfinite(z) else "0",
            "way": "high" if z > 0 else "low",
        }
        for z, mean in zip(group.profile, group.means, strict=True)
    ]
    color = _color_number(group.number, view)
    return {"number": group.number, "color": color, "cells": cells}


def _tiles(report: Report, view: View) -> list[Fact]:
    """The figures on top: rows and clusters of this file, and what the fit found."""
    fitted = "" if view.is_of_fit else f"; the model was fitted on {report.n_rows:,} rows"
    here = replace(report, n_rows=view.n_rows, cluster_weights=view.weights)
    return [
        replace(fact, meaning=fact.meaning + fitted) if fact.name == "rows" else fact
        for fact in list_facts(here, view.noun)
        if fact.headline
    ]


def _words(group: Group) -> str:
    """The columns that distinguish a cluster, in a line."""
    return ", ".join(f"{column.name} {column.effect:+.1f}" for column in group.effects[:4])


def _distinction(group: Group, view: View) -> dict[str, Any]:
    """What distinguishes a cluster: means of columns in it and in all other rows."""
    size = max((abs(column.mean) for column in group.effects), default=0.0)
    columns = [
        {
            "name": column.name,
            "effect": f"{column.effect:+.1f}",
            "mean": number(column.mean),
            "others": number(rounded(column.others, size)),
            "way": "high" if column.effect > 0 else "low",
        }
        for column in group.effects
    ]
    return {
        "name": group.number + view.first,
        "color": _color_number(group.number, view),
        "columns": columns,
    }


def _outlier_rows(view: View) -> list[dict[str, Any]]:
    """The most outlying of the sampled rows."""
    if view.scores is None:
        return []
    return [
        {
            "place": place,
            "row": f"{view.rows[place]:,}",
            "score": f"{view.scores[place]:.2f}",
            "cluster": int(view.labels[place]),
        }
        for place in view.outliers[:MOST_OUTLIERS]
    ]


def _layers_table(view: View) -> list[dict[str, Any]]:
    """Each layer with its clusters, and of which clusters these are made."""
    return [
        {
            "n_clusters": layer.n_clusters,
            "evidence": f"{layer.evidence:.1f}",
            "members": [
                [_first_few(members), number(sum(view.weights[c] for c in members))]
                for members in layer.members()[:MOST_MEMBERS]
            ],
            "n_more": max(layer.n_clusters - MOST_MEMBERS, 0),
        }
        for layer in view.layers
    ]


def _first_few(numbers: list[int]) -> str:
    more = f" and {len(numbers) - MOST_MEMBERS:,} more" if len(numbers) > MOST_MEMBERS else ""
    return ", ".join(map(str, numbers[:MOST_MEMBERS])) + more


def _scale_note(report: Report) -> str:
    """Whether the columns have one scale, and what to do if not."""
    columns = () if report.data is None else report.data.columns
    varied = [column for column in columns if column.spread > 0]
    if len(varied) < 2:
        return ""
    least, most = (pick(varied, key=lambda column: column.spread) for pick in (min, max))
    ratio = most.spread / least.spread
    if ratio < UNSCALED:
        return "The columns have about one scale: none of them decides distances alone."
    return (
        f"The spread of {most.name} is {number(float(f'{ratio:.2g}'))} times that of {least.name}, "
        "so that it weighs more in distances. Unless that is intended, bring the columns to one "
        "scale first (mercer cluster --scaler standard, or StandardScaler in a pipeline)."
    )


def _heat_map(selection: Selection | None) -> dict[str, Any] | None:
    """The search as a table: darker is better."""
    if selection is None or not selection.is_feasible:
        return None
    finite = [float(s) for s in selection.scores.ravel() if s == s]
    low, high = min(finite), max(finite)
    best = selection.best
    rows = [
        {
            "gamma": "–" if gamma is None else f"{gamma:.3g}",
            "cells": [
                {
                    "score": "–" if s != s else f"{s:.3f}",
                    "strength": "0" if s != s else f"{70 * (s - low) / (high - low or 1.0):.0f}",
                    "best": (k, gamma) == (best.n_clusters, best.gamma),
                }
                for k, s in zip(selection.n_clusters, scores, strict=True)
            ],
        }
        for gamma, scores in zip(selection.gammas, selection.scores.tolist(), strict=True)
    ]
    return {"sizes": selection.n_clusters, "rows": rows, "found": selection, "best": best}


def _eigenvalues(report: Report) -> Table:
    residuals = chain((f"{residual:.1e}" for residual in report.residuals), repeat("–"))
    pairs = zip(report.eigenvalues, residuals, strict=False)
    rows = ((f"{j}", f"{value:.6g}", residual) for j, (value, residual) in enumerate(pairs, 1))
    return Table("Eigenvalues", ("number", "eigenvalue", "residual"), tuple(rows))
