"""How much was tried, by kind: written as JSON at the end of a run if MERCER_COUNTS names it."""

from __future__ import annotations

import functools
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])

_counts: defaultdict[str, Counter[str]] = defaultdict(Counter)


def count(kind: str, name: str, n: int = 1) -> None:
    """So many more of this kind, for this name, went well."""
    _counts[kind][name] += n


def counted(kind: str, name: str) -> Callable[[Test], Test]:
    """Count the examples of a property test that went well: stands below ``@given``."""

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def counting(*arguments: Any, **options: Any) -> Any:
            test(*arguments, **options)
            count(kind, name)

        return counting  # type: ignore[return-value]

    return decorate


def write_counts() -> None:
    """The counts of this process; of several, each has a file of its own."""
    path, worker = os.environ.get("MERCER_COUNTS"), os.environ.get("PYTEST_XDIST_WORKER")
    path = f"{path}.{worker}" if path and worker else path
    if path and _counts:
        Path(path).write_text(json.dumps(_counts, indent=1, sort_keys=True) + "\n")
