"""A file of many rows, and what a tree of processes takes while it is read."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

__all__ = ["CLUSTERS", "FEATURES", "Watch", "generate"]

FEATURES, CLUSTERS = 16, 10


def generate(path: Path, n_rows: int) -> Path:
    """Ten blobs in 16 float32 columns, written block by block."""
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=3.0, size=(CLUSTERS, FEATURES)).astype(np.float32)
    header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, FEATURES)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n_rows, 100_000):
            size = min(100_000, n_rows - start)
            noise = rng.standard_normal((size, FEATURES), dtype=np.float32)
            file.write((centers[rng.integers(0, CLUSTERS, size)] + noise).tobytes())
    return path


class Watch:
    """CPU seconds of a process and all that it starts, and the peak memory of each."""

    def __init__(self, pid: int | None = None, every: float = 1.0) -> None:
        self.root, self.every = psutil.Process(pid), every
        self.cpu: dict[int, float] = {}
        self.peak: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.watching = 0.0  # CPU seconds of the watch itself, which this process spends
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        self._look()
        self.before, self.start = dict(self.cpu), time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.wall = time.perf_counter() - self.start
        self._over.set()
        self._thread.join()
        self._look()

    @property
    def cpu_seconds(self) -> float:
        return sum(value - self.before.get(pid, 0.0) for pid, value in self.cpu.items())

    def _watch(self) -> None:
        while not self._over.wait(self.every):
            self._look()
        self.watching = time.thread_time()

    def _look(self) -> None:
        try:
            processes = [self.root, *self.root.children(recursive=True)]
        except psutil.Error:
            return
        for process in processes:
            try:
                times = process.cpu_times()
                status = Path(f"/proc/{process.pid}/status").read_text()
            except (psutil.Error, OSError):
                continue
            self.cpu[process.pid] = times.user + times.system
            for line in status.splitlines():
                if line.startswith("VmHWM"):
                    self.peak[process.pid] = int(line.split()[1]) * 1024
