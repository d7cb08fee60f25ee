"""Mercer: kernel and spectral clustering of large data.

Data become a kernel, a kernel a factor, a factor an embedding, an embedding labels.
"""

from __future__ import annotations

from mercer.cluster import KernelKMeans
from mercer.data import as_source
from mercer.exceptions import BudgetError, MercerWarning, MissingExtraError, ModelFileError
from mercer.factors import Exact, IncompleteCholesky
from mercer.kernels import (
    RBF,
    Chi2,
    Cosine,
    HistogramIntersection,
    Laplacian,
    Polynomial,
)

__version__ = "0.1.0"

__all__ = [
    "RBF",
    "BudgetError",
    "Chi2",
    "Cosine",
    "Exact",
    "HistogramIntersection",
    "IncompleteCholesky",
    "KernelKMeans",
    "Laplacian",
    "MercerWarning",
    "MissingExtraError",
    "ModelFileError",
    "Polynomial",
    "as_source",
]
