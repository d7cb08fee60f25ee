"""Rows gathered into small blocks, each with one representative (paper 002, section 4.2).

Three ways to find blocks of a given radius: `sequential_sample` (the paper's), the hierarchical
one, and `voxel_sample`, whose blocks do not depend on the order of rows and can be merged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._lazy import LazyModule
from mercer._types import FloatArray, IdArray

__all__ = [
    "MOST_BLOCKS",
    "Quantization",
    "TooManyBlocksError",
    "Voxels",
    "hierarchical_sample",
    "quantize",
    "sequential_sample",
    "voxel_sample",
]

_jit = LazyModule("mercer.factors._quantized_jit")

MOST_BLOCKS = 4096  # the eigenproblem costs their cube
GROWTHS = 64


class TooManyBlocksError(ValueError):
    """The radius is so small that almost every row would represent itself."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """Blocks of rows: what each stands for, how much it weighs, how wide it is."""

    representatives: FloatArray  # (m, d) float64: the mean t_i of the rows of a block
    weights: FloatArray  # (m,) n_i, the sum of their weights
    variances: FloatArray  # (m, d) the mean of (x - t_i)², column by column

    def __len__(self) -> int:
        return len(self.weights)


def sequential_sample(
    X: FloatArray,
    radius: float,
    *,
    width: int = 0,
    mask: NDArray[np.bool_] | None = None,
    limit: int = MOST_BLOCKS,
    unit: float = 1.0,
) -> tuple[IdArray, IdArray]:
    """Numbers of the representing rows, and for each row the first of them within the radius.

    One pass in the order of the rows: a row that no representative is within `radius` of becomes
    one. Distances are Euclidean, in float64. O(n·m·d) at most, much less where blocks are far
    apart.

    width : rows are the pixels of an image of this width, row by row: the representatives of the
        left and the upper neighbour are tried first. The representatives are the same; a pixel
        within reach of several goes with its neighbour instead of the first.
    mask : rows that take part; others get the label -1.
    limit : more representatives than this raise `TooManyBlocksError` with an estimate.
    unit : of the rows; the radius is not in it.
    """
    X = np.ascontiguousarray(X)
    n, d = X.shape
    limit = min(limit, n)
    lanes = np.empty((-(-limit // 8), d, 8))
    ids, labels = np.empty(limit, np.intp), np.empty(n, np.intp)
    growth = np.zeros(GROWTHS, np.intp)
    is_used = np.empty(0, np.bool_) if mask is None else np.ascontiguousarray(mask, np.bool_)
    args = (X, float(radius / unit) ** 2, width, is_used, lanes, ids, labels, growth)
    n_found, n_seen = _jit.sequential(*args)
    _demand_all_seen(n, n_seen, n_found, growth, radius)
    return ids[:n_found].copy(), labels


def hierarchical_sample(
    X: FloatArray, radius: float, *, ratio: float = 2.0, limit: int = MOST_BLOCKS
) -> tuple[IdArray, IdArray]:
    """The same level by level, with radii radius·ratioᵏ: O(n·log m·d), about twice as many."""
    X = np.ascontiguousarray(X)
    n = len(X)
    extent = float(np.linalg.norm(np.ptp(X, axis=0).astype(np.float64)))
    n_levels = max(int(np.ceil(np.log(max(extent, radius) / radius) / np.log(ratio))), 1)
    radii = radius * ratio ** np.arange(n_levels)[::-1]
    limit = min(limit, n)
    n_nodes = 1 + n_levels * limit
    child, sibling, last, row_of, leaf_of = np.full((5, n_nodes), -1, np.intp)
    ids, labels = np.empty(limit, np.intp), np.empty(n, np.intp)
    growth = np.zeros(GROWTHS, np.intp)
    tree = (child, sibling, last, row_of, leaf_of)
    n_found, n_seen = _jit.hierarchical(X, radii**2, limit, *tree, ids, labels, growth)
    _demand_all_seen(n, n_seen, n_found, growth, radius)
    return ids[:n_found].copy(), labels


def quantize(
    X: FloatArray, labels: IdArray, m: int, weights: FloatArray | None = None
) -> Quantization:
    """Means, weights and variances of the m blocks that the labels make (label -1: no block).

    A block without rows gets the weight 0.
    """
    X = np.ascontiguousarray(X)
    w = np.empty(0) if weights is None else np.ascontiguousarray(weights, np.float64)
    sums, counts = np.zeros((m, X.shape[1])), np.zeros(m)
    _jit.add_block_sums(X, labels, w, sums, counts)
    held = np.where(counts > 0, counts, 1.0)[:, None]
    means, squares = sums / held, np.zeros_like(sums)
    _jit.add_block_squares(X, labels, w, means, squares)
    return Quantization(means, counts, squares / held)


@dataclass(frozen=True, slots=True)
class Voxels:
    """Cells of a grid that hold rows, with sums that add up over parts of the data."""

    side: float
    cells: NDArray[np.int64]  # (m, d) whole-number corners, in lexicographic order
    weights: FloatArray  # (m,)
    sums: FloatArray  # (m, d) Σ w (x - corner)
    squares: FloatArray  # (m, d) Σ w (x - corner)²

    def __len__(self) -> int:
        return len(self.weights)

    def merged(self, other: Voxels) -> Voxels:
        """The voxels of both parts together."""
        if self.side != other.side or self.cells.shape[1] != other.cells.shape[1]:
            raise ValueError("only voxels of one grid can be merged")
        both = np.concatenate([self.cells, other.cells])
        cells, place = np.unique(both, axis=0, return_inverse=True)
        summed = []
        for name in ("weights", "sums", "squares"):
            mine, others = getattr(self, name), getattr(other, name)
            total = np.zeros((len(cells), *mine.shape[1:]))
            total[place.ravel()[: len(self)]] = mine
            np.add.at(total, place.ravel()[len(self) :], others)
            summed.append(total)
        return Voxels(self.side, cells, *summed)

    def quantization(self) -> Quantization:
        """The rows of each cell by their mean, weight and variance."""
        held = self.weights[:, None]
        offset = self.sums / held
        variances = np.maximum(self.squares / held - offset**2, 0.0)
        return Quantization(self.cells * self.side + offset, self.weights, variances)

    def labels(self, X: FloatArray) -> IdArray:
        """The number of each row's cell, -1 where no row was before."""
        table = np.full(_table_size(len(self)), -1, np.intp)
        _jit.fill_table(self.cells, table)
        labels = np.empty(len(X), np.intp)
        _jit.voxel_labels(np.ascontiguousarray(X), self.side, table, self.cells, labels)
        return labels


