"""What is compared: Mercer's clusterers with their defaults, and peers with theirs or better.

genieclust is used if it is installed (it is AGPL: nothing of Mercer depends on it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import KernelKMeans, KernelSpectralClustering, SpectralClustering

Labels = np.ndarray
Clustering = tuple[Labels, dict[str, Any]]  # and what else is worth keeping
HDBSCAN_SIZES = (5, 10, 20, 50, 100, 200)  # of min_cluster_size


@dataclass(frozen=True)
class Method:
    """How a method labels rows."""

    title: str
    cluster: Callable[[np.ndarray, int, int], Clustering]
    package: str
    is_seeded: bool = True
    most_rows: int | None = None  # more take too much memory or time
    most_columns: int | None = None

    @property
    def is_peer(self) -> bool:
        return self.package != "mercer"

    def refusal(self, X: np.ndarray) -> str | None:
        """Why the method is not run on these rows."""
        if self.most_rows is not None and len(X) > self.most_rows:
            return f"{len(X):,} rows; run up to {self.most_rows:,}"
        if self.most_columns is not None and X.shape[1] > self.most_columns:
            return f"{X.shape[1]:,} columns; run up to {self.most_columns:,}"
        return None


def _mercer(make: Callable[..., Any], **options: Any) -> Callable[..., Clustering]:
    def cluster(X: np.ndarray, k: int, seed: int) -> Clustering:
        estimator = make(k, random_state=seed, **options).fit(X)
        trust = getattr(estimator.report_, "trust", None)
        return estimator.labels_, {} if trust is None else {"grade": trust.grade}

    return cluster


def _kmeans(X: np.ndarray, k: int, seed: int) -> Clustering:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=seed).fit(X).labels_, {}


def _mixture(X: np.ndarray, k: int, seed: int) -> Clustering:
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(k, random_state=seed).fit_predict(X), {}


def _ward(X: np.ndarray, k: int, seed: int) -> Clustering:
    from sklearn.cluster import AgglomerativeClustering

    return AgglomerativeClustering(k).fit(X).labels_, {}


def _knn_spectral(X: np.ndarray, k: int, seed: int) -> Clustering:
    from sklearn.cluster import SpectralClustering as Peer

    return Peer(k, affinity="nearest_neighbors", random_state=seed).fit(X).labels_, {}


def _genie(X: np.ndarray, k: int, seed: int) -> Clustering:
    from genieclust import Genie

    return np.asarray(Genie(n_clusters=k).fit_predict(X)), {}


def _hdbscan(X: np.ndarray, k: int, seed: int) -> Clustering:
    """HDBSCAN takes no number of clusters: the min_cluster_size that comes nearest to k.

    Rows that it calls noise get the label of the nearest row that has one.
    """
    from sklearn.cluster import HDBSCAN
    from sklearn.neighbors import KNeighborsClassifier

    best, size = np.full(len(X), -1), 0
    for candidate in HDBSCAN_SIZES:
        if candidate > len(X) // 2:
            break
        labels = HDBSCAN(min_cluster_size=candidate, copy=True).fit(X).labels_
        if size == 0 or abs(labels.max() + 1 - k) < abs(best.max() + 1 - k):
            best, size = labels, candidate
        if labels.max() + 1 <= k:  # a larger size only joins more
            break
    clustered = best >= 0
    if clustered.any() and not clustered.all():
        near = KNeighborsClassifier(1).fit(X[clustered], best[clustered])
        best[~clustered] = near.predict(X[~clustered])
    return best, {"min_cluster_size": size}


METHODS = {
    "spectral": Method("SpectralClustering", _mercer(SpectralClustering), "mercer"),
    "ensemble": Method(
        "SpectralClustering, ensemble=20", _mercer(SpectralClustering, ensemble=20), "mercer"
    ),
    "kernel-kmeans": Method("KernelKMeans", _mercer(KernelKMeans), "mercer"),
    "ksc": Method("KernelSpectralClustering", _mercer(KernelSpectralClustering), "mercer"),
    "kmeans": Method("KMeans, best of 10", _kmeans, "scikit-learn"),
    "mixture": Method("GaussianMixture", _mixture, "scikit-learn", most_columns=200),
    "ward": Method("Ward", _ward, "scikit-learn", is_seeded=False, most_rows=20_000),
    "knn-spectral": Method(
        "SpectralClustering, nearest neighbours", _knn_spectral, "scikit-learn", most_rows=20_000
    ),
    "hdbscan": Method("HDBSCAN", _hdbscan, "scikit-learn", is_seeded=False, most_rows=20_000),
    "genie": Method("Genie", _genie, "genieclust", is_seeded=False, most_rows=20_000),
}
