"""Paper 001, fast kernel k-means by incomplete Cholesky factorisation: its figures, ours beside.

The paper's kernel is exp(-σ‖x - y‖²), so σ is `gamma`. Its methods differ in the factor alone:
each is `KernelKMeans` with another `approximation` (docs/methods.md).
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.measure import RESULTS, data_folder, load, machine, write
from mercer import (
    RBF,
    Exact,
    IncompleteCholesky,
    KernelKMeans,
    MercerWarning,
    Nystrom,
    RandomFourier,
)
from mercer.datasets import parabolas, ring_and_core, zigzag
from mercer.factors.base import as_sample
from mercer.linalg.lloyd import nearest_center, scores_of_centers
from mercer.metrics import accuracy, normalized_mutual_info
from mercer.partitions.kmeans import kmeans

mpl.use("Agg")
import matplotlib.pyplot as plt

SIZES = (25, 50, 100, 200, 500, 1000)  # the paper's "subsetSize"
SEEDS = range(10)
MAX_ITER = 1000  # the paper's
TRACE = 1e-3  # the paper's ε: it stops at this trace(K - F Fᵀ)
VERDICTS = {True: "yes", False: "**no**", None: "undecided"}
ALIKE = 0.02  # accuracies that differ by less count as the same
SHAPES = {  # generator, our gamma, the paper's σ (for its own points, which are not published)
    "Ring": (ring_and_core, 0.25, 2.0**4),
    "Parabolic": (parabolas, 1.5, 2.0**1),
    "Zigzag": (zigzag, 0.25, 2.0**3),
}
SCALES = {"raw": None, "[0, 1]": (0.0, 1.0), "[-1, 1]": (-1.0, 1.0)}
COLORS = {"ICF": "tab:red", "Nyström": "tab:blue", "RFF": "tab:green", "random": "tab:orange"}
STYLES = {"Kernel": ("black", "--"), "Kernel+Chol": ("tab:purple", ":")}


@dataclass(frozen=True)
class Study:
    """One data set of Figs. 3-5, and how often each subset size is run."""

    title: str
    file: str
    n_clusters: int
    sigma: float  # the paper's
    n_rows: int | None = None
    n_columns: int | None = None
    runs: tuple[int, int] = (10, 10)  # below subset size 500, and from there
    is_image: bool = False  # columns share one range
    dtype: Any = np.float64
    exact: tuple[str, ...] = ()


STUDIES = (
    Study(
        *("Mnist", "mnist", 10, 2.0**-6),
        n_rows=60_000,
        n_columns=780,
        runs=(3, 3),
        is_image=True,
        dtype=np.float32,
    ),
    Study("PenDigits", "pendigits", 10, 2.0**-16, exact=("Kernel+Chol",)),
    Study("Satimage", "satimage", 6, 2.0**-3, exact=("Kernel", "Kernel+Chol")),
    Study("Shuttle", "shuttle", 7, 2.0, n_rows=43_500, runs=(10, 3)),
)
ORDER = ("PenDigits", "Satimage", "Shuttle", "Mnist")


def subset_methods(size: int, n_rows: int) -> dict[str, Any]:
    """The methods that scale. Approx (Chitta 2011) is the same configuration as Nyström."""
    return {
        "Nyström": Nystrom(size),
        "RFF": RandomFourier(2 * size),  # a cosine and a sine for each wave
        "ICF": IncompleteCholesky(size, pivots="greedy", tol=TRACE / n_rows),
    }


def exact_methods(n_rows: int) -> dict[str, Any]:
    """The whole matrix; above 8,000 rows Cholesky to a relative trace of 10⁻⁶ or rank 4,000."""
    complete = Exact("cholesky") if n_rows <= 8000 else IncompleteCholesky(4000, tol=1e-6)
    return {"Kernel": Exact("eigen"), "Kernel+Chol": complete}


def run(data: str | None, *, quick: bool = False, jobs: int = 1) -> None:
    folder = data_folder(data)
    RESULTS.mkdir(exist_ok=True)
    suffix = "-quick" if quick else ""
    where = machine()  # now: the commit may change while this runs
    shapes = study_shapes(RESULTS / f"001-shapes{suffix}.png")
    decay = study_decay(folder, RESULTS / f"001-decay{suffix}.png")
    tasks = [
        delayed(compare)(study, folder, rule=rule, quick=quick)
        for study in STUDIES
        for rule in ("paper", "auto")
    ]
    found = Parallel(n_jobs=jobs, batch_size=1)(tasks)
    found.sort(key=lambda result: (ORDER.index(result["data"]), result["rule"] != "paper"))
    plot_curves(found, "accuracy", RESULTS / f"001-accuracy{suffix}.png")
    plot_curves(found, "seconds", RESULTS / f"001-time{suffix}.png")
    claims = judge(found)
    result = {
        "machine": where,
        "seeds": list(SEEDS),
        "shapes": shapes,
        "decay": decay,
        "comparisons": found,
        "claims": claims,
    }
    write(f"001{suffix}", result, report(shapes, decay, found, claims))


# Fig. 2: three shapes


def study_shapes(path: Path) -> list[dict[str, Any]]:
    """Accuracy at 50 greedy pivots, seeds 0-9 of points and starts; a picture of seed 0."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    rows = []
    for axis, (name, (shape, ours, theirs)) in zip(axes, SHAPES.items(), strict=True):
        row: dict[str, Any] = {"shape": name, "gamma": ours, "sigma_of_paper": theirs}
        for title, gamma, n_init in (
            ("one start", ours, 1),
            ("best of 10 starts", ours, 10),
            ("paper's sigma, best of 10", theirs, 10),
        ):
            row[title] = [_shape_accuracy(shape, gamma, n_init, seed) for seed in SEEDS]
        rows.append(row)
        _draw_shape(axis, name, shape, ours)
    figure.suptitle("Kernel k-means on 50 greedy pivots of 1,000 points (pivots: black circles)")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return rows


