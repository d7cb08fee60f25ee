#!/usr/bin/env python3
"""The shape of src in numbers: lines, long functions, switches, layers, folders of a default fit.

    python scripts/shape.py [--src DIR] [--no-fit]

**Lines** are those of `wc -l`. A **long function** has more than 50 lines, its docstring and
decorators not counted.

A **switch** asks what kind of factor, approximation, kernel or estimator a thing is, instead of
asking the thing. Kinds are the classes defined in `factors/`, `kernels/`, `estimators/`,
`stream/` and `image/segmenter.py`, but for those of a `base.py` (whether a thing is a kernel at
all is no switch between kernels). These count, outside the file that defines the kind and the
`base.py` of that folder, once per place:

1. `isinstance` and `issubclass` with a kind among the classes;
2. comparisons of `type(x)` or `x.__class__` with a kind;
3. `hasattr` and `getattr` with a literal name (no dunder, nor scikit-learn's marks of a fitted
   estimator, FITTED) of a thing whose last name is one of THINGS (`factor`, `problem.kernel`,
   `self.approximation`, `model.factor_`, ...);
4. `match` with a kind among its cases;
5. dictionaries that have a kind among their keys;
6. comparisons (`==`, `!=`, `in`, `not in`) of such a thing, or of its class's name, with the name
   of an approximation, a kernel or a method, or of a kind.

For 3 and 6, which name no class, home is the `base.py` of any of these folders; and a thing may
ask itself: `getattr(self, ...)` does not count, nor does `self.method == "cholesky"` of a
parameter that a factor or a kernel has of its own.

A **layer violation** is an import of a folder that comes later in LAYERS, other than by one of
DOORS; a **cycle** is a set of folders that import each other, doors left out. Imports for types
only (under TYPE_CHECKING) count too.

**Folder changes of a fit**: functions in the order in which a default `SpectralClustering(3)` on
rings first enters each of them, those of `_run` (and of private modules at the top) left out; how
often one lies in another folder than the one before. It is what a reader goes through who opens
every function once. (By this definition the fit before the folders were ordered changed 87 times,
and went through 41 files; a count that was made by hand gave 98. Layers add to it: verbs that
moved to factors and arithmetic that moved to linalg are other folders than the estimator's.)
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
LAYERS = (
    *("exceptions", "_run", "metrics", "rows", "linalg", "kernels", "factors", "embeddings"),
    *("partitions", "estimators", "stream", "selection", "trust", "plan", "report", "io"),
    *("scale", "image", "datasets", "cli"),
)
# What may be asked of a later folder, and by whom: functions, and the value that they return.
DOORS: dict[tuple[str, str], set[str]] = {
    ("estimators", "selection"): {
        "mercer.selection.bandwidth_comparison.BandwidthComparison",
        *(
            f"mercer.selection.cluster_count.{name}"
            for name in ("Candidate", "count_clusters", "count_memory")
        ),
        "mercer.selection.cut_comparison.CutComparison",
        "mercer.selection.grid.search_grid",
    },
    ("estimators", "trust"): {"mercer.trust.diagnosis.diagnose"},
    ("estimators", "plan"): {"mercer.plan.trial.plan_fit"},
    ("estimators", "report"): {"mercer.report.Report"},
    ("estimators", "io"): {
        "mercer.io.label_parts.write_parts",
        *(f"mercer.io.labels.{name}" for name in ("check_output", "room_for", "write_labels")),
        "mercer.io.model.save",
    },
    ("stream", "trust"): {"mercer.trust.diagnosis.diagnose"},
    ("stream", "report"): {"mercer.report.Report"},
    ("_run", "scale"): {"mercer.scale.futures"},
}
SAME_NAMES = {"__init__", "base", "_jit"}  # modules that every folder may have
KIND_FOLDERS = ("factors", "kernels", "estimators", "stream")
PARTS = ("factors", "kernels")  # whose parameters are their own
KIND_FILES = ("image/segmenter.py",)
THINGS = {
    *("approximation", "factor", "kernel", "estimator", "model", "clusterer", "transformer"),
    *("method", "graph", "embedder", "segmenter"),
}
FITTED = {"n_features_in_", "feature_names_in_"}
MOST_LINES = 50


@dataclass(frozen=True)
class Module:
    path: str  # below mercer/: "factors/base.py"
    tree: ast.Module
    n_lines: int

    @property
    def folder(self) -> str:
        return self.path.split("/")[0].removesuffix(".py")

    @property
    def is_top(self) -> bool:
        """`mercer/__init__.py` and `__main__.py`: they import whom they like."""
        return self.folder.startswith("__")


def modules(src: Path = SRC) -> list[Module]:
    root = src / "mercer"
    texts = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.py"))
    }
    return [Module(path, ast.parse(text), text.count("\n")) for path, text in texts.items()]


# Functions


def functions(module: Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    """Functions and methods, nested ones too, and their lines without the docstring."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node, clean=False) is not None:
                length -= node.body[0].end_lineno - node.body[0].lineno + 1
            yield node, length


# Switches


