"""Fits of one method on one set, and the file that keeps them.

The file is written after every set and method, under a temporary name first: a run that is killed
loses what it was fitting, and the next one goes on.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.suite.methods import METHODS
from benchmarks.suite.sets import Set, numbers_of_clusters, score


@dataclass(frozen=True)
class Task:
    """Fits to do: one method, one set, some seeds."""

    method: str
    data: Set
    seeds: tuple[int, ...]
    folder: Path | None


def fitted(task: Task) -> dict[str, Any]:
    """Rows, columns and {"seeds": {seed: scores}}, or {"skipped": reason}."""
    method, seeds = METHODS[task.method], {}
    shape: dict[str, int] = {}
    for seed in task.seeds:
        X, references = task.data.read(task.folder, seed)
        shape = {"rows": len(X), "columns": X.shape[1]}
        refusal = method.refusal(X)
        if refusal:
            return {**shape, "skipped": refusal}
        try:
            seeds[str(seed)] = _one_seed(task.method, X, references, seed)
        except Exception as error:
            if not method.is_peer:
                raise
            return {**shape, "skipped": f"{type(error).__name__}: {error}"}
    return {**shape, "seeds": seeds}


def _one_seed(name: str, X: np.ndarray, references: Any, seed: int) -> dict[str, Any]:
    """The scores of the number of clusters that agrees best, and the CPU seconds of all fits."""
    best: dict[str, Any] = {}
    seconds = 0.0
    for k in numbers_of_clusters(references):
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            start = time.process_time()
            labels, facts = METHODS[name].cluster(X, k, seed)
            seconds += time.process_time() - start
        scores = {**score(labels, references, k), "k": k, **facts}
        scores["smallest"] = int(np.unique(labels, return_counts=True)[1].min())
        best = max(best, scores, key=lambda each: each.get("ari", -2.0))
    return {**best, "seconds": round(seconds, 3)}


def missing(method: str, data: Set, kept: dict[str, Any], n_seeds: int) -> tuple[int, ...]:
    """Seeds without a result; methods that draw nothing need one, unless the rows differ."""
    if "skipped" in kept:
        return ()
    wanted = n_seeds if data.most_seeds is None else min(n_seeds, data.most_seeds)
    if not (METHODS[method].is_seeded or data.seeded):
        wanted = 1
    return tuple(s for s in range(wanted) if str(s) not in kept.get("seeds", {}))


def installed(method: str) -> str | None:
    """The version of the method's package; None if it is not installed."""
    try:
        return version(METHODS[method].package)
    except PackageNotFoundError:
        return None


def run(tasks: list[Task], jobs: int) -> Iterator[tuple[Task, dict[str, Any]]]:
    """Each task with its result, in the order in which they end."""
    if jobs == 1:
        for task in tasks:
            yield task, fitted(task)
        return
    # Forked workers would share numba's and BLAS's locks with this process.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(fitted, task): task for task in tasks}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def read(path: Path) -> dict[str, Any]:
    """The results so far."""
    if not path.exists():
        return {"runs": {}}
    return json.loads(path.read_text())


def save(path: Path, result: dict[str, Any]) -> None:
    """Write the results, whole or not at all."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    os.replace(temporary, path)
