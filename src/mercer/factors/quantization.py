"""Rows gathered into small blocks, each with one representative (paper 002, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray

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
