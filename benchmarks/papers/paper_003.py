"""Paper 003, spectral clustering with random binning features: its tables and figures, ours beside.

Parts, each written as soon as it is there: tables (2 and 3), grids (Figs. 2, 3, 5), solvers
(Section 5.3), rows (Fig. 4), convergence (Theorem 2).
"""

from __future__ import annotations

import json
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks.measure import RESULTS, data_folder, load, machine, timed, write
from mercer import (
    RBF,
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
from mercer.factors.binning import BinGraph, part_vectors
from mercer.linalg.eigen import leading_eigenpairs
from mercer.linalg.products import unit_rows
from mercer.metrics import average_ranks, evaluate, normalized_mutual_info
from mercer.partitions.cones import find_cones

mpl.use("Agg")
import matplotlib.pyplot as plt

PARTS = ("tables", "grids", "solvers", "rows", "convergence")
METRICS = ("normalized_mutual_info", "rand_index", "mean_f", "accuracy")  # the paper's four
METHODS = ("k-means", "SC", "KK_RS", "KK_RF", "SV_RF", "SC_LSC", "SC_Nys", "SC_RF", "SC_RB")
EXACT_ROWS = 11_000  # the matrix of more rows is too large for SC
BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the automatic gamma, for the marked search
SETS = {  # the paper's name: file, clusters, R (the paper: 1024 everywhere), type
    "pendigits": ("pendigits", 10, 1024, np.float64),
    "letter": ("letter_15500", 26, 1024, np.float64),
    "poker (training part)": ("poker_train25010", 10, 256, np.float64),
    "mnist": ("mnist", 10, 256, np.float32),
    "covtype-mult (part)": ("covtype_ramp92962", 7, 256, np.float32),
    "ijcnn1": ("ijcnn1", 2, 256, np.float32),
}
RANKS = {  # the paper's Table 2, in the order of METHODS
    "pendigits": (3, 4.75, 2, 7.75, 8.5, 1, 4.75, 7.25, 5),
    "letter": (8.5, 5.75, 5.5, 7.5, 4.75, 3.25, 4.75, 3.75, 1.25),
    "mnist": (5, 4.25, 5, 9, 8, 1, 3.25, 6.75, 2.75),
    "ijcnn1": (4.5, None, 5.75, 2, 4, 6.75, 4.75, 7.25, 1),
    "covtype-mult (part)": (3.75, None, 5.25, 5.75, 6.5, 2.5, 4.75, 5.75, 1.75),
    "poker (training part)": (4.33, None, 4, 3.33, 4.67, 5.67, 5, 4.33, 4.67),
}
SECONDS = {  # its Table 3
    "pendigits": (0.8, 25, 10.7, 10.4, 1, 7.6, 2.5, 1.4, 1.8),
    "letter": (5.9, 171.4, 17.1, 36.9, 8.9, 27.1, 14.6, 10, 7.7),
    "mnist": (278.1, 2661, 79.1, 312.4, 22.6, 25.5, 31, 20.5, 25.9),
    "ijcnn1": (4.2, None, 44.2, 89.6, 5.1, 9.9, 18.5, 5.5, 34.7),
    "covtype-mult (part)": (60.7, None, 180.2, 220, 40.5, 181.1, 99.1, 41.5, 1593),
    "poker (training part)": (102.4, None, 363.1, 5812, 254.5, 337.4, 340.6, 293.3, 538.4),
}


def methods(k: int, rank: int, n_rows: int, seed: int) -> dict[str, Any]:
    """The paper's nine methods, one line each (docs/methods.md)."""
    common: dict[str, Any] = {"random_state": seed}
    waves = RandomFourier(rank)
    made = {
        "k-means": KMeans(k, n_init=10, **common),
        "SC": ExactSpectral(k, RBF("auto"), seed),
        "KK_RS": KernelKMeans(k, approximation=Nystrom(rank), **common),
        "KK_RF": KernelKMeans(k, approximation=waves, **common),
        "SV_RF": make_pipeline(
            KernelFeatures(approximation=waves, **common), TruncatedSVD(k, **common), KMeans(k)
        ),
        "SC_LSC": SpectralClustering(k, rank=rank, **common),
        "SC_Nys": SpectralClustering(k, kernel="rbf", approximation=Nystrom(rank), **common),
        "SC_RF": SpectralClustering(k, kernel="rbf", approximation=waves, **common),
        "SC_RB": SpectralClustering(k, approximation="binning", rank=rank, **common),
    }
    if n_rows > EXACT_ROWS:
        made.pop("SC")
    return made


class ExactSpectral:
    """`SpectralClustering(approximation="exact")`, of n² numbers but without its n³ steps."""

    def __init__(self, k: int, kernel: Any, seed: int = 0) -> None:
        self.k, self.kernel, self.seed = k, kernel, seed

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        sample = as_sample(self.kernel, X)
        kernel = self.kernel.resolve(sample.rows, sample.weights, rng=rng)
        M, w = kernel.matrix(sample.rows, sample.rows), sample.weights
        s = np.sqrt(w / (M @ w))
        M *= s
        M *= s[:, None]
        Y = unit_rows(leading_eigenpairs(M, self.k, solver="arpack", rng=rng).vectors)
        cones = find_cones(Y, w, self.k, assign_labels="kmeans", n_init=10, rng=rng)
        return (Y @ cones.directions.T).argmax(axis=1)


def run(data: str | None, *, quick: bool = False, jobs: int = 1, part: str | None = None) -> None:
    folder, suffix = data_folder(data), "-quick" if quick else ""
    path = RESULTS / f"003{suffix}.json"
    found = json.loads(path.read_text()) if part and path.exists() else {}
    found["machine"] = machine()
    for name in [part] if part else PARTS:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            study = globals()[f"study_{name}"]
            for _ in study(folder, found, quick):  # after each step what there is is written
                write(f"003{suffix}", found, report(found))
    draw(found, RESULTS / f"003{suffix}.png")


# Tables 2 and 3


def study_tables(folder: Path, found: dict[str, Any], quick: bool) -> Any:
    """Every method on every set: scores, ranks, CPU seconds of one thread, stages of SC_RB."""
    tables = found["tables"] = {}
    for title, (file, k, rank, dtype) in SETS.items():
        X, y = load(folder, file, dtype)
        X, y, rank = (X[:2000], y[:2000], 64) if quick else (X, y, rank)
        rows = {name: score(model, X, y) for name, model in methods(k, rank, len(X), 0).items()}
        scores = [[row[metric] for metric in METRICS] for row in rows.values()]
        for row, average in zip(rows.values(), average_ranks(scores), strict=True):
            row["average_rank"] = float(average)
        tables[title] = {"shape": X.shape, "rank": rank, "methods": rows}
        if len(X) < 30_000:
            tables[title]["chosen_with_labels"] = best_bandwidth(X, y, k, rank)
        yield title


def score(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    start = time.process_time()
    labels = model.fit_predict(X)
    row: dict[str, Any] = {"seconds": time.process_time() - start, **evaluate(y, labels)}
    if hasattr(model, "report_"):
        row["stages"] = {stage.name: stage.cpu_seconds for stage in model.report_.stages}
        row["kernel"] = repr(model.kernel_)
    return row


def best_bandwidth(X: np.ndarray, y: np.ndarray, k: int, rank: int) -> dict[str, Any]:
    """SC_RB with the gamma of the best NMI, as the paper chose its: with the labels at hand."""
    auto = SpectralClustering(k, approximation="binning", rank=k, random_state=0).fit(X)
    rows = []
    for times in BANDWIDTHS:
        gamma = float(times * auto.kernel_.gamma)
        params = {"gamma": gamma, "approximation": "binning", "rank": min(rank, 256)}
        row = score(SpectralClustering(k, **params, random_state=0), X, y)
        rows.append({"times_auto": times, "gamma": gamma, **row})
    return max(rows, key=lambda row: row["normalized_mutual_info"])


# Figs. 2, 3 and 5: more grids


def study_grids(folder: Path, found: dict[str, Any], quick: bool) -> Any:
    """Scores and seconds of SC_RB and SC_RF against R."""
    grids = found["grids"] = {}
    for title in ("pendigits", "letter", "mnist"):
        file, k, _, dtype = SETS[title]
        X, y = load(folder, file, dtype)
        X, y = (X[:2000], y[:2000]) if quick else (X, y)
        sizes = (16, 64) if quick else (16, 64, 256) if len(X) > 30_000 else (16, 64, 256, 1024)
        grids[title] = {}
        for name in ("SC_RB", "SC_RF"):
            usable = [size for size in sizes if size >= k]
            grids[title][name] = {
                size: score(methods(k, size, len(X), 0)[name], X, y) for size in usable
            }
        yield title


# Section 5.3: solvers


def study_solvers(folder: Path, found: dict[str, Any], quick: bool) -> Any:
    """One graph, several solvers at equal tolerances; PRIMME where it is installed."""
    rows = found["solvers"] = {}
    for title in ("pendigits", "letter"):
        file, k, _, _ = SETS[title]
        X, y = load(folder, file)
        sample, factor = binned(X[:2000] if quick else X, 256)
        Z, A = scaled_csr(factor, sample)
        rows[title] = {"gamma": float(factor.kernel.gamma), "bins": Z.shape[1], "by": {}}
        for tol in (1e-4, 1e-6):
            made = {"Lanczos, bin numbers": ours(factor, sample, k, tol), **solvers(Z, A, k, tol)}
            for name, solve in made.items():
                (values, U), timing = timed(solve, repeat=7)
                residual = np.linalg.norm(A @ U - U * values, axis=0).max()
                cones = find_cones(
                    unit_rows(U),
                    sample.weights,
                    k,
                    assign_labels="kmeans",
                    n_init=5,
                    rng=np.random.default_rng(0),
                )
                labels = (unit_rows(U) @ cones.directions.T).argmax(axis=1)
                rows[title]["by"][f"{name}, {tol:g}"] = {
                    "seconds": timing.best,
                    "residual": float(residual),
                    "nmi": normalized_mutual_info(y[sample.ids], labels),
                }
        yield title


def binned(X: np.ndarray, n_grids: int, seed: int = 0) -> tuple[Any, Any]:
    """All rows in their bins, with the automatic bandwidth."""
    rng = np.random.default_rng(seed)
    sample = as_sample(Laplacian("auto"), X)
    kernel = Laplacian("auto").resolve(sample.rows, sample.weights, rng=rng)
    return sample, RandomBinning(n_grids).fit(kernel, sample, rng=rng)


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


def ours(factor: Any, sample: Any, k: int, tol: float) -> Any:
    """The whole stage as in a fit: grids joined, degrees, parts, products, a look beside."""

    def solve() -> Any:
        graph, w = BinGraph(factor), sample.weights
        alone, is_connected = graph.diagonal(), graph.is_connected()
        degrees = graph.product(w) + np.maximum(alone, 1 - is_connected) * w
        known = part_vectors(graph, np.where(is_connected, w * degrees, 0.0), k)
        A = graph.operator(np.where(is_connected, np.sqrt(w / degrees), 0.0), alone)
        rng = np.random.default_rng(0)
        pairs = leading_eigenpairs(A, k, tol=tol, known=known, complete=True, rng=rng)
        return pairs.values, pairs.vectors

    return solve


def solvers(Z: Any, A: Any, k: int, tol: float) -> dict[str, Any]:
    """Leading left singular vectors of Z, or eigenvectors of A = Z Zᵀ."""

    def structured(name: Any) -> Any:
        def solve() -> Any:
            rng = np.random.default_rng(0)
            pairs = leading_eigenpairs(A, k, solver=name, tol=tol, max_iter=100, rng=rng)
            return pairs.values, pairs.vectors

        return solve

    def svds() -> Any:
        U, s, _ = sp.linalg.svds(Z, k, tol=tol, rng=np.random.default_rng(0))
        return s[::-1] ** 2, U[:, ::-1]

    made = {
        "eigsh, bin numbers": structured("arpack"),
        "LOBPCG, bin numbers": structured("lobpcg"),
        "svds, CSR": svds,
    }
    try:
        import primme
    except ImportError:
        return made

    def primme_svds() -> Any:
        U, s, _ = primme.svds(Z, k, tol=tol)
        return s**2, U

    return {
        **made,
        "PRIMME svds, CSR": primme_svds,
        "PRIMME eigsh, bin numbers": structured("primme"),
    }


# Fig. 4: more rows


def study_rows(folder: Path, found: dict[str, Any], quick: bool) -> Any:
    """All rows in the graph, and the estimator (a sample of 100,000 makes the graph)."""
    X, _ = load(folder, "poker_SIMULATED_1025010", np.float32)
    rows = found["rows"] = []
    all_rows(X[:1000], 10)  # compiled loops are loaded
    for n in (1000, 10_000) if quick else (1000, 10_000, 100_000, 1_000_000):
        runs = [all_rows(X[:n], 10) for _ in range(3)]
        rows.append({"n": n, **{name: min(run[name] for run in runs) for name in runs[0]}})
        yield n
        model = SpectralClustering(10, approximation="binning", random_state=0)
        start = time.process_time()
        model.fit(X[:n])
        rows[-1]["estimator_seconds"] = time.process_time() - start
        rows[-1]["estimator_peak_gb"] = model.report_.stages[-1].peak_memory / 1e9
        yield n


def all_rows(X: np.ndarray, k: int) -> dict[str, float]:
    """Seconds of each stage when no sample is taken, and the peak of memory."""
    seconds, start = {}, time.process_time()

    def lap(name: str) -> None:
        nonlocal start
        seconds[name] = time.process_time() - start
        start = time.process_time()

    sample, factor = binned(X, 256)
    lap("bins")
    rng = np.random.default_rng(0)
    found = factor.spectral_map(sample, k + 1, solver="auto", rng=rng)
    lap("eigenvectors")
    Y = unit_rows(found.points[:, :k])
    cones = find_cones(Y, sample.weights, k, assign_labels="kmeans", n_init=1, rng=rng)
    (Y @ cones.directions.T).argmax(axis=1)
    lap("clusters")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {**seconds, "peak_gb": peak, "residual": float(found.residuals.max())}


# Theorem 2


def study_convergence(folder: Path, found: dict[str, Any], quick: bool) -> Any:
    """The exact objective at the subspace found by R grids, and labels against exact labels."""
    X, y = load(folder, "pendigits")
    X, y = (X[:1500], y[:1500]) if quick else (X[:4000], y[:4000])
    sample, first = binned(X, 16)
    kernel = first.kernel
    K = kernel.matrix(sample.rows, sample.rows)
    s = 1 / np.sqrt(K.sum(axis=1))
    M = s[:, None] * K * s
    exact = leading_eigenpairs(M, 10, solver="arpack", rng=np.random.default_rng(0))
    whole = ExactSpectral(10, kernel).fit_predict(X)
    rows = found["convergence"] = {
        "exact_nmi": normalized_mutual_info(y, whole),
        "grids": [],
    }
    for n_grids in (16, 64, 256) if quick else (16, 32, 64, 128, 256, 512, 1024):
        losses, nmi = [], []
        for seed in range(2 if quick else 3):
            rng = np.random.default_rng(seed)
            factor = RandomBinning(n_grids).fit(kernel, sample, rng=rng)
            _, A = scaled_csr(factor, sample)
            U = leading_eigenpairs(A, 10, solver="arpack", rng=rng).vectors
            losses.append(float(exact.values.sum() - np.trace(U.T @ M @ U)))
            params = {"kernel": kernel, "approximation": "binning", "rank": n_grids}
            model = SpectralClustering(10, **params, random_state=seed).fit(X)
            nmi.append(normalized_mutual_info(y, model.labels_))
        rows["grids"].append({"R": n_grids, "loss": losses, "nmi": nmi})
        yield n_grids
    if not quick:
        rows["all_rows"] = all_rows_convergence(*load(folder, "pendigits"))
        yield "all rows"


def all_rows_convergence(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """All of pendigits: exact labels against those of 1,024 grids, with one kernel."""
    kernel = binned(X, 16)[1].kernel
    exact = ExactSpectral(10, kernel).fit_predict(X)
    nmi = []
    for seed in range(5):
        params = {"kernel": kernel, "approximation": "binning", "rank": 1024}
        model = SpectralClustering(10, **params, random_state=seed).fit(X)
        nmi.append(normalized_mutual_info(y, model.labels_))
    return {"n": len(X), "exact_nmi": normalized_mutual_info(y, exact), "nmi": nmi}


# What is written


def report(found: dict[str, Any]) -> str:
    parts = [
        "# Paper 003: spectral clustering with random binning features",
        'CPU seconds of one thread. Bandwidths are those of `gamma="auto"`, no labels used, '
        "unless marked. covtype and poker are parts of the paper's sets; acoustic and cod_rna are "
        "not among our data. The paper's seconds are of another machine and many threads.",
    ]
    for name in PARTS:
        if found.get(name):
            parts.append(globals()[f"{name}_text"](found[name]))
    return "\n\n".join(parts)


def table(head: list[str], lines: list[list[Any]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


def tables_text(tables: dict[str, Any]) -> str:
    ranks, seconds, details, marked = [], [], [], []
    for title, result in tables.items():
        rows = result["methods"]
        for target, key, paper in ((ranks, "average_rank", RANKS), (seconds, "seconds", SECONDS)):
            cells = [
                f"{rows[m][key]:.2f} ({p})" if m in rows else f"– ({p})"
                for m, p in zip(METHODS, paper[title], strict=True)
            ]
            target.append([f"{title}, R = {result['rank']}", *cells])
        for method, row in rows.items():
            values = [f"{row[m]:.3f}" for m in (*METRICS, "pairwise_f")]
            stages = ", ".join(f"{n} {s:.2f}" for n, s in row.get("stages", {}).items())
            details.append([title, method, *values, stages])
        best = result.get("chosen_with_labels")
        if best:
            cells = [f"{best['times_auto']:g} × auto", f"{best['normalized_mutual_info']:.3f}"]
            marked.append([title, *cells, f"{rows['SC_RB']['normalized_mutual_info']:.3f}"])
    return "\n\n".join(
        [
            "## Table 2: average ranks, ours (the paper's)",
            table(["data", *METHODS], ranks),
            "Ranks by NMI, Rand index, F (mean over clusters) and accuracy; the last digit of a "
            "rank hangs on one seed.",
            "## Table 3: seconds, ours (the paper's)",
            table(["data", *METHODS], seconds),
            "## Scores and stages",
            table(
                ["data", "method", "NMI", "Rand", "mean F", "accuracy", "pair F", "stages"],
                details,
            ),
            "## SC_RB with a bandwidth chosen with the labels, as the paper did",
            table(["data", "gamma", "NMI (R ≤ 256)", "NMI, auto"], marked),
        ]
    )


def grids_text(grids: dict[str, Any]) -> str:
    lines = [
        [title, name, size, f"{row['accuracy']:.3f}", f"{row['normalized_mutual_info']:.3f}",
         f"{row['seconds']:.2f}"]
        for title, by in grids.items()
        for name, sizes in by.items()
        for size, row in sizes.items()
    ]  # fmt: skip
    head = ["data", "method", "R", "accuracy", "NMI", "seconds"]
    return "## Figs. 2, 3, 5: more features\n\n" + table(head, lines)


def solvers_text(solvers: dict[str, Any]) -> str:
    lines = [
        [title, name, f"{row['seconds']:.2f}", f"{row['residual']:.1e}", f"{row['nmi']:.3f}"]
        for title, result in solvers.items()
        for name, row in result["by"].items()
    ]
    head = ["data", "solver, tolerance", "seconds", "largest residual", "NMI"]
    ratios = [
        f"{title}, {tol}: {by[f'PRIMME svds, CSR, {tol}']['seconds'] / row['seconds']:.1f}"
        for title, result in solvers.items()
        for by in [result["by"]]
        for name, row in by.items()
        for tol in [name.rsplit(" ", 1)[-1]]
        if name.startswith("Lanczos") and f"PRIMME svds, CSR, {tol}" in by
    ]
    return (
        "## Solvers (R = 256)\n\n"
        "k leading vectors, the tolerance being that of singular vectors, relative to the largest "
        "singular value (ARPACK: relative to each eigenvalue). Residuals are those of the "
        "eigenvectors of D^-½ Z Zᵀ D^-½. The seconds of Lanczos are those of the whole stage: "
        "joining grids, degrees, unconnected parts, and a look for overlooked vectors.\n\n"
        + table(head, lines)
        + ("\n\nPRIMME's seconds / ours: " + "; ".join(ratios) if ratios else "")
    )


def rows_text(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        total = row["bins"] + row["eigenvectors"] + row["clusters"]
        estimator = row.get("estimator_seconds", float("nan"))
        lines.append(
            [f"{row['n']:,}", *(f"{row[n]:.2f}" for n in ("bins", "eigenvectors", "clusters")),
             f"{1e6 * total / row['n']:.1f}", f"{1e9 * row['bins'] / row['n'] / 256:.1f}",
             f"{row['peak_gb']:.2f}", f"{estimator:.2f}"]
        )  # fmt: skip
    head = [
        *("n", "bins", "eigenvectors", "clusters", "µs per row", "bins: ns per row and grid"),
        *("peak GB so far", "estimator"),
    ]
    return (
        "## Fig. 4: more rows (simulated poker, 10 features, R = 256)\n\n"
        "All rows in the graph; last column: `SpectralClustering`, whose graph is made of at most "
        "100,000 rows. Of three runs the fastest of each stage.\n\n" + table(head, lines)
    )


def convergence_text(rows: dict[str, Any]) -> str:
    lines = [
        [row["R"], f"{np.mean(row['loss']):.4f}", f"{np.mean(row['nmi']):.3f}"]
        for row in rows["grids"]
    ]
    whole = rows.get("all_rows")
    more = (
        f"\n\nAll {whole['n']:,} rows: exact NMI {whole['exact_nmi']:.3f}, with R = 1024 "
        f"{np.mean(whole['nmi']):.3f} ({min(whole['nmi']):.3f} to {max(whole['nmi']):.3f}, "
        f"{len(whole['nmi'])} seeds)."
        if whole
        else ""
    )
    return (
        "## Theorem 2: convergence to exact spectral clustering (4,000 rows of pendigits)\n\n"
        f"Exact spectral clustering with the same kernel: NMI {rows['exact_nmi']:.3f}. Loss: "
        "trace(Uᵀ L U) - trace(U*ᵀ L U*), the mean of 3 seeds.\n\n"
        + table(["R", "loss", "NMI"], lines)
        + more
    )


def draw(found: dict[str, Any], path: Path) -> None:
    """Convergence, time against R and against N."""
    figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    if found.get("convergence"):
        rows = found["convergence"]["grids"]
        axes[0].loglog([r["R"] for r in rows], [np.mean(r["loss"]) for r in rows], "o-")
        axes[0].set(title="Theorem 2: loss against exact", xlabel="R")
    for title, by in found.get("grids", {}).items():
        for name, style in (("SC_RB", "o-"), ("SC_RF", "x--")):
            sizes = by[name]
            values = [row["seconds"] for row in sizes.values()]
            axes[1].loglog([int(s) for s in sizes], values, style, label=f"{title}, {name}")
    axes[1].set(title="seconds against R", xlabel="R")
    if found.get("grids"):
        axes[1].legend(fontsize=7)
    if found.get("rows"):
        rows = found["rows"]
        totals = [r["bins"] + r["eigenvectors"] + r["clusters"] for r in rows]
        axes[2].loglog([r["n"] for r in rows], totals, "o-", label="all rows in the graph")
        times = [(r["n"], r["estimator_seconds"]) for r in rows if "estimator_seconds" in r]
        axes[2].loglog(*zip(*times, strict=True), "x--", label="estimator")
        axes[2].legend()
    axes[2].set(title="seconds against N (R = 256)", xlabel="N")
    figure.savefig(path, dpi=110)
    plt.close(figure)
