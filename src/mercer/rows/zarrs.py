"""Rows in a zarr array, read a block of whole chunks at a time; missing chunks are refused."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mercer._run.extras import require
from mercer._run.frozen import frozen
from mercer._run.paths import demand_path
from mercer._run.types import FloatArray
from mercer._run.url import Url, is_of_store, located
from mercer.rows.arrays import working_dtype
from mercer.rows.demands import demand_numbers, demand_table
from mercer.rows.forward import ForwardSource, Layout
from mercer.rows.source import TILE
from mercer.rows.stamp import Stamp, UrlStamp, stamp_of

DOCUMENTS = ("zarr.json", ".zarray", ".zgroup")  # one of them is in every array and group
Missing = Literal["refuse", "fill"]
Digests = tuple[bytes, bytes]  # digests: of sizes and times of writing, of inodes and changes


@frozen(eq=False, slots=False)
class ZarrSource(ForwardSource):
    """A two-dimensional zarr array of numbers (format 2 or 3, with or without shards).

    Parameters
    ----------
    array : str, path or zarr.Array
        The path or the URL of an array, or an open one.
    missing : {"refuse", "fill"}, default="refuse"
        Zarr reads a chunk that is not there as if it held the fill value, whether it was lost or
        never written because it held nothing else. So missing chunks are refused, unless the fill
        is meant.

    Notes
    -----
    Chunks are read whole, so a block of them (a tile of rows at least) is in memory at a time.
    """

    array: Any
    missing: Missing = "refuse"
    path: str | Url = field(init=False)
    block_rows: int = field(init=False, repr=False)
    stamp: Stamp | None = field(init=False, repr=False)  # of the array's own description
    digests: tuple[Digests, ...] = field(init=False, repr=False)  # of the files of each block

    def __post_init__(self) -> None:
        if self.missing not in ("refuse", "fill"):
            raise ValueError(f"missing={self.missing!r} is unknown; choose 'refuse' or 'fill'")
        array, path, stamp = _opened(self.array)
        demand_numbers(array.dtype, f"{path!s}")
        demand_table(array.shape, f"{path!s}")
        n_rows, n_features = map(int, array.shape)
        rows = int(array.chunks[0])
        self._set(
            array=array,
            path=path,
            stamp=stamp,
            n_rows=n_rows,
            block_rows=min(rows * max(TILE // rows, 1), n_rows),
            layout=Layout(n_features, working_dtype(array.dtype)),
        )
        self._set(restarts=np.arange(0, n_rows, self.block_rows))
        if stamp is None:  # not in files: how many chunks there are is all that can be asked
            self._check_gaps(_n_missing(array), "they")
            self._set(digests=())
        else:
            files = path.tree() if isinstance(path, Url) else None
            firsts = self.restarts.tolist()
            self._set(digests=tuple(self._digests(first, files) for first in firsts))

    @property
    def block_bytes(self) -> int:
        """What a block of chunks takes in memory: stored, decoded or cast, beside the rows."""
        itemsize = max(self.array.dtype.itemsize, self.dtype.itemsize)
        return self.block_rows * self.n_features * itemsize

    @property
    def resting(self) -> int:
        """What zarr's threads keep of the last chunks they decoded, between passes (measured)."""
        return 3 * self.block_bytes

    def blocks(self, start: int) -> Iterator[FloatArray]:
        if self.stamp is not None:
            self.stamp.check(_document(self.path))
        for first in range(start, self.n_rows, self.block_rows):
            stop = min(first + self.block_rows, self.n_rows)
            if self.stamp is not None and not self._is_unchanged(first):
                raise ValueError(
                    f"{self.path} changed: the chunks of the rows {first} to {stop} were written "
                    "to or replaced after it was opened; open it again, and leave it alone while "
                    "it is read"
                )
            yield np.ascontiguousarray(self._stored(first, stop), dtype=self.dtype)

    def _stored(self, start: int, stop: int) -> Any:
        """Some rows, in the array's own type."""
        with _named_errors(self.path):
            if isinstance(self.path, Url):
                return self.path.attempt(lambda: self.array[start:stop])
            return self.array[start:stop]

    def changed(self, found: str) -> str:
        return f"{self.path} had {self.n_rows} rows when it was opened and {found} now"

    def _is_unchanged(self, start: int) -> bool:
        """Whether the files of a block are what they were; another machine may have copies."""
        assert self.stamp is not None
        now, before = self._digests(start), self.digests[start // self.block_rows]
        is_here = isinstance(self.stamp, UrlStamp) or self.stamp.host == platform.node()
        return now == before if is_here else now[0] == before[0]

    def _digests(self, start: int, listed: dict[str, Any] | None = None) -> Digests:
        """What identifies the files of a block, all of which must be there."""
        contents, files, gaps = hashlib.blake2b(digest_size=8), hashlib.blake2b(digest_size=8), []
        for name in self._files(start, min(start + self.block_rows, self.n_rows)):
            try:
                content, file = _identity(self.path, name, listed)
            except FileNotFoundError:
                gaps.append(name)
                continue
            contents.update(f"{name} {content}".encode())
            files.update(f"{name} {file}".encode())
        self._check_gaps(len(gaps), ", ".join(gaps[:3]) + ", …" * (len(gaps) > 3))
        return contents.digest(), files.digest()

    def _files(self, start: int, stop: int) -> Iterator[str]:
        """The files that hold these rows: one each for a chunk, or for a shard of chunks."""
        height, width = self.array.shards or self.array.chunks
        down = range(start // height, -(-stop // height))
        across = range(-(-self.n_features // width))
        for place in product(down, across):
            yield self.array.metadata.encode_chunk_key(place)

    def _check_gaps(self, count: int, names: str) -> None:
        if count and self.missing == "refuse":
            raise ValueError(
                f"{count} chunk(s) of {self.path} are missing ({names}): they would be read as "
                f"{self.array.fill_value}, as if that had been written. Copy the array again; or, "
                "if the fill is meant, write it with config={'write_empty_chunks': True}, or pass "
                "mercer.rows.ZarrSource(path, missing='fill')"
            )


def _identity(path: str | Url, name: str, listed: dict[str, Any] | None) -> tuple[str, str]:
    """What changes with the content of a file of an array, and what with the file itself."""
    if isinstance(path, Url):
        if listed is not None and name not in listed:
            raise FileNotFoundError(name)
        found = (path / name).status() if listed is None else listed[name]
        return f"{found.n_bytes} {found.version}", ""
    status = os.stat(os.path.join(path, name))
    return f"{status.st_size} {status.st_mtime_ns}", f"{status.st_ino} {status.st_ctime_ns}"


def is_zarr(path: str | os.PathLike[str]) -> bool:
    """Whether this folder is a zarr array or group, by what is in it."""
    if isinstance(path, Url):
        return bool(set(DOCUMENTS) & set(path.children()))
    return any(os.path.isfile(os.path.join(path, name)) for name in DOCUMENTS)


def _opened(array: Any) -> tuple[Any, str | Url, Stamp | None]:
    """An array open for reading, what to call it, and the stamp of its description on disk."""
    zarr = require("zarr", "io", "reading zarr")
    if isinstance(array, zarr.Array) and isinstance(array.store, zarr.storage.LocalStore):
        array = os.path.join(array.store.root, array.path)
    if not isinstance(array, str | os.PathLike):
        return array, str(array.store_path), None
    path = located(array)
    if not isinstance(path, Url):
        demand_path(path)
    if not is_zarr(path):
        raise ValueError(
            f"{path} is not a zarr array: it holds none of {', '.join(DOCUMENTS)}; write it again"
        )
    with _named_errors(path):
        found = zarr.open(path.text if isinstance(path, Url) else path, mode="r")
    if isinstance(found, zarr.Group):
        inside = [f"{name} {item.shape}" for name, item in found.members(None) if _is_array(item)]
        raise ValueError(
            f"{path} is a group of {len(inside)} zarr array(s): {', '.join(inside) or 'none'}; "
            f"pass the path of one array, e.g. {path}/{inside[0].split()[0] if inside else 'x'}"
        )
    return found, path, stamp_of(_document(path))


def _is_array(item: Any) -> bool:
    return hasattr(item, "chunks")


def _document(folder: str | Url) -> Any:
    """The file that describes an array."""
    root = folder if isinstance(folder, Url) else Path(folder)
    version_3 = root / "zarr.json"
    return version_3 if version_3.exists() else root / ".zarray"


def _n_missing(array: Any) -> int:
    return int(array.nchunks - array.nchunks_initialized)


@contextmanager
def _named_errors(path: str | Url) -> Iterator[None]:
    """Zarr's many errors as one ValueError that says which array and what to do."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # codecs raise whatever they like
        if is_of_store(error, path):
            raise
        reason = (str(error) or type(error).__name__).partition("\n")[0].rstrip(".")
        raise ValueError(
            f"{path} cannot be read as zarr: {reason}; the array is damaged or incomplete: "
            "write it again"
        ) from error
