"""Minimum-variance quantisation: few colours that represent all of an image."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray

_jit = LazyModule("mercer.image._jit")

LEVELS = 64  # of a channel, when colours are counted: finer steps are not visible


@frozen
class Box:
    """Some of the distinct colours, and where cutting them in two gains most."""

    colors: FloatArray  # (n, channels)
    weights: FloatArray  # (n,)
    gain: float  # by how much the best cut lowers Σ w‖x - mean‖²
    part: NDArray[np.bool_]  # (n,) the colours on one side of it

    @property
    def mean(self) -> FloatArray:
        return np.asarray(self.weights @ self.colors / self.weights.sum())


def minimum_variance_palette(P: FloatArray, n_colors: int) -> FloatArray:
    """The means of boxes, cut one after the other where the variance falls most [wu1991].

    P : (n, channels) colours between 0 and 255. Returns at most `n_colors` rows, darkest first.
    """
    boxes = [(0.0, 0, _box(*_distinct_colors(P)))]
    for number in range(1, n_colors):
        if boxes[0][2].gain <= 0:
            break
        _, _, widest = heapq.heappop(boxes)
        for side, part in enumerate((widest.part, ~widest.part)):
            box = _box(widest.colors[part], widest.weights[part])
            heapq.heappush(boxes, (-box.gain, 2 * number + side, box))
    palette = np.array([box.mean for _, _, box in boxes])
    order = np.lexsort((*palette.T, palette.sum(axis=1)))
    return palette[order]


def quantize(
    P: FloatArray, shape: tuple[int, int], palette: FloatArray, *, dither: bool
) -> NDArray[np.uint8]:
    """The number of the palette's nearest colour, pixel by pixel: (height, width).

    `dither` carries the rounding error on to the next pixels: areas keep their mean colour.
    """
    codes = np.empty(len(P), np.uint8)
    if dither:
        _jit.dither(P.astype(np.float64), shape[1], palette, codes)
    else:
        _jit.nearest_colors(P, palette, codes)
    return codes.reshape(shape)


def _distinct_colors(P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct colours, at 64 levels per channel, and the number of pixels of each."""
    levels = np.minimum(P * (LEVELS / 256.0), LEVELS - 1).astype(np.int64)
    if P.shape[1] <= 10:  # ten channels of 6 bits make one number
        keys = levels @ (LEVELS ** np.arange(P.shape[1]))
    else:
        keys = np.unique(levels, axis=0, return_inverse=True)[1].ravel()
    _, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
    sums = np.stack([np.bincount(codes, weights=column) for column in P.T], axis=1)
    return sums / counts[:, None], counts.astype(np.float64)


def _box(colors: FloatArray, weights: FloatArray) -> Box:
    """The best cut across one channel: it maximises (Σ w x)²/Σ w summed over the two sides."""
    best, part = 0.0, np.zeros(len(weights), bool)
    total, sums = weights.sum(), weights @ colors
    together = float(sums @ sums / total)
    for values in colors.T:
        order = np.argsort(values, kind="stable")
        left = np.cumsum(weights[order])[:-1]
        left_sums = np.cumsum(weights[order, None] * colors[order], axis=0)[:-1]
        right_sums = sums - left_sums
        gains = (left_sums**2).sum(1) / left + (right_sums**2).sum(1) / (total - left) - together
        gains[values[order][1:] == values[order][:-1]] = -np.inf
        at = int(gains.argmax()) if len(gains) else 0
        if len(gains) and gains[at] > max(best, 1e-9 * total):
            best = float(gains[at])
            part = np.zeros(len(weights), bool)
            part[order[: at + 1]] = True
    return Box(colors, weights, best, part)
