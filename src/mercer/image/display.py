"""Segments drawn with matplotlib, in scikit-learn's Display convention."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._run.types import IdArray
from mercer.image.overlays import Overlay, draw_overlay
from mercer.report.plot import Display


class SegmentationDisplay(Display):
    """An image with its segments.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        The image.
    labels : array of shape (height, width)
        The segment of each pixel.
    overlay : {"boundaries", "average", "labels"}, default="boundaries"
        Lines between segments, mean colours, or tints.
    channel_axis : int or None, default=-1
        The axis of the channels.
    outside : int, default=0
        The label of pixels that belong to no segment.
    """

    def __init__(
        self,
        image: Any,
        labels: IdArray,
        *,
        overlay: Overlay = "boundaries",
        channel_axis: int | None = -1,
        outside: int = 0,
    ) -> None:
        self.image = image
        self.labels = labels
        self.overlay = overlay
        self.channel_axis = channel_axis
        self.outside = outside

    @classmethod
    def from_estimator(
        cls, segmenter: Any, image: Any, *, overlay: Overlay = "boundaries", ax: Any = None
    ) -> Self:
        """Draw the segments that a fitted `Segmenter` finds in any image."""
        check_is_fitted(segmenter)
        return cls(
            image,
            segmenter.predict(image),
            overlay=overlay,
            channel_axis=segmenter.channel_axis,
            outside=segmenter.start_label - 1,
        ).plot(ax=ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw; `options` go to ``Axes.imshow``."""
        ax = self._axes(ax)
        how: Any = {"channel_axis": self.channel_axis, "outside": self.outside}
        ax.imshow(draw_overlay(self.image, self.labels, self.overlay, **how), **options)
        n_segments = len(np.unique(self.labels[self.labels != self.outside]))
        ax.set_title(f"{n_segments} segments", fontsize="medium")
        ax.set_axis_off()
        return self
