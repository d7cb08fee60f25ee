"""What a page shows of a segmentation: the pictures, and a sample of pixels as rows."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from mercer._run.extras import require
from mercer.image.features import ColorAndPlace, LabAndPlace
from mercer.image.overlays import draw_overlay
from mercer.report.view import Map, Picture, View, describe, draw, plane

LONGEST = 720  # pixels of a picture's longer side on the page


def gather_segments(segmenter: Any, image: Any, *, title: str, seed: int, rows: int) -> View:
    """A sample of the pixels of the image that a segmenter was fitted on, and its pictures."""
    labels, start = np.asarray(segmenter.labels_), int(segmenter.start_label)
    pixels = segmenter._pixels(image, None)
    if pixels.shape != labels.shape:
        raise ValueError(
            f"the image has shape {pixels.shape}, but the segmenter was fitted on one of "
            f"{labels.shape}; pass the image of the fit"
        )
    inside = np.flatnonzero(labels.ravel() >= start)
    ids = inside[draw(len(inside), rows, np.random.default_rng(seed))]
    own = segmenter.features if not isinstance(segmenter.features, str) else None
    F = segmenter._features_of(pixels, own)[ids].astype(np.float64)
    counts = np.bincount(labels.ravel()[inside] - start)
    width = labels.shape[1]
    place = Map("Image", ("x", "y"), np.stack([ids % width, ids // width], axis=1), is_flipped=True)
    return describe(
        F,
        ids,
        labels.ravel()[ids] - start,
        (place, plane(F, "Features", "feature")),
        tuple(map(float, counts)),
        space=F,
        names=_names(segmenter.features_, F.shape[1]),
        n_rows=len(inside),
        title=title,
        seed=seed,
        pictures=_pictures(image, labels, segmenter),
        noun="segment",
        first=start,
    )


def _names(features: Any, n: int) -> tuple[str, ...]:
    if isinstance(features, ColorAndPlace) and n == 5:
        return ("red", "green", "blue", "x", "y")
    if isinstance(features, LabAndPlace) and n == 5:
        return ("lightness", "a", "b", "x", "y")
    return tuple(f"feature {j}" for j in range(n))


def _pictures(image: Any, labels: Any, segmenter: Any) -> tuple[Picture, ...]:
    """The image with the borders of its segments, and in their mean colours."""
    captions = {"boundaries": "Borders of the segments", "average": "Their mean colours"}
    step = -(-max(labels.shape) // LONGEST)
    axis, outside = segmenter.channel_axis, segmenter.start_label - 1
    small = _thinned(np.asarray(image), labels.ndim, axis, step)
    few = labels[::step, ::step]
    pictures = []
    for kind, caption in captions.items():
        drawn = draw_overlay(small, few, kind, channel_axis=axis, outside=outside)  # type: ignore[arg-type]
        pictures.append(Picture(caption, _png(drawn), few.shape))
    return tuple(pictures)


def _thinned(image: Any, n_axes: int, channel_axis: int | None, step: int) -> Any:
    """Every `step`-th pixel, along all axes but that of the channels."""
    if image.ndim == n_axes or channel_axis is None:
        return image[::step, ::step]
    channels = channel_axis % image.ndim
    every = tuple(slice(None) if a == channels else slice(None, None, step) for a in range(3))
    return image[every]


def _png(picture: Any) -> bytes:
    Image = require("PIL.Image", "image", "drawing segments")
    buffer = BytesIO()
    Image.fromarray(picture).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
