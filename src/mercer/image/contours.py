"""Segments between contours: the region tree of an image, and what its segments look like."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.recorder import Recorder
from mercer._run.records import Record, expect, stored
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.image.blocks import pixel_tiles
from mercer.image.contrast import FIRST, RegionGraph, region_graph
from mercer.image.pixels import BoolImage, ColorRange, Pixels
from mercer.image.planes import Planes
from mercer.image.tree import RegionTree, merge_tree, without_small

_jit = LazyModule("mercer.image._contours_jit")

WORK_PIXELS = 2**18  # larger images are worked on as means of blocks: people see contours so too
PLACE, SHARE = 0.1, 0.01  # of χ²: they decide between segments that look the same


@frozen
class Looks(Record):
    """What segments look like: histograms of colour and texture, where they are, how large."""

    histograms: FloatArray = stored("(k, b) float64, finite, >= 0")  # shares, one sum per histogram
    places: FloatArray = stored("(k, 2) float64, finite")  # their middles, 0 … 1
    shares: FloatArray = stored("(k,) float64, finite")  # of the image

    def sizes(self) -> dict[str, int]:
        """k: segments."""
        return {"k": len(self.shares), "b": self.histograms.shape[1]}

    def check(self) -> None:
        n_bins = self.histograms.shape[1]
        expect(n_bins == FIRST[-1], f"histograms have {n_bins} bins instead of {FIRST[-1]}")

    def nearest_in(self, others: Looks) -> IdArray:
        """The segment of `others` that each of these looks like most."""
        distances = PLACE * ((self.places[:, None] - others.places) ** 2).sum(axis=2)
        distances += SHARE * (self.shares[:, None] - others.shares) ** 2
        for row, histogram in zip(distances, self.histograms, strict=True):
            total = histogram + others.histograms
            total[total == 0.0] = 1.0
            row += 0.5 * ((histogram - others.histograms) ** 2 / total).sum(axis=1)
        return distances.argmin(axis=1)


@frozen
class TreeRule(Record):
    """Which level of a tree is taken, and which regions are too small for it."""

    n_segments: int | None = stored("int, >= 1 or None")
    scale: float = stored("float, in [0, 1]")
    min_size: float = stored("float, finite, >= 0")  # pixels, or less than 1: a share of the image

    def least(self, n_pixels: int) -> float:
        return self.min_size if self.min_size >= 1.0 else float(round(self.min_size * n_pixels))

    def count(self, tree: RegionTree) -> int:
        """The number of segments."""
        if self.n_segments is None:
            return tree.count(self.scale)
        return min(self.n_segments, tree.n_regions)


@frozen
class TreeModel(Record):
    """Another image is cut by the same rule, and its segments are named after those they resemble.

    A segment may then consist of several regions.
    """

    rule: TreeRule = stored(TreeRule)
    looks: Looks = stored(Looks)
    weights: FloatArray = stored("(k,) float64, finite")  # pixels of each segment
    n_regions: int = stored("int, >= 1")  # of the finest level

    def sizes(self) -> dict[str, int]:
        """d: features; k: segments."""
        return {"d": 3, "k": len(self.weights)}

    def check(self) -> None:
        same = len(self.looks.shares) == len(self.weights)
        expect(same, "the looks of the segments are not as many as their weights")

    def report_fields(self) -> dict[str, Any]:
        """What the fit report says about the segmentation."""
        return {
            "kernel": "χ² of colour and texture along borders",
            "bandwidth": "",
            "approximation": "tree of regions",
            "rank": self.n_regions,
            "trace_error": None,
            "eigenvalues": (),
        }

    def label_pixels(self, features: Any, pixels: Pixels, given: Any, threads: int) -> IdArray:
        """Segments of the pixels of any image, -1 outside."""
        if given is not None:
            raise ValueError("this model makes its features from the image; pass no features")
        features.check_channels(pixels)
        work = WorkImage.of(pixels, features.scale)
        found = find_segments(pixels, work, features, self.rule, threads=threads)
        names = found.looks.nearest_in(self.looks)
        labels: IdArray = np.append(names, -1)[found.labels]
        return labels


@frozen
class WorkImage:
    """An image of at most WORK_PIXELS cells, each the mean of step × step pixels."""

    values: FloatArray  # (rows, columns, channels), 0 … 255
    inside: BoolImage  # (rows, columns)
    step: int

    @classmethod
    def of(cls, pixels: Pixels, scale: ColorRange) -> WorkImage:
        height, width = pixels.shape
        step = max(int(np.ceil(np.sqrt(height * width / WORK_PIXELS))), 1)
        shape = -(-height // step), -(-width // step)
        values = np.empty((*shape, pixels.n_channels), np.float32)
        if step == 1:
            inside = pixels.mask()
            pixels.write_colors(scale, values)
        else:
            counts = np.empty(shape, np.int32)
            _jit.reduce_blocks(pixels.values, pixels.mask(), step, values, counts)
            values -= np.float32(scale.low)
            values *= np.float32(255.0 / scale.width)
            inside = counts > 0
        if not inside.all():  # no contour runs along the edge of a mask
            _, (y, x) = distance_transform_edt(~inside, return_indices=True)
            values = values[y, x]
        return cls(values, inside, step)

    def enlarged(self, owner: NDArray[np.int32], pixels: Pixels, threads: int) -> NDArray[np.int32]:
        """Regions of cells as regions of pixels, -1 outside."""
        if self.step == 1:
            return owner
        height, width = pixels.shape
        out, inside = np.empty((height, width), np.int32), pixels.mask()

        def paint(tile: slice) -> None:
            lines = slice(tile.start // width, tile.stop // width)
            _jit.enlarge(owner, inside[lines], self.step, lines.start, out[lines])

        for _ in in_order(paint, pixel_tiles(height * width, width), threads):
            pass
        return out


@frozen
class FoundSegments:
    """The tree of an image, the level that a rule takes, and what its segments look like."""

    tree: RegionTree
    labels: IdArray  # (n_pixels,) by decreasing size, -1 outside
    looks: Looks
    weights: FloatArray  # (k,) pixels of each segment


def find_segments(
    pixels: Pixels,
    work: WorkImage,
    features: Planes,
    rule: TreeRule,
    *,
    threads: int = 1,
    record: Recorder | None = None,
) -> FoundSegments:
    """1. Regions and contrast; 2. the tree; 3. its pixels; 4. the level."""
    record = Recorder() if record is None else record
    with record.stage("contrast"):
        graph = region_graph(features.planes(work.values), work.inside)
    with record.stage("tree"):
        least = rule.least(pixels.n_inside) / work.step**2
        first, small = without_small(graph.owner, *merge_tree(graph, least))
    with record.stage("levels"):
        regions = work.enlarged(small.regions, pixels, threads)
        tree = RegionTree(regions, small.pairs, small.strengths)
        segment_of = small.segment_of(rule.count(small))
        looks, order = _looks(graph, segment_of[first], work)
        named = np.append(np.argsort(order)[segment_of], -1)
        labels: IdArray = named[regions.ravel()]
        weights = np.bincount(labels[labels >= 0], minlength=len(order)).astype(np.float64)
    return FoundSegments(tree, labels, looks, weights)


def _looks(graph: RegionGraph, segment_of: IdArray, work: WorkImage) -> tuple[Looks, IdArray]:
    """Looks of segments by decreasing size, then from top to bottom; and the order of their ids."""
    k = int(segment_of.max()) + 1
    counts = np.bincount(segment_of, weights=graph.sizes, minlength=k)
    sums = np.stack(
        [np.bincount(segment_of, weights=column) for column in graph.histograms.T], axis=1
    )
    y, x = np.nonzero(work.inside)
    ids = segment_of[graph.owner[y, x]]
    places = np.stack(
        [
            np.bincount(ids, weights=(axis + 0.5) / side, minlength=k) / counts
            for axis, side in zip((y, x), work.inside.shape, strict=True)
        ],
        axis=1,
    )
    order = np.lexsort((places[:, 1], places[:, 0], -counts))
    return Looks(
        sums[order] / counts[order, None], places[order], counts[order] / counts.sum()
    ), order
