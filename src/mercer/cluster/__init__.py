"""The estimators: recipes without arithmetic."""

from __future__ import annotations

from mercer.cluster.kernel_kmeans import KernelKMeans
from mercer.cluster.kernel_spectral import KernelSpectralClustering
from mercer.cluster.spectral import SpectralClustering
from mercer.cluster.streaming import StreamingKernelKMeans

__all__ = [
    "KernelKMeans",
    "KernelSpectralClustering",
    "SpectralClustering",
    "StreamingKernelKMeans",
]
