"""The kernel as coordinates, for anybody's pipeline."""

from __future__ import annotations

from mercer.decomposition.kernel_features import KernelFeatures

__all__ = ["KernelFeatures"]
