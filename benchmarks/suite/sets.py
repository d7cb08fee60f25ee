"""The sets: generated shapes, real tables, larger real sets, and pairs of Gaussians.

suite.npz and tables.npz have keys ``NAME|X``, ``NAME|y0``, ``NAME|y1`` … (several references per
set; rows of label 0 are noise and not scored). A set is a name and how to read it, so that worker
processes read only what they fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.measure import load
from mercer.datasets import gaussian_pair

GROUPS = ("suite", "tables", "real", "pairs")
MOST_ROWS = 10_000  # of a set of suite.npz: three larger ones are left out
REAL = {"pendigits": np.float64, "letter": np.float64, "satimage": np.float64, "mnist": np.float32}
PAIR_COLUMNS = (1, 2, 4, 8, 16, 32, 64, 128)
PAIR_SPREADS = (1, 3, 8)
FEW_SEEDS = 3  # of the pairs: each of their seeds is another set


@dataclass(frozen=True)
class Set:
    """A set to cluster."""

    group: str
    name: str
    most_seeds: int | None = None
    seeded: bool = False  # other rows for each seed

    @property
    def title(self) -> str:
        return f"{self.group}: {self.name}"

    def read(self, folder: Path | None, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Rows and references."""
        if self.group == "pairs":
            shape, columns, spread = self.name.split()
            X, y = gaussian_pair(
                n_features=int(columns.removeprefix("d=")),
                spread=float(spread.removeprefix("spread=")),
                shape=shape,  # type: ignore[arg-type]
                random_state=seed,
            )
            return X, [y + 1]
        if folder is None:
            raise SystemExit(f"{self.title} is read from files: --data DIR or MERCER_DATA=DIR")
        if self.group == "real":
            X, y = load(folder, self.name, REAL[self.name])
            return X, [np.unique(y, return_inverse=True)[1] + 1]
        with np.load(folder / f"{self.group}.npz") as data:
            keys = sorted(key for key in data.files if key.startswith(f"{self.name}|y"))
            return np.asarray(data[f"{self.name}|X"], np.float64), [data[key] for key in keys]


def sets_of(group: str, folder: Path | None) -> list[Set]:
    """Every set of a group."""
    if group == "pairs":
        return [
            Set(group, f"{shape} d={columns} spread={spread}", FEW_SEEDS, seeded=True)
            for shape in ("normal", "hub")
            for spread in PAIR_SPREADS
            for columns in PAIR_COLUMNS
        ]
    if group == "real":
        return [Set(group, name) for name in REAL]
    if folder is None:
        raise SystemExit("say where the data are: --data DIR or MERCER_DATA=DIR")
    with np.load(folder / f"{group}.npz") as data:
        names = sorted({key.partition("|")[0] for key in data.files})
        return [Set(group, name) for name in names if len(data[f"{name}|X"]) <= MOST_ROWS]


def n_classes(y: np.ndarray) -> int:
    """Clusters of a reference, noise apart."""
    return len(np.setdiff1d(y, [0]))


def numbers_of_clusters(references: list[np.ndarray]) -> list[int]:
    """The distinct numbers of clusters among the references: a set is fitted once for each."""
    return sorted({n_classes(y) for y in references})


def score(labels: np.ndarray, references: list[np.ndarray], k: int) -> dict[str, Any]:
    """ARI and NMI with the reference of k clusters that agrees best."""
    scored = [(y[y != 0], labels[y != 0]) for y in references if n_classes(y) == k]
    ari, pair = max(
        ((float(adjusted_rand_score(*pair)), pair) for pair in scored), key=lambda each: each[0]
    )
    return {"ari": round(ari, 5), "nmi": round(float(normalized_mutual_info_score(*pair)), 5)}
