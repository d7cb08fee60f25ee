"""Rows in Parquet and CSV files, read as a stream of record batches: bounded memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np

from mercer._run.extras import require
from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer._run.url import READ_BYTES, Url, is_of_store, located
from mercer.rows.arrays import working_dtype
from mercer.rows.forward import ForwardSource, Layout
from mercer.rows.source import TILE
from mercer.rows.stamp import Stamp, arrow_file, stamp_of

BUFFER = 2**16  # bytes read ahead in each column of a Parquet file
AHEAD = 2**26  # bytes read ahead of a Parquet file at a URL, in all columns
BLOCK = 2**20  # bytes of CSV parsed at a time at most; no line may be longer
LEAST_BLOCK, LINES = 2**18, 64  # ... and at least, or so many times the first line
BLOCKS_HELD = 40  # by Arrow's reader of CSV: text, what is read ahead, and numbers (measured)
OVERHEAD = 1.6  # resident bytes for each that Arrow's allocator has given out (measured)
TOO_LONG = "a line is longer than"
MOST_NAMES = 40  # of columns in a message
LONGEST_NAME, LONGEST_REASON = 100, 300  # characters of a file's own in a message
CSV_ERROR = re.compile(r"In CSV column #(\d+): Row #(\d+): .*invalid value '(.*)'", re.DOTALL)


@frozen
class TableColumn:
    """A column of a table: a number in each row, or a list of numbers, all of one length."""

    name: str
    length: int | None = None  # of the lists; None for plain numbers

    @property
    def features(self) -> tuple[str, ...]:
        if self.length is None:
            return (self.name,)
        return tuple(f"{self.name}_{i}" for i in range(self.length))

    def values(self, array: Any) -> np.ndarray[Any, Any]:
        """The numbers of an Arrow array without flaws: a row of features for each of its rows."""
        items = array if self.length is None else _storage(array).flatten()
        return _numbers(items, self.length or 1)

    def flaw(self, array: Any) -> tuple[int, str] | None:
        """The first row of an Arrow array that cannot be used, and what it holds."""
        if array.null_count:
            return _first(array.is_null()), "a missing value"
        if self.length is None:
            return None
        array = _storage(array)
        if hasattr(array, "offsets"):
            lengths = np.diff(array.offsets.to_numpy())
            if (lengths != self.length).any():
                row = int((lengths != self.length).argmax())
                return row, f"a list of {lengths[row]} numbers (the first row has {self.length})"
        items = array.flatten()
        if items.null_count:
            return _first(items.is_null()) // self.length, "a missing value in its list"
        return None


@frozen(eq=False, slots=False)
class TableSource(ForwardSource):
    """What Parquet and CSV have in common: a file of named columns that become features."""

    path: str | os.PathLike[str]
    columns: Sequence[str] | None = None
    stamp: Stamp = field(init=False, repr=False)
    chosen: tuple[TableColumn, ...] = field(init=False, repr=False)

    def changed(self, found: str) -> str:
        return (
            f"{self.path!s} had {self.n_rows} rows when it was opened and {found} now; open it "
            "again, and leave it alone while it is read"
        )

    @property
    def buffers(self) -> int:
        """What Arrow holds, and a tile of rows that is made of it."""
        tile = TILE * self.n_features * self.dtype.itemsize
        return int(OVERHEAD * self._arrow_bytes()) + tile

    def _arrow_bytes(self) -> int:
        """Bytes that Arrow allocates to read on."""
        raise NotImplementedError

    def _open(self) -> None:
        """Set path, stamp and selection, before anything is read."""
        path = located(self.path)
        self._set(path=path, stamp=stamp_of(path), columns=_selection(self.columns))

    def _choose(self, columns: Sequence[TableColumn], dtype: np.dtype[Any]) -> None:
        """Set the columns, and with them the features."""
        for column in columns:
            if column.length == 0:
                raise ValueError(
                    f"the first list in column {shown(column.name)} of {self.path!s} is empty or "
                    "missing; at least one number is wanted"
                )
        names = tuple(name for column in columns for name in column.features)
        self._set(chosen=tuple(columns), layout=Layout(len(names), dtype, names))

    def _count(self, n_rows: int) -> None:
        if n_rows == 0:
            raise ValueError(f"{self.path!s} has no rows; at least one is wanted")
        self._set(n_rows=n_rows)

    def _dense(self, batches: Iterator[Any], start: int) -> Iterator[FloatArray]:
        """Record batches, the first from row `start` on, as arrays."""
        for batch in batches:
            rows, j = np.empty((batch.num_rows, self.n_features), self.dtype), 0
            for column in self.chosen:
                array = batch.column(column.name)
                self._check(column, array, start)
                values = column.values(array)
                rows[:, j : j + values.shape[1]] = values
                j += values.shape[1]
            yield rows
            start += batch.num_rows

    def _check(self, column: TableColumn, array: Any, start: int) -> None:
        flaw = column.flaw(array)
        if flaw is not None:
            row, what = flaw
            raise ValueError(
                f"column {shown(column.name)} of {self.path!s} holds {what} in row {start + row} "
                "(counted from 0); fill it or drop the row, or pass columns= without this column"
            )


@frozen(eq=False, slots=False)
class ParquetSource(TableSource):
    """A Parquet file of numbers: a column per feature, or one of equally long lists or tensors.

    Parameters
    ----------
    path : str or path
        The path of one file.
    columns : sequence of str or None, default=None
        Names of the columns to read, in this order; None for all. Each holds numbers or lists of
        numbers. Without it all columns must hold numbers, or the only one lists. A column ``x`` of
        lists gives the features ``x_0``, ``x_1``, …

    Notes
    -----
    A read starts at the row group of its first row and decodes a tile at a time, so that large
    row groups need no memory; other columns and row groups are not touched. Page checksums are
    verified where the file has them.
    """

    metadata: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._open()
        parquet = require("pyarrow.parquet", "io", "reading Parquet")
        with (
            named_errors(self.path, "Parquet"),
            parquet.ParquetFile(arrow_file(self.path, self.stamp.n_bytes)) as file,
        ):
            metadata, schema = file.metadata, file.schema_arrow
            names = choose_columns(self.path, schema.names, self.columns)
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._count(sum(sizes))
        self._set(chosen=tuple(map(TableColumn, names)))  # to be read; lists get their lengths
        self._set(metadata=metadata, restarts=np.cumsum([0, *sizes[:-1]], dtype=np.intp))
        kinds = {name: schema.field(name).type for name in names}
        _check_kinds(self.path, kinds, is_chosen=self.columns is not None)
        dtypes: Any = [_dtype(_item_type(kind)) for kind in kinds.values()]
        columns = [TableColumn(name, self._length(name, kind)) for name, kind in kinds.items()]
        self._choose(columns, working_dtype(np.result_type(*dtypes)))

    def blocks(self, start: int) -> Iterator[FloatArray]:
        return self._dense(self._batches([column.name for column in self.chosen], start), start)

    def _arrow_bytes(self) -> int:
        """By a look at the largest row group: pages and dictionaries are of any size."""
        groups = range(self.metadata.num_row_groups)
        largest = max(groups, key=lambda group: self.metadata.row_group(group).total_byte_size)
        pool = require("pyarrow", "io", "reading Parquet").default_memory_pool()
        before = pool.bytes_allocated()
        names = [column.name for column in self.chosen]
        batches = self._batches(names, int(self.restarts[largest]))
        first = next(batches)
        held = pool.bytes_allocated() - before
        del first
        batches.close()  # type: ignore[attr-defined]
        ahead = self._stored_group() if self._buffering()["pre_buffer"] else 0
        return max(int(held), 0) + ahead

    def _buffering(self) -> dict[str, Any]:
        """How far to read ahead: little in a file; at a URL, where each read is a request, much."""
        if not isinstance(self.path, Url):
            return {"buffer_size": BUFFER, "pre_buffer": False}  # it would hold whole row groups
        if self._stored_group() <= AHEAD:
            return {"pre_buffer": True}
        return {"buffer_size": max(AHEAD // len(self.chosen), BUFFER), "pre_buffer": False}

    def _stored_group(self) -> int:
        """Bytes of the largest row group in the file, in the chosen columns."""
        roots = {column.name for column in self.chosen}
        groups = map(self.metadata.row_group, range(self.metadata.num_row_groups))
        chunks = ([group.column(j) for j in range(group.num_columns)] for group in groups)
        wanted = ([c for c in each if c.path_in_schema.split(".")[0] in roots] for each in chunks)
        return max(sum(chunk.total_compressed_size for chunk in each) for each in wanted)

    def _length(self, name: str, kind: Any) -> int | None:
        """The length of a column's lists: in its type, or else in its first row."""
        if not _is_list(kind):
            return None
        if hasattr(_plain(kind), "list_size"):
            return int(_plain(kind).list_size)
        first = next(batch for batch in self._batches([name], 0) if batch.num_rows)
        return len(first.column(name)[0].as_py() or ())

    def _batches(self, names: list[str], start: int) -> Iterator[Any]:
        """Record batches from the row group on that begins at row `start`."""
        self.stamp.check(self.path)
        parquet = require("pyarrow.parquet", "io", "reading Parquet")
        options = {**self._buffering(), "page_checksum_verification": True}
        stored = arrow_file(self.path, self.stamp.n_bytes)
        with (
            _released(),
            named_errors(self.path, "Parquet"),
            parquet.ParquetFile(stored, metadata=self.metadata, **options) as file,
        ):
            for group in range(self.restart_of(start), self.metadata.num_row_groups):
                yield from file.iter_batches(TILE, [group], names, use_threads=False)


