"""Paper 001, fast kernel k-means by incomplete Cholesky factorisation: its figures, ours beside.

The paper's kernel is exp(-σ‖x - y‖²), so σ is `gamma`. Its Algorithm 2 is a factor and k-means on
its rows; the methods differ in the factor alone, and all are timed in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cholesky
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks.measure import data_folder, load, machine, write
from benchmarks.papers.paper_001_page import page
from mercer import RBF, IncompleteCholesky, Nystrom, RandomFourier
from mercer.datasets import parabolas, ring_and_core, zigzag
from mercer.linalg.lloyd import nearest_center, scores_of_centers
from mercer.metrics import accuracy, normalized_mutual_info
from mercer.partitions.kmeans import kmeans

SIZES = (25, 50, 100, 200, 500, 1000)  # the paper's "subsetSize"
SEEDS = range(5)
MAX_ITER = 1000  # the paper's
TRACE = 1e-3  # the paper's ε: it stops at this trace(K - F Fᵀ)
RANKS = (10, 25, 50, 100, 200, 300, 500, 700, 1000)
SHAPES = {  # generator, our gamma, the paper's σ (for its own points, which are not published)
    "Ring": (ring_and_core, 0.25, 2.0**4),
    "Parabolic": (parabolas, 1.5, 2.0**1),
    "Zigzag": (zigzag, 0.25, 2.0**3),
}
SCALES = {"raw": None, "[0, 1]": (0.0, 1.0), "[-1, 1]": (-1.0, 1.0)}


@dataclass(frozen=True)
class Study:
    """One data set of Figs. 3-5."""

    title: str
    file: str
    n_clusters: int
    sigma: float  # the paper's
    n_rows: int | None = None
    n_columns: int | None = None
    sizes: tuple[int, ...] = SIZES
    is_image: bool = False  # columns share one range
    dtype: Any = np.float64
    exact: tuple[str, ...] = ()


STUDIES = (
    Study("PenDigits", "pendigits", 10, 2.0**-16, exact=("Kernel",)),
    Study("Satimage", "satimage", 6, 2.0**-3, exact=("Kernel", "Kernel+Chol")),
    Study("Shuttle", "shuttle", 7, 2.0, n_rows=43_500, sizes=SIZES[:4]),
    Study(
        *("Mnist", "mnist", 10, 2.0**-6),
        n_rows=60_000,
        n_columns=780,
        sizes=SIZES[:4],
        is_image=True,
        dtype=np.float32,
    ),
)


def subset_methods(size: int, n_rows: int) -> dict[str, Any]:
    """The factors. Approx (Chitta 2011) is the same configuration as Nyström."""
    tol = TRACE / n_rows
    return {
        "ICF": IncompleteCholesky(size, pivots="greedy", block=1, tol=tol),  # Algorithm 1
        "ICF, blocked": IncompleteCholesky(size, pivots="greedy", tol=tol),
        "random pivots": IncompleteCholesky(size, tol=tol),  # Mercer's default
        "Nyström": Nystrom(size),
        "RFF": RandomFourier(2 * size),  # a cosine and a sine for each wave
    }


def run(data: str | None, *, quick: bool = False, jobs: int = 1) -> None:
    folder = data_folder(data)
    found: dict[str, Any] = {"machine": machine(), "seeds": list(SEEDS), "comparisons": []}
    name = "001-quick" if quick else "001"
    with threadpool_limits(1):
        found["theorem7"] = study_theorem_7(folder)
        found["shapes"] = study_shapes(3 if quick else 10)
        found["decay"] = [study_decay(study, folder, quick) for study in STUDIES[::3]]
        for study in STUDIES[:2] if quick else STUDIES:
            found["comparisons"].append(compare(study, folder, quick))
            write(name, found, page(found, name))


# Theorem 7


def study_theorem_7(folder: Path, n_rows: int = 300) -> dict[str, Any]:
    """The left side of (8) for one partition written in two ways, and the objective's gap."""
    X, _ = load(folder, "pendigits")
    X = X[:n_rows]
    kernel, k = RBF(2.0**-16), 10
    K = kernel.matrix(X, X)
    factor = IncompleteCholesky(60, pivots="greedy", block=1).fit(
        kernel, X, rng=np.random.default_rng(0)
    )
    F = factor.training_rows
    error = float(np.trace(K) - (F**2).sum())
    full = np.linalg.cholesky(K + 1e-12 * np.eye(n_rows))
    V = min((_inertia(full, k, seed) for seed in range(20)), key=lambda one: one[0])[1]
    W = min((_inertia(F, k, seed) for seed in range(20)), key=lambda one: one[0])[1]
    D = V - np.roll(V, 1, axis=1)  # the same clusters, numbered differently
    return {
        "n": n_rows,
        "rank": factor.rank,
        "trace_error": error,
        "left_side": float(np.trace(D.T @ K @ D)),
        "right_side": float(2 * np.sqrt(k) * error),  # n times what (8) is proved from
        "gap": float(np.trace(V.T @ K @ V) - np.trace(W.T @ K @ W)),
    }


