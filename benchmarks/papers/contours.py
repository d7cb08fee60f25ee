"""Contours that people draw: ten Berkeley images, ours beside scikit-image's, one thread.

Each method has one setting for all images. Human maps are used for scores alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from benchmarks.measure import timed
from mercer.image import Segmenter, draw_overlay, read_image
from mercer.metrics import adjusted_rand, boundary_score

mpl.use("Agg")
import matplotlib.pyplot as plt

Labels = np.ndarray
AUTO, FIXED, PEER = "contours, auto", "contours, 20 segments", "felzenszwalb, scale 300"
BARS = {  # boundary F, region ARI, seconds
    FIXED: (0.62, 0.40, 0.25),
    AUTO: (0.60, 0.38, 0.25),
}


def cut_slic(image: np.ndarray) -> Labels:
    """Regions of slic, joined by normalised cuts of their graph."""
    from skimage import graph, segmentation

    regions = segmentation.slic(image, n_segments=200, compactness=10, start_label=1)
    edges = graph.rag_mean_color(image, regions, mode="similarity")
    return graph.cut_normalized(regions, edges, rng=0)


def felzenszwalb(image: np.ndarray) -> Labels:
    from skimage import segmentation

    return segmentation.felzenszwalb(image, scale=300, sigma=0.8, min_size=300)


def quickshift(image: np.ndarray) -> Labels:
    from skimage import segmentation

    return segmentation.quickshift(image, kernel_size=5, max_dist=20, ratio=0.5, rng=0)


METHODS: dict[str, Callable[[np.ndarray], Labels]] = {
    FIXED: lambda image: Segmenter(20).fit(image).labels_,
    AUTO: lambda image: Segmenter().fit(image).labels_,
    "quantized, 6 segments": lambda image: _quantized(image, 6),
    "quantized, auto": lambda image: _quantized(image, "auto"),
    PEER: felzenszwalb,
    "slic, 200 regions + cut_normalized": cut_slic,
    "quickshift": quickshift,
}


def _quantized(image: np.ndarray, k: int | str) -> Labels:
    return Segmenter(k, method="quantized", random_state=0).fit(image).labels_


def measure(folder: Path, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Scores and seconds of each method for each image."""
    found: dict[str, list[dict[str, Any]]] = {title: [] for title in (*METHODS, "people")}
    for name in names:
        image, humans = read(folder, name)
        for title, method in METHODS.items():
            repeat = 3 if title.startswith(("contours", "quantized", "felzen")) else 1
            labels, timing = timed(lambda m=method, i=image: m(i), repeat=repeat)
            found[title].append({"image": name, "seconds": timing.best, **score(labels, humans)})
        found["people"].append({"image": name, "seconds": 0.0, **among_people(humans)})
    return found


def read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    image, _ = read_image(folder / "bsds" / f"{name}.jpg")
    with np.load(folder / "bsds" / f"{name}.npz") as file:
        return image, file["segs"]


def score(labels: Labels, humans: np.ndarray) -> dict[str, float]:
    strict = boundary_score(labels, humans)
    return {
        "n_segments": len(np.unique(labels)),
        "F": strict.f,
        "precision": strict.precision,
        "recall": strict.recall,
        "ARI": float(np.mean([adjusted_rand(h.ravel(), labels.ravel()) for h in humans])),
    }


def among_people(humans: np.ndarray) -> dict[str, float]:
    """Each person against the others."""
    each = [score(own, np.delete(humans, i, axis=0)) for i, own in enumerate(humans)]
    return {key: float(np.mean([one[key] for one in each])) for key in each[0]}


def table(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Means over images, the bars, and F / ARI of each image."""
    keys = ("F", "precision", "recall", "ARI", "n_segments", "seconds")
    means = {
        t: {k: float(np.mean([r[k] for r in rows])) for k in keys} for t, rows in found.items()
    }
    lines = [
        "## Contours that people draw",
        "",
        "Boundary F (strict: pixels are matched one to one) and adjusted Rand index of regions, "
        "mean over people and images; one setting per method for all images; CPU seconds of one "
        "thread per image, the mean of the least of three runs.",
        "",
        "| method | F | precision | recall | region ARI | segments | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, m in means.items():
        seconds = f"{m['seconds']:.3f}" if m["seconds"] else ""
        lines.append(
            f"| {title} | {m['F']:.3f} | {m['precision']:.2f} | {m['recall']:.2f} "
            f"| {m['ARI']:.3f} | {m['n_segments']:.1f} | {seconds} |"
        )
    lines += ["", "| setting | wanted: F, ARI, seconds | measured | holds |", "|---|---|---|---|"]
    for title, (least_f, least_ari, most) in BARS.items():
        m = means[title]
        holds = m["F"] >= least_f and m["ARI"] >= least_ari and m["seconds"] <= most
        lines.append(
            f"| {title} | ≥ {least_f:.2f}, ≥ {least_ari:.2f}, ≤ {most:.2f} | {m['F']:.3f}, "
            f"{m['ARI']:.3f}, {m['seconds']:.3f} | {'yes' if holds else '**no**'} |"
        )
    titles = list(found)
    names = [row["image"] for row in found[titles[0]]]
    lines += ["", "| image | " + " | ".join(titles) + " |", "|" + "---|" * (len(titles) + 1)]
    for number, name in enumerate(names):
        cells = (f"{found[t][number]['F']:.2f} / {found[t][number]['ARI']:.2f}" for t in titles)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def draw(folder: Path, names: Sequence[str], path: Path) -> None:
    """A contact sheet: ours, felzenszwalb, one person."""
    titles = ("Mercer", "felzenszwalb", "a person")
    columns = 2 * len(titles)
    n_rows = -(-len(names) // 2)
    figure, axes = plt.subplots(n_rows, columns, figsize=(12, 1.37 * n_rows + 0.2), squeeze=False)
    for axis in axes.ravel():
        axis.set_axis_off()
    for number, name in enumerate(names):
        image, humans = read(folder, name)
        shown = (METHODS[AUTO](image), METHODS[PEER](image) + 1, humans[0] + 1)
        first = len(titles) * (number % 2)
        for place, labels in enumerate(shown):
            axes[number // 2, first + place].imshow(draw_overlay(image, labels))
    for place in range(columns):
        axes[0, place].set_title(titles[place % len(titles)], fontsize=8)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=0.95, wspace=0.02, hspace=0.02)
    figure.savefig(path, dpi=80)
    plt.close(figure)
