"""CPU seconds of the hot loops after warm-up: what a faster start must not slow down.

python -m benchmarks.startup_speed --out FILE      the least of many runs of each loop
python -m benchmarks.startup_speed --against FILE  and their ratio to earlier ones
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mercer.datasets import rings
from mercer.factors.cholesky import IncompleteCholesky
from mercer.factors.mutual import _mutual
from mercer.factors.search import Search, make_search, nearest_all
from mercer.image import landscape, segment
from mercer.kernels import RBF
from mercer.kernels.sums import CoordinateSums
from mercer.linalg.lloyd import WeightedRows
from mercer.rows import as_source
from mercer.rows.distinct import row_hashes

SECONDS = 4.0  # for each loop


def loops() -> dict[str, Callable[[], Any]]:
    """The loops by what they do, on arrays that are large enough to be worth one."""
    rng = np.random.default_rng(0)
    plane, wide = rings(40_000, random_state=0)[0], rng.normal(size=(20_000, 10))
    L, Y = rng.normal(size=(1000, 10)), np.ascontiguousarray(wide[:256])
    squared, absolute = CoordinateSums(Y, "squared"), CoordinateSums(Y, "absolute")
    single = CoordinateSums(Y.astype(np.float32), "squared")
    F = rng.normal(size=(40_000, 16))
    rows, K = WeightedRows.of(F, np.ones(len(F))), rng.random((512, 4000))
    thresholds = np.full(4000, 0.99)
    image = landscape(480, 640, random_state=0)[0]
    grid = make_search(plane[:2000], plane, 10)
    source = as_source(wide)
    return {
        "rows of exp(-γ‖x - y‖²)": lambda: squared.exp(wide, -0.1),
        "the same in float32": lambda: single.exp(wide.astype(np.float32), -0.1),
        "rows of Σ|x - y|": lambda: absolute(wide),
        "incomplete Cholesky, rank 128": lambda: IncompleteCholesky(128).fit(
            RBF(0.05), source, rng=np.random.default_rng(0)
        ),
        "a grid of lists": lambda: make_search(plane[:2000], plane, 10),
        "neighbours by a grid": lambda: nearest_all(plane, grid, 10),
        "neighbours by products": lambda: nearest_all(wide, Search(L), 10),
        "k-means, ten sweeps": lambda: rows.lloyd(F[:20].copy(), max_iter=10),
        "mutual neighbours": lambda: _mutual(K, thresholds, 40, 0.0, nearest=True),
        "hashes of rows": lambda: row_hashes(wide),
        "segments of an image": lambda: segment(image),
    }


def least(call: Callable[[], Any]) -> float:
    call()
    found, start = [], time.process_time()
    while time.process_time() - start < SECONDS or len(found) < 5:
        begun = time.process_time()
        call()
        found.append(time.process_time() - begun)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    found = {name: least(call) for name, call in loops().items()}
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    before = json.loads(given.against.read_text()) if given.against else {}
    for name, seconds in found.items():
        ratio = f"  {seconds / before[name]:.3f}" if name in before else ""
        print(f"{1e3 * seconds:9.3f} ms{ratio}  {name}")


if __name__ == "__main__":
    main()
