"""Files that must stay as they are between passes: what they were when they were opened."""

from __future__ import annotations

import io
import os
import platform
from typing import Any, TypeAlias

from mercer._run.frozen import frozen
from mercer._run.paths import demand_path
from mercer._run.printable import PrintableErrors
from mercer._run.url import READ_BYTES, Url, UrlStatus


@frozen
class FileStamp:
    """Which file it is, its length, and when it was last written to.

    The time of writing can be set to any value, and copies keep it: so the inode and the time of
    its last change, which only the system sets, are compared too. A worker on another machine may
    have a copy of its own, where these differ.
    """

    n_bytes: int
    modified: int  # nanoseconds
    inode: int
    changed: int  # nanoseconds
    host: str  # the machine it was taken on

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileStamp:
        """The stamp of an existing, ordinary file that is not empty."""
        file_size(path)
        return cls.of_status(os.stat(path))

    @classmethod
    def of_status(cls, status: os.stat_result) -> FileStamp:
        """The stamp by what the system says of a file."""
        times = (status.st_mtime_ns, status.st_ino, status.st_ctime_ns)
        return cls(status.st_size, *times, platform.node())

    @PrintableErrors()
    def check(self, path: str | os.PathLike[str]) -> None:
        """Refuse a file that is not what it was when it was opened."""
        now = FileStamp.of(path)
        if now.n_bytes != self.n_bytes:
            found = f"it has {now.n_bytes} bytes and had {self.n_bytes} when it was opened"
        elif now.modified != self.modified:
            found = "it was written to after it was opened"
        elif now.host != self.host:
            return
        elif now.inode != self.inode:
            found = "another file took its place after it was opened"
        elif now.changed != self.changed:
            found = "its content or its attributes were changed after it was opened"
        else:
            return
        raise _changed(path, found)


@frozen
class UrlStamp:
    """The length of a file at a URL, and the version of its content (in S3 the ETag)."""

    n_bytes: int
    version: str

    @classmethod
    def of(cls, url: Url) -> UrlStamp:
        return cls.of_status(url, url.status())

    @classmethod
    def of_status(cls, url: Url, status: UrlStatus) -> UrlStamp:
        """The stamp of a file that is not empty, by what its store says."""
        if status.is_folder:
            raise ValueError(f"{url} is a folder; pass the URL of one file")
        if status.n_bytes == 0:
            raise ValueError(f"{url} is empty (0 bytes); write it again")
        return cls(status.n_bytes, status.version)

    def check(self, path: Any) -> None:
        """Refuse a file that is not what it was when it was opened."""
        now = UrlStamp.of(path)
        if now.n_bytes != self.n_bytes:
            raise _changed(
                path, f"it has {now.n_bytes} bytes and had {self.n_bytes} when it was opened"
            )
        if now.version != self.version:
            raise _changed(path, "it was replaced after it was opened")


Stamp: TypeAlias = FileStamp | UrlStamp


def stamp_of(path: str | os.PathLike[str]) -> Stamp:
    """What a file or a URL is now."""
    return UrlStamp.of(path) if isinstance(path, Url) else FileStamp.of(path)


def _changed(path: str | os.PathLike[str], found: str) -> ValueError:
    return ValueError(
        f"{os.fspath(path)} changed: {found}; open it again, and leave it alone while it is read"
    )


def file_size(path: str | os.PathLike[str]) -> int:
    """The bytes in an existing, ordinary file that is not empty."""
    if isinstance(path, Url):
        return UrlStamp.of(path).n_bytes
    file = demand_path(path)
    if file.is_dir():
        raise ValueError(f"{file} is a directory; pass the path of one file")
    if not file.is_file():
        raise ValueError(f"{file} is a pipe or a device; rows are read more than once: save them")
    size = file.stat().st_size
    if size == 0:
        raise ValueError(f"{file} is empty (0 bytes); write it again")
    return size


def opened(path: str | os.PathLike[str], n_bytes: int) -> Any:
    """A file of this length, unbuffered: each read is one of the system's, or one request."""
    return path.open(n_bytes) if isinstance(path, Url) else open(path, "rb", buffering=0)


def arrow_file(
    path: str | os.PathLike[str], n_bytes: int | None = None, *, forwards: bool = False
) -> Any:
    """What Arrow opens: a path, or a file at a URL; `forwards` where it is read from the start.

    Who knows its length saves the request for it.
    """
    if not isinstance(path, Url):
        return arrow_path(path)
    file = path.open(n_bytes)
    return io.BufferedReader(file, READ_BYTES) if forwards else file


def arrow_path(path: str | os.PathLike[str]) -> str:
    """A path as Arrow wants it: its bytes read as UTF-8, whatever the locale makes of them."""
    try:
        return os.fsencode(path).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"{os.fspath(path)} has a name that is not UTF-8, which Arrow cannot open; rename it"
        ) from None
