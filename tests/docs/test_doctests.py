"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import mercer

MODULES = [
    info.name
    for info in pkgutil.walk_packages(mercer.__path__, "mercer.")
    if not info.name.endswith("jit")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = import_module(name)
    found = doctest.testmod(module)
    assert found.failed == 0


def test_there_are_examples():
    modules = (import_module(name) for name in MODULES)
    assert sum(doctest.testmod(module).attempted for module in modules) > 20
