"""How well the boundaries of a segmentation agree with those people draw (Berkeley measure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.types import IdArray
from mercer.metrics.contingency import check_label_images

_jit = LazyModule("mercer.metrics._jit")

Matching = Literal["strict", "loose"]

TOLERANCE = 0.0075  # of the image's diagonal


@frozen
class BoundaryScore:
    """Agreement of two sets of boundary pixels.

    Parameters
    ----------
    precision : float
        The share of our boundary pixels that are right.
    recall : float
        The share of the drawn boundary pixels that are found.
    """

    precision: float
    recall: float

    @property
    def f(self) -> float:
        """The harmonic mean 2PR / (P + R)."""
        total = self.precision + self.recall
        return 2.0 * self.precision * self.recall / total if total > 0 else 0.0


def boundary_f(
    segments: ArrayLike,
    humans: Sequence[ArrayLike],
    *,
    matching: Matching = "strict",
    tolerance: float = TOLERANCE,
) -> float:
    """F of the boundaries of a label image against those of one or several people.

    Parameters
    ----------
    segments : array-like of shape (height, width)
        A label image.
    humans : sequence of array-like of shape (height, width)
        Label images drawn by people (a single one as ``[labels]``).
    matching : {"strict", "loose"}, default="strict"
        "strict" pairs each boundary pixel with one other at most, as many as possible (a maximum
        bipartite matching, as in the Berkeley benchmark); "loose" asks for any pixel within the
        tolerance, so that thick or doubled boundaries cost nothing.
    tolerance : float, default=0.0075
        How far apart matched pixels may be, as a share of the image's diagonal.

    Returns
    -------
    float
        The score; 1 is best.

    Examples
    --------
    >>> halves = np.repeat([[1, 1, 2, 2]], 4, axis=0)
    >>> boundary_f(halves, [halves])
    1.0
    """
    return boundary_score(segments, humans, matching=matching, tolerance=tolerance).f


def boundary_score(
    segments: ArrayLike,
    humans: Sequence[ArrayLike],
    *,
    matching: Matching = "strict",
    tolerance: float = TOLERANCE,
) -> BoundaryScore:
    """Precision and recall of boundary pixels [martin2004].

    A pixel of ours is right if any person's boundary has a match for it; recall counts the drawn
    pixels of all people. Where neither has a boundary they agree: precision and recall are 1.

    Parameters
    ----------
    segments : array-like of shape (height, width)
        A label image.
    humans : sequence of array-like of shape (height, width)
        Label images drawn by people (a single one as ``[labels]``).
    matching : {"strict", "loose"}, default="strict"
        "strict" pairs each boundary pixel with one other at most, as many as possible (a maximum
        bipartite matching, as in the Berkeley benchmark); "loose" asks for any pixel within the
        tolerance, so that thick or doubled boundaries cost nothing.
    tolerance : float, default=0.0075
        How far apart matched pixels may be, as a share of the image's diagonal.

    Returns
    -------
    score : BoundaryScore
        With `precision`, `recall` and their harmonic mean `f`.
    """
    ours = boundaries(segments)
    theirs = [boundaries(human) for human in check_label_images(humans, ours.shape)]
    if matching not in ("strict", "loose"):
        raise ValueError(f"matching={matching!r} is unknown; choose 'strict' or 'loose'")
    if not (np.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"tolerance={tolerance!r} must be a number of 0 or more")
    reach = tolerance * float(np.hypot(*ours.shape))
    match = _strict if matching == "strict" else _loose
    is_right = np.zeros(np.count_nonzero(ours), bool)
    n_found = n_drawn = 0
    for drawn in theirs:
        right, found = match(ours, drawn, reach)
        is_right |= right
        n_found += int(np.count_nonzero(found))
        n_drawn += len(found)
    precision = float(np.mean(is_right)) if len(is_right) else float(n_drawn == 0)
    recall = n_found / n_drawn if n_drawn else float(len(is_right) == 0)
    return BoundaryScore(precision, recall)


def boundaries(segments: ArrayLike) -> NDArray[np.bool_]:
    """Pixels whose label differs from that to the right, below, or both: lines one pixel wide.

    Parameters
    ----------
    segments : array-like of shape (height, width)
        A label image.

    Returns
    -------
    edges : array of bool of shape (height, width)
    """
    labels = np.asarray(segments)
    if labels.ndim != 2 or 0 in labels.shape:
        raise ValueError(f"segments has shape {labels.shape}; pass a label image (height, width)")
    edges = np.zeros(labels.shape, bool)
    edges[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    edges[:-1, :] |= labels[:-1, :] != labels[1:, :]
    edges[:-1, :-1] |= labels[:-1, :-1] != labels[1:, 1:]
    return edges


def _loose(
    ours: NDArray[np.bool_], theirs: NDArray[np.bool_], reach: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which boundary pixels of each have one of the other within reach."""
    from scipy.ndimage import distance_transform_edt

    def near(mine: NDArray[np.bool_], other: NDArray[np.bool_]) -> NDArray[np.bool_]:
        far = np.full(mine.shape, np.inf)
        return np.asarray((distance_transform_edt(~other) if other.any() else far)[mine] <= reach)

    return near(ours, theirs), near(theirs, ours)


def _strict(
    ours: NDArray[np.bool_], theirs: NDArray[np.bool_], reach: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which boundary pixels of each are matched, one with one."""
    rows, columns = _pairs_within(ours, theirs, reach)
    left = np.empty(np.count_nonzero(ours), np.intp)
    right = np.empty(np.count_nonzero(theirs), np.intp)
    order = np.argsort(rows, kind="stable")  # nearest first, pixel by pixel
    first = np.searchsorted(rows[order], np.arange(len(left) + 1))
    _jit.match(first, columns[order], left, right)
    return left >= 0, right >= 0


def _pairs_within(
    ours: NDArray[np.bool_], theirs: NDArray[np.bool_], reach: float
) -> tuple[IdArray, IdArray]:
    """All pairs of boundary pixels at most `reach` apart, nearest first, by their numbers."""
    height, width = ours.shape
    number = np.full(theirs.shape, -1, np.intp)
    number[theirs] = np.arange(np.count_nonzero(theirs))
    y, x = np.nonzero(ours)
    half = int(reach)
    steps = [
        (dy * dy + dx * dx, dy, dx)
        for dy in range(-half, half + 1)
        for dx in range(-half, half + 1)
        if dy * dy + dx * dx <= reach * reach
    ]
    rows, columns = [], []
    for _, dy, dx in sorted(steps):
        there_y, there_x = y + dy, x + dx
        ids = np.flatnonzero(
            (there_y >= 0) & (there_y < height) & (there_x >= 0) & (there_x < width)
        )
        hit = number[there_y[ids], there_x[ids]]
        rows.append(ids[hit >= 0])
        columns.append(hit[hit >= 0])
    return np.concatenate(rows), np.concatenate(columns)
