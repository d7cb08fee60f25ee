"""Run every benchmark again at one commit: `python -m benchmarks all --quick|--full [--only N …]`.

`--quick` takes few rows and seeds, about a quarter of an hour on two cores, and writes to
`benchmarks/results-quick`; `--full` takes hours and writes the results. Each runs in a process of
its own, one after the other; what fails is named at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMIT = 4 * 3600  # seconds of one benchmark


@dataclass(frozen=True)
class Benchmark:
    """A command, and its form for a quick run; without one it is left out there."""

    name: str
    words: str
    quick: str | None = None


PAPERS = ("000", "001", "002", "003", "004", "004-images")
SPEED = ("cholesky", "kmeans", "features", "kpca", "memory", "image", "spectral", "stream")
QUICK_SPEED = ("cholesky", "kpca")  # that take a minute
SMALL_SUITE = "--groups tables --methods spectral,kmeans,ward --seeds 1"
BENCHMARKS = (
    *(Benchmark(n, f"benchmarks.papers {n}", f"benchmarks.papers {n} --quick") for n in PAPERS),
    *(
        Benchmark(
            f"speed-{name}",
            f"benchmarks.speed {name}",
            f"benchmarks.speed {name}" if name in QUICK_SPEED else None,
        )
        for name in SPEED
    ),
    Benchmark(
        "suite",
        "benchmarks.suite --again",
        f"benchmarks.suite {SMALL_SUITE} --out benchmarks/results-quick",
    ),
    Benchmark("trust", "benchmarks.trust"),
    Benchmark("embeddings", "benchmarks.embeddings --again"),
    Benchmark("startup", "benchmarks.startup"),
    Benchmark("scale", "benchmarks.scale"),
    Benchmark("independent", "benchmarks.independent", "benchmarks.independent"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("all",))
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--quick", action="store_true")
    size.add_argument("--full", action="store_true")
    parser.add_argument("--only", nargs="+", choices=[one.name for one in BENCHMARKS])
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    options = parser.parse_args()
    environment = dict(os.environ)
    if options.data:
        environment["MERCER_DATA"] = options.data
    if options.quick:
        environment["MERCER_BENCHMARK_RESULTS"] = str(ROOT / "benchmarks" / "results-quick")
    lines = [run(one, options.quick, environment) for one in BENCHMARKS if wanted(one, options)]
    print("\n".join(lines))
    if options.full:
        subprocess.run([sys.executable, "docs/tables.py"], cwd=ROOT, check=True)
    if any("FAILED" in line for line in lines):
        raise SystemExit(1)


def wanted(one: Benchmark, options: argparse.Namespace) -> bool:
    if options.only:
        return one.name in options.only
    return options.full or one.quick is not None


def run(one: Benchmark, quick: bool, environment: dict[str, str]) -> str:
    """A line about how it ended."""
    words = one.quick if quick and one.quick else one.words
    print(f"--- {one.name}: python -m {words}", flush=True)
    start = time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-m", *words.split()]
    try:
        code = subprocess.run(command, cwd=ROOT, env=environment, timeout=LIMIT).returncode
    except subprocess.TimeoutExpired:
        code = -1
    minutes = (time.perf_counter() - start) / 60
    return f"{one.name}: {'done' if code == 0 else f'FAILED ({code})'} in {minutes:.1f} min"


if __name__ == "__main__":
    main()