def _inertia(F: np.ndarray, k: int, seed: int) -> tuple[float, np.ndarray]:
    """k-means on the rows of F: what is left, and the indicators V of the paper."""
    model = KMeans(k, n_init=1, random_state=seed).fit(F)
    V = np.eye(k)[model.labels_]
    return float(model.inertia_), V / np.sqrt(V.sum(axis=0))


# Fig. 2: three shapes


def study_shapes(n_seeds: int) -> list[dict[str, Any]]:
    """Accuracy at 50 greedy pivots, seeds of points and starts; the labels of seed 0."""
    rows = []
    for name, (shape, ours, theirs) in SHAPES.items():
        row: dict[str, Any] = {"shape": name, "gamma": ours, "sigma_of_paper": theirs}
        for title, gamma, n_init in (
            ("one start", ours, 1),
            ("best of 10 starts", ours, 10),
            ("paper's sigma", theirs, 10),
        ):
            row[title] = [_shape_accuracy(shape, gamma, n_init, seed) for seed in range(n_seeds)]
        X, _ = shape(1000, random_state=0)
        factor = _shape_factor(X, ours)
        row["picture"] = {
            "X": np.round(X, 3).tolist(),
            "labels": _labels(factor.training_rows, 2, 0, n_init=10).tolist(),
            "pivots": factor.pivot_ids.tolist(),
        }
        rows.append(row)
    return rows


def _shape_factor(X: np.ndarray, gamma: float) -> Any:
    pivots = IncompleteCholesky(50, pivots="greedy", block=1)
    return pivots.fit(RBF(gamma), X, rng=np.random.default_rng(0))


def _shape_accuracy(shape: Any, gamma: float, n_init: int, seed: int) -> float:
    X, y = shape(1000, random_state=seed)
    return accuracy(y, _labels(_shape_factor(X, gamma).training_rows, 2, seed, n_init))


# Fig. 1: decay of the error


