"""Mercer and its peers on many sets, the number of clusters given.

    python -m benchmarks.suite [--data DIR] [--methods spectral,kmeans] [--groups tables,pairs]

Each set is fitted once per distinct number of clusters among its references; a fit's score is its
largest adjusted Rand index with a reference of that number, a set's score the largest over those
numbers, averaged over seeds. Writes ``suite.json`` and ``suite.md``. What suite.json has is not
fitted again, so that a run that was stopped goes on: to repeat methods after a change, name them
with ``--again``.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, machine, record, remember, reopened
from benchmarks.suite.methods import METHODS
from benchmarks.suite.page import page
from benchmarks.suite.run import Task, installed, missing, read, run, save
from benchmarks.suite.sets import GROUPS, sets_of


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "suite.json"
    result = reopened(read(path))
    data = options.data or os.environ.get("MERCER_DATA")
    tasks = _tasks(options, result, Path(data) if data else None)
    if tasks:
        result["machine"] = machine()
    if options.again and not options.sets and len(options.groups) == len(GROUPS):
        every = set(options.methods) == set(METHODS)
        for part in list(result.get("sources", {})) if every else options.methods:
            result.get("sources", {}).pop(part, None)
    for done, (task, kept) in enumerate(run(tasks, options.jobs), start=1):
        _keep(result, task, kept)
        remember(result, task.method, adds=True)
        save(path, result)
        print(f"{done}/{len(tasks)} {task.method}: {task.data.title}: {_line(kept)}", flush=True)
    before = json.loads(options.before.read_text()) if options.before else None
    (options.out / "suite.md").write_text(page(result, before).rstrip() + "\n")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.suite",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    parser.add_argument("--methods", type=_among(METHODS), default=list(METHODS))
    parser.add_argument("--groups", type=_among(GROUPS), default=list(GROUPS))
    parser.add_argument("--sets", help="only sets whose title contains this")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="processes over sets")
    parser.add_argument("--again", action="store_true", help="fit also what suite.json has")
    parser.add_argument("--before", type=Path, help="an earlier suite.json to compare with")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of suite.json and .md")
    return parser.parse_args(arguments)


def _among(known: Any) -> Any:
    """A parser of a list of known names, separated by commas."""

    def names(text: str) -> list[str]:
        unknown = [name for name in text.split(",") if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown)} not known; choose among {', '.join(known)}"
            )
        return text.split(",")

    return names


def _tasks(options: argparse.Namespace, result: dict[str, Any], folder: Any) -> list[Task]:
    """What is asked for and not yet there, set by set."""
    tasks = []
    methods = [name for name in options.methods if installed(name) is not None]
    for name in sorted(set(options.methods) - set(methods)):
        print(f"{METHODS[name].package} is not installed: {METHODS[name].title} is left out")
    for group in options.groups:
        for data in sets_of(group, folder):
            if options.sets and options.sets not in data.title:
                continue
            for method in methods:
                if options.again:
                    result["runs"].get(method, {}).pop(data.title, None)
                kept = result["runs"].get(method, {}).get(data.title, {})
                seeds = missing(method, data, kept, options.seeds)
                if seeds:
                    tasks.append(Task(method, data, seeds, folder))
    return tasks


def _keep(result: dict[str, Any], task: Task, kept: dict[str, Any]) -> None:
    """Put a task's result beside the others, with the code that it measured."""
    earlier = result["runs"].setdefault(task.method, {}).get(task.data.title, {})
    seeds = {**earlier.get("seeds", {}), **kept.get("seeds", {})}
    result["runs"][task.method][task.data.title] = {
        **kept,
        **({"seeds": seeds} if seeds else {}),
        "version": installed(task.method),
        "commit": result["machine"]["commit"],
        "date": result["machine"]["date"],
    }


def _line(kept: dict[str, Any]) -> str:
    if "skipped" in kept:
        return f"not run: {kept['skipped']}"
    return " ".join(f"{seed['ari']:.3f}" for seed in kept["seeds"].values())


if __name__ == "__main__":
    record()
    main()
