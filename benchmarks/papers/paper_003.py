"""Paper 003, spectral clustering with random binning features: its tables and figures, ours beside.

Parts, each written as soon as it is there: convergence (κ, Theorems 1 and 2), tables (2 and 3),
grids (Figs. 2, 5), solvers (Fig. 3), rows (Fig. 4). All kernel methods of a set have one kernel,
the product Laplacian that random binning represents, with the bandwidth of `gamma="auto"`.
"""

from __future__ import annotations

import json
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks.measure import RESULTS, data_folder, load, machine, reopened, write
from benchmarks.papers.paper_003_page import page
from mercer import (
    KernelFeatures,
    KernelKMeans,
    Laplacian,
    MercerWarning,
    Nystrom,
    RandomBinning,
    RandomFourier,
    SpectralClustering,
)
from mercer.factors.base import as_sample
from mercer.factors.binning import BinGraph
from mercer.linalg.eigen import leading_eigenpairs
from mercer.linalg.products import unit_rows
from mercer.metrics import accuracy, normalized_mutual_info, pairwise_f, rand_index
from mercer.partitions.cones import find_cones

PARTS = ("convergence", "tables", "grids", "solvers", "rows")
METRICS = ("normalized_mutual_info", "rand_index", "cluster_f", "accuracy")  # the paper's four
RANK, SEEDS, MOST_ROWS = 1024, range(5), 20_000
EXACT_ROWS = 16_000  # SC takes the whole matrix, in float32
BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the automatic gamma
SETS = {  # the paper's name: file, clusters
    "pendigits": ("pendigits", 10),
    "letter": ("letter_15500", 26),
    "mnist": ("mnist", 10),
    "covtype-mult": ("covtype_ramp92962", 7),
    "ijcnn1": ("ijcnn1", 2),
    "poker": ("poker_train25010", 10),
}
GRIDS = ("pendigits", "letter", "mnist", "covtype-mult")
RANDOM = ("KK_RF", "SV_RF", "SC_Nys", "SC_RF", "SC_RB")


def methods(k: int, kernel: Any, rank: int, seed: int) -> dict[str, Any]:
    """The paper's nine methods (docs/methods.md), ten starts of k-means each."""
    common: dict[str, Any] = {"random_state": seed}
    kernels: dict[str, Any] = {**common, "kernel": kernel, "n_init": 10}
    waves = RandomFourier(rank)
    return {
        "k-means": KMeans(k, n_init=10, **common),
        "SC": ExactSpectral(k, kernel, seed),
        "KK_RS": KernelKMeans(k, approximation=Nystrom(rank), **kernels),
        "KK_RF": KernelKMeans(k, approximation=waves, **kernels),
        "SV_RF": make_pipeline(
            KernelFeatures(kernel=kernel, approximation=waves, **common),
            TruncatedSVD(k, **common),
            KMeans(k, n_init=10, **common),
        ),
        "SC_LSC": SpectralClustering(k, approximation="landmarks", rank=rank, **common),
        "SC_Nys": SpectralClustering(k, approximation=Nystrom(rank), **kernels),
        "SC_RF": SpectralClustering(k, approximation=waves, **kernels),
        "SC_RB": SpectralClustering(k, approximation=RandomBinning(rank), **kernels),
    }


class ExactSpectral:
    """`SpectralClustering(approximation="exact")` with n² float32 numbers and no n³ steps."""

    def __init__(self, k: int, kernel: Any, seed: int = 0) -> None:
        self.k, self.kernel, self.seed = k, kernel, seed

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        M = self.kernel.matrix(X.astype(np.float32), X.astype(np.float32)).astype(np.float32)
        s = (1 / np.sqrt(M.sum(axis=1, dtype=np.float64))).astype(np.float32)
        M *= s
        M *= s[:, None]
        Y = unit_rows(leading_eigenpairs(M, self.k, solver="arpack", rng=rng).vectors)
        return labels_of(Y.astype(np.float64), self.k, rng)


