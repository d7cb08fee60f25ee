"""`mercer cluster` on 10⁶ and 2·10⁷ rows within 400 MB: µs per row, memory of each process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine, write
from benchmarks.scale.data import CLUSTERS, FEATURES, Watch, generate

ROWS = (1_000_000, 20_000_000)
BUDGET = "400MB"
METHODS = {
    "spectral, 1,000 landmarks": ("--method", "spectral", "--rank", "1000"),
    "kernel k-means, rank 128": ("--method", "kernel-kmeans", "--rank", "128", "--max-iter", "2"),
}
ENGINES = {
    "loop": (),
    "processes × 2": ("--engine", "processes", "--workers", "2"),
    "Dask × 2": ("--engine", "dask", "--workers", "2"),
}
MAIN = "from mercer.cli import main\nif __name__ == '__main__':\n    main()\n"


def run(rows: list[int] | None) -> None:
    results: list[dict[str, Any]] = []
    about = machine()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "command.py"
        script.write_text(MAIN)
        for n_rows in rows or ROWS:
            path = generate(Path(folder) / "rows.npy", n_rows)
            for method, parameters in METHODS.items():
                for engine, where in ENGINES.items():
                    found = _cluster(script, path, [*parameters, *where])
                    results.append({"method": method, "engine": engine, "rows": n_rows, **found})
                    _write(results, about)


def _cluster(script: Path, path: Path, options: list[str]) -> dict[str, Any]:
    labels = path.with_suffix(".labels.npy")
    command = [
        *(sys.executable, str(script), "cluster", str(path), "-k", str(CLUSTERS), "--seed", "0"),
        *("--max-memory", BUDGET, "--json", "-o", str(labels), *options),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with Watch(process.pid) as watch:
        output, trouble = process.communicate()
    if process.returncode:
        raise SystemExit(trouble)
    report = json.loads(output)
    report = report.get("report", report)
    return {
        "wall": watch.wall,
        "cpu": watch.cpu_seconds,
        "peaks": sorted(watch.peak.values(), reverse=True),
        "full_sweeps": report.get("n_full_sweeps", 0),
        "labels": np.bincount(np.load(labels, mmap_mode="r"), minlength=CLUSTERS).tolist(),
    }


def _write(results: list[dict[str, Any]], about: Any) -> None:
    lines = [
        f"# `mercer cluster --max-memory {BUDGET}` on many rows",
        "",
        f"{FEATURES} float32 columns in a .npy file, the whole command with its start and the "
        "labels written to a file; kernel k-means with `--max-iter 2`: two sweeps over all rows. "
        "CPU is that of all processes; the peak is that of the largest process.",
        "",
        "| rows | method | engine | wall s | CPU s | µs CPU per row | peak per process |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in results:
        same = [q for q in results if (q["rows"], q["method"]) == (r["rows"], r["method"])]
        assert r["labels"] == same[0]["labels"], f"{r['engine']} gives other labels than the loop"
        lines.append(
            f"| {r['rows']:,} | {r['method']} | {r['engine']} | {r['wall']:.1f} | {r['cpu']:.1f} "
            f"| {1e6 * r['cpu'] / r['rows']:.2f} | {max(r['peaks']) / 1e6:.0f} MB |"
        )
    write("scale-command", {"machine": about, "runs": results}, "\n".join(lines))
