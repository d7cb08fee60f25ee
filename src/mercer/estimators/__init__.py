"""The estimators: recipes without arithmetic; each is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.estimators.kernel_features import KernelFeatures
    from mercer.estimators.kernel_kmeans import KernelKMeans
    from mercer.estimators.kernel_pca import KernelPCA
    from mercer.estimators.kernel_spectral_clustering import KernelSpectralClustering
    from mercer.estimators.spectral_clustering import SpectralClustering

__all__ = [
    "KernelFeatures",
    "KernelKMeans",
    "KernelPCA",
    "KernelSpectralClustering",
    "SpectralClustering",
]

_HOMES = {
    "KernelFeatures": "kernel_features",
    "KernelKMeans": "kernel_kmeans",
    "KernelPCA": "kernel_pca",
    "KernelSpectralClustering": "kernel_spectral_clustering",
    "SpectralClustering": "spectral_clustering",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
