"""Labels of many seeded problems, as digests: what a faster start must leave as it is.

python -m benchmarks.startup_labels --out FILE      the digests of this code
python -m benchmarks.startup_labels --against FILE  which of them differ from earlier ones
"""

from __future__ import annotations

import argparse
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.startup import picture
from mercer import (
    KernelFeatures,
    KernelKMeans,
    KernelPCA,
    KernelSpectralClustering,
    SpectralClustering,
    StreamingKernelKMeans,
)
from mercer.datasets import rings
from mercer.image import segment

__all__ = ["digests"]

SEEDS = range(3)


def mixture(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """Gaussians of several widths."""
    rng = np.random.default_rng(seed)
    centers, widths = 4 * rng.normal(size=(k, d)), rng.uniform(0.3, 1.2, k)
    which = rng.integers(0, k, n)
    return centers[which] + widths[which, None] * rng.normal(size=(n, d))


def rows(seed: int) -> dict[str, Any]:
    """Rows of several kinds: in the plane, in ten dimensions, single precision, sparse."""
    wide = mixture(1500, 10, 5, seed)
    thin = np.where(np.random.default_rng(seed).random(wide.shape) < 0.5, wide, 0.0)
    return {
        "rings": rings(1000, random_state=seed)[0],
        "solid": mixture(2000, 3, 4, seed),
        "wide": wide,
        "float32": wide.astype(np.float32),
        "sparse": csr_array(thin),
        "many": mixture(12_000, 2, 6, seed),
    }


def estimators(seed: int) -> dict[str, Callable[[], Any]]:
    """Every estimator, and every approximation that one of them can use."""
    named = {"random_state": seed}
    made: dict[str, Callable[[], Any]] = {
        "spectral": lambda: SpectralClustering(3, **named),
        "spectral ensemble": lambda: SpectralClustering(3, ensemble=4, **named),
        "kmeans": lambda: KernelKMeans(3, **named),
        "ksc": lambda: KernelSpectralClustering(3, **named),
        "ksc auto": lambda: KernelSpectralClustering("auto", **named),
        "stream": lambda: StreamingKernelKMeans(3, **named),
        "kpca": lambda: KernelPCA(3, **named),
        "features": lambda: KernelFeatures(rank=40, **named),
    }
    for name in (
        "neighbors",
        "landmarks",
        "binning",
        "quantized",
        "cholesky",
        "nystrom",
        "fourier",
    ):
        made[f"spectral {name}"] = lambda name=name: SpectralClustering(
            3, approximation=name, **named
        )
    return made


def answers(seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Name of a problem, and its labels or coordinates."""
    for data, X in rows(seed).items():
        for name, make in estimators(seed).items():
            if data == "many" and name not in ("spectral", "kmeans", "stream"):
                continue
            problem = f"{name}, {data}, seed {seed}"
            try:
                model = make().fit(X)
                if hasattr(model, "labels_"):
                    yield problem, model.labels_
                    yield f"{problem}, predict", model.predict(X[: X.shape[0] // 2])
                else:
                    yield problem, model.transform(X)
            except (ValueError, TypeError) as error:  # what it cannot take, it could not before
                yield problem, np.frombuffer(type(error).__name__.encode(), np.uint8)
    image = picture(seed)
    yield f"segment, seed {seed}", segment(image)
    yield f"segment 4, seed {seed}", segment(image, n_segments=4)
    yield f"segment quantized, seed {seed}", segment(image, 4, method="quantized")


def digests() -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            problem: hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest()[:16]
            for seed in SEEDS
            for problem, found in answers(seed)
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the digests here")
    parser.add_argument("--against", type=Path, help="compare with these")
    given = parser.parse_args()
    found = digests()
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    if given.against:
        before = json.loads(given.against.read_text())
        other = [problem for problem in before if found.get(problem) != before[problem]]
        print(f"{len(before) - len(other)} of {len(before)} answers have the same bits")
        if other:
            raise SystemExit("\n".join(["different:", *other]))


if __name__ == "__main__":
    main()
