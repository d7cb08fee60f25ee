"""Sources that are read forwards, one block after another, and restarted on going back."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.types import IdArray
from mercer.rows.rows import Rows, part, stack, take

SPARSE_ROW = 64  # bytes


@frozen
class Layout:
    """What all blocks of a source have in common."""

    n_features: int
    dtype: np.dtype[Any]
    feature_names: tuple[str, ...] | None = None
    is_sparse: bool = False

    def no_rows(self) -> Rows:
        make: Any = sp.csr_array if self.is_sparse else np.empty
        return make((0, self.n_features), dtype=self.dtype)

    def join(self, blocks: Iterator[Rows], n_rows: int) -> Rows:
        """The blocks under each other, copied: their owner may fill the same memory again.

        Dense ones go straight to their place: together they are held once, not twice.
        """
        if self.is_sparse:
            return stack([block.copy() for block in blocks])
        out, row = np.empty((n_rows, self.n_features), self.dtype), 0
        for block in blocks:
            out[row : row + len(block)] = block
            row += len(block)
        return out

    def check_same(self, found: Layout, what: str, *, model: str, all_of: str) -> None:
        """Refuse a block (`what`) that differs from the model of all of them."""
        kinds = {True: "sparse", False: "dense"}
        for trait, here, there in (
            ("number of columns", found.n_features, self.n_features),
            ("column names", found.feature_names, self.feature_names),
            ("kind", kinds[found.is_sparse], kinds[self.is_sparse]),
            ("number type", found.dtype, self.dtype),
        ):
            if here != there:
                raise ValueError(
                    f"{what} differs from {model} in its {trait}: {here}, not {there}; "
                    f"all {all_of} must be alike"
                )


class Cursor:
    """The position of a forward reader, which serves one thread at a time.

    It pickles as a new one: neither the lock nor an open file travels to another process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.close()

    def __reduce__(self) -> tuple[type[Cursor], tuple[()]]:
        return Cursor, ()

    def close(self) -> None:
        """Forget the position and release what was open."""
        self._blocks: Iterator[Rows] = iter(())
        self._block: Rows = np.empty((0, 0))
        self._first = -1  # number of the first row of the block; -1 where nothing is open
        self._owner = os.getpid()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Exclusive use of the cursor; after an error the next reader restarts."""
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
            end = self._first + self._block.shape[0]
            if start < end:
                end = min(end, stop)
                yield start, part(self._block, start - self._first, end - self._first)
                start = end
            else:
                self._advance(source)
        if stop == source.n_rows:
            self._finish(source)

    def _seek(self, source: ForwardSource, start: int) -> None:
        """Read on if the row lies ahead, else start at the last restart before it."""
        origin = int(source.restarts[source.restart_of(start)])
        is_own = self._owner == os.getpid()  # a forked file shares its position with its parent
        is_ahead = self._first <= start and origin <= self._first + self._block.shape[0]
        if not (is_own and is_ahead):
            self.close()
            self._blocks, self._first = source.blocks(origin), origin

    def _advance(self, source: ForwardSource) -> None:
        self._first += self._block.shape[0]
        self._block = source.layout.no_rows()  # free the old block before the next is made
        try:
            self._block = next(self._blocks)
        except StopIteration:
            raise ValueError(source.changed(f"{self._first} rows")) from None

    def _finish(self, source: ForwardSource) -> None:
        """No rows may follow the last one."""
        is_over = self._first + self._block.shape[0] > source.n_rows
        more = is_over or any(block.shape[0] for block in self._blocks)
        self.close()
        if more:
            raise ValueError(source.changed(f"more than {source.n_rows} rows"))


@frozen(eq=False, slots=False)
class ForwardSource:
    """A source that is read forwards, in blocks of any length; the base of its kinds.

    Reading on costs nothing extra; going back starts again at the last of the `restarts` before
    the row. Threads wait for each other.
    """

    layout: Layout = field(init=False, repr=False)
    n_rows: int = field(init=False)
    restarts: IdArray = field(init=False, repr=False)  # rows that reading can start at, from 0
    cursor: Cursor = field(init=False, repr=False, default_factory=Cursor)

    in_memory = False

    def blocks(self, start: int) -> Iterator[Rows]:
        """All rows from one of the restarts on, in order; empty blocks are legal."""
        raise NotImplementedError

    def changed(self, found: str) -> str:
        """The error message for a pass that differs from the first."""
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
    def block_bytes(self) -> int:
        """What must be held at a time to read any row (0: little)."""
        return 0

    @property
    def row_bytes(self) -> int:
        """What a row takes; a sparse one at least, for its length is not known before."""
        return SPARSE_ROW if self.layout.is_sparse else self.n_features * self.dtype.itemsize

    @property
    def buffers(self) -> int:
        """Bytes that the reader itself holds: a block, and what it is made from."""
        return 2 * self.block_bytes

    def reading(self, n_rows: int) -> int:
        """Bytes held while so many rows are read, including the rows."""
        return self.buffers + n_rows * self.row_bytes

    def read(self, start: int, stop: int) -> Rows:
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        if start >= stop:
            return self.layout.no_rows()
        with self.cursor.hold():
            blocks = (rows for _, rows in self.cursor.walk(self, start, stop))
            return self.layout.join(blocks, stop - start)

    def take(self, ids: IdArray) -> Rows:
        if len(ids) == 0:
            return self.layout.no_rows()
        with self.cursor.hold():
            cuts = np.flatnonzero(np.diff(self.restart_of(ids))) + 1
            blocks = (rows for near in np.split(ids, cuts) for rows in self._take_near(near))
            return self.layout.join(blocks, len(ids))

    def rest(self) -> None:
        """Release what only reading on from here needs: open files, buffers, a block."""
        with self.cursor.hold():
            self.cursor.close()

    def restart_of(self, rows: Any) -> Any:
        """Which restart is the last one at or before a row (or each of many)."""
        return np.searchsorted(self.restarts, rows, side="right") - 1

    def _take_near(self, ids: IdArray) -> Iterator[Rows]:
        for first, rows in self.cursor.walk(self, int(ids[0]), int(ids[-1]) + 1):
            begin, end = np.searchsorted(ids, [first, first + rows.shape[0]])
            if begin < end:
                yield take(rows, ids[begin:end] - first)

    def _set(self, **facts: Any) -> None:
        """Set what opening found, once, from `__post_init__`."""
        for name, fact in facts.items():
            object.__setattr__(self, name, fact)
