"""A file or folder of rows becomes a source by its suffix."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from mercer._run.printable import PrintableErrors
from mercer._run.url import Url, located
from mercer.rows.folders import ParquetFolder
from mercer.rows.lines import LibsvmSource, TextSource
from mercer.rows.npy import NpySource
from mercer.rows.source import Source
from mercer.rows.stamp import file_size
from mercer.rows.tables import CsvSource, ParquetSource
from mercer.rows.zarrs import ZarrSource, is_zarr

TABLES: dict[str, Callable[..., Source]] = {
    ".parquet": ParquetSource,
    ".pq": ParquetSource,
    ".csv": CsvSource,
    ".csv.gz": CsvSource,
    ".tsv": CsvSource,
    ".tsv.gz": CsvSource,
    ".txt": TextSource,
    ".txt.gz": TextSource,
    ".dat": TextSource,
    ".dat.gz": TextSource,
    ".libsvm": LibsvmSource,
    ".libsvm.gz": LibsvmSource,
    ".svmlight": LibsvmSource,
    ".svmlight.gz": LibsvmSource,
    ".svm": LibsvmSource,
    ".svm.gz": LibsvmSource,
}


@PrintableErrors()
def open_file(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Source:
    """The rows of a file (``.npy``, Parquet or text), a folder of Parquet or zarr; not loaded.

    Parameters
    ----------
    path : str or path
        The path or the URL of one file, or of a folder.
    columns : sequence of str or None, default=None
        Names of the columns to read, in this order (Parquet and CSV); None for all.
    """
    path = located(path)
    if _is_folder(path):
        return _open_folder(path, columns)
    file_size(path)
    name = os.fspath(path).lower()
    if name.endswith(".npy"):
        _refuse_columns(path, columns)
        return NpySource(path)
    for suffix, source in TABLES.items():
        if name.endswith(suffix):
            return source(path, columns)
    raise ValueError(
        f"{os.fspath(path)} has no suffix of a known format; known are .npy, "
        + ", ".join(TABLES)
        + ", and folders: of Parquet files, or .zarr"
    )


def _is_folder(path: str | os.PathLike[str]) -> bool:
    return path.status().is_folder if isinstance(path, Url) else os.path.isdir(path)


def _open_folder(path: str | os.PathLike[str], columns: Sequence[str] | None) -> Source:
    """A zarr array, or Parquet files that make up one table."""
    if is_zarr(path) or os.fspath(path).rstrip("/" + os.sep).lower().endswith(".zarr"):
        _refuse_columns(path, columns)
        return ZarrSource(path)
    return ParquetFolder(path, columns)


def _refuse_columns(path: str | os.PathLike[str], columns: Sequence[str] | None) -> None:
    if columns is not None:
        raise ValueError(
            f"{os.fspath(path)} has no named columns, so columns={list(columns)!r} cannot be "
            "chosen; leave columns out, or save the file as Parquet"
        )
