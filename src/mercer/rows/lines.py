"""Rows in text files, a line each: numbers separated by white space, and LIBSVM's sparse format."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import field
from io import BufferedReader, BytesIO
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer._run.url import located
from mercer.rows.forward import ForwardSource, Layout
from mercer.rows.stamp import Stamp, opened, stamp_of
from mercer.rows.tables import (
    TableColumn,
    TableSource,
    are_numbers,
    choose_columns,
    is_number,
    shown,
)

BUFFER = 2**16  # bytes; longer reads go past it
BLOCK = 2**20  # bytes of text that are parsed at a time; a longer line is read as a whole
LONGEST = 2**26  # bytes of a line at most
BYTES_HELD = 12  # for each of text, while it is parsed (measured: lines, numbers, arrays)
COMMENT = b"#"


@frozen(eq=False, slots=False)
class TextSource(TableSource):
    """Numbers separated by spaces or tabs (``.txt``, ``.dat``; ``.gz``: compressed).

    What follows ``#`` in a line is ignored, and so are empty lines.

    Parameters
    ----------
    path : str or path
        The path of one file.
    columns : sequence of str or None, default=None
        Names of the columns to read, in this order; None for all.

    Notes
    -----
    If the first line holds anything but numbers it names the columns, else they are called ``f0``,
    ``f1``, …. The first pass counts and checks all rows; going back starts the file again.
    """

    names: tuple[str, ...] = field(init=False, repr=False)  # of all columns in the file
    has_header: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._open()
        self._set(restarts=np.zeros(1, np.intp))
        first = self._first_line()
        has_header = not are_numbers(first)
        names = first if has_header else [f"f{j}" for j in range(len(first))]
        self._set(has_header=has_header, names=tuple(names))
        chosen = choose_columns(self.path, self.names, self.columns)
        self._choose([TableColumn(name) for name in chosen], np.dtype(np.float64))
        self._count(sum(len(rows) for rows in self.blocks(0)))

    def blocks(self, start: int) -> Iterator[FloatArray]:
        places = [self.names.index(column.name) for column in self.chosen]
        is_header = self.has_header
        for line, block in _blocks(self.path, self.stamp):
            if is_header:
                line, block, is_header = _without_header(line, block)
            if block.strip():
                yield np.ascontiguousarray(self._parsed(line, block)[:, places])

    def _arrow_bytes(self) -> int:
        return BYTES_HELD * BLOCK

    def _first_line(self) -> list[str]:
        for _, block in _blocks(self.path, self.stamp):
            for line in block.splitlines():
                words = _words(line)
                if not words:
                    continue
                if len(words) == 1 and (separator := re.search(r"[;,|]", words[0])):
                    raise ValueError(
                        f"{self.path!s} has one column, {shown(words[0])}; it seems to be "
                        f"separated by {separator[0]!r} instead of spaces: a file that is "
                        "separated by commas needs the suffix .csv"
                    )
                return words
        raise ValueError(f"{self.path!s} has no rows; at least one is wanted")

    def _parsed(self, line: int, block: bytes) -> FloatArray:
        """The numbers of a block of text, whose first line has this number."""
        lines = block.decode("latin-1").splitlines()
        if not any(_words(text.encode("latin-1")) for text in lines):
            return np.empty((0, len(self.names)))
        try:
            rows: FloatArray = np.loadtxt(lines, dtype=np.float64, comments="#", ndmin=2)
        except ValueError as error:
            raise ValueError(self._flaw(line, block) or f"{self.path!s}: {error}") from error
        if rows.shape[1] != len(self.names):
            raise ValueError(self._flaw(line, block))
        return rows

    def _flaw(self, line: int, block: bytes) -> str:
        """The first line that cannot be read, and what is wrong with it."""
        for number, text in enumerate(block.splitlines(), line):
            words, n = _words(text), len(self.names)
            if words and len(words) != n:
                return (
                    f"line {number} of {self.path!s} has {len(words)} values, and the first has "
                    f"{n}; correct it, or remove it"
                )
            for name, word in zip(self.names, words, strict=False):
                if not is_number(word):
                    return (
                        f"column {shown(name)} of {self.path!s} holds {shown(word)} in line "
                        f"{number}, where a number is wanted; correct it, or save the file as CSV "
                        "and pass columns= without this column"
                    )
        return ""


@frozen(eq=False, slots=False)
class LibsvmSource(ForwardSource):
    """Sparse rows in LIBSVM's format (``.libsvm``, ``.svm``, ``.svmlight``; ``.gz``: compressed).

    A line is ``label index:value index:value …``. Labels are not read as a feature. Indices count
    from 1, or from 0 if one of them is 0.

    Parameters
    ----------
    path : str or path
        The path of one file.
    columns : None, default=None
        There are no named columns.

    Notes
    -----
    The first pass counts rows and columns; going back starts the file again.
    """

    path: str | os.PathLike[str]
    columns: Sequence[str] | None = None
    stamp: Stamp = field(init=False, repr=False)
    first: int = field(init=False, repr=False)  # the index of the first column

    def __post_init__(self) -> None:
        if self.columns is not None:
            raise ValueError(
                f"{os.fspath(self.path)} has no named columns, so columns={list(self.columns)!r} "
                "cannot be chosen; leave columns out"
            )
        path = located(self.path)
        self._set(path=path, stamp=stamp_of(path), restarts=np.zeros(1, np.intp))
        least, most, n_rows = 1, 0, 0
        for _, _, indices, indptr in self._parsed():
            n_rows += len(indptr) - 1
            least = min(least, int(indices.min(initial=1)))
            most = max(most, int(indices.max(initial=0)))
        if n_rows == 0:
            raise ValueError(f"{path} has no rows; at least one is wanted")
        if most < least:
            raise ValueError(f"{path} has no values, only labels; at least one is wanted")
        layout = Layout(most + 1 - least, np.dtype(np.float64), is_sparse=True)
        self._set(n_rows=n_rows, first=least, layout=layout)

    def blocks(self, start: int) -> Iterator[sp.csr_array]:
        for _, data, indices, indptr in self._parsed():
            if indices.max(initial=0) >= self.first + self.n_features:
                raise ValueError(self.changed("more columns"))
            shape = (len(indptr) - 1, self.n_features)
            yield sp.csr_array((data, indices - self.first, indptr), shape=shape)

    def changed(self, found: str) -> str:
        return (
            f"{self.path!s} had {self.n_rows} rows when it was opened and {found} now; open it "
            "again, and leave it alone while it is read"
        )

    @property
    def buffers(self) -> int:
        return 2 * BYTES_HELD * BLOCK

    def _parsed(self) -> Iterator[tuple[int, FloatArray, Any, Any]]:
        """Number of the first line, values, indices and row ends of each block."""
        for line, block in _blocks(self.path, self.stamp):
            if block.strip():
                try:
                    rows = _read_svmlight(block)
                except (ValueError, OverflowError) as error:
                    raise ValueError(self._flaw(line, block, error)) from error
                yield line, rows.data, rows.indices.astype(np.int64), rows.indptr

    def _flaw(self, line: int, block: bytes, error: Exception) -> str:
        """The first line that cannot be read."""
        for number, text in enumerate(block.splitlines(), line):
            try:
                _read_svmlight(text)
            except (ValueError, OverflowError):
                return (
                    f"line {number} of {self.path!s} is {shown(text.decode('latin-1'))}, which is "
                    "not LIBSVM's 'label index:value index:value' with ascending indices; correct "
                    "it, or remove it"
                )
        return f"{self.path!s} cannot be read as LIBSVM: {error}"


def _read_svmlight(text: bytes) -> sp.csr_matrix:
    """Rows with indices as they are written."""
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(BytesIO(text), dtype=np.float64, zero_based=True)[0]


def _blocks(path: str | os.PathLike[str], stamp: Stamp) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, about a block at a time, and the number of the first of them."""
    stamp.check(path)
    is_packed = os.fspath(path).lower().endswith(".gz")
    line, rest = 1, b""
    try:
        with (
            BufferedReader(opened(path, stamp.n_bytes), BUFFER) as stored,
            gzip.open(stored) if is_packed else stored as file,
        ):
            while data := file.read(BLOCK):
                text = rest + data
                end = text.rfind(b"\n") + 1
                rest = text[end:]
                if len(rest) > LONGEST:
                    raise ValueError(
                        f"line {line} of {os.fspath(path)} is longer than {LONGEST:,} bytes; the "
                        "file is damaged, or of another format"
                    )
                if end:
                    yield line, text[:end]
                    line += text.count(b"\n", 0, end)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"{os.fspath(path)} cannot be unpacked: {error}; the file is damaged or incomplete: "
            "write it again"
        ) from error
    if rest:
        yield line, rest


def _words(line: bytes) -> list[str]:
    """The values of a line, without its comment."""
    return line.partition(COMMENT)[0].decode("latin-1").split()


def _without_header(line: int, block: bytes) -> tuple[int, bytes, bool]:
    """A block behind its first line of words; True: there was none yet."""
    lines = block.splitlines(keepends=True)
    for place, text in enumerate(lines, 1):
        if _words(text):
            return line + place, b"".join(lines[place:]), False
    return line, b"", True
