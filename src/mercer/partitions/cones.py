"""Partitions of directions: each cluster is the cone around a unit vector."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.linalg

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer.partitions.kmeans import kmeans

Assign = Literal["kmeans", "cluster_qr"]


@frozen
class Cones:
    """Unit vectors; a row belongs to the one of largest inner product."""

    directions: FloatArray  # (k, m)
    n_iter: int
    is_converged: bool


def find_cones(
    Y: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    assign_labels: Assign,
    n_init: int,
    rng: np.random.Generator,
    max_iter: int = 50,
    tol: float = 1e-4,
    threads: int = 1,
) -> Cones:
    """Cones for rows of unit length: by k-means, or by a pivoted QR decomposition."""
    if assign_labels == "cluster_qr":
        return Cones(_cluster_qr(Y[:, :n_clusters], n_clusters), 1, True)
    found = kmeans(
        Y,
        weights,
        n_clusters,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        rng=rng,
        threads=threads,
    )
    norms = np.linalg.norm(found.centers, axis=1, keepdims=True)
    directions = found.centers / np.where(norms > 0, norms, 1.0)
    return Cones(directions, found.n_iter, found.is_converged)


def _cluster_qr(Y: FloatArray, k: int) -> FloatArray:
    """Pivoted QR picks the k most different rows; a rotation makes them the axes [damle2019]."""
    _, pivots = scipy.linalg.qr(Y.T, pivoting=True, mode="r")
    left, _, right = np.linalg.svd(Y[pivots[:k]].T)
    axes = (left @ right).T
    signs = np.sign(np.einsum("km,km->k", axes, Y[pivots[:k]]))
    return axes * np.where(signs == 0, 1.0, signs)[:, None]
