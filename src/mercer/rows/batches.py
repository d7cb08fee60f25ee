"""Rows that come one batch after another: read forwards, cut anew, restarted on going back.

`BatchSource` reads what the user iterates over; `data.tables` reads files in the same way.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.types import IdArray
from mercer.rows.arrays import working_dtype
from mercer.rows.frames import frame_array
from mercer.rows.rows import Rows, part, stack, take

SPARSE_ROW = 64  # bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """What all pieces of a source have in common."""

    n_features: int
    dtype: np.dtype[Any]
    feature_names: tuple[str, ...] | None = None
    is_sparse: bool = False

    @property
    def kind(self) -> str:
        return "sparse" if self.is_sparse else "dense"

    def no_rows(self) -> Rows:
        shape = (0, self.n_features)
        if self.is_sparse:
            return sp.csr_array(shape, dtype=self.dtype)
        return np.empty(shape, self.dtype)

    def joined(self, pieces: Iterator[Rows], n_rows: int) -> Rows:
        """The pieces under each other, in rows of their own: a batch may be filled again and again.

        Dense ones go straight to their place: together they are held once, not twice.
        """
        if self.is_sparse:
            return stack([piece.copy() for piece in pieces])
        out, row = np.empty((n_rows, self.n_features), self.dtype), 0
        for piece in pieces:
            out[row : row + len(piece)] = piece
            row += len(piece)
        return out


class Cursor:
    """How far a forward reader has come, for one reader at a time.

    It pickles as a new one: neither the lock nor an open file travels to another process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.close()

    def __reduce__(self) -> tuple[type[Cursor], tuple[()]]:
        return Cursor, ()

    def close(self) -> None:
        """Forget the place and let go of what was open."""
        self._pieces: Iterator[Rows] = iter(())
        self._piece: Rows = np.empty((0, 0))
        self._first = -1  # number of the first row of the piece; -1 where nothing is open
        self._owner = os.getpid()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Alone with the cursor; after an error the next reader starts anew."""
        with self._lock:
            try:
                yield
            except BaseException:
                self.close()
                raise

    def walk(self, source: ForwardSource, start: int, stop: int) -> Iterator[tuple[int, Rows]]:
        """The rows start to stop, as they come: (number of the first row, rows)."""
        self._seek(source, start)
        while start < stop:
            end = self._first + self._piece.shape[0]
            if start < end:
                end = min(end, stop)
                yield start, part(self._piece, start - self._first, end - self._first)
                start = end
            else:
                self._advance(source)
        if stop == source.n_rows:
            self._finish(source)

    def _seek(self, source: ForwardSource, start: int) -> None:
        """Stay on the way to the row if it lies ahead, else start at the last restart before it."""
        origin = int(source.restarts[_place(source.restarts, start)])
        is_own = self._owner == os.getpid()  # a forked file shares its place with its parent
        is_ahead = self._first <= start and origin <= self._first + self._piece.shape[0]
        if not (is_own and is_ahead):
            self.close()
            self._pieces, self._first = source.pieces(origin), origin

    def _advance(self, source: ForwardSource) -> None:
        self._first += self._piece.shape[0]
        self._piece = source.layout.no_rows()  # let go of the old piece before the next is made
        try:
            self._piece = next(self._pieces)
        except StopIteration:
            raise ValueError(source.changed(f"{self._first} rows")) from None

    def _finish(self, source: ForwardSource) -> None:
        """At the last row nothing may follow."""
        is_over = self._first + self._piece.shape[0] > source.n_rows
        more = is_over or any(piece.shape[0] for piece in self._pieces)
        self.close()
        if more:
            raise ValueError(source.changed(f"more than {source.n_rows} rows"))


@dataclass(frozen=True, eq=False)
class ForwardSource:
    """A source that is read forwards, in pieces of any length; the base of its kinds.

    Reading on costs nothing extra; going back starts again at the last of the `restarts` before
    the row. Threads wait for each other.
    """

    layout: Layout = field(init=False, repr=False)
    n_rows: int = field(init=False)
    restarts: IdArray = field(init=False, repr=False)  # rows to begin at, from 0
    cursor: Cursor = field(init=False, repr=False, default_factory=Cursor)

    def pieces(self, start: int) -> Iterator[Rows]:
        """All rows from one of the restarts on, in order; empty pieces are legal."""
        raise NotImplementedError

    def changed(self, found: str) -> str:
        """The error for a pass that differs from the first."""
        raise NotImplementedError

    @property
    def n_features(self) -> int:
        return self.layout.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.layout.dtype

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self.layout.feature_names

    @property
    def in_memory(self) -> bool:
        return False

    @property
    def piece_bytes(self) -> int:
        """What must be held at a time to read any row (0: little)."""
        return 0

    @property
    def row_bytes(self) -> int:
        """What a row takes; a sparse one at least, for how long it is is not known before."""
        if self.layout.is_sparse:
            return SPARSE_ROW
        return int(self.n_features * self.dtype.itemsize)

    @property
    def buffers(self) -> int:
        """Bytes that the reader itself holds: a piece, and what it is made from."""
        return 2 * self.piece_bytes

    def reading(self, n_rows: int) -> int:
        """Bytes held while so many rows are read, they included."""
        return self.buffers + n_rows * self.row_bytes

    def read(self, start: int, stop: int) -> Rows:
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        if start >= stop:
            return self.layout.no_rows()
        with self.cursor.held():
            pieces = (rows for _, rows in self.cursor.walk(self, start, stop))
            return self.layout.joined(pieces, stop - start)

    def take(self, ids: IdArray) -> Rows:
        if len(ids) == 0:
            return self.layout.no_rows()
        with self.cursor.held():
            cuts = np.flatnonzero(np.diff(_place(self.restarts, ids))) + 1
            pieces = (rows for near in np.split(ids, cuts) for rows in self._picks(near))
            return self.layout.joined(pieces, len(ids))

    def rest(self) -> None:
        """Let go of what reading on from here would need: open files, buffers, a piece."""
        with self.cursor.held():
            self.cursor.close()

    def _picks(self, ids: IdArray) -> Iterator[Rows]:
        for first, rows in self.cursor.walk(self, int(ids[0]), int(ids[-1]) + 1):
            begin, end = np.searchsorted(ids, [first, first + rows.shape[0]])
            if begin < end:
                yield take(rows, ids[begin:end] - first)

    def _learn(self, **facts: Any) -> None:
        """Set what the first look found, once, from `__post_init__`."""
        for name, fact in facts.items():
            object.__setattr__(self, name, fact)


@dataclass(frozen=True, eq=False)
class BatchSource(ForwardSource):
    """Batches of rows from anything that can be iterated over again and again.

    Parameters
    ----------
    batches : iterable of 2-d arrays, of CSR, or of frames
        Every ``iter(batches)`` must give the same rows in the same order. A list will do, and so
        will an object whose ``__iter__`` opens its files anew; a generator will not. All batches
        have the same columns and are of one kind; empty ones are skipped.

    The first pass counts and checks; each later one checks that nothing changed.

    Examples
    --------
    >>> import numpy as np
    >>> source = BatchSource([np.zeros((2, 3)), np.ones((4, 3))])
    >>> source.n_rows, source.read(1, 4)[:, 0]
    (6, array([0., 1., 1.]))
    """

    batches: Iterable[Any]

    def __post_init__(self) -> None:
        _check_iterable(self.batches)
        n_rows, layout = 0, None
        for number, rows, found in _rows_of(self.batches):
            layout = layout or found
            check_alike(f"batch {number}", found, layout)
            n_rows += rows.shape[0]
        if layout is None:
            raise ValueError("the batches hold no rows; pass at least one batch that is not empty")
        self._learn(layout=layout, n_rows=n_rows, restarts=np.zeros(1, np.intp))

    def pieces(self, start: int) -> Iterator[Rows]:
        for number, rows, found in _rows_of(self.batches):
            check_alike(f"batch {number}", found, self.layout)
            yield rows

    def changed(self, found: str) -> str:
        return (
            f"the batches gave {self.n_rows} rows when they were counted and {found} now; every "
            "iteration must give the same rows: let __iter__ start from the beginning"
        )


def _check_iterable(batches: Any) -> None:
    if isinstance(batches, Iterator):
        raise TypeError(
            f"batches is a {type(batches).__name__}, which can be read only once, and the rows are "
            "needed several times; pass a list, or an object whose __iter__ starts anew"
        )
    if not isinstance(batches, Iterable):
        raise TypeError(
            f"batches is a {type(batches).__name__}; pass a list of 2-d arrays, or an object whose "
            "__iter__ gives them"
        )


def _rows_of(batches: Iterable[Any]) -> Iterator[tuple[int, Rows, Layout]]:
    """The batches that are not empty, of any kind: number, rows in a floating type, layout."""
    for number, batch in enumerate(batches):
        if not is_empty(batch):
            yield number, *read_piece(batch, f"batch {number}")


def read_piece(piece: Any, what: str) -> tuple[Rows, Layout]:
    """A dense array, a CSR or a frame as rows in a floating type, and their layout."""
    names = _column_names(piece)
    if names is not None:
        return _read_frame(piece, names, what)
    if sp.issparse(piece):
        return _read_sparse(piece, what)
    return _read_dense(piece, what)


def _read_dense(batch: Any, what: str) -> tuple[Rows, Layout]:
    if isinstance(batch, np.ma.MaskedArray):
        raise TypeError(f"{what} is a masked array; fill or drop what is masked")
    X = np.asarray(batch)
    _check_shape(X.shape, what)
    _check_numbers(X.dtype, what)
    return X.astype(working_dtype(X.dtype), copy=False), _layout(X)


def _read_sparse(batch: Any, what: str) -> tuple[Rows, Layout]:
    if batch.format != "csr":
        raise ValueError(f"{what} is sparse in format {batch.format}; pass batch.tocsr()")
    _check_shape(batch.shape, what)
    _check_numbers(batch.dtype, what)
    try:
        X = sp.csr_array(batch, dtype=working_dtype(batch.dtype))
        X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{what} is a damaged CSR ({error}); build it again") from error
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X, _layout(X)


def _read_frame(batch: Any, names: tuple[Any, ...], what: str) -> tuple[Rows, Layout]:
    _check_shape((len(batch), len(names)), what)
    X = frame_array(batch, what)
    are_words = all(isinstance(name, str) for name in names)
    return X, _layout(X, names if are_words else None)


def _column_names(batch: Any) -> tuple[Any, ...] | None:
    """The names of a frame's columns (pandas, polars, pyarrow), None if it is no frame."""
    names = getattr(batch, "column_names", getattr(batch, "columns", None))
    return None if names is None else tuple(names)


