"""Label files: written tile by tile as labels are computed, and read back."""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mercer._run.atomic import (
    check_replaceable,
    check_writable,
    recover,
    replacing,
    replacing_folder,
)
from mercer._run.extras import require
from mercer._run.frozen import frozen
from mercer._run.printable import PrintableErrors
from mercer._run.types import IdArray
from mercer._run.url import Place, Url, is_folder_path, local_copy, place_of
from mercer.io.label_parts import (
    COMMIT,
    Part,
    PartWriter,
    check_folder,
    read_parts,
    write_parts,
)
from mercer.rows.npy import read_header
from mercer.rows.stamp import arrow_path, file_size

COLUMN = "label"
GROUP_ROWS = 2**20  # per row group of a Parquet file, per chunk of zarr
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Int64Array: TypeAlias = NDArray[np.int64]
Tiles: TypeAlias = Iterator[Int64Array]


def write_labels(
    path: str | os.PathLike[str], tiles: Iterable[tuple[int, Any]], n_rows: int
) -> Place:
    """Write labels to a ``.npy``, ``.parquet`` or ``.csv`` file or a ``.zarr`` folder.

    At a URL, a file is written here first and then sent.

    The file is renamed into place when it is complete; until then, and if anything fails, an older
    file of this name stays. One tile (Parquet and zarr: a million rows) is in memory at a time.

    Parameters
    ----------
    path : str or path
        The suffix is the format: ``.npy`` and ``.zarr`` hold an int64 array of shape (n_rows,),
        ``.parquet`` and ``.csv`` a table with the one column "label". A path that ends with a slash
        is a folder of Parquet parts with the columns "row" and "label".
    tiles : iterable of (int, array)
        The first row of each tile and the labels from there, in the order of the rows.
    n_rows : int
        The number of labels in all.

    Returns
    -------
    Path or URL
        The path.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.npy"
    >>> tiles = [(0, np.array([2, 0])), (2, np.array([1]))]
    >>> read_labels(write_labels(path, tiles, n_rows=3))
    array([2, 0, 1])
    """
    check_output(path)
    if is_folder_path(path):
        _write_parts(path, _in_order(tiles, n_rows), n_rows)
        return place_of(path)
    label_format = _format_of(path)
    replaced = replacing_folder if label_format.is_folder else replacing
    with room_for(path), replaced(path) as temporary:
        label_format.write(temporary, _in_order(tiles, n_rows), n_rows)
    return Url.of(path) or Path(path)


def join_ids(path: str | os.PathLike[str], ids: Any, name: str) -> Path:
    """Put a column of ids, an Arrow array, before the labels of a ``.parquet`` or ``.csv`` file.

    Parameters
    ----------
    path : str or path
        A file that `write_labels` wrote; it is replaced in one step.
    ids : pyarrow.Array or pyarrow.ChunkedArray of shape (n_rows,)
        What identifies each row.
    name : str
        The name of their column.
    """
    pa = require("pyarrow", *WHY_ARROW)
    table = pa.table({name: ids, COLUMN: pa.array(read_labels(path).astype(np.int64))})
    with room_for(path), replacing(path) as temporary:
        if Path(path).suffix.lower() == ".csv":
            require("pyarrow.csv", *WHY_ARROW).write_csv(table, arrow_path(temporary))
        else:
            pq = require("pyarrow.parquet", *WHY_ARROW)
            pq.write_table(table, arrow_path(temporary), write_page_checksum=True)
    return Path(path)


def check_joinable(path: str | os.PathLike[str]) -> None:
    """Refuse an output of labels that has no room for a column of ids."""
    if Path(path).suffix.lower() not in (".parquet", ".csv"):
        raise ValueError(
            "an id column is written beside the labels into a .parquet or .csv file, but the "
            f"output is {path}; choose such a file"
        )
    _arrow_needed()


def check_output(path: str | os.PathLike[str]) -> None:
    """Refuse a path that labels cannot be written to, before the work."""
    if is_folder_path(path):
        check_folder(path)
        return
    if Url.of(path) is not None:
        _refuse_array(path)
    is_folder = Path(path).suffix.lower() == ".zarr"
    (check_replaceable if is_folder else check_writable)(path)
    _format_of(path).check()


