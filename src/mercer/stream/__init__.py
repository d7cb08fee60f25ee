"""Streaming kernel k-means: state, updates, means and the estimator."""

from __future__ import annotations

from mercer.stream.streaming_kernel_kmeans import StreamingKernelKMeans

__all__ = ["StreamingKernelKMeans"]
