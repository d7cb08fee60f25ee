"""`python -m benchmarks.papers NAME [--data DIR] [--quick] [--jobs N] [--part P]`."""

from __future__ import annotations

import argparse
from importlib import import_module

NAMES = ("000", "001", "002", "003", "004", "004-images")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    parser.add_argument("--quick", action="store_true", help="few rows and runs: does it work?")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--part", help="only this part, where a paper has several")
    arguments = parser.parse_args()
    paper = import_module("benchmarks.papers.paper_" + arguments.name.replace("-", "_"))
    options = {"quick": arguments.quick, "jobs": arguments.jobs}
    if arguments.part is not None:
        options["part"] = arguments.part
    paper.run(arguments.data, **options)


if __name__ == "__main__":
    main()
