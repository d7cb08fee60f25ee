"""Lloyd's algorithm, once: assign rows to their nearest centre, average, repeat.

`lloyd` does not know where rows are. A *sweep* does: rows in memory (`WeightedRows`, by tiles, so
that centres are the same for any number of threads), rows of a file, or directions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.lazy import FEW_VALUES, LazyModule
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.rows.source import spans

_jit = LazyModule("mercer.linalg._jit")

TINY = np.finfo(float).tiny


@frozen
class Partition:
    """Centres, and how well they fit."""

    centers: FloatArray  # (k, r) float64
    inertia: float  # Σ w‖f - c‖²
    n_iter: int
    is_converged: bool
    mean_norm: float = 0.0  # mean ‖f‖² of a row
    least_shift: float = 0.0  # a squared movement of the centres that counts as none
    n_full_sweeps: int = 0  # sweeps over all rows, after a sample chose the centres


@frozen
class Sums:
    """What one sweep over the rows finds."""

    sums: FloatArray  # (k, r) Σ w·f of the rows nearest to each centre
    counts: FloatArray  # (k,) Σ w
    n_changed: int | None = None  # labels that changed, where they are kept
    inertia: float = np.nan  # of the centres that were given, where it is computed


SweepFunction: TypeAlias = Callable[[FloatArray, FloatArray | None], Sums]


def lloyd(
    sweep: SweepFunction, centers: FloatArray, *, max_iter: int, least_shift: float = 0.0
) -> Partition:
    """Assign, average, repeat until no label changes or centres move by `least_shift` in all.

    `sweep(centers, moves)` assigns the rows; `moves` are the distances that the centres moved since
    the sweep before, None at first. A centre without rows stays.
    """
    n_iter, is_converged, inertia, moves = 0, False, np.nan, None
    while not is_converged and n_iter < max_iter:
        n_iter += 1
        found = sweep(centers, moves)
        means = found.sums / np.maximum(found.counts, TINY)[:, None]
        moved = np.where(found.counts[:, None] > 0, means, centers)
        moves = np.linalg.norm(moved - centers, axis=1)
        centers, inertia = moved, found.inertia
        is_converged = float(moves @ moves) <= least_shift or found.n_changed == 0
    return Partition(centers, inertia, n_iter, is_converged)


@frozen
class WeightedRows:
    """Rows in memory with their weights and squared lengths: what k-means clusters."""

    F: FloatArray  # (n, r)
    weights: FloatArray  # (n,)
    norms: FloatArray  # (n,) ‖f‖²
    threads: int = 1

    @classmethod
    def of(cls, F: FloatArray, weights: FloatArray, threads: int = 1) -> WeightedRows:
        norms = np.empty(len(F))
        _jit.row_norms(F, norms)
        return cls(F, weights, norms, threads)

    def __len__(self) -> int:
        return len(self.F)

    def take(self, ids: IdArray) -> WeightedRows:
        return WeightedRows(self.F[ids], self.weights[ids], self.norms[ids], self.threads)

    def lloyd(self, centers: FloatArray, *, max_iter: int, least_shift: float = 0.0) -> Partition:
        """Lloyd's algorithm from these centres; a cluster that loses all rows gets a new one."""
        sweep = BoundedSweep.of(self, centers.shape)
        found = lloyd(sweep, centers, max_iter=max_iter, least_shift=least_shift)
        sweep.assign(found.centers)
        inertia = float(self.weights @ sweep.upper**2)
        return Partition(found.centers, inertia, found.n_iter, found.is_converged)


