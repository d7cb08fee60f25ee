"""Paper 000, streaming sparse kernel k-means: its figures and tables in shape, honestly.

Parts, each written as soon as it is there: coverage (Fig. 1), spectrum (eqs. 5 and 11), initial
(Table 4: m), neighbors (Table 5: p), rows (Fig. 3: N), clusters (Fig. 4: C), composite (the
kernels of Sect. 4.2), compare (Table 3, Fig. 2) and families (where it wins and where it does not).
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from benchmarks.measure import RESULTS, data_folder, load, machine, reopened, write
from benchmarks.papers.verdicts_000 import verdicts
from mercer import (
    RBF,
    Cosine,
    HistogramIntersection,
    KernelFeatures,
    KernelKMeans,
    MercerWarning,
    SpectralClustering,
    StreamingKernelKMeans,
)
from mercer.datasets import many_clusters, rings
from mercer.factors.mutual import neighbor_kernel
from mercer.metrics import normalized_mutual_info
from mercer.rows.format import RowFormat
from mercer.stream.eigen_updates import leverage_of_rows

mpl.use("Agg")
import matplotlib.pyplot as plt

PARTS = (
    "coverage", "spectrum", "initial", "neighbors", "rows", "clusters", "composite", "compare",
    "families",
)  # fmt: skip
MOST_ROWS = 20_000  # of a real data set in the sweeps
# CIFAR-100 and ImageNet are not public in the form that was used, Youtube and Tiny not at all.
M, P = (5000, 10_000, 15_000, 20_000), (1000, 5000, 10_000, 15_000)
PUBLISHED: dict[str, dict[str, tuple[Any, ...]]] = {  # seconds, then NMI in per cent
    "initial": {
        "m": M,
        "CIFAR-100, streaming": ((6192, 9.54), (18_256, 9.76), (34_192, 10.40), (49_887, 12.23)),
        "CIFAR-100, approximate": ((1693, 1.86), (4134, 1.87), (7856, 1.87), (11_394, 1.84)),
        "ImageNet, streaming": (
            (24_029, 16.31), (36_669, 15.96), (53_142, 15.62), (74_794, 16.15)
        ),
        "ImageNet, approximate": ((15_691, 13.01), (16_023, 13.04), None, None),
    },
    "neighbors": {
        "p": P,
        "CIFAR-100": ((49_887, 12.23), (52_073, 12.09), (54_205, 13.86), (55_062, 14.00)),
        "ImageNet": ((74_794, 16.15), (82_880, 17.58), (192_725, 18.01), (247_911, 18.23)),
    },
}  # fmt: skip
TIMES = {  # Table 3, seconds: streaming, approximate kernel k-means, k-means, kernel k-means
    "CIFAR-100": (49_887, 11_394, 1507, 117_513),
    "ImageNet": (74_794, 16_023, 240_722, 182_311),
    "Youtube": (217_533, 57_096, 145_039, 679_061),
    "Tiny": (343_560, 371_004, 359_291, 704_656),
}
OURS_OF_TIMES = ("streaming", "Nyström + k-means", "k-means", "full kernel k-means")
PUBLISHED_ADDITIONS = (453, 69)  # rows that joined the buffer, of m = 5,000 and 20,000
GAMMAS = (0.1, 1.0, 10.0, 100.0)  # of Fig. 1, which does not state its bandwidth
LEAST_CHANCE = 1e-9  # beside the largest, so that there are always 50 rows to draw
FEW_CENTERS = 100  # up to here every method is tried
HOW_MANY = "Of 10,000 clusters: MiniBatchKMeans from one start."
SMALL_BUFFER = {"initial_size": 500, "max_size": 500, "batch_size": 2000}
FAMILIES = {  # rows, clusters, sizes, shape, separation
    "100 equal, convex": (20_000, 100, "equal", "convex", 0.8),
    "100 zipf, convex": (20_000, 100, "zipf", "convex", 0.8),
    "100 equal, curved": (20_000, 100, "equal", "curved", 0.8),
    "100 zipf, curved": (20_000, 100, "zipf", "curved", 0.8),
    "1,000 equal, convex": (50_000, 1000, "equal", "convex", 0.8),
    "1,000 zipf, convex": (50_000, 1000, "zipf", "convex", 0.8),
    "1,000 zipf, curved": (50_000, 1000, "zipf", "curved", 0.8),
    "10,000 zipf, convex": (100_000, 10_000, "zipf", "convex", 0.8),
}


def run(data: str | None, *, quick: bool = False, jobs: int = 1, part: str | None = None) -> None:
    folder, suffix = data_folder(data), "-quick" if quick else ""
    path = RESULTS / f"000{suffix}.json"
    found: dict[str, Any] = {}  # a whole run starts anew
    if part is not None and path.exists():
        found = reopened(json.loads(path.read_text()))
    makers: dict[str, Callable[[Path, bool], Any]] = {
        "coverage": coverage,
        "spectrum": spectrum,
        "initial": initial,
        "neighbors": neighbors,
        "rows": more_rows,
        "clusters": more_clusters,
        "composite": composite,
        "compare": compare,
        "families": families,
    }
    for name in PARTS if part is None else (part,):
        start = time.perf_counter()
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", MercerWarning)
            made = makers[name](folder, quick)
            for found[name] in made if isinstance(made, Iterator) else [made]:
                found["machine"] = machine()
                write(f"000{suffix}", found, text(found), part=name)
                draw(found, RESULTS / f"000{suffix}.png")
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)


def coverage(folder: Path, quick: bool) -> dict[str, dict[str, float]]:
    """Fig. 1: how often 50 of 1,000 rows on ten rings touch every ring, by kind of sampling."""
    names, n_draws = ("uniform", "leverage", "ridge leverage"), 20 if quick else 100
    found = {name: {f"{gamma:g}": 0.0 for gamma in GAMMAS} for name in names}
    for draw in range(n_draws):
        X, y = rings(1000, radii=range(1, 11), noise=0.05, random_state=draw)
        rng = np.random.default_rng(draw)
        for gamma in GAMMAS:
            values, vectors = np.linalg.eigh(RBF(gamma).matrix(X, X))
            top = leverage_of_rows(vectors[:, -10:])
            ridge = (vectors**2 * (values / (values + values[:-10].sum() / 10))).sum(axis=1)
            for name, mass in zip(names, (np.ones(1000), top, np.maximum(ridge, 0)), strict=True):
                chances = np.maximum(mass, LEAST_CHANCE * mass.max())
                chosen = rng.choice(1000, 50, replace=False, p=chances / chances.sum())
                found[name][f"{gamma:g}"] += (len(set(y[chosen])) == 10) / n_draws
    return found


def spectrum(folder: Path, quick: bool) -> dict[str, float]:
    """The largest eigenvalue of the bordered matrix (5) and of K + φφᵀ (11)."""
    X, _ = many_clusters(301, 10, n_features=16, random_state=0)
    graph = neighbor_kernel(
        RBF(0.01), RowFormat(np.dtype(float)), X, np.ones(301), n_neighbors=100, is_normalized=False
    )
    K = graph.matrix.toarray()
    phi = K[:-1, -1]
    return {
        "bordered": float(np.linalg.eigvalsh(K)[-1]),
        "K + phi phi^T": float(np.linalg.eigvalsh(K[:-1, :-1] + np.outer(phi, phi))[-1]),
        "smallest": float(np.linalg.eigvalsh(K)[0]),
    }


def initial(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """Table 4: the first rows, m, beside approximate kernel k-means of as many landmarks."""
    X, y = real(folder, "cifar10_gist384_STANDIN", quick)
    out = []
    for m in (500, 1000) if quick else (500, 1000, 2000):
        peers = {
            "streaming": lambda s, m=m: stream(10, s, initial_size=m),
            "Nyström": lambda s, m=m: KernelKMeans(
                10, approximation="nystrom", rank=m, random_state=s
            ),
        }
        out.append({"m": m, **{name: measured(make, X, y) for name, make in peers.items()}})
    return out


def neighbors(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """Table 5: the number of neighbours, p, normalised and as published."""
    X, y = real(folder, "mnist", quick)
    out = []
    for p in (30, 100) if quick else (10, 30, 100, 300, 1000):
        row = {"p": p}
        for name, normalize in (("normalised", True), ("as published", False)):
            row[name] = measured(lambda s, n=normalize, p=p: stream(
                10, s, n_neighbors=p, normalize=n), X, y)  # fmt: skip
        out.append(row)
    return out


def more_rows(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """Fig. 3: seconds against N."""
    out = []
    for n in (5000, 10_000) if quick else (10_000, 20_000, 50_000, 100_000, 200_000):
        X, y = many_clusters(n, 100, random_state=0, separation=0.8, dtype=np.float32)
        row = {"n": n}
        for name, sizes in (("means (default)", {}), ("eigenvectors", {"algorithm": "eigen"})):
            row[name] = measured(partial(stream, 100, **sizes), X, y, seeds=1)
        out.append(row)
    return out


def more_clusters(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """Fig. 4: seconds against C; the paper says logarithmic."""
    out = []
    for k in (10, 100) if quick else (10, 30, 100, 300, 1000):
        X, y = many_clusters(20_000, k, random_state=0, separation=0.8, dtype=np.float32)
        row = {"C": k, "default": measured(partial(stream, k), X, y, seeds=1)}
        if k <= 300:  # m as in the first line of Table 4 beside C, whatever C
            sizes = {"initial_size": 2000, "max_size": 3000, "algorithm": "eigen"}
            row["eigenvectors"] = measured(partial(stream, k, **sizes), X, y, seeds=1)
        out.append(row)
    return out


def composite(folder: Path, quick: bool) -> dict[str, dict[str, Any]]:
    """The kernels of Sect. 4.2 on digits: a spatial pyramid, and text beside an image.

    Cells of 4 × 4 and 8 × 8 pixels are the levels of the pyramid and the image; the pixels that
    are set are the words of a text.
    """
    X, y = real(folder, "mnist", quick)
    pictures = np.pad(X.reshape(-1, 28, 28), ((0, 0), (2, 2), (2, 2)))
    fine, coarse = (
        pictures.reshape(len(X), 32 // c, c, 32 // c, c).sum(axis=(2, 4)).reshape(len(X), -1)
        for c in (4, 8)
    )
    total = np.maximum(fine.sum(axis=1, keepdims=True), 1e-9)
    pyramid = np.hstack([0.5 * fine / total, 0.25 * coarse / total])
    image = fine / np.abs(fine).max()
    blocks = {"text": sp.csr_array(np.asarray(X.max() / 2 < X, np.float64)), "image": image}
    both = 0.5 * Cosine(columns="text") + 0.5 * RBF(columns="image")
    return {
        "pyramid": {
            "streaming, pyramid kernel": measured(
                lambda s: InCalls(stream(10, s, kernel=HistogramIntersection())), pyramid, y
            ),
            "streaming, RBF": measured(lambda s: stream(10, s), pyramid, y),
            "MiniBatchKMeans": measured(mini_batch, pyramid, y),
        },
        "text and image": {
            "streaming, cosine + RBF": measured(
                lambda s: InCalls(stream(10, s, kernel=both)), blocks, y
            ),
            "streaming, cosine of the text": measured(
                lambda s: stream(10, s, kernel=Cosine()), blocks["text"], y
            ),
            "streaming, RBF of the image": measured(lambda s: stream(10, s), image, y),
            "MiniBatchKMeans": measured(mini_batch, np.hstack([X.max() / 2 < X, image]), y),
        },
    }


def mini_batch(seed: int) -> Any:
    return MiniBatchKMeans(10, batch_size=4096, n_init=3, random_state=seed)


def compare(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Table 3 and Fig. 2: CPU seconds and NMI beside others, on what there is."""
    found: dict[str, Any] = {}  # and given after each set
    for name, k in (("cifar10_gist384_STANDIN", 10), ("mnist", 10), ("letter_15500", 26)):
        X, y = real(folder, name, quick)
        found[name] = {n: measured(make, X, y, seeds=2) for n, make in methods(k).items()}
        yield found
    text_rows, y = news(folder, quick)
    found["news20"] = {
        "streaming, cosine": measured(
            lambda s: stream(20, s, kernel=Cosine(), n_neighbors=50), text_rows, y, seeds=2
        ),
        "MiniBatchKMeans": measured(
            lambda s: MiniBatchKMeans(20, n_init=3, random_state=s), text_rows, y, seeds=2
        ),
    }
    yield found


