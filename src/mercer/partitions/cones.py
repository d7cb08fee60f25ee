"""Partitions of directions: each cluster is the cone around a unit vector."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.linalg

from mercer._types import FloatArray
from mercer.partitions.kmeans import kmeans

__all__ = ["Assign", "cone_directions"]

Assign = Literal["kmeans", "cluster_qr"]


def cone_directions(
    Y: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    assign_labels: Assign,
    n_init: int,
    rng: np.random.Generator,
    max_iter: int = 50,
    threads: int = 1,
) -> FloatArray:
    """Unit vectors (k, m); a row of unit length belongs to the one of largest inner product."""
    if assign_labels == "cluster_qr":
        return _cluster_qr(Y[:, :n_clusters], n_clusters)
    found = kmeans(
        Y,
        weights,
        n_clusters,
        n_init=n_init,
        max_iter=max_iter,
        tol=1e-4,
        rng=rng,
        threads=threads,
    )
    norms = np.linalg.norm(found.centers, axis=1, keepdims=True)
    return found.centers / np.where(norms > 0, norms, 1.0)


def _cluster_qr(Y: FloatArray, k: int) -> FloatArray:
    """Pivoted QR picks the k most different rows; a rotation makes them the axes [damle2019]."""
    _, pivots = scipy.linalg.qr(Y.T, pivoting=True, mode="r")
    left, _, right = np.linalg.svd(Y[pivots[:k]].T)
    axes = (left @ right).T
    signs = np.sign(np.einsum("km,km->k", axes, Y[pivots[:k]]))
    return axes * np.where(signs == 0, 1.0, signs)[:, None]
