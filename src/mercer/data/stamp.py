"""Files that must stay as they are between passes: what they were when they were opened."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mercer._paths import demand_path
from mercer._printable import PrintableErrors

__all__ = ["FileStamp", "arrow_path", "file_size"]


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The length of a file and when it was last written to."""

    n_bytes: int
    modified: int  # nanoseconds

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileStamp:
        """The stamp of an existing, ordinary file that is not empty."""
        return cls(file_size(path), os.stat(path).st_mtime_ns)

    @PrintableErrors()
    def check(self, path: str | os.PathLike[str]) -> None:
        """Refuse a file that is not what it was when it was opened."""
        now = FileStamp.of(path)
        if now.n_bytes != self.n_bytes:
            found = f"it has {now.n_bytes} bytes and had {self.n_bytes} when it was opened"
        elif now.modified != self.modified:
            found = "it was written to after it was opened"
        else:
            return
        raise ValueError(
            f"{os.fspath(path)} changed: {found}; open it again, and leave it alone while it is "
            "read"
        )


def file_size(path: str | os.PathLike[str]) -> int:
    """The bytes in an existing, ordinary file that is not empty."""
    file = demand_path(path)
    if file.is_dir():
        raise ValueError(f"{file} is a directory; pass the path of one file")
    if not file.is_file():
        raise ValueError(f"{file} is a pipe or a device; rows are read more than once: save them")
    size = file.stat().st_size
    if size == 0:
        raise ValueError(f"{file} is empty (0 bytes); write it again")
    return size


def arrow_path(path: str | os.PathLike[str]) -> str:
    """A path as Arrow wants it: its bytes read as UTF-8, whatever the locale makes of them."""
    try:
        return os.fsencode(path).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"{os.fspath(path)} has a name that is not UTF-8, which Arrow cannot open; rename it"
        ) from None