def families(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Many clusters, zipf or equal, convex or curved: NMI and CPU seconds of each method.

    Half an hour in all.
    """
    found: dict[str, Any] = {}
    for name, (n, k, sizes, shape, separation) in FAMILIES.items():
        if quick and k > 100:
            continue
        X, y = many_clusters(
            n // (5 if quick else 1), k, sizes=sizes, shape=shape, separation=separation,
            random_state=0, dtype=np.float32,
        )  # fmt: skip
        chosen = methods(k) if k <= FEW_CENTERS else methods_for_many(k)
        found[name] = {n: measured(make, X, y, seeds=1) for n, make in chosen.items()}
        yield found


def stream(k: int, seed: int, **parameters: Any) -> StreamingKernelKMeans:
    return StreamingKernelKMeans(k, random_state=seed, **{"n_init": 1, **parameters})


def methods(k: int) -> dict[str, Callable[[int], Any]]:
    rank = max(256, k)
    return {
        "streaming": lambda s: stream(k, s),
        "streaming, buffer 500": lambda s: stream(k, s, **SMALL_BUFFER),
        "streaming, uniform": lambda s: stream(k, s, sampling="uniform"),
        "streaming, ridge": lambda s: stream(k, s, sampling="ridge"),
        "streaming, as published": lambda s: stream(
            k, s, normalize=False, n_neighbors=500, centers="projected"
        ),
        "k-means": lambda s: KMeans(k, n_init=1, random_state=s),
        "MiniBatchKMeans": lambda s: MiniBatchKMeans(k, batch_size=4096, n_init=3, random_state=s),
        "faiss k-means": lambda s: FaissKMeans(k, s),
        "Nyström + k-means": lambda s: NystromKMeans(k, rank, s),
        "KernelKMeans, Cholesky": lambda s: KernelKMeans(k, rank=rank, random_state=s),
        "full kernel k-means": lambda s: FullKernelKMeans(k, s),
        "default SpectralClustering": lambda s: SpectralClustering(k, random_state=s),
    }


def methods_for_many(k: int) -> dict[str, Callable[[int], Any]]:
    """Those that take hundreds of clusters within minutes."""
    ours = {"streaming": lambda s: InCalls(stream(k, s))}
    peers = {name: make for name, make in methods(k).items() if name in FOR_MANY}
    if k > MOST_SWEPT:  # three starts of so many centres take a quarter of an hour
        one_start = {"batch_size": 4096, "n_init": 1}
        peers["MiniBatchKMeans"] = lambda s: MiniBatchKMeans(k, **one_start, random_state=s)
        return ours | peers
    peers["Nyström + k-means"] = lambda s: NystromKMeans(k, 256, s, max_iter=SWEEPS)
    return ours | peers


MOST_SWEPT = 1000  # centres
FOR_MANY = ("MiniBatchKMeans", "faiss k-means")
SWEEPS = 20  # of k-means with a thousand centres


class InCalls:
    """A stream as it comes, in one call, and the labels of its rows."""

    def __init__(self, model: StreamingKernelKMeans) -> None:
        self.model = model

    @property
    def stream_(self) -> Any:
        return self.model.stream_

    def fit_predict(self, X: Any) -> Any:
        return self.model.partial_fit(X).predict(X)


class FullKernelKMeans:
    """Lloyd's sweeps on the whole kernel matrix, in float32, from labels of k-means."""

    def __init__(self, k: int, seed: int) -> None:
        self.k, self.seed = k, seed

    def fit_predict(self, X: Any) -> Any:
        first = KernelKMeans(self.k, rank=2 * self.k, n_init=1, random_state=self.seed).fit(X)
        K = first.kernel_.matrix(X, X).astype(np.float32)
        labels = first.labels_
        for _ in range(100):
            members = np.eye(self.k, dtype=np.float32)[labels]
            members /= np.maximum(members.sum(axis=0), 1)
            crossed = K @ members
            within = np.einsum("ij,ij->j", members, crossed)
            moved = np.argmin(within - 2 * crossed, axis=1)
            if np.array_equal(moved, labels):
                break
            labels = moved
        return labels


class NystromKMeans:
    """k-means on Nyström features: approximate kernel k-means [chitta2011]."""

    def __init__(self, k: int, rank: int, seed: int, max_iter: int = 300) -> None:
        self.features = KernelFeatures(approximation="nystrom", rank=rank, random_state=seed)
        self.kmeans = KMeans(k, n_init=1, max_iter=max_iter, random_state=seed)

    def fit_predict(self, X: Any) -> Any:
        return self.kmeans.fit_predict(self.features.fit_transform(X))


class FaissKMeans:
    """faiss's k-means, which takes at most 256 rows per centre."""

    def __init__(self, k: int, seed: int) -> None:
        self.k, self.seed = k, seed

    def fit_predict(self, X: Any) -> Any:
        import faiss

        faiss.omp_set_num_threads(1)
        rows = np.ascontiguousarray(X, np.float32)
        model = faiss.Kmeans(rows.shape[1], self.k, seed=self.seed, niter=25)
        model.train(rows)
        return model.index.search(rows, 1)[1].ravel()


def measured(make: Callable[[int], Any], X: Any, y: Any, *, seeds: int = 2) -> dict[str, float]:
    """Mean NMI and CPU seconds over a few seeds, and the rows that joined the buffer."""
    scores, seconds, additions = [], [], []
    for seed in range(seeds):
        start, model = time.process_time(), make(seed)
        labels = model.fit_predict(X)
        seconds.append(time.process_time() - start)
        scores.append(normalized_mutual_info(y, labels))
        additions.append(getattr(getattr(model, "stream_", None), "additions", 0))
    found = {"nmi": float(np.mean(scores)), "seconds": float(np.mean(seconds))}
    return found | ({"additions": float(np.mean(additions))} if any(additions) else {})


def real(folder: Path, name: str, quick: bool) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(folder, name, np.float32)
    chosen = np.random.default_rng(0).permutation(len(X))[: 3000 if quick else MOST_ROWS]
    return X[chosen], y[chosen]


def news(folder: Path, quick: bool) -> tuple[Any, np.ndarray]:
    with np.load(folder / "news20.npz", allow_pickle=False) as file:
        arrays = (file["data"], file["indices"], file["indptr"])
        X, y = sp.csr_array(arrays, shape=tuple(file["shape"])), file["y"]
    chosen = np.random.default_rng(0).permutation(X.shape[0])[: 2000 if quick else 10_000]
    return sp.csr_array(X[chosen], dtype=np.float64), y[chosen]


def table(head: list[str], lines: list[list[str]]) -> str:
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(rows + ["| " + " | ".join(map(str, line)) + " |" for line in lines])


def published(name: str) -> str:
    """A table of the paper."""
    key, *heads = PUBLISHED[name]
    columns = [PUBLISHED[name][head] for head in heads]
    rows = [
        [
            f"{value:,}",
            *("" if of[i] is None else f"{of[i][0]:,} s, {of[i][1]:.2f}" for of in columns),
        ]
        for i, value in enumerate(PUBLISHED[name][key])
    ]
    return table([key, *heads], rows)


def cell(row: dict[str, float]) -> str:
    return f"{row['nmi']:.3f} ({row['seconds']:.1f} s)"


def text(found: dict[str, Any]) -> str:
    lines = [
        "# Paper 000: streaming sparse kernel k-means",
        "",
        "NMI (CPU seconds, one thread). Of the paper's data, CIFAR-100 and ImageNet are not in our "
        "benchmark data, Youtube and Tiny are not public: its numbers stand beside ours of other "
        "data, so trends are compared, not values.",
    ]
    if rows := verdicts(found, {"times": TIMES}):
        heads = ["", "the paper", "measured here", "verdict"]
        lines += ["", "## Verdicts", "", table(heads, rows)]
    if "coverage" in found:
        rows = [
            [name, *(f"{p:.2f}" for p in of.values())] for name, of in found["coverage"].items()
        ]
        heads = [f"γ = {gamma:g}" for gamma in GAMMAS]
        lines += ["", "## Fig. 1: the chance that 50 rows of 1,000 touch all ten rings", ""]
        lines += [table(["sampling", *heads], rows)]
    if "spectrum" in found:
        s = found["spectrum"]
        lines += ["", "## Eqs. (5) and (11)", ""]
        lines += [
            f"The largest eigenvalue of the bordered matrix is {s['bordered']:.1f}, of K + φφᵀ "
            f"{s['K + phi phi^T']:.1f}; the smallest of the mutual-neighbour kernel is "
            f"{s['smallest']:.2f}: it is not positive semi-definite."
        ]
    for name, title, key in (
        ("initial", "Table 4: first rows m (cifar10 stand-in)", "m"),
        ("neighbors", "Table 5: neighbours p (mnist)", "p"),
    ):
        if name in found:
            heads = [other for other in found[name][0] if other != key]
            rows = [[r[key], *(cell(r[h]) for h in heads)] for r in found[name]]
            lines += ["", f"## {title}", "", table([key, *heads], rows), ""]
            lines += ["Published, seconds and NMI in per cent:", "", published(name)]
            if name == "initial":
                few, many = PUBLISHED_ADDITIONS
                joined = ", ".join(f"{r['streaming']['additions']:.0f}" for r in found[name]
                                   if "additions" in r["streaming"])  # fmt: skip
                lines += ["", f"Rows that joined the buffer: {joined}. Published, CIFAR-100: {few} "
                          f"of m = {M[0]:,}, {many} of m = {M[-1]:,}."]  # fmt: skip
    for name, title, key in (
        ("rows", "Fig. 3: N (100 clusters, d = 64)", "n"),
        ("clusters", "Fig. 4: C (20,000 rows, d = 64)", "C"),
    ):
        if name in found:
            heads = [other for other in found[name][0] if other != key]
            rows = [[f"{r[key]:,}", *(cell(r[h]) if h in r else "" for h in heads)]
                    for r in found[name]]  # fmt: skip
            lines += ["", f"## {title}", "", table([key, *heads], rows)]
    for name, title in (
        ("composite", "Composite kernels (digits, as stand-ins)"),
        ("compare", "Table 3 and Fig. 2: beside others"),
        ("families", "Where it wins and where it does not"),
    ):
        if name in found:
            lines += ["", f"## {title}", ""]
            heads = list(dict.fromkeys(n for rows in found[name].values() for n in rows))
            cells = [[data, *(cell(rows[n]) if n in rows else "" for n in heads)]
                     for data, rows in found[name].items()]  # fmt: skip
            lines += [table(["data", *heads], cells), ""]
            if name != "composite":
                lines += [f"- {data}: {verdict(rows)}" for data, rows in found[name].items()]
            if name == "compare":
                rows = [[data, *map("{:,}".format, seconds)] for data, seconds in TIMES.items()]
                lines += ["", "Published, seconds (Table 3):", ""]
                lines += [table(["data", *OURS_OF_TIMES], rows)]
            if any(data.startswith("10,000") for data in found[name]):
                lines += ["", HOW_MANY]
    if "compare" in found or "families" in found:
        lines += ["", "![NMI against CPU seconds, o: streams, x: others](000.png)"]
    return "\n".join(lines)


def draw(found: dict[str, Any], path: Path) -> None:
    """NMI against CPU seconds of every method on every set."""
    panels = {**found.get("compare", {}), **found.get("families", {})}
    if not panels:
        return
    n_columns = 4
    n_lines = -(-len(panels) // n_columns)
    figure, axes = plt.subplots(
        n_lines, n_columns, figsize=(16, 3.6 * n_lines), layout="constrained", squeeze=False
    )
    names = sorted({name for rows in panels.values() for name in rows})
    colors = {name: plt.get_cmap("tab20")(i) for i, name in enumerate(names)}
    for axis, (title, rows) in zip(axes.flat, panels.items(), strict=False):
        for name, row in rows.items():
            mark = "o" if name.startswith("streaming") else "x"
            axis.semilogx(row["seconds"], row["nmi"], mark, color=colors[name])
        axis.set(title=title, xlabel="CPU seconds", ylabel="NMI")
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(panels) :]:
        axis.axis("off")
    handles = [
        plt.Line2D([], [], color=colors[n], marker="o" if n.startswith("streaming") else "x", ls="")
        for n in names
    ]
    figure.legend(handles, names, loc="outside lower center", ncols=5)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def verdict(rows: dict[str, Any]) -> str:
    """Is a stream better than both MiniBatchKMeans and Nyström + k-means, and how much slower?"""
    names = [name for name in ("MiniBatchKMeans", "Nyström + k-means") if name in rows]
    peers, both = [rows[name] for name in names], " and ".join(names)
    ours = {n: r for n, r in rows.items() if n.startswith("streaming")}
    quickest = min(peer["seconds"] for peer in peers)
    most = max(peer["nmi"] for peer in peers)
    winners = {n: r["seconds"] / quickest for n, r in ours.items() if r["nmi"] > most}
    if winners:
        name = min(winners, key=lambda n: winners[n])
        return f"**{name}** is above {both}, at {winners[name]:.1f} times the time of the quicker."
    best = max(ours, key=lambda n: ours[n]["nmi"])
    return f"no stream is above {both}; {best} is {most - ours[best]['nmi']:.3f} below."