def _shape_model(gamma: float, n_init: int, seed: int) -> KernelKMeans:
    pivots = IncompleteCholesky(50, pivots="greedy")
    return KernelKMeans(2, gamma=gamma, approximation=pivots, n_init=n_init, random_state=seed)


def _shape_accuracy(shape: Any, gamma: float, n_init: int, seed: int) -> float:
    X, y = shape(1000, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # the paper's σ is too narrow for our shapes
        return accuracy(y, _shape_model(gamma, n_init, seed).fit(X).labels_)


def _draw_shape(axis: Any, name: str, shape: Any, gamma: float) -> None:
    X, y = shape(1000, random_state=0)
    model = _shape_model(gamma, 10, 0).fit(X)
    pivots = X[model.factor_.pivot_ids]
    axis.scatter(*X.T, c=np.where(model.labels_ == 0, "tab:blue", "tab:orange"), s=7)
    axis.scatter(*pivots.T, facecolors="none", edgecolors="black", s=45, linewidths=1.2)
    score = accuracy(y, model.labels_)
    axis.set(title=f"{name}: gamma = {gamma:g}, accuracy {100 * score:.1f} %", aspect="equal")


# Fig. 1: decay of the error


def study_decay(folder: Path, path: Path, n_rows: int = 2000) -> list[dict[str, Any]]:
    """trace(K - F Fᵀ) against the rank, on a sample of the rows."""
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    chosen = {study.title: study for study in STUDIES}
    rows = []
    for axis, title in zip(axes, ("Mnist", "PenDigits"), strict=True):
        data = _data(chosen[title], folder)
        few = np.sort(np.random.default_rng(0).choice(len(data.X), n_rows, replace=False))
        row = _decay(data.X[few].astype(np.float64), RBF(chosen[title].sigma))
        rows.append({"data": title, "scale": data.scale, "n_rows": n_rows, **row})
        _draw_decay(axis, rows[-1])
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return rows


def _decay(X: np.ndarray, kernel: RBF) -> dict[str, Any]:
    ranks = [1, 5, 10, 25, 50, 100, 150, 200, 300, 400, 500, 700, 1000]
    left = np.cumsum(np.linalg.eigvalsh(kernel.matrix(X, X)))[::-1]  # left[s]: without s largest
    traces: dict[str, list[float]] = {"best": [float(left[s]) for s in ranks]}
    for name, make, n_seeds in (
        ("ICF", lambda s: IncompleteCholesky(s, pivots="greedy"), 1),
        ("random", IncompleteCholesky, 5),
        ("Nyström", Nystrom, 5),
    ):
        traces[name] = [
            len(X) * float(np.mean([_trace_error(make(s), kernel, X, i) for i in range(n_seeds)]))
            for s in ranks
        ]
    return {"gamma": kernel.gamma, "ranks": ranks, "traces": traces}


def _trace_error(approximation: Any, kernel: RBF, X: np.ndarray, seed: int) -> float:
    return approximation.fit(kernel, X, rng=np.random.default_rng(seed)).trace_error


def _draw_decay(axis: Any, row: dict[str, Any]) -> None:
    names = {
        "Nyström": "Nyström, uniform (mean of 5)",
        "ICF": "greedy pivots (ICF, paper 001)",
        "random": "random pivots (Mercer's default, mean of 5)",
        "best": "best possible: eigenvalues",
    }
    for name, label in names.items():
        color = COLORS.get(name, "black")
        axis.semilogy(row["ranks"], row["traces"][name], ".-", color=color, label=label)
    axis.set(
        title=f"{row['data']} {row['scale']}, {row['n_rows']:,} rows, σ = {_power(row['gamma'])}",
        xlabel="rank s",
        ylabel="trace(K - F Fᵀ)",
    )
    axis.grid(alpha=0.3)
    axis.legend()


# Figs. 3-5: accuracy and time


def compare(study: Study, folder: Path, *, rule: str, quick: bool) -> dict[str, Any]:
    """All methods on one data set with one bandwidth."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # they are kept with each run
        data, k = _data(study, folder), study.n_clusters
        X, y = (data.X[:2000], data.y[:2000]) if quick else (data.X, data.y)
        automatic = KernelKMeans(k, rank=k, random_state=0).fit(X)  # also compiles
        gamma = study.sigma if rule == "paper" else automatic.kernel_.gamma
        result: dict[str, Any] = {
            "data": study.title,
            "shape": X.shape,
            "dtype": str(X.dtype),
            "scale": data.scale,
            "rule": rule,
            "gamma": gamma,
            "effective_ranks": data.effective_ranks,
            "methods": {},
        }
        for size in SIZES[:3] if quick else SIZES:
            for name, approximation in subset_methods(size, len(X)).items():
                seeds = SEEDS[: 2 if quick else study.runs[size >= 500]]
                runs = [_fit(X, y, k, gamma, approximation, seed) for seed in seeds]
                result["methods"].setdefault(name, {})[size] = summarize(runs)
            print(study.title, rule, size, flush=True)
        for name in study.exact:
            if name == "Kernel" and rule == "auto":
                continue  # it equals Kernel+Chol, which the paper's σ shows
            result["methods"][name] = _exact(X, y, k, gamma, exact_methods(len(X))[name])
        if study.exact and rule == "paper":
            result["factor_alone"] = _factor_alone(X, y, k, gamma)
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


def _fit(
    X: np.ndarray, y: np.ndarray, k: int, gamma: float, approximation: Any, seed: int
) -> dict[str, Any]:
    model = KernelKMeans(
        k, gamma=gamma, approximation=approximation, max_iter=MAX_ITER, random_state=seed
    )
    start = time.process_time()
    model.fit(X)
    return {
        "seed": seed,
        "seconds": time.process_time() - start,
        "accuracy": accuracy(y, model.labels_),
        "nmi": normalized_mutual_info(y, model.labels_),
        "rank": model.factor_.rank,
        "trace_error": model.factor_.trace_error,
        "n_iter": model.n_iter_,
        "warnings": list(model.report_.warnings),
    }


def _exact(
    X: np.ndarray, y: np.ndarray, k: int, gamma: float, approximation: Any
) -> dict[str, Any]:
    """One factor, ten runs of k-means on it; each run's time includes the factor's."""
    kernel, start = RBF(gamma), time.process_time()
    factor = approximation.fit(kernel, as_sample(kernel, X), rng=np.random.default_rng(0))
    seconds = time.process_time() - start
    runs = []
    for seed in SEEDS:
        start = time.process_time()
        scores = _cluster(factor.training_rows, y, k, seed)
        spent = seconds + time.process_time() - start
        runs.append({"seed": seed, "seconds": spent, **scores, "warnings": []})
    how = {"approximation": repr(approximation), "rank": factor.rank, "factor_seconds": seconds}
    return {**how, "trace_error": factor.trace_error, **summarize(runs)}


def _cluster(F: np.ndarray, y: np.ndarray, k: int, seed: int) -> dict[str, float]:
    """k-means on the rows of a factor, as KernelKMeans runs it."""
    rng = np.random.default_rng(seed)
    found = kmeans(F, np.ones(len(F)), k, n_init=1, max_iter=MAX_ITER, tol=1e-4, rng=rng)
    A, b = scores_of_centers(found.centers)
    labels = nearest_center(F @ A + b)[0]
    return {"accuracy": accuracy(y, labels), "nmi": normalized_mutual_info(y, labels)}


def _factor_alone(X: np.ndarray, y: np.ndarray, k: int, gamma: float) -> dict[str, Any]:
    """Ten factors of size 100, the same k-means seed for all: what the factor's draw does."""
    kernel, size = RBF(gamma), 100
    methods = {**subset_methods(size, len(X)), "random pivots": IncompleteCholesky(size)}
    spread = {}
    for name, approximation in methods.items():
        factors = (approximation.fit(kernel, X, rng=np.random.default_rng(s)) for s in SEEDS)
        scores = [_cluster(factor.training_rows, y, k, 0)["accuracy"] for factor in factors]
        spread[name] = {"mean": float(np.mean(scores)), "sd": float(np.std(scores, ddof=1))}
    return spread


def summarize(runs: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {"runs": runs}
    for key in ("accuracy", "nmi", "seconds"):
        values = [run[key] for run in runs]
        summary[key] = {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1))}
    summary["warnings"] = sorted({text for run in runs for text in run["warnings"]})
    return summary


