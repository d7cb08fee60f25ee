"""Every estimator that the common laws and the hostile inputs are tried on.

Public estimators are here by themselves; a line each says which settings are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import ClusterMixin, TransformerMixin

import mercer
from mercer import (
    KernelFeatures,
    KernelKMeans,
    KernelPCA,
    KernelSpectralClustering,
    SpectralClustering,
    StreamingKernelKMeans,
)

ESTIMATORS: dict[str, Callable[..., Any]] = {
    "KernelKMeans": lambda n_clusters=3, **params: KernelKMeans(
        n_clusters, **{"n_init": 3, "random_state": 0, **params}
    ),
    "KernelKMeans-greedy": lambda n_clusters=3, **params: KernelKMeans(
        n_clusters, **{"approximation": _greedy(), "n_init": 3, "random_state": 0, **params}
    ),
    "KernelKMeans-exact": lambda n_clusters=3, **params: KernelKMeans(
        n_clusters, **{"approximation": "exact", "n_init": 3, "random_state": 0, **params}
    ),
    "SpectralClustering": lambda n_clusters=3, **params: SpectralClustering(
        n_clusters, **{"random_state": 0, **params}
    ),
    "SpectralClustering-ensemble": lambda n_clusters=3, **params: SpectralClustering(
        n_clusters, **{"ensemble": 20, "random_state": 0, **params}
    ),
    "SpectralClustering-neighbors": lambda n_clusters=3, **params: SpectralClustering(
        n_clusters,
        **{"approximation": "neighbors", "random_state": 0, **params, "rank": "auto"},
    ),
    "SpectralClustering-cholesky": lambda n_clusters=3, **params: SpectralClustering(
        n_clusters, **{"approximation": "cholesky", "random_state": 0, **params}
    ),
    "KernelSpectralClustering": lambda n_clusters=3, **params: KernelSpectralClustering(
        n_clusters, **{"random_state": 0, **params}
    ),
    "SpectralClustering-binning": lambda n_clusters=3, **params: SpectralClustering(
        n_clusters, **{"approximation": "binning", "random_state": 0, **params}
    ),
    "KernelKMeans-binning": lambda n_clusters=3, **params: KernelKMeans(
        n_clusters,
        **{"kernel": None, "approximation": "binning", "n_init": 3, "random_state": 0, **params},
    ),
    "SpectralClustering-quantized": lambda n_clusters=3, **params: SpectralClustering(
        n_clusters, **{"approximation": "quantized", "random_state": 0, **params}
    ),
    "StreamingKernelKMeans": lambda n_clusters=3, **params: StreamingKernelKMeans(
        n_clusters, **{"random_state": 0, **_without_rank(params)}
    ),
    "StreamingKernelKMeans-small": lambda n_clusters=3, **params: StreamingKernelKMeans(
        n_clusters,
        **{
            "initial_size": 200,
            "max_size": 250,
            "batch_size": 100,
            "centers": "projected",
            "random_state": 0,
            **_without_rank(params),
        },
    ),
    "StreamingKernelKMeans-means": lambda n_clusters=3, **params: StreamingKernelKMeans(
        n_clusters, **{"algorithm": "means", "random_state": 0, **_without_rank(params)}
    ),
}

# What a stream cannot promise by its nature, and why. `fit` of rows in memory puts them into an
# order of their content first, so the laws of permutations, weights and duplicates hold for it;
# the calls of `partial_fit` are a stream, whose order is part of the data: those laws do not apply
# there, and any split of one order into calls is tested instead (tests/stream/test_streaming.py).
UNLIKE = {
    "rank": "a stream has n_clusters eigenvectors and no other rank",
    "approximation": "the kernel of mutual neighbours is the approximation",
}


def _without_rank(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "rank"}


def _greedy() -> Any:
    from mercer import IncompleteCholesky

    return IncompleteCholesky(rank=64, pivots="greedy")


TRANSFORMERS: dict[str, Callable[..., Any]] = {
    "KernelFeatures": lambda **params: KernelFeatures(**{"rank": 40, "random_state": 0} | params),
    "KernelPCA": lambda **params: KernelPCA(2, **{"rank": 40, "random_state": 0} | params),
}


def _public(*, clusters: bool) -> dict[str, type]:
    """Estimators that users reach, by name: those that cluster, or only transform, rows."""
    members = {name: getattr(mercer, name) for name in mercer.__all__}
    return {
        name: member
        for name, member in members.items()
        if isinstance(member, type)
        and issubclass(member, ClusterMixin if clusters else TransformerMixin)
        and (clusters or not issubclass(member, ClusterMixin))
    }


def _missing(table: dict[str, Callable[..., Any]], public: dict[str, type]) -> dict[str, type]:
    tried = {type(make()) for make in table.values()}
    return {name: kind for name, kind in public.items() if kind not in tried}


# An estimator that is new runs the laws with its defaults until it has a line of its own above.
for _name, _kind in _missing(ESTIMATORS, _public(clusters=True)).items():
    ESTIMATORS[_name] = lambda n_clusters=3, *, kind=_kind, **params: kind(
        n_clusters, **{"random_state": 0, **params}
    )
for _name, _kind in _missing(TRANSFORMERS, _public(clusters=False)).items():
    TRANSFORMERS[_name] = lambda *, kind=_kind, **params: kind(**{"random_state": 0} | params)
