"""`mercer cluster` on 250,000 and 2,000,000 rows within 500 MB: peak memory, µs per row."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import machine, write

SIZES = (250_000, 2_000_000)
FEATURES, CLUSTERS, RANK = 16, 10, 128

CHILD = """
import json, resource, sys, time
from mercer.cli import main
start = time.process_time()
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
usage = resource.getrusage(resource.RUSAGE_SELF)
result = {"cpu": time.process_time() - start, "peak": usage.ru_maxrss * 1024}
print(json.dumps(result), file=sys.stderr)
"""


def run(data: str | None) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in (20_000, *SIZES):  # the first compiles and is left out
            path = Path(folder) / f"{n_rows}.npy"
            generate(path, n_rows)
            rows.append({"rows": n_rows, **_cluster(path)})
            path.unlink()
    rows = rows[1:]
    ratio = rows[1]["us_per_row"] / rows[0]["us_per_row"]
    table = "\n".join(
        [
            "# `mercer cluster` on files larger than its budget",
            "",
            f"{FEATURES} float32 columns, rank {RANK}, k = {CLUSTERS}, `--max-memory 500MB`, one "
            "thread, whole command. Passes over the rows depend on how soon the centres settle.",
            "",
            "| rows | full sweeps | CPU s | µs per row | µs per row and sweep | peak memory |",
            "|---|---|---|---|---|---|",
            *(
                f"| {r['rows']:,} | {r['full_sweeps']} | {r['cpu']:.1f} | {r['us_per_row']:.2f} "
                f"| {r['us_per_row_and_sweep']:.2f} | {r['peak'] / 1e6:.0f} MB |"
                for r in rows
            ),
            "",
            f"µs per row at 2,000,000 over that at 250,000: **{ratio:.2f}**.",
        ]
    )
    write("speed-memory", {"machine": machine(), "runs": rows, "ratio": ratio}, table)


def generate(path: Path, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=3.0, size=(CLUSTERS, FEATURES)).astype(np.float32)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, FEATURES))
    for start in range(0, n_rows, 100_000):
        size = min(100_000, n_rows - start)
        noise = rng.standard_normal((size, FEATURES), dtype=np.float32)
        out[start : start + size] = centers[rng.integers(0, CLUSTERS, size)] + noise
    out.flush()


def _cluster(path: Path) -> dict[str, float]:
    command = [
        *(sys.executable, "-c", CHILD, "cluster", str(path), "-k", str(CLUSTERS)),
        *("--method", "kernel-kmeans", "--rank", str(RANK), "--max-memory", "500MB"),
        *("--seed", "0", "--json", "--out", str(path.with_suffix(".labels.npy"))),
        *("--model", str(path.with_suffix(".mercer"))),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    usage = json.loads(done.stderr.strip().splitlines()[-1])
    report = json.loads(done.stdout)
    report = report.get("report", report)
    sweeps = max(report.get("n_full_sweeps", 1), 1)
    per_row = 1e6 * usage["cpu"] / report["n_rows"]
    return {
        **usage,
        "full_sweeps": sweeps,
        "us_per_row": per_row,
        "us_per_row_and_sweep": per_row / sweeps,
        "report": report,
    }
