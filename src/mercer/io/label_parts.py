"""Labels as a folder of Parquet parts, written where they are found, each row exactly once.

A worker writes its rows under a temporary name of its own: one that is lost, or runs twice, leaves
a file that nobody lists. When all rows are done, the client removes the ``_SUCCESS`` of an older
result, writes the list of parts that count to ``_commit.json``, gives these their names, and writes
``_SUCCESS`` last. So a folder with ``_SUCCESS`` is whole, and one without it is refused.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.atomic import check_writable, replacing, sync_folder
from mercer._run.extras import require
from mercer._run.frozen import frozen
from mercer._run.url import StrPath, Url, place_of
from mercer.io.packing import Json

FORMAT, VERSION = "mercer-labels", 1
DONE, COMMIT, TEMPORARY = "_SUCCESS", "_commit.json", "_temporary"
ROW, LABEL = "row", "label"
WHY_ARROW = ("io", "a folder of labels")


@frozen
class Part:
    """The labels of consecutive rows, in a file with a temporary name."""

    first_row: int
    n_rows: int
    file: str  # the temporary name
    n_unseen: int = 0  # rows that the kernel does not see


@frozen
class PartWriter:
    """Writes parts for one result; picklable, for any process."""

    folder: Any  # Url or Path
    token: str  # of this result
    dtype: str

    def __call__(self, first_row: int, tiles: list[tuple[int, Any]]) -> Part:
        """The part of some tiles: (first row, (labels, how many the kernel does not see))."""
        labels = np.concatenate([tile for _, (tile, _) in tiles])
        n_unseen = sum(unseen for _, (_, unseen) in tiles)
        name = f"part-{first_row:012d}-{secrets.token_hex(8)}.parquet"
        _write(_temporary(self.folder, self.token) / name, self._table(first_row, labels))
        return Part(first_row, len(labels), name, int(n_unseen))

    def _table(self, first_row: int, labels: NDArray[Any]) -> bytes:
        pa, pq = require("pyarrow", *WHY_ARROW), require("pyarrow.parquet", *WHY_ARROW)
        rows = np.arange(first_row, first_row + len(labels))
        columns = {ROW: pa.array(rows), LABEL: pa.array(labels.astype(self.dtype))}
        schema = pa.schema(
            [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
        )
        sink = pa.BufferOutputStream()
        pq.write_table(
            pa.table(columns, schema=schema),
            sink,
            use_dictionary=[LABEL],
            column_encoding={ROW: "DELTA_BINARY_PACKED"},  # a few bytes for a million numbers
            write_page_checksum=True,
        )
        return bytes(sink.getvalue())


def write_parts(
    path: StrPath,
    n_labels: int,
    n_rows: int,
    parts: Callable[[PartWriter], Iterable[Part]],
) -> int:
    """A new result in this folder, of what `parts` makes with a writer; how many went unseen.

    What is left of it goes if anything fails; an older result stays until all parts are there.
    """
    check_folder(path)
    folder = place_of(path)
    dtype = np.int16 if n_labels <= np.iinfo(np.int16).max else np.int32
    writer = PartWriter(folder, secrets.token_hex(8), np.dtype(dtype).name)
    try:
        return _commit(writer, list(parts(writer)), n_rows)
    finally:
        with suppress(OSError):  # what cannot be removed is never read either
            _clear(folder, writer.token)


def check_folder(path: StrPath) -> None:
    """Refuse a folder that cannot be written to or holds something else, before the work."""
    require("pyarrow.parquet", *WHY_ARROW)
    folder = place_of(path)
    names = _names(folder)
    if not isinstance(folder, Url) and folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; labels that end with / go to a folder")
    is_own = bool({DONE, COMMIT, TEMPORARY} & set(names)) or not names
    others = [name for name in names if name[0] not in "._" and not _is_part(name)]
    if others or not is_own:
        raise FileExistsError(
            f"{folder} holds other files than labels ({', '.join((others or names)[:3])}); choose "
            "a new folder"
        )
    if isinstance(folder, Url):
        check_writable(folder / TEMPORARY)
    else:
        check_writable(folder / DONE if folder.is_dir() else folder)


def _commit(writer: PartWriter, found: list[Part], n_rows: int) -> int:
    """Give the parts their names, in the order of their rows; how many rows went unseen."""
    folder = writer.folder
    firsts = np.cumsum([0, *(part.n_rows for part in found)])
    if firsts[-1] != n_rows or [part.first_row for part in found] != firsts[:-1].tolist():
        raise ValueError(f"parts came for {firsts[-1]} rows in all, but there are {n_rows}")
    names = [f"part-{number:05d}.parquet" for number in range(len(found))]
    listed: Json = [
        {"name": name, "first_row": part.first_row, "n_rows": part.n_rows}
        for name, part in zip(names, found, strict=True)
    ]
    document = {"format": FORMAT, "version": VERSION, "result": writer.token, "n_rows": n_rows}
    document |= {"dtype": writer.dtype, "parts": listed}
    _remove(folder / DONE)
    _write(folder / COMMIT, json.dumps(document, indent=1).encode())
    temporary = _temporary(folder, writer.token)
    _names(temporary)  # a file system that keeps the listing does not look at each file again
    for name, part in zip(names, found, strict=True):
        _move(temporary / part.file, folder / name)
    for name in set(filter(_is_part, _names(folder))) - set(names):
        _remove(folder / name)  # of an older result with more parts
    _write(folder / DONE, json.dumps({"result": writer.token}).encode())
    return sum(part.n_unseen for part in found)


def read_parts(path: StrPath) -> NDArray[np.int64]:
    """The labels of a folder in the order of the rows; ValueError where it is not whole."""
    pa, pq = require("pyarrow", *WHY_ARROW), require("pyarrow.parquet", *WHY_ARROW)
    folder = place_of(path)
    document = _document(folder)
    labels, row = np.empty(document["n_rows"], np.int64), 0
    for part in document["parts"]:
        try:
            table = pq.read_table(pa.BufferReader(_read(folder / part["name"])))
        except pa.ArrowException as error:
            raise ValueError(f"{part['name']}: {error}") from error
        rows, found = table.column(ROW).to_numpy(), table.column(LABEL).to_numpy()
        stop = row + len(found)
        if len(found) != part["n_rows"] or not np.array_equal(rows, np.arange(row, stop)):
            raise ValueError(f"{part['name']} does not hold the rows from {row} on")
        labels[row:stop] = found
        row = stop
    if row != len(labels):
        raise ValueError(f"its parts hold {row} of {len(labels)} rows")
    return labels


def _document(folder: Any) -> dict[str, Any]:
    """The list of parts, if the folder was completed."""
    names = _names(folder)
    if not names:
        raise FileNotFoundError(f"there is no folder of labels {folder}; check the path")
    if DONE not in names or COMMIT not in names:
        raise ValueError(f"it has no {DONE}: its writer has not finished")
    document: dict[str, Any] = json.loads(_read(folder / COMMIT))
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise ValueError(f"its {COMMIT} is not of the format {FORMAT} {VERSION}")
    if json.loads(_read(folder / DONE)).get("result") != document["result"]:
        raise ValueError(f"its {DONE} and {COMMIT} are of two results")
    return document


def _is_part(name: str) -> bool:
    return name.startswith("part-") and name.endswith(".parquet")


def _temporary(folder: Any, token: str) -> Any:
    return folder / TEMPORARY / token


def _names(folder: Any) -> list[str]:
    if isinstance(folder, Url):
        return sorted(folder.children())
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def _read(place: Any) -> bytes:
    if isinstance(place, Url):
        with place.open() as file:
            return bytes(file.read())
    return bytes(place.read_bytes())


def _write(place: Any, data: bytes) -> None:
    if isinstance(place, Url):
        place.write(data)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with replacing(place) as temporary:
        temporary.write_bytes(data)


def _move(old: Any, new: Any) -> None:
    if isinstance(old, Url):
        old.copy(new)  # the old one goes with all others
        return
    os.replace(old, new)
    sync_folder(new.parent)


def _remove(place: Any) -> None:
    place.remove() if isinstance(place, Url) else Path(place).unlink(missing_ok=True)


def _clear(folder: Any, token: str) -> None:
    """Remove what is left under temporary names."""
    temporary = _temporary(folder, token)
    if isinstance(temporary, Url):
        temporary.remove_tree()
        return
    shutil.rmtree(temporary, ignore_errors=True)
    with suppress(OSError):  # another result is being written
        (folder / TEMPORARY).rmdir()