@PrintableErrors()
def read_labels(path: str | os.PathLike[str]) -> IdArray:
    """Read labels that `write_labels` wrote.

    Parameters
    ----------
    path : str or path
        The file or the URL of one, a ``.zarr`` folder, or the folder of parts that
        ``predict(X, out="folder/")`` wrote.

    Returns
    -------
    ndarray of shape (n_rows,)
        The labels.
    """
    is_parts = _is_parts(path)
    if not is_parts:
        _check_file(path)
    try:
        labels = read_parts(path) if is_parts else _read_file(path)
    except (FileNotFoundError, PermissionError):
        raise
    except (ValueError, LookupError, OverflowError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} does not hold labels ({reason}); write it again") from error
    return labels.astype(np.intp, copy=False)


def _is_parts(path: str | os.PathLike[str]) -> bool:
    """Whether these are labels in parts: by the slash, or by what is in the folder."""
    is_here = Url.of(path) is None and (Path(path) / COMMIT).is_file()
    return is_folder_path(path) or is_here


def _check_file(path: str | os.PathLike[str]) -> None:
    """Refuse what cannot be a file (or an array of zarr) of labels."""
    label_format = _format_of(path)
    label_format.check()
    if Url.of(path) is not None:
        _refuse_array(path)
        return
    if label_format.is_folder:
        recover(path)
    if not (label_format.is_folder and Path(path).is_dir()):
        file_size(path)


def _read_file(path: str | os.PathLike[str]) -> Int64Array:
    with local_copy(path) as here:
        return _format_of(path).read(here)


def _refuse_array(path: str | os.PathLike[str]) -> None:
    if _format_of(path).is_folder:
        raise ValueError(
            f"{path} is a zarr array at a URL, which cannot be replaced in one step; use a folder "
            "of parts, whose name ends with /, or a .parquet file"
        )


def _in_order(tiles: Iterable[tuple[int, Any]], n_rows: int) -> Tiles:
    """The labels of each tile; an error if tiles are missing, out of order or too long."""
    row = 0
    for first_row, tile in tiles:
        labels = np.asarray(tile)
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise TypeError(
                f"labels of row {first_row} on have shape {labels.shape} and dtype {labels.dtype}; "
                "expected one integer per row"
            )
        if first_row != row or row + len(labels) > n_rows:
            raise ValueError(
                f"labels came for the rows {first_row} to {first_row + len(labels)} where row "
                f"{row} of {n_rows} was next; hand them over in order"
            )
        row += len(labels)
        yield labels.astype(np.int64, copy=False)
    if row != n_rows:
        raise ValueError(f"labels came for {row} rows, but n_rows={n_rows}; nothing was written")


def _write_npy(path: Path, tiles: Tiles, n_rows: int) -> None:
    with path.open("wb") as file:
        header = {"descr": "<i8", "fortran_order": False, "shape": (n_rows,)}
        npy.write_array_header_1_0(file, header)
        for labels in tiles:
            file.write(labels.astype("<i8", copy=False).tobytes())


def _read_npy(path: Path) -> Int64Array:
    with path.open("rb") as file:
        header = read_header(file)
        if len(header.shape) != 1 or header.dtype.kind not in "iu":
            raise ValueError(f"it is an array of shape {header.shape} and dtype {header.dtype}")
        found = path.stat().st_size - file.tell()
        if found != header.n_bytes:
            raise ValueError(f"its header promises {header.n_bytes} bytes, {found} were found")
        labels: NDArray[Any] = np.fromfile(file, header.dtype)
    return labels.astype(np.int64, copy=False)


def _write_parquet(path: Path, tiles: Tiles, n_rows: int) -> None:
    pa, pq = require("pyarrow", *WHY_ARROW), require("pyarrow.parquet", *WHY_ARROW)
    schema = pa.schema([pa.field(COLUMN, pa.int64(), nullable=False)])
    with pq.ParquetWriter(arrow_path(path), schema, write_page_checksum=True) as writer:
        for labels in _joined(tiles, GROUP_ROWS):
            writer.write_table(pa.table([pa.array(labels)], schema=schema))


def _write_parts(path: str | os.PathLike[str], tiles: Tiles, n_rows: int) -> None:
    """Parts of labels whose number is not known: of the wider type."""

    def parts(writer: PartWriter) -> Iterator[Part]:
        row = 0
        for labels in _joined(tiles, GROUP_ROWS):
            yield writer(row, [(row, (labels, 0))])
            row += len(labels)

    with room_for(path):
        write_parts(path, np.iinfo(np.int32).max, n_rows, parts)


