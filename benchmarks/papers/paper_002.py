"""Paper 002, block-quantised kernel matrices: its tables and figures, ours beside.

Each part is a module with `measure(folder, quick=…)` → numbers; what is measured is written before
the next part begins.
"""

from __future__ import annotations

import json
from importlib import import_module

from benchmarks.measure import RESULTS, data_folder, machine, reopened, write
from benchmarks.papers.paper_002_page import page

PARTS = {  # a new part is a new line
    "kpca": "benchmarks.papers.paper_002_kpca",
    "segments": "benchmarks.papers.paper_002_segments",
}


def run(data: str | None, *, quick: bool = False, jobs: int = 1, part: str | None = None) -> None:
    folder = data_folder(data)
    name = "002-quick" if quick else "002"
    path = RESULTS / f"{name}.json"
    found = reopened(json.loads(path.read_text())) if part and path.exists() else {}
    for title in [part] if part else PARTS:
        if title not in PARTS:
            raise SystemExit(f"paper 002 has no part {title!r}; choose one of {sorted(PARTS)}")
        found[title] = import_module(PARTS[title]).measure(folder, quick=quick)
        found |= {"machine": machine(), "seeds": [0, 1] if quick else list(range(5))}
        write(name, found, page(found, name), part=title)