@frozen(eq=False, slots=False)
class CsvSource(TableSource):
    """A CSV file of numbers (``.tsv``: tabs instead of commas; ``.gz``: compressed).

    Parameters
    ----------
    path : str or path
        The path of one file.
    columns : sequence of str or None, default=None
        Names of the columns to read, in this order; None for all.

    Notes
    -----
    The first line names the columns. If it holds numbers only there is no header, and the columns
    are called ``f0``, ``f1``, …; but ``0,1,2,…``, which pandas writes above unnamed columns, is a
    header. The first pass counts and checks all rows; going back starts the file again, so Parquet
    is the better format for more than a few gigabytes.
    """

    has_header: bool = field(init=False)
    names: tuple[str, ...] = field(init=False, repr=False)  # of all columns in the file
    flags: tuple[str, ...] = field(init=False, repr=False)  # of those that hold true and false
    texts: tuple[str, ...] = field(init=False, repr=False)  # of those that begin with no numbers
    block: int = field(init=False, repr=False)  # bytes parsed at a time

    def __post_init__(self) -> None:
        self._open()
        self._set(has_header=True, names=(), flags=(), texts=(), block=BLOCK)
        self._set(restarts=np.zeros(1, np.intp))
        names = self._read_names()
        if are_numbers(names):
            self._set(has_header=False)
            names = self._read_names()
        line = sum(len(name) + 1 for name in names)
        self._set(names=names, block=min(max(LINES * line, LEAST_BLOCK), BLOCK))
        chosen = choose_columns(self.path, names, self.columns)
        self._choose([TableColumn(name) for name in chosen], np.dtype(np.float64))
        try:
            self._count(self._counted())
        except ValueError as error:
            if TOO_LONG not in str(error) or self.block == BLOCK:
                raise
            self._set(block=BLOCK)  # a line much longer than the first
            self._count(self._counted())

    def blocks(self, start: int) -> Iterator[FloatArray]:
        return self._dense(self._batches(), start)

    def _counted(self) -> int:
        """All rows, read and checked."""
        return sum(len(rows) for rows in self.blocks(0))

    def _read_names(self) -> tuple[str, ...]:
        with named_errors(self.path, "CSV"), self._reader([]) as reader:
            names = tuple(reader.schema.names)
            kinds = {column.name: column.type for column in reader.schema}
        if len(names) == 1 and (separator := re.search(r"[;\t|]", names[0])):
            raise ValueError(
                f"{self.path!s} has one column, {shown(names[0])}; it seems to be separated by "
                f"{separator[0]!r}: a .csv file needs commas, a .tsv file tabs"
            )
        self._set(flags=tuple(name for name, kind in kinds.items() if str(kind) == "bool"))
        self._set(texts=tuple(name for name, kind in kinds.items() if _is_text(kind)))
        return names

    def _batches(self) -> Iterator[Any]:
        self.stamp.check(self.path)
        names = [column.name for column in self.chosen]
        with (
            _released(),
            named_errors(self.path, "CSV", self.names, self._advice(names)),
            self._reader(names) as reader,
        ):
            yield from reader

    def _advice(self, chosen: list[str]) -> str:
        """What to do about a cell without a number, if it is in one of several columns of text."""
        if len(set(chosen) & set(self.texts)) < 2:
            return "without this column"
        numbers = [name for name in chosen if name not in self.texts][:MOST_NAMES]
        return f"with the columns of numbers: {', '.join(map(shown, numbers)) or 'there are none'}"

    def _arrow_bytes(self) -> int:
        return BLOCKS_HELD * self.block + (READ_BYTES if isinstance(self.path, Url) else 0)

    def _reader(self, names: list[str]) -> Any:
        """An open stream of these columns as numbers; of all, as they seem to be, if empty."""
        csv = require("pyarrow.csv", "io", "reading CSV")
        arrow = require("pyarrow", "io", "reading CSV")
        types = {name: arrow.bool_() if name in self.flags else arrow.float64() for name in names}
        is_tab = os.fspath(self.path).lower().removesuffix(".gz").endswith(".tsv")
        return csv.open_csv(
            csv_file(self.path),
            csv.ReadOptions(
                use_threads=False,
                block_size=self.block,
                autogenerate_column_names=not self.has_header,
            ),
            csv.ParseOptions(delimiter="\t" if is_tab else ","),
            csv.ConvertOptions(include_columns=names, column_types=types),
        )


