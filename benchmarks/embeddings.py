"""Clustering embeddings: `SpectralClustering(K, kernel="cosine")` beside k-means of several kinds.

    python -m benchmarks.embeddings [--rows 200000] [--clusters 20,200,2000] [--methods 'Mercer;…']
    python -m benchmarks.embeddings --blobs [--rows 100000]
    python -m benchmarks.embeddings --news [--data DIR]

`--news` takes 20 newsgroups: a document is the mean of its words' vectors by `wordllama`, whose
weights are in its wheel; and the same less the mean of all documents, which k-means does not gain
from. `layers_nmi` is that of the layer of 4 to 9 clusters that agrees best with the six top groups.

Each method on each set runs in a process of its own on two threads, for at most 15 minutes, and is
stored in ``benchmarks/results/embeddings.json`` and ``.md`` when it is done; what is stored for
this version of the set and the method is not run again unless ``--again`` is given. Peers that are
not installed are left out. CPU seconds are those of all threads; memory is what the process grew by
at most while it fitted, beside X.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from benchmarks.measure import RESULTS, data_folder, machine, record, remember, reopened
from mercer import SpectralClustering
from mercer.datasets import directions
from mercer.metrics import adjusted_rand, normalized_mutual_info

LIMIT = 15 * 60  # seconds of a method on a set
THREADS = 2
BLOCK = 100_000  # rows of blobs that are made at once
PREDICTED = 100_000  # rows whose labels are timed
OURS, ENSEMBLE, NO_NUMBER = "Mercer", "Mercer, ensemble", "evoc"  # the last chooses its own K
NEWS = ("news", "news, centred")
NEWS_ROWS = 18_846


@dataclass(frozen=True)
class EmbeddingSet:
    """Rows that are made, and the number of clusters that is asked for."""

    kind: str  # "directions", "blobs", "news" or "news, centred"
    n_rows: int
    n_clusters: int

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.n_rows:,} rows"

    def make(self) -> tuple[np.ndarray, np.ndarray]:
        if self.kind == "directions":
            return directions(self.n_rows, random_state=0)
        if self.kind in NEWS:
            return news(self.kind)
        return wide_blobs(self.n_rows, blob_centers(self.n_rows))

    def score(self, y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        return {"nmi": normalized_mutual_info(y, labels), "ari": adjusted_rand(y, labels)}

    @property
    def is_angle(self) -> bool:
        return self.kind != "blobs"


def news(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Documents of 20 newsgroups as unit rows."""
    import wordllama

    folder = data_folder(None)
    with np.load(folder / "news20.npz") as file:
        parts = file["data"].astype(np.float32), file["indices"], file["indptr"]
        counts, y = sp.csr_array(parts, shape=tuple(file["shape"])), file["y"].astype(np.intp)
    words = (folder / "news20_vocab.txt").read_text().split("\n")[: counts.shape[1]]
    weights = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=weights, disable_download=True)
    X = (counts @ model.embed(words)) / np.maximum(counts.sum(axis=1), 1.0)[:, None]
    if kind != NEWS[0]:
        X -= X.mean(axis=0)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return (X / np.where(lengths > 0, lengths, 1.0)).astype(np.float32), y


def top_groups(y: np.ndarray) -> np.ndarray:
    """The six top groups of the 20 newsgroups; religion is one of them."""
    groups = [5, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 3, 3, 5, 4, 4, 4, 5]
    return np.array(groups)[y]


def layers_nmi(model: Any, y: np.ndarray) -> float:
    """Of the layer of 4 to 9 clusters that agrees best with the top groups; 0 if there is none."""
    tops = top_groups(y)
    some = [layer for layer in model.layers_ if 4 <= layer.max() + 1 <= 9]
    return max((normalized_mutual_info(tops, layer[model.labels_]) for layer in some), default=0.0)


def blob_centers(n: int) -> int:
    """As many as there are in the set of n rows."""
    return round(2 * np.sqrt(n))


