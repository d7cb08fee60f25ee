"""Rows in a ``.npy`` file, read by offset: nothing is mapped, nothing stays open."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from io import FileIO
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from mercer._run.types import FloatArray, IdArray
from mercer.rows.arrays import working_dtype
from mercer.rows.stamp import FileStamp, file_size

CHUNK = 2**18  # bytes; of scattered rows, those in one chunk of the file are read in one go


@dataclass(frozen=True, slots=True)
class NpySource:
    """A two-dimensional array of numbers that ``numpy.save`` wrote, in either memory order.

    Every read opens the file, seeks and reads: safe with threads and processes, and a file that
    shrinks is an error, not the signal that kills a process with a memory map.
    """

    path: str | os.PathLike[str]
    stamp: FileStamp = field(init=False, repr=False)
    header: Header = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", os.path.abspath(self.path))
        object.__setattr__(self, "stamp", FileStamp.of(self.path))
        object.__setattr__(self, "header", read_header(self.path))

    @property
    def n_rows(self) -> int:
        return self.header.n_rows

    @property
    def n_features(self) -> int:
        return self.header.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        return working_dtype(self.header.dtype.newbyteorder("="))

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return None

    @property
    def in_memory(self) -> bool:
        return False

    def reading(self, n_rows: int) -> int:
        """Bytes held while so many rows are read: twice those that are cast or turned."""
        is_turned = self.header.is_fortran or self.header.dtype != self.dtype
        return CHUNK + (2 if is_turned else 1) * n_rows * self.n_features * self.dtype.itemsize

    def read(self, start: int, stop: int) -> FloatArray:
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        with self._opened() as file:
            return self._rows([self._span(file, strip, start, stop) for strip in self._strips()])

    def take(self, ids: IdArray) -> FloatArray:
        with self._opened() as file:
            return self._rows([self._picks(file, strip, ids) for strip in self._strips()])

    def _opened(self) -> FileIO:
        self.stamp.check(self.path)
        return open(self.path, "rb", buffering=0)

    def _strips(self) -> range:
        """A strip is what one row is contiguous in: the whole file, or one column of it."""
        return range(self.n_features if self.header.is_fortran else 1)

    def _rows(self, strips: list[np.ndarray[Any, Any]]) -> FloatArray:
        """The strips beside each other, in the working type."""
        joined = strips[0] if len(strips) == 1 else np.hstack(strips)
        return np.ascontiguousarray(joined, dtype=self.dtype)

    def _span(self, file: FileIO, strip: int, start: int, stop: int) -> np.ndarray[Any, Any]:
        """The rows start to stop of one strip, in the file's type."""
        width = 1 if self.header.is_fortran else self.n_features
        row_bytes = width * self.header.dtype.itemsize
        offset = self.header.offset + (strip * self.n_rows + start) * row_bytes
        data = read_bytes(file, offset, max(stop - start, 0) * row_bytes)
        return data.view(self.header.dtype).reshape(-1, width)

    def _picks(self, file: FileIO, strip: int, ids: IdArray) -> np.ndarray[Any, Any]:
        """Some rows of one strip: neighbours are read together."""
        none = self._span(file, strip, 0, 0)
        picks, row = np.empty((len(ids), none.shape[1]), none.dtype), 0
        for near in self._neighbours(ids):
            rows = self._span(file, strip, int(near[0]), int(near[-1]) + 1)
            picks[row : row + len(near)] = rows[near - near[0]]
            row += len(near)
        return picks

    def _neighbours(self, ids: IdArray) -> list[IdArray]:
        """Ascending row numbers, cut where a strip's next chunk begins."""
        if len(ids) == 0:
            return []
        rows_per_chunk = max(CHUNK * len(self._strips()) // self.header.row_bytes, 1)
        return np.split(ids, np.flatnonzero(np.diff(ids // rows_per_chunk)) + 1)


@dataclass(frozen=True, slots=True)
class Header:
    """What the first bytes of an npy file say."""

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    is_fortran: bool
    offset: int  # bytes before the numbers

    @property
    def row_bytes(self) -> int:
        return self.n_features * self.dtype.itemsize

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.row_bytes


def read_header(path: str | os.PathLike[str]) -> Header:
    """The header of an npy file, checked against the file's size before anything is read."""
    size = file_size(path)
    with open(path, "rb") as file:
        shape, is_fortran, dtype = _parse_header(path, file)
        offset = file.tell()
    check_dtype(path, dtype)
    check_shape(path, shape)
    _check_length(path, wanted=prod(shape) * dtype.itemsize, found=size - offset)
    return Header(shape[0], shape[1], dtype, is_fortran, offset)


def read_bytes(file: FileIO, offset: int, n_bytes: int) -> np.ndarray[Any, Any]:
    """So many bytes from an offset of an unbuffered file, as a new array."""
    data = np.empty(n_bytes, np.uint8)
    left = data.data
    file.seek(offset)
    while len(left):
        n_read = file.readinto(left)
        if not n_read:
            raise ValueError(
                f"{file.name!s} ended {len(left)} bytes early; it was cut while being read: "
                "write it again"
            )
        left = left[n_read:]
    return data


def _parse_header(
    path: str | os.PathLike[str], file: BinaryIO
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = npy.read_magic(file)
        if version == (1, 0):
            return npy.read_array_header_1_0(file)
        if version in ((2, 0), (3, 0)):  # 3.0 only adds field names beyond latin1
            return npy.read_array_header_2_0(file)
    except Exception as error:  # numpy lets errors of its parser through
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"{os.fspath(path)} is not a readable npy file ({reason}); write it with numpy.save"
        ) from error
    raise ValueError(
        f"{os.fspath(path)} has npy version {version}; versions 1 to 3 are read: "
        "write it with numpy.save"
    )


def check_dtype(path: str | os.PathLike[str], dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{os.fspath(path)} holds values of type {dtype}; real numbers are wanted: "
            "convert them, e.g. X.astype(float), and save again"
        )


def check_shape(path: str | os.PathLike[str], shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        advice = {
            1: "reshape(-1, 1) makes one column, reshape(1, -1) one row",
            3: "reshape(len(X), -1) makes each item one row",
        }.get(len(shape), "reshape it to (n_rows, n_features)")
        raise ValueError(
            f"{os.fspath(path)} holds a {len(shape)}-d array of shape {shape}; "
            f"a 2-d array (rows, columns) is wanted: {advice}"
        )
    if min(shape) < 1:
        raise ValueError(
            f"{os.fspath(path)} holds an array of shape {shape}; at least one row and one column "
            "are wanted"
        )


def _check_length(path: str | os.PathLike[str], *, wanted: int, found: int) -> None:
    if found < wanted:
        raise ValueError(
            f"{os.fspath(path)} is truncated: its header promises {wanted} bytes of numbers, "
            f"{found} were found; write it again"
        )
    if found > wanted:
        raise ValueError(
            f"{os.fspath(path)} holds {found} bytes of numbers where its header promises "
            f"{wanted}; save one array per file"
        )
