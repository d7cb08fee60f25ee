"""A folder of Parquet files, read one after another as one table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer._run.url import Url, located
from mercer.rows.forward import ForwardSource
from mercer.rows.stamp import Stamp, stamp_of
from mercer.rows.tables import ParquetSource, count_rows

PARQUET = (".parquet", ".pq")
KEPT_FOOTERS = 64  # of the files that were read last: at a URL a footer is three requests


@frozen
class FilePart:
    """One file of a folder and where its rows stand."""

    path: Any  # Path or Url
    first_row: int
    stamp: Stamp


@frozen(eq=False, slots=False)
class ParquetFolder(ForwardSource):
    """The Parquet files of a folder under each other, in natural order: part-2 before part-10.

    Parameters
    ----------
    path : str or path
        The path of the folder.
    columns : sequence of str or None, default=None
        Names of the columns to read, in this order; None for all.

    Notes
    -----
    All files have the same columns; those without rows are skipped, and so are names that begin
    with "_" or "." (``_SUCCESS``, ``_metadata``). Opening reads the ends of the files, which
    hold their lengths; a read starts at the row group of its first row and goes on a tile at a
    time, through as many files as it needs.
    """

    path: str | os.PathLike[str]
    columns: Sequence[str] | None = None
    parts: tuple[FilePart, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        path, columns = located(self.path), self.columns
        self._set(path=path)
        parts: list[FilePart] = []
        restarts: list[IdArray] = []
        n_rows = 0
        for file in parquet_files(path):
            stamp = stamp_of(file)
            if count_rows(file, stamp.n_bytes) == 0:
                continue
            source = ParquetSource(file, columns)
            if parts:
                self.layout.check_same(
                    source.layout, os.fspath(file), model="the first", all_of="files of a folder"
                )
            else:
                self._set(layout=source.layout)
            parts.append(FilePart(file, n_rows, stamp))
            restarts.append(n_rows + source.restarts)
            n_rows += source.n_rows
        if not parts:
            raise ValueError(f"the Parquet files in {path} have no rows; at least one is wanted")
        self._set(parts=tuple(parts), n_rows=n_rows, restarts=np.concatenate(restarts))

    @property
    def buffers(self) -> int:
        """Those of the first file: the others are written alike."""
        return ParquetSource(self.parts[0].path, self.columns).buffers

    def blocks(self, start: int) -> Iterator[FloatArray]:
        firsts = [part.first_row for part in self.parts]
        number = int(np.searchsorted(firsts, start, side="right")) - 1
        columns = None if self.columns is None else tuple(self.columns)
        for part in self.parts[number:]:
            file = _opened(part.path, columns, part.stamp)
            yield from file.blocks(max(start - part.first_row, 0))  # which checks its stamp

    def changed(self, found: str) -> str:
        return (
            f"the files in {self.path!s} had {self.n_rows} rows when they were opened and {found} "
            "now; open them again, and leave them alone while they are read"
        )


@lru_cache(maxsize=KEPT_FOOTERS)
def _opened(path: Any, columns: tuple[str, ...] | None, stamp: Stamp) -> ParquetSource:
    """A file of a folder, its footer read once in each process, if it is what it was."""
    stamp.check(path)
    source = ParquetSource(path, columns)
    stamp.check(path)  # what was opened is it
    return source


def parquet_files(folder: str | os.PathLike[str]) -> list[Any]:
    """The Parquet files of a folder in natural order, as paths or URLs; nothing else may be there.

    Names that begin with "_" or "." are of programs, not of the table.
    """
    entries = _entries(folder)
    found = {name: is_folder for name, is_folder in entries.items() if name[:1] not in "._"}
    files = [n for n, is_folder in found.items() if not is_folder and _is_parquet(n)]
    if not files:
        raise ValueError(
            f"{folder!s} is a directory without Parquet files ({', '.join(PARQUET)}), and no zarr "
            "array; pass the path of one file, or of the folder that holds the Parquet files"
        )
    others = sorted(set(found) - set(files))
    if others:
        names = ", ".join(name + "/" * found[name] for name in others[:5])
        raise ValueError(
            f"{folder!s} holds {len(others)} other entries beside {len(files)} Parquet files: "
            f"{names}; keep only the files of one table in it, or pass the path of one file"
        )
    root = folder if isinstance(folder, Url) else Path(folder)
    return [root / name for name in sorted(files, key=lambda name: (_natural(name), name))]


def _entries(folder: str | os.PathLike[str]) -> dict[str, bool]:
    """The names in a folder, and which of them are folders (or no ordinary files)."""
    if isinstance(folder, Url):
        return {name: status.is_folder for name, status in folder.children().items()}
    return {path.name: not path.is_file() for path in Path(folder).iterdir()}


def _is_parquet(name: str) -> bool:
    return Path(name).suffix.lower() in PARQUET


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts numbers in a name in the order of numbers."""
    return [(int(run), "") if run.isdecimal() else (-1, run) for run in re.split(r"(\d+)", name)]
