"""Fits with default settings, their truth and what they say of themselves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.suite.sets import n_classes, numbers_of_clusters, score
from benchmarks.trust.sets import NOISE_CLUSTERS, sets
from mercer import KernelKMeans, KernelSpectralClustering, SpectralClustering
from mercer.trust.score import TERMS

METHODS: dict[str, Callable[..., Any]] = {
    "SpectralClustering": SpectralClustering,
    "SpectralClustering, ensemble=20": lambda k, **p: SpectralClustering(k, ensemble=20, **p),
    "KernelKMeans": KernelKMeans,
    "KernelSpectralClustering": KernelSpectralClustering,
}


def given_fits(
    group: str, folder: Path, seed: int, done: set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each method at the number of clusters of each reference: a key and a record."""
    for name, X, references in sets(group, folder):
        for k in numbers_of_clusters(references) if references else NOISE_CLUSTERS:
            for method, make in METHODS.items():
                key = f"{group}|{name}|{k}|{method}|{seed}"
                if key in done:
                    continue
                trust = (model := _fitted(make, X, k, seed)).report_.trust
                evidence = {e.name: e.value for e in trust.evidence}
                yield (
                    key,
                    {
                        "ari": score(model.labels_, references, k)["ari"] if references else 0.0,
                        "grade": trust.grade,
                        "score": round(trust.score, 4),
                        "evidence": {n: round(evidence[n], 4) for n in TERMS if n in evidence},
                    },
                )


def counted_fits(
    group: str, folder: Path, seed: int, done: set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """SpectralClustering("auto") on every set: is the number that of a reference?"""
    for name, X, references in sets(group, folder):
        key = f"{group}|{name}|{seed}"
        if key in done:
            continue
        model = _fitted(SpectralClustering, X, "auto", seed)
        scored = [adjusted_rand_score(y[y != 0], model.labels_[y != 0]) for y in references]
        yield (
            key,
            {
                "n_clusters": model.n_clusters_,
                "wanted": sorted({n_classes(y) for y in references}),
                "ari": round(float(max(scored, default=0.0)), 4),
                "is_unclear": any("not clear" in text for text in model.report_.warnings),
                "probability": round(model.n_clusters_ranking_[0][1], 4),
            },
        )


def _fitted(make: Callable[..., Any], X: np.ndarray, k: Any, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(k, random_state=seed).fit(X)
