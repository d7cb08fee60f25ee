"""Regions of an image and the contrast along the borders between them.

Basins of a fine gradient are the first regions: their borders lie on every contour there might be.
The contrast along a border is that of [arbelaez2011] at less cost: χ² between histograms of
lightness, colour and texture on its two sides, at three scales, taken across the border's own
direction and only where there is a border.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.image.pixels import BoolImage

_jit = LazyModule("mercer.image._contours_jit")

FINE = 1.3  # pixels: the scale of the gradient whose basins are the first regions
GRAIN = 1.0  # pixels: the scale of texture
TEXTURE_STEPS = np.array([1.0, 2.5, 6.0])  # gradients of lightness that count as different
LOW, HIGH = np.array([0.0, -60.0, -60.0]), np.array([100.0, 60.0, 60.0])  # of the planes' bins
BINS = np.array([16, 14, 14, 13])  # of lightness, a, b, and texture
FIRST = np.concatenate([[0], np.cumsum(BINS)])
STEEP = 40.0  # a fine gradient, per pixel, that counts as 1
CELL = 2  # pixels: the side of a cell, of which histograms are made
# (blur of the histograms in cells, pixels from a cell's side to the next, pixels from the border)
SCALES = ((1.0, CELL, 2.5), (1.7, CELL, 5.0), (1.7, 2 * CELL, 10.0))
STRAIGHT = 0.3  # a border whose normals add up to less of its length has no direction of its own

N_CUES = 4 * len(SCALES) + 1


@frozen
class RegionGraph:
    """Regions, and the borders between neighbours."""

    owner: NDArray[np.int32]  # (rows, columns) the region of each pixel, -1 outside
    histograms: FloatArray  # (n, bins) counts of pixels
    sizes: FloatArray  # (n,) pixels
    ends: IdArray  # (edges, 2)
    lengths: FloatArray  # (edges,) pairs of pixels across the border
    sums: FloatArray  # (edges, N_CUES) contrast, summed along the border

    def __len__(self) -> int:
        return len(self.sizes)


def region_graph(planes: FloatArray, inside: BoolImage) -> RegionGraph:
    """1. Basins; 2. texture; 3. histograms; 4. borders; 5. contrast along them.

    planes : (3, rows, columns), lightness and two of colour.
    """
    steepness = fine_gradient(planes)
    owner, scratch = np.empty(inside.shape, np.int32), np.empty((2, inside.size), np.int32)
    n = _jit.find_basins(steepness, inside, owner.reshape(-1), *scratch)
    codes = _texture(planes[0])
    H, sizes = np.zeros((n, FIRST[-1])), np.zeros(n)
    _count(planes, codes, owner, H, sizes)
    lower, upper = _border_pixels(owner)
    pairs = owner.ravel()[lower].astype(np.int64) * n + owner.ravel()[upper]
    found, edge = np.unique(pairs, return_inverse=True)
    lengths = np.bincount(edge, minlength=len(found)).astype(np.float64)
    sums = np.zeros((len(found), N_CUES))
    _add_cues(planes, codes, inside, lower, upper, edge, sums)
    steep = 0.5 * (steepness.ravel()[lower] + steepness.ravel()[upper]) / STEEP
    sums[:, -1] = np.bincount(edge, weights=steep.astype(np.float64) ** 2, minlength=len(found))
    ends = np.stack(np.divmod(found, max(n, 1)), axis=1)
    return RegionGraph(owner, H, sizes, ends, lengths, sums)


def fine_gradient(planes: FloatArray) -> FloatArray:
    """√(Σ of the squared gradients of the planes), at the finest scale."""
    total = np.zeros(planes.shape[1:], np.float32)
    for plane in planes:
        for order in ((0, 1), (1, 0)):
            slope = gaussian_filter(plane, FINE, order=order)
            total += slope * slope
    return np.sqrt(total)


def _texture(lightness: FloatArray) -> NDArray[np.uint8]:
    across, down = (gaussian_filter(lightness, GRAIN, order=order) for order in ((0, 1), (1, 0)))
    codes = np.empty(lightness.shape, np.uint8)
    _jit.texture_codes(across, down, TEXTURE_STEPS, codes)
    return codes


def _count(
    planes: FloatArray,
    codes: NDArray[np.uint8],
    owner: NDArray[np.int32],
    H: FloatArray,
    sizes: FloatArray,
) -> None:
    bins_per_unit = (BINS[:3] - 1) / (HIGH - LOW)
    _jit.add_histograms(planes, codes, owner, LOW, bins_per_unit, FIRST, H, sizes)


def _border_pixels(owner: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pairs of pixels on the two sides of a border, that of the lower region first.

    In the order of the first of the two, its right neighbour before the one below.
    """
    width, flat, inside = owner.shape[1], owner.reshape(-1), owner >= 0
    is_border = np.zeros((*owner.shape, 2), np.bool_)
    here, there = (slice(None), slice(None, -1)), (slice(None), slice(1, None))
    for side, (a, b) in enumerate(((here, there), (here[::-1], there[::-1]))):
        is_border[(*a, side)] = (owner[a] != owner[b]) & inside[a] & inside[b]
    place = np.flatnonzero(is_border)
    first = (place >> 1).astype(np.int32)
    second = first + np.where(place & 1, np.int32(width), np.int32(1))
    is_lower = flat[first] < flat[second]
    return np.where(is_lower, first, second), np.where(is_lower, second, first)


