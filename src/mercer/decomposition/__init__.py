"""The kernel as coordinates, for anybody's pipeline."""

from __future__ import annotations

from mercer.decomposition.kernel_features import KernelFeatures
from mercer.decomposition.kernel_pca import KernelPCA

__all__ = ["KernelFeatures", "KernelPCA"]
