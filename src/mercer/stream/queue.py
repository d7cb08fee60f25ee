"""The queue of a stream: rows that are kept until there are enough for a batch."""

from __future__ import annotations

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray
from mercer.rows.rows import Rows, part, stack


@frozen
class Queue(Record):
    """Raw rows in the order they came, and their weights; first in, first out."""

    pieces: tuple[Rows, ...] = stored("tuple of (*, d) rows", ())
    weights: tuple[FloatArray, ...] = stored("tuple of (*,) float64, finite, >= 0", ())

    def sizes(self) -> dict[str, int]:
        """d: columns, if there are rows."""
        return {"d": int(self.pieces[0].shape[1])} if self.pieces else {}

    def check(self) -> None:
        n_rows = [rows.shape[0] for rows in self.pieces]
        is_weighted = n_rows == [len(weights) for weights in self.weights]
        expect(is_weighted, "the weights of the queue do not match its rows")

    def __len__(self) -> int:
        return sum(len(piece) for piece in self.weights)

    def push(self, rows: Rows, weights: FloatArray | None) -> Queue:
        """The queue with these rows at its end (which nobody else may change)."""
        counted = np.ones(rows.shape[0]) if weights is None else weights
        return Queue((*self.pieces, rows), (*self.weights, counted))

    def first(self, n_rows: int) -> tuple[Rows, FloatArray]:
        """The first rows and their weights, which stay in the queue."""
        n_pieces = int(np.searchsorted(np.cumsum([len(w) for w in self.weights]), n_rows)) + 1
        rows = part(stack(self.pieces[:n_pieces]), 0, n_rows)
        return rows, np.concatenate(self.weights[:n_pieces])[:n_rows]

    def drop(self, n_rows: int) -> Queue:
        """The queue without its first rows."""
        pieces, weights, gone = list(self.pieces), list(self.weights), n_rows
        while gone and len(weights[0]) <= gone:
            gone -= len(weights.pop(0))
            pieces.pop(0)
        if gone:
            pieces[0], weights[0] = part(pieces[0], gone, len(weights[0])), weights[0][gone:]
        return Queue(tuple(pieces), tuple(weights))

    def merge(self) -> Queue:
        """The same rows in one array, as a file keeps them."""
        if len(self.pieces) < 2:
            return self
        return Queue((stack(self.pieces),), (np.concatenate(self.weights),))
