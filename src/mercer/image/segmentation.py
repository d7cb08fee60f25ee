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
    """The label image of an image: 1, 2, … by decreasing size, 0 outside the mask.

    Colour and place of pixels, and their normalised cut on a few hundred representatives: 12
    megapixels take about two seconds. Follows scikit-image: the image first, `channel_axis=-1`,
    `mask=`, `start_label=1`.

    Parameters
    ----------
    image : (height, width) or (height, width, channels), of uint8, uint16, float or bool. Floats
        between 0 and 1 are taken as such, others by their own range.
    n_segments : how many, or "auto".
    mask : (height, width) of booleans, False where a pixel does not count.
    options : as of `Segmenter`: method, features, channel_axis, min_size, connected, ….

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
    """Label images of one image after the other, lazily and in order.

    Parameters
    ----------
    images : arrays of any sizes; an array (n, height, width, channels) is one of them too.
    masks : one (or None) for each image.
    segmenter : a fitted one, whose clusters are used for all; None: each image has its own.
    n_jobs : threads over images.
    options : as of `Segmenter`.
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
