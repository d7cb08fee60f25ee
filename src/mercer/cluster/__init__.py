"""The estimators: recipes without arithmetic."""

from __future__ import annotations

from mercer.cluster.kernel_kmeans import KernelKMeans

__all__ = ["KernelKMeans"]
