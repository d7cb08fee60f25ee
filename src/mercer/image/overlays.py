"""Images that show a segmentation: its boundaries, its mean colours, its labels."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mercer._run.extras import require
from mercer.image.pixels import Pixels, as_pixels

Overlay = Literal["boundaries", "average", "labels"]
OVERLAYS: tuple[str, ...] = get_args(Overlay)


def draw_overlay(
    image: Any,
    labels: NDArray[Any],
    kind: Overlay = "boundaries",
    *,
    channel_axis: int | None = -1,
    outside: int = 0,
) -> NDArray[np.uint8]:
    """Draw the segments over an image.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        The image.
    labels : array of int of shape (height, width)
        The segment of each pixel.
    kind : {"boundaries", "average", "labels"}, default="boundaries"
        Yellow lines between segments, the mean colour of each, or a tint.
    channel_axis : int or None, default=-1
        The axis of the channels.
    outside : int, default=0
        Pixels with this label stay as they are.

    Returns
    -------
    ndarray of uint8 of shape (height, width, 3)
        RGB colours.
    """
    segmentation = require("skimage.segmentation", "image", "drawing segments")
    color = require("skimage.color", "image", "drawing segments")
    labels = np.asarray(labels)
    colors = _rgb(as_pixels(image, channel_axis=channel_axis))
    if labels.shape != colors.shape[:2]:
        raise ValueError(
            f"labels have shape {labels.shape}, the image {colors.shape[:2]}; pass one per pixel"
        )
    if kind == "boundaries":
        drawn = segmentation.mark_boundaries(colors, labels, color=(1, 0.9, 0), mode="thick")
    elif kind == "average":
        drawn = color.label2rgb(labels, colors, kind="avg", bg_label=outside)
        drawn[labels == outside] = colors[labels == outside]
    elif kind == "labels":
        drawn = color.label2rgb(labels, colors, kind="overlay", alpha=0.45, bg_label=outside)
    else:
        raise ValueError(f"overlay {kind!r} is not known; choose one of {', '.join(OVERLAYS)}")
    return np.rint(255.0 * drawn).astype(np.uint8)


def _rgb(pixels: Pixels) -> Any:
    """Colours from 0 to 1: grey three times, of many channels the first three."""
    values = np.empty((*pixels.shape, pixels.n_channels), np.float32)
    pixels.write_colors(pixels.color_range(), values, top=1.0)
    if pixels.n_channels < 3:
        return np.repeat(values[:, :, :1], 3, axis=2)
    return values[:, :, :3]
