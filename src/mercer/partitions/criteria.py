"""How good a partition of score space is: line fit, memberships, angles, and balance.

Each criterion is (1 - η)·fit + η·balance on held-out rows, with

* **blf** [alzate2010]: fit = how much of each cluster's scores lies on a line;
* **ams** [langone2013]: fit = mean membership of the rows of a cluster in it;
* **bas** [novak2021]: fit = mean of 1 - d₁/d₂, nearest against second nearest direction;

all three averaged over clusters, so small ones count; balance = smallest / largest cluster.
"""

from __future__ import annotations

import numpy as np

from mercer._run.types import FloatArray, IdArray
from mercer.partitions.codebooks import Codebook

BALANCE = 0.2  # η


def criterion(
    codebook: Codebook,
    Y: FloatArray,
    weights: FloatArray,
    *,
    balance: float = BALANCE,
    outlier: float = 0.0,
    pivot_sums: FloatArray | None = None,
) -> float:
    """The encoding's own criterion of a code book on rows with these coordinates.

    `outlier`: clusters of at most this weight count as noise: nothing for the fit, and not in the
    balance. `pivot_sums`: Σ_r k(x, x_r) + b of each row, which BLF uses when K = 2.
    """
    k, labels = len(codebook), codebook.labels(Y)
    if codebook.encoding != "blf":
        return balanced_mean(separation(codebook, Y), labels, weights, k, balance, outlier)
    counts = np.bincount(labels, weights=weights, minlength=k).astype(np.float64)
    kept = counts > outlier
    pairs = Y if k > 2 or pivot_sums is None else np.column_stack([Y, pivot_sums])
    fit = line_fit(pairs, labels, weights, kept)
    return (1.0 - balance) * fit + balance * balance_of(counts, kept)


def balanced_mean(
    values: FloatArray,
    labels: IdArray,
    weights: FloatArray,
    n_clusters: int,
    balance: float,
    outlier: float,
) -> float:
    """(1 - η)·(mean over clusters of the rows' values) + η·balance."""
    counts = np.bincount(labels, weights=weights, minlength=n_clusters).astype(np.float64)
    kept = counts > outlier
    sums = np.bincount(labels, weights=weights * values, minlength=n_clusters)
    fit = float(np.where(kept, sums / np.where(counts > 0, counts, 1.0), 0.0).mean())
    return (1.0 - balance) * fit + balance * balance_of(counts, kept)


def line_fit(Y: FloatArray, labels: IdArray, weights: FloatArray, kept: np.ndarray) -> float:
    """((1 - 1/K) Σ_k r_k - 1) / (K - 2), r_k the share of a cluster's variance along one line.

    1 where each cluster is a line, 0 where none is. For K = 2, pairs of (score, kernel sum) stand
    in for the one score: Σ_k r_k - 1.
    """
    k = len(kept)
    shares = np.full(k, 1.0 / Y.shape[1])  # a cluster without rows has no line
    for c in np.flatnonzero(kept):
        rows, w = Y[labels == c], weights[labels == c]
        centred = rows - w @ rows / w.sum()
        variances = np.linalg.eigvalsh((centred * w[:, None]).T @ centred)
        shares[c] = variances[-1] / variances.sum() if variances.sum() > 0 else 1.0
    total = float(shares.sum())
    return total - 1.0 if k == 2 else ((1.0 - 1.0 / k) * total - 1.0) / (k - 2)


def separation(codebook: Codebook, Y: FloatArray) -> FloatArray:
    """How clearly each row belongs to its cluster: membership (ams), or 1 - d₁/d₂ (bas)."""
    if codebook.encoding == "ams":
        return codebook.memberships(Y).max(axis=1)
    nearest = np.partition(codebook.distances(Y), 1, axis=1)
    first, second = nearest[:, 0], nearest[:, 1]
    return np.where(second > 0, 1.0 - first / np.where(second > 0, second, 1.0), 0.0)


def balance_of(counts: FloatArray, kept: np.ndarray | None = None) -> float:
    """Smallest over largest cluster."""
    counts = counts if kept is None or not kept.any() else counts[kept | (counts == 0)]
    return float(counts.min() / counts.max()) if counts.max() > 0 else 0.0
