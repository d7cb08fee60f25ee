"""The estimators: recipes without arithmetic."""

from __future__ import annotations

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
