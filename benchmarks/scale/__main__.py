"""`python -m benchmarks.scale [engines|command|memory|cloud] [--rows N …]`; without a name, all."""

from __future__ import annotations

import argparse
from importlib import import_module

from benchmarks.measure import record

NAMES = ("engines", "command", "memory", "cloud")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("name", nargs="?", choices=NAMES)
    parser.add_argument("--rows", nargs="+", type=lambda text: int(float(text)))
    arguments = parser.parse_args()
    for name in NAMES if arguments.name is None else (arguments.name,):
        import_module(f"benchmarks.scale.{name}").run(arguments.rows)


if __name__ == "__main__":
    record()
    main()
