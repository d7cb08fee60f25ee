"""What a process grows by during `fit`: every estimator × source × budget.

`python -m benchmarks.scale memory [--rows N]`. A row of the table is a new process that imports the
library, fits the same estimator on fewer rows of the same kind of file (which loads what a first
fit loads), and then fits all rows: what its peak lies above where it began is held.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine, write
from benchmarks.scale.data import CLUSTERS, FEATURES, generate

ROWS, WARM_ROWS = 1_000_000, 120_000  # both beyond what is fitted whole
STREAM_ROWS = 200_000  # a stream's state does not depend on how many rows there are
BUDGETS = (50, 100, 300)  # MB
SOURCES = ("npy", "parquet", "csv", "zarr")
ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "benchmarks.scale.memory"]


def estimators(max_memory: str) -> dict[str, Any]:
    """Every estimator, and each approximation of it that files can be fitted with."""
    from mercer import (
        KernelFeatures,
        KernelKMeans,
        KernelPCA,
        KernelSpectralClustering,
        SpectralClustering,
        StreamingKernelKMeans,
    )

    k, how = CLUSTERS, {"random_state": 0, "max_memory": max_memory}
    return {
        "KernelKMeans rank 64": KernelKMeans(k, rank=64, **how),
        "KernelKMeans rank 256": KernelKMeans(k, **how),
        "KernelKMeans nystrom 64": KernelKMeans(k, approximation="nystrom", rank=64, **how),
        "KernelKMeans fourier 128": KernelKMeans(k, approximation="fourier", rank=128, **how),
        "KernelKMeans binning 32": KernelKMeans(
            k, kernel=None, approximation="binning", rank=32, **how
        ),
        "SpectralClustering": SpectralClustering(k, **how),
        "SpectralClustering ensemble": SpectralClustering(k, ensemble=5, **how),
        "SpectralClustering cholesky 64": SpectralClustering(
            k, approximation="cholesky", rank=64, **how
        ),
        "SpectralClustering binning 32": SpectralClustering(
            k, approximation="binning", rank=32, **how
        ),
        "SpectralClustering quantized": SpectralClustering(k, approximation="quantized", **how),
        "KernelSpectralClustering rank 64": KernelSpectralClustering(k, rank=64, **how),
        "StreamingKernelKMeans": StreamingKernelKMeans(k, **how),
        "KernelFeatures rank 64": KernelFeatures(rank=64, **how),
        "KernelPCA rank 64": KernelPCA(4, rank=64, **how),
    }


def run(rows: list[int] | None) -> None:
    results: list[dict[str, Any]] = []
    about, n_rows = machine(), (rows or [ROWS])[0]
    with tempfile.TemporaryDirectory() as folder:
        for source in SOURCES:
            for name in estimators("1GB"):
                n = min(n_rows, STREAM_ROWS) if "Streaming" in name else n_rows
                paths = [save(Path(folder), source, size) for size in (WARM_ROWS, n)]
                results += measured(*paths, BUDGETS, [name])
                print(*results[-len(BUDGETS) :], sep="\n", file=sys.stderr, flush=True)
            _write(results, about, n_rows)


def save(folder: Path, source: str, n_rows: int) -> Path:
    """The rows of `generate` in a file of this kind."""
    path = folder / f"{n_rows}.{source}"
    if path.exists():
        return path
    plain = generate(folder / f"{n_rows}.npy", n_rows)
    if source == "npy":
        return plain
    X = np.load(plain, mmap_mode="r")
    if source == "zarr":
        import zarr

        array = zarr.create_array(path, shape=X.shape, dtype=X.dtype, chunks=(50_000, FEATURES))
        array[:] = X
        return path
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.table({f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(FEATURES)})
    if source == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)  # row groups of a million rows, as pyarrow does
    return path


def measured(
    warm: Path, path: Path, budgets: Iterable[int], names: Iterable[str]
) -> list[dict[str, Any]]:
    """Bytes held by fits in a process of their own, or why they were refused."""
    asked = json.dumps({"budgets": list(budgets), "names": list(names)})
    command = [*PROGRAM, str(warm), str(path), asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def child(warm: Path, path: Path, budgets: list[int], names: list[str]) -> list[dict[str, Any]]:
    """What `measured` runs in the new process.

    One that had to compile begins again: what the compiler leaves of the heap is not the fit's.
    """
    import warnings

    warnings.simplefilter("ignore")
    estimators("1GB")  # imports the library
    results, about = [], {"source": path.suffix[1:], "imports": memory_now()}
    for name in names:
        if _compiles(partial(estimators("1GB")[name].fit, str(warm))):
            os.execv(sys.executable, [*PROGRAM, *sys.argv[1:]])
        for budget in budgets:
            held = one_fit(estimators(f"{budget}MB")[name], path)
            results.append({"estimator": name, "budget": budget, **about, **held})
    return results


def _compiles(work: Callable[[], Any]) -> bool:
    """Do the work; whether a loop was compiled for it, not found in numba's cache."""
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        work()
    return bool(recorder.buffer)