def voxel_sample(
    X: FloatArray,
    radius: float,
    *,
    weights: FloatArray | None = None,
    limit: int = 2**20,
) -> Voxels:
    """Blocks by the cells of a fixed grid: one pass, for any order of rows, and mergeable.

    Cells are cubes with the half diagonal `radius`, so rows are as near to the middle of their
    cell as they are to their representative in `sequential_sample`; there are about three times
    as many. For few columns (up to about 8): their number grows exponentially.
    """
    X = np.ascontiguousarray(X)
    n, d = X.shape
    side = 2.0 * float(radius) / np.sqrt(d)
    w = np.empty(0) if weights is None else np.ascontiguousarray(weights, np.float64)
    labels, room = np.empty(n, np.intp), min(max(n, 1), 4096, limit)
    while True:
        cells = np.empty((room, d), np.int64)
        counts, sums, squares = np.zeros(room), np.zeros((room, d)), np.zeros((room, d))
        table = np.full(_table_size(room), -1, np.intp)
        m = _jit.voxels(X, w, side, table, cells, counts, sums, squares, labels)
        if m >= 0:
            break
        if room >= limit:
            raise TooManyBlocksError(
                f"radius={radius:g} puts {n:,} rows into more than {limit:,} cells; raise radius"
            )
        room = min(8 * room, limit, n)
    found = Voxels(side, cells[:m], counts[:m], sums[:m], squares[:m])
    order = np.lexsort(found.cells.T[::-1])
    arrays = {name: getattr(found, name)[order] for name in ("cells", "weights", "sums", "squares")}
    return replace(found, **arrays)


def _table_size(n_cells: int) -> int:
    return 1 << (2 * max(n_cells, 1)).bit_length()


def _demand_all_seen(n: int, n_seen: int, n_found: int, growth: Any, radius: float) -> None:
    """Refuse a radius that makes more blocks than wanted, and say how many there would be.

    The number of representatives grows like a power of the number of rows: told by the last
    doubling that was seen.
    """
    if n_seen == n:
        return
    doublings = max(n_seen.bit_length() - 2, 0)
    half, seen = max(int(growth[doublings]), 1), 1 << doublings
    power = np.log(max(n_found / half, 1.0)) / np.log(max(n_seen / seen, 2.0))
    estimate = min(n_found * (n / n_seen) ** min(power, 1.0), n)
    raise TooManyBlocksError(
        f"radius={radius:g} makes more than {n_found:,} representatives, by estimate "
        f"{float(f'{estimate:.2g}'):,.0f} for {n:,} rows; raise radius, or allow more"
    )
