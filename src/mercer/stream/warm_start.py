"""k-means again after the rows, or their coordinates, have changed a little."""

from __future__ import annotations

import numpy as np

from mercer._run.types import FloatArray, IdArray
from mercer.linalg.lloyd import WeightedRows, nearest_center, scores_of_centers, sums_by_label

MOVED = 0.1  # of the centres, in the first round of exchanges


def refine_labels(
    F: FloatArray,
    weights: FloatArray,
    labels: IdArray,
    n_clusters: int,
    *,
    max_iter: int,
    threads: int = 1,
) -> IdArray:
    """Labels after a few of Lloyd's sweeps that start from `labels`.

    Coordinates in an eigenspace are known up to a rotation, so centres of an earlier one cannot be
    reused; labels can. Clusters without rows get the rows that fit worst.
    """
    start = label_means(F, weights, labels, n_clusters)
    found = WeightedRows.of(F, weights, threads).lloyd(start, max_iter=max_iter)
    return nearest_center(_scores(F, found.centers))[0]


def exchange_centers(
    F: FloatArray,
    weights: FloatArray,
    labels: IdArray,
    n_clusters: int,
    *,
    rounds: int,
    max_iter: int,
    threads: int = 1,
) -> IdArray:
    """Labels after the centres that matter least moved to the clusters that fit worst.

    Lloyd's sweeps keep every centre in its neighbourhood: where two share a cluster and one serves
    two, all stay, and of many clusters some always start so. The moves of a round are kept if,
    after a few sweeps, they have lowered the inertia; else half as many are tried.
    """
    n_moves = int(MOVED * n_clusters)
    if not n_moves:
        return labels
    inertia = float(_costs(F, weights, labels, n_clusters)[0].sum())
    for _ in range(rounds):
        tried = _move_centers(F, weights, labels, n_clusters, n_moves) if n_moves else None
        if tried is None:
            break
        tried = refine_labels(F, weights, tried, n_clusters, max_iter=max_iter, threads=threads)
        found = float(_costs(F, weights, tried, n_clusters)[0].sum())
        if found < inertia:
            labels, inertia = tried, found
        else:
            n_moves //= 2
    return labels


def _move_centers(
    F: FloatArray, weights: FloatArray, labels: IdArray, n_clusters: int, n_moves: int
) -> IdArray | None:
    """Labels after some centres moved to the worst row of the costliest clusters.

    A centre may move if its rows lose less by going to their next nearest centre than half of the
    cost of the other cluster, which is about what a second centre saves; None if none does.
    """
    costs, missed = _costs(F, weights, labels, n_clusters)
    worst = label_sums(costs, labels, n_clusters)
    losses = label_sums(missed, labels, n_clusters)
    leaving = np.argsort(losses, kind="stable")[:n_moves]
    helped = np.argsort(-worst, kind="stable")[:n_moves]
    pays = (losses[leaving] < worst[helped] / 2) & ~np.isin(helped, leaving)
    if not pays.any():
        return None
    centers = label_means(F, weights, labels, n_clusters)
    order = np.lexsort((-costs, labels))  # of each cluster the row that costs most comes first
    firsts = order[np.searchsorted(labels[order], helped[pays])]
    centers[leaving[pays]] = F[firsts]
    return nearest_center(_scores(F, centers))[0]


def _costs(
    F: FloatArray, weights: FloatArray, labels: IdArray, n_clusters: int
) -> tuple[FloatArray, FloatArray]:
    """w‖f - c‖² of each row and its cluster's mean, and how much more the next nearest would be."""
    scores = _scores(F, label_means(F, weights, labels, n_clusters))
    rows = np.arange(len(F))
    own = scores[rows, labels]
    scores[rows, labels] = np.inf
    missed = scores.min(axis=1) - own
    return weights * np.maximum(own + np.einsum("ij,ij->i", F, F), 0.0), weights * missed


def _scores(F: FloatArray, centers: FloatArray) -> FloatArray:
    """‖f - c‖² - ‖f‖² of each row and centre, in one array: there may be many of both."""
    A, b = scores_of_centers(centers)
    scores = np.asarray(F @ A)
    scores += b
    return scores


def label_sums(values: FloatArray, labels: IdArray, n_clusters: int) -> FloatArray:
    return np.bincount(labels, weights=values, minlength=n_clusters).astype(np.float64)


def label_means(F: FloatArray, weights: FloatArray, labels: IdArray, n_clusters: int) -> FloatArray:
    """The mean of the rows with each label; a point far from all rows where there are none."""
    sums, counts = sums_by_label(F, labels, weights, n_clusters)
    far = 1.0 + 2.0 * float(np.sqrt(np.einsum("ij,ij->i", F, F).max(initial=0.0)))
    means = sums / np.maximum(counts, np.finfo(float).tiny)[:, None]
    return np.where(counts[:, None] > 0, means, far)
