"""Rows of a file by their numbers: each stretch of it gives the ones it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._checkpoint import remembered
from mercer._engine import current_for
from mercer._progress import tell
from mercer._types import FloatArray, IdArray
from mercer.data.rows import Rows, packed, stack, unpacked
from mercer.data.source import Source, rest, spans
from mercer.data.sweep import GROUP, TASKS_PER_WORKER

__all__ = ["gather"]

STAGE = "sample"


def gather(source: Source, ids: IdArray) -> Rows:
    """The rows with these ascending numbers; a pass that engines run and checkpoints remember."""
    rows = unpacked(remembered(STAGE, source, ids, lambda: packed(_gathered(source, ids))))
    rest(source)
    return rows


def _gathered(source: Source, ids: IdArray) -> Rows:
    engine = current_for(source)
    if engine is None or len(ids) == 0:
        return taken(source, ids)
    groups = -(-source.n_rows // (GROUP * TASKS_PER_WORKER * engine.n_workers))
    stretches = [
        span
        for span in spans(source.n_rows, groups * GROUP)
        if np.diff(np.searchsorted(ids, span))[0] > 0
    ]
    tell(STAGE, 0, source.n_rows)
    parts = list(engine.rows(Taking(ids), source, None, stretches))
    tell(STAGE, source.n_rows, source.n_rows)
    return stack(parts)


@dataclass(frozen=True, slots=True)
class Taking:
    """The chosen ones among a stretch of rows."""

    ids: IdArray

    def ready(self) -> Callable[[Source, FloatArray | None, int, int], Rows]:
        return self._take

    def _take(self, source: Source, along: FloatArray | None, start: int, stop: int) -> Rows:
        begin, end = np.searchsorted(self.ids, [start, stop])
        return taken(source, self.ids[begin:end])


def taken(source: Source, ids: IdArray) -> Rows:
    """Rows by their ascending numbers, read in one go where they are neighbours."""
    if len(ids) and ids[-1] - ids[0] == len(ids) - 1:
        return source.read(int(ids[0]), int(ids[-1]) + 1)
    return source.take(ids)
