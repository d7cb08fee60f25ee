"""Files at URLs, through fsspec: opened, looked at, listed, written; passing faults are waited out.

Credentials are fsspec's business: they come from its configuration and the environment. What a URL
itself holds of them (a user, a signature in its query) is used and never shown.
"""

from __future__ import annotations

import io
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from mercer._run.extras import require
from mercer._run.frozen import frozen
from mercer._run.tally import WORK
from mercer.exceptions import MissingExtraError

ATTEMPTS = 6  # in all; the waits between them add up to 6 seconds
FIRST_WAIT = 0.2  # seconds; each wait is twice the one before
READ_BYTES = 2**23  # asked for at once where bytes are read one after another
VERSIONS = (  # names of what changes with a file's content, in listings too; the best first
    *("ETag", "etag", "generation", "md5Hash", "content_md5", "Content-MD5", "sha"),
    *("last_modified", "LastModified", "Last-Modified", "mtime", "modified", "created"),
)
PERMANENT = (  # errors that another attempt would raise again
    *(FileNotFoundError, PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError),
    *(NotImplementedError, ImportError, ValueError, TypeError, AttributeError, LookupError),
    *(MemoryError, AssertionError),
)
BUSY = (408, 425, 429)  # answers of HTTP below 500 that ask to come again
SCHEME = re.compile(r"[a-z][a-z0-9+.\-]+(?:::|://)", re.IGNORECASE)  # C: is a drive
LOCAL = re.compile(r"(?:file|local)://", re.IGNORECASE)
SECRETS = re.compile(r"(?<=://)[^/\s@]*@|(?<=[^\s?])\?[^\s'\")]*")  # user:password@, ?signature
REASON = 300  # characters of an error in a message

Value = TypeVar("Value")
Place: TypeAlias = "Url | Path"
StrPath: TypeAlias = str | os.PathLike[str]
log = logging.getLogger(__name__)

retries = WORK["requests sent again"]


class StoreError(OSError):
    """A store that did not answer in several attempts; nothing is said about the file itself."""


@frozen
class UrlStatus:
    """What a file system says of one file: its length, and what changes with its content."""

    n_bytes: int
    version: str
    is_folder: bool = False

    @classmethod
    def of(cls, info: dict[str, Any]) -> UrlStatus:
        known = next((info[name] for name in VERSIONS if info.get(name) is not None), "")
        version = str(known.timestamp() if hasattr(known, "timestamp") else known)
        return cls(int(info.get("size") or 0), version, info.get("type") == "directory")


