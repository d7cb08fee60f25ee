"""Makes the pictures of docs/segmentation.md: Mercer, felzenszwalb and a person, eight photographs.

    python docs/contour_pictures.py [--data DIR]

reads the Berkeley photographs of the benchmarks (default: MERCER_DATA).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measure import data_folder
from benchmarks.papers.contours import AUTO, METHODS, PEER, read
from mercer.image import draw_overlay

IMAGES = Path(__file__).parent / "images"
PHOTOGRAPHS = ("145086", "147091", "167062", "182053", "196073", "295087", "3096", "62096")
WIDTH, GAP = 300, 6  # pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    folder = data_folder(parser.parse_args().data)
    for name in PHOTOGRAPHS:
        image, humans = read(folder, name)
        shown = (METHODS[AUTO](image), METHODS[PEER](image) + 1, humans[0] + 1)
        drawn = [_small(draw_overlay(image, labels)) for labels in shown]
        gap = np.full((drawn[0].shape[0], GAP, 3), 255, np.uint8)
        row = np.hstack([drawn[0], gap, drawn[1], gap, drawn[2]])
        Image.fromarray(row).save(IMAGES / f"contours-{name}.jpg", quality=82, optimize=True)


def _small(picture: np.ndarray) -> np.ndarray:
    height = round(picture.shape[0] * WIDTH / picture.shape[1])
    return np.array(Image.fromarray(picture).resize((WIDTH, height), Image.Resampling.LANCZOS))


if __name__ == "__main__":
    main()
