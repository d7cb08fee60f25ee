"""Mercer: kernel and spectral clustering of large data.

Data become a kernel, a kernel a factor, a factor an embedding, an embedding labels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.cluster import (
        KernelKMeans,
        KernelSpectralClustering,
        SpectralClustering,
        StreamingKernelKMeans,
    )
    from mercer.data import as_source
    from mercer.decomposition import KernelFeatures, KernelPCA
    from mercer.exceptions import (
        BudgetError,
        EngineError,
        MercerWarning,
        MissingExtraError,
        ModelFileError,
    )
    from mercer.factors import (
        Exact,
        IncompleteCholesky,
        Neighbors,
        Nystrom,
        Quantized,
        RandomBinning,
        RandomFourier,
    )
    from mercer.io import load, save
    from mercer.kernels import RBF, Chi2, Cosine, HistogramIntersection, Laplacian, Polynomial
    from mercer.scale import Processes, checkpoint, on

__version__ = "0.1.0"

__all__ = [
    "RBF",
    "BudgetError",
    "Chi2",
    "Cosine",
    "EngineError",
    "Exact",
    "HistogramIntersection",
    "IncompleteCholesky",
    "KernelFeatures",
    "KernelKMeans",
    "KernelPCA",
    "KernelSpectralClustering",
    "Laplacian",
    "MercerWarning",
    "MissingExtraError",
    "ModelFileError",
    "Neighbors",
    "Nystrom",
    "Polynomial",
    "Processes",
    "Quantized",
    "RandomBinning",
    "RandomFourier",
    "SpectralClustering",
    "StreamingKernelKMeans",
    "as_source",
    "checkpoint",
    "load",
    "on",
    "save",
]

_HOMES = {  # where the public names live; loaded on first use, so that `import mercer` is cheap
    "mercer.cluster": (
        "KernelKMeans",
        "KernelSpectralClustering",
        "SpectralClustering",
        "StreamingKernelKMeans",
    ),
    "mercer.data": ("as_source",),
    "mercer.decomposition": ("KernelFeatures", "KernelPCA"),
    "mercer.exceptions": (
        *("BudgetError", "EngineError", "MercerWarning", "MissingExtraError", "ModelFileError"),
    ),
    "mercer.factors": (
        "Exact",
        "IncompleteCholesky",
        "Neighbors",
        "Nystrom",
        "Quantized",
        "RandomBinning",
        "RandomFourier",
    ),
    "mercer.io": ("load", "save"),
    "mercer.kernels": (
        *("RBF", "Chi2", "Cosine", "HistogramIntersection", "Laplacian", "Polynomial"),
    ),
    "mercer.scale": ("Processes", "checkpoint", "on"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
