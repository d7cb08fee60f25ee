"""A zip of one manifest and many arrays, whose every byte is accounted for before it is trusted.

Members are stored, not compressed: a file cannot grow when it is read, and what it declares can be
checked against its own size first.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import reprlib
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mercer._run.atomic import replacing
from mercer._run.budget import human_bytes
from mercer._run.frozen import frozen
from mercer._run.paths import demand_path
from mercer._run.printable import printable
from mercer._run.url import Url, local_copy
from mercer.exceptions import BudgetError, ModelFileError
from mercer.io.allowance import MOST_OBJECTS, Allowance
from mercer.io.damage import ADVICE, damaged, demand, reason
from mercer.io.packing import DTYPES, Arrays, Json
from mercer.rows.npy import read_header

MANIFEST = "manifest.json"
MANIFEST_BYTES = 16 * 10**6  # at most
DIRECTORY_BYTES = 4 * 10**6  # of the zip, at most: what names the members
MOST_DIMENSIONS = 4  # of an array
HEADER_BYTES = 4096  # of an npy member, at most
FOREIGN = "pass a file that Mercer saved"
BLOCK_BYTES = 2**20  # hashed and copied at a time
ZIP64_BYTES = 2**30  # members beyond this get the long form of a zip entry
NAME = re.compile(r"[\w.\-]{1,200}", re.ASCII)
SEAL = "sha256"  # an entry of the manifest: the zip's comment is its SHA-256
ZIP_TROUBLE = (
    zipfile.BadZipFile,
    NotImplementedError,  # a compression or zip version that does not exist
    RuntimeError,  # marked as encrypted
    EOFError,
    ValueError,
    OverflowError,
    struct.error,
)


@frozen
class ArrayEntry:
    """What the manifest declares about one array."""

    shape: tuple[int, ...]
    dtype: str
    sha256: str

    @property
    def n_bytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @classmethod
    def of(cls, name: str, tree: Json) -> ArrayEntry:
        """Parse one entry of the manifest."""
        demand(NAME.fullmatch(name) is not None, f"an array has the name {reprlib.repr(name)}")
        demand(isinstance(tree, dict), f"the manifest does not describe the array {name}")
        shape, dtype, digest = (tree.get(key) for key in ("shape", "dtype", "sha256"))
        sides: list[Any] = (
            shape if isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS else [None]
        )
        if not all(type(n) is int and 0 <= n < 2**62 for n in sides):
            raise damaged(f"the array {name} has the shape {reprlib.repr(shape)}")
        if not isinstance(dtype, str) or dtype not in DTYPES:
            known = ", ".join(DTYPES)
            raise damaged(f"the array {name} is of {reprlib.repr(dtype)}, not one of {known}")
        if not isinstance(digest, str):
            raise damaged(f"the array {name} has no SHA-256")
        return cls(tuple(sides), dtype, digest)


def write_archive(path: str | os.PathLike[str], manifest: dict[str, Json], arrays: Arrays) -> None:
    """Write the arrays, then the manifest that describes them, and rename the file into place."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        entries = {name: _write_member(archive, name, array) for name, array in arrays.items()}
        document = {**manifest, "seal": SEAL, "arrays": entries}
        text = json.dumps(document, separators=(",", ": "), default=np.generic.item).encode()
        if len(text) > MANIFEST_BYTES:
            raise ValueError(
                f"the parameters and names of this model take {human_bytes(len(text))}, but a "
                f"model file holds {human_bytes(MANIFEST_BYTES)} of them; use shorter names"
            )
        archive.writestr(zipfile.ZipInfo(MANIFEST), text)
        archive.comment = _sealed(text)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """The zip at a path; whatever is wrong inside becomes a ModelFileError that names it."""
    if Url.of(path) is None:
        demand_path(path)
    try:
        with local_copy(path) as here, _open_file(here) as file:
            _check_beginning(file.read(4))
            guarded: Any = _Guarded(file)
            with zipfile.ZipFile(guarded) as archive:
                guarded.most = MANIFEST_BYTES
                yield archive
    except ModelFileError as error:
        words = f"{path} is not a model that can be loaded: {error}"
        raise ModelFileError(printable(words)) from error
    except BudgetError as error:  # an honest file, too large
        raise BudgetError(printable(f"{path}: {error}")) from error
    except ZIP_TROUBLE as error:
        words = f"{path} is damaged or cut short ({reason(error)}); {ADVICE}"
        raise ModelFileError(printable(words)) from error


