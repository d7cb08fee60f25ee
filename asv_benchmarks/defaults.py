"""The default paths, as suites of asv: seconds and peak memory by commit.

asv run main^!            this commit
asv continuous main HEAD  a branch against main
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mercer import (
    KernelFeatures,
    KernelKMeans,
    KernelPCA,
    KernelSpectralClustering,
    SpectralClustering,
    StreamingKernelKMeans,
)
from mercer.datasets import rings
from mercer.image import landscape, segment

ESTIMATORS: dict[str, Any] = {
    "SpectralClustering": lambda: SpectralClustering(3, random_state=0),
    "KernelKMeans": lambda: KernelKMeans(3, random_state=0),
    "KernelSpectralClustering": lambda: KernelSpectralClustering(3, random_state=0),
    "StreamingKernelKMeans": lambda: StreamingKernelKMeans(3, random_state=0),
    "KernelPCA": lambda: KernelPCA(3, random_state=0),
    "KernelFeatures": lambda: KernelFeatures(random_state=0),
}


class Fits:
    """One fit after a first one, which compiles."""

    param_names: ClassVar = ["estimator", "n_rows"]
    params: ClassVar = [list(ESTIMATORS), [1_000, 20_000]]

    def setup(self, name: str, n_rows: int) -> None:
        self.X = rings(n_rows, random_state=0)[0]
        self.model = ESTIMATORS[name]().fit(self.X)

    def time_fit(self, name: str, n_rows: int) -> None:
        ESTIMATORS[name]().fit(self.X)

    def peakmem_fit(self, name: str, n_rows: int) -> None:
        ESTIMATORS[name]().fit(self.X)

    def time_apply(self, name: str, n_rows: int) -> None:
        getattr(self.model, "predict" if hasattr(self.model, "predict") else "transform")(self.X)


class Segmentation:
    """An image of a quarter of a megapixel."""

    def setup(self) -> None:
        self.image: np.ndarray = landscape(480, 640, random_state=0)[0]
        segment(self.image)

    def time_segment(self) -> None:
        segment(self.image)
