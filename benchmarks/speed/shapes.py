"""A picture of shapes with the clusters found: k-means above, SpectralClustering below."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles

from benchmarks.measure import RESULTS
from mercer import MercerWarning, SpectralClustering
from mercer.datasets import blobs, circles_and_gaussians, moons, rings, spirals
from mercer.metrics import adjusted_rand

mpl.use("Agg")
import matplotlib.pyplot as plt

N_ROWS = 20_000
SHAPES: dict[str, tuple[int, Callable[[], Any]]] = {
    "moons": (2, lambda: moons(N_ROWS, random_state=0)),
    "circles": (2, lambda: make_circles(N_ROWS, noise=0.05, factor=0.5, random_state=0)),
    "spirals": (2, lambda: spirals(N_ROWS, random_state=0)),
    "rings": (3, lambda: rings(N_ROWS, random_state=0)),
    "circles and Gaussians": (11, lambda: circles_and_gaussians(N_ROWS, random_state=0)),
    "blobs": (5, lambda: blobs(N_ROWS, n_clusters=5, spread=0.9, random_state=2)),
}
COLORS = np.array(
    [
        *("#3366a8", "#e0803a", "#3f9b6c", "#b8475e", "#7c62b0", "#8c6d4f"),
        *("#d27fb4", "#6f7680", "#a9a632", "#36a3b8", "#1f2f4f"),
    ]
)
CAPTION: Any = {"ha": "center", "fontsize": 11, "color": "#444444"}


def run(data: str | None = None) -> None:
    RESULTS.mkdir(exist_ok=True)
    for name, scores in draw(RESULTS / "shapes.png").items():
        print(name, scores)


def draw(path: Path) -> dict[str, dict[str, float]]:
    """Cluster each shape both ways, with defaults; the ARI of each."""
    figure, axes = plt.subplots(2, len(SHAPES), figsize=(15, 5.7), layout="constrained")
    scores: dict[str, dict[str, float]] = {}
    for column, (name, (k, generate)) in zip(axes.T, SHAPES.items(), strict=True):
        X, y = generate()
        labels = {"k-means": KMeans(k, n_init=10, random_state=0).fit_predict(X)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            labels["Mercer"] = SpectralClustering(k, random_state=0).fit_predict(X)
        scores[name] = {method: adjusted_rand(y, found) for method, found in labels.items()}
        for axis, (method, found) in zip(column, labels.items(), strict=True):
            _scatter(axis, X, _matched(y, found))
            ari = round(scores[name][method], 2) + 0.0  # no minus before a zero
            axis.text(0.5, 1.02, f"ARI {ari:.2f}", transform=axis.transAxes, **CAPTION)
        column[0].set_title(f"{name}\n", fontsize=12.5, fontweight="bold")
    for axis, method in zip(axes[:, 0], ("k-means", "Mercer"), strict=True):
        axis.set_ylabel(method, fontsize=13, fontweight="bold", labelpad=10)
    figure.savefig(path, dpi=130, facecolor="white", bbox_inches="tight", pad_inches=0.1)
    plt.close(figure)
    return scores


def _matched(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Labels renumbered like the classes they share most rows with, so that colours agree."""
    k = int(max(y.max(), labels.max())) + 1
    shared = np.zeros((k, k), np.intp)
    np.add.at(shared, (labels, y), 1)
    return linear_sum_assignment(-shared)[1][labels]


def _scatter(axis: Any, X: np.ndarray, labels: np.ndarray) -> None:
    axis.scatter(*X.T, c=COLORS[labels], s=1.2, linewidths=0, alpha=0.6, rasterized=True)
    centre = (X.min(axis=0) + X.max(axis=0)) / 2
    half = 0.54 * np.ptp(X, axis=0).max()
    axis.set(xlim=(centre[0] - half, centre[0] + half), ylim=(centre[1] - half, centre[1] + half))
    axis.set_aspect("equal")
    axis.set(xticks=[], yticks=[])
    for side in axis.spines.values():
        side.set_color("#cccccc")