@frozen
class BoundedSweep:
    """Sweeps over rows in memory that skip rows whose label cannot have changed.

    A row keeps an upper bound of the distance to its centre and a lower bound of that to any
    other [hamerly2010]; as long as they do not meet, its label stands. All arrays are updated in
    place by each sweep.
    """

    rows: WeightedRows
    labels: IdArray  # (n,)
    upper: FloatArray  # (n,) at least the distance to the own centre
    lower: FloatArray  # (n,) at most the distance to any other
    sums: FloatArray  # (k, r) of the rows with each label
    counts: FloatArray  # (k,) their weights

    @classmethod
    def of(cls, rows: WeightedRows, shape: tuple[int, ...]) -> BoundedSweep:
        n = len(rows)
        labels = np.full(n, -1, np.intp)
        return cls(rows, labels, np.empty(n), np.empty(n), np.zeros(shape), np.zeros(shape[0]))

    def __call__(self, centers: FloatArray, moves: FloatArray | None) -> Sums:
        n_changed = self.assign(centers, moves)
        return Sums(self.sums, self.counts, n_changed + self._repair_empty())

    def assign(self, centers: FloatArray, moves: FloatArray | None = None) -> int:
        """Update labels, bounds, sums and counts; returns how many labels changed.

        `moves`: how far each centre moved since the bounds were made; None looks at every row.
        """
        A, b = (part.astype(self.rows.F.dtype) for part in scores_of_centers(centers))
        tile, n_changed = partial(self._assign_tile, A, b, moves), 0
        for sums, counts, changed in in_order(tile, spans(len(self.rows)), self.rows.threads):
            self.sums[:] += sums
            self.counts[:] += counts
            n_changed += changed
        return n_changed

    def _assign_tile(
        self, A: FloatArray, b: FloatArray, moves: FloatArray | None, span: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray, int]:
        """New labels and bounds of one tile; returns what they change in sums and counts."""
        tile = slice(*span)
        F, old, norms = self.rows.F[tile], self.labels[tile], self.rows.norms[tile]
        upper, lower = self.upper[tile], self.lower[tile]
        doubtful: Any = slice(None)
        if moves is not None:
            upper += moves[old]
            lower -= moves.max()
            ids = np.flatnonzero(upper >= lower)
            doubtful = ids if len(ids) < 0.7 * len(F) else doubtful
        F = F[doubtful]
        new, best, second = nearest_two_centers(F @ A + b)
        sums, counts = np.zeros((len(b), F.shape[1])), np.zeros(len(b))
        before = old[doubtful].copy()
        _jit.move_rows(F, before, new, self.rows.weights[tile][doubtful], sums, counts)
        old[doubtful] = new
        upper[doubtful] = np.sqrt(np.maximum(norms[doubtful] + best, 0.0))
        lower[doubtful] = np.sqrt(np.maximum(norms[doubtful] + second, 0.0))
        return sums, counts, int((before != new).sum())

    def _repair_empty(self) -> int:
        """Give each cluster that lost all rows the row that costs most where it is."""
        labels, weights = self.labels, self.rows.weights
        sizes = np.bincount(labels, minlength=len(self.counts))
        empty = np.flatnonzero(sizes == 0)
        cost = weights * self.upper**2 if len(empty) else weights
        self.counts[empty], self.sums[empty] = 0.0, 0.0
        for cluster in empty:
            row = int(np.where(sizes[labels] > 1, cost, -1.0).argmax())
            one, old = slice(row, row + 1), labels[row : row + 1].copy()
            new = np.array([cluster])
            _jit.move_rows(self.rows.F[one], old, new, weights[one], self.sums, self.counts)
            sizes[old[0]] -= 1
            sizes[cluster] += 1
            labels[row], cost[row] = cluster, 0.0
            self.upper[row], self.lower[row] = np.inf, 0.0  # look again
        return len(empty)


def scores_of_centers(centers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A, b such that f @ A + b = ‖f - c‖² - ‖f‖² for each centre c."""
    return -2.0 * centers.T, np.einsum("kr,kr->k", centers, centers)


def nearest_center(scores: FloatArray) -> tuple[IdArray, FloatArray]:
    """The label and score of the nearest centre, row by row."""
    if scores.size <= FEW_VALUES:
        labels = scores.argmin(axis=1)
        return labels, _entries(scores, labels)
    labels, best = np.empty(len(scores), np.intp), np.empty(len(scores))
    _jit.nearest(scores, labels, best)
    return labels, best


def nearest_two_centers(scores: FloatArray) -> tuple[IdArray, FloatArray, FloatArray]:
    """`nearest_center`, and the score of the runner-up (inf where there is none)."""
    if scores.size <= FEW_VALUES:
        labels = scores.argmin(axis=1)
        others = scores.astype(np.float64)
        others[np.arange(len(scores)), labels] = np.inf
        return labels, _entries(scores, labels), others.min(axis=1)
    n = len(scores)
    labels, best, second = np.empty(n, np.intp), np.empty(n), np.empty(n)
    _jit.nearest_two(scores, labels, best, second)
    return labels, best, second


def _entries(scores: FloatArray, labels: IdArray) -> FloatArray:
    return scores[np.arange(len(scores)), labels].astype(np.float64)


def sums_by_label(
    G: FloatArray, labels: IdArray, weights: FloatArray, n_clusters: int
) -> tuple[FloatArray, FloatArray]:
    """Σ w·g and Σ w of the rows with each label."""
    sums, counts = np.zeros((n_clusters, G.shape[1])), np.zeros(n_clusters)
    _jit.move_rows(G, np.full(len(G), -1, np.intp), labels, weights, sums, counts)
    return sums, counts
