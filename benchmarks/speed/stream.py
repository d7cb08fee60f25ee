"""StreamingKernelKMeans over a million rows: time, memory, quality, drift.

Parts, each written as soon as it is there: predict and drift of a buffer with eigenvectors, zipf
(leverage against uniform sampling), real (mnist and letter, which come once in a random order),
threads (the share of CPU time that runs in tasks of the threads, which does not depend on what else
the machine does), labels (rows per second at ten thousand means), many (300
clusters of four families beside k-means, three seeds), million (a thousand clusters of very unequal
sizes), equal (a thousand overlapping ones of one size) and large (ten thousand). The last four with
default parameters: means of all rows and a reservoir, one thread.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from benchmarks.measure import RESULTS, data_folder, load, machine, reopened, write
from mercer import StreamingKernelKMeans
from mercer.datasets import many_clusters
from mercer.metrics import normalized_mutual_info
from mercer.partitions.center_index import build_index, search_centers

PARTS = (
    "predict", "drift", "zipf", "real", "threads", "labels", "many", "million", "equal", "large",
)  # fmt: skip
ROWS, K, D = 1_000_000, 1000, 64
SIZES = {"initial_size": 5000, "max_size": 10_000, "n_neighbors": 100}
FAMILIES: dict[str, dict[str, Any]] = {  # sizes of clusters, deviation of their means
    "million": {"sizes": "zipf", "separation": 1.0},
    "equal": {"sizes": "equal", "separation": 0.6},
    "large": {"sizes": "zipf", "separation": 1.0},
}
CLUSTERS = {"million": 1000, "equal": 1000, "large": 10_000}
SEEDS = {"million": range(3), "equal": range(3), "large": range(3)}
MANY_ROWS, MANY_CLUSTERS, MANY_SEEDS = 100_000, 300, range(3)
MANY: dict[str, dict[str, Any]] = {
    "zipf": {"sizes": "zipf", "separation": 1.0},
    "zipf, closer": {"sizes": "zipf", "separation": 0.8},
    "equal": {"sizes": "equal", "separation": 0.6},
    "zipf, curved": {"sizes": "zipf", "shape": "curved", "separation": 0.8},
    "equal, curved": {"sizes": "equal", "shape": "curved", "separation": 0.8},
}
PEER_SWEEPS = 10  # of KMeans: more passes over the rows than a stream makes
MOST_SWEPT = 1000  # centres: one sweep of ten thousand over a million rows takes half a minute
STEP = 50_000  # rows of one measured call
ZIPF_SEEDS = range(5)
REAL = {"mnist": (10, 0.68), "letter": (26, 0.42)}  # clusters, and the NMI that is wanted
REAL_ROWS, REAL_SEEDS = 20_000, range(3)
THREADED = {"80 clusters": 80, "300 clusters": 300}


def run(data: str | None, part: str | None = None) -> None:
    path = RESULTS / "speed-stream.json"
    found: dict[str, Any] = reopened(json.loads(path.read_text())) if path.exists() else {}
    makers: dict[str, Callable[[], Any]] = {
        "predict": measure_predict, "drift": measure_drift, "zipf": measure_zipf,
        "real": partial(measure_real, data), "threads": measure_threads,
        "labels": measure_labels, "many": measure_many,
        **{n: partial(measure_million, n) for n in FAMILIES},
    }  # fmt: skip
    for name in PARTS if part is None else (part,):
        made = makers[name]()
        for found[name] in made if isinstance(made, Iterator) else [made]:
            found["machine"] = machine()
            found.setdefault("commits", {})[name] = found["machine"]["commit"]
            write("speed-stream", found, text(found), part=name)


def rows(n: int, family: str = "million", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    k, how = CLUSTERS[family], FAMILIES[family]
    return many_clusters(n, k, n_features=D, random_state=seed, dtype=np.float32, **how)


def measure_predict() -> dict[str, float]:
    """Rows per second of wall and of CPU time at a buffer of 5,000."""
    X, _ = rows(45_000)
    model = StreamingKernelKMeans(K, **SIZES, n_init=1, n_jobs=2, random_state=0)
    model.partial_fit(X[:5000])
    model.predict(X[:100])
    runs = []
    for _ in range(5):
        wall, cpu = time.perf_counter(), time.process_time()
        model.predict(X[5000:])
        runs.append((time.perf_counter() - wall, time.process_time() - cpu))
    best = min(runs)
    return {
        "buffer": len(model.buffer_),
        "rows_per_second": 40_000 / best[0],
        "rows_per_cpu_second": 40_000 / min(cpu for _, cpu in runs),
    }


def measure_labels() -> dict[str, Any]:
    """Rows per CPU second at ten thousand means, one thread, and the recall of the exact label.

    Isotropic means are compared all at once; where they lie in groups, by an index.
    """
    rng, k, found = np.random.default_rng(0), 10_000, {}
    groups = np.repeat(2.0 * rng.standard_normal((k // 100, D)), 100, axis=0)
    for name, means in (
        ("isotropic", rng.standard_normal((k, D))),
        ("in groups", groups + rng.standard_normal((k, D))),
    ):
        Z = (means[rng.integers(0, k, 60_000)] + rng.standard_normal((60_000, D))).astype("f")
        index = build_index(means, Z[:30_000], rng=rng)
        search, new = search_centers(means, index), Z[30_000:]
        search(new[:100])
        with threadpool_limits(1):
            before = time.process_time()
            labels = np.concatenate([search(some)[0] for some in np.array_split(new, 4)])
            seconds = time.process_time() - before
        exact = search_centers(means)(new)[0]
        found[name] = {
            "rows_per_cpu_second": len(new) / seconds,
            "recall": float((labels == exact).mean()),
            "is_indexed": index is not None,
        }
    return found


def measure_many() -> dict[str, Any]:
    """Four families of 300 clusters: a stream with default parameters, beside k-means."""
    found: dict[str, Any] = {}
    for family, how in MANY.items():
        scores: dict[str, list[tuple[float, float]]] = {}
        for seed in MANY_SEEDS:
            X, y = many_clusters(
                MANY_ROWS, MANY_CLUSTERS, n_features=D, random_state=seed, dtype=np.float32, **how
            )
            for name, labels_of in many_methods(seed).items():
                with threadpool_limits(1):
                    before = time.process_time()
                    labels = labels_of(X)
                    seconds = time.process_time() - before
                scores.setdefault(name, []).append((normalized_mutual_info(y, labels), seconds))
        found[family] = {name: np.mean(pairs, axis=0).tolist() for name, pairs in scores.items()}
        print(family, found[family], flush=True)
    return found


def many_methods(seed: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    k = MANY_CLUSTERS
    return {"stream": stream_labels(k, seed)} | peers(k, seed)


def stream_labels(k: int, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    def labels_of(X: np.ndarray) -> np.ndarray:
        model = StreamingKernelKMeans(k, random_state=seed)
        return np.asarray(model.partial_fit(X).predict(X))

    return labels_of


def peers(k: int, seed: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Those that see all rows, as often as a stream and the sweeps of its reservoir or more."""
    seeded = {"n_init": 1, "random_state": seed}
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "MiniBatchKMeans": lambda X: MiniBatchKMeans(k, batch_size=4096, **seeded).fit_predict(X)
    }
    if k > MOST_SWEPT:
        return found
    return found | {
        "KMeans": lambda X: KMeans(k, max_iter=PEER_SWEEPS, **seeded).fit_predict(X),
        "faiss": lambda X: faiss_labels(X, k, seed),
    }


