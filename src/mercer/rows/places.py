"""Files that are read and files that are written must not be the same, whatever their names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from mercer._run.paths import check_links
from mercer._run.url import Url
from mercer.rows.zarrs import is_zarr

StrPath: TypeAlias = str | os.PathLike[str]


def check_apart(inputs: Sequence[StrPath], outputs: Sequence[StrPath]) -> None:
    """Refuse, before any work, an output that is an input, another output, or inside of one.

    Files are the same if they have the same inode: symbolic and hard links are other names.
    """
    taken: dict[Any, StrPath] = {}
    inputs, outputs = [[Url.of(path) or path for path in some] for some in (inputs, outputs)]
    for path in inputs:
        check_links(path)
        taken |= dict.fromkeys(_identities(path), path)
    for path in outputs:
        check_links(path)
        for identity in _identities(path):
            if identity in taken:
                raise ValueError(_twice(path, taken[identity]))
        for other in inputs:
            _check_folders(path, other)
        taken |= dict.fromkeys(_identities(path), path)


def paths_of(source: Any) -> list[StrPath]:
    """The files and folders behind a source of rows, as far as it knows of any."""
    parts = getattr(source, "sources", None)  # column blocks
    if parts is not None:
        return [path for part in parts for path in paths_of(part)]
    path = getattr(source, "path", None)
    return [path] if isinstance(path, str | os.PathLike) else []


def stored_bytes(path: StrPath) -> int:
    """Bytes of the files at a URL; 0 for a path of this machine."""
    if not isinstance(path, Url):
        return 0
    return sum(status.n_bytes for status in path.tree().values()) or path.status().n_bytes


def _identities(path: StrPath) -> Iterator[Any]:
    """What is the same for all names of a file: where it is, and its inode if it exists."""
    if isinstance(path, Url):
        yield path.text.rstrip("/")
        return
    yield os.path.realpath(path)
    yield from _inode(path)


def _inode(path: StrPath) -> list[tuple[int, int]]:
    try:
        status = os.stat(path)
    except OSError:  # it does not exist, or cannot be looked at: who opens it will say so
        return []
    return [(status.st_dev, status.st_ino)] if status.st_ino else []


def _twice(path: StrPath, other: StrPath) -> str:
    if isinstance(path, Url) or os.path.realpath(path) == os.path.realpath(other):
        return f"{path} is named twice; every input and output needs its own file"
    return (
        f"{path} and {other} are two names of one file (a hard link); every input and output needs "
        "its own file"
    )


def _check_folders(path: StrPath, other: StrPath) -> None:
    """Refuse an output in a folder that is read, and an array that holds what is read."""
    if isinstance(path, Url) or isinstance(other, Url):
        if isinstance(path, Url) and isinstance(other, Url) and _is_inside(path, other):
            raise ValueError(f"{path} is inside {other}, which is read; choose another place")
        return
    here, there = Path(os.path.realpath(path)), Path(os.path.realpath(other))
    if there.is_dir() and here.is_relative_to(there):
        raise ValueError(f"{path} is inside {other}, which is read; choose another place")
    if is_zarr(here) and there.is_relative_to(here):  # the only folder that is ever replaced
        raise ValueError(f"{other}, which is read, is inside {path}; choose another place")
    inode = _inode(path)
    if inode and there.is_dir():
        for file in there.rglob("*"):
            if _inode(file) == inode:
                raise ValueError(_twice(path, file))


def _is_inside(path: Url, folder: Url) -> bool:
    return path.text.startswith(f"{folder.text.rstrip('/')}/")
