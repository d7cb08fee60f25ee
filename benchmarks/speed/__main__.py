"""`python -m benchmarks.speed NAME [--data DIR]`."""

from __future__ import annotations

import argparse
from importlib import import_module

NAMES = (
    "cholesky",
    "kmeans",
    "memory",
    "features",
    "spectral",
    "shapes",
    "kpca",
    "image",
    "sources",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--data", help="folder of the benchmark data (default: MERCER_DATA)")
    parser.add_argument("--rows", type=float, help="rows of the table (sources only)")
    arguments = parser.parse_args()
    size = {} if arguments.rows is None else {"n_rows": int(arguments.rows)}
    import_module(f"benchmarks.speed.{arguments.name}").run(arguments.data, **size)


if __name__ == "__main__":
    main()
