"""Rows of X in memory: a dense array, a scipy CSR, or column blocks with the same rows.

Everything above this file handles the three alike through the few verbs here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray, IdArray


@frozen
class BlockRows(Record):
    """The same rows in several column blocks, e.g. CSR text beside dense image features."""

    is_table = True

    names: tuple[str, ...] = stored("tuple of text")
    parts: tuple[Any, ...] = stored("tuple of (n, *) table")  # FloatArray or CSR each

    def check(self) -> None:
        is_named = len(self.parts) == len(set(self.names)) == len(self.names) > 0
        expect(is_named, "the column blocks of BlockRows do not match their names")

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts[0].shape[0], sum(part.shape[1] for part in self.parts)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*(part.dtype for part in self.parts))

    def __len__(self) -> int:
        return int(self.shape[0])

    def block(self, key: str | int) -> Any:
        """One block, by its name or its number."""
        return self.parts[self.names.index(key) if isinstance(key, str) else key]

    def each(self, verb: Any, *arguments: Any) -> BlockRows:
        """The same verb on every block."""
        return BlockRows(self.names, tuple(verb(part, *arguments) for part in self.parts))


Rows: TypeAlias = Any  # FloatArray | scipy CSR | BlockRows, distinguished by the verbs below


def n_bytes(X: Rows) -> int:
    """Memory held by the rows."""
    if isinstance(X, BlockRows):
        return sum(n_bytes(part) for part in X.parts)
    if sp.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def take(X: Rows, ids: IdArray) -> Rows:
    """A copy of the rows with these numbers, in this order."""
    if isinstance(X, BlockRows):
        return X.each(take, ids)
    return X[ids]


def part(X: Rows, start: int, stop: int) -> Rows:
    """The rows start to stop (a view where the array is dense)."""
    if isinstance(X, BlockRows):
        return X.each(part, start, stop)
    return X[start:stop]


def stack(tables: Sequence[Rows]) -> Rows:
    """The rows of several tables under each other."""
    first = tables[0]
    if len(tables) == 1:
        return first
    if isinstance(first, BlockRows):
        columns = zip(*(table.parts for table in tables), strict=True)
        return BlockRows(first.names, tuple(stack(list(column)) for column in columns))
    return sp.vstack(tables, format="csr") if sp.issparse(first) else np.concatenate(tables)


def cast(X: Rows, dtype: Any) -> Rows:
    """The rows in another floating type (no copy where they have it)."""
    if isinstance(X, BlockRows):
        return X.each(cast, dtype)
    return X.astype(dtype, copy=False)


def pad(X: FloatArray, n_rows: int) -> FloatArray:
    """Dense rows followed by zeros up to `n_rows`, so that a product always has one shape."""
    if len(X) == n_rows:
        return X
    padded = np.zeros((n_rows, X.shape[1]), X.dtype)
    padded[: len(X)] = X
    return padded


def pack_rows(X: Rows) -> tuple[Any, ...]:
    """The rows as plain arrays, for `unpack_rows`: a table, those of a CSR, or of each block."""
    if isinstance(X, BlockRows):
        blocks = [pack_rows(part) for part in X.parts]
        return "blocks", X.names, tuple(map(len, blocks)), *chain.from_iterable(blocks)
    if sp.issparse(X):
        return "csr", X.shape[1], X.data, X.indices, X.indptr
    return "table", X


def unpack_rows(arrays: tuple[Any, ...]) -> Rows:
    """The rows that `pack_rows` took apart."""
    kind, *parts = arrays
    if kind == "table":
        return parts[0]
    if kind == "csr":
        n_columns, data, indices, indptr = parts
        return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, int(n_columns)))
    names, lengths, *parts = parts
    arrays_left = iter(parts)
    blocks = tuple(unpack_rows(tuple(islice(arrays_left, n))) for n in lengths)
    return BlockRows(tuple(names), blocks)
