"""Cases of one test of which only some are quick enough for every run; the others are `slow`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest


def slow_beyond(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """The values, those that are not `quick` marked slow."""
    return [v if v in quick else pytest.param(v, marks=pytest.mark.slow) for v in values]


def seeds(n: int = 10, *, quick: int = 2) -> pytest.MarkDecorator:
    """Seeds 0 … n - 1, the first few of them quick."""
    return pytest.mark.parametrize("seed", slow_beyond(range(n), range(quick)))


def one_of_each_class(table: dict[str, Callable[..., Any]]) -> pytest.MarkDecorator:
    """Every maker of a table; variants of a class ("Class-variant") are slow."""
    cases = [
        pytest.param(make, id=name, marks=pytest.mark.slow if "-" in name else ())
        for name, make in table.items()
    ]
    return pytest.mark.parametrize("make", cases)
