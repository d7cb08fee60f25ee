"""How much was tried: files fuzzed, kills survived, examples compared with an oracle, lines run.

    python -m benchmarks.trust_counts [--part fuzz|kills|oracle] [--only WORDS] [--short]
    python -m benchmarks.trust_counts --coverage .coverage

Runs the tests of each part with the long profile and writes what they counted to
``benchmarks/results/trust-counts.json`` and ``.md``. A part whose tests fail is not written.
With ``--only`` the tests pytest's ``-k`` selects, whose counts join those of earlier runs.
``--coverage`` is what ``scripts/coverage --write`` calls with what it measured.
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
    "fuzz": ["tests/hostile/test_fuzz.py"],
    "kills": ["tests/hostile/test_kills.py", "-m", "slow"],
    "oracle": ["tests/laws/test_oracle.py"],
}
LOOPS = ["*/_jit.py", "*/*_jit.py"]  # what is compiled


def run_part(name: str, profile: str, only: str | None = None) -> dict[str, Any]:
    """The counts of one part, or of some of its tests; they must pass."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.json"
        environment = {**os.environ, "MERCER_PROFILE": profile, "MERCER_COUNTS": str(counts)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *PARTS[name]]
        command += ["-k", only] if only else []
        begin = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        if done.returncode:
            raise SystemExit(f"the tests of {name} failed; nothing was written for them")
        return {
            "counts": json.loads(counts.read_text()),
            "seconds": round(time.monotonic() - begin, 1),
            "profile": profile,
            **_where(),
        }


def joined(before: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """The counts of a part with those of some of its tests put in."""
    counts = {kind: dict(names) for kind, names in before["counts"].items()}
    for kind, names in result["counts"].items():
        counts.setdefault(kind, {}).update(names)
    seconds = round(before["seconds"] + result["seconds"], 1)
    commits = dict.fromkeys([*before["commit"].split(", "), result["commit"]])
    return {**result, "counts": counts, "seconds": seconds, "commit": ", ".join(commits)}


def lines_run(path: str) -> dict[str, Any]:
    """Statements, and how many of them ran with the jit off: all, and those that are compiled."""
    return {"all lines": _lines(path), "numba's loops": _lines(path, LOOPS)}


def _lines(path: str, include: list[str] | None = None) -> dict[str, int]:
    from coverage import Coverage

    measured = Coverage(data_file=path)
    measured.load()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        measured.json_report(outfile=str(report), include=include)
        totals = json.loads(report.read_text())["totals"]
    return {"lines": totals["num_statements"], "run": totals["covered_lines"]}


def _where() -> dict[str, str]:
    return {
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
        if part == "coverage":
            lines += ["## coverage", ""]
            lines += ["| with the jit off | lines | run | |", "|---|---:|---:|---:|"]
            for name, of in result["lines"].items():
                share = f"{of['run'] / of['lines']:.1%}"
                lines.append(f"| {name} | {of['lines']:,} | {of['run']:,} | {share} |")
            lines += ["", f"Commit {result['commit']}.", ""]
            continue
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
    parser.add_argument("--only", metavar="WORDS", help="some tests of the part, as pytest -k")
    parser.add_argument("--coverage", metavar="FILE")
    parser.add_argument("--short", action="store_true", help="25 examples instead of 1,000")
    options = parser.parse_args()
    path = RESULTS / "trust-counts.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    if options.coverage:
        results["coverage"] = {"lines": lines_run(options.coverage), **_where()}
        write(results)
    for part in options.part or ([] if options.coverage else sorted(PARTS)):
        result = run_part(part, "short" if options.short else "long", options.only)
        some = options.only and part in results
        results[part] = joined(results[part], result) if some else result
        write(results)
    print(table(results))


if __name__ == "__main__":
    main()