def _open_file(path: Path) -> IO[bytes]:
    demand(path.is_file(), "it is not a file", FOREIGN)
    return path.open("rb")


def read_manifest(archive: zipfile.ZipFile, allowance: Allowance) -> dict[str, Json]:
    """The manifest, which must be there, small, and a JSON object."""
    names = archive.namelist()
    demand(len(names) <= MOST_OBJECTS, f"it has {len(names):,} members, which no model file has")
    demand(MANIFEST in names, f"it is a zip without {MANIFEST}", FOREIGN)
    demand(len(names) == len(set(names)), "it has two members of one name")
    offsets, end = [info.header_offset for info in archive.infolist()], _file_bytes(archive)
    demand(0 <= min(offsets) <= max(offsets) < end, "its members lie outside of the file")
    info = archive.getinfo(MANIFEST)
    _check_stored(info)
    demand(
        info.file_size <= MANIFEST_BYTES,
        f"its manifest has {human_bytes(info.file_size)}, at most {human_bytes(MANIFEST_BYTES)} "
        "are read",
    )
    allowance.borrow(2 * info.file_size)
    text = archive.read(info)
    allowance.hold(_parsed_bytes(text))
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(f"its manifest is not JSON ({reason(error)})") from error
    demand(isinstance(manifest, dict), "its manifest is not a JSON object")
    tree: dict[str, Json] = manifest
    _check_seal(tree.get("seal"), archive.comment, text)
    return tree


