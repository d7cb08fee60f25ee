"""Labels of a file's rows, kept as the pass that counts them finds them: no second pass.

Clusters are numbered by their weights, which only the end of that pass knows; so the numbers are
settled when the labels are read back.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mercer._run.types import IdArray
from mercer._run.url import Url
from mercer.rows.source import TILE, spans

KEPT = np.dtype(np.int32)  # of a label that waits for its number


@dataclass(slots=True)
class LabelStore:
    """The labels of one source's rows, in an open file or in memory."""

    source: Any
    file: Any = None  # None: in memory
    numbers: IdArray | None = None  # the final number of each cluster; at the end, that of noise
    labels: IdArray = field(init=False)
    lock: Any = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.labels = np.empty(0 if self.file is not None else self.source.n_rows, np.intp)

    def __setitem__(self, rows: slice, tile: IdArray) -> None:
        """Labels of consecutive rows, by whichever thread has them."""
        if self.file is None:
            self.labels[rows] = tile
            return
        with self.lock:
            self.file.seek(rows.start * KEPT.itemsize)
            self.file.write(tile.astype(KEPT).tobytes())

    def all_labels(self) -> IdArray:
        """Those in memory, with their final numbers."""
        assert self.numbers is not None
        np.take(self.numbers, self.labels, out=self.labels, mode="wrap")
        return self.labels

    def tiles(self) -> Iterator[tuple[int, IdArray]]:
        """(first row, labels) of those in the file, with their final numbers."""
        assert self.numbers is not None
        self.file.seek(0)
        for start, stop in spans(self.source.n_rows, TILE):
            raw = self.file.read((stop - start) * KEPT.itemsize)
            yield start, self.numbers[np.frombuffer(raw, KEPT)]


_store: ContextVar[LabelStore | None] = ContextVar("mercer_labels", default=None)


def store_for(source: Any) -> LabelStore | None:
    """Where labels of this source's rows are wanted; None where only their number counts."""
    store = _store.get()
    return store if store is not None and store.source is source else None


@contextmanager
def keeping_labels(source: Any, out: Any = None) -> Iterator[LabelStore]:
    """Inside, a fit of this source keeps the labels it counts; beside `out`, if that is a path.

    The file has no name and four bytes for each row, and goes with the block.
    """
    if out is None:
        with _used(LabelStore(source)) as store:
            yield store
        return
    is_url = Url.of(out) is not None  # then the system's folder of temporary files is as near
    folder = None if is_url else Path(os.path.realpath(out)).parent
    with tempfile.TemporaryFile(dir=folder) as file, _used(LabelStore(source, file)) as store:
        yield store


@contextmanager
def _used(store: LabelStore) -> Iterator[LabelStore]:
    token = _store.set(store)
    try:
        yield store
    finally:
        _store.reset(token)
