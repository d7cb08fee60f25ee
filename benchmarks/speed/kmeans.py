"""KernelKMeans against scikit-learn's KMeans on MNIST: one thread, sums over seeds 0–4."""

from __future__ import annotations

import time

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks.measure import data_folder, load, machine, write
from mercer import KernelKMeans
from mercer.metrics import normalized_mutual_info

SEEDS = range(5)


def run(data: str | None) -> None:
    X, y = load(data_folder(data), "mnist", np.float32)
    X, y = np.ascontiguousarray(X[:60_000, :780]), y[:60_000]
    methods = {
        "KernelKMeans(10, rank=256)": lambda seed: KernelKMeans(10, rank=256, random_state=seed),
        "sklearn KMeans(10, n_init=1)": lambda seed: KMeans(10, n_init=1, random_state=seed),
    }
    with threadpool_limits(1):
        KernelKMeans(10, rank=256, random_state=0).fit(X[:2000])  # compile
        rows = {name: [_one(make(seed), X, y) for seed in SEEDS] for name, make in methods.items()}
    seconds = {name: sum(r["seconds"] for r in runs) for name, runs in rows.items()}
    nmi = {name: float(np.mean([r["nmi"] for r in runs])) for name, runs in rows.items()}
    ours, theirs = methods
    ratio = seconds[ours] / seconds[theirs]
    table = "\n".join(
        [
            "# KernelKMeans against KMeans on MNIST (60,000 × 780, float32)",
            "",
            f"One thread, CPU seconds summed over seeds 0–4, without compiling. "
            f"Ratio **{ratio:.2f}**.",
            "",
            "| method | seconds | NMI (mean) |",
            "|---|---|---|",
            *(f"| {name} | {seconds[name]:.1f} | {nmi[name]:.3f} |" for name in methods),
        ]
    )
    result = {"machine": machine(), "runs": rows, "seconds": seconds, "nmi": nmi, "ratio": ratio}
    write("speed-kmeans", result, table)


def _one(model, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    start = time.process_time()
    labels = model.fit(X).labels_
    return {
        "seconds": time.process_time() - start,
        "nmi": normalized_mutual_info(y, labels),
        "n_iter": int(model.n_iter_),
    }
