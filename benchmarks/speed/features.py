"""KernelFeatures against scikit-learn's Nystroem and RBFSampler at equal rank, one thread."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.measure import data_folder, load, machine, timed, write
from mercer import KernelFeatures

SETS = (("pendigits", None), ("shuttle", None), ("mnist", 30_000))
RANK = 256
SEEDS = range(5)  # of the error; seed 0 is timed
SAMPLE = 2000  # rows whose kernel matrix measures the error
GOAL = 0.7  # the error of random pivots over Nystroem's
EQUAL = 1.05  # errors within this ratio count as equal

OURS = ("cholesky", "nystrom", "fourier")
YARDSTICK = {"cholesky": "Nystroem", "nystrom": "Nystroem", "fourier": "RBFSampler"}
METHODS = (*OURS, "Nystroem", "RBFSampler")


def run(data: str | None, *, sets: tuple[tuple[str, int | None], ...] = SETS) -> None:
    folder = data_folder(data)
    rows = []
    for name, stop in sets:
        X = load(folder, name)[0][:stop]
        gamma = _gamma(X)
        for dtype in (np.float64, np.float32):
            rows.append({"data": name, **compare(X.astype(dtype), gamma)})
            print(name, np.dtype(dtype).name, flush=True)
    bars = [bar for dtype in ("float64", "float32") for bar in judge(rows, dtype)]
    write(
        "speed-features", {"machine": machine(), "problems": rows, "bars": bars}, _table(rows, bars)
    )


def compare(X: np.ndarray, gamma: float) -> dict[str, Any]:
    """Seconds, memory and error of each method on these rows."""
    few = np.sort(np.random.default_rng(0).choice(len(X), SAMPLE, replace=False))
    K = rbf_kernel(X[few].astype(np.float64), gamma=gamma)
    methods = {name: _measure(name, X, gamma, few, K) for name in METHODS}
    return {"shape": X.shape, "dtype": str(X.dtype), "gamma": gamma, "methods": methods}


def make(name: str, gamma: float, seed: int) -> Any:
    """The transformers, with the same kernel and number of features."""
    if name == "Nystroem":
        return Nystroem(gamma=gamma, n_components=RANK, random_state=seed)
    if name == "RBFSampler":
        return RBFSampler(gamma=gamma, n_components=RANK, random_state=seed)
    return KernelFeatures(gamma=gamma, approximation=name, rank=RANK, random_state=seed)


def judge(rows: list[dict[str, Any]], dtype: str) -> list[dict[str, Any]]:
    """The bars: less error in no more time, or no more time at equal error."""
    methods = [row["methods"] for row in rows if row["dtype"] == dtype]
    bars = []
    for name, most in (("cholesky", GOAL), ("nystrom", EQUAL)):
        error = float(np.mean([m[name]["error"] / m["Nystroem"]["error"] for m in methods]))
        seconds = [sum(m[n]["seconds"]["best"] for m in methods) for n in (name, "Nystroem")]
        ratio = seconds[0] / seconds[1]
        is_met = {"error": error <= most, "time": ratio <= 1.0}
        bars.append(
            {
                "dtype": dtype,
                "approximation": name,
                "error_ratio": error,
                "error_bar": most,
                "time_ratio": ratio,
                "is_met": is_met,
            }
        )
    return bars


def _gamma(X: np.ndarray) -> float:
    """One over the squared median distance, as in the other benchmarks."""
    few = X[np.random.default_rng(0).choice(len(X), 1000, replace=False)]
    return float(1 / np.median(pdist(few)) ** 2)


def _measure(
    name: str, X: np.ndarray, gamma: float, few: np.ndarray, K: np.ndarray
) -> dict[str, Any]:
    def features(seed: int = 0) -> np.ndarray:
        return make(name, gamma, seed).fit_transform(X)

    F, timing = timed(features)
    with threadpool_limits(1):
        errors = [_error(features(seed)[few], K) for seed in SEEDS]
        peak = _peak(features)
    return {
        "seconds": timing.to_dict(),
        "peak_mb": peak / 1e6,
        "features": F.shape[1],
        "error": float(np.mean(errors)),
        "errors": errors,
    }


def _error(F: np.ndarray, K: np.ndarray) -> float:
    """‖K - F Fᵀ‖ / ‖K‖ (Frobenius), in float64."""
    F = F.astype(np.float64)
    return float(np.linalg.norm(K - F @ F.T) / np.linalg.norm(K))


def _peak(function: Callable[[], Any]) -> int:
    """The most bytes that the call held at once, its result among them."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _table(rows: list[dict[str, Any]], bars: list[dict[str, Any]]) -> str:
    head = ["data", "", *(f"`{name}`" for name in OURS), "Nystroem", "RBFSampler"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        n, d = row["shape"]
        title = f"{row['data']} {n:,}×{d} {row['dtype']}"
        for what, show in (("CPU s", _seconds), ("error", _relative_error), ("MB", _memory)):
            cells = " | ".join(show(row["methods"], name) for name in METHODS)
            lines.append(f"| {title} | {what} | {cells} |")
            title = ""
    return "\n".join(
        [
            "# KernelFeatures against scikit-learn",
            "",
            f"`fit_transform` to {RANK} features, RBF at the median distance, one thread, CPU "
            "seconds, best of 3 (the first call apart, in brackets: ours may compile). Error: "
            f"‖K − FFᵀ‖/‖K‖ on {SAMPLE:,} rows, mean of seeds 0–4. MB: the most that one call "
            "holds, its result among it (as tracemalloc sees it). In brackets behind errors of "
            "ours: over that of Nystroem (`fourier`: of RBFSampler).",
            "",
            *lines,
            "",
            "## Bars",
            "",
            "Error: mean over the data of ours over Nystroem's. Time: the sum over the data.",
            "",
            "| input | approximation | error ratio | wanted | time ratio | wanted | met |",
            "|---|---|---|---|---|---|---|",
            *map(_bar_line, bars),
        ]
    )


def _seconds(methods: dict[str, Any], name: str) -> str:
    seconds = methods[name]["seconds"]
    return f"{seconds['best']:.2f} ({seconds['first']:.2f})"


def _relative_error(methods: dict[str, Any], name: str) -> str:
    error = methods[name]["error"]
    if name not in YARDSTICK:
        return f"{error:.4f}"
    return f"{error:.4f} ({error / methods[YARDSTICK[name]]['error']:.2f}×)"


def _memory(methods: dict[str, Any], name: str) -> str:
    return f"{methods[name]['peak_mb']:.0f}"


def _bar_line(bar: dict[str, Any]) -> str:
    met = bar["is_met"]
    verdict = "yes" if all(met.values()) else "**no**: " + ", ".join(k for k in met if not met[k])
    return (
        f"| {bar['dtype']} | `{bar['approximation']}` | {bar['error_ratio']:.2f} "
        f"| ≤ {bar['error_bar']:.2f} | {bar['time_ratio']:.2f} | ≤ 1 | {verdict} |"
    )