def labels_of(Y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """The last step of spectral clustering, as in a fit."""
    cones = find_cones(Y, np.ones(len(Y)), k, assign_labels="kmeans", n_init=10, rng=rng)
    return (Y @ cones.directions.T).argmax(axis=1)


def run(
    data: str | None,
    *,
    quick: bool = False,
    jobs: int = 1,
    part: str | None = None,
    rows: int | None = None,
) -> None:
    folder, name = data_folder(data), "003-quick" if quick else "003"
    path = RESULTS / f"{name}.json"
    found = reopened(json.loads(path.read_text())) if part and path.exists() else {}
    found |= {"machine": machine(), "seeds": list(SEEDS[: 2 if quick else None])}
    most = rows or (1500 if quick else MOST_ROWS)
    for title in [part] if part else PARTS:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            for _ in globals()[f"study_{title}"](folder, found, most, quick):
                write(name, found, page(found, name), part=title)  # what there is so far


def rows_of(folder: Path, title: str, most: int) -> tuple[np.ndarray, np.ndarray]:
    """A set, or so many of its rows, drawn with seed 0."""
    X, y = load(folder, SETS[title][0])
    if len(X) > most:
        few = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
        X, y = X[few], y[few]
    return X, y


def automatic(X: np.ndarray) -> Laplacian:
    """The kernel of a set: its bandwidth is chosen without the classes."""
    sample = as_sample(Laplacian("auto"), X)
    rng = np.random.default_rng(0)
    return Laplacian("auto").resolve(sample.rows, sample.weights, rng=rng)


# Tables 2 and 3


def study_tables(folder: Path, found: dict[str, Any], most: int, quick: bool) -> Any:
    """Every method on every set: scores, competition ranks, warm CPU seconds."""
    tables = found["tables"] = {}
    rank = 64 if quick else RANK
    for title, (_, k) in SETS.items():
        X, y = rows_of(folder, title, most)
        kernel = automatic(X)
        for model in methods(k, kernel, 64, 0).values():
            model.fit_predict(X[:300])  # compiled loops are loaded
        runs: dict[str, list[dict[str, float]]] = {}
        for seed in found["seeds"]:
            for name, model in methods(k, kernel, rank, seed).items():
                if name != "SC" or (seed == 0 and len(X) <= EXACT_ROWS):
                    runs.setdefault(name, []).append(score(model, X, y))
            print(title, seed, flush=True)
        tables[title] = {
            "shape": X.shape,
            "rank": rank,
            "kernel": repr(kernel),
            "methods": ranked({name: summary(each) for name, each in runs.items()}),
            "bandwidths": bandwidths(X, y, k, kernel),
        }
        yield title


def score(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    start = time.process_time()
    labels = model.fit_predict(X)
    return {"seconds": time.process_time() - start, **scores(y, labels)}


def scores(y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    return {
        "normalized_mutual_info": normalized_mutual_info(y, labels),
        "rand_index": rand_index(y, labels),
        "cluster_f": cluster_f(y, labels),
        "accuracy": accuracy(y, labels),
        "pairwise_f": pairwise_f(y, labels),
    }


def cluster_f(y: np.ndarray, labels: np.ndarray) -> float:
    """The F that the paper prints: of each cluster with its best class, the plain mean."""
    classes, y = np.unique(y, return_inverse=True)
    clusters, labels = np.unique(labels, return_inverse=True)
    counts = np.zeros((len(clusters), len(classes)))
    np.add.at(counts, (labels, y), 1)
    sizes = counts.sum(axis=1)[:, None] + counts.sum(axis=0)
    return float((2 * counts / sizes).max(axis=1).mean())


def summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Means over seeds, and their spread."""
    keys = runs[0]
    means = {key: float(np.mean([run[key] for run in runs])) for key in keys}
    spread = float(np.std([run["normalized_mutual_info"] for run in runs], ddof=len(runs) > 1))
    return {**means, "nmi_sd": spread, "runs": runs}


def ranked(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Competition ranks (methods that are alike to three digits share the best), averaged."""
    table = np.array([[round(row[metric], 3) for metric in METRICS] for row in rows.values()])
    ranks = rankdata(-table, method="min", axis=0).mean(axis=1)
    for row, rank in zip(rows.values(), ranks, strict=True):
        row["average_rank"] = float(rank)
    return rows


def bandwidths(X: np.ndarray, y: np.ndarray, k: int, kernel: Any) -> dict[str, float]:
    """NMI of SC_RB (R = 256) by multiples of the automatic gamma: what the labels would choose."""
    found = {}
    for times in BANDWIDTHS:
        other = Laplacian(float(times * kernel.gamma))
        model = SpectralClustering(
            k, kernel=other, approximation=RandomBinning(256), random_state=0
        )
        found[f"{times:g}"] = normalized_mutual_info(y, model.fit_predict(X))
    return found


# Figs. 2 and 5


def study_grids(folder: Path, found: dict[str, Any], most: int, quick: bool) -> Any:
    """Accuracy and seconds of the methods with random features against R."""
    grids = found["grids"] = {}
    sizes = (16, 64) if quick else (16, 64, 256, 1024)
    for title in GRIDS:
        X, y = rows_of(folder, title, most)
        kernel, k = automatic(X), SETS[title][1]
        grids[title] = {
            name: {
                str(size): score(methods(k, kernel, size, 0)[name], X, y)
                for size in sizes
                if size >= k
            }
            for name in RANDOM
        }
        grids[title]["rows"] = len(X)
        yield title


# Fig. 3: solvers


def study_solvers(folder: Path, found: dict[str, Any], most: int, quick: bool) -> Any:
    """covtype, tolerance 10⁻⁵: one graph, several solvers; PRIMME where it is installed."""
    X, y = rows_of(folder, "covtype-mult", most)
    k, kernel = SETS["covtype-mult"][1], automatic(X)
    sample = as_sample(kernel, X)
    rows = found["solvers"] = {"rows": len(X), "tol": 1e-5, "by": {}}
    for n_grids in (16, 64) if quick else (16, 32, 64, 128):
        factor = RandomBinning(n_grids).fit(kernel, sample, rng=np.random.default_rng(0))
        Z, A = scaled_csr(factor, sample)
        for name, solve in solvers(Z, A, k, 1e-5).items():
            solve()
            start = time.process_time()
            values, U = solve()
            seconds = time.process_time() - start
            labels = labels_of(unit_rows(U), k, np.random.default_rng(0))
            rows["by"].setdefault(name, {})[str(n_grids)] = {
                "seconds": seconds,
                "residual": float(np.linalg.norm(A @ U - U * values, axis=0).max()),
                "gap": float(values[0] - values[-1]),
                **scores(y[sample.ids], labels),
            }
        yield n_grids


def scaled_csr(factor: Any, sample: Any) -> tuple[Any, Any]:
    """D^-½ Z with all bins as CSR, and the same product by bin numbers."""
    graph = BinGraph(factor)
    alone, w = graph.diagonal(), sample.weights
    scale = np.sqrt(w / (graph.product(w) + np.maximum(alone, 1 - graph.is_connected()) * w))
    ids, starts = factor.training_bins.ids, factor.bins.starts
    is_kept = (ids < np.diff(starts)[:, None]).T
    n, n_grids = is_kept.shape
    columns = (ids + starts[:-1, None]).T
    columns[~is_kept] = starts[-1] + np.arange((~is_kept).sum())  # a column for each lone row
    values = np.repeat(scale / np.sqrt(n_grids), n_grids)
    shape = (n, int(columns.max()) + 1)
    Z = sp.csr_array((values, columns.ravel(), np.arange(0, n * n_grids + 1, n_grids)), shape=shape)
    return Z, graph.operator(scale, alone)


def solvers(Z: Any, A: Any, k: int, tol: float) -> dict[str, Any]:
    """Leading left singular vectors of Z, or eigenvectors of A = Z Zᵀ."""

    def structured(name: Any) -> Any:
        def solve() -> Any:
            rng = np.random.default_rng(0)
            pairs = leading_eigenpairs(A, k, solver=name, tol=tol, max_iter=300, rng=rng)
            return pairs.values, pairs.vectors

        return solve

    def svds() -> Any:
        U, s, _ = sp.linalg.svds(Z, k, tol=tol, rng=np.random.default_rng(0))
        return s[::-1] ** 2, U[:, ::-1]

    made = {
        "ours (Lanczos on bin numbers)": structured("auto"),
        "ARPACK on bin numbers": structured("arpack"),
        "svds (ARPACK on CSR)": svds,
    }
    try:
        import primme
    except ImportError:
        return made

    def primme_svds() -> Any:
        U, s, _ = primme.svds(Z, k, tol=tol)
        return s**2, U

    return {**made, "PRIMME svds on CSR": primme_svds}


# Fig. 4: more rows


def study_rows(folder: Path, found: dict[str, Any], most: int, quick: bool) -> Any:
    """All rows in the graph (R = 256), simulated poker hands."""
    X, _ = load(folder, "poker_SIMULATED_1025010", np.float32)
    rows = found["rows"] = []
    all_rows(X[:1000], 10)  # compiled loops are loaded
    for n in (1000, 10_000) if quick else (1000, 10_000, 100_000, 1_000_000):
        rows.append({"n": n, **all_rows(X[:n], 10)})
        yield n


def all_rows(X: np.ndarray, k: int) -> dict[str, float]:
    """Seconds of each stage when no sample is taken, and the peak of memory."""
    seconds, start = {}, time.process_time()

    def lap(name: str) -> None:
        nonlocal start
        seconds[name] = time.process_time() - start
        start = time.process_time()

    kernel = automatic(X)
    sample = as_sample(kernel, X)
    factor = RandomBinning(256).fit(kernel, sample, rng=np.random.default_rng(0))
    lap("bins")
    rng = np.random.default_rng(0)
    found = factor.spectral_map(sample, k + 1, solver="auto", rng=rng)
    lap("eigenvectors")
    labels_of(unit_rows(found.points[:, :k]), k, rng)
    lap("clusters")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {**seconds, "peak_gb": peak, "residual": float(found.residuals.max())}


# κ, Theorems 1 and 2


def study_convergence(folder: Path, found: dict[str, Any], most: int, quick: bool) -> Any:
    """The exact objective at the subspace of R grids and of R waves, and κ."""
    X, y = rows_of(folder, "pendigits", 1000 if quick else 3000)
    k, kernel = SETS["pendigits"][1], automatic(X)
    K = kernel.matrix(X, X)
    s = 1 / np.sqrt(K.sum(axis=1))
    M = s[:, None] * K * s
    exact = leading_eigenpairs(M, k, solver="arpack", rng=np.random.default_rng(0))
    nmi = normalized_mutual_info(y, ExactSpectral(k, kernel).fit_predict(X))
    rows = found["convergence"] = {"n": len(X), "exact_nmi": nmi, "grids": []}
    sample = as_sample(kernel, X)
    for R in (16, 64, 256) if quick else (16, 32, 64, 128, 256, 512, 1024):
        row: dict[str, Any] = {"R": R, "kappa": [], "loss": {"RB": [], "RF": []}}
        for seed in found["seeds"]:
            rng = np.random.default_rng(seed)
            factor = RandomBinning(R).fit(kernel, sample, rng=rng)
            row["kappa"].append(kappa(factor))
            features = {"RB": scaled_csr(factor, sample)[1], "RF": waves(X, kernel.gamma, R, rng)}
            for name, A in features.items():
                U = leading_eigenpairs(A, k, solver="arpack", rng=rng).vectors
                rows_in = M if name == "RF" else M[np.ix_(sample.ids, sample.ids)]
                lost = exact.values.sum() - np.trace(U.T @ rows_in @ U)
                row["loss"][name].append(float(lost))
        rows["grids"].append(row)
        yield R


def kappa(factor: Any) -> float:
    """E[1 / (share of the rows in a grid's fullest bin)], the paper's (13)."""
    bins = factor.training_bins.ids
    shares = [np.bincount(ids[ids >= 0]).max() / len(ids) for ids in bins.reshape(len(bins), -1)]
    return float(np.mean([1 / share for share in shares]))


def waves(X: np.ndarray, gamma: float, R: int, rng: np.random.Generator) -> np.ndarray:
    """D^-½ Z Zᵀ D^-½ of R random Fourier features of the Laplacian kernel, in plain numpy."""
    W = gamma * rng.standard_cauchy((X.shape[1], R))
    Z = np.sqrt(2 / R) * np.cos(X @ W + rng.uniform(0, 2 * np.pi, R))
    degrees = np.abs(Z @ Z.sum(axis=0)).clip(1e-9)
    Z /= np.sqrt(degrees)[:, None]
    return Z @ Z.T
