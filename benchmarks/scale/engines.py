"""One pass over 10⁷ rows on each engine: wall time, CPU of all processes, the same sums.

Two passes: a full sweep of kernel k-means by a factor of rank 128, and labels by 1,000 landmarks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mercer
from benchmarks.measure import machine, write
from benchmarks.scale.data import CLUSTERS, FEATURES, Watch, generate
from mercer._run.threads import single_threaded_blas
from mercer.factors.dense import LinearScores
from mercer.partitions.assignment import LabelCounts, NearestSums, Unscored
from mercer.rows import as_source
from mercer.rows.sweep import add_each, total
from mercer.scale import Processes, local_cluster

ROWS = 10_000_000
RANK, LANDMARKS = 128, 1000
LEARNING_ROWS = 200_000
WARMING_ROWS = 1_000_000
BLOCK_ROWS = 262_144
REPEATS = 2  # of which the quickest counts


@contextmanager
def users_cluster(n_workers: int) -> Iterator[Any]:
    """A cluster as Dask starts it by itself."""
    import logging

    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def plain(engine: Any) -> Iterator[Any]:
    yield engine


ENGINES: dict[str, tuple[Callable[[], Any], int]] = {
    "loop": (lambda: plain("loop"), 1),
    "processes × 1": (lambda: plain(Processes(1)), 1),
    "processes × 2": (lambda: plain(Processes(2)), 2),
    "Dask × 1": (lambda: local_cluster(1), 1),
    "Dask × 2": (lambda: local_cluster(2), 2),
    "Dask × 2, a user's": (lambda: users_cluster(2), 2),
}


def run(rows: list[int] | None) -> None:
    n_rows, results, about = (rows or [ROWS])[0], [], machine()
    with tempfile.TemporaryDirectory() as folder:
        path = generate(Path(folder) / "rows.npy", n_rows)
        few = generate(Path(folder) / "few.npy", min(WARMING_ROWS, n_rows))
        passes = _passes(np.load(few)[:LEARNING_ROWS])
        for name, (start, n_workers) in ENGINES.items():
            with start() as engine, mercer.on(engine):
                for what, one_pass in passes.items():
                    one_pass(as_source(few))  # compiled code is loaded, workers are there
                    watches = []
                    for _ in range(REPEATS):
                        with Watch() as watch:
                            sums = one_pass(as_source(path))
                        watches.append(watch)
                    watch = min(watches, key=lambda w: w.cpu_seconds)
                    results.append(
                        {
                            "engine": name,
                            "workers": n_workers,
                            "pass": what,
                            "rows": n_rows,
                            "wall": min(w.wall for w in watches),
                            "cpu": watch.cpu_seconds,
                            "peaks": sorted(watch.peak.values(), reverse=True),
                            "bits": [np.asarray(part).tobytes().hex()[:64] for part in sums],
                        }
                    )
                    _write(results, n_rows, about)


def _passes(X: Any) -> dict[str, Callable[[Any], Any]]:
    """The two passes, as functions of a source; their models are made on a few rows."""
    kmeans = mercer.KernelKMeans(CLUSTERS, rank=RANK, random_state=0).fit(X)
    spectral = mercer.SpectralClustering(CLUSTERS, rank=LANDMARKS, random_state=0).fit(X)
    assignment = LinearScores.of_centers(kmeans.factor_, kmeans.cluster_centers_)
    counts = LabelCounts(Unscored(spectral._fitted_labeller().labels), CLUSTERS, keeps_labels=False)
    return {
        f"full sweep, rank {RANK}": partial(_sweep, NearestSums(assignment)),
        f"labels, {LANDMARKS:,} landmarks": partial(_sweep, counts),
    }


def _sweep(make: Any, source: Any) -> Any:
    with single_threaded_blas():
        return total(source, make, add_each, block_rows=BLOCK_ROWS, stage="pass")


def _write(results: list[dict[str, Any]], n_rows: int, about: Any) -> None:
    lines = [
        "# One pass on each engine",
        "",
        f"{n_rows:,} rows × {FEATURES} float32 in a .npy file; CPU is that of all processes, the "
        "peak that of the largest (the one that made the models, where all show the same); the "
        "quicker of two runs. Sums have the same bits on every engine.",
        "",
        "| pass | engine | wall s | CPU s | µs CPU per row | CPU / loop | 1 worker / this | peak |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        loop = _find(results, r["pass"], "loop")
        alone = _find(results, r["pass"], r["engine"].partition(",")[0].replace("2", "1"))
        assert r["bits"] == loop["bits"], f"{r['engine']} gives other sums than the loop"
        faster = f"{alone['wall'] / r['wall']:.2f}" if alone else ""
        lines.append(
            f"| {r['pass']} | {r['engine']} | {r['wall']:.1f} | {r['cpu']:.1f} "
            f"| {1e6 * r['cpu'] / r['rows']:.2f} | {r['cpu'] / loop['cpu']:.2f} | {faster} "
            f"| {max(r['peaks']) / 1e6:.0f} MB |"
        )
    write("scale-engines", {"machine": about, "runs": results}, "\n".join(lines))


def _find(results: list[dict[str, Any]], what: str, engine: str) -> Any:
    found = [r for r in results if r["pass"] == what and r["engine"] == engine]
    return found[0] if found else None
