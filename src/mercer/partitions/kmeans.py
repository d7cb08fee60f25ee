"""Weighted k-means by tiles: greedy k-means++, Lloyd's sweeps, repair of empty clusters.

A sweep is (per tile, combine in tile order, finish): the same centres for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer._lazy import LazyModule
from mercer._threads import in_order
from mercer._types import FloatArray, IdArray
from mercer.data.source import spans

__all__ = ["Partition", "kmeans", "nearest_center", "scores_of_centers", "sums_by_label"]

_jit = LazyModule("mercer.partitions._jit")

INIT_ROWS = 10_000  # k-means++ looks at so many rows (or 20 per cluster), drawn once


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
    runs = []
    for _ in range(n_init):
        start = kmeans_plus_plus(F, weights, norms, n_clusters, rng=rng)
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
    size = max(INIT_ROWS, 20 * n_clusters)
    if len(F) > size:
        ids = np.sort(rng.choice(len(F), size, replace=False))
        F, weights, norms = F[ids], weights[ids], norms[ids]
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
    """Assign, average, repeat."""
    n, k = len(F), len(centers)
    labels, best = np.full(n, -1, np.intp), np.empty(n)
    sums, counts = np.zeros((k, F.shape[1])), np.zeros(k)
    is_converged, n_iter = False, 0
    while not is_converged and n_iter < max_iter:
        n_iter += 1
        before = labels.copy()
        _sweep(F, weights, centers, labels, best, sums, counts, threads)
        _repair_empty(F, weights, norms, labels, best, sums, counts)
        moved = sums / np.maximum(counts, np.finfo(float).tiny)[:, None]
        moved[counts <= 0] = centers[counts <= 0]
        shift = float(((moved - centers) ** 2).sum())
        centers = moved
        is_converged = shift <= least_shift or np.array_equal(labels, before)
    _sweep(F, weights, centers, labels, best, sums, counts, threads)
    inertia = float(weights @ np.maximum(norms + best, 0.0))
    return Partition(centers, inertia, n_iter, is_converged)


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
    centers: FloatArray,
    labels: IdArray,
    best: FloatArray,
    sums: FloatArray,
    counts: FloatArray,
    threads: int,
) -> None:
    """Label every row and bring sums and counts up to date. labels … counts: INOUT."""
    A, b = scores_of_centers(centers)
    tile = partial(_assign_tile, F, weights, labels, best, A.astype(F.dtype), b.astype(F.dtype))
    for added_sums, added_counts in in_order(tile, spans(len(F)), threads):
        sums += added_sums
        counts += added_counts


def _assign_tile(
    F: FloatArray,
    weights: FloatArray,
    labels: IdArray,
    best: FloatArray,
    A: FloatArray,
    b: FloatArray,
    span: tuple[int, int],
) -> tuple[FloatArray, FloatArray]:
    """New labels of one tile; returns what they change in the sums. labels, best: INOUT."""
    rows = slice(*span)
    scores = F[rows] @ A
    scores += b
    new, best[rows] = nearest_center(scores)
    sums, counts = np.zeros((len(b), F.shape[1])), np.zeros(len(b))
    _jit.move_rows(F[rows], labels[rows], new, weights[rows], sums, counts)
    labels[rows] = new
    return sums, counts


def _repair_empty(
    F: FloatArray,
    weights: FloatArray,
    norms: FloatArray,
    labels: IdArray,
    best: FloatArray,
    sums: FloatArray,
    counts: FloatArray,
) -> None:
    """Give each cluster that lost all rows the row that costs most where it is."""
    sizes = np.bincount(labels, minlength=len(counts))
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return
    cost = weights * np.maximum(norms + best, 0.0)
    counts[empty], sums[empty] = 0.0, 0.0
    for cluster in empty:
        row = int(np.where(sizes[labels] > 1, cost, -1.0).argmax())
        old, new = labels[row : row + 1].copy(), np.array([cluster])
        _jit.move_rows(F[row : row + 1], old, new, weights[row : row + 1], sums, counts)
        sizes[old[0]] -= 1
        sizes[cluster] += 1
        labels[row], cost[row] = cluster, 0.0


def _mean_variance(F: FloatArray, weights: FloatArray, norms: FloatArray) -> float:
    total = weights.sum()
    mean = weights @ F / total
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