@contextmanager
def _released() -> Iterator[None]:
    """Afterwards Arrow returns what it has freed: its allocator would keep it for later."""
    try:
        yield
    finally:
        require("pyarrow", "io", "reading tables").default_memory_pool().release_unused()


def csv_file(path: str | os.PathLike[str]) -> Any:
    """What Arrow opens as CSV: of a path it knows by itself whether it is compressed."""
    file = arrow_file(path, forwards=True)
    if isinstance(file, str) or not os.fspath(path).lower().endswith(".gz"):
        return file
    return require("pyarrow", "io", "reading CSV").CompressedInputStream(file, "gzip")


def count_rows(path: str | os.PathLike[str], n_bytes: int) -> int:
    """The rows of a Parquet file, which are counted at its end."""
    parquet = require("pyarrow.parquet", "io", "reading Parquet")
    with named_errors(path, "Parquet"):
        return int(parquet.read_metadata(arrow_file(path, n_bytes)).num_rows)


@contextmanager
def named_errors(
    path: str | os.PathLike[str], format: str, names: tuple[str, ...] = (), advice: str = ""
) -> Iterator[None]:
    """Arrow's errors as one ValueError that says which file and what to do."""
    arrow = require("pyarrow", "io", f"reading {format}")
    try:
        yield
    except MemoryError:
        raise
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if is_of_store(error, path):
            raise
        if cell := CSV_ERROR.search(str(error)):
            raise ValueError(
                f"column {shown(names[int(cell[1])])} of {os.fspath(path)} holds {shown(cell[3])} "
                f"in line {cell[2]}, where a number is wanted; correct it, or pass columns= "
                f"{advice}"
            ) from error
        reason = str(error).partition("\n")[0].rstrip(".")[:LONGEST_REASON]
        if "straddling" in reason:
            reason = f"{TOO_LONG} {BLOCK} bytes"
        raise ValueError(
            f"{os.fspath(path)} cannot be read as {format}: {reason}; the file is damaged or "
            "incomplete, or of another format: write it again"
        ) from error


