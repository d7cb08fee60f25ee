"""Does `report_.trust` separate failures from good fits? `python -m benchmarks.trust [--data DIR]`.

What counts was written down before the thresholds: against the known classes, a fit is
  a failure  if ARI < 0.2, or n_clusters is off by a factor of three or more and ARI < 0.4;
  good       if ARI ≥ 0.4 and n_clusters is not so far off;
  undecided  otherwise: reported, and in no rate.
A hit is a failure graded poor, a false alarm a good fit graded poor. Thresholds and rules were set
on the calibration sets alone, and first confirmed on others (131 of 153 failures, 4 of 39 good
fits). Then one of them was looked at: covtype on all its rows was only graded fair. The calibration
sets have six more hits and no more alarms if borders are poor from 0.7 on, not 0.75, so that was
changed; for that number the confirmation is not blind.

Options: ``--part calibration|confirmation|cost``, ``--rows N`` (most rows of a set, default
20,000; the fits marked "all rows" take all).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.measure import RESULTS, data_folder, machine, write
from mercer import KernelKMeans, KernelSpectralClustering, SpectralClustering
from mercer.datasets import circles_and_gaussians, moons, rings, spirals

FAILED, GOOD, FAR = 0.2, 0.4, 3.0
METHODS: dict[str, Callable[..., Any]] = {
    "landmarks": lambda k, **p: SpectralClustering(k, random_state=0, **p),
    "spectral, cholesky": lambda k, **p: SpectralClustering(
        k, approximation="cholesky", random_state=0, **p
    ),
    "spectral, binning": lambda k, **p: SpectralClustering(
        k, approximation="binning", rank=128, random_state=0, **p
    ),
    "kernel k-means": lambda k, **p: KernelKMeans(k, random_state=0, **p),
    "KSC": lambda k, **p: KernelSpectralClustering(k, random_state=0, **p),
}
WITH_GAMMA = ("spectral, cholesky", "kernel k-means")
SPARSE = ("landmarks", "kernel k-means", "KSC")

CALIBRATION = ("pendigits", "satimage", "letter", "shuttle")
CONFIRMATION = ("mnist", "covtype_ramp92962", "ijcnn1", "news20")
WHOLE = ("mnist", "covtype_ramp92962", "ijcnn1")  # by landmarks with all rows, too


def generated(part: str) -> dict[str, tuple[Any, Any]]:
    """Shapes and blobs; the confirming ones are other shapes, sizes and seeds."""
    if part == "calibration":
        rng = np.random.default_rng(9)
        return {
            "blobs, 2-d": make_blobs(4000, 2, centers=8, cluster_std=0.7, random_state=1),
            "blobs, 2-d, overlapping": make_blobs(
                4000, 2, centers=8, cluster_std=3.0, random_state=1
            ),
            "blobs, 10-d": make_blobs(4000, 10, centers=6, cluster_std=2.0, random_state=2),
            "blobs, 10-d, overlapping": make_blobs(
                4000, 10, centers=6, cluster_std=8.0, random_state=2
            ),
            "blobs, 100-d": make_blobs(4000, 100, centers=5, random_state=3),
            "moons": moons(3000, noise=0.08, random_state=0),
            "rings": rings(5000, random_state=0),
            "a uniform square": (rng.random((4000, 2)), rng.integers(0, 5, 4000)),
            "one Gaussian, 20-d": (rng.normal(size=(4000, 20)), rng.integers(0, 5, 4000)),
        }
    rng = np.random.default_rng(77)
    return {
        "blobs, 5-d": make_blobs(6000, 5, centers=12, cluster_std=1.5, random_state=11),
        "blobs, 5-d, overlapping": make_blobs(6000, 5, centers=7, cluster_std=5.0, random_state=12),
        "blobs, 100-d, 10 of them": make_blobs(5000, 100, centers=10, random_state=13),
        "spirals": spirals(6000, random_state=14),
        "circles and Gaussians": circles_and_gaussians(6000, random_state=15),
        "a uniform cube": (rng.random((5000, 3)), rng.integers(0, 4, 5000)),
        "one Gaussian, 50-d": (rng.normal(size=(3000, 50)), rng.integers(0, 6, 3000)),
    }


def load(folder: Path, name: str, most: int | None) -> tuple[Any, Any]:
    """One set, or a seeded sample of its rows."""
    with np.load(folder / f"{name}.npz") as file:
        y = file["y"]
        if "X" in file:
            X: Any = file["X"].astype(np.float64)
        else:
            X = sp.csr_array(
                (file["data"].astype(np.float64), file["indices"], file["indptr"]),
                shape=tuple(file["shape"]),
            )
    if most is None or X.shape[0] <= most:
        return X, y
    ids = np.sort(np.random.default_rng(0).choice(X.shape[0], most, replace=False))
    return X[ids], y[ids]


def settings(method: str, k: int, gamma: float | None) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """What is tried beside the defaults: too few and too many clusters, wrong bandwidths."""
    if max(2, k // 3) * FAR <= k:
        yield "K / 3", max(2, k // 3), {}
    yield "4 K", 4 * k, {}
    if method in WITH_GAMMA and gamma is not None:
        yield "100 γ", k, {"gamma": 100 * gamma}
        yield "γ / 100", k, {"gamma": gamma / 100}
        yield "γ = 1", k, {"gamma": 1.0}


def truth(ari: float, k: int, classes: int) -> str:
    is_far = max(k / classes, classes / k) >= FAR
    if ari < FAILED or (is_far and ari < GOOD):
        return "failure"
    return "good" if ari >= GOOD and not is_far else "undecided"


def fit(name: str, method: str, what: str, k: int, X: Any, y: Any, **params: Any) -> Any:
    """The fitted model, and a row of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[method](k, **params).fit(X)
    report, ari = model.report_, adjusted_rand_score(y, model.labels_)
    seconds = {stage.name: stage.cpu_seconds for stage in report.stages}
    return model, {
        "data": name,
        "method": method,
        "setting": what,
        "n_clusters": k,
        "ari": ari,
        "nmi": normalized_mutual_info_score(y, model.labels_),
        "truth": truth(ari, k, len(np.unique(y))),
        "grade": report.trust.grade,
        "warned": bool(report.warnings),
        "evidence": {e.name: e.value for e in report.trust.evidence},
        "poor": [e.name for e in report.trust.evidence if e.grade == "poor"],
        "trust_seconds": seconds["trust"],
        "fit_seconds": sum(seconds.values()),
    }


