"""Make the model files beside this program: one of each kind, and what each says of `rows.npy`.

    python tests/models/make.py [NAME ...]

Files that were once committed stay as they are, so that later versions are tried on what earlier
ones wrote: without names, only those that are missing are made.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    KernelFeatures,
    KernelKMeans,
    KernelPCA,
    KernelSpectralClustering,
    SpectralClustering,
    StreamingKernelKMeans,
    load,
    save,
)
from mercer.image import Segmenter

FOLDER = Path(__file__).parent
MOST_BYTES = 20_000

MODELS: dict[str, Any] = {
    "kernel-kmeans": KernelKMeans(3, rank=12, random_state=0),
    "kernel-kmeans-nystrom": KernelKMeans(3, approximation="nystrom", rank=12, random_state=0),
    "kernel-kmeans-fourier": KernelKMeans(3, approximation="fourier", rank=31, random_state=0),
    "kernel-kmeans-binning": KernelKMeans(
        3, kernel=None, approximation="binning", rank=4, random_state=0
    ),
    "kernel-features": KernelFeatures(kernel="laplacian", rank=10, random_state=0),
    "kernel-pca": KernelPCA(2, rank=12, random_state=0),
    "kernel-pca-quantized": KernelPCA(2, approximation="quantized", rank=12, random_state=0),
    "kernel-spectral": KernelSpectralClustering(3, rank=12, random_state=0),
    "spectral": SpectralClustering(3, rank=20, random_state=0),
    "spectral-ensemble": SpectralClustering(3, rank=10, ensemble=3, random_state=0),
    "spectral-neighbors": SpectralClustering(3, approximation="neighbors", random_state=0),
    "spectral-cholesky": SpectralClustering(3, approximation="cholesky", rank=12, random_state=0),
    "spectral-binning": SpectralClustering(3, approximation="binning", rank=4, random_state=0),
    "streaming": StreamingKernelKMeans(3, initial_size=24, n_neighbors=8, random_state=0),
    "streaming-means": StreamingKernelKMeans(
        3, initial_size=9, max_size=9, n_neighbors=6, random_state=0
    ),
    "spectral-quantized": SpectralClustering(3, approximation="quantized", rank=12, random_state=0),
    "pipeline": make_pipeline(
        ColumnTransformer([("a", StandardScaler(), [0, 1])], remainder="passthrough"),
        PCA(2, random_state=0),
        KernelKMeans(3, rank=8, random_state=0),
    ),
    "spectral-noise": SpectralClustering(3, noise=0.1, random_state=0),
    "segmenter": Segmenter(3, method="quantized", random_state=0),
    "segmenter-contours": Segmenter(3, method="contours", min_size=0),
}


def training_rows() -> Any:
    """Three groups of 20 rows in three dimensions, with values of few digits."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [0.0, 5.0, 2.0]])
    return np.round(np.repeat(centers, 20, axis=0) + rng.normal(0, 0.5, (60, 3)), 2)


def answers(model: Any, X: Any) -> list[Any]:
    """Labels, or coordinates where there are none."""
    if hasattr(model, "predict"):
        return model.predict(X).tolist()
    return np.round(model.transform(X), 12).tolist()


def main(names: list[str]) -> None:
    X = training_rows()
    if not (FOLDER / "rows.npy").exists():
        np.save(FOLDER / "rows.npy", X + 0.1)
    table = FOLDER / "expected.json"
    expected = json.loads(table.read_text()) if table.exists() else {}
    for name in names or [name for name in MODELS if not (FOLDER / f"{name}.mercer").exists()]:
        path = FOLDER / f"{name}.mercer"
        save(MODELS[name].fit(X), path)
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path} has {path.stat().st_size} bytes")
        expected[name] = answers(load(path), np.load(FOLDER / "rows.npy"))
        sys.stdout.write(f"{path.name}: {path.stat().st_size} bytes\n")
    lines = [f"{json.dumps(name)}: {json.dumps(expected[name])}" for name in sorted(expected)]
    table.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