def wide_blobs(n: int, n_centers: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`make_blobs` in 1,024 columns with a standard deviation of 3, in float32, by blocks."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10.0, 10.0, (n_centers, 1024)).astype(np.float32)
    y = rng.permutation(np.arange(n) % n_centers)
    X = np.empty((n, 1024), np.float32)
    for start in range(0, n, BLOCK):
        rows = X[start : start + BLOCK]
        rng.standard_normal(out=rows, dtype=np.float32)
        rows *= 3.0
        rows += centers[y[start : start + BLOCK]]
    return X, y


def by_mercer(X: np.ndarray, data: EmbeddingSet) -> Any:
    kernel = "cosine" if data.is_angle else None
    return SpectralClustering(data.n_clusters, kernel=kernel, n_jobs=THREADS, random_state=0).fit(X)


def by_ensemble(X: np.ndarray, data: EmbeddingSet) -> Any:
    how: dict[str, Any] = {"kernel": "cosine", "ensemble": 20, "n_jobs": THREADS}
    return SpectralClustering(data.n_clusters, **how, random_state=0).fit(X)


def by_faiss(X: np.ndarray, data: EmbeddingSet) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(THREADS)
    means = faiss.Kmeans(
        X.shape[1],
        data.n_clusters,
        niter=25,
        seed=0,
        spherical=data.is_angle,
        max_points_per_centroid=len(X),  # all rows
        min_points_per_centroid=1,
    )
    means.train(X)
    return means.index.search(X, 1)[1][:, 0]


def by_minibatch(X: np.ndarray, data: EmbeddingSet) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans

    batch = max(4096, 2 * data.n_clusters)
    return MiniBatchKMeans(data.n_clusters, batch_size=batch, random_state=0).fit_predict(X)


def by_kmeans(X: np.ndarray, data: EmbeddingSet) -> np.ndarray:
    from sklearn.cluster import KMeans

    return KMeans(data.n_clusters, random_state=0).fit_predict(X)


def by_superkmeans(X: np.ndarray, data: EmbeddingSet) -> np.ndarray:
    from superkmeans import SuperKMeans

    how: dict[str, Any] = {"n_threads": THREADS, "angular": data.is_angle}
    means = SuperKMeans(data.n_clusters, X.shape[1], **how)
    return np.asarray(means.assign(X, means.train(X)))


def by_evoc(X: np.ndarray, data: EmbeddingSet) -> np.ndarray:
    from evoc import EVoC

    return EVoC(random_state=0).fit_predict(X)


METHODS: dict[str, tuple[str, Callable[[np.ndarray, EmbeddingSet], Any]]] = {  # module, function
    OURS: ("mercer", by_mercer),
    ENSEMBLE: ("mercer", by_ensemble),
    "faiss": ("faiss", by_faiss),
    "MiniBatchKMeans": ("sklearn", by_minibatch),
    "KMeans": ("sklearn", by_kmeans),
    "superkmeans": ("superkmeans", by_superkmeans),
    NO_NUMBER: ("evoc", by_evoc),
}


def measure(method: str, data: EmbeddingSet, folder: Path) -> dict[str, Any]:
    """Scores, seconds and memory of one fit, in this process."""
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    function = METHODS[method][1]
    with warnings.catch_warnings(), threadpool_limits(THREADS):
        warnings.simplefilter("ignore")
        few = replace(data, n_clusters=min(data.n_clusters, 150))
        function(X[:4000], few)  # loops are compiled before the clock starts
        before = _resident()
        with _Peak() as peak:
            wall, cpu = time.perf_counter(), time.process_time()
            found = function(X, data)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        labels = found if isinstance(found, np.ndarray) else found.labels_
        result = data.score(y, labels) | {
            "seconds": wall,
            "cpu_seconds": cpu,
            "peak_bytes": max(peak.most - before, 0),
            "n_clusters": int(labels.max()) + 1,
        }
        if method == OURS and data.kind in NEWS:
            result["layers_nmi"] = layers_nmi(found, y)
        if method == OURS:
            some = X[:PREDICTED]
            wall, cpu = time.perf_counter(), time.process_time()
            found.predict(some)
            result["predict_seconds"] = time.perf_counter() - wall
            result["predict_cpu_seconds"] = time.process_time() - cpu
            result["predict_rows"] = len(some)
    return result


class _Peak:
    """The most resident bytes of this process while it is open, by looking often."""

    def __enter__(self) -> _Peak:
        self.most, self.is_open = 0, True
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.is_open = False
        self.watcher.join()

    def _watch(self) -> None:
        while self.is_open:
            self.most = max(self.most, _resident())
            time.sleep(0.01)


def _resident() -> int:
    """Bytes that this process holds."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


def run(sets: list[EmbeddingSet], methods: list[str], *, again: bool) -> None:
    """Each method on each set in a process of its own; what is done is stored at once."""
    stored = _stored()
    made: tuple[str, tempfile.TemporaryDirectory[str]] | None = None
    for data in sets:
        for method in methods:
            done = stored["results"].setdefault(data.name, {}).setdefault(str(data.n_clusters), {})
            if method in done and not again:
                continue
            if made is None or made[0] != data.name:
                made = data.name, tempfile.TemporaryDirectory()
                X, y = data.make()
                np.save(Path(made[1].name) / "X.npy", X)
                np.save(Path(made[1].name) / "y.npy", y)
                del X, y
            done[method] = _in_own_process(method, data, made[1].name)
            stored["machine"] = machine()
            _store(stored, method)
            print(data.name, data.n_clusters, method, done[method], flush=True)


def _in_own_process(method: str, data: EmbeddingSet, folder: str) -> dict[str, Any]:
    task = [method, data.kind, str(data.n_rows), str(data.n_clusters), folder]
    command = [sys.executable, "-m", "benchmarks.embeddings", "--task", *task]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"skipped": f"not done after {LIMIT // 60} minutes"}
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return {"skipped": reason[0]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _stored() -> dict[str, Any]:
    path = RESULTS / "embeddings.json"
    return reopened(json.loads(path.read_text())) if path.exists() else {"results": {}}


def _store(stored: dict[str, Any], method: str) -> None:
    remember(stored, method, adds=True)
    text = json.dumps(stored, indent=1) + "\n"
    for suffix, content in ((".json", text), (".md", table(stored))):
        path = RESULTS / f"embeddings{suffix}"
        partial = path.with_name(path.name + ".part")
        partial.write_text(content)
        partial.replace(path)


def table(stored: dict[str, Any]) -> str:
    """Markdown: a table for each set."""
    lines = ["# Clustering embeddings", ""]
    for name, by_number in stored["results"].items():
        lines += [f"## {name}", ""]
        lines += [
            "| K | method | NMI | ARI | seconds | CPU seconds | MB beside X | predict, rows/s |",
            "|---:|---|---:|---:|---:|---:|---:|---:|",
        ]
        for number, by_method in sorted(by_number.items(), key=lambda item: int(item[0])):
            lines += [_line(number, method, found) for method, found in by_method.items()]
        lines.append("")
    found = stored["machine"]
    lines += [
        f"Two threads of {found['processor']}, commit {found['commit']}, {found['date']}. `evoc` "
        "chooses its own number of clusters. Seconds are of a machine that may have had other "
        "work; CPU seconds are of all threads.",
    ]
    return "\n".join(lines) + "\n"


def _line(number: str, method: str, found: dict[str, Any]) -> str:
    if "skipped" in found:
        return f"| {number} | {method} | {found['skipped']} | | | | | |"
    rate = ""
    if "predict_rows" in found:
        rate = f"{found['predict_rows'] / found['predict_seconds']:,.0f}"
    numbers = [f"{found['nmi']:.3f}", f"{found['ari']:.3f}", f"{found['seconds']:.1f}"]
    numbers += [f"{found['cpu_seconds']:.1f}", f"{found['peak_bytes'] / 1e6:,.0f}", rate]
    return f"| {number} | {method} | {' | '.join(numbers)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embeddings", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--clusters", default="20,200,2000")
    parser.add_argument("--methods", help="as in the table, separated by semicolons")
    parser.add_argument("--blobs", action="store_true", help="2·√n wide blobs instead")
    parser.add_argument("--news", action="store_true", help="20 newsgroups instead")
    parser.add_argument("--data", help="where news20.npz is; default: MERCER_DATA")
    parser.add_argument("--again", action="store_true", help="run what is stored, too")
    parser.add_argument("--task", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        method, kind, n_rows, n_clusters, folder = given.task
        data = EmbeddingSet(kind, int(n_rows), int(n_clusters))
        print(json.dumps(measure(method, data, Path(folder))))
        return
    if given.blobs:
        sets = [EmbeddingSet("blobs", given.rows, blob_centers(given.rows))]
    elif given.news:
        os.environ["MERCER_DATA"] = str(data_folder(given.data))
        sets = [EmbeddingSet(kind, NEWS_ROWS, 20) for kind in NEWS]
    else:
        numbers = map(int, given.clusters.split(","))
        sets = [EmbeddingSet("directions", given.rows, number) for number in numbers]
    methods = list(METHODS) if given.methods is None else given.methods.split(";")
    if given.methods is None and not given.news:
        methods.remove(ENSEMBLE)
    installed = [name for name in methods if find_spec(METHODS[name][0]) is not None]
    run(sets, installed, again=given.again)


if __name__ == "__main__":
    record()
    main()