def faiss_labels(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(1)
    every = {"max_points_per_centroid": len(X)}  # by default it takes 256 rows of each centre
    model = faiss.Kmeans(X.shape[1], k, seed=seed, niter=PEER_SWEEPS, **every)
    model.train(X)
    return model.index.search(X, 1)[1].ravel()


def measure_drift() -> dict[str, Any]:
    """Eigenpairs after 500 additions and evictions, against a fresh decomposition.

    No clustering comes in between, which would polish them or make them anew.
    """
    X, _ = many_clusters(20_000, 100, n_features=D, separation=1.0, random_state=0)
    model = StreamingKernelKMeans(
        100, initial_size=2000, max_size=2000, batch_size=500,
        n_neighbors=50, recluster_every=len(X), random_state=0,
    )  # fmt: skip
    for start in range(0, len(X), 500):
        model.partial_fit(X[start : start + 500])
        if model.stream_.evictions >= 500:
            break
    state = model.stream_
    k = len(state.values)
    values, vectors = eigsh(state.graph.matrix, k, which="LA")
    cosines = scipy.linalg.svdvals(state.vectors.T @ vectors)
    return {
        "additions": state.additions,
        "evictions": state.evictions,
        "refactorizations": state.refactorizations,
        "eigenvalue_error": float(np.abs(state.values / values[::-1] - 1).max()),
        "least_cosine": float(cosines.min()),
    }


def measure_zipf() -> dict[str, list[float]]:
    """C = 100 clusters of zipf sizes, buffers of 500: leverage against uniform."""
    found: dict[str, list[float]] = {name: [] for name in ("leverage", "ridge", "uniform")}
    for seed in ZIPF_SEEDS:
        X, y = many_clusters(
            20_000, 100, n_features=D, sizes="zipf", separation=1.0, random_state=seed
        )
        for sampling in found:
            model = StreamingKernelKMeans(
                100, initial_size=500, max_size=500, batch_size=500, sampling=sampling,
                random_state=seed,
            )  # fmt: skip
            labels = model.partial_fit(X).predict(X)
            found[sampling].append(normalized_mutual_info(y, labels))
        print(seed, {name: round(values[-1], 3) for name, values in found.items()}, flush=True)
    return found


def measure_real(data: str | None) -> dict[str, Any]:
    """Real sets that come once, in a random order; NMI and CPU seconds of each seed."""
    found: dict[str, Any] = {}
    for name, (k, _) in REAL.items():
        X, y = load(data_folder(data), name, np.float32)
        scores: dict[str, list[tuple[float, float]]] = {}
        for seed in REAL_SEEDS:
            chosen = np.random.default_rng(seed).permutation(len(X))[:REAL_ROWS]
            rows, classes = X[chosen], y[chosen]
            every = {"stream": stream_labels(k, seed)} | peers(k, seed)
            for method, labels_of in every.items():
                with threadpool_limits(1):
                    before = time.process_time()
                    labels = labels_of(rows)
                    seconds = time.process_time() - before
                score = normalized_mutual_info(classes, labels)
                scores.setdefault(method, []).append((score, seconds))
        found[name] = {method: np.mean(pairs, axis=0).tolist() for method, pairs in scores.items()}
    return found


def measure_threads() -> dict[str, float]:
    """Of a stream with two threads and the labels of its rows: CPU time in tasks beside all.

    Labels are counted with the tasks: `mercer stream` makes them beside the next rows.
    """
    found = {}
    for name, k in THREADED.items():
        X, _ = many_clusters(
            MANY_ROWS, k, n_features=D, sizes="zipf", separation=0.8, random_state=0, dtype="f"
        )
        StreamingKernelKMeans(k, n_jobs=2, random_state=0).partial_fit(X[: 60 * k]).predict(X[:9])
        model = StreamingKernelKMeans(k, n_jobs=2, random_state=0)
        before, alone = time.process_time(), time.thread_time()
        model.partial_fit(X)
        alone = time.thread_time() - alone
        model.predict(X)
        found[name] = 1.0 - alone / (time.process_time() - before)
    return found


def measure_million(family: str) -> Iterator[list[dict[str, Any]]]:
    """The whole stream in a process of its own, so that its memory is its own; then the peers."""
    found: list[dict[str, Any]] = []
    for seed in SEEDS[family]:
        program = f"from benchmarks.speed.stream import stream_million; stream_million({family!r}"
        done = subprocess.run(
            [sys.executable, "-c", f"{program}, {seed})"],
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        found.append(json.loads(done.stdout.splitlines()[-1]) | {"seed": seed, "peers": {}})
        yield found
        X, y = rows(ROWS, family, seed)
        for name, labels_of in peers(CLUSTERS[family], seed).items():
            with threadpool_limits(1):
                start = time.process_time()
                labels = labels_of(X)
                seconds = time.process_time() - start
            found[-1]["peers"][name] = (normalized_mutual_info(y, labels), seconds)
            print(family, seed, name, found[-1]["peers"][name], flush=True)
            yield found


def stream_million(family: str, seed: int, n_rows: int = ROWS) -> None:
    """Feed the rows in steps; print what was measured as one line of JSON."""
    X, y = rows(n_rows, family, seed)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = StreamingKernelKMeans(CLUSTERS[family], n_jobs=1, random_state=seed)
    steps, buffers = [], []
    cpu_before = time.process_time()
    for start in range(0, n_rows, STEP):
        before = time.process_time()
        model.partial_fit(X[start : start + STEP])
        steps.append(time.process_time() - before)
        buffers.append(model.report_.stream["buffer"])
        print(start + STEP, round(steps[-1], 1), model.report_.stream, file=sys.stderr, flush=True)
    fit_seconds = time.process_time() - cpu_before
    before = time.process_time()
    labels = model.predict(X)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {
        "rows": n_rows,
        "cpu_seconds": fit_seconds,
        "predict_cpu_seconds": time.process_time() - before,
        "steps": steps,
        "buffers": buffers,
        "nmi": normalized_mutual_info(y, labels),
        "peak_bytes": 1024 * peak,
        "rows_bytes": X.nbytes,
        "held_before_bytes": 1024 * held,
        **model.report_.stream,
    }
    print(json.dumps(found))


WANTED = {  # NMI at least, CPU seconds at most
    "million": ("1,000 zipf", 0.95, 90),
    "equal": ("1,000 equal", 0.80, 90),
    "large": ("10,000 zipf", 0.0, 480),
}
GAINS = {"million": -0.01, "equal": -0.01, "large": 0.02}  # over the best peer, at least
MANY_WANTED = {"zipf": 0.95, "equal": 0.86, "zipf, curved": 0.85, "equal, curved": 0.95}
MANY_SECONDS = 8


def average(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds; of memory the most."""
    names = runs[0]["peers"] if all(len(r["peers"]) == len(runs[0]["peers"]) for r in runs) else {}
    means = {n: float(np.mean([r[n] for r in runs])) for n in ("nmi", "cpu_seconds",
             "predict_cpu_seconds", "births")}  # fmt: skip
    peers = {n: np.mean([r["peers"][n] for r in runs], axis=0).tolist() for n in names}
    return means | {"peers": peers, "peak_bytes": max(r["peak_bytes"] for r in runs)}


def judge(found: dict[str, Any]) -> list[tuple[str, float, bool]]:
    """What is aimed at."""
    aims: list[tuple[str, float, bool]] = []
    for name, (words, nmi, seconds) in WANTED.items():
        if name not in found:
            continue
        m = average(found[name])
        aims += [
            (f"{words}: NMI", m["nmi"], m["nmi"] >= nmi),
            (f"{words}: CPU seconds", m["cpu_seconds"], m["cpu_seconds"] <= seconds),
        ]
        if m["peers"]:
            gain, least = m["nmi"] - max(m["peers"].values())[0], GAINS[name]
            names = ", ".join(m["peers"])
            aims.append((f"{words}: NMI - best of {names}", gain, gain >= least))
        if name == "large":
            gigabytes = m["peak_bytes"] / 1e9
            aims.append((f"{words}: GB", gigabytes, gigabytes <= 2.5))
    for family, scores in found.get("many", {}).items():
        ours, best = scores["stream"][0], max(v[0] for n, v in scores.items() if n != "stream")
        if family in MANY_WANTED:
            seconds = scores["stream"][1]
            aims.append((f"300 {family}: NMI", ours, ours >= MANY_WANTED[family]))
            aims.append((f"300 {family}: CPU seconds", seconds, seconds <= MANY_SECONDS))
        aims.append((f"300 {family}: NMI - best peer", ours - best, ours >= best - 0.01))
    for name, scores in found.get("real", {}).items():
        ours, (_, wanted) = scores["stream"][0], REAL[name]
        aims.append((f"{name}: NMI", ours, ours >= wanted))
    for name, share in found.get("threads", {}).items():
        aims.append((f"{name}: share of CPU in threads", share, share >= 0.8))
    for name, m in found.get("labels", {}).items():
        speed, recall = m["rows_per_cpu_second"], m["recall"]
        aims.append((f"rows/s at 10,000 means, {name}", speed, speed >= 20_000))
        aims.append((f"recall at 10,000 means, {name}", recall, recall >= 0.99))
    if "predict" in found:
        speed = found["predict"]["rows_per_second"]
        aims.append(("rows/s of predict, buffer 5,000", speed, speed >= 20_000))
    if "drift" in found:
        d = found["drift"]
        aims += [
            (
                "eigenvalue error after the stream",
                d["eigenvalue_error"],
                d["eigenvalue_error"] <= 0.01,
            ),
            ("least cosine of subspaces", d["least_cosine"], d["least_cosine"] >= 0.999),
        ]
    if "zipf" in found:
        gain = float(np.mean(found["zipf"]["leverage"]) - np.mean(found["zipf"]["uniform"]))
        aims.append(("zipf: NMI, leverage - uniform", gain, gain >= 0.05))
    return aims


def text(found: dict[str, Any]) -> str:
    lines = [
        "# StreamingKernelKMeans",
        "",
        f"{ROWS:,} rows × {D} (float32), default parameters, one thread; predict and drift: a "
        f"buffer with eigenvectors, {SIZES}, two threads. CPU seconds.",
        "",
        "| aim | measured | met |",
        "|---|---|---|",
    ]
    lines += [f"| {w} | {v:.4g} | {'yes' if m else '**no**'} |" for w, v, m in judge(found)]
    for name in FAMILIES:
        if name not in found:
            continue
        runs, how, m = found[name], FAMILIES[name], average(found[name])
        beside = "; ".join(f"{n} {v[0]:.3f} in {v[1]:.0f} s" for n, v in m["peers"].items())
        nmis = ", ".join(f"{r['nmi']:.3f}" for r in runs)
        lines += [
            "",
            f"{CLUSTERS[name]:,} clusters of {how['sizes']} sizes (means of deviation "
            f"{how['separation']}), {len(runs)} seed{'s' * (len(runs) > 1)}: NMI {m['nmi']:.3f} "
            f"({nmis}) in {m['cpu_seconds']:.0f} s (labels of all rows: "
            f"{m['predict_cpu_seconds']:.0f} s). {beside}. {m['peak_bytes'] / 1e9:.2f} GB, of "
            f"which {runs[0]['rows_bytes'] / 1e9:.2f} GB are the rows. Seconds per {STEP:,} rows: "
            + ", ".join(f"{s:.0f}" for s in runs[0]["steps"])
            + f". {m['births']:,.0f} clusters began in place of others.",
        ]
    if "many" in found:
        names = list(next(iter(found["many"].values())))
        lines += [
            "",
            f"{MANY_CLUSTERS} clusters in {MANY_ROWS:,} rows × {D}, mean NMI and CPU seconds of "
            f"{len(MANY_SEEDS)} seeds (KMeans and faiss: {PEER_SWEEPS} sweeps):",
            "",
            "| family | " + " | ".join(names) + " |",
            "|---" * (len(names) + 1) + "|",
        ]
        for family, scores in found["many"].items():
            cells = [f"{scores[n][0]:.3f} ({scores[n][1]:.1f} s)" for n in names]
            lines.append(f"| {family} | " + " | ".join(cells) + " |")
    if "real" in found:
        names = list(next(iter(found["real"].values())))
        lines += [
            "",
            f"{REAL_ROWS:,} rows that come once, mean NMI and CPU seconds of {len(REAL_SEEDS)} "
            "seeds:",
            "",
            "| data | " + " | ".join(names) + " |",
            "|---" * (len(names) + 1) + "|",
        ]
        for name, scores in found["real"].items():
            cells = [f"{scores[n][0]:.3f} ({scores[n][1]:.1f} s)" for n in names]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    if "zipf" in found:
        words = "; ".join(f"{n} {np.mean(v):.3f}" for n, v in found["zipf"].items())
        lines += ["", f"100 clusters of zipf sizes, buffer 500, mean NMI of 5 seeds: {words}."]
    return "\n".join(lines)
