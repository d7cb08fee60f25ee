"""A search as a heat map: the criterion of each pair of bandwidth and number of clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer._run.extras import require

if TYPE_CHECKING:
    from mercer.selection.result import Selection


INK = "#222222"


def draw_selection(path: str | Path, selection: Selection) -> None:
    """Write a PNG: darker is better, a frame marks the pair that was chosen."""
    require("matplotlib", "plot", "drawing the search")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from mercer._run.atomic import replacing

    n_rows, n_columns = selection.scores.shape
    size = (1.8 + 0.62 * n_columns, 1.6 + 0.3 * max(n_rows, 3))
    figure = Figure(figsize=size, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    draw_scores(figure.subplots(), selection)
    with replacing(Path(path)) as temporary, temporary.open("wb") as file:
        figure.savefig(file, format="png", dpi=130)


def draw_scores(panel: Any, selection: Selection, **options: Any) -> None:
    """Draw the scores as an image in an axes, with a colour bar beside it."""
    from matplotlib.patches import Rectangle

    n_rows, n_columns = selection.scores.shape
    image = panel.imshow(selection.scores, **{"cmap": "Blues", "aspect": "auto"} | options)
    _write_scores(panel, selection, image)
    best = selection.best
    place = (selection.n_clusters.index(best.n_clusters), selection.gammas.index(best.gamma))
    panel.add_patch(
        Rectangle((place[0] - 0.5, place[1] - 0.5), 1, 1, fill=False, ec="#E8853A", lw=2.5)
    )
    panel.set_xticks(range(n_columns), [str(k) for k in selection.n_clusters])
    panel.set_yticks(range(n_rows), ["" if g is None else f"{g:.3g}" for g in selection.gammas])
    panel.set_xlabel("n_clusters", color=INK)
    panel.set_ylabel("gamma", color=INK)
    panel.set_title(f"{selection.criterion}: best {best.score:.3f}", color=INK)
    panel.figure.colorbar(image, ax=panel, shrink=0.8)


def _write_scores(panel: Any, selection: Selection, image: Any) -> None:
    middle = float(np.mean(image.get_clim()))
    for (row, column), score in np.ndenumerate(selection.scores):
        text = "-" if np.isnan(score) else f"{score:.2f}"
        color = "white" if score > middle else INK
        panel.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
