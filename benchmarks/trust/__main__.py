"""How far the score of trust and "auto" can be believed: `python -m benchmarks.trust [--data DIR]`.

Every fit is kept in results/trust.json as it is done, so that an interrupted run goes on. Options:
``--part given|counted|cost|page`` (default: all), ``--seeds N``, ``--group NAME``, ``--fit``
(prints the terms of mercer/trust/score.py, fitted to the fits that are kept).
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import RESULTS, data_folder, load, machine, record, remember, reopened
from benchmarks.trust.fits import METHODS, counted_fits, given_fits
from benchmarks.trust.model import Fits
from benchmarks.trust.page import counted_table, given_table, page
from mercer.datasets import rings

GROUPS = ("suite", "tables", "others", "noise")
KEPT = RESULTS / "trust.json"


def run(part: str, groups: list[str], folder: Path, seeds: int, kept: Path) -> None:
    """What is missing of a part; of sets that are only fitted to, one seed."""
    fits = given_fits if part == "given" else counted_fits
    for group in groups:
        for seed in range(seeds if group in ("suite", "tables") else 1):
            result = read(kept)
            for key, facts in fits(group, folder, seed, set(result[part])):
                result[part][key] = facts
                if len(result[part]) % 10 == 0:
                    save(kept, result)
            save(kept, result)


def run_cost(folder: Path, kept: Path) -> None:
    """CPU seconds of the diagnosis beside those of the fit, least of three."""
    digits = load(folder, "mnist", np.float32)[0]
    many, _ = rings(1_000_000, random_state=0)
    result = read(kept)
    for name, X, k in (("mnist, 70,000 × 784", digits, 10), ("rings, 1,000,000 × 2", many, 3)):
        for method, make in METHODS.items():
            runs = []
            for _ in range(3):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    stages = make(k, random_state=0).fit(X).report_.stages
                seconds = {stage.name: stage.cpu_seconds for stage in stages}
                runs.append((seconds["trust"], sum(seconds.values())))
            trust, whole = min(run[0] for run in runs), min(run[1] for run in runs)
            result["cost"][f"{name}|{method}"] = {"trust": trust, "fit": whole}
            save(kept, result)


def read(path: Path) -> dict[str, Any]:
    """The results so far."""
    empty: dict[str, Any] = {"given": {}, "counted": {}, "cost": {}}
    return empty | (json.loads(path.read_text()) if path.exists() else {})


def save(path: Path, result: dict[str, Any]) -> None:
    """Write the results, whole or not at all."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    os.replace(temporary, path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust", description=__doc__)
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    parser.add_argument("--part", choices=("given", "counted", "cost", "page"))
    parser.add_argument("--group", choices=GROUPS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kept", type=Path, default=KEPT, help="the file of results")
    parser.add_argument("--fit", action="store_true", help="print the terms of the score")
    options = parser.parse_args()
    if options.fit:
        print(Fits.of(read(options.kept)["given"]).terms())
        return
    groups = [options.group] if options.group else list(GROUPS)
    for part in [options.part] if options.part else ["given", "counted", "cost"]:
        if part == "cost":
            run_cost(data_folder(options.data), options.kept)
        elif part != "page":
            run(part, groups, data_folder(options.data), options.seeds, options.kept)
    result = reopened(read(options.kept)) | {"machine": machine()}
    if options.part != "page":
        remember(result, options.part or "whole", adds=options.group is not None)
    result["tables"] = {
        "trust": given_table(result["given"]) if result["given"] else [],
        "counted": counted_table(result["counted"]) if result["counted"] else [],
    }
    save(options.kept, result)
    options.kept.with_suffix(".md").write_text(page(result), encoding="utf-8")


if __name__ == "__main__":
    record()
    main()
