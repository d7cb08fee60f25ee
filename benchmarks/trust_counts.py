"""How much was tried: files fuzzed, kills survived, examples compared with an oracle.

    python -m benchmarks.trust_counts [--part fuzz|kills|oracle] [--short]

Runs the tests of each part with the long profile and writes what they counted to
``benchmarks/results/trust-counts.json`` and ``.md``. A part whose tests fail is not written.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PARTS = {
    "fuzz": ["tests/test_fuzz.py"],
    "kills": ["tests/test_kills.py", "-m", "slow"],
    "oracle": ["tests/test_oracle.py"],
}


def run_part(name: str, profile: str) -> dict[str, Any]:
    """The counts of one part; its tests must pass."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.json"
        environment = {**os.environ, "MERCER_PROFILE": profile, "MERCER_COUNTS": str(counts)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *PARTS[name]]
        begin = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        if done.returncode:
            raise SystemExit(f"the tests of {name} failed; nothing was written for them")
        return {
            "counts": json.loads(counts.read_text()),
            "seconds": round(time.monotonic() - begin, 1),
            "profile": profile,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "commit": _commit(),
        }


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def table(results: dict[str, Any]) -> str:
    lines = ["# What was tried", ""]
    for part, result in sorted(results.items()):
        lines += [f"## {part}", "", "| what | of which | count |", "|---|---|---:|"]
        for kind, names in sorted(result["counts"].items()):
            lines += [f"| {kind} | {name} | {n:,} |" for name, n in sorted(names.items())]
            lines.append(f"| **{kind}** | **all** | **{sum(names.values()):,}** |")
        lines += ["", f"{result['seconds']} s, commit {result['commit']}.", ""]
    return "\n".join(lines)


def write(results: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "trust-counts.json").write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    (RESULTS / "trust-counts.md").write_text(table(results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=sorted(PARTS), action="append")
    parser.add_argument("--short", action="store_true", help="25 examples instead of 1,000")
    options = parser.parse_args()
    path = RESULTS / "trust-counts.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for part in options.part or sorted(PARTS):
        results[part] = run_part(part, "short" if options.short else "long")
        write(results)
    print(table(results))


if __name__ == "__main__":
    main()
