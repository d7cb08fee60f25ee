"""Pixels gathered into blocks, each with one representative [zhang2006, section 4.2]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.budget import Budget
from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Allowance, Record, stored, unstored
from mercer._run.threads import in_order
from mercer._run.types import FloatArray
from mercer.factors.quantized import Quantization, sequential_sample

_jit = LazyModule("mercer.image._jit")

BLOCK_MATRICES = 5  # representatives × representatives, held at once by distances and eigenvectors
TILE_PIXELS = 2**18  # of a tile, in whole lines: threads share tiles, sums are added by tile
ROUNDING = 1e-9  # by which distances between centres may be wrong

Owners = NDArray[np.int32]


@frozen
class Centers(Record):
    """Points of feature space; a pixel belongs to the nearest."""

    points: FloatArray = stored("(m, d) float64, finite")
    # (m, m) of each centre: all centres by distance, itself first; loops follow them unchecked, so
    # that model files do not hold them
    order: Any = unstored()
    apart: Any = unstored()  # (m, m) a quarter of those distances squared

    def sizes(self) -> dict[str, int]:
        """m: centres; d: features."""
        return dict(zip("md", self.points.shape, strict=True))

    def rebuild(self, allowance: Allowance) -> Centers:
        m = len(self.points)
        allowance.hold(12 * m * m)
        allowance.borrow(40 * m * m)
        return Centers.of(self.points)

    @classmethod
    def of(cls, points: FloatArray) -> Centers:
        norms = np.einsum("md,md->m", points, points)
        squares = norms[:, None] + norms - 2.0 * (points @ points.T)
        quarter = (squares - ROUNDING * (1.0 + norms[:, None] + norms)) / 4.0  # never too far
        np.fill_diagonal(quarter, -np.inf)
        order = np.argsort(quarter, axis=1)
        apart = np.take_along_axis(quarter, order, axis=1)
        return cls(points, order.astype(np.int32), apart)

    def owners(self, F: FloatArray, inside: NDArray[np.bool_], width: int, threads: int) -> Owners:
        """The number of the nearest centre, pixel by pixel; -1 outside."""
        owner = np.empty(len(F), np.int32)

        def assign(tile: slice) -> None:
            args = (self.points, self.order, self.apart, owner[tile])
            _jit.nearest_centers(F[tile], inside[tile], width, *args)

        for _ in in_order(assign, pixel_tiles(len(F), width), threads):
            pass
        return owner


@frozen
class PixelBlocks:
    """Blocks of pixels: the centres that define them, what they hold, the block of each pixel."""

    centers: Centers
    quantization: Quantization
    owner: Owners  # (n,)


def find_blocks(
    F: FloatArray,
    inside: NDArray[np.bool_],
    width: int,
    radius: float,
    *,
    budget: Budget,
    threads: int = 1,
) -> PixelBlocks:
    """1. Sequential sampling; 2. means; 3. each pixel to the nearest mean; 4. what blocks hold.

    Step 1 tries the representatives of the left and the upper neighbour first: the result is the
    same, at two distances per pixel instead of hundreds. One reassignment is the cheapest way to
    a better embedding, and makes a pixel's block a function of the pixel alone.
    """
    ids, first_owner = sequential_sample(F, radius, width=width, mask=inside)
    m = len(ids)
    budget.demand(
        BLOCK_MATRICES * 8 * m * m + F.nbytes,
        what=f"the {m:,} representatives that radius={radius:g} makes",
        advice="raise max_memory, or radius",
    )
    means = _contents(F, first_owner, m, width, threads).representatives
    del first_owner
    centers = Centers.of(means)
    owner = centers.owners(F, inside, width, threads)
    held = _contents(F, owner, m, width, threads)
    kept = held.weights > 0
    if not kept.all():
        owner = np.where(owner >= 0, np.cumsum(kept)[owner] - 1, -1).astype(np.int32)
        centers = Centers.of(means[kept])
        held = Quantization(held.representatives[kept], held.weights[kept], held.variances[kept])
    return PixelBlocks(centers, held, owner)


def pixel_tiles(n_pixels: int, width: int) -> list[slice]:
    """Whole lines of an image, about TILE_PIXELS at a time."""
    step = width * max(TILE_PIXELS // width, 1)
    return [slice(start, min(start + step, n_pixels)) for start in range(0, n_pixels, step)]


def _contents(F: FloatArray, owner: NDArray[Any], m: int, width: int, threads: int) -> Quantization:
    """Mean, number and variance of the pixels of each block; summed tile by tile, in order."""

    def zeros() -> tuple[FloatArray, FloatArray, FloatArray]:
        return np.zeros((m, F.shape[1])), np.zeros((m, F.shape[1])), np.zeros(m)

    def add(tile: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        totals = zeros()
        _jit.add_pixels(F[tile], owner[tile], *totals)
        return totals

    sums, squares, counts = totals = zeros()
    for of_tile in in_order(add, pixel_tiles(len(F), width), threads):
        for total, added in zip(totals, of_tile, strict=True):
            total += added
    held = np.maximum(counts, 1.0)[:, None]
    means = sums / held
    return Quantization(means, counts, np.maximum(squares / held - means**2, 0.0))
