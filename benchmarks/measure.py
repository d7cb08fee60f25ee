"""Measuring side by side: CPU seconds of a stated number of threads, the least of a few runs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.provenance import NOTES, RESULTS, UNKNOWN, WHOLE, record, sources, untraced

__all__ = [
    *("RESULTS", "Timing", "calibrate", "data_folder", "load", "machine", "record", "remember"),
    *("reopened", "timed", "write"),
]

if NOTES in os.environ:  # a process of a benchmark that records its sources
    record()

REFERENCE_GFLOPS = 44.0  # float64, one thread, on the machine that absolute bars refer to


class Timing:
    """The least and the spread of a few runs, and the first (compiling) one apart."""

    def __init__(self, first: float, runs: list[float]) -> None:
        self.first, self.runs = first, runs

    @property
    def best(self) -> float:
        return min(self.runs)

    def to_dict(self) -> dict[str, Any]:
        return {"first": self.first, "best": self.best, "worst": max(self.runs), "runs": self.runs}


def timed(function: Callable[[], Any], *, repeat: int = 3, threads: int = 1) -> tuple[Any, Timing]:
    """The result and the CPU seconds of each run; the first run is not counted."""
    with threadpool_limits(threads):
        start = time.process_time()
        result = function()
        first = time.process_time() - start
        runs = []
        with untraced():
            for _ in range(repeat):
                start = time.process_time()
                result = function()
                runs.append(time.process_time() - start)
    return result, Timing(first, runs)


def calibrate() -> dict[str, float]:
    """How fast this machine is now: a matrix product and a copy, one thread."""
    rng = np.random.default_rng(0)
    A, B = rng.random((1024, 1024)), rng.random((1024, 1024))
    big = rng.random(2**24)
    _, product = timed(lambda: A @ B, repeat=7)
    _, copy = timed(big.copy, repeat=7)
    gflops = 2 * 1024**3 / product.best / 1e9
    return {
        "gflops_float64": gflops,
        "copy_gb_per_s": 2 * big.nbytes / copy.best / 1e9,
        "speed_relative_to_reference": gflops / REFERENCE_GFLOPS,
    }


def data_folder(given: str | None) -> Path:
    """Where the benchmark data are."""
    folder = given or os.environ.get("MERCER_DATA")
    if not folder:
        raise SystemExit("say where the data are: --data DIR or MERCER_DATA=DIR")
    return Path(folder)


def load(folder: Path, name: str, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """One data set: rows and classes."""
    with np.load(folder / f"{name}.npz") as file:
        return np.ascontiguousarray(file["X"], dtype=dtype), file["y"]


def machine() -> dict[str, Any]:
    """What a result needs beside it to be understood later."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "date": date.today().isoformat(),
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": {name: version(name) for name in packages},
        "calibration": calibrate(),
    }


def reopened(result: dict[str, Any]) -> dict[str, Any]:
    """A result to which more will be added; numbers without their sources count as stale."""
    if "machine" in result and "sources" not in result:
        result["sources"] = {"earlier": {UNKNOWN: ""}}
    return result


def remember(result: dict[str, Any], part: str = WHOLE, *, adds: bool = False) -> None:
    """Put the digests of what has been measured into a result, for one of its parts.

    What `adds` to a part leaves the digests that are there: the rest may be as old as they say.
    """
    if found := sources():
        parts = result.setdefault("sources", {})
        parts[part] = {**found, **parts[part]} if adds and part in parts else found


def write(name: str, result: dict[str, Any], table: str, *, part: str = WHOLE) -> None:
    """The numbers as JSON and the table as Markdown, side by side."""
    remember(result, part)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / f"{name}.md").write_text(table.rstrip() + "\n")
    print(table)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
