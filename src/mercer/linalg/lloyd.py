"""Lloyd's sweeps by tiles: the same centres for any number of threads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer._run.lazy import LazyModule
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.rows.source import spans

_jit = LazyModule("mercer.linalg._jit")


@dataclass(frozen=True, slots=True)
class Partition:
    """Centres, and how well they fit."""

    centers: FloatArray  # (k, r) float64
    inertia: float  # Σ w‖f - c‖²
    n_iter: int
    is_converged: bool
    mean_norm: float = 0.0  # mean ‖f‖² of a row
    least_shift: float = 0.0  # a squared movement of the centres that counts as none
    n_full_sweeps: int = 0  # sweeps over all rows, where a sample chose the centres


def lloyd(
    F: FloatArray,
    weights: FloatArray,
    norms: FloatArray,
    centers: FloatArray,
    *,
    max_iter: int,
    least_shift: float,
    threads: int = 1,
) -> Partition:
    """Assign, average, repeat; rows that cannot have changed are not looked at again.

    A row keeps an upper bound of the distance to its centre and a lower bound of that to any
    other [hamerly2010]; as long as they do not meet, its label stands.
    """
    state = State.before(len(F), centers.shape)
    is_converged, n_iter, moves = False, 0, None
    while not is_converged and n_iter < max_iter:
        n_iter += 1
        n_changed = _sweep(F, weights, norms, centers, moves, state, threads)
        n_changed += _repair_empty(F, weights, state)
        filled = state.counts[:, None] > 0
        means = state.sums / np.maximum(state.counts, np.finfo(float).tiny)[:, None]
        moved = np.where(filled, means, centers)
        moves = np.linalg.norm(moved - centers, axis=1)
        centers = moved
        is_converged = float(moves @ moves) <= least_shift or n_changed == 0
    _sweep(F, weights, norms, centers, None, state, threads)
    inertia = float(weights @ state.upper**2)
    return Partition(centers, inertia, n_iter, is_converged)


@dataclass(frozen=True, slots=True)
class State:
    """Where a run of Lloyd's algorithm stands; the arrays change from sweep to sweep."""

    labels: IdArray  # (n,)
    upper: FloatArray  # (n,) at least the distance to the own centre
    lower: FloatArray  # (n,) at most the distance to any other
    sums: FloatArray  # (k, r) of the rows with each label
    counts: FloatArray  # (k,) their weights

    @classmethod
    def before(cls, n: int, shape: tuple[int, ...]) -> State:
        labels = np.full(n, -1, np.intp)
        return cls(labels, np.empty(n), np.empty(n), np.zeros(shape), np.zeros(shape[0]))


def scores_of_centers(centers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A, b such that f @ A + b = ‖f - c‖² - ‖f‖² for each centre c."""
    return -2.0 * centers.T, np.einsum("kr,kr->k", centers, centers)


def nearest_center(scores: FloatArray) -> tuple[IdArray, FloatArray]:
    """The label and score of the nearest centre, row by row."""
    labels, best = np.empty(len(scores), np.intp), np.empty(len(scores))
    _jit.nearest(scores, labels, best)
    return labels, best


def sums_by_label(
    G: FloatArray, labels: IdArray, weights: FloatArray, n_clusters: int
) -> tuple[FloatArray, FloatArray]:
    """Σ w·g and Σ w of the rows with each label."""
    sums, counts = np.zeros((n_clusters, G.shape[1])), np.zeros(n_clusters)
    _jit.move_rows(G, np.full(len(G), -1, np.intp), labels, weights, sums, counts)
    return sums, counts


def _sweep(
    F: FloatArray,
    weights: FloatArray,
    norms: FloatArray,
    centers: FloatArray,
    moves: FloatArray | None,
    state: State,
    threads: int,
) -> int:
    """Bring labels, bounds, sums and counts up to date; returns how many labels changed.

    `moves` tells how far each centre went since the bounds were made; None looks at every row.
    """
    A, b = scores_of_centers(centers)
    tile = partial(
        _assign_tile, F, weights, norms, state, A.astype(F.dtype), b.astype(F.dtype), moves
    )
    n_changed = 0
    for added_sums, added_counts, changed in in_order(tile, spans(len(F)), threads):
        state.sums[:] += added_sums
        state.counts[:] += added_counts
        n_changed += changed
    return n_changed


def _assign_tile(
    F: FloatArray,
    weights: FloatArray,
    norms: FloatArray,
    state: State,
    A: FloatArray,
    b: FloatArray,
    moves: FloatArray | None,
    span: tuple[int, int],
) -> tuple[FloatArray, FloatArray, int]:
    """New labels and bounds of one tile; returns what they change in sums and counts."""
    tile = slice(*span)
    rows, old = F[tile], state.labels[tile]
    upper, lower = state.upper[tile], state.lower[tile]
    doubtful: Any = slice(None)
    if moves is not None:
        upper += moves[old]
        lower -= moves.max()
        ids = np.flatnonzero(upper >= lower)
        doubtful = ids if len(ids) < 0.7 * len(rows) else doubtful
    rows = rows[doubtful]
    new = np.empty(len(rows), np.intp)
    best, second = np.empty(len(rows)), np.empty(len(rows))
    _jit.nearest_two(rows @ A + b, new, best, second)
    sums, counts = np.zeros((len(b), F.shape[1])), np.zeros(len(b))
    before = old[doubtful].copy()
    _jit.move_rows(rows, before, new, weights[tile][doubtful], sums, counts)
    old[doubtful] = new
    upper[doubtful] = np.sqrt(np.maximum(norms[tile][doubtful] + best, 0.0))
    lower[doubtful] = np.sqrt(np.maximum(norms[tile][doubtful] + second, 0.0))
    return sums, counts, int((before != new).sum())


def _repair_empty(F: FloatArray, weights: FloatArray, state: State) -> int:
    """Give each cluster that lost all rows the row that costs most where it is."""
    labels = state.labels
    sizes = np.bincount(labels, minlength=len(state.counts))
    empty = np.flatnonzero(sizes == 0)
    cost = weights * state.upper**2 if len(empty) else weights
    state.counts[empty], state.sums[empty] = 0.0, 0.0
    for cluster in empty:
        row = int(np.where(sizes[labels] > 1, cost, -1.0).argmax())
        one, old = slice(row, row + 1), labels[row : row + 1].copy()
        new = np.array([cluster])
        _jit.move_rows(F[one], old, new, weights[one], state.sums, state.counts)
        sizes[old[0]] -= 1
        sizes[cluster] += 1
        labels[row], cost[row] = cluster, 0.0
        state.upper[row], state.lower[row] = np.inf, 0.0  # look again
    return len(empty)
