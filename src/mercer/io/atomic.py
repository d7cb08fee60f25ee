"""Files that are replaced as a whole: a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = [
    "check_replaceable",
    "check_writable",
    "naming",
    "replacing",
    "replacing_folder",
    "sync_folder",
]

STALE = 60.0  # seconds; a younger temporary file may not be locked yet


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`, which takes its place when the block ends well.

    The new file is on the disk before the old one goes. Whatever ends the block early, Ctrl-C and
    a full disk included, removes the temporary file and leaves the old one as it was. A process
    that is killed cannot clean up: the next one that writes to the same path does it. Of two that
    write at the same time, the last to finish stays.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with replacing(target) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    target = check_writable(path)
    _remove_stale(target)
    temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.tmp")
    try:
        with naming(path), _created(temporary, like=target):
            yield temporary
            _sync_file(temporary)
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """`replacing` for what is a folder: an array of zarr. The path does not exist inside.

    Between the old folder's going and the new one's coming there is a moment without either: a
    folder that is not empty cannot be replaced in one step.
    """
    target = check_replaceable(path)
    temporary, old = (
        target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.{end}")
        for end in ("tmp", "old")
    )
    try:
        yield temporary
        for file in sorted(temporary.rglob("*")):
            if file.is_file():
                _sync_file(file)
        if target.exists():
            os.replace(target, old)
        os.replace(temporary, target)
    except BaseException:
        if old.exists() and not target.exists():
            os.replace(old, target)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    sync_folder(target.parent)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say which file an error is about: a full disk does not do so of itself."""
    try:
        yield
    except OSError as error:
        if error.errno and error.filename is None:
            error.filename = os.fspath(path)
        raise


def check_replaceable(path: str | os.PathLike[str]) -> Path:
    """The zarr array that `path` leads to, if it can be made or replaced; else an error, early."""
    target = Path(os.path.realpath(path))
    if not target.is_dir():
        target = check_writable(path)
        if target.exists():
            raise FileExistsError(f"{path} is a file, not a zarr array; choose another path")
        return target
    check_writable(target / "zarr.json")
    check_writable(target.with_name(f".{target.name[:40]}.tmp"))
    if not (any(target.iterdir()) and _is_array(target)):
        raise FileExistsError(
            f"{path} is a directory that is not a zarr array, and would be replaced; choose "
            "another path, or remove it"
        )
    return target


def _is_array(folder: Path) -> bool:
    """Is this one zarr array (a group may hold what nobody wants to lose)?"""
    if (folder / ".zarray").is_file():
        return True
    document = folder / "zarr.json"
    return document.is_file() and json.loads(document.read_text()).get("node_type") == "array"


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The file that `path` leads to, if it can be written or replaced; else an error, early."""
    target, folder = Path(os.path.realpath(path)), Path(os.path.realpath(path)).parent
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a directory; pass the path of a file")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is a pipe or a device; pass the path of an ordinary file")
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder} to write {target.name} in; make it")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, so {target.name} cannot be written in it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {folder} is not writable; choose another one")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{path} is read-only; choose another path, or allow writing to it")
    return target


@contextmanager
def _created(temporary: Path, *, like: Path) -> Iterator[None]:
    """An empty new file with the permissions of the one it will replace, locked while inside."""
    with temporary.open("xb") as file:
        if like.exists():
            shutil.copymode(like, temporary)
        if os.name == "posix":
            with suppress(OSError):  # file systems without locks
                _lock(file)
        else:  # an open file cannot be renamed
            file.close()
        yield


def _remove_stale(target: Path) -> None:
    """Remove what killed writers to this path left: old temporary files that nobody has locked."""
    if os.name != "posix":
        return
    prefix = _prefix(target)
    names = (name for name in os.listdir(target.parent) if name.startswith(prefix))
    for path in (target.with_name(name) for name in names if name.endswith(".tmp")):
        with suppress(OSError):  # gone, locked, or another's
            if time.time() - path.stat().st_mtime > STALE:
                with path.open("rb") as file:
                    _lock(file)
                    path.unlink()


def _prefix(target: Path) -> str:
    return f".{target.name[:40]}."


def _lock(file: Any) -> None:
    """Claim a file until it is closed or its process is gone; BlockingIOError if it is taken."""
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the new name itself last; Windows does so by itself and cannot open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
