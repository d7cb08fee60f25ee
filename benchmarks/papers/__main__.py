"""`python -m benchmarks.papers NAME [--data DIR] [--quick] [--part P] [--page]`."""

from __future__ import annotations

import argparse
import json
from importlib import import_module

from benchmarks.measure import RESULTS, record

NAMES = ("000", "001", "002", "003", "004", "004-images")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    parser.add_argument("--quick", action="store_true", help="few rows and runs: does it work?")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--part", help="only this part, where a paper has several")
    parser.add_argument("--rows", type=int, help="at most so many of a set (003)")
    parser.add_argument("--page", action="store_true", help="write the page of the stored numbers")
    arguments = parser.parse_args()
    if arguments.page:
        write_page(arguments.name)
        return
    paper = import_module("benchmarks.papers.paper_" + arguments.name.replace("-", "_"))
    options = {"quick": arguments.quick, "jobs": arguments.jobs}
    if arguments.part is not None:
        options["part"] = arguments.part
    if arguments.rows is not None:
        options["rows"] = arguments.rows
    paper.run(arguments.data, **options)


def write_page(name: str) -> None:
    """The page and the figures again, from what is in the result file."""
    found = json.loads((RESULTS / f"{name}.json").read_text())
    pages = import_module(f"benchmarks.papers.paper_{name.replace('-', '_')}_page")
    (RESULTS / f"{name}.md").write_text(pages.page(found, name).rstrip() + "\n")


if __name__ == "__main__":
    record()
    main()
