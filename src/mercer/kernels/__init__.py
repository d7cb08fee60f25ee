"""How similar two rows are."""

from __future__ import annotations

from mercer.kernels.algebra import Product, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.exponential import RBF, Chi2, Laplacian
from mercer.kernels.given import FunctionKernel, Precomputed
from mercer.kernels.inner_products import Cosine, HistogramIntersection, Polynomial
from mercer.kernels.registry import as_kernel
from mercer.kernels.unit_rows import UnitRows

__all__ = [
    "RBF",
    "Chi2",
    "Cosine",
    "FunctionKernel",
    "HistogramIntersection",
    "Kernel",
    "Laplacian",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Sum",
    "UnitRows",
    "as_kernel",
]