def _layout(X: Any, names: tuple[str, ...] | None = None) -> Layout:
    return Layout(X.shape[1], working_dtype(X.dtype), names, is_sparse=sp.issparse(X))


def is_empty(batch: Any) -> bool:
    """A batch of no rows, whatever its kind and width."""
    shape = getattr(batch, "shape", None)
    if shape is None:
        return hasattr(batch, "__len__") and len(batch) == 0
    return len(shape) > 0 and shape[0] == 0


def _check_shape(shape: tuple[int, ...], what: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{what} is a {len(shape)}-d array of shape {shape}; each batch must be 2-d "
            "(rows, columns): reshape(-1, 1) makes one column, reshape(1, -1) one row"
        )
    if shape[1] == 0:
        raise ValueError(f"{what} has no columns; at least one is wanted")


def _check_numbers(dtype: np.dtype[Any], what: str) -> None:
    if dtype.kind not in "biuf":
        raise ValueError(f"{what} holds values of type {dtype}; real numbers are wanted")


def check_alike(
    what: str, found: Layout, wanted: Layout, *, model: str = "the first", all_of: str = "batches"
) -> None:
    """Refuse a piece that differs from the first (or what else is the model of all of them)."""
    for trait, here, there in (
        ("number of columns", found.n_features, wanted.n_features),
        ("column names", found.feature_names, wanted.feature_names),
        ("kind", found.kind, wanted.kind),
        ("number type", found.dtype, wanted.dtype),
    ):
        if here != there:
            raise ValueError(
                f"{what} differs from {model} in its {trait}: {here}, not {there}; "
                f"all {all_of} must be alike"
            )


def _place(restarts: IdArray, rows: Any) -> Any:
    """Which restart is the last one at or before a row (or each of many)."""
    return np.searchsorted(restarts, rows, side="right") - 1
