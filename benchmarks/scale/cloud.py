"""Rows in an object store beside rows on a disk: two Dask workers, the same passes, the same bits.

The store is moto's server of S3 on the loopback, a process of its own that is not counted.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import mercer
from benchmarks.measure import machine, write
from benchmarks.scale.data import CLUSTERS, FEATURES, Watch, generate
from benchmarks.scale.engines import LEARNING_ROWS, RANK, _passes
from mercer._run import url as urls
from mercer.io import read_labels
from mercer.rows import as_source
from mercer.scale import local_cluster

ROWS = 10_000_000
FILES, GROUP_ROWS = 10, 2**18
REPEATS = 2  # of which the one with the least CPU counts
BUCKET = "rows"


def run(rows: list[int] | None) -> None:
    n_rows, about = (rows or [ROWS])[0], machine()
    with tempfile.TemporaryDirectory() as folder, _server() as server:
        array = generate(Path(folder) / "rows.npy", n_rows)
        disk = _write_parquet(np.load(array, mmap_mode="r"), Path(folder) / "parquet")
        few = np.load(array, mmap_mode="r")[:LEARNING_ROWS]
        warnings.filterwarnings("ignore", "X has feature names")
        model = mercer.KernelKMeans(CLUSTERS, rank=RANK, random_state=0).fit(few)
        expected = model.predict(array)
        store = _upload(disk)
        places = {"disk": (str(disk), f"{folder}/labels/"), "S3": (store, f"{store}-labels/")}
        sweep = next(iter(_passes(few).values()))
        with local_cluster(2) as client, mercer.on(client):
            client.run(os.environ.update, dict(os.environ))
            runs = [
                result
                for where, (place, out) in places.items()
                for result in _measure(where, place, out, model, sweep, expected, server.pid)
            ]
    bits = {run["pass"]: run["bits"] for run in runs}
    assert all(run["bits"] == bits[run["pass"]] for run in runs), "S3 gives other sums than disk"
    _report(runs, n_rows, about)


def _measure(
    where: str, place: str, out: str, model: Any, sweep: Any, expected: Any, server: int
) -> Iterator[dict[str, Any]]:
    """Both passes over the rows of one place."""
    source = as_source(place)

    def label() -> list[Any]:
        model.predict(source, out=out)
        return []

    for what, work in {f"full sweep, rank {RANK}": lambda: sweep(source), "labels": label}.items():
        best: dict[str, Any] = {}
        for _ in range(REPEATS):
            retries = urls.retries.total
            with Watch() as watch:
                sums = work()
            spent = {pid: cpu - watch.before.get(pid, 0.0) for pid, cpu in watch.cpu.items()}
            spent.pop(server, None)
            client = spent.pop(os.getpid()) - watch.watching
            result = {
                "where": where,
                "pass": what,
                "wall": watch.wall,
                "client": client,
                "workers": sum(spent.values()),
                "retries": urls.retries.total - retries,
                "bits": [np.asarray(part).tobytes().hex()[:64] for part in sums],
            }
            total = result["client"] + result["workers"]
            if not best or total < best["client"] + best["workers"]:
                best = result
        yield best
    assert np.array_equal(read_labels(out), expected), f"other labels from {where}"


def _report(runs: list[dict[str, Any]], n_rows: int, about: Any) -> None:
    lines = [
        "# Rows in an object store",
        "",
        f"{n_rows:,} rows × {FEATURES} float32 in {FILES} Parquet files (row groups of "
        f"{GROUP_ROWS:,} rows) on two Dask workers: from a disk, and from moto's server of S3 on "
        "the loopback, whose own CPU time is not counted. The labels pass writes a folder of parts "
        "to the same place. Labels and sums have the same bits.",
        "",
        "| pass | rows from | wall s | CPU s, workers | CPU s, client | CPU / disk |",
        "|---|---|---|---|---|---|",
    ]
    for one in runs:
        disk = next(r for r in runs if r["pass"] == one["pass"] and r["where"] == "disk")
        ratio = (one["client"] + one["workers"]) / (disk["client"] + disk["workers"])
        lines.append(
            f"| {one['pass']} | {one['where']} | {one['wall']:.1f} | {one['workers']:.1f} "
            f"| {one['client']:.1f} | {ratio:.2f} |"
        )
    found = {"machine": about, "rows": n_rows, "columns": FEATURES, "runs": runs}
    write("scale-cloud", found, "\n".join(lines))


def _write_parquet(X: Any, folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    edges = np.linspace(0, len(X), FILES + 1).astype(int)
    for number, (start, stop) in enumerate(pairwise(edges)):
        rows = np.array(X[start:stop])
        table = pa.table({f"x{j}": rows[:, j].copy() for j in range(FEATURES)})
        name = folder / f"part-{number}.parquet"
        pq.write_table(table, name, row_group_size=GROUP_ROWS, use_dictionary=False)
    return folder


def _upload(folder: Path) -> str:
    import s3fs

    files = s3fs.S3FileSystem()
    files.mkdir(BUCKET)
    for file in sorted(folder.iterdir()):
        files.put_file(str(file), f"{BUCKET}/{folder.name}/{file.name}")
    return f"s3://{BUCKET}/{folder.name}"


@contextmanager
def _server() -> Iterator[psutil.Process]:
    """Moto's server on a free port; the environment leads to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "loopback",
        "AWS_SECRET_ACCESS_KEY": "loopback",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait()
