"""Rows in memory (or memory-mapped): dense arrays, scipy CSR, column blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.rows.rows import BlockRows, Rows, n_bytes
from mercer.rows.source import Source, reading, rest, row_bytes


def working_dtype(dtype: Any) -> np.dtype[Any]:
    """float32 stays float32, half and int8 become float32, all other numbers are float64."""
    native = np.dtype(dtype).newbyteorder("=")
    return np.dtype(np.float32 if native in (np.float16, np.float32, np.int8) else np.float64)


@frozen
class MemorySource:
    """One table that the caller holds (or maps); converted block by block, never as a whole."""

    X: Any
    feature_names: tuple[str, ...] | None = None
    in_memory: bool = True

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return working_dtype(self.X.dtype)


@frozen
class ArraySource(MemorySource):
    """A two-dimensional array of numbers."""

    def reading(self, n_rows: int) -> int:
        """Bytes held while so many rows are read: none where they are not copied."""
        is_view = self.X.dtype == self.dtype and self.X.flags.c_contiguous
        return 0 if is_view else n_rows * self.n_features * self.dtype.itemsize

    def read(self, start: int, stop: int) -> FloatArray:
        return np.ascontiguousarray(self.X[start:stop], dtype=self.dtype)

    def take(self, ids: IdArray) -> FloatArray:
        return np.ascontiguousarray(self.X[ids], dtype=self.dtype)


@frozen
class CSRSource(MemorySource):
    """A checked scipy CSR: indices within bounds and sorted, no duplicates."""

    @property
    def row_bytes(self) -> int:
        """What a row of average length takes."""
        return n_bytes(self.X) // max(self.n_rows, 1) + 1

    def read(self, start: int, stop: int) -> sp.csr_array:
        return sp.csr_array(self.X[start:stop], dtype=self.dtype)

    def take(self, ids: IdArray) -> sp.csr_array:
        return sp.csr_array(self.X[ids], dtype=self.dtype)


@frozen
class BlockSource:
    """Several sources with the same rows, for kernels that act on one block of columns."""

    names: tuple[str, ...]
    sources: tuple[Source, ...]

    feature_names = None

    @property
    def n_rows(self) -> int:
        return self.sources[0].n_rows

    @property
    def n_features(self) -> int:
        return sum(source.n_features for source in self.sources)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*(source.dtype for source in self.sources))

    @property
    def in_memory(self) -> bool:
        return all(source.in_memory for source in self.sources)

    @property
    def row_bytes(self) -> int:
        """What a row takes in all blocks."""
        return sum(map(row_bytes, self.sources))

    def reading(self, n_rows: int) -> int:
        """Bytes held while so many rows are read."""
        return sum(reading(source, n_rows) for source in self.sources)

    def read(self, start: int, stop: int) -> Rows:
        return BlockRows(self.names, tuple(s.read(start, stop) for s in self.sources))

    def take(self, ids: IdArray) -> Rows:
        return BlockRows(self.names, tuple(source.take(ids) for source in self.sources))

    def rest(self) -> None:
        """Release what only reading on needs."""
        for source in self.sources:
            rest(source)
