"""Which sources a result measured, and which results are older than their sources.

`record()` notes the modules whose functions are called; their digests go into the result file.
`python -m benchmarks.provenance` names the results whose modules have changed since, and
`--mark` says so on top of their pages. A digest is of the normalised syntax tree: comments,
docstrings and layout do not count.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import inspect
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["changed", "digest", "record", "recorded", "sources", "stale_results", "untraced"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(os.environ.get("MERCER_BENCHMARK_RESULTS", ROOT / "benchmarks" / "results"))
HOMES = {ROOT / "src": "mercer", ROOT: "benchmarks"}
NOTES = "MERCER_BENCHMARK_SOURCES"  # the file in which processes of one benchmark note modules
WHOLE = "benchmarks"  # the part of a result that was measured in one go
UNKNOWN = "sources that were not recorded"
MARK = "> **Stale.**"
CANNOT_CHANGE_AN_ANSWER = (  # words, pages and the command line
    *("mercer.cli", "mercer.report", "mercer.plan", "mercer.trust", "mercer.exceptions"),
    *("mercer._run.progress", "mercer._run.printable", "mercer._run.warn", "mercer._run.versions"),
    *("benchmarks.measure", "benchmarks.provenance", "benchmarks.__init__"),
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PAGES = ("page", "__main__")  # last part of the name of a module that only renders


# Recording ---------------------------------------------------------------------------------------


def record() -> None:
    """Note the modules whose functions are called from now on, here and in child processes."""
    if NOTES not in os.environ:
        handle, path = tempfile.mkstemp(prefix="benchmark-sources-")
        os.close(handle)
        os.environ[NOTES] = path
    texts()  # as they are now: an edit during the run is not what was measured
    tracer = _tracer(os.environ[NOTES])
    threading.settrace(tracer)
    sys.settrace(tracer)


def _tracer(notes: str) -> Any:
    seen: set[str] = set()
    names = {str(path): name for name, path in _files().items()}

    def note(frame: FrameType, event: str, arg: Any) -> None:
        path = frame.f_code.co_filename
        if path in seen or not _is_a_function(frame):
            return
        seen.add(path)
        name = names.get(path)
        if name is not None:
            with open(notes, "a") as file:
                file.write(name + "\n")

    return note


def _is_a_function(frame: FrameType) -> bool:
    """A function's variables have fixed places; those of a module or class body have not."""
    return bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)


@contextmanager
def untraced() -> Iterator[None]:
    """Without the recorder, for what is timed."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def recorded() -> set[str]:
    """The modules noted so far, with the compiled loops and the constants that they import."""
    notes = os.environ.get(NOTES)
    called = set(Path(notes).read_text().split()) if notes else set()
    if any(_starts_processes(name) for name in called):  # what those run is not seen
        called |= {name for name in texts() if name.startswith("mercer.")}
    called |= {m for name in called for m in _imports(name) if _is_silent(m)}
    return {name for name in called if _can_change_an_answer(name)}


def _can_change_an_answer(name: str) -> bool:
    last = name.rpartition(".")[2]
    is_page = name.startswith("benchmarks.") and last.rpartition("_")[2] in PAGES
    return not (is_page or last == "__main__" or name.startswith(CANNOT_CHANGE_AN_ANSWER))


def _is_silent(name: str) -> bool:
    """Compiled loops and plain constants: they work without a call that could be noted."""
    if name.endswith("_jit"):
        return True
    if name not in texts() or name.endswith("__init__"):
        return False
    return not any(isinstance(node, ast.FunctionDef) for node in ast.walk(_tree(name)))


def _starts_processes(name: str) -> bool:
    return (
        _can_change_an_answer(name)
        and name.startswith("benchmarks.")
        and any(
            isinstance(node, ast.Import) and any(alias.name == "subprocess" for alias in node.names)
            for node in ast.walk(_tree(name))
        )
    )


def _imports(name: str) -> set[str]:
    """Modules of ours that a module imports from."""
    found = set()
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # the name of a module that is imported on first use
    return found & texts().keys()


# Digests -----------------------------------------------------------------------------------------


@cache
def texts() -> dict[str, bytes]:
    """The source of each module of ours, read once."""
    return {name: path.read_bytes() for name, path in _files().items()}


def _files() -> dict[str, Path]:
    return {
        path.relative_to(home).with_suffix("").as_posix().replace("/", "."): path
        for home, package in HOMES.items()
        for path in sorted((home / package).rglob("*.py"))
    }


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(texts()[name])


@cache
def digest(name: str) -> str | None:
    """Of what a module does; None if there is no such module."""
    return digest_of(texts()[name]) if name in texts() else None


def digest_of(source: bytes | str) -> str:
    """The digest of a source without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:16]


def sources() -> dict[str, str]:
    """Module → digest of what has been recorded."""
    return {name: found for name in sorted(recorded()) if (found := digest(name))}


# Stale results -----------------------------------------------------------------------------------


def changed(stored: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The modules that are not as they were when a result's parts were measured."""
    parts = stored.values()
    return sorted({name for part in parts for name, was in part.items() if digest(name) != was})


def stale_results(folder: Path = RESULTS) -> dict[str, str]:
    """Result → why its numbers may not be those of the current sources."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        if path.stem.endswith("-quick"):
            continue
        result = json.loads(path.read_text())
        stored = result.get("sources") if isinstance(result, dict) else None
        if not stored:
            found[path.stem] = "it does not say which sources it measured"
        elif modules := changed(stored):
            more = f" and {len(modules) - 4} more" if len(modules) > 4 else ""
            found[path.stem] = f"changed since: {', '.join(modules[:4])}{more}"
    return found


def mark(folder: Path = RESULTS) -> None:
    """Say on top of each page whether it is stale."""
    stale = stale_results(folder)
    for path in sorted(folder.glob("*.md")):
        if path.stem.endswith("-quick"):
            continue
        old = path.read_text()
        lines = [line for line in old.splitlines() if not line.startswith(MARK)]
        while lines and not lines[0]:
            lines.pop(0)
        if path.stem in stale:
            lines = [f"{MARK} Measured before the current sources: {stale[path.stem]}.", "", *lines]
        new = "\n".join(lines).rstrip() + "\n"
        if new != old:
            path.write_text(new)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.provenance", description=__doc__)
    parser.add_argument("--mark", action="store_true", help="write it on top of the pages")
    if parser.parse_args().mark:
        mark()
    for name, why in stale_results().items():
        print(f"warning: benchmarks/results/{name}.json is stale: {why}")


if __name__ == "__main__":
    main()