def _joined(tiles: Tiles, n_rows: int) -> Tiles:
    """The same labels in blocks of at least `n_rows`, except for the last."""
    waiting: list[Int64Array] = []
    for labels in tiles:
        waiting.append(labels)
        if sum(map(len, waiting)) >= n_rows:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _read_parquet(path: Path) -> Int64Array:
    pa, pq = require("pyarrow", *WHY_ARROW), require("pyarrow.parquet", *WHY_ARROW)
    try:
        with pq.ParquetFile(arrow_path(path), page_checksum_verification=True) as file:
            names = file.schema_arrow.names  # ids may stand before the labels
            if names[-1:] != [COLUMN] or len(names) > 2:
                raise ValueError(f"its columns are {names}, not [{COLUMN!r}]")
            labels: NDArray[Any] = file.read([COLUMN]).column(COLUMN).to_numpy()
    except pa.ArrowException as error:  # not all of them are ValueErrors
        raise ValueError(str(error)) from error
    if labels.dtype.kind not in "iu":
        raise ValueError(f"its labels are {labels.dtype}, not integers, or some are missing")
    return labels.astype(np.int64, copy=False)


def _write_csv(path: Path, tiles: Tiles, n_rows: int) -> None:
    with path.open("w", encoding="ascii", newline="") as file:
        file.write(f"{COLUMN}\n")
        for labels in tiles:
            file.writelines(f"{label}\n" for label in labels.tolist())


def _read_csv(path: Path) -> Int64Array:
    with path.open(encoding="utf-8", newline="") as file:
        title = file.readline().strip()
        if title == COLUMN:
            return np.fromiter(map(int, file), np.int64)
        names = next(csv.reader([title]), [])  # ids may stand before the labels
        if names[-1:] != [COLUMN] or len(names) > 2:
            raise ValueError(f"its first line is {title[:40]!r}, not {COLUMN!r}")
        return np.fromiter((int(row[-1]) for row in csv.reader(file)), np.int64)


def _write_zarr(path: Path, tiles: Tiles, n_rows: int) -> None:
    zarr = require("zarr", *WHY_ZARR)
    array = zarr.create_array(
        path,
        shape=(n_rows,),
        chunks=(min(GROUP_ROWS, max(n_rows, 1)),),
        dtype="<i8",
        config={"write_empty_chunks": True},  # a missing chunk is damage, not zeros
    )
    row = 0
    for labels in _joined(tiles, GROUP_ROWS):
        array[row : row + len(labels)] = labels
        row += len(labels)


def _read_zarr(path: Path) -> Int64Array:
    zarr = require("zarr", *WHY_ZARR)
    array = zarr.open_array(path, mode="r")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"it is an array of shape {array.shape} and dtype {array.dtype}")
    if array.nchunks_initialized < array.nchunks:
        raise ValueError(f"{array.nchunks - array.nchunks_initialized} of its chunks are missing")
    labels: NDArray[Any] = array[:]
    return labels.astype(np.int64, copy=False)


def _zarr_needed() -> None:
    require("zarr", *WHY_ZARR)


def _nothing_needed() -> None:
    """This format needs no optional package."""


def _arrow_needed() -> None:
    require("pyarrow.parquet", *WHY_ARROW)


WHY_ARROW = ("io", "a .parquet file of labels")
WHY_ZARR = ("io", "a .zarr folder of labels")


@contextmanager
def room_for(path: str | os.PathLike[str]) -> Iterator[None]:
    """Inside, a full disk raises an error that says so."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise OSError(
            error.errno,
            f"{path}: there is no room on the disk for the labels ({error.strerror}); nothing was "
            "written under this name: free some space, or choose another folder",
        ) from error


@frozen
class LabelFormat:
    """How a file format is written and read."""

    write: Callable[[Path, Tiles, int], None]
    read: Callable[[Path], Int64Array]
    check: Callable[[], None] = _nothing_needed  # raises where a package is missing
    is_folder: bool = False


FORMATS = {
    ".npy": LabelFormat(_write_npy, _read_npy),
    ".parquet": LabelFormat(_write_parquet, _read_parquet, _arrow_needed),
    ".csv": LabelFormat(_write_csv, _read_csv),
    ".zarr": LabelFormat(_write_zarr, _read_zarr, _zarr_needed, is_folder=True),
}


@PrintableErrors()
def _format_of(path: str | os.PathLike[str]) -> LabelFormat:
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(
            f"{path} has the suffix {suffix!r}, which is not a format of labels; "
            f"use one of {', '.join(FORMATS)}"
        )
    return FORMATS[suffix]
