"""A folder of Parquet files, read one after another as one table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mercer._run.types import FloatArray, IdArray
from mercer.rows.forward import ForwardSource
from mercer.rows.stamp import FileStamp
from mercer.rows.tables import ParquetSource, count_rows

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class FilePart:
    """One file of a folder and where its rows stand."""

    path: str
    first_row: int
    stamp: FileStamp


@dataclass(frozen=True, eq=False)
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
        path, columns = os.path.abspath(self.path), self.columns
        self._set(path=path)
        parts: list[FilePart] = []
        restarts: list[IdArray] = []
        n_rows = 0
        for file in _files(Path(path)):
            stamp = FileStamp.of(file)
            if count_rows(file) == 0:
                continue
            source = ParquetSource(file, columns)
            if parts:
                self.layout.check_same(
                    source.layout, os.fspath(file), model="the first", all_of="files of a folder"
                )
            else:
                self._set(layout=source.layout)
            parts.append(FilePart(os.fspath(file), n_rows, stamp))
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
        for part in self.parts[number:]:
            part.stamp.check(part.path)
            yield from ParquetSource(part.path, self.columns).blocks(max(start - part.first_row, 0))

    def changed(self, found: str) -> str:
        return (
            f"the files in {self.path!s} had {self.n_rows} rows when they were opened and {found} "
            "now; open them again, and leave them alone while they are read"
        )


def _files(folder: Path) -> list[Path]:
    """The Parquet files of a folder in natural order; nothing else may be there."""
    found = [path for path in folder.iterdir() if path.name[0] not in "._"]
    files = [path for path in found if path.is_file() and path.suffix.lower() in PARQUET]
    if not files:
        raise ValueError(
            f"{folder} is a directory without Parquet files ({', '.join(PARQUET)}), and no zarr "
            "array; pass the path of one file, or of the folder that holds the Parquet files"
        )
    others = sorted(set(found) - set(files))
    if others:
        names = ", ".join(path.name + "/" * path.is_dir() for path in others[:5])
        raise ValueError(
            f"{folder} holds {len(others)} other entries beside {len(files)} Parquet files: "
            f"{names}; keep only the files of one table in it, or pass the path of one file"
        )
    return sorted(files, key=lambda path: (_natural(path.name), path.name))  # 01 before 1


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts numbers in a name in the order of numbers."""
    return [(int(run), "") if run.isdecimal() else (-1, run) for run in re.split(r"(\d+)", name)]