def tried(name: str, X: Any, y: Any) -> Iterator[dict[str, Any]]:
    """All methods and settings on one set."""
    classes = len(np.unique(y))
    for method in SPARSE if sp.issparse(X) else METHODS:
        model, row = fit(name, method, "defaults", classes, X, y)
        yield row
        gamma = getattr(model.kernel_, "gamma", None)
        for what, k, params in settings(method, classes, gamma):
            yield fit(name, method, what, k, X, y, **params)[1]


def run_part(part: str, folder: Path, most: int, result: dict[str, Any]) -> None:
    rows: list[dict[str, Any]] = result.setdefault(part, [])
    rows.clear()
    result.setdefault("most_rows", {})[part] = most
    for name in CALIBRATION if part == "calibration" else CONFIRMATION:
        rows += tried(name, *load(folder, name, most))
        if name in WHOLE:
            X, y = load(folder, name, None)
            rows.append(fit(name, "landmarks", "all rows", len(np.unique(y)), X, y)[1])
        publish(result)
    for name, (X, y) in generated(part).items():
        rows += tried(name, X, y)
        publish(result)


def run_cost(folder: Path, result: dict[str, Any]) -> None:
    """CPU seconds of the diagnosis beside those of the fit, least of three."""
    digits = load(folder, "mnist", None)[0].astype(np.float32)
    many, _ = rings(1_000_000, random_state=0)
    costs: list[dict[str, Any]] = result.setdefault("cost", [])
    costs.clear()
    for name, X, k in (("mnist, 70,000 × 784", digits, 10), ("rings, 1,000,000 × 2", many, 3)):
        for method in ("landmarks", "kernel k-means", "KSC"):
            runs = []
            for _ in range(3):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    stages = METHODS[method](k).fit(X).report_.stages
                seconds = {stage.name: stage.cpu_seconds for stage in stages}
                runs.append((seconds["trust"], sum(seconds.values())))
            trust, whole = min(run[0] for run in runs), min(run[1] for run in runs)
            costs.append({"data": name, "method": method, "trust": trust, "fit": whole})
            publish(result)


