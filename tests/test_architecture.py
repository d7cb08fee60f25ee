"""Folders import only those before them, and what a thing can do lives with the thing.

The numbers are those of `python scripts/shape.py`, which says what is counted.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_SWITCHES = 6


def _shape():
    spec = importlib.util.spec_from_file_location("shape", ROOT / "scripts" / "shape.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["shape"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


shape = _shape()
MODULES = shape.modules()
VIOLATIONS = shape.violations(MODULES)
SWITCHES = shape.switches(MODULES)
KINDS, NAMES = shape.kinds(MODULES), shape.spelt_names(MODULES)


def importers(*packages):
    """Files of src that import one of these packages, wherever in the file."""
    found = set()
    for module in MODULES:
        for node in ast.walk(module.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            if isinstance(node, ast.Call) and shape.last_name(node.func) == "require":
                names = [str(getattr(node.args[0], "value", ""))]
            if {name.partition(".")[0] for name in names} & set(packages):
                found.add(module.path)
    return found


def test_every_folder_has_its_place_in_the_order():
    folders = {module.folder for module in MODULES if not module.is_top}
    assert folders <= set(shape.LAYERS)


@pytest.mark.parametrize("folder", shape.LAYERS)
def test_a_folder_imports_only_those_before_it(folder):
    own = (f"{folder}/", f"{folder}.py")
    assert not [place for place in VIOLATIONS if place.startswith(own)]


def test_no_folders_import_each_other():
    assert not shape.cycles(MODULES)


def test_doors_are_used():
    """A door that nobody goes through is closed."""
    used = {one.folders for one in shape.imports(MODULES) if one.is_door}
    assert used == set(shape.DOORS)


def test_dask_is_imported_in_one_place():
    places = importers("dask", "distributed")
    assert {path for path in places if not path.startswith("scale/")} <= {"rows/dasks.py"}


def test_numba_comes_through_one_door():
    assert importers("numba", "llvmlite") <= {"_run/jit.py"}


def test_no_two_modules_share_a_name():
    assert not shape.shared_names(MODULES)


def test_few_places_ask_what_kind_a_thing_is():
    assert len(SWITCHES) <= MOST_SWITCHES, "\n".join(SWITCHES)


COUNTED = """
isinstance(x, RandomBinning)
issubclass(kind, (int, RandomBinning))
type(x) is RandomBinning
x.__class__ in (RandomBinning, int)
hasattr(factor, "mix")
getattr(problem.approximation, "rank", None)
{RandomBinning: 1}
approximation == "binning"
self.approximation in ("binning", "other")
type(estimator).__name__ == "KernelKMeans"
"""
INNOCENT = """
isinstance(x, int)
isinstance(x, Kernel)
getattr(factor, name)
getattr(np, "binning")
getattr(model, "n_features_in_", None)
{"binning": RandomBinning}
solver == "binning"
approximation == "anything"
type(x).__name__
"""


@pytest.mark.parametrize("line", COUNTED.strip().splitlines())
def test_what_counts_as_a_switch(line):
    assert _counted(line) == 1


@pytest.mark.parametrize("line", INNOCENT.strip().splitlines())
def test_what_is_no_switch(line):
    assert _counted(line) == 0


def _counted(line):
    kinds = set(KINDS)
    nodes = ast.walk(ast.parse(line))
    found = [shape.switch(node, kinds, NAMES | kinds, is_own=False) for node in nodes]
    return sum(one is not None for one in found)