def shown(text: str) -> str:
    """A name or a cell as a message shows it: a damaged file has long ones."""
    return repr(text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…")


def _selection(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """The user's columns, as a tuple of different names."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r} is one string; pass a list of names: [{columns!r}]")
    if not columns or len(set(columns)) < len(columns):
        raise ValueError(f"columns={list(columns)!r} must name at least one column, and each once")
    return tuple(columns)


def choose_columns(
    path: str | os.PathLike[str], names: Sequence[str], columns: Sequence[str] | None
) -> Sequence[str]:
    """The columns asked for, or all of them; each must be in the table, once, with a name."""
    if not names:
        raise ValueError(f"{os.fspath(path)} has no columns; at least one is wanted")
    for name in names if columns is None else columns:
        if name not in names:
            known = ", ".join(shown(known) for known in names[:10]) + ", …" * (len(names) > 10)
            raise ValueError(f"{os.fspath(path)} has no column {shown(name)}; it has {known}")
        if names.count(name) > 1:
            raise ValueError(
                f"{os.fspath(path)} has {names.count(name)} columns named {shown(name)}; "
                "rename them"
            )
        if columns is None and (not name or name.startswith("__index_level_")):
            raise ValueError(
                f"{os.fspath(path)} has a column named {shown(name)}, as pandas writes for an "
                "index; save it with index=False, or pass columns= without it"
            )
    return names if columns is None else columns


def _check_kinds(path: str | os.PathLike[str], kinds: dict[str, Any], *, is_chosen: bool) -> None:
    """Refuse columns of other things than numbers, and lists beside columns nobody asked for."""
    for name, kind in kinds.items():
        if _dtype(_item_type(kind)) is None:
            usable = [shown(n) for n, k in kinds.items() if _dtype(k) is not None][:MOST_NAMES]
            raise ValueError(
                f"column {shown(name)} of {os.fspath(path)} holds values of type {kind}, not "
                "numbers; pass columns= with the names of the columns to use (columns of numbers: "
                f"{', '.join(usable) or 'none'}), or turn it into "
                "numbers first (text and categories e.g. by sklearn.preprocessing.OneHotEncoder)"
            )
    for name, kind in kinds.items():
        if _is_list(kind) and len(kinds) > 1 and not is_chosen:
            raise ValueError(
                f"column {shown(name)} of {os.fspath(path)} holds lists and stands beside other "
                f"columns; pass columns= to say which to use, e.g. columns=[{shown(name)}]"
            )


def _plain(kind: Any) -> Any:
    """The type that values are stored in: that of a tensor is a list of fixed length."""
    return getattr(kind, "storage_type", kind)


def _storage(array: Any) -> Any:
    """An Arrow array of lists, which a tensor's elements are stored in."""
    return getattr(array, "storage", array)


def _is_list(kind: Any) -> bool:
    types, kind = require("pyarrow", "io", "reading tables").types, _plain(kind)
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _item_type(kind: Any) -> Any:
    return _plain(kind).value_type if _is_list(kind) else kind


def _dtype(kind: Any) -> np.dtype[Any] | None:
    """The numpy type for an Arrow type of numbers, None for other types."""
    types = require("pyarrow", "io", "reading tables").types
    if types.is_decimal(kind):
        return np.dtype(np.float64)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    return None


def _numbers(array: Any, width: int) -> np.ndarray[Any, Any]:
    """An Arrow array of numbers as a matrix of so many columns."""
    arrow = require("pyarrow", "io", "reading tables")
    if arrow.types.is_decimal(array.type):
        array = array.cast(arrow.float64())
    values: np.ndarray[Any, Any] = array.to_numpy(zero_copy_only=False)
    return values.reshape(-1, width)


def _is_text(kind: Any) -> bool:
    """Whether Arrow took a column of CSV for something else than numbers."""
    types = require("pyarrow", "io", "reading CSV").types
    return not types.is_null(kind) and _dtype(kind) is None


def _first(flags: Any) -> int:
    """The place of the first true value of an Arrow array."""
    return int(flags.to_numpy(zero_copy_only=False).argmax())


def are_numbers(names: Sequence[str]) -> bool:
    """Whether a first line is data: numbers only, but not the 0, 1, 2, … that pandas writes."""
    if len(names) > 1 and list(names) == [str(i) for i in range(len(names))]:
        return False
    return all(is_number(name) for name in names)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
