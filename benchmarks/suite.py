"""A clusterer on many small sets: `python -m benchmarks.suite kernel-kmeans [--data DIR]`.

Reads suite.npz and tables.npz (keys ``NAME|X``, ``NAME|y0``, ``NAME|y1`` …; rows of label 0 are
noise and not scored). Each set of at most 10,000 rows is fitted once per distinct number of
clusters among its references; a fit's score is its largest adjusted Rand index with a reference of
that number, a set's score the largest over those numbers, averaged over seeds.

Options: ``--seeds N`` (default 5), ``--before FILE`` (a result of an earlier version, whose column
is put beside the new one; by default the one that is replaced keeps its "before").
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.measure import RESULTS, data_folder, machine, write
from mercer import KernelKMeans, KernelSpectralClustering, SpectralClustering

MOST_ROWS = 10_000
LOST = 0.05  # a set that falls by more is named
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "kernel-kmeans": KernelKMeans,
    "spectral": SpectralClustering,
    "ksc": KernelSpectralClustering,
}


def sets(folder: Path) -> Iterator[tuple[str, np.ndarray, list[np.ndarray]]]:
    """Name, rows and references of each set."""
    for file in ("suite", "tables"):
        with np.load(folder / f"{file}.npz") as data:
            for name in sorted({key.partition("|")[0] for key in data.files}):
                X = np.asarray(data[f"{name}|X"], np.float64)
                keys = sorted(key for key in data.files if key.startswith(f"{name}|y"))
                if len(X) <= MOST_ROWS:
                    yield f"{file}: {name}", X, [data[key] for key in keys]


def n_classes(y: np.ndarray) -> int:
    """Clusters of a reference, noise apart."""
    return len(np.setdiff1d(y, [0]))


def score(labels: np.ndarray, references: list[np.ndarray], k: int) -> float:
    """The largest ARI with a reference of k clusters."""
    return max(
        adjusted_rand_score(y[y != 0], labels[y != 0]) for y in references if n_classes(y) == k
    )


def fitted_scores(make: Callable[..., Any], X: Any, references: Any, seeds: int) -> list[float]:
    """The set's score for each seed."""
    numbers = sorted({n_classes(y) for y in references})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            max(score(make(k, random_state=s).fit(X).labels_, references, k) for k in numbers)
            for s in range(seeds)
        ]


def table(title: str, rows: dict[str, dict[str, Any]]) -> str:
    """Markdown: the means, what fell, and every set."""
    suite = [row for name, row in rows.items() if name.startswith("suite")]
    tables = [row for name, row in rows.items() if name.startswith("tables")]
    lines = [f"# {title} with its defaults, mean ARI over seeds", ""]
    lines += ["| sets | before | now |", "|---|---|---|"]
    for what, some in ((f"suite, {len(suite)} sets", suite), (f"{len(tables)} tables", tables)):
        old = [row["before"] for row in some if row["before"] is not None]
        before = f"{np.mean(old):.3f}" if old else "–"
        lines.append(f"| {what} | {before} | {np.mean([row['now'] for row in some]):.3f} |")
    fell = [
        name
        for name, row in rows.items()
        if row["before"] is not None and row["now"] < row["before"] - LOST
    ]
    lines += ["", f"More than {LOST} below: {', '.join(fell) or 'none'}.", ""]
    lines += ["| set | before | now |", "|---|---|---|"]
    for name, row in rows.items():
        before = "–" if row["before"] is None else f"{row['before']:.3f}"
        lines.append(f"| {name} | {before} | {row['now']:.3f} |")
    return "\n".join(lines)


def before(path: Path) -> dict[str, float]:
    """Scores of the version to compare with, where there is one."""
    if not path.exists():
        return {}
    rows = json.loads(path.read_text())["sets"]
    return {
        name: row["now"] if row["before"] is None else row["before"] for name, row in rows.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("estimator", choices=sorted(ESTIMATORS))
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    name = f"suite-{options.estimator}"
    earlier = before(options.before or RESULTS / f"{name}.json")
    make = ESTIMATORS[options.estimator]
    rows = {}
    for title, X, references in sets(data_folder(options.data)):
        scores = fitted_scores(make, X, references, options.seeds)
        rows[title] = {
            "before": earlier.get(title),
            "now": float(np.mean(scores)),
            "scores": scores,
        }
        print(f"{title}: {rows[title]['now']:.3f}", flush=True)
    result = {"machine": machine(), "seeds": options.seeds, "sets": rows}
    write(name, result, table(make.__name__, rows))


if __name__ == "__main__":
    main()
