"""The charts of a page as Bokeh models; colours of text and lines come from the page's theme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer._run.extras import require
from mercer.report.palette import LIGHT, LIGHT_REST, color_of

if TYPE_CHECKING:
    from mercer.report.report import Report
    from mercer.report.view import View


MANY = 2000  # more points than that are drawn smaller
RINGS: dict[str, dict[str, Any]] = {  # what is drawn around some of the rows
    "outliers": {"marker": "x", "size": 9, "line_width": 1.5},
    "exemplars": {"marker": "diamond", "size": 14, "line_width": 2},
}
SMALL_RINGS: dict[str, dict[str, Any]] = {  # around those of many rows
    "outliers": {"marker": "x", "size": 6, "line_width": 1},
    "exemplars": {"marker": "diamond", "size": 9, "line_width": 1.5},
}


def scatter(view: View) -> Any:
    """The sampled rows in a plane, with hover and selection; the page's script filters them."""
    models = require("bokeh.models", "report", "the report page")
    source = models.ColumnDataSource(_columns(view), name="rows")
    tools = [
        models.PanTool(),
        models.WheelZoomTool(modifiers="ctrl"),
        models.BoxSelectTool(),
        models.LassoSelectTool(),
        models.TapTool(),
        models.ResetTool(),
    ]
    ranges = {f"{axis}_range": models.Range1d(0, 1, name=axis) for axis in "xy"}
    chart = _figure("scatter", 500, tools=tools, active_drag=None, **ranges)
    chart.xaxis.axis_label, chart.yaxis.axis_label = view.maps[0].axes
    if not any(view.maps[0].axes):
        chart.axis.visible = chart.grid.visible = False
    size = 4.0 if len(view.rows) > MANY else 6.0
    ghost = chart.scatter(
        "x", "y", source=source, size=size, color=LIGHT_REST, alpha=0.16, line_color=None,
        name="ghost", visible=False,
    )  # fmt: skip
    ghost.nonselection_glyph = ghost.selection_glyph = None
    points = chart.scatter(
        "x",
        "y",
        source=source,
        view=models.CDSView(filter=models.BooleanFilter(name="shown")),
        size=size,
        fill_color="color",
        fill_alpha=0.75,
        line_color=None,
        nonselection_fill_alpha=0.12,
        hover_fill_alpha=1.0,
        name="points",
    )
    for name, look in (SMALL_RINGS if len(view.rows) > MANY else RINGS).items():
        places = models.ColumnDataSource({"x": [], "y": []}, name=name)
        chart.scatter("x", "y", source=places, fill_color=None, name=f"{name}-marks", **look)
    empty: dict[str, list[Any]] = {name: [] for name in ("x", "y", "text", "color")}
    marks = models.ColumnDataSource(empty, name="marks")
    chart.text(
        "x", "y", "text", source=marks, text_align="center", text_baseline="bottom", y_offset=-5,
        text_font_size="12px", text_font_style="bold", padding=2, border_radius=4,
        background_fill_color="#ffffff", background_fill_alpha=0.75, border_line_color="color",
        border_line_width=1.5, name="numbers",
    )  # fmt: skip
    chart.add_tools(models.HoverTool(renderers=[points], tooltips=None))  # the script has its own
    return chart


def spectrum(report: Report) -> Any:
    """Eigenvalues in order, the gap after those of the clusters shaded."""
    from bokeh.models import BoxAnnotation, ColumnDataSource, HoverTool

    values = np.asarray(report.eigenvalues)
    k = len(report.cluster_weights)
    numbers = np.arange(1, len(values) + 1)
    kept = numbers <= k if k else np.ones(len(values), bool)
    source = ColumnDataSource(
        {
            "number": numbers,
            "value": values,
            "color": [LIGHT[0] if keep else LIGHT_REST for keep in kept],
            "kept": kept.astype(int),
        },
        name="spectrum-values",
    )
    chart = _figure("spectrum", 260, tools=[], toolbar_location=None)
    chart.xaxis.axis_label, chart.yaxis.axis_label = "eigenvalue", "size"
    chart.xaxis.ticker.min_interval = 1
    if report.gap is not None and k < len(values):
        chart.add_layout(BoxAnnotation(left=k, right=k + 1, fill_alpha=0.12, name="gap"))
    chart.line("number", "value", source=source, line_width=1.5, color=LIGHT_REST, alpha=0.7)
    dots = chart.scatter(
        "number", "value", source=source, size=10, fill_color="color", line_color=None, name="dots"
    )
    tips = [("eigenvalue", "@number"), ("size", "@value{0.000000}")]
    chart.add_tools(HoverTool(renderers=[dots], tooltips=tips))
    return chart


def chart_item(chart: Any, target: str) -> dict[str, Any]:
    """A chart as data that Bokeh's script draws into the element `target`."""
    from bokeh.embed import json_item

    item: dict[str, Any] = dict(json_item(chart, target))
    return _renumbered(item, {}, target)


def inline_script() -> str:
    """Bokeh's own script, without widgets."""
    from bokeh.resources import Resources

    script = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
    return script.replace("</script", "<\\/script")


def _renumbered(tree: Any, names: dict[str, str], prefix: str) -> Any:
    """The same with ids counted from 0: Bokeh counts them over the life of the process."""
    if isinstance(tree, dict):
        for key in ("id", "root_id"):
            if isinstance(tree.get(key), str):
                names.setdefault(tree[key], f"{prefix}-{len(names)}")
        return {
            key: names[value] if key in ("id", "root_id") else _renumbered(value, names, prefix)
            for key, value in tree.items()
        }
    if isinstance(tree, list):
        return [_renumbered(value, names, prefix) for value in tree]
    return tree


def _figure(name: str, height: int, **options: Any) -> Any:
    from bokeh.plotting import figure

    chart = figure(
        name=name,
        height=height,
        sizing_mode="stretch_width",
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        min_border_right=12,
        **options,
    )
    chart.toolbar.logo = None
    chart.grid.grid_line_alpha = 0.6
    for axis in chart.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = "13px"
        axis.major_label_text_font_size = "12px"
        axis.minor_tick_line_color = None
    return chart


def _columns(view: View) -> dict[str, Any]:
    """Columns under fixed names: those of the user are never parsed."""
    columns: dict[str, Any] = {
        "row": view.rows.astype(np.int32) if view.n_rows < 2**31 else view.rows.astype(float),
        "cluster": view.labels.astype(np.int32),
        "name": (view.labels + view.first).astype(np.int32),
        "color": [color_of(int(label)) for label in view.labels],  # the script has its own
    }
    for j, layer in enumerate(view.layers):
        columns[f"layer{j}"] = np.asarray(layer.parents, np.int32)[view.labels]
    if view.scores is not None:
        columns["score"] = np.ascontiguousarray(view.scores, np.float64)
    for j, shown in enumerate(view.maps):
        x, y = (np.ascontiguousarray(axis, np.float64) for axis in shown.xy.T)
        columns |= {f"x{j}": x, f"y{j}": y}
    columns |= {"x": columns["x0"], "y": columns["y0"]}
    if view.peer is not None:
        columns["peer"] = view.peer.labels.astype(np.int32)
    columns |= {
        f"v{j}": np.ascontiguousarray(view.values[:, j]) for j in range(view.values.shape[1])
    }
    return columns
