"""The sets: those of benchmarks/suite, 64 others, and 8 that have no clusters at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

from benchmarks.measure import load
from benchmarks.suite.sets import sets_of
from mercer import datasets

REAL = ("pendigits", "letter", "satimage", "shuttle", "mnist", "covtype_ramp92962")
REAL_ROWS = 4000
BLOBS = (  # rows, columns, clusters, their spread
    *((2000, 2, 20, 0.4), (2000, 2, 8, 1.0), (3000, 10, 6, 2.0), (3000, 10, 12, 3.0)),
    *((4000, 50, 30, 3.0), (1500, 3, 15, 0.8), (5000, 5, 40, 1.0), (1000, 2, 3, 1.0)),
    *((1000, 20, 5, 4.0), (2000, 2, 50, 0.25), (3000, 16, 100, 2.0)),
)
NOISE_CLUSTERS = (2, 4, 7)

Named = tuple[str, np.ndarray, list[np.ndarray]]  # a name, rows, references (0 is noise)


def sets(group: str, folder: Path) -> Iterator[Named]:
    """Every set of a group: suite, tables, others or noise."""
    if group in ("suite", "tables"):
        for one in sets_of(group, folder):
            yield (one.name, *one.read(folder, 0))
    elif group == "others":
        for name, (X, y) in _others(folder):
            yield name, np.asarray(X, np.float64), [np.unique(y, return_inverse=True)[1] + 1]
    else:
        for name, X in _noise():
            yield name, X, []


def _others(folder: Path) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    for shape in ("normal", "hub"):
        for d in (2, 8, 32, 128):
            for spread in (1.0, 3.0, 8.0):
                pair = datasets.gaussian_pair(
                    n_features=d,
                    spread=spread,
                    shape=shape,  # type: ignore[arg-type]
                    random_state=5,
                )
                yield f"pair {shape} d={d} spread={spread:.0f}", pair
    rng = np.random.default_rng(0)
    for name in REAL:
        X, y = load(folder, name)
        ids = np.sort(rng.choice(len(X), REAL_ROWS, replace=False))
        yield f"{name}, {REAL_ROWS:,} rows", (X[ids][:, X[ids].std(axis=0) > 0], y[ids])
    for seed, (n, d, k, std) in enumerate(BLOBS):
        blobs = make_blobs(n, d, centers=k, cluster_std=std, random_state=seed)
        yield f"blobs {n} × {d}, {k} of spread {std}", blobs
    for n in (300, 1000, 5000):
        yield f"rings {n}", datasets.rings(n, random_state=1)
        yield f"moons {n}", datasets.moons(n, noise=0.08, random_state=1)
        yield f"spirals {n}", datasets.spirals(n, random_state=1)
    yield "circles and Gaussians", datasets.circles_and_gaussians(3000, random_state=1)
    yield "parabolas", datasets.parabolas(2000, random_state=1)
    yield "zigzag", datasets.zigzag(2000, random_state=1)
    yield "ring and core", datasets.ring_and_core(2000, random_state=1)
    for seed in range(10):
        yield f"stretched blobs {seed}", _stretched(np.random.default_rng(100 + seed))


def _stretched(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Gaussians of unequal sizes, spreads and directions."""
    k, d = int(rng.integers(3, 12)), int(rng.choice([2, 3, 6, 12]))
    parts, classes = [], []
    for c in range(k):
        n = int(rng.integers(40, 600))
        A = rng.normal(size=(d, d)) * rng.uniform(0.2, 1.2) / np.sqrt(d) * 1.5
        parts.append(rng.normal(size=(n, d)) @ A + rng.uniform(-6, 6, d))
        classes.append(np.full(n, c))
    return np.vstack(parts), np.concatenate(classes)


def _noise() -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    yield "a square", rng.random((1500, 2))
    yield "a cube", rng.random((3000, 3))
    yield "one Gaussian, d=2", rng.normal(size=(1500, 2))
    yield "one Gaussian, d=10", rng.normal(size=(2000, 10))
    yield "one Gaussian, d=50", rng.normal(size=(1500, 50))
    yield "a line", np.c_[rng.random(1200), 0.02 * rng.normal(size=1200)]
    yield "a stretched Gaussian", rng.normal(size=(2000, 5)) * [4, 2, 1, 1, 0.5]
    yield "Student's t, d=4", rng.standard_t(3, size=(1500, 4))