def rates(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Shares of failures and of good fits that were graded poor, or not good."""
    counts: dict[str, Any] = {}
    for kind in ("failure", "good", "undecided"):
        of_kind = [row for row in rows if row["truth"] == kind]
        counts[kind] = {
            "fits": len(of_kind),
            "poor": sum(row["grade"] == "poor" for row in of_kind),
            "fair": sum(row["grade"] == "fair" for row in of_kind),
        }
    coarse = [row for row in rows if row["truth"] == "failure" and row["setting"] == "K / 3"]
    counts["failure by too few clusters"] = {
        "fits": len(coarse),
        "poor": sum(row["grade"] == "poor" for row in coarse),
        "fair": sum(row["grade"] == "fair" for row in coarse),
    }
    return counts


def publish(result: dict[str, Any]) -> None:
    parts = [part for part in ("calibration", "confirmation") if result.get(part)]
    result["rates"] = {part: rates(result[part]) for part in parts}
    lines = ["# How far `report_.trust` can be trusted", "", *_criterion(), *_rates(result)]
    most = result.get("most_rows", {})
    lines += [line for part in parts for line in _fits(part, result[part], most.get(part))]
    if result.get("cost"):
        lines += _costs(result["cost"])
    write("trust", result, "\n".join(lines))


def _criterion() -> list[str]:
    return [
        "A fit is a *failure* if its ARI against the known classes is below 0.2, or if n_clusters "
        "is off by a factor of three or more and ARI is below 0.4; *good* if ARI is at least 0.4 "
        "and n_clusters is not so far off; *undecided* otherwise. Thresholds were set on the "
        "calibration sets alone, but for the last digit of one (see benchmarks/trust.py). A clean "
        "cut into too few clusters is a failure by this count, though each of its "
        "clusters may be a true union of classes: they are counted apart.",
        "",
    ]


def _rates(result: dict[str, Any]) -> list[str]:
    lines = ["| sets | fits | graded poor | graded fair |", "|---|---|---|---|"]
    for part, counts in result["rates"].items():
        for kind, c in counts.items():
            share = f"{c['poor']} ({100 * c['poor'] / c['fits']:.0f} %)" if c["fits"] else "-"
            lines.append(f"| {part}: {kind} | {c['fits']} | {share} | {c['fair']} |")
    return [*lines, ""]


def _fits(part: str, rows: list[dict[str, Any]], most: int | None) -> list[str]:
    limit = f"At most {most:,} rows of each set." if most else ""
    lines = [
        f"## {part.capitalize()}",
        "",
        limit,
        "",
        "| data | method | setting | K | ARI | NMI | truth | grade | poor evidence |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['data']} | {r['method']} | {r['setting']} | {r['n_clusters']} | {r['ari']:.2f} "
            f"| {r['nmi']:.2f} | {r['truth']} | {r['grade']} | {', '.join(r['poor'])} |"
        )
    return [*lines, ""]


def _costs(costs: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Cost",
        "",
        "CPU seconds, least of three runs; the diagnosis is part of the fit.",
        "",
        "| data | method | diagnosis | whole fit | share |",
        "|---|---|---|---|---|",
    ]
    for c in costs:
        lines.append(
            f"| {c['data']} | {c['method']} | {c['trust']:.3f} | {c['fit']:.2f} "
            f"| {100 * c['trust'] / c['fit']:.1f} % |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust", description=__doc__)
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    parser.add_argument("--part", choices=("calibration", "confirmation", "cost"))
    parser.add_argument("--rows", type=int, default=20_000)
    arguments = parser.parse_args()
    folder, started = data_folder(arguments.data), time.perf_counter()
    kept = RESULTS / "trust.json"
    result: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    result["machine"] = machine()
    for part in [arguments.part] if arguments.part else ["calibration", "confirmation", "cost"]:
        if part == "cost":
            run_cost(folder, result)
        else:
            run_part(part, folder, arguments.rows, result)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