def kinds(found: list[Module]) -> dict[str, set[str]]:
    """Class → the files that are its home."""
    homes: dict[str, set[str]] = defaultdict(set)
    for module in found:
        is_home = module.folder in KIND_FOLDERS or module.path in KIND_FILES
        if is_home and not module.path.endswith("/base.py"):
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    homes[node.name] |= {module.path, f"{module.folder}/base.py"}
    return dict(homes)


def spelt_names(found: list[Module]) -> set[str]:
    """Strings that users choose kinds by: keys of the tables NAMES and METHODS."""
    names: set[str] = set()
    for module in found:
        for node in module.tree.body:
            target = getattr(node, "target", None) or (getattr(node, "targets", None) or [None])[0]
            is_table = isinstance(target, ast.Name) and target.id in ("NAMES", "METHODS")
            if is_table and isinstance(node.value, ast.Dict):
                keys = [key for key in node.value.keys if isinstance(key, ast.Constant)]
                names |= {key.value for key in keys if isinstance(key.value, str)}
    return names


def last_name(node: ast.AST) -> str:
    """`problem.kernel` → kernel, `model.factor_` → factor, `factors[0]` → factors."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.strip("_")


def classes_in(node: ast.AST) -> set[str]:
    """Names in `C`, `(A, B)`, `A | B`, `module.C`."""
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def strings_in(node: ast.AST) -> set[str]:
    return {
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def asks_for_class(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func) == "type" and len(node.args) == 1
    return isinstance(node, ast.Attribute) and node.attr == "__class__"


def is_thing(node: ast.AST) -> bool:
    """A factor, approximation, kernel or estimator, by its name, or the name of its class."""
    if isinstance(node, ast.Attribute) and node.attr in ("__name__", "__qualname__"):
        return asks_for_class(node.value) or is_thing(node.value)
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and last_name(node) in THINGS


def switches(found: list[Module]) -> list[str]:
    """`file:line what` of each."""
    homes, names = kinds(found), spelt_names(found)
    bases = {f"{folder}/base.py" for folder in KIND_FOLDERS}
    places = []
    for module in found:
        foreign = {name for name, where in homes.items() if module.path not in where}
        for node in ast.walk(module.tree):
            own = module.path in bases or (module.folder in PARTS and _asks_itself(node))
            what = switch(node, foreign, names | set(homes), is_own=own)
            if what:
                places.append(f"{module.path}:{node.lineno} {what}")
    return places


def _asks_itself(node: ast.AST) -> bool:
    """`self.parameter == "name"`"""
    left = node.left if isinstance(node, ast.Compare) else node
    return isinstance(left, ast.Attribute) and last_name(left.value) == "self"


def switch(node: ast.AST, foreign: set[str], names: set[str], *, is_own: bool) -> str | None:
    """What kind of switch this node is, if it is one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) >= 2:
        return _called(node, foreign, is_own=is_own)
    if isinstance(node, ast.Compare):
        return _compared(node, foreign, names, is_own=is_own)
    if isinstance(node, ast.Match):
        cases = {part for case in node.cases for part in classes_in(case.pattern)}
        return f"match {_joined(cases & foreign)}" if cases & foreign else None
    if isinstance(node, ast.Dict):
        keys = {name for key in node.keys if key is not None for name in _plain(key)}
        return f"table by {_joined(keys & foreign)}" if keys & foreign else None
    return None


def _called(node: ast.Call, foreign: set[str], *, is_own: bool) -> str | None:
    function, thing, other = node.func.id, node.args[0], node.args[1]
    if function in ("isinstance", "issubclass"):
        asked = classes_in(other) & foreign
        return f"{function} {_joined(asked)}" if asked else None
    if function in ("hasattr", "getattr") and isinstance(other, ast.Constant) and not is_own:
        name = str(other.value)
        if is_thing(thing) and name not in FITTED and not name.startswith("__"):
            return f"{function} {ast.unparse(thing)} {name!r}"
    return None


def _compared(node: ast.Compare, foreign: set[str], names: set[str], *, is_own: bool) -> str | None:
    sides = [node.left, *node.comparators]
    if any(asks_for_class(side) for side in sides):
        asked = set().union(*(classes_in(side) for side in sides)) & foreign
        return f"type {_joined(asked)}" if asked else None
    by_name = isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn)
    asked = set().union(*(strings_in(side) for side in sides)) & names
    if by_name and asked and not is_own and any(is_thing(side) for side in sides):
        return f"name {_joined(asked)}"
    return None


def _plain(key: ast.AST) -> set[str]:
    return classes_in(key) if isinstance(key, ast.Name | ast.Attribute) else set()


def _joined(names: set[str]) -> str:
    return ", ".join(sorted(names))


# Layers


@dataclass(frozen=True)
class Import:
    path: str  # who
    line: int
    module: str  # whom: "mercer.factors.base"
    names: tuple[str, ...]  # () for the module itself

    @property
    def folders(self) -> tuple[str, str]:
        return self.path.split("/")[0].removesuffix(".py"), self.module.split(".")[1]

    @property
    def is_door(self) -> bool:
        """Nothing but what a door lets through."""
        wanted = {f"{self.module}.{name}" for name in self.names} or {self.module}
        allowed = DOORS.get(self.folders, set())
        return bool(allowed) and all(name in allowed or self.module in allowed for name in wanted)


