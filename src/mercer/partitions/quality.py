"""How far clusters stand apart, on a sample of rows: never O(n²)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray

SAMPLE_ROWS = 1000


@frozen
class Quality:
    """Figures between 1 (far apart) and 0 (touching), on a sample of rows."""

    n_rows: int  # in the sample
    separation: float | None  # mean of 1 - a/b: distance to the own centre, and to the next one
    cluster_separation: tuple[float | None, ...]  # the same in each cluster (None: no row of it)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Quality:
        each = tuple(_number(value) for value in values["cluster_separation"])
        return cls(int(values["n_rows"]), _number(values["separation"]), each)


def measure(Z: FloatArray, labels: IdArray, n_clusters: int) -> Quality:
    """Figures of clusters in the coordinates that decide them.

    Separation is the simplified silhouette, by distances to the clusters' means instead of to all
    rows: O(n·k·m) time for n sampled rows.
    """
    if n_clusters < 2 or len(np.unique(labels)) < 2:
        return Quality(len(Z), None, (None,) * n_clusters)
    margins = _margins(Z, labels, n_clusters)
    each = tuple(
        float(margins[labels == c].mean()) if (labels == c).any() else None
        for c in range(n_clusters)
    )
    return Quality(len(Z), float(margins.mean()), each)


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


def _distances(Z: FloatArray, centers: FloatArray) -> FloatArray:
    squares = (Z * Z).sum(axis=1)[:, None] - 2.0 * Z @ centers.T + (centers * centers).sum(axis=1)
    return np.sqrt(np.maximum(squares, 0.0))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
