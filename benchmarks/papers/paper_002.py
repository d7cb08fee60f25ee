"""Paper 002, block-quantised kernel matrices: its tables and figures, ours beside.

Each part is a module with `measure(folder, quick=…)` → numbers and `table(numbers)` → Markdown;
what is measured is written before the next part begins.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, data_folder, machine, write

PARTS = {  # a new part is a new line
    "kpca": "benchmarks.papers.paper_002_kpca",
    "segments": "benchmarks.papers.paper_002_segments",
}


def run(data: str | None, *, quick: bool = False, jobs: int = 1, part: str | None = None) -> None:
    folder = data_folder(data)
    name = "002-quick" if quick else "002"
    found = _earlier(RESULTS / f"{name}.json") if part else {}
    for title in [part] if part else PARTS:
        if title not in PARTS:
            raise SystemExit(f"paper 002 has no part {title!r}; choose one of {sorted(PARTS)}")
        found[title] = import_module(PARTS[title]).measure(folder, quick=quick)
        found["machine"] = machine()
        write(name, found, _table(found))


def _table(found: dict[str, Any]) -> str:
    lines = ["# Paper 002: block-quantised kernels", ""]
    for title, home in PARTS.items():
        if title in found:
            lines += [import_module(home).table(found[title]), ""]
    return "\n".join(lines)


def _earlier(path: Path) -> dict[str, Any]:
    """What other parts have measured before."""
    return json.loads(path.read_text()) if path.exists() else {}
