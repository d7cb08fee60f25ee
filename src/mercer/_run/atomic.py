"""Files that are replaced as a whole: a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from mercer._run.exchange import exchange
from mercer._run.paths import check_links
from mercer._run.printable import PrintableErrors
from mercer._run.url import Place, Url

WAITS = (0.01, 0.05, 0.2, 0.5, 1.0)  # seconds, between attempts to replace an open file
STALE = 60.0  # seconds; a younger temporary file may not be locked yet


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`, which takes its place when the block ends well.

    The new file is on the disk before the old one goes. Whatever ends the block early, Ctrl-C and
    a full disk included, removes the temporary file and leaves the old one as it was. A process
    that is killed cannot clean up: the next one that writes to the same path does it. Of two that
    write at the same time, the last to finish stays. At a URL, what was written in a temporary
    folder of this machine is sent when the block ends well.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with replacing(target) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    if (url := Url.of(path)) is not None:
        with _sent(url) as temporary:
            yield temporary
        return
    target = _writable(path)
    _remove_stale(target)
    temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.tmp")
    try:
        with naming(path), _created(temporary, like=target):
            yield temporary
            _sync_file(temporary)
            _replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


@contextmanager
def _sent(url: Url) -> Iterator[Path]:
    """A temporary file that is sent to a URL when the block ends well."""
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        temporary = Path(folder) / (url.name or "file")
        temporary.touch()
        yield temporary
        url.put(temporary)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """`replacing` for what is a folder: an array of zarr. The temporary folder is empty.

    The old folder and the new one change places in one step where the system can do that. Where it
    cannot, a kill may leave a moment between two renames on the disk, without a folder under this
    name: `recover` puts the old one back, at the next write or read.
    """
    target = check_replaceable(path)
    recover(target)
    _remove_stale(target)
    temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.tmp")
    temporary.mkdir()
    try:
        with naming(path), _locked(temporary):
            yield temporary
            _sync_tree(temporary)
            _swap(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def recover(path: str | os.PathLike[str]) -> None:
    """Put back the folder that a killed writer had moved aside and not replaced yet."""
    target = Path(os.path.realpath(path))
    old = _aside(target)
    if old.exists():
        with _alone(target.parent):
            if not target.exists():
                with suppress(FileNotFoundError):  # another reader was quicker
                    os.rename(old, target)


def _swap(temporary: Path, target: Path) -> None:
    """Give the new folder its name; the old one gets the temporary name, or goes."""
    old = _aside(target)
    with _alone(target.parent):
        if not target.exists():
            os.rename(temporary, target)
        elif not exchange(temporary, target):
            shutil.rmtree(old, ignore_errors=True)
            os.rename(target, old)
            try:
                os.rename(temporary, target)
            except BaseException:
                os.rename(old, target)
                raise
        sync_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)


def _aside(target: Path) -> Path:
    """Where the old folder waits between two renames; the same for every process."""
    digest = sha256(os.fsencode(target.name)).hexdigest()[:16]
    return target.with_name(f"{_prefix(target)}{digest}.old")


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in an error: the system does not do so when the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno and error.filename is None:
            error.filename = os.fspath(path)
        raise


@PrintableErrors()
def check_replaceable(path: str | os.PathLike[str]) -> Path:
    """The zarr array that `path` leads to, if it can be made or replaced; else an early error."""
    parent = Path(os.path.realpath(path)).parent
    if not os.access(parent, os.R_OK):
        return _writable(path)
    with _alone(parent):  # another writer may be between two renames
        return _replaceable(path)


def _replaceable(path: str | os.PathLike[str]) -> Path:
    target = Path(os.path.realpath(path))
    if not target.is_dir():
        target = _writable(path)
        if target.exists():
            raise FileExistsError(f"{path} is a file, not a zarr array; choose another path")
        return target
    _writable(target / "zarr.json")
    _writable(target.with_name(f".{target.name[:40]}.tmp"))
    if not (any(target.iterdir()) and _is_array(target)):
        raise FileExistsError(
            f"{path} is a directory that is not a zarr array, and would be replaced; choose "
            "another path, or remove it"
        )
    return target


def _is_array(folder: Path) -> bool:
    """Whether this is one zarr array (a group may hold other data, which would be lost)."""
    if (folder / ".zarray").is_file():
        return True
    document = folder / "zarr.json"
    return document.is_file() and json.loads(document.read_text()).get("node_type") == "array"


@PrintableErrors()
def check_writable(path: str | os.PathLike[str]) -> Place:
    """The file or URL that `path` leads to, if it can be written or replaced; else an error."""
    if (url := Url.of(path)) is not None:
        url.check_writable()
        return url
    return _writable(path)


def _writable(path: str | os.PathLike[str]) -> Path:
    """The file that `path` leads to, if it can be written or replaced; else an early error."""
    check_links(path)
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
                _lock(file.fileno())
        else:  # an open file cannot be renamed
            file.close()
        yield


@contextmanager
def _locked(folder: Path, *, waiting: bool = False) -> Iterator[None]:
    """Lock a folder while inside, where that can be done; a kill releases it."""
    if os.name != "posix":
        yield
        return
    with _descriptor(folder) as descriptor:
        with suppress(OSError):  # file systems without locks
            _lock(descriptor, waiting=waiting)
        yield


def _alone(folder: Path) -> AbstractContextManager[None]:
    """One process at a time changes names of folders in this one."""
    return _locked(folder, waiting=True)


def _remove_stale(target: Path) -> None:
    """Remove what killed writers to this path left: old temporary files that nobody has locked."""
    if os.name != "posix":
        return
    names = (name for name in os.listdir(target.parent) if name.startswith(_prefix(target)))
    for path in (target.with_name(name) for name in names if name.endswith(".tmp")):
        with suppress(OSError):  # gone, locked, or another's
            if time.time() - path.stat().st_mtime > STALE:
                with _descriptor(path) as descriptor:
                    _lock(descriptor)
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _replace(temporary: Path, target: Path) -> None:
    """Rename over the target; Windows refuses while a reader has it open, so try for a moment."""
    for wait in () if os.name == "posix" else WAITS:
        try:
            os.replace(temporary, target)
        except PermissionError:
            time.sleep(wait)
        else:
            return
    os.replace(temporary, target)


def _prefix(target: Path) -> str:
    return f".{target.name[:40]}."


def _lock(descriptor: int, *, waiting: bool = False) -> None:
    """Lock an open file until it is closed or its process ends; wait, or raise BlockingIOError."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waiting else fcntl.LOCK_NB))


def _sync_tree(folder: Path) -> None:
    """Put the files of a folder, and their names, on the disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            _sync_file(path)
        else:
            sync_folder(path)
    sync_folder(folder)


def _sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the new name itself last; Windows does so by itself and cannot open folders."""
    if os.name == "posix":
        with _descriptor(folder) as descriptor:
            os.fsync(descriptor)


@contextmanager
def _descriptor(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