def imports(found: list[Module]) -> list[Import]:
    """Imports among folders, wherever in a file they stand; `LazyModule("mercer...")` is one."""
    made = []
    for module in found:
        for node in ast.walk(module.tree):
            made += [one for one in _imported(module, node) if "." in one.module]
    return [one for one in made if len(set(one.folders)) == 2 and set(one.folders) <= set(LAYERS)]


def _imported(module: Module, node: ast.AST) -> list[Import]:
    if module.is_top:
        return []
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mercer":
        names = tuple(alias.name for alias in node.names)
        if node.module == "mercer":
            return [Import(module.path, node.lineno, f"mercer.{name}", ()) for name in names]
        return [Import(module.path, node.lineno, node.module, names)]
    if isinstance(node, ast.Import):
        named = [alias.name for alias in node.names if alias.name.startswith("mercer.")]
        return [Import(module.path, node.lineno, name, ()) for name in named]
    if isinstance(node, ast.Call) and last_name(node.func) in ("LazyModule", "import_module"):
        named = [text for text in strings_in(node) if text.startswith("mercer.")]
        return [Import(module.path, node.lineno, name, ()) for name in named]
    return []


def violations(found: list[Module]) -> list[str]:
    """Imports of later folders that are no doors."""
    wrong = []
    for one in imports(found):
        here, there = (LAYERS.index(folder) for folder in one.folders)
        if there > here and not one.is_door:
            wrong.append(f"{one.path}:{one.line} {one.module} {', '.join(one.names)}".rstrip())
    return wrong


def cycles(found: list[Module]) -> list[set[str]]:
    """Sets of folders that import each other, doors left out."""
    edges: dict[str, set[str]] = defaultdict(set)
    for one in imports(found):
        if not one.is_door:
            edges[one.folders[0]].add(one.folders[1])
    reached = {folder: _reachable(folder, edges) for folder in LAYERS}
    sets = {
        frozenset(other for other in reached[folder] if folder in reached[other]) | {folder}
        for folder in LAYERS
    }
    return [set(one) for one in sorted(sets, key=sorted) if len(one) > 1]


def _reachable(folder: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = [folder]
    while ahead:
        for other in edges[ahead.pop()] - seen:
            seen.add(other)
            ahead.append(other)
    return seen


def shared_names(found: list[Module]) -> dict[str, list[str]]:
    """Modules of one name in several folders."""
    paths: dict[str, list[str]] = defaultdict(list)
    for module in found:
        paths[Path(module.path).stem].append(module.path)
    return {
        name: where
        for name, where in sorted(paths.items())
        if len(where) > 1 and name not in SAME_NAMES
    }


# A fit


def fit_path(src: Path = SRC) -> tuple[int, int]:
    """Files and folder changes of a default fit."""
    sys.path.insert(0, str(src))
    from mercer import SpectralClustering
    from mercer.datasets import rings

    X, _ = rings(3000, random_state=0)
    SpectralClustering(3, random_state=0).fit(X)  # what is imported or compiled is not the fit
    root = f"{src / 'mercer'}/"
    entered: dict[object, str] = {}

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            entered.setdefault(frame.f_code, frame.f_code.co_filename.removeprefix(root))

    model = SpectralClustering(3, random_state=0)
    sys.setprofile(note)
    try:
        model.fit(X)
    finally:
        sys.setprofile(None)
    files = [path for path in entered.values() if not path.startswith("_")]
    folders = [path.split("/")[0] for path in files]
    changes = sum(a != b for a, b in pairwise(folders))
    return len(set(files)), changes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--src", type=Path, default=SRC)
    parser.add_argument("--no-fit", action="store_true", help="leave out the fit")
    options = parser.parse_args()
    found = modules(options.src.resolve())
    lines = Counter()
    for module in found:
        lines[module.folder] += module.n_lines
    for folder, n in sorted(lines.items(), key=lambda item: -item[1]):
        print(f"{n:7,} {folder}")
    print(f"{sum(lines.values()):7,} lines in all")
    lengths = [
        (length, module.path, node.name) for module in found for node, length in functions(module)
    ]
    long = sorted(entry for entry in lengths if entry[0] > MOST_LINES)
    print(f"{len(lengths):7,} functions, {len(long)} of more than {MOST_LINES} lines")
    for length, path, name in long:
        print(f"        {path} {name}: {length}")
    print_list("switches", switches(found))
    print_list("layer violations", violations(found))
    print_list("package cycles", [" ".join(sorted(one)) for one in cycles(found)])
    shared = shared_names(found)
    print_list("module names in several folders", [" ".join(paths) for paths in shared.values()])
    if not options.no_fit:
        files, changes = fit_path(options.src.resolve())
        print(f"{changes:7} folder changes of a default fit, in {files} files")


def print_list(what: str, entries: list[str]) -> None:
    print(f"{len(entries):7} {what}")
    for entry in entries:
        print(f"        {entry}")


if __name__ == "__main__":
    main()
