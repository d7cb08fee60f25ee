"""KernelPCA against scikit-learn's (arpack, randomized), one thread."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA as PeerKernelPCA

from benchmarks.measure import data_folder, load, machine, timed, write
from mercer import KernelPCA, Quantized

GAMMA = 1 / (2 * 7.03**2)
N, K, RANK = 2000, 3, 142
REPEAT = 7
MANY = 50_000
LEAST_RATIO, MOST_ERROR, MOST_BYTES = 3.0, 1e-2, 10**9

METHODS: dict[str, Callable[[], Any]] = {
    "arpack": lambda: PeerKernelPCA(K, kernel="rbf", gamma=GAMMA, eigen_solver="arpack"),
    "randomized": lambda: PeerKernelPCA(
        K, kernel="rbf", gamma=GAMMA, eigen_solver="randomized", random_state=0
    ),
    "quantized": lambda: _ours("quantized", rank=RANK),
    "quantized, radius √52": lambda: _ours(Quantized(radius=float(np.sqrt(52)))),
    "quantized, radius √52, as sampled": lambda: _ours(
        Quantized(radius=float(np.sqrt(52)), refine=None)
    ),
    "nystrom": lambda: _ours("nystrom", rank=RANK),
    "cholesky": lambda: _ours("cholesky", rank=RANK),
}

MEMORY = """
import resource, sys, time
import numpy as np
from mercer import KernelPCA
with np.load(sys.argv[1]) as file:
    X = file["X"][:{many}].astype(np.float32)
X /= 255
start = time.process_time()
Z = KernelPCA({k}, gamma={gamma}, approximation="quantized", random_state=0).fit_transform(X)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(Z), time.process_time() - start, peak * (1 if sys.platform == "darwin" else 1024))
"""


def run(data: str | None) -> None:
    folder = data_folder(data)
    X, y = load(folder, "mnist")
    few = np.flatnonzero(y <= 1)[: 2 * N]
    train, test = X[few[:N]] / 255.0, X[few[N:]] / 255.0
    del X
    exact = PeerKernelPCA(K, kernel="rbf", gamma=GAMMA, eigen_solver="dense").fit(train)
    scores = exact.transform(train), exact.transform(test)
    rows = {}
    for name, make in METHODS.items():
        rows[name] = _measure(make, train, test, scores)
        print(name, rows[name]["fit_transform"]["best"], flush=True)
    result = {"machine": machine(), "methods": rows, "many": measure_many(folder)}
    result["aims"] = judge(result)
    write("speed-kpca", result, _table(result))


def measure_many(folder: Path) -> dict[str, float]:
    """50,000 rows in a process of their own: CPU seconds and the most memory it held."""
    program = MEMORY.format(many=MANY, k=K, gamma=GAMMA)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder / "mnist.npz")],
        capture_output=True,
        text=True,
        check=True,
    )
    n, seconds, peak = done.stdout.split()
    return {"rows": int(n), "seconds": float(seconds), "peak_bytes": int(peak)}


def misfit(S: np.ndarray, Z: np.ndarray) -> float:
    """‖S - Z Q‖² / ‖S‖² for the best linear map Q."""
    return float(((S - Z @ np.linalg.lstsq(Z, S, rcond=None)[0]) ** 2).sum() / (S**2).sum())


def judge(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What is aimed at, for the quantised kernel."""
    rows = result["methods"]
    ours, peer = rows["quantized"], rows["arpack"]
    ratios = [peer[what]["best"] / ours[what]["best"] for what in ("fit", "fit_transform")]
    sampled = rows["quantized, radius √52, as sampled"]
    quickest = peer["fit_transform"]["best"] / sampled["fit_transform"]["best"]
    worst = max(ours["errors"])
    peak = result["many"]["peak_bytes"]
    return [
        {"aim": "times faster, fit", "value": ratios[0], "met": ratios[0] >= LEAST_RATIO},
        {"aim": "times faster, fit_transform", "value": ratios[1], "met": ratios[1] >= LEAST_RATIO},
        {"aim": "error in and out of sample", "value": worst, "met": worst <= MOST_ERROR},
        {
            "aim": "times faster, fit_transform, as sampled",
            "value": quickest,
            "met": quickest >= LEAST_RATIO and max(sampled["errors"]) <= MOST_ERROR,
        },
        {"aim": f"bytes for {MANY:,} rows", "value": peak, "met": peak <= MOST_BYTES},
    ]


def _ours(approximation: Any, **size: int) -> KernelPCA:
    return KernelPCA(K, gamma=GAMMA, approximation=approximation, random_state=0, **size)


def _measure(
    make: Callable[[], Any], train: np.ndarray, test: np.ndarray, scores: Any
) -> dict[str, Any]:
    model, fit = timed(lambda: make().fit(train), repeat=REPEAT)
    _, both = timed(lambda: make().fit_transform(train), repeat=REPEAT)
    _, new = timed(lambda: model.transform(test), repeat=REPEAT)
    errors = [misfit(S, model.transform(X)) for S, X in zip(scores, (train, test), strict=True)]
    return {
        "fit": fit.to_dict(),
        "fit_transform": both.to_dict(),
        "transform": new.to_dict(),
        "errors": errors,
        "rank": getattr(getattr(model, "factor_", None), "rank", N),
    }


def _table(result: dict[str, Any]) -> str:
    rows = result["methods"]
    lines = [
        "# KernelPCA against scikit-learn",
        "",
        f"mnist digits 0 and 1, {N:,} rows × 784 (float64), {K} components, RBF γ = 1/(2·7.03²); "
        f"one thread, CPU milliseconds, best of {REPEAT}. Error: ‖S − ŜQ‖²/‖S‖² against the dense "
        "solution, after the best linear map. In brackets: arpack's time over ours.",
        "",
        "| method | rank | fit | fit_transform | transform of new rows | error in | error out |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        times = [
            f"{1e3 * row[what]['best']:.0f} "
            f"({rows['arpack'][what]['best'] / row[what]['best']:.1f}×)"
            for what in ("fit", "fit_transform", "transform")
        ]
        errors = " | ".join(f"{error:.1e}" for error in row["errors"])
        lines.append(f"| {name} | {row['rank']} | {' | '.join(times)} | {errors} |")
    many = result["many"]
    lines += [
        "",
        f"{many['rows']:,} rows of mnist (float32), rank 256: {many['seconds']:.1f} s, and "
        f"{many['peak_bytes'] / 1e6:.0f} MB at most in the whole process; the kernel matrix alone "
        f"would take {8 * many['rows'] ** 2 / 1e9:.0f} GB.",
        "",
        "The peers solve the whole problem; the quantised kernel an approximate one. Nyström and "
        "Cholesky factors see every row at O(n·rank²).",
        "",
        "| aim | measured | met |",
        "|---|---|---|",
        *(
            f"| {aim['aim']} | {aim['value']:.3g} | {'yes' if aim['met'] else '**no**'} |"
            for aim in result["aims"]
        ),
    ]
    return "\n".join(lines)
