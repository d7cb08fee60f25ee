"""What a report page shows of a segmentation: the images, and a sample of pixels as rows."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._run.extras import require
from mercer.image.overlays import Overlay, draw_overlay
from mercer.image.segmenter import Segmenter
from mercer.image.tree import RegionTree
from mercer.report.view import (
    SAMPLE_ROWS,
    Levels,
    Map,
    Picture,
    View,
    describe,
    gather,
    plane,
)
from mercer.rows.sample import draw_rows

LONGEST = 720  # pixels of the longer side of an image on the page
MOST_LEVELS = 80  # segments of the finest level on the page, if the one shown has fewer
CAPTIONS: dict[Overlay, str] = {
    "boundaries": "Boundaries of the segments",
    "average": "Their mean colours",
}


@gather.register
def gather_segments(
    segmenter: Segmenter, image: Any, *, title: str = "", seed: int = 0, rows: int = SAMPLE_ROWS
) -> View:
    """A sample of the pixels of the image that a segmenter was fitted on, and its overlays."""
    check_is_fitted(segmenter)
    labels, start = np.asarray(segmenter.labels_), int(segmenter.start_label)
    F = segmenter.fitted_features(image)
    inside = np.flatnonzero(labels.ravel() >= start)
    ids = inside[draw_rows(len(inside), rows, np.random.default_rng(seed))]
    taken = F[ids].astype(np.float64)
    width = labels.shape[1]
    place = Map("Image", ("x", "y"), np.stack([ids % width, ids // width], axis=1), is_flipped=True)
    return describe(
        taken,
        ids,
        labels.ravel()[ids] - start,
        (place, plane(taken, "Features", "feature")),
        tuple(map(float, np.bincount(labels.ravel()[inside] - start))),
        space=taken,
        names=segmenter.features_.names,
        n_rows=len(inside),
        title=title,
        seed=seed,
        pictures=_pictures(image, labels, segmenter),
        levels=_levels(image, segmenter) if hasattr(segmenter, "levels_") else None,
        noun="segment",
        first=start,
    )


def _pictures(image: Any, labels: Any, segmenter: Segmenter) -> tuple[Picture, ...]:
    """The image with the boundaries of its segments, and in their mean colours."""
    step = -(-max(labels.shape) // LONGEST)
    axis, outside = segmenter.channel_axis, segmenter.start_label - 1
    small = _thin_out(np.asarray(image), labels.ndim, axis, step)
    few = labels[::step, ::step]
    drawn = {
        caption: draw_overlay(small, few, kind, channel_axis=axis, outside=outside)
        for kind, caption in CAPTIONS.items()
    }
    return tuple(Picture(caption, _png(image), few.shape) for caption, image in drawn.items())


def _levels(image: Any, segmenter: Segmenter) -> Levels:
    """The last levels of the tree, at the size of the page."""
    tree: RegionTree = segmenter.levels_
    n = min(max(MOST_LEVELS, segmenter.n_segments_), tree.n_regions)
    segment_of = tree.segment_of(n)
    step = -(-max(tree.regions.shape) // LONGEST)
    small = _thin_out(np.asarray(image), 2, segmenter.channel_axis, step)
    regions = np.append(segment_of, -1)[tree.regions[::step, ::step]]
    picture = draw_overlay(small, np.zeros_like(regions), channel_axis=segmenter.channel_axis)
    flat = regions.ravel()
    starts = np.flatnonzero(np.diff(flat, prepend=flat[0] - 1))
    runs = np.stack([flat[starts], np.diff(starts, append=len(flat))], axis=1).ravel()
    counts = np.bincount(flat[flat >= 0], minlength=n)
    colors = [
        np.bincount(flat[flat >= 0], weights=channel.ravel()[flat >= 0], minlength=n)
        for channel in np.moveaxis(picture, -1, 0)
    ]
    means = np.rint(np.stack(colors, axis=1) / np.maximum(counts, 1)[:, None]).astype(np.intp)
    first = len(tree.pairs) - (n - 1)
    return Levels(
        png=_png(picture),
        shape=(int(regions.shape[0]), int(regions.shape[1])),
        n_segments=segmenter.n_segments_,
        runs=runs,
        pairs=segment_of[tree.pairs[first:]],
        strengths=tree.strengths[first:],
        sizes=counts,
        colors=means,
    )


def _thin_out(image: Any, n_axes: int, channel_axis: int | None, step: int) -> Any:
    """Every `step`-th pixel, along all axes but that of the channels."""
    if image.ndim == n_axes or channel_axis is None:
        return image[::step, ::step]
    every = [slice(None, None, step)] * 3
    every[channel_axis] = slice(None)
    return image[tuple(every)]


def _png(picture: Any) -> bytes:
    Image = require("PIL.Image", "image", "drawing segments")
    buffer = BytesIO()
    Image.fromarray(picture).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
