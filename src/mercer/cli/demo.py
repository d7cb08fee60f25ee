"""`mercer demo`: make a file, cluster it, compare with k-means, reload the model, draw the result;
then draw a landscape and segment it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from mercer._run.atomic import replacing
from mercer._run.extras import require
from mercer._run.types import FloatArray, IdArray
from mercer.cli.methods import DEFAULT_METHOD, make_estimator
from mercer.cli.progress_bar import progress
from mercer.cli.segment import plan_files, segment_files
from mercer.cli.show import show_report, show_segments, show_written
from mercer.cli.work import cluster_file, write_report
from mercer.datasets import rings
from mercer.exceptions import MissingExtraError
from mercer.io import load
from mercer.metrics import accuracy, adjusted_rand, normalized_mutual_info
from mercer.rows import as_source

FILES = ("data.npy", "labels.npy", "model.mercer", "demo.png", "report.html")
PICTURES = ("landscape.png", "segments.png")
N_CLUSTERS, N_SEGMENTS = 3, 5
COLORS = ("#3B6FB6", "#E8853A", "#3A9A78")  # distinct for the colour-blind too
INK = "#222222"

MEASURES = {"NMI": normalized_mutual_info, "ARI": adjusted_rand, "accuracy": accuracy}

Labels: TypeAlias = dict[str, tuple[IdArray, IdArray]]  # by method: (true, found)
Scores: TypeAlias = dict[str, dict[str, float]]  # by method, by measure


def run_demo(folder: Path, *, n_rows: int, seed: int) -> dict[str, Any]:
    """Cluster three rings, which k-means cuts into sectors, from file to model to new rows.

    Prints each step on standard output and returns the scores of each method.
    """
    data, labels, model, picture, page = (folder / name for name in FILES)
    _prepare(folder)
    X, y = rings(n_rows, random_state=seed)
    with replacing(data) as temporary, temporary.open("wb") as file:
        np.save(file, X)
    fitted = _cluster(data, labels, model, seed)
    show_report(fitted.report_)

    reloaded = load(model)
    X_new, y_new = rings(max(n_rows // 10, N_CLUSTERS), random_state=seed + 1)
    found = {"k-means": (y, _kmeans_labels(X, seed)), "Mercer": (y, reloaded.predict(X))}
    on_new_rows = {f"Mercer, {len(X_new):,} new rows": (y_new, reloaded.predict(X_new))}
    scores = _scores(found | on_new_rows)
    _show_scores(scores)

    graph = fitted.factor_
    is_drawn = _draw(picture, X, found, landmarks=graph.format.undo(graph.search.landmarks))
    written = {"rows": data, "labels": labels, "model": model}
    show_written(written | ({"picture": picture} if is_drawn else {}))
    _segment(folder, seed)
    _report(page, fitted, data, seed)
    return scores


def _prepare(folder: Path) -> None:
    """Make the folder; raise if it holds files of other origin."""
    folder.mkdir(parents=True, exist_ok=True)
    others = {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {
        *FILES,
        *PICTURES,
    }
    if others:
        raise ValueError(
            f"the folder {folder} holds other files, such as {min(others)}; choose a new one "
            "with --out, so that the demo does not overwrite your files"
        )


def _cluster(data: Path, labels: Path, model: Path, seed: int) -> Any:
    """Show a command and do what it does."""
    command = f"mercer cluster -k {N_CLUSTERS} --seed {seed}"
    files = shlex.join(map(str, (data, "--out", labels, "--model", model)))
    typer.echo(f"$ {command} {files}")
    typer.echo("(the first run compiles Mercer's loops, once, and takes longer)\n")
    parameters = {"n_clusters": N_CLUSTERS, "random_state": seed}
    estimator = make_estimator(DEFAULT_METHOD, parameters)
    with progress():
        return cluster_file(data, estimator, labels=labels, model=model)


def _kmeans_labels(X: FloatArray, seed: int) -> IdArray:
    from sklearn.cluster import KMeans

    labels: IdArray = KMeans(N_CLUSTERS, n_init=10, random_state=seed).fit_predict(X)
    return labels


def _scores(results: Labels) -> Scores:
    """Each result against the truth; 1 is best."""
    return {
        name: {measure: float(score(true, found)) for measure, score in MEASURES.items()}
        for name, (true, found) in results.items()
    }


def _show_scores(scores: Scores) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    table.add_column("against the truth")
    for measure in MEASURES:
        table.add_column(measure, justify="right")
    for name, values in scores.items():
        table.add_row(name, *(f"{value:z.3f}" for value in values.values()))
    Console(highlight=False).print(table, "")


def _draw(path: Path, X: FloatArray, results: Labels, *, landmarks: FloatArray) -> bool:
    """Draw the results; if that is not possible, say why in one line."""
    titles = {
        f"{name}: ARI {adjusted_rand(true, found):z.2f}": found
        for name, (true, found) in results.items()
    }
    try:
        _draw_clusterings(path, X, titles, landmarks=landmarks)
    except MissingExtraError as error:
        typer.echo(f"no picture: {error}", err=True)
        return False
    return True


def _segment(folder: Path, seed: int) -> None:
    """Draw a landscape and segment it; if that is not possible, say why in one line."""
    picture, segments = (folder / name for name in PICTURES)
    from mercer.image import Segmenter, landscape, write_image

    image, true = landscape(random_state=seed)
    try:
        write_image(picture, image)
        files = shlex.join(map(str, (picture, "--out", segments)))
        typer.echo(f"\n$ mercer segment -k {N_SEGMENTS} --seed {seed} {files}\n")
        jobs = plan_files([picture], segments, None)
        segmenter = Segmenter(N_SEGMENTS, random_state=seed)
        outcomes = list(segment_files(jobs, segmenter, overlay="boundaries"))
    except MissingExtraError as error:
        typer.echo(f"no segmentation: {error}", err=True)
        return
    show_segments(outcomes, quiet=False)
    found = segmenter.fit(image).labels_
    typer.echo(f"against the truth: ARI {adjusted_rand(true.ravel(), found.ravel()):z.3f}")


def _report(path: Path, fitted: Any, data: Path, seed: int) -> None:
    """The page about the clusters, and where to find it; or why there is none, in one line."""
    files = shlex.join(map(str, (path.with_name(FILES[2]), data, "--out", path)))
    typer.echo(f"\n$ mercer report {files}\n")
    try:
        write_report(path, fitted, as_source(data), title="Three rings", seed=seed)
    except MissingExtraError as error:
        typer.echo(f"no report page: {error}", err=True)
        return
    show_written({"report": path})
    typer.echo(f"open it in a browser: {path.resolve()}")


def _draw_clusterings(
    path: Path, X: FloatArray, clusterings: Mapping[str, IdArray], *, landmarks: FloatArray
) -> None:
    """Write a PNG with a panel for each clustering of X; the last one shows the landmarks too."""
    require("matplotlib", "plot", "drawing the picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

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