def study_decay(study: Study, folder: Path, quick: bool) -> dict[str, Any]:
    """trace(K - F Fᵀ) against the rank, and how fast the eigenvalues decay."""
    data = _data(study, folder)
    n_rows = 1000 if quick else 2000
    few = np.sort(np.random.default_rng(0).choice(len(data.X), n_rows, replace=False))
    X, kernel = data.X[few].astype(np.float64), RBF(study.sigma)
    values = np.linalg.eigvalsh(kernel.matrix(X, X))[::-1]
    ranks = [rank for rank in RANKS if rank <= n_rows // 2]
    traces = {"best": [float(values[s:].sum()) for s in ranks]}
    for name, make, seeds in (
        ("ICF", lambda s: IncompleteCholesky(s, pivots="greedy", block=1), (0,)),
        ("random pivots", IncompleteCholesky, (0, 1, 2)),
        ("Nyström", Nystrom, (0, 1, 2)),
    ):
        traces[name] = [
            n_rows * float(np.mean([_trace_error(make(s), kernel, X, seed) for seed in seeds]))
            for s in ranks
        ]
    return {
        "data": study.title,
        "scale": data.scale,
        "n_rows": n_rows,
        "gamma": study.sigma,
        "ranks": ranks,
        "traces": traces,
        "eigenvalue_ratio": float((values[200] / values[10]) ** (1 / 190)),
        "first_ratios": (values[1:11] / values[:10]).tolist(),
    }


def _trace_error(approximation: Any, kernel: RBF, X: np.ndarray, seed: int) -> float:
    return approximation.fit(kernel, X, rng=np.random.default_rng(seed)).trace_error


# Figs. 3-5: accuracy and time


def compare(study: Study, folder: Path, quick: bool) -> dict[str, Any]:
    """All methods on one data set with the paper's σ; two sizes with the automatic bandwidth."""
    data, k = _data(study, folder), study.n_clusters
    X, y = (data.X[:2000], data.y[:2000]) if quick else (data.X, data.y)
    auto = RBF("auto").resolve(X, np.ones(len(X)), rng=np.random.default_rng(0)).gamma
    seeds = SEEDS[:2] if quick else SEEDS
    result: dict[str, Any] = {
        "data": study.title,
        "shape": X.shape,
        "dtype": str(X.dtype),
        "scale": data.scale,
        "gamma": study.sigma,
        "auto": float(auto),
        "effective_ranks": data.effective_ranks,
        "k-means": summarize([_plain(X, y, k, seed) for seed in seeds]),
        "methods": {},
        "methods_auto": {},
    }
    for size in study.sizes[:3] if quick else study.sizes:
        for name, approximation in subset_methods(size, len(X)).items():
            runs = [_fit(X, y, k, study.sigma, approximation, seed) for seed in seeds]
            result["methods"].setdefault(name, {})[str(size)] = summarize(runs)
            if size == 100:
                runs = [_fit(X, y, k, float(auto), approximation, seed) for seed in seeds]
                result["methods_auto"][name] = summarize(runs)
        print(study.title, size, flush=True)
    makers = {"Kernel": _whole_kernel, "Kernel+Chol": _complete_cholesky}
    result["exact"] = {name: makers[name](X, y, k, study.sigma, seeds) for name in study.exact}
    return result


@dataclass(frozen=True)
class Data:
    """Rows and classes, in the scaling in which the paper's σ makes a kernel worth the name."""

    X: np.ndarray
    y: np.ndarray
    scale: str
    effective_ranks: dict[str, float]  # of each scaling


def _data(study: Study, folder: Path) -> Data:
    X, y = load(folder, study.file, study.dtype)
    X, y = X[: study.n_rows, : study.n_columns], y[: study.n_rows]
    axis = None if study.is_image else 0
    low, high = X.min(axis=axis), X.max(axis=axis)
    few = X[np.random.default_rng(0).choice(len(X), 1000, replace=False)].astype(np.float64)
    ranks = {
        scale: _effective_rank(RBF(study.sigma), _scaled(few, low, high, scale)) for scale in SCALES
    }
    scale = max(ranks, key=lambda name: min(ranks[name], 1000 / ranks[name]))
    scaled = _scaled(X, low, high, scale).astype(study.dtype, copy=False)
    return Data(np.ascontiguousarray(scaled), y, scale, ranks)


def _scaled(X: np.ndarray, low: Any, high: Any, scale: str) -> np.ndarray:
    """X with [low, high] moved to the range of that name."""
    if SCALES[scale] is None:
        return X
    floor, ceiling = SCALES[scale]
    return floor + (ceiling - floor) * (X - low) / np.where(high > low, high - low, 1)


def _effective_rank(kernel: RBF, X: np.ndarray) -> float:
    """trace(K)²/‖K‖²: 1 for all ones, n for the identity."""
    K = kernel.matrix(X, X)
    return float(np.trace(K) ** 2 / np.sum(K**2))


def _fit(X: Any, y: Any, k: int, gamma: float, approximation: Any, seed: int) -> dict[str, Any]:
    """Algorithm 2: a factor, and k-means on its rows."""
    start = time.process_time()
    factor = approximation.fit(RBF(gamma), X, rng=np.random.default_rng(seed))
    spent = time.process_time() - start
    run = _cluster(factor.training_rows, y, k, seed)
    about = {"rank": factor.rank, "trace_error": factor.trace_error, "factor_seconds": spent}
    return {**run, **about, "seconds": spent + run["seconds"]}


def _cluster(F: np.ndarray, y: np.ndarray, k: int, seed: int) -> dict[str, Any]:
    labels, spent = _timed(lambda: _labels(F, k, seed))
    return {"seed": seed, "seconds": spent, **_scores(y, labels)}


def _labels(F: np.ndarray, k: int, seed: int, n_init: int = 1) -> np.ndarray:
    """k-means on the rows of a factor, as KernelKMeans runs it."""
    rng = np.random.default_rng(seed)
    found = kmeans(F, np.ones(len(F)), k, n_init=n_init, max_iter=MAX_ITER, tol=1e-4, rng=rng)
    A, b = scores_of_centers(found.centers)
    return nearest_center(F @ A + b)[0]


def _scores(y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    return {"accuracy": accuracy(y, labels), "nmi": normalized_mutual_info(y, labels)}


def _plain(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> dict[str, Any]:
    """k-means on the rows themselves, one start as everywhere here."""
    start = time.process_time()
    labels = KMeans(k, n_init=1, max_iter=MAX_ITER, random_state=seed).fit_predict(X)
    return {"seed": seed, "seconds": time.process_time() - start, **_scores(y, labels)}


def _whole_kernel(X: Any, y: Any, k: int, gamma: float, seeds: Any) -> dict[str, Any]:
    """Kernel k-means on the whole matrix: Lloyd's steps from k-means++ starts."""
    K, seconds = _timed(lambda: RBF(gamma).matrix(X, X).astype(np.float32))
    runs = []
    for seed in seeds:
        labels, spent = _timed(lambda seed=seed: kernel_lloyd(K, k, np.random.default_rng(seed)))
        runs.append({"seed": seed, "seconds": seconds + spent, **_scores(y, labels)})
    return summarize(runs)


def kernel_lloyd(K: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Labels of kernel k-means: distances to means are read off K."""
    diagonal = K.diagonal()
    centers = [int(rng.integers(len(K)))]
    for _ in range(1, k):
        apart = np.min([diagonal + K[c, c] - 2 * K[c] for c in centers], axis=0).clip(0)
        centers.append(int(rng.choice(len(K), p=apart / apart.sum())))
    labels = np.argmin([K[c, c] - 2 * K[c] for c in centers], axis=0)
    for _ in range(MAX_ITER):
        P = np.eye(k, dtype=K.dtype)[labels]
        P /= np.maximum(P.sum(axis=0), 1)
        KP = K @ P
        new = ((P * KP).sum(axis=0) - 2 * KP).argmin(axis=1)
        if (new == labels).all():
            break
        labels = new
    return labels


def _complete_cholesky(X: Any, y: Any, k: int, gamma: float, seeds: Any) -> dict[str, Any]:
    """The whole matrix, its complete factor, k-means on its rows."""
    n = len(X)
    L, seconds = _timed(lambda: cholesky(RBF(gamma).matrix(X, X) + 1e-9 * np.eye(n), lower=True))
    runs = [_cluster(L, y, k, seed) for seed in seeds]
    return summarize([{**one, "seconds": seconds + one["seconds"]} for one in runs])


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def summarize(runs: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {"runs": runs}
    for key in ("accuracy", "nmi", "seconds"):
        values = [run[key] for run in runs]
        summary[key] = {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1))}
    return summary
