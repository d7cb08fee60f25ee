"""Three numbers of each paper's page again, in plain numpy and scikit-learn, no import of mercer.

`python -m benchmarks.independent [--data DIR]` prints each number, what the page's file has, and
whether they agree within the stated spread; it ends with status 1 where one does not. Written from
the papers' formulas. Files measured on fewer rows (`-quick`) are not read.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.decomposition import KernelPCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, pairwise_distances

RESULTS = Path(__file__).parent / "results"
Check = tuple[str, float, float, float]  # what, here, the page's, the largest difference


def accuracy(y: np.ndarray, labels: np.ndarray) -> float:
    counts = np.zeros((y.max() + 1, labels.max() + 1))
    np.add.at(counts, (y, labels), 1)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(y))


def rbf(A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * pairwise_distances(A, B, "sqeuclidean"))


def textbook_cholesky(X: np.ndarray, gamma: float, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 of paper 001: G with K ≈ G Gᵀ, and the pivots."""
    G, left, pivots = np.zeros((len(X), rank)), np.ones(len(X)), np.zeros(rank, int)
    for r in range(rank):
        p = pivots[r] = left.argmax()
        column = rbf(X, X[[p]], gamma)[:, 0]
        G[:, r] = (column - G[:, :r] @ G[p, :r]) / np.sqrt(left[p])
        left = np.maximum(left - G[:, r] ** 2, 0)
        left[p] = 0
    return G, pivots


def spread(summary: dict[str, float]) -> float:
    """Three standard errors of either mean of five runs, one point at least."""
    return max(0.01, 3 * summary["sd"] * np.sqrt(2 / 5))


# Paper 001 ---------------------------------------------------------------------------------------


def paper_001(data: Path, found: Any) -> Iterator[Check]:
    X, y = read(data, "pendigits")
    one = next(each for each in found["comparisons"] if each["data"] == "PenDigits")
    for method, F in (("ICF", textbook_cholesky(X, 2.0**-16, 100)[0]), ("k-means", X)):
        runs = [KMeans(10, n_init=1, random_state=s).fit_predict(F) for s in range(5)]
        cell = one["k-means"] if method == "k-means" else one["methods"][method]["100"]
        mine = float(np.mean([accuracy(y, labels) for labels in runs]))
        yield f"{method}, accuracy", mine, cell["accuracy"]["mean"], spread(cell["accuracy"])
    decay = next(each for each in found["decay"] if each["data"] == "PenDigits")
    few = np.sort(np.random.default_rng(0).choice(len(X), decay["n_rows"], replace=False))
    G, _ = textbook_cholesky(X[few], 2.0**-16, 200)
    theirs = decay["traces"]["ICF"][decay["ranks"].index(200)]
    yield "trace(K − GGᵀ), rank 200", len(G) - float((G**2).sum()), theirs, 1e-3 * theirs


# Paper 002 ---------------------------------------------------------------------------------------


def paper_002(data: Path, found: Any) -> Iterator[Check]:
    X, y = read(data, "mnist")
    X = X[np.flatnonzero(y <= 1)[:2000]] / 255.0
    part = found["kpca"]
    for r2 in (140, 80):
        theirs = next(row["m"] for row in part["times"] if row["r2"] == r2)
        yield f"representatives, r² = {r2}", len(np.unique(sample(X, r2))), theirs, 0
    labels = np.unique(sample(X, 80), return_inverse=True)[1]
    n = np.bincount(labels)
    T = np.array([X[labels == i].mean(axis=0) for i in range(len(n))])
    gamma = 1 / (2 * part["sigma"] ** 2)
    S = KernelPCA(3, kernel="rbf", gamma=gamma).fit_transform(X)
    beta, p = rbf(T, T, gamma), n / n.sum()
    means = beta @ p
    inner = beta - means[:, None] - means + p @ means
    values, vectors = np.linalg.eigh(np.sqrt(n)[:, None] * inner * np.sqrt(n))
    mix = np.sqrt(n)[:, None] * vectors[:, -3:] / np.sqrt(values[-3:])
    Z = np.column_stack([rbf(X, T, gamma) @ mix, np.ones(len(X))])
    error = ((S - Z @ np.linalg.lstsq(Z, S, rcond=None)[0]) ** 2).sum() / (S**2).sum()
    rows = part["compared"][f"{part['sigma']:g}"]
    theirs = next(row["errors"]["quantized (paper)"][0][0] for row in rows if row["r2"] == 80)
    yield "embedding error, r² = 80", float(error), theirs, 1e-3


def sample(X: np.ndarray, r2: float) -> np.ndarray:
    """For each row the first representative within the radius."""
    kept: list[int] = []
    labels = np.zeros(len(X), int)
    for i, x in enumerate(X):
        near = ((X[kept] - x) ** 2).sum(axis=1) <= r2
        labels[i] = kept[int(near.argmax())] if near.any() else i
        if not near.any():
            kept.append(i)
    return labels


