"""Weighted k-means by tiles: greedy k-means++, Lloyd's sweeps, repair of empty clusters.

A sweep is (per tile, combine in tile order, finish): the same centres for any number of threads.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mercer._run.types import FloatArray, IdArray
from mercer.linalg.lloyd import BoundedSweep, Partition, WeightedRows
from mercer.rows.source import spans

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
    rows = WeightedRows.of(F, weights)
    least_shift = tol * _mean_variance(rows)
    start_runs = max(1, INIT_RUNS // n_init)
    run = partial(replace(rows, threads=threads).lloyd, max_iter=max_iter, least_shift=least_shift)
    runs = [
        run(starting_centers(rows, n_clusters, n_runs=start_runs, least_shift=least_shift, rng=rng))
        for _ in range(n_init)
    ]
    best = min(runs, key=lambda run: run.inertia)
    mean_norm = float(weights @ rows.norms / weights.sum())
    return replace(best, mean_norm=mean_norm, least_shift=least_shift)


def starting_centers(
    rows: WeightedRows,
    n_clusters: int,
    *,
    n_runs: int,
    least_shift: float,
    rng: np.random.Generator,
) -> FloatArray:
    """The best of a few short runs from k-means++, improved; for many rows, on some of them.

    A sweep over a sample costs a fraction of one over all rows, and saves most of those.
    """
    size = max(INIT_ROWS, 20 * n_clusters)
    if len(rows) <= 2 * size:
        return _best_of_short_runs(rows, n_clusters, n_runs, least_shift, rng)
    some = rows.take(np.sort(rng.choice(len(rows), size, replace=False)))
    best = _best_of_short_runs(some, n_clusters, INIT_RUNS, least_shift, rng)
    return some.lloyd(best, max_iter=5 * INIT_SWEEPS, least_shift=least_shift).centers


def _best_of_short_runs(
    rows: WeightedRows,
    n_clusters: int,
    n_runs: int,
    least_shift: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Centres after a few sweeps from the most promising of so many starts, some moved again."""
    starts = [kmeans_plus_plus(rows, n_clusters, rng=rng) for _ in range(n_runs)]
    if n_runs == 1 or n_clusters == 1:
        return starts[0]
    short = partial(rows.lloyd, max_iter=INIT_SWEEPS, least_shift=least_shift)
    best = min((short(start) for start in starts), key=lambda run: run.inertia)
    failed = 0
    while failed < FAILED_MOVES:
        moved = short(_move_one_center(rows, best.centers, rng))
        is_better = moved.inertia < (1.0 - LEAST_GAIN) * best.inertia
        best, failed = (moved, 0) if is_better else (best, failed + 1)
    return best.centers


def _move_one_center(
    rows: WeightedRows, centers: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """One centre put on a row drawn like those of k-means++, the pair that costs least.

    A step of local search [lattanzi2019]: where a start gave two centres to one cluster and one to
    two, sweeps alone never mend it.
    """
    sweep, weights, k = BoundedSweep.of(rows, centers.shape), rows.weights, len(centers)
    sweep.assign(centers)
    nearest, second = sweep.upper**2, sweep.lower**2
    draws = _draw(weights * nearest, rng.random(MOVE_DRAWS))
    costs = np.empty((MOVE_DRAWS, k))  # with centre c on draw m
    for m, to_draw in enumerate(_squared_distances(rows, draws).T):
        kept = np.minimum(nearest, to_draw)
        lost = weights * (np.minimum(second, to_draw) - kept)
        costs[m] = weights @ kept + np.bincount(sweep.labels, lost, k)
    m, c = divmod(int(costs.argmin()), k)
    moved = centers.copy()
    moved[c] = rows.F[draws[m]]
    return moved


def kmeans_plus_plus(
    rows: WeightedRows, n_clusters: int, *, rng: np.random.Generator
) -> FloatArray:
    """Starting centres: rows drawn with probability ∝ weight × squared distance to those before.

    Of 2 + log k draws the one that lowers the cost most is taken, as in scikit-learn.
    """
    n_draws, weights = 2 + int(np.log(n_clusters)), rows.weights
    chosen = np.empty(n_clusters, np.intp)
    chosen[0] = _draw(weights, rng.random(1))[0]
    nearest = _squared_distances(rows, chosen[:1])[:, 0]
    for c in range(1, n_clusters):
        draws = _draw(weights * nearest, rng.random(n_draws))
        closer = np.minimum(_squared_distances(rows, draws), nearest[:, None])
        best = int((weights @ closer).argmin())
        chosen[c], nearest = draws[best], closer[:, best]
    return rows.F[chosen].astype(np.float64)


def _mean_variance(rows: WeightedRows) -> float:
    F, weights = rows.F, rows.weights
    total, sums = weights.sum(), np.zeros(F.shape[1])
    for start, stop in spans(len(F)):  # a product of weights in float64 would cast all of F
        sums += weights[start:stop] @ F[start:stop]
    mean = sums / total
    return float(max(weights @ rows.norms / total - mean @ mean, 0.0)) / F.shape[1]


def _draw(mass: FloatArray, uniforms: FloatArray) -> IdArray:
    """Rows drawn in proportion to their mass (uniformly if there is none)."""
    total = np.cumsum(mass)
    if total[-1] <= 0:
        total = np.arange(1.0, len(mass) + 1)
    drawn = np.searchsorted(total, uniforms * total[-1], side="right")
    return np.minimum(drawn, len(mass) - 1)


def _squared_distances(rows: WeightedRows, ids: IdArray) -> FloatArray:
    products = (rows.F @ rows.F[ids].T).astype(np.float64)
    distances = np.maximum(rows.norms[:, None] + rows.norms[ids] - 2.0 * products, 0.0)
    distances[ids, np.arange(len(ids))] = 0.0
    return distances
