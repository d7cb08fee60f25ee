"""Mercer: kernel and spectral clustering of large data.

Data become a kernel, a kernel a factor, a factor an embedding, an embedding labels.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer._run.versions import show_versions
    from mercer.estimators import (
        KernelFeatures,
        KernelKMeans,
        KernelPCA,
        KernelSpectralClustering,
        SpectralClustering,
    )
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
        Landmarks,
        Neighbors,
        Nystrom,
        Quantized,
        RandomBinning,
        RandomFourier,
    )
    from mercer.io import batch_predictor, load, save
    from mercer.kernels import RBF, Chi2, Cosine, HistogramIntersection, Laplacian, Polynomial
    from mercer.rows import as_source
    from mercer.scale import Processes, checkpoint, on
    from mercer.stream import StreamingKernelKMeans

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
    "Landmarks",
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
    "batch_predictor",
    "checkpoint",
    "load",
    "on",
    "save",
    "show_versions",
]

_HOMES = {  # where the public names live; loaded on first use, so that `import mercer` is cheap
    "mercer._run.versions": ("show_versions",),
    "mercer.estimators": (
        "KernelFeatures",
        "KernelKMeans",
        "KernelPCA",
        "KernelSpectralClustering",
        "SpectralClustering",
    ),
    "mercer.exceptions": (
        *("BudgetError", "EngineError", "MercerWarning", "MissingExtraError", "ModelFileError"),
    ),
    "mercer.factors": (
        "Exact",
        "IncompleteCholesky",
        "Landmarks",
        "Neighbors",
        "Nystrom",
        "Quantized",
        "RandomBinning",
        "RandomFourier",
    ),
    "mercer.io": ("batch_predictor", "load", "save"),
    "mercer.kernels": (
        *("RBF", "Chi2", "Cosine", "HistogramIntersection", "Laplacian", "Polynomial"),
    ),
    "mercer.rows": ("as_source",),
    "mercer.scale": ("Processes", "checkpoint", "on"),
    "mercer.stream": ("StreamingKernelKMeans",),
}
logging.getLogger("mercer").addHandler(logging.NullHandler())  # silent unless the user asks

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
