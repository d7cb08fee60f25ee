"""Rows in a ``.npy`` file, read by offset: nothing is mapped, nothing stays open."""

from __future__ import annotations

import io
import os
from dataclasses import field
from io import FileIO
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer._run.url import READ_BYTES, Url, located
from mercer.rows.arrays import working_dtype
from mercer.rows.demands import demand_numbers, demand_table
from mercer.rows.stamp import Stamp, opened, stamp_of

HEADER_BYTES = 2**12  # read at once
NEAR_BYTES = 2**18  # scattered rows within so many bytes of the file are read together


@frozen
class Header:
    """What an npy file or member says before its numbers."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_fortran: bool
    offset: int  # bytes before the numbers

    @property
    def n_bytes(self) -> int:
        """Of the numbers alone."""
        return prod(self.shape) * self.dtype.itemsize


def read_header(file: BinaryIO) -> Header:
    """The header at the start of a file, which is left where the numbers begin.

    Whatever cannot be read as one is a ValueError: numpy lets errors of its parser through.
    """
    try:
        version = npy.read_magic(file)
        if version == (1, 0):
            shape, is_fortran, dtype = npy.read_array_header_1_0(file)
        elif version in ((2, 0), (3, 0)):  # 3.0 only adds field names beyond latin1
            shape, is_fortran, dtype = npy.read_array_header_2_0(file)
        else:
            raise ValueError(f"npy version {version}; versions 1 to 3 are read")
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(reason) from error
    return Header(shape, dtype, is_fortran, file.tell())


@frozen
class NpySource:
    """A two-dimensional array of numbers that ``numpy.save`` wrote, in either memory order.

    Every read opens the file, seeks and reads: safe with threads and processes, and a file that
    shrinks is an error, not the signal that kills a process with a memory map.
    """

    path: str | os.PathLike[str]
    stamp: Stamp = field(init=False, repr=False)
    header: Header = field(init=False, repr=False)

    feature_names = None
    in_memory = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", located(self.path))
        object.__setattr__(self, "stamp", stamp_of(self.path))
        object.__setattr__(self, "header", _checked_header(self.path, self.stamp.n_bytes))

    @property
    def n_rows(self) -> int:
        return self.header.shape[0]

    @property
    def n_features(self) -> int:
        return self.header.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return working_dtype(self.header.dtype)

    def reading(self, n_rows: int) -> int:
        """Bytes held while so many rows are read: twice those that are cast or transposed."""
        is_changed = self.header.is_fortran or self.header.dtype != self.dtype
        copies = 2 if is_changed else 1
        return self._near_bytes + copies * n_rows * self.n_features * self.dtype.itemsize

    def read(self, start: int, stop: int) -> FloatArray:
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        with self._open() as file:
            return self._rows([self._read(file, j, start, stop) for j in self._columns()])

    def take(self, ids: IdArray) -> FloatArray:
        with self._open() as file:
            return self._rows([self._take(file, j, ids) for j in self._columns()])

    @property
    def _near_bytes(self) -> int:
        """Scattered rows that are read together: a request takes longer than reading on."""
        return READ_BYTES if isinstance(self.path, Url) else NEAR_BYTES

    def _open(self) -> Any:
        self.stamp.check(self.path)
        return opened(self.path, self.stamp.n_bytes)

    def _columns(self) -> range:
        """What is contiguous in the file: its columns in Fortran order, else one of full width."""
        return range(self.n_features if self.header.is_fortran else 1)

    def _rows(self, columns: list[np.ndarray[Any, Any]]) -> FloatArray:
        """The columns beside each other, in the working type."""
        joined = columns[0] if len(columns) == 1 else np.hstack(columns)
        return np.ascontiguousarray(joined, dtype=self.dtype)

    def _read(self, file: FileIO, column: int, start: int, stop: int) -> np.ndarray[Any, Any]:
        """The rows start to stop of one column, in the file's type."""
        width = self.n_features // len(self._columns())
        row_bytes = width * self.header.dtype.itemsize
        offset = self.header.offset + (column * self.n_rows + start) * row_bytes
        data = read_bytes(file, offset, max(stop - start, 0) * row_bytes)
        return data.view(self.header.dtype).reshape(-1, width)

    def _take(self, file: FileIO, column: int, ids: IdArray) -> np.ndarray[Any, Any]:
        """Some rows of one column: neighbours are read together."""
        none = self._read(file, column, 0, 0)
        taken, row = np.empty((len(ids), none.shape[1]), none.dtype), 0
        rows_together = max(self._near_bytes // (none.shape[1] * none.dtype.itemsize), 1)
        cuts = np.flatnonzero(np.diff(ids // rows_together)) + 1
        for near in np.split(ids, cuts) if len(ids) else ():
            rows = self._read(file, column, int(near[0]), int(near[-1]) + 1)
            taken[row : row + len(near)] = rows[near - near[0]]
            row += len(near)
        return taken


def read_bytes(file: FileIO, offset: int, n_bytes: int) -> np.ndarray[Any, Any]:
    """So many bytes from an offset of an unbuffered file, as a new array."""
    data = np.empty(n_bytes, np.uint8)
    left = data.data
    file.seek(offset)
    while len(left):
        n_read = file.readinto(left)
        if not n_read:
            raise ValueError(
                f"{file.name!s} ended {len(left)} bytes early: it was truncated while it was "
                "being read; write it again"
            )
        left = left[n_read:]
    return data


def _checked_header(path: str | os.PathLike[str], size: int) -> Header:
    """The header of a table of numbers, checked against the file's size before they are read."""
    with io.BufferedReader(opened(path, size), HEADER_BYTES) as file:
        try:
            header = read_header(file)
        except ValueError as error:
            raise ValueError(
                f"{path!s} is not a readable npy file ({error}); write it with numpy.save"
            ) from error
    demand_numbers(header.dtype, f"{path!s}")
    demand_table(header.shape, f"{path!s}")
    found, wanted = size - header.offset, header.n_bytes
    if found < wanted:
        raise ValueError(
            f"{path!s} is truncated: its header promises {wanted} bytes of numbers, {found} were "
            "found; write it again"
        )
    if found > wanted:
        raise ValueError(
            f"{path!s} holds {found} bytes of numbers where its header promises {wanted}; save "
            "one array per file"
        )
    return header
