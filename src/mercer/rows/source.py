"""Where rows live: the protocol that every reader meets, and the tiles that arithmetic runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mercer._run.types import IdArray
from mercer.rows.rows import Rows

TILE = 8192  # rows per unit of arithmetic, counted from row 0, for any block size or thread count


@runtime_checkable
class Source(Protocol):
    """Rows that can be read by position, as often as needed. Picklable.

    `read` and `take` give rows in a floating type (`dtype`): dense arrays, CSR with sorted
    indices, or column blocks. They check what they read (a truncated file, a changed length), but
    not that the values are finite: `rows.summary` does that in its pass. A source may also have a
    method ``reading(n_rows)``, the bytes that reading so many rows holds, where that is more than
    the rows themselves (a reader's buffers) or less (rows that are not copied); ``row_bytes``, what
    a row takes where it is not dense; and ``rest()``, which releases what only reading on needs.
    """

    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def feature_names(self) -> tuple[str, ...] | None: ...
    @property
    def in_memory(self) -> bool:
        """Whether the caller already holds all rows in memory."""
        ...

    def read(self, start: int, stop: int) -> Rows:
        """The rows start to stop."""
        ...

    def take(self, ids: IdArray) -> Rows:
        """The rows with these (ascending) numbers."""
        ...


def reading(source: Any, n_rows: int) -> int:
    """Bytes that a source holds while so many rows are read, including the rows."""
    if hasattr(source, "reading"):
        return int(source.reading(n_rows))
    return n_rows * row_bytes(source)


def row_bytes(source: Any) -> int:
    """Bytes of a row in memory."""
    if hasattr(source, "row_bytes"):
        return int(source.row_bytes)
    return int(source.n_features * source.dtype.itemsize)


def rest(source: Any) -> None:
    """Release the buffers of a source that is not read for a while."""
    if hasattr(source, "rest"):
        source.rest()


def spans(n_rows: int, block_rows: int = TILE) -> Iterator[tuple[int, int]]:
    """Consecutive blocks of rows, the last one cut at `n_rows`.

    Parameters
    ----------
    n_rows : int
        How many rows there are.
    block_rows : int, default=8192
        Rows of a block: whole tiles.

    Yields
    ------
    start, stop : int
    """
    for start in range(0, n_rows, block_rows):
        yield start, min(start + block_rows, n_rows)