@frozen
class Url:
    """A file or folder that fsspec can reach; its text without secrets is what messages show.

    >>> Url("https://me:word@host/rows.npy?signature=1")
    Url('https://host/rows.npy')
    """

    text: str = field(repr=False)

    @classmethod
    def of(cls, path: Any) -> Url | None:
        """The URL that is meant, or None where this is a path of this machine."""
        if isinstance(path, Url):
            return path
        if not isinstance(path, str | os.PathLike):
            return None
        text = os.fspath(path)
        if not isinstance(text, str) or not SCHEME.match(text) or LOCAL.match(text):
            return None
        return cls(text)

    def __fspath__(self) -> str:
        return SECRETS.sub("", self.text)

    __str__ = __fspath__

    def __repr__(self) -> str:
        return f"Url({self.__fspath__()!r})"

    @property
    def name(self) -> str:
        return self.__fspath__().rstrip("/").rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    def __truediv__(self, name: str) -> Url:
        return Url(f"{self.text.rstrip('/')}/{name}")

    def status(self) -> UrlStatus:
        """What is there now, whatever was listed before."""
        fs, path = self._opened()

        def look() -> UrlStatus:
            fs.invalidate_cache(fs._parent(path))
            return UrlStatus.of(fs.info(path))

        return self.attempt(look)

    def exists(self) -> bool:
        try:
            self.status()
        except FileNotFoundError:
            return False
        return True

    def children(self) -> dict[str, UrlStatus]:
        """What is in a folder, by name; nothing where there is none."""
        fs, path = self._opened()

        def look() -> dict[str, UrlStatus]:
            fs.invalidate_cache(path)
            try:
                found = fs.ls(path, detail=True)
            except FileNotFoundError:
                return {}
            own = path.strip("/")  # some stores keep an empty file for a folder
            names = {entry["name"].strip("/"): entry for entry in found}
            names.pop(own, None)
            return {n.rpartition("/")[2]: UrlStatus.of(entry) for n, entry in names.items()}

        return self.attempt(look)

    def tree(self) -> dict[str, UrlStatus]:
        """The files in a folder and all folders in it, by their path from here."""
        fs, path = self._opened()

        def look() -> dict[str, UrlStatus]:
            fs.invalidate_cache(path)
            root = path.strip("/")
            found = fs.find(path, detail=True)
            return {n.strip("/")[len(root) + 1 :]: UrlStatus.of(i) for n, i in found.items()}

        return self.attempt(look)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes start to stop: all of them, or an error."""
        if stop <= start:
            return b""
        fs, path = self._opened()

        def fetch() -> bytes:
            data: bytes = fs.cat_file(path, start=start, end=stop)
            if len(data) < stop - start:
                raise EOFError(f"{len(data)} of {stop - start} bytes came")
            if len(data) > stop - start:
                raise ValueError("the server sends more than was requested; copy the file here")
            return data

        return self.attempt(fetch)

    def open(self, n_bytes: int | None = None) -> UrlFile:
        """The file, open for reading at any place."""
        return UrlFile(self, self.status().n_bytes if n_bytes is None else n_bytes)

    def write(self, data: bytes) -> None:
        """Let the file hold these bytes and no others, in one step where the store can do that."""
        fs, path = self._opened()
        self.attempt(lambda: fs.pipe_file(path, data), "written")

    def put(self, file: Path) -> None:
        """The same, with the content of a file of this machine."""
        fs, path = self._opened()
        self.attempt(lambda: fs.put_file(str(file), path), "written")

    def copy(self, other: Url) -> None:
        """Give a file a second name in the same store."""
        fs, path = self._opened()
        to = other._opened()[1]
        self.attempt(lambda: fs.cp_file(path, to), "copied")

    def remove(self) -> None:
        """Remove one file, if it is there."""
        fs, path = self._opened()

        with suppress(FileNotFoundError):
            self.attempt(lambda: fs.rm_file(path), "removed")

    def remove_tree(self) -> None:
        """Remove a folder and all that is in it: many files with one request, where stores can."""
        fs, path = self._opened()

        def remove() -> None:
            fs.invalidate_cache(path)
            fs.rm(path, recursive=True)

        with suppress(FileNotFoundError):
            self.attempt(remove, "removed")

    def check_writable(self) -> None:
        """Refuse, before the work, a place that cannot be written to, by a small file beside it."""
        probe = Url(f"{self.text.rstrip('/')}.tmp")
        probe.write(b"mercer")
        probe.remove()

    def _opened(self) -> tuple[Any, str]:
        """The file system and the path in it; fsspec keeps one of each kind."""
        fsspec = require("fsspec.core", "cloud", f"{self}")
        try:
            return fsspec.url_to_fs(self.text)
        except ImportError as error:
            raise MissingExtraError(
                f"{self} needs a package that is not installed: {_words(error)}"
            ) from None
        except ValueError as error:
            raise ValueError(f"{self} cannot be opened: {_words(error)}") from None

    def attempt(self, work: Callable[[], Value], verb: str = "read") -> Value:
        """What the work gives; faults that may pass are waited out, others raised at once."""
        wait = FIRST_WAIT
        for left in reversed(range(ATTEMPTS)):
            try:
                return work()
            except Exception as error:
                if is_permanent(error):
                    raise self._permanent(error, verb) from None
                if not left:
                    raise StoreError(
                        f"{self} could not be {verb} in {ATTEMPTS} attempts: {_words(error)}; try "
                        "again when the store and the network can be reached"
                    ) from None
                retries.add(1)
                log.info("%s: %s; trying again in %.1f s", self, _words(error), wait)
                time.sleep(wait)
                wait *= 2
        raise AssertionError

    def _permanent(self, error: Exception, verb: str) -> Exception:
        """One error that says what to do, without what a file system may tell of secrets."""
        if isinstance(error, FileNotFoundError):
            return FileNotFoundError(f"there is no {self}; check the bucket and the name")
        if isinstance(error, NotImplementedError):
            return ValueError(f"{self} cannot be {verb}: this kind of URL does not support it")
        if isinstance(error, MemoryError | StoreError):
            return error
        if isinstance(error, PermissionError) or is_denied(error):
            return PermissionError(
                f"{self} could not be {verb}: access was denied ({_words(error)}); check the "
                "credentials that fsspec finds, and what they allow"
            )
        return ValueError(f"{self} could not be {verb}: {_words(error)}")


class UrlFile(io.RawIOBase):
    """A file at a URL, read by ranges: each read is one request, and nothing stays open."""

    def __init__(self, url: Url, n_bytes: int) -> None:
        self.url, self.n_bytes, self.position = url, n_bytes, 0
        self.name = str(url)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.n_bytes}[whence]
        self.position = origin + offset
        return self.position

    def read(self, size: int | None = -1) -> bytes:
        left = max(self.n_bytes - self.position, 0)
        size = left if size is None or size < 0 else min(size, left)
        data = self.url.read(self.position, self.position + size)
        self.position += size
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def located(path: StrPath) -> Any:
    """A URL as it is, a path of this machine made absolute."""
    if (url := Url.of(path)) is not None:
        return url
    text = os.fspath(path)
    return os.path.abspath(LOCAL.sub("", text, count=1) if isinstance(text, str) else text)


def place_of(path: StrPath) -> Place:
    """The same, as something that has a name and names things inside it with ``/``."""
    return Url.of(path) or Path(located(path))


def is_folder_path(path: Any) -> bool:
    """Whether a path or URL means a folder by the slash at its end."""
    return isinstance(path, str | os.PathLike) and os.fspath(path).endswith(("/", os.sep))


@contextmanager
def local_copy(path: StrPath) -> Iterator[Path]:
    """The file itself, or a copy of what is at a URL, which goes with the block."""
    if (url := Url.of(path)) is None:
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        copy = Path(folder) / (url.name or "copy")
        with url.open() as remote, copy.open("wb") as file:
            while data := remote.read(READ_BYTES):
                file.write(data)
        yield copy


def is_of_store(error: BaseException, path: Any) -> bool:
    """Whether an error is about reaching a file at a URL, not about what it holds."""
    is_refused = isinstance(error, PermissionError | FileNotFoundError) and isinstance(path, Url)
    return is_refused or isinstance(error, StoreError)


def is_permanent(error: BaseException) -> bool:
    """Whether another attempt would end in the same way."""
    code = http_status(error)
    if code is not None:
        return code < 500 and code not in BUSY
    return isinstance(error, (*PERMANENT, StoreError)) or is_denied(error)


def is_denied(error: BaseException) -> bool:
    """Whether credentials are missing or refused, by the status of HTTP or the error's name."""
    names = [kind.__name__ for kind in type(error).__mro__]
    return http_status(error) in (401, 403) or any(
        "Credential" in name or "Auth" in name for name in names
    )


def http_status(error: BaseException) -> int | None:
    """The status of HTTP behind an error, if it tells one."""
    for name in ("status", "code"):
        code = getattr(error, name, None)
        if isinstance(code, int) and 400 <= code < 600:
            return code
    return None


def _words(error: BaseException) -> str:
    """An error in a line, without the secrets of any URL in it."""
    text = (str(error) or type(error).__name__).partition("\n")[0].rstrip(".")
    return SECRETS.sub("", text)[:REASON]
