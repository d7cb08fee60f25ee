"""Blocked incomplete Cholesky against the textbook loop: one thread, CPU time, error beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist

from benchmarks.measure import data_folder, load, machine, timed, write
from mercer import RBF, IncompleteCholesky
from mercer.datasets import spirals
from mercer.factors.base import as_sample

VARIANTS = [
    ("greedy", np.float64),
    ("random", np.float64),
    ("greedy", np.float32),
    ("random", np.float32),
]


def textbook_cholesky(X: np.ndarray, gamma: float, rank: int) -> np.ndarray:
    """The yardstick: greedy pivots, one column per step, numpy (paper 001, Algorithm 1)."""
    norms = np.einsum("ij,ij->i", X, X)
    F, residual = np.empty((len(X), rank), order="F"), np.ones(len(X))
    for r in range(rank):
        p = residual.argmax()
        column = np.exp(-gamma * np.maximum(norms + norms[p] - 2 * (X @ X[p]), 0.0))
        F[:, r] = (column - F[:, :r] @ F[p, :r]) / np.sqrt(residual[p])
        residual = np.maximum(residual - F[:, r] ** 2, 0.0)
        residual[p] = 0.0
    return F


def run(data: str | None) -> None:
    folder = data_folder(data)
    rows = [_compare(*problem) for problem in _problems(folder)]
    ratios = {
        f"{pivots} {np.dtype(dtype).name}": float(
            np.exp(
                np.mean([np.log(row[f"{pivots} {np.dtype(dtype).name}"]["ratio"]) for row in rows])
            )
        )
        for pivots, dtype in VARIANTS
    }
    result = {"machine": machine(), "problems": rows, "geometric_mean_ratio": ratios}
    write("speed-cholesky", result, _table(rows, ratios))


def _problems(folder: Path) -> list[tuple[str, np.ndarray, float, int]]:
    """Name, rows, gamma, rank. Real data: one over the squared median distance. Spirals: 1/0.006,
    the bandwidth of paper 004, to which the rank of 115 belongs."""
    problems = [("spirals", spirals(100_000, random_state=0)[0], 1 / 0.006, 115)]
    for name, stop in (("pendigits", None), ("shuttle", None), ("mnist", 30_000)):
        X = load(folder, name)[0][:stop]
        sample = X[np.random.default_rng(0).choice(len(X), 1000, replace=False)]
        problems.append((name, X, 1 / np.median(pdist(sample)) ** 2, 256))
    return problems


def _compare(name: str, X: np.ndarray, gamma: float, rank: int) -> dict:
    F, textbook = timed(lambda: textbook_cholesky(X, gamma, rank))
    trace = _trace(F)
    row = {"data": name, "shape": X.shape, "rank": rank, "gamma": gamma}
    row["textbook"] = {"seconds": textbook.to_dict(), "relative_trace": trace / len(X)}
    for pivots, dtype in VARIANTS:
        sample = as_sample(RBF(gamma), X.astype(dtype))
        approximation = IncompleteCholesky(rank, pivots=pivots)
        factor, timing = timed(
            lambda approximation=approximation, sample=sample: approximation.fit(
                RBF(gamma), sample, rng=np.random.default_rng(0)
            )
        )
        row[f"{pivots} {np.dtype(dtype).name}"] = {
            "seconds": timing.to_dict(),
            "ratio": textbook.best / timing.best,
            "trace_over_greedy": _trace(factor.training_rows) / trace,
            "rank": factor.rank,
        }
        print(name, pivots, np.dtype(dtype).name, row[f"{pivots} {np.dtype(dtype).name}"])
    return row


def _trace(F: np.ndarray) -> float:
    """trace(K - F Fᵀ) of a kernel with k(x, x) = 1, in float64."""
    return float(
        len(F)
        - sum((F[a : a + 8192].astype(np.float64) ** 2).sum() for a in range(0, len(F), 8192))
    )


def _table(rows: list[dict], ratios: dict[str, float]) -> str:
    names = list(ratios)
    head = "| data | rank | textbook | " + " | ".join(names) + " |\n|" + "---|" * (3 + len(names))
    lines = [
        f"| {row['data']} {row['shape'][0]:,}×{row['shape'][1]} | {row['rank']} "
        f"| {row['textbook']['seconds']['best']:.2f} s | "
        + " | ".join(
            f"{row[n]['ratio']:.1f}× (trace {row[n]['trace_over_greedy']:.2f})" for n in names
        )
        + " |"
        for row in rows
    ]
    mean = "| geometric mean | | | " + " | ".join(f"**{ratios[n]:.1f}×**" for n in names) + " |"
    return (
        "# Incomplete Cholesky against the textbook loop\n\n"
        "One thread, CPU seconds, best of 3; `trace` is trace(K − FFᵀ) relative to the textbook's "
        "greedy factor, recomputed in float64. Ratios are against the float64 textbook.\n\n"
        + "\n".join([head, *lines, mean])
    )
