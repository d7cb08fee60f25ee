"""How far clusters stand apart and how firmly, on a sample of rows: never O(n²)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import FloatArray, IdArray
from mercer.metrics.pairs import adjusted_rand
from mercer.partitions.kmeans import kmeans

__all__ = ["SAMPLE_ROWS", "Quality", "measure"]

SAMPLE_ROWS = 1000
LEAST_PER_CLUSTER = 10  # rows of the sample for each cluster, for a figure of stability
MOST_CLUSTERS = 50  # that a sample of this size can judge


@dataclass(frozen=True, slots=True)
class Quality:
    """Figures between 1 (clear) and 0 (nothing there), on a sample of rows."""

    n_rows: int  # in the sample
    separation: float | None  # mean of 1 - a/b: distance to the own centre, and to the next one
    cluster_separation: tuple[float | None, ...]  # the same in each cluster (None: no row of it)
    stability: float | None  # ARI of clusters by one half of the sample with those by the other

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Quality:
        each = tuple(_number(value) for value in values["cluster_separation"])
        separation, stability = _number(values["separation"]), _number(values["stability"])
        return cls(int(values["n_rows"]), separation, each, stability)


def measure(Z: FloatArray, labels: IdArray, n_clusters: int) -> Quality:
    """Figures of clusters in the coordinates that decide them.

    Separation is the simplified silhouette, by distances to centres instead of to all rows. For
    stability each half of the rows is clustered anew by k-means in these coordinates, both label
    all rows, and the two are compared. Time O(n·k·m) for n sampled rows.
    """
    if n_clusters < 2 or len(np.unique(labels)) < 2:
        return Quality(len(Z), None, (None,) * n_clusters, None)
    margins = _margins(Z, labels, n_clusters)
    each = tuple(
        float(margins[labels == c].mean()) if (labels == c).any() else None
        for c in range(n_clusters)
    )
    return Quality(len(Z), float(margins.mean()), each, _stability(Z, n_clusters))


def _margins(Z: FloatArray, labels: IdArray, n_clusters: int) -> FloatArray:
    """(b - a) / max(a, b) of each row: a to the centre of its cluster, b to the nearest other."""
    there = np.unique(labels)
    centers = np.stack([Z[labels == c].mean(axis=0) for c in there])
    distances = _distances(Z, centers)
    mine = np.arange(len(Z)), np.searchsorted(there, labels)
    a = distances[mine]
    distances[mine] = np.inf
    b = distances.min(axis=1)
    larger = np.maximum(a, b)
    return np.divide(b - a, larger, out=np.zeros(len(Z)), where=larger > 0)


def _stability(Z: FloatArray, n_clusters: int) -> float | None:
    if n_clusters > MOST_CLUSTERS or len(Z) < LEAST_PER_CLUSTER * n_clusters:
        return None
    rng = np.random.default_rng(0)  # its own: the draws of the fit stay what they were
    order = rng.permutation(len(Z))
    labels = []
    for half in (order[::2], order[1::2]):
        rows = np.ascontiguousarray(Z[half])
        if len(np.unique(rows, axis=0)) < n_clusters:
            return None
        found = kmeans(
            rows, np.ones(len(rows)), n_clusters, n_init=3, max_iter=50, tol=1e-4, rng=rng
        )
        labels.append(_distances(Z, found.centers).argmin(axis=1))
    return float(adjusted_rand(*labels))


def _distances(Z: FloatArray, centers: FloatArray) -> FloatArray:
    squares = (Z * Z).sum(axis=1)[:, None] - 2.0 * Z @ centers.T + (centers * centers).sum(axis=1)
    return np.sqrt(np.maximum(squares, 0.0))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
