"""Segmentation in one call, of one image or of many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mercer._run.threads import in_order, n_threads
from mercer._run.types import IdArray
from mercer.image.segmenter import Segmenter


def segment(
    image: Any, n_segments: int | str = "auto", *, mask: Any = None, **options: Any
) -> IdArray:
    """Segment an image along the contours that people would draw.

    Neighbouring regions are merged by the contrast along their common border, and the tree of
    regions is cut at a level: 12 megapixels take about a second. ``method="quantized"`` clusters
    colours and places instead. Follows scikit-image: the image first, `channel_axis=-1`, `mask=`,
    `start_label=1`.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        Of uint8, uint16, float or bool. Floats between 0 and 1 are used as they are, others are
        scaled by their range.
    n_segments : int or "auto", default="auto"
        The number of segments; "auto": as many as have contours stronger than ``scale=``.
    mask : array of bool of shape (height, width) or None, default=None
        False where a pixel is ignored.
    **options
        Parameters of `Segmenter`: scale, method, features, channel_axis, min_size, ….

    Returns
    -------
    ndarray of int of shape (height, width)
        Labels 1, 2, … by decreasing size, 0 outside the mask.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.image import segment
    >>> image = np.zeros((40, 60, 3), np.uint8)
    >>> image[:, 30:] = 255
    >>> labels = segment(image, 2, random_state=0)
    >>> np.unique(labels[:, :30]).size, np.unique(labels[:, 30:]).size, np.unique(labels).tolist()
    (1, 1, [1, 2])
    """
    return Segmenter(n_segments, **options).fit_predict(image, mask=mask)


def segment_batch(
    images: Iterable[Any],
    n_segments: int | str = "auto",
    *,
    masks: Iterable[Any] | None = None,
    segmenter: Segmenter | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Iterator[IdArray]:
    """Segment one image after the other, lazily and in order.

    Parameters
    ----------
    images : iterable of arrays
        Images of any sizes; an array of shape (n, height, width, channels) is one too.
    n_segments : int or "auto", default="auto"
        The number of segments of each image.
    masks : iterable of arrays or None, default=None
        A mask (or None) for each image.
    segmenter : Segmenter or None, default=None
        A fitted one, whose clusters are used for all images; None: each image has its own.
    n_jobs : int or None, default=None
        Number of threads over images.
    **options
        Parameters of `Segmenter`.

    Yields
    ------
    ndarray of int of shape (height, width)
        The labels of each image.
    """
    if segmenter is not None and (options or n_segments != "auto"):
        raise ValueError("a fitted segmenter has its own n_segments and options; pass no others")
    pairs = (
        ((image, None) for image in images) if masks is None else zip(images, masks, strict=True)
    )

    def work(pair: tuple[Any, Any]) -> IdArray:
        image, mask = pair
        if segmenter is not None:
            return segmenter.predict(image, mask=mask)
        return segment(image, n_segments, mask=mask, **options)

    return in_order(work, pairs, n_threads(n_jobs))
