"""Makes the picture of MNIST's embedding in the gallery (docs/examples/2_digits.py).

    python docs/mnist_picture.py [--data DIR]

clusters all 70,000 images of the benchmarks' data (default: MERCER_DATA) and lays out a few
thousand of them by their spectral coordinates.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.manifold import TSNE

from benchmarks.measure import data_folder, load
from mercer import SpectralClustering
from mercer.metrics import normalized_mutual_info
from mercer.report.palette import color_of

PICTURE = Path(__file__).parent / "images" / "mnist-embedding.jpg"
SHOWN = 5000  # rows
GRID = 26  # places for images along a side


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    X, y = load(data_folder(parser.parse_args().data), "mnist", np.float32)
    model = SpectralClustering(10, ensemble=20, random_state=0).fit(X)
    some = np.sort(np.random.default_rng(0).choice(len(X), SHOWN, replace=False))
    xy = TSNE(random_state=0, init="pca").fit_transform(model.transform(X[some]))
    figure, panels = plt.subplots(1, 2, figsize=(12, 6.4), layout="constrained")
    score = normalized_mutual_info(y, model.labels_)
    _draw(panels[0], xy, model.labels_[some], f"ten clusters of 70,000 images (NMI {score:.2f})")
    _draw(panels[1], xy, y[some].astype(int), "the digits that people read")
    for panel in panels:
        _draw_images(panel, xy, X[some])
    figure.savefig(PICTURE, dpi=110, pil_kwargs={"quality": 80, "optimize": True})


def _draw(panel: plt.Axes, xy: np.ndarray, labels: np.ndarray, title: str) -> None:
    colors = [color_of(int(label)) for label in labels]
    panel.scatter(*xy.T, c=colors, s=16, alpha=0.55, linewidths=0)
    panel.set(xticks=[], yticks=[], title=title)
    panel.axis("off")


def _draw_images(panel: plt.Axes, xy: np.ndarray, X: np.ndarray) -> None:
    """One image in each place of a grid that has rows."""
    place = ((xy - xy.min(axis=0)) / np.ptp(xy, axis=0) * (GRID - 1e-9)).astype(int)
    for row in np.unique(place @ [GRID, 1], return_index=True)[1]:
        ink = X[row].reshape(28, 28) / 255.0
        image = np.dstack([np.zeros((28, 28, 3)), ink])
        panel.add_artist(AnnotationBbox(OffsetImage(image, zoom=0.42), xy[row], frameon=False))


if __name__ == "__main__":
    main()
