"""`python -m benchmarks.speed NAME [--data DIR]`."""

from __future__ import annotations

import argparse
from importlib import import_module

from benchmarks.measure import record

NAMES = (
    *("cholesky", "kmeans", "memory", "features", "spectral", "shapes", "kpca", "image"),
    *("sources", "stream"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    parser.add_argument("--rows", type=float, help="rows of the table (sources only)")
    parser.add_argument("--part", help="only this part, where a benchmark has several")
    arguments = parser.parse_args()
    options: dict[str, object] = {} if arguments.part is None else {"part": arguments.part}
    if arguments.rows is not None:
        options["n_rows"] = int(arguments.rows)
    import_module(f"benchmarks.speed.{arguments.name}").run(arguments.data, **options)


if __name__ == "__main__":
    record()
    main()