# Paper 003 ---------------------------------------------------------------------------------------


def paper_003(data: Path, found: Any) -> Iterator[Check]:
    X, y = read(data, "pendigits")
    one = found["tables"]["pendigits"]
    if len(X) > one["shape"][0]:
        few = np.random.default_rng(0).choice(len(X), one["shape"][0], replace=False)
        X, y = X[np.sort(few)], y[np.sort(few)]
    cell = one["methods"]["k-means"]
    runs = [KMeans(10, n_init=10, random_state=s).fit_predict(X) for s in range(5)]
    mine = float(np.mean([normalized_mutual_info_score(y, labels) for labels in runs]))
    yield "k-means, NMI", mine, cell["normalized_mutual_info"], 0.01
    gamma = float(one["kernel"].partition("(")[2].rstrip(")").rpartition("=")[2])
    rng = np.random.default_rng(0)
    kappas, nmi = [], []
    for width in rng.gamma(2, 1 / gamma, (256, X.shape[1])):
        cells = np.floor(X / width + rng.uniform(0, 1, X.shape[1]))
        counts = np.unique(cells, axis=0, return_counts=True)[1]
        kappas.append(len(cells) / counts.max())
    theirs = float(np.mean([np.mean(row["kappa"]) for row in found["convergence"]["grids"]]))
    yield "κ of random binning", float(np.mean(kappas)), theirs, 0.1 * theirs
    for seed in range(2):
        Z = waves(X, gamma, 1024, np.random.default_rng(seed))
        degrees = np.abs(Z @ Z.sum(axis=0))
        U = np.linalg.svd(Z / np.sqrt(degrees)[:, None], full_matrices=False)[0][:, :10]
        U /= np.linalg.norm(U, axis=1, keepdims=True)
        labels = KMeans(10, n_init=10, random_state=seed).fit_predict(U)
        nmi.append(normalized_mutual_info_score(y, labels))
    cell = one["methods"]["SC_RF"]
    yield "SC_RF, NMI", np.mean(nmi), cell["normalized_mutual_info"], max(0.02, 3 * cell["nmi_sd"])


def waves(X: np.ndarray, gamma: float, R: int, rng: np.random.Generator) -> np.ndarray:
    """Fourier features of exp(−γ‖x − y‖₁)."""
    W = gamma * rng.standard_cauchy((X.shape[1], R // 2))
    return np.hstack([np.cos(X @ W), np.sin(X @ W)]) / np.sqrt(R // 2)


# Paper 004 ---------------------------------------------------------------------------------------


def paper_004(data: Path, found: Any) -> Iterator[Check]:
    with np.load(data.parent / "reference" / "spiral_N100000.npz") as file:
        X, y = file["X"], file["y"]
    for n in (2000, 3000, 5000):
        row = next(each for each in found["table1"]["rows"] if each["n_train"] == n)
        aris = [sparse_ksc(X, y, n, row["rank"], seed) for seed in range(5)]
        theirs = row["textbook"]["ari"]
        yield f"spirals, {n:,} rows, ARI", float(np.mean(aris)), theirs["mean"], spread(theirs)


def sparse_ksc(X: np.ndarray, y: np.ndarray, n: int, rank: int, seed: int) -> float:
    """The paper's algorithm for two clusters on a sample of n rows; ARI on 20,000 others."""
    rows = np.random.default_rng(seed).permutation(len(X))
    train, test = X[rows[:n]], rows[n : n + 20_000]
    G, pivots = textbook_cholesky(train, 1 / 0.006, rank)
    d = np.maximum(G @ G.sum(axis=0), 1e-300)
    A = (G - (1 / d) @ G / (1 / d).sum()) / np.sqrt(d)[:, None]
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    beta = U[:, 0] / np.sqrt(d)
    bias = (s[0] ** 2 - 1) * (d @ beta) / n
    xi = np.linalg.solve(G[pivots].T, G.T @ beta)
    scores = rbf(X[test], train[pivots], 1 / 0.006) @ xi + bias
    return float(adjusted_rand_score(y[test], scores > 0))


def read(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(data / f"{name}.npz") as file:
        return file["X"].astype(np.float64), np.unique(file["y"], return_inverse=True)[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.independent", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"))
    parser.add_argument("--papers", nargs="+", default=["001", "002", "003", "004"])
    options = parser.parse_args()
    agree = True
    for name in options.papers:
        found = json.loads((RESULTS / f"{name}.json").read_text())
        for what, here, theirs, allowed in globals()[f"paper_{name}"](Path(options.data), found):
            agree &= (fine := bool(abs(here - theirs) <= allowed))
            words = "agrees" if fine else "DIFFERS"
            print(f"{name} {what}: {here:.4f}, page {theirs:.4f} ± {allowed:.4f}: {words}")
    raise SystemExit(not agree)


if __name__ == "__main__":
    main()
