"""The tree of regions: neighbours merged one after the other, from basins to the whole image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.image.contrast import FIRST, SCALES, RegionGraph

_jit = LazyModule("mercer.image._contours_jit")

# How much each cue counts: rounded, between two non-negative logistic regressions (with other
# codes of texture) of the borders that people drew on ten Berkeley photographs. Fitted on nine of
# them, the weights segment the tenth as well (boundary F .795, region ARI .76; these: .796, .78).
PER_SCALE = (0.5, 0.2, 0.2, 0.5)  # lightness, a, b, texture on the two sides of the border
STEEPNESS = 5.5  # the fine gradient on the border itself
OF_REGIONS = (0.1, 0.1, 0.1, 1.2)  # lightness, a, b, texture of the two regions as wholes
WEIGHTS = np.array([*PER_SCALE * len(SCALES), STEEPNESS, *OF_REGIONS])
OFFSET = -4.4  # of that regression: 0 is even odds that people draw the border
SMALL = 0.002  # of the image: smaller regions are merged sooner,
FEW_PIXELS = 150.0  # and those of fewer pixels, whose histograms say little,
SOONER = 0.5  # by this much per factor e
GROWTH = 0.02  # of a region, before its borders are compared again: faster, the same levels
# Contours are strong or weak relative to the image's own: the level of 20 regions counts seven
# parts, one level for all images three. Between 10 and 40, and 5 and 9 parts, all do about as well
# on the ten photographs, their halves, grey copies and copies of half the contrast.
OWN_REGIONS, OWN_SHARE, COMMON_LEVEL = 20, 0.7, -1.2


@frozen
class RegionTree:
    """All levels of a segmentation, each nested in the next: what `Segmenter.levels_` is.

    A level has a scale between 0 and 1: contours weaker than that are gone. At 0.5 those are left
    that people would probably draw.

    Parameters
    ----------
    regions : ndarray of int32 of shape (height, width)
        The finest regions, -1 outside the mask.
    pairs : ndarray of int of shape (n_regions - 1, 2)
        Merges in order: the second region becomes part of the first.
    strengths : ndarray of float of shape (n_regions - 1,)
        The strength of the contour that each merge removes, never less than the one before.
    """

    regions: NDArray[np.int32]
    pairs: IdArray
    strengths: FloatArray

    @property
    def n_regions(self) -> int:
        """The number of regions of the finest level."""
        return len(self.pairs) + 1

    def count(self, scale: float) -> int:
        """The number of segments whose contours are stronger than `scale`."""
        return self.n_regions - int(np.searchsorted(self.strengths, scale, side="right"))

    def scale(self, n_segments: int) -> float:
        """The strength of the weakest contour of the level with so many segments."""
        at = self.n_regions - n_segments
        return float(self.strengths[at]) if at < len(self.strengths) else 1.0

    def segment_of(self, n_segments: int) -> IdArray:
        """The segment of each region, 0, 1, … by the first region: (n_regions,)."""
        if not 1 <= n_segments <= self.n_regions:
            raise ValueError(
                f"n_segments={n_segments} is not between 1 and the {self.n_regions} regions of "
                "the finest level"
            )
        parent = np.arange(self.n_regions)
        taken = self.pairs[: self.n_regions - n_segments]
        for into, region in taken[::-1]:  # later merges first: a parent has found its root
            parent[region] = parent[into]
        return np.unique(parent, return_inverse=True)[1]

    def labels(self, n_segments: int | None = None, *, scale: float = 0.5) -> IdArray:
        """The labels of a level: 1, 2, … by decreasing size, 0 outside the mask.

        Parameters
        ----------
        n_segments : int or None, default=None
            The number of segments; None: as many as `scale` says.
        scale : float, default=0.5
            The strength of the weakest contour that is left.
        """
        segment_of = self.segment_of(self.count(scale) if n_segments is None else n_segments)
        sizes = np.bincount(segment_of, weights=self.sizes())
        rank = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable") + 1
        return np.append(rank[segment_of], 0)[self.regions]

    def sizes(self) -> FloatArray:
        """Pixels of each region of the finest level."""
        inside = self.regions[self.regions >= 0]
        return np.bincount(inside, minlength=self.n_regions).astype(np.float64)


def merge_tree(graph: RegionGraph, min_size: float) -> tuple[IdArray, FloatArray]:
    """Merges in order, and the strength of the contour that each removes.

    Regions of fewer than `min_size` pixels are merged before all others. Regions that do not touch
    (in a mask of several parts) are joined at last, with a strength of 1.
    """
    n = len(graph)
    pairs, heights = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
    sizes = graph.sizes.copy()
    total = float(sizes.sum())
    n_merged = _jit.merge_regions(
        graph.ends.copy(),
        graph.sums.copy(),
        graph.lengths.copy(),
        graph.histograms.copy(),
        sizes,
        FIRST,
        WEIGHTS,
        np.array([SOONER, max(SMALL * total, FEW_PIXELS)]),
        float(min_size),
        GROWTH,
        pairs,
        heights,
        *merge_room(sizes, len(graph.ends)),
    )
    heights[:n_merged] += OFFSET
    if n_merged < n - 1:
        alone = np.setdiff1d(np.arange(n), pairs[:n_merged, 1])
        alone = alone[np.argsort(-sizes[alone], kind="stable")]
        pairs[n_merged:] = np.stack([np.full(len(alone) - 1, alone[0]), alone[1:]], axis=1)
    return pairs, np.append(_strengths(heights[:n_merged]), np.ones(n - 1 - n_merged))


def merge_room(sizes: FloatArray, m: int) -> tuple[Any, Any]:
    """Room for the work of `merge_regions`: chains of m borders by region, and a heap."""
    n, capacity = len(sizes), 8 * m + 64
    halves = np.full(n, -1, np.int64), np.full(2 * m, -1, np.int64), np.zeros(n, np.int64)
    chains = (*halves, np.ones(m, np.bool_), np.empty(m, np.int64), sizes.copy())
    return chains, (np.empty(capacity), np.empty(capacity, np.int64), np.full(m, np.nan))


def without_small(
    regions: NDArray[np.int32], pairs: IdArray, strengths: FloatArray
) -> tuple[IdArray, RegionTree]:
    """The tree that starts when all small regions are merged: those merges have no strength."""
    n = len(pairs) + 1
    forced = int(np.count_nonzero(strengths == 0.0))
    full = RegionTree(regions, pairs, strengths)
    first = full.segment_of(n - forced)
    return first, RegionTree(
        np.append(first, -1)[regions].astype(np.int32), first[pairs[forced:]], strengths[forced:]
    )


def _strengths(heights: FloatArray) -> FloatArray:
    """Heights as shares, relative to the image's own contours; 0 where a small region forced it."""
    is_free = heights > -100.0
    free = heights[is_free]
    if not len(free):
        return np.zeros(len(heights))
    own = free[max(len(free) - OWN_REGIONS, 0)]
    middle = OWN_SHARE * own + (1.0 - OWN_SHARE) * COMMON_LEVEL
    return np.where(is_free, expit(heights - middle), 0.0)