def _add_cues(
    planes: FloatArray,
    codes: NDArray[np.uint8],
    inside: BoolImage,
    lower: NDArray[np.int32],
    upper: NDArray[np.int32],
    edge: IdArray,
    sums: FloatArray,
) -> None:
    """χ² across the borders, four histograms at each scale."""
    width = inside.shape[1]
    normals = _normals(lower, upper, edge, len(sums), width)
    H = _cell_histograms(planes, codes, inside)
    side = CELL
    for number, (blur, step, reach) in enumerate(SCALES):
        if step > side:
            H, side = _halved(H), step
        H = _blurred(H, blur)
        first = 4 * number
        _jit.add_contrast(lower, upper, edge, normals, width, H, step, reach, FIRST, first, sums)


def _normals(
    lower: NDArray[np.int32], upper: NDArray[np.int32], edge: IdArray, n: int, width: int
) -> FloatArray:
    """The mean direction across each border: (edges, 2) as (y, x), zeros where it has none."""
    down = np.bincount(edge, weights=upper // width - lower // width, minlength=n)
    across = np.bincount(edge, weights=upper % width - lower % width, minlength=n)
    length, pixels = np.hypot(down, across), np.bincount(edge, minlength=n)
    is_straight = length > STRAIGHT * pixels
    return np.stack([down, across], axis=1) * (is_straight / np.maximum(length, 1.0))[:, None]


def _cell_histograms(planes: FloatArray, codes: NDArray[np.uint8], inside: BoolImage) -> FloatArray:
    """Histograms of CELL × CELL pixels: (rows, columns, bins)."""
    rows, columns = (-(-side // CELL) for side in inside.shape)
    y, x = (np.arange(side, dtype=np.int32) // CELL for side in inside.shape)
    cell = np.where(inside, y[:, None] * np.int32(columns) + x[None, :], np.int32(-1))
    H, sizes = np.zeros((rows * columns, FIRST[-1]), np.float32), np.zeros(rows * columns)
    _count(planes, codes, cell, H, sizes)
    H *= np.float32(1.0 / CELL**2)
    return H.reshape(rows, columns, -1)


def _blurred(H: FloatArray, sigma: float) -> FloatArray:
    steps = np.arange(-round(2.5 * sigma), round(2.5 * sigma) + 1)
    weights = np.exp(-0.5 * (steps / sigma) ** 2)
    shares = (weights / weights.sum()).astype(np.float32)
    down, out = np.empty_like(H), np.empty_like(H)
    _jit.blur_lines(H.reshape(len(H), -1), shares, down.reshape(len(H), -1))
    for line, blurred in zip(down, out, strict=True):
        _jit.blur_lines(line, shares, blurred)
    return out


def _halved(H: FloatArray) -> FloatArray:
    """Means of 2 × 2 cells; a last odd one is alone."""
    rows, columns, n_bins = H.shape
    even = np.pad(H, ((0, rows % 2), (0, columns % 2), (0, 0)), mode="edge")
    return even.reshape((rows + 1) // 2, 2, (columns + 1) // 2, 2, n_bins).mean(axis=(1, 3))
