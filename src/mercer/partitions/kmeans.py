"""Weighted k-means by tiles: greedy k-means++, Lloyd's sweeps, repair of empty clusters.

A sweep is (per tile, combine in tile order, finish): the same centres for any number of threads.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.linalg.lloyd import Partition, State, _sweep, lloyd
from mercer.rows.source import spans

_jit = LazyModule("mercer.linalg._jit")

INIT_ROWS = 10_000  # of more than twice as many rows (or 20 per cluster), a sample starts
INIT_RUNS = 3  # short runs that a start is the best of; fewer where n_init brings its own
INIT_SWEEPS = 10
MOVE_DRAWS = 8  # rows that a centre may move to
FAILED_MOVES = 3  # in a row, after which the start is good enough (5: twice the time, same ARI)
LEAST_GAIN = 1e-3  # of the inertia, that makes a move worth another


def kmeans(
    F: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    threads: int = 1,
) -> Partition:
    """The best of `n_init` runs of Lloyd's algorithm on the rows of F.

    Stops when no label changes, or when the centres move by less than `tol` times the mean
    variance of a column.
    """
    norms = np.empty(len(F))
    _jit.row_norms(F, norms)
    least_shift = tol * _mean_variance(F, weights, norms)
    start_runs = max(1, INIT_RUNS // n_init)
    runs = []
    for _ in range(n_init):
        start = starting_centers(
            F, weights, norms, n_clusters, n_runs=start_runs, least_shift=least_shift, rng=rng
        )
        runs.append(
            lloyd(
                F,
                weights,
                norms,
                start,
                max_iter=max_iter,
                least_shift=least_shift,
                threads=threads,
            )
        )
    best = min(runs, key=lambda run: run.inertia)
    mean_norm = float(weights @ norms / weights.sum())
    return replace(best, mean_norm=mean_norm, least_shift=least_shift)


def starting_centers(
    F: FloatArray,
    weights: FloatArray,
    norms: FloatArray,
    n_clusters: int,
    *,
    n_runs: int,
    least_shift: float,
    rng: np.random.Generator,
) -> FloatArray:
    """The best of a few short runs from k-means++, improved; for many rows, on some of them.

    A sweep over a sample costs a fraction of one over all rows, and leaves few of those to make.
    """
    size = max(INIT_ROWS, 20 * n_clusters)
    if len(F) <= 2 * size:
        return _best_of_short_runs(F, weights, norms, n_clusters, n_runs, least_shift, rng)
    ids = np.sort(rng.choice(len(F), size, replace=False))
    some, w, n = F[ids], weights[ids], norms[ids]
    best = _best_of_short_runs(some, w, n, n_clusters, INIT_RUNS, least_shift, rng)
    return lloyd(some, w, n, best, max_iter=5 * INIT_SWEEPS, least_shift=least_shift).centers


def _best_of_short_runs(
    F: FloatArray,
    weights: FloatArray,
    norms: FloatArray,
    n_clusters: int,
    n_runs: int,
    least_shift: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Centres after a few sweeps from the most promising of so many starts, some moved again."""
    starts = [kmeans_plus_plus(F, weights, norms, n_clusters, rng=rng) for _ in range(n_runs)]
    if n_runs == 1 or n_clusters == 1:
        return starts[0]
    short = partial(lloyd, F, weights, norms, max_iter=INIT_SWEEPS, least_shift=least_shift)
    best = min((short(start) for start in starts), key=lambda run: run.inertia)
    failed = 0
    while failed < FAILED_MOVES:
        moved = short(_with_moved_center(F, weights, norms, best.centers, rng))
        is_better = moved.inertia < (1.0 - LEAST_GAIN) * best.inertia
        best, failed = (moved, 0) if is_better else (best, failed + 1)
    return best.centers


def _with_moved_center(
    F: FloatArray,
    weights: FloatArray,
    norms: FloatArray,
    centers: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """One centre put on a row drawn like those of k-means++, the pair that costs least.

    A step of local search [lattanzi2019]: where a start gave two centres to one cluster and one to
    two, sweeps alone never mend it.
    """
    state, k = State.before(len(F), centers.shape), len(centers)
    _sweep(F, weights, norms, centers, None, state, 1)
    nearest, second = state.upper**2, state.lower**2
    draws = _draw(weights * nearest, rng.random(MOVE_DRAWS))
    costs = np.empty((MOVE_DRAWS, k))  # with centre c on draw m
    for m, to_draw in enumerate(_squared_distances(F, norms, draws).T):
        kept = np.minimum(nearest, to_draw)
        lost = weights * (np.minimum(second, to_draw) - kept)
        costs[m] = weights @ kept + np.bincount(state.labels, lost, k)
    m, c = divmod(int(costs.argmin()), k)
    moved = centers.copy()
    moved[c] = F[draws[m]]
    return moved


def kmeans_plus_plus(
    F: FloatArray,
    weights: FloatArray,
    norms: FloatArray,
    n_clusters: int,
    *,
    rng: np.random.Generator,
) -> FloatArray:
    """Starting centres: rows drawn with probability ∝ weight × squared distance to those before.

    Of 2 + log k draws the one that lowers the cost most is taken, as in scikit-learn.
    """
    n_draws = 2 + int(np.log(n_clusters))
    chosen = np.empty(n_clusters, np.intp)
    chosen[0] = _draw(weights, rng.random(1))[0]
    nearest = _squared_distances(F, norms, chosen[:1])[:, 0]
    for c in range(1, n_clusters):
        draws = _draw(weights * nearest, rng.random(n_draws))
        closer = np.minimum(_squared_distances(F, norms, draws), nearest[:, None])
        best = int((weights @ closer).argmin())
        chosen[c], nearest = draws[best], closer[:, best]
    return F[chosen].astype(np.float64)


def _mean_variance(F: FloatArray, weights: FloatArray, norms: FloatArray) -> float:
    total, sums = weights.sum(), np.zeros(F.shape[1])
    for start, stop in spans(len(F)):  # a product of weights in float64 would cast all of F
        sums += weights[start:stop] @ F[start:stop]
    mean = sums / total
    return float(max(weights @ norms / total - mean @ mean, 0.0)) / F.shape[1]


def _draw(mass: FloatArray, uniforms: FloatArray) -> IdArray:
    """Rows drawn in proportion to their mass (uniformly if there is none)."""
    total = np.cumsum(mass)
    if total[-1] <= 0:
        total = np.arange(1.0, len(mass) + 1)
    drawn = np.searchsorted(total, uniforms * total[-1], side="right")
    return np.minimum(drawn, len(mass) - 1)


def _squared_distances(F: FloatArray, norms: FloatArray, rows: IdArray) -> FloatArray:
    products = (F @ F[rows].T).astype(np.float64)
    distances = np.maximum(norms[:, None] + norms[rows] - 2.0 * products, 0.0)
    distances[rows, np.arange(len(rows))] = 0.0
    return distances
