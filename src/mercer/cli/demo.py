"""`mercer demo`: a file is made, clustered, scored beside k-means, its model reloaded and drawn."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from mercer._types import FloatArray, IdArray
from mercer.cli.methods import make_estimator
from mercer.cli.picture import draw_clusterings
from mercer.cli.progress import progress
from mercer.cli.show import show_report, show_written
from mercer.cli.work import cluster_file
from mercer.datasets import ring_and_core
from mercer.exceptions import MissingExtraError
from mercer.io import load
from mercer.io.atomic import replacing
from mercer.metrics import accuracy, adjusted_rand, normalized_mutual_info

__all__ = ["run_demo"]

METHOD = "kernel-kmeans"
FILES = ("data.npy", "labels.parquet", "model.mercer", "demo.png")
RANK = 32  # few pivots are enough for a smooth shape

Labels: TypeAlias = dict[str, tuple[IdArray, IdArray]]  # by whom: (true, found)


def run_demo(folder: Path, *, n_rows: int, seed: int) -> None:
    """A core inside a ring, which k-means cuts in two, from file to model to new rows."""
    data, labels, model, picture = (folder / name for name in FILES)
    _prepare(folder)
    X, y = ring_and_core(n_rows, random_state=seed)
    with replacing(data) as temporary, temporary.open("wb") as file:
        np.save(file, X)
    fitted = _cluster(data, labels, model, seed)
    show_report(fitted.report_)

    reloaded = load(model)
    X_new, y_new = ring_and_core(max(n_rows // 10, 2), random_state=seed + 1)
    found = {"k-means": (y, _kmeans_labels(X, seed)), "Mercer": (y, reloaded.predict(X))}
    on_new_rows = {f"Mercer, {len(X_new):,} new rows": (y_new, reloaded.predict(X_new))}
    _show_scores(found | on_new_rows)

    is_drawn = _draw(picture, X, found, pivots=X[fitted.factor_.pivot_ids])
    written = {"rows": data, "labels": labels, "model": model}
    show_written(written | ({"picture": picture} if is_drawn else {}))


def _prepare(folder: Path) -> None:
    """Make the folder, or see that nobody else keeps files in it."""
    folder.mkdir(parents=True, exist_ok=True)
    others = {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {*FILES}
    if others:
        raise ValueError(
            f"the folder {folder} holds other files, such as {min(others)}; choose a new one "
            "with --out, so that the demo overwrites nothing of yours"
        )


def _cluster(data: Path, labels: Path, model: Path, seed: int) -> Any:
    """What the command that is shown does."""
    command = f"mercer cluster -k 2 --method {METHOD} --rank {RANK} --seed {seed}"
    files = shlex.join(map(str, (data, "--out", labels, "--model", model)))
    typer.echo(f"$ {command} {files}\n")
    parameters = {"n_clusters": 2, "rank": RANK, "random_state": seed}
    with progress():
        return cluster_file(data, make_estimator(METHOD, parameters), labels=labels, model=model)


def _kmeans_labels(X: FloatArray, seed: int) -> IdArray:
    from sklearn.cluster import KMeans

    labels: IdArray = KMeans(2, n_init=10, random_state=seed).fit_predict(X)
    return labels


def _show_scores(results: Labels) -> None:
    """Each result against the truth; 1 is best."""
    scores = {"NMI": normalized_mutual_info, "ARI": adjusted_rand, "accuracy": accuracy}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    table.add_column("against the truth")
    for name in scores:
        table.add_column(name, justify="right")
    for name, (true, found) in results.items():
        table.add_row(name, *(f"{score(true, found):.3f}" for score in scores.values()))
    Console(highlight=False).print(table, "")


def _draw(path: Path, X: FloatArray, results: Labels, *, pivots: FloatArray) -> bool:
    """Draw the results, or say in one line why not."""
    titles = {
        f"{name}: ARI {adjusted_rand(true, found):.2f}": found
        for name, (true, found) in results.items()
    }
    try:
        draw_clusterings(path, X, titles, pivots=pivots)
    except MissingExtraError as error:
        typer.echo(f"no picture: {error}", err=True)
        return False
    return True
