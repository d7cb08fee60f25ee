"""A picture of the demo: the same rows, coloured by one clustering after the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mercer._run.extras import require
from mercer._run.types import FloatArray, IdArray

COLORS = ("#3B6FB6", "#E8853A", "#3A9A78")  # told apart by the colour-blind too
INK = "#222222"


def draw_clusterings(
    path: Path, X: FloatArray, clusterings: Mapping[str, IdArray], *, landmarks: FloatArray
) -> None:
    """Write a PNG with a panel for each clustering of X; the last one shows the landmarks too."""
    require("matplotlib", "plot", "drawing the picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from mercer._run.atomic import replacing

    figure = Figure(figsize=(5 * len(clusterings), 5.5), facecolor="white")
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=0.9, wspace=0.02)
    panels = figure.subplots(1, len(clusterings), squeeze=False)[0]
    for panel, (title, labels) in zip(panels, clusterings.items(), strict=True):
        _draw_rows(panel, X, labels)
        panel.set_title(title, fontsize=15, color=INK, pad=10)
    _draw_landmarks(panels[-1], landmarks)
    with replacing(path) as temporary, temporary.open("wb") as file:
        figure.savefig(file, format="png", dpi=150)


def _draw_rows(panel: Any, X: FloatArray, labels: IdArray) -> None:
    size = float(np.clip(40_000 / len(X), 1.5, 12.0))
    panel.scatter(*X.T, s=size, c=np.take(COLORS, labels), alpha=0.5, linewidths=0)
    panel.set_aspect("equal")
    panel.set_axis_off()


def _draw_landmarks(panel: Any, landmarks: FloatArray) -> None:
    size = float(np.clip(7_000 / len(landmarks), 7.0, 34.0))
    panel.scatter(
        *landmarks.T,
        s=size,
        c="white",
        edgecolors=INK,
        linewidths=0.12 * size**0.5,
        label=f"{len(landmarks):,} landmarks",
    )
    panel.legend(
        loc="lower right",
        frameon=False,
        fontsize=11,
        labelcolor=INK,
        handletextpad=0.2,
        borderaxespad=0.1,
    )