# What the paper says, and what holds


def judge(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each claim of section 6.2.4 beside our numbers."""
    return [claim for rule in ("paper", "auto") for claim in _judge_rule(found, rule)]


def _judge_rule(found: list[dict[str, Any]], rule: str) -> list[dict[str, Any]]:
    results = [result for result in found if result["rule"] == rule]
    medium = [result for result in results if "Kernel+Chol" in result["methods"]]
    cells = [
        {name: result["methods"][name][size] for name in ("ICF", "Nyström", "RFF")}
        for result in results
        for size in result["methods"]["ICF"]
    ]
    best = sum(_leads(cell, "mean", 1) for cell in cells)
    behind = sum(_trails(cell) for cell in cells)
    steady = sum(_leads(cell, "sd", -1) for cell in cells)
    ratios = [c["ICF"]["seconds"]["mean"] / c["Nyström"]["seconds"]["mean"] for c in cells]
    claims = [
        (
            "ICF is more accurate than Nyström, Approx and RFF",
            f"its mean is highest in {best} of {len(cells)} cells (data × size), and more than "
            f"{100 * ALIKE:.0f} points below the best in {behind}",
            best >= 0.8 * len(cells),
        ),
        (
            "the variance of ICF is smaller",
            f"its sd is the smallest in {steady} of {len(cells)} cells",
            steady >= 0.8 * len(cells),
        ),
        (
            "ICF takes about the time of the other subset methods",
            f"ICF / Nyström: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, "
            f"range {min(ratios):.2f}–{max(ratios):.2f}",
            max(ratios) <= 2,
        ),
    ]
    claims += _judge_growth(results)
    for result in medium:
        claims += _judge_exact(result)
    return [
        {
            "rule": rule,
            "claim": claim,
            "ours": ours,
            "holds": None if holds is None else bool(holds),
        }
        for claim, ours, holds in claims
    ]


def _judge_growth(results: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    """From the smallest subset to the largest, and the worst from size 50 on."""
    gains, dips = {}, {}
    for result in results:
        means = [cell["accuracy"]["mean"] for cell in result["methods"]["ICF"].values()]
        gains[result["data"]] = means[-1] - means[0]
        dips[result["data"]] = min(means[1:]) - means[-1]
    return [
        (
            "the accuracy of ICF grows with the subset size",
            f"from 25 to the largest, in points: {_points(gains)}",
            min(gains.values()) > ALIKE,
        ),
        (
            "ICF is as good as it gets from size 50 on",
            f"worst mean from 50 on, less that of the largest, in points: {_points(dips)}",
            min(dips.values()) >= -ALIKE,
        ),
    ]


def _points(values: dict[str, float]) -> str:
    return ", ".join(f"{data} {100 * value:+.1f}" for data, value in values.items())


def _judge_exact(result: dict[str, Any]) -> list[tuple[str, str, bool | None]]:
    """ICF against the whole kernel matrix."""
    data, methods = result["data"], result["methods"]
    icf, exact = methods["ICF"], methods["Kernel+Chol"]
    goal = exact["accuracy"]["mean"]
    gaps = {size: cell["accuracy"]["mean"] - goal for size, cell in icf.items()}
    paper_size = {"PenDigits": 25, "Satimage": 50}[data]
    behind = {size: -gap for size, gap in gaps.items() if size >= paper_size and gap < -ALIKE}
    is_clear = any(
        gap > 2 * np.hypot(_error(icf[size]), _error(exact)) for size, gap in behind.items()
    )
    verdict = None if behind and not is_clear else not behind  # None: within the runs' error
    speed = exact["seconds"]["mean"] / icf[100]["seconds"]["mean"]
    listed = ", ".join(f"{100 * gap:+.1f}" for gap in gaps.values())
    claims = [
        (
            f"{data}: ICF has the accuracy of kernel k-means from size {paper_size}",
            f"ICF − exact, in points by size: {listed} (exact: {_percent(exact['accuracy'])})",
            verdict,
        ),
        (
            f"{data}: ICF is much faster than the whole matrix",
            f"{speed:.0f} times at size 100",
            speed > 5,
        ),
    ]
    if "Kernel" in methods:
        difference = methods["Kernel"]["accuracy"]["mean"] - goal
        slower = exact["seconds"]["mean"] / methods["Kernel"]["seconds"]["mean"]
        claims += [
            (
                f"{data}: Kernel and Kernel+Chol are equally accurate",
                f"they differ by {100 * difference:+.1f} points",
                abs(difference) <= ALIKE,
            ),
            (
                f"{data}: Kernel+Chol is slower than Kernel",
                f"it takes {slower:.2f} of the time of our Kernel (an eigendecomposition)",
                slower > 1,
            ),
        ]
    return claims


def _error(cell: dict[str, Any]) -> float:
    """The standard error of the mean accuracy."""
    return cell["accuracy"]["sd"] / np.sqrt(len(cell["runs"]))


def _leads(cell: dict[str, Any], key: str, sign: int) -> bool:
    """ICF is strictly ahead of both others."""
    value = {name: sign * cell[name]["accuracy"][key] for name in cell}
    return value["ICF"] > max(value["Nyström"], value["RFF"])


def _trails(cell: dict[str, Any]) -> bool:
    mean = {name: cell[name]["accuracy"]["mean"] for name in cell}
    return max(mean.values()) - mean["ICF"] > ALIKE


# Pictures and tables


def plot_curves(found: list[dict[str, Any]], key: str, path: Path) -> None:
    """One panel per data set and bandwidth: mean ± sd against the subset size."""
    figure, axes = plt.subplots(2, 4, figsize=(17, 8), layout="constrained", sharey="col")
    for axis, result in zip(axes.T.flat, found, strict=True):
        for name, method in result["methods"].items():
            if name in STYLES:
                color, line = STYLES[name]
                axis.axhline(method[key]["mean"], color=color, ls=line, label=f"{name} (no subset)")
            else:
                _draw_curve(axis, name, method, key)
        rule = "paper's σ" if result["rule"] == "paper" else 'gamma="auto"'
        axis.set(
            title=f"{result['data']}, {rule} = {_power(result['gamma'])}",
            xscale="log",
            xlabel="subset size",
            ylabel="accuracy" if key == "accuracy" else "CPU seconds, one thread",
        )
        axis.set_xticks(SIZES, [str(size) for size in SIZES], minor=False)
        axis.minorticks_off()
        if key == "seconds":
            axis.set_yscale("log")
        axis.grid(alpha=0.3)
    handles, labels = axes[0, 1].get_legend_handles_labels()  # Satimage, which has all methods
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=11)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_curve(axis: Any, name: str, method: dict[int, Any], key: str) -> None:
    label = "Nyström = Approx" if name == "Nyström" else name
    means = [cell[key]["mean"] for cell in method.values()]
    spread = [cell[key]["sd"] for cell in method.values()] if key == "accuracy" else None
    shift = {"Nyström": 0.97, "RFF": 1.03}.get(name, 1.0)  # so that the bars do not hide each other
    sizes = [shift * size for size in method]
    axis.errorbar(sizes, means, spread, fmt="o-", ms=4, capsize=3, color=COLORS[name], label=label)


def report(
    shapes: list[dict[str, Any]],
    decay: list[dict[str, Any]],
    found: list[dict[str, Any]],
    claims: list[dict[str, Any]],
) -> str:
    return "\n\n".join(
        [
            "# Paper 001: kernel k-means by incomplete Cholesky factorisation",
            "Every method is `KernelKMeans` with another `approximation` (docs/methods.md); "
            "`gamma` is the paper's σ. Approx and Nyström are one configuration, "
            "`Nystrom(size)`, and are run once. RFF has `size` waves, so 2·size columns. k-means "
            f"starts once per run (k-means++), max_iter = {MAX_ITER}; ICF stops at the paper's "
            "trace of 10⁻³. CPU seconds are those of one thread and include everything in `fit`. "
            "Kernel and Kernel+Chol have the same inner products, so the same k-means problem: "
            "one factor each is shared by ten runs of k-means, both are run on Satimage with the "
            "paper's σ, Kernel+Chol alone elsewhere. On PenDigits (10,992 rows, where the "
            "eigendecomposition would take minutes) Kernel+Chol stops at a relative trace of "
            "10⁻⁶ or rank 4,000. Mnist is float32; it and Shuttle have fewer runs where the "
            "tables say so.",
            _shapes_text(shapes),
            _decay_text(decay),
            _scaling_text(found),
            _accuracy_text(found),
            _seconds_text(found),
            _factor_text(found),
            _claims_text(claims),
            _warnings_text(found),
        ]
    )


def _shapes_text(shapes: list[dict[str, Any]]) -> str:
    lines = [
        f"| {row['shape']} | {row['gamma']:g} | {_hits(row['one start'])} "
        f"| {_hits(row['best of 10 starts'])} | {_power(row['sigma_of_paper'])} "
        f"| {_hits(row['paper' + chr(39) + 's sigma, best of 10'])} | 100 % |"
        for row in shapes
    ]
    return (
        "## Fig. 2: Ring, Parabolic, Zigzag\n\n"
        "500 points per cluster, 50 greedy pivots; mean accuracy over seeds 0–9 of points and "
        "starts, and how many of the ten are at 100 %. Our gamma was picked among a few values on "
        "these same seeds. The paper's σ belong to its own points, which are not published: on "
        "our shapes they are another problem "
        "(`001-shapes.png` shows seed 0 with our gamma).\n\n"
        "| shape | our gamma | one start | best of 10 starts | paper's σ | with it | paper |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(lines)
    )


def _hits(scores: list[float]) -> str:
    hits = sum(score == 1.0 for score in scores)
    return f"{100 * np.mean(scores):.1f} % ({hits}/{len(scores)})"


def _decay_text(decay: list[dict[str, Any]]) -> str:
    lines = []
    for row in decay:
        for rank in (50, 200, 500, 1000):
            values = [row["traces"][n][row["ranks"].index(rank)] for n in row["traces"]]
            listed = " | ".join(f"{value:.3g}" for value in values)
            lines.append(f"| {row['data']} {row['scale']} | {rank} | {listed} |")
    return (
        "## Fig. 1: decay of the error\n\n"
        f"trace(K − FFᵀ) on {decay[0]['n_rows']:,} rows with the paper's σ (`001-decay.png`). The "
        "paper shows USPS and MNIST; USPS is not among our data, PenDigits stands in for it. "
        "Random pivots and Nyström: mean of 5.\n\n"
        "| data | s | best rank s | greedy (ICF) | random pivots | Nyström |\n"
        "|---|---|---|---|---|---|\n" + "\n".join(lines)
    )


def _scaling_text(found: list[dict[str, Any]]) -> str:
    lines = [
        f"| {r['data']} | {_power(r['gamma'])} | "
        + " | ".join(f"{rank:.1f}" for rank in r["effective_ranks"].values())
        + f" | {r['scale']} | {auto['gamma']:.3g} |"
        for r, auto in zip(found[::2], found[1::2], strict=True)
    ]
    return (
        "## Which scaling the paper's σ are for\n\n"
        "The paper does not say. Effective rank trace(K)²/‖K‖² of 1,000 rows: near 1 the kernel is "
        "all ones, near 1,000 the identity. We take the scaling that is furthest from both ends "
        '(by columns; Mnist by one range for all pixels). `gamma="auto"` is resolved once, with '
        "seed 0, and shared by all methods.\n\n"
        "| data | paper's σ | raw | [0, 1] | [-1, 1] | used | auto |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(lines)
    )


def _accuracy_text(found: list[dict[str, Any]]) -> str:
    parts = [
        "## Figs. 3, 4: accuracy and NMI",
        "Accuracy in percent, mean ± sd (`001-accuracy.png`); NMI below it.",
    ]
    for result in found:
        parts.append(f"### {_title(result)}")
        parts.append(
            _grid(result, lambda cell: f"{_percent(cell['accuracy'])}<br>{cell['nmi']['mean']:.3f}")
        )
    return "\n\n".join(parts)


def _seconds_text(found: list[dict[str, Any]]) -> str:
    parts = ["## Fig. 5: CPU seconds", "Mean of the same runs (`001-time.png`)."]
    for result in found:
        parts.append(f"### {_title(result)}")
        parts.append(_grid(result, lambda cell: f"{cell['seconds']['mean']:.2f}"))
    return "\n\n".join(parts)


def _title(result: dict[str, Any]) -> str:
    n, d = result["shape"]
    rule = "the paper's σ" if result["rule"] == "paper" else '`gamma="auto"`'
    return f"{result['data']} {n:,} × {d} ({result['dtype']}), {rule} = {result['gamma']:.3g}"


def _grid(result: dict[str, Any], show: Any) -> str:
    methods = result["methods"]
    sizes = list(methods["ICF"])
    runs = [len(methods["ICF"][size]["runs"]) for size in sizes]
    lines = [
        "| method | "
        + " | ".join(f"{s} ({r} runs)" for s, r in zip(sizes, runs, strict=True))
        + " |"
    ]
    lines.append("|---|" + "---|" * len(sizes))
    for name, method in methods.items():
        label = "Nyström = Approx" if name == "Nyström" else name
        if name in STYLES:
            cells = [show(method), *[""] * (len(sizes) - 1)]
            label += (
                f" (no subset; `{method['approximation']}`: rank {method['rank']:,}, "
                f"relative trace left {method['trace_error']:.0e})"
            )
        else:
            cells = [show(cell) for cell in method.values()]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _factor_text(found: list[dict[str, Any]]) -> str:
    lines = [
        f"| {result['data']} | {name} | {_percent(spread)} |"
        for result in found
        for name, spread in result.get("factor_alone", {}).items()
    ]
    return (
        "## Variance that comes from the factor alone\n\n"
        "Ten factors of size 100 (seeds 0–9), one k-means seed for all, the paper's σ. Greedy "
        "pivots are deterministic, so ICF's sd is 0; what varies in the tables above is the start "
        "of k-means.\n\n| data | method | accuracy |\n|---|---|---|\n" + "\n".join(lines)
    )


def _claims_text(claims: list[dict[str, Any]]) -> str:
    lines = [
        f"| {claim['rule']} | {claim['claim']} | {claim['ours']} | {VERDICTS[claim['holds']]} |"
        for claim in claims
    ]
    return (
        "## What the paper says, and what holds here\n\n"
        f'Section 6.2.4 in our words. "Same accuracy" allows {100 * ALIKE:.0f} points; a larger '
        "gap within two standard errors of the runs is undecided. The other thresholds are ours "
        'too: "more accurate" and "smaller variance" want four cells of five, "about the time" a '
        "factor of 2 everywhere, growth 2 points on every data set."
        "\n\n| gamma | the paper | ours | holds |\n|---|---|---|---|\n" + "\n".join(lines)
    )


def _warnings_text(found: list[dict[str, Any]]) -> str:
    lines = []
    for result in found:
        for name, method in result["methods"].items():
            cells = {"": method} if name in STYLES else method
            sizes = [str(size) for size, cell in cells.items() if cell["warnings"]]
            if sizes:
                lines.append(
                    f"- {result['data']}, {result['rule']}, {name}: sizes {', '.join(sizes)}"
                )
    return "## Warnings\n\n" + (
        "\n".join(lines) + "\n\nTheir words are in the JSON." if lines else "None."
    )


def _percent(value: dict[str, float]) -> str:
    return f"{100 * value['mean']:.1f} ± {100 * value['sd']:.1f}"


def _power(value: float) -> str:
    exponent = np.log2(value)
    return f"2^{exponent:.0f}" if exponent == round(exponent) else f"{value:.3g}"