def one_fit(estimator: Any, path: Path) -> dict[str, Any]:
    """What this process grows by while a file is fitted."""
    from mercer import BudgetError
    from mercer._run.budget import give_back

    give_back()
    before, started, refusal = memory_now(), time.perf_counter(), {}
    reset_peak()
    try:
        estimator.fit(str(path))
    except BudgetError as error:
        refusal = {"refused": str(error)}
    seconds = time.perf_counter() - started
    return {"before": before, "held": peak_memory() - before, "seconds": seconds, **refusal}


def memory_now() -> int:
    """Resident bytes of this process."""
    return _status("VmRSS")


def peak_memory() -> int:
    """The most it had since `reset_peak`."""
    return _status("VmHWM")


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise OSError(f"the system does not report {name}")


def _write(results: list[dict[str, Any]], about: Any, n_rows: int) -> None:
    lines = [
        "# What `fit` holds at small budgets",
        "",
        f"{n_rows:,} rows × {FEATURES} columns (float32; in the csv file float64) in a file; the "
        "growth of the process during `fit`, in MB, after a fit of the same kind on "
        f"{WARM_ROWS:,} rows (the stream: of {STREAM_ROWS:,} rows). “–”: refused before the work "
        "(`BudgetError`, which says what would fit).",
        "",
        "| estimator | source | " + " | ".join(f"{b} MB" for b in BUDGETS) + " |",
        "|---|---|" + "---|" * len(BUDGETS),
    ]
    cells = {(r["estimator"], r["source"], r["budget"]): r for r in results}
    for estimator, source in dict.fromkeys((r["estimator"], r["source"]) for r in results):
        row = [cells[estimator, source, budget] for budget in BUDGETS]
        held = ["–" if "refused" in r else f"{r['held'] / 1e6:.0f}" for r in row]
        lines.append(f"| {estimator} | {source} | " + " | ".join(held) + " |")
    above = [r for r in results if "refused" not in r and r["held"] > r["budget"] * 1e6]
    lines += [
        "",
        f"Above its budget: **{len(above)}** of {len(results)}. The interpreter with the library "
        f"imported takes {_middle(results, 'imports')} MB before any fit, and "
        f"{_middle(results, 'before')} MB once a first fit has loaded numba, its compiled loops "
        "and the readers.",
    ]
    write("scale-memory", {"machine": about, "rows": n_rows, "runs": results}, "\n".join(lines))


def _middle(results: list[dict[str, Any]], what: str) -> str:
    return f"{np.median([r[what] for r in results]) / 1e6:.0f}"


if __name__ == "__main__":
    print(json.dumps(child(Path(sys.argv[1]), Path(sys.argv[2]), **json.loads(sys.argv[3]))))
