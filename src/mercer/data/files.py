"""A file of rows becomes a source: the suffix says how it is read."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mercer.data.npy import NpySource, file_size
from mercer.data.source import Source
from mercer.data.tables import CsvSource, ParquetSource

__all__ = ["open_file"]

TABLES = {
    ".parquet": ParquetSource,
    ".pq": ParquetSource,
    ".csv": CsvSource,
    ".csv.gz": CsvSource,
    ".tsv": CsvSource,
    ".tsv.gz": CsvSource,
}


def open_file(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Source:
    """The rows of a ``.npy``, Parquet or CSV file, without loading them.

    Parameters
    ----------
    path : path of one file
    columns : names of the columns to read, in this order (Parquet and CSV); None for all
    """
    file_size(path)
    name = os.fspath(path).lower()
    if name.endswith(".npy"):
        if columns is not None:
            raise ValueError(
                f"{os.fspath(path)} has no named columns, so columns={list(columns)!r} cannot be "
                "chosen; leave columns out, or save the file as Parquet"
            )
        return NpySource(path)
    for suffix, source in TABLES.items():
        if name.endswith(suffix):
            return source(path, columns)
    raise ValueError(
        f"{os.fspath(path)} has no suffix that tells its format; known are .npy, "
        + ", ".join(TABLES)
    )
