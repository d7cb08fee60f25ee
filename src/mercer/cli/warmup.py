"""`mercer warmup`: compile loops before they are needed, by fitting small problems."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._run.progress import listening, tell

ROWS = 6000  # in the plane: more than numpy serves without a loop, and worth a grid
WIDE_ROWS, COLUMNS = 1500, 8


def warm_up(*, everything: bool) -> dict[str, Any]:
    """Fit and predict by every estimator's defaults, or also by every approximation.

    Returns how many problems were solved and where numba keeps what was compiled.
    """
    steps = [*_defaults(), *(_others() if everything else ())]
    tell("compiling", 0, len(steps))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what these rows say about themselves is of no interest
        for number, step in enumerate(steps, start=1):
            with listening(lambda stage, done, total: None):  # its stages are not ours
                step()
            tell("compiling", number, len(steps))
    return {"n_problems": len(steps), "loops": loops_folder()}


def loops_folder() -> str:
    """The folder of compiled loops, or a sentence where there is none."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return os.environ["NUMBA_CACHE_DIR"]
    from mercer.linalg import _jit

    cache = getattr(_jit.nearest, "_cache", None)
    folder = getattr(cache, "cache_path", None)
    return "nowhere: every process compiles them again" if folder is None else str(folder)


def _defaults() -> list[Callable[[], object]]:
    """Each estimator on few rows, on many in the plane, and on wide ones."""
    from mercer import (
        KernelFeatures,
        KernelKMeans,
        KernelPCA,
        KernelSpectralClustering,
        SpectralClustering,
        StreamingKernelKMeans,
    )
    from mercer.image import landscape, segment

    made: list[Callable[[], Any]] = [
        lambda: SpectralClustering(3, random_state=0),
        lambda: KernelKMeans(3, random_state=0),
        lambda: KernelSpectralClustering(3, random_state=0),
        lambda: StreamingKernelKMeans(3, random_state=0),
        lambda: KernelPCA(2, random_state=0),
        lambda: KernelFeatures(rank=32, random_state=0),
    ]
    steps = [_fit(make, X) for make in made for X in _rows()]
    return [*steps, lambda: segment(landscape(60, 80, random_state=0)[0])]


def _others() -> list[Callable[[], object]]:
    """Every approximation, sparse rows, and the other ways to segment an image."""
    import scipy.sparse as sp

    from mercer import KernelKMeans, SpectralClustering
    from mercer.factors.names import NAMES
    from mercer.image import landscape, segment

    wide = _rows()[-1]
    sparse = sp.csr_array(np.where(wide > 0.5, wide, 0.0))
    made: list[Callable[[], Any]] = [
        lambda name=name, kind=kind: kind(3, approximation=name, random_state=0)  # type: ignore[misc]
        for name in NAMES
        for kind in (SpectralClustering, KernelKMeans)
    ]
    made.append(lambda: SpectralClustering(3, ensemble=4, random_state=0))
    few = _rows()
    del few[1]  # matrices of all pairs of many rows, for nothing
    steps = [_fit(make, X) for make in made for X in (*few, sparse)]
    image = landscape(60, 80, random_state=0)[0]
    return [*steps, lambda: segment(image, 4, method="quantized")]


def _rows() -> list[Any]:
    """A few rows, many in the plane, wide ones in both precisions."""
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(ROWS, 2)) + 5 * (np.arange(ROWS) % 3)[:, None]
    wide = rng.normal(size=(WIDE_ROWS, COLUMNS)) + 5 * (np.arange(WIDE_ROWS) % 3)[:, None]
    return [plane[:600], plane, wide.astype(np.float32), wide]


def _fit(make: Callable[[], Any], X: Any) -> Callable[[], None]:
    """Fit and apply; what an estimator refuses needs no loop."""
    from sklearn.base import is_clusterer

    def step() -> None:
        try:
            model = make().fit(X)
            if is_clusterer(model):
                model.predict(X)
                model.embedding_map(20)
            else:
                model.transform(X)
        except (TypeError, ValueError):
            return

    return step