def read_arrays(archive: zipfile.ZipFile, tree: Json, allowance: Allowance) -> Arrays:
    """The arrays that the manifest declares, each with the bytes it had when it was saved."""
    demand(isinstance(tree, dict), "its manifest declares no arrays")
    entries = {name: ArrayEntry.of(name, entry) for name, entry in tree.items()}
    _check_members(archive, entries)
    sizes = [entry.n_bytes for entry in entries.values()]
    allowance.hold(sum(sizes))
    allowance.borrow(max(sizes, default=0) // 4)  # masks, while numbers are checked
    return {name: _read_member(archive, name, entry, allowance) for name, entry in entries.items()}


def _write_member(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> Json:
    """One npy member, hashed on its way; returns its entry for the manifest."""
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    with archive.open(
        zipfile.ZipInfo(_member(name)), "w", force_zip64=array.nbytes > ZIP64_BYTES
    ) as file:
        hashed = _Hashed(file)
        npy.write_array(hashed, little, version=(1, 0), allow_pickle=False)
    return {
        "sha256": hashed.hash.hexdigest(),
        "shape": list(array.shape),
        "dtype": array.dtype.name,
    }


def _read_member(
    archive: zipfile.ZipFile, name: str, entry: ArrayEntry, allowance: Allowance
) -> NDArray[Any]:
    """One array in C order, which loops are compiled for.

    Nothing in the member is interpreted before its SHA-256 is right.
    """
    info = archive.getinfo(_member(name))
    data = np.empty(entry.n_bytes, np.uint8)
    with archive.open(info) as file:
        hashed = _Hashed(file)
        head = BytesIO(hashed.read(info.file_size - entry.n_bytes))
        hashed.readinto(data)
    demand(
        hashed.hash.hexdigest() == entry.sha256,
        f"the array {name} is not what was saved (its SHA-256 differs)",
    )
    header = read_header(head)
    dtype = header.dtype.newbyteorder("=")
    demand(
        header.shape == entry.shape and dtype.name == entry.dtype and not head.read(),
        f"the array {name} is {dtype} of shape {header.shape}, but the manifest says "
        f"{entry.dtype} of shape {entry.shape}",
    )
    array = data.view(header.dtype)
    if not header.dtype.isnative:
        array = array.byteswap(inplace=True).view(dtype)
    if not header.is_fortran:
        return array.reshape(entry.shape)
    allowance.borrow(entry.n_bytes)
    return np.ascontiguousarray(array.reshape(entry.shape, order="F"))


def _parsed_bytes(text: bytes) -> int:
    """The most memory that parsed JSON takes: `[],` has three bytes in text and sixty in memory."""
    values, tables, lists = (
        sum(map(text.count, marks)) for marks in ((b",", b":"), (b"{",), (b"[",))
    )
    return 4 * len(text) + 100 * (values + lists) + 260 * tables


def _check_beginning(magic: bytes) -> None:
    demand(magic != b"", "it is empty (0 bytes)")
    demand(
        magic == b"PK\x03\x04",
        f"it begins with {magic!r}, and a model file is a zip",
        FOREIGN,
    )


def _check_members(archive: zipfile.ZipFile, entries: dict[str, ArrayEntry]) -> None:
    """The declared arrays are the members, have their sizes, and fit into the file."""
    wanted, found = {MANIFEST, *map(_member, entries)}, set(archive.namelist())
    for odd, what in ((wanted - found, "lacks"), (found - wanted, "has the unknown")):
        demand(not odd, f"it {what} member {reprlib.repr(min(odd, default=''))}")
    infos = {name: archive.getinfo(_member(name)) for name in entries}
    for name, entry in entries.items():
        _check_stored(infos[name])
        header_bytes = infos[name].file_size - entry.n_bytes
        demand(
            0 < header_bytes <= HEADER_BYTES,
            f"the array {name} should take {human_bytes(entry.n_bytes)}, but "
            f"{human_bytes(infos[name].file_size)} are there",
        )
    total = sum(info.file_size for info in archive.infolist())
    demand(total <= _file_bytes(archive), "its members share bytes, which no model file does")


def _check_seal(seal: Json, comment: bytes, text: bytes) -> None:
    """The zip's comment is the manifest's SHA-256; older files have neither seal nor comment.

    The zip's own checksum has 32 bits: enough for a bad cable, not for a million copies.
    """
    if seal is None and not comment:
        return
    demand(
        seal == SEAL and comment == _sealed(text),
        "its manifest is not what was saved (its SHA-256 differs)",
    )


def _sealed(text: bytes) -> bytes:
    return f"{SEAL} {hashlib.sha256(text).hexdigest()}".encode()


def _check_stored(info: zipfile.ZipInfo) -> None:
    demand(
        info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size,
        f"its member {reprlib.repr(info.filename)} is compressed, which no model file is",
    )


def _file_bytes(archive: zipfile.ZipFile) -> int:
    assert archive.fp is not None
    return os.fstat(archive.fp.fileno()).st_size


def _member(name: str) -> str:
    return f"{name}.npy"


class _Guarded:
    """A file that refuses large reads: zipfile trusts the declared size of the directory."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.n_bytes = file, os.fstat(file.fileno()).st_size
        self.most = DIRECTORY_BYTES
        self.seek, self.tell, self.fileno = file.seek, file.tell, file.fileno
        self.seekable, self.close = file.seekable, file.close

    def read(self, n_bytes: int = -1) -> bytes:
        there = max(self.n_bytes - self.tell(), 0)
        wanted = there if n_bytes < 0 else min(n_bytes, there)
        demand(wanted <= self.most, f"its directory takes {human_bytes(wanted)}, too much")
        return self.file.read(wanted)


class _Hashed:
    """A file that hashes the bytes it reads or writes."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self.file.write(data)

    def read(self, n_bytes: int) -> bytes:
        data = self.file.read(n_bytes)
        self.hash.update(data)
        return data

    def readinto(self, out: NDArray[np.uint8]) -> None:  # out: OUT
        for start in range(0, len(out), BLOCK_BYTES):
            block = out[start : start + BLOCK_BYTES]
            data = self.read(len(block))
            demand(len(data) == len(block), "it ends in the middle of an array")
            block[:] = np.frombuffer(data, np.uint8)
