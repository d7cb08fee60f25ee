"""A directory under the temporary one in which only this user can write.

What lies there may be run (compiled loops), so whoever could write there, or put another directory
in its place, could run code in this process. Its name is the same in every process of the user, so
that they share it; a directory of that name that somebody else made is refused.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def path(name: str) -> str:
    """Where this user's directory is; OSError where the system has no place for it."""
    if not hasattr(os, "geteuid"):  # Windows: its access lists are not checked here
        raise OSError("this system does not say who owns a directory")
    folder = os.path.realpath(tempfile.gettempdir())
    if folder == os.getcwd() and not _is_shared(folder):
        raise OSError("there is no temporary directory")  # this one is tempfile's last resort
    return os.path.join(folder, f"{name}-{os.geteuid()}")


def make(folder: str) -> None:
    """Make the directory if it is not there; PermissionError unless it is ours alone."""
    for parent in Path(folder).parents:
        found = parent.stat()
        is_safe = not found.st_mode & OTHERS_WRITE or _is_shared(parent)
        _demand(is_safe and found.st_uid in (0, os.geteuid()), f"others can replace {parent}")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)  # a link is not followed
    _demand(stat.S_ISDIR(found.st_mode), f"{folder} is not a directory")
    _demand(found.st_uid == os.geteuid(), f"{folder} belongs to somebody else")
    _demand(not stat.S_IMODE(found.st_mode) & 0o077, f"{folder} is open to others")


def _is_shared(folder: str | Path) -> bool:
    """Whether others can write here, but not rename or remove what is ours (as in /tmp)."""
    mode = os.stat(folder).st_mode
    return bool(mode & OTHERS_WRITE and mode & stat.S_ISVTX)


def _demand(holds: bool, problem: str) -> None:
    if not holds:
        raise PermissionError(problem)
