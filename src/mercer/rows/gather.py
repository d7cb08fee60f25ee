"""Rows by their numbers, gathered block by block by whatever engine runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.checkpoint import is_numbers, recall
from mercer._run.engine import current_for
from mercer._run.frozen import frozen
from mercer._run.progress import tell
from mercer._run.types import FloatArray, IdArray
from mercer.rows.inputs import as_source
from mercer.rows.rows import BlockRows, Rows, pack_rows, part, stack, unpack_rows
from mercer.rows.source import Source, rest, spans
from mercer.rows.sweep import GROUP, TASKS_PER_WORKER

STAGE = "sample"


def gather(source: Source, ids: IdArray) -> Rows:
    """The rows with these ascending numbers; a pass that engines run and checkpoints keep."""
    kept = recall(
        STAGE,
        source,
        ids,
        lambda: pack_rows(_gather(source, ids)),
        lambda found: _are_rows(found, source, ids),
    )
    rows = unpack_rows(kept)
    rest(source)
    return rows


def _are_rows(kept: tuple[Any, ...], source: Source, ids: IdArray) -> bool:
    """Whether rows that were kept are like those of the source, and the first is among them."""
    rows = unpack_rows(kept)
    if len(pack_rows(rows)) != len(kept):
        return False
    if len(ids) == 0:
        return bool(rows.shape[0] == 0)
    first = take_rows(source, ids[:1])
    if not _is_table_like(rows, first, len(ids)):
        return False
    pairs = zip(pack_rows(part(rows, 0, 1)), pack_rows(first), strict=True)
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def _is_table_like(rows: Rows, first: Rows, n_rows: int) -> bool:
    """The kind, columns and type of the first row, and so many rows, all finite."""
    if isinstance(first, BlockRows) or isinstance(rows, BlockRows):
        pairs = zip(rows.parts, first.parts, strict=True)
        return rows.names == first.names and all(_is_table_like(*pair, n_rows) for pair in pairs)
    if not sp.issparse(first):
        return is_numbers(rows, (n_rows, first.shape[1]), first.dtype)
    is_sound = rows.has_canonical_format and is_numbers(rows.data, (rows.nnz,), first.dtype)
    return is_sound and as_source(rows).n_rows == n_rows  # which checks the indices, too


def _gather(source: Source, ids: IdArray) -> Rows:
    engine = current_for(source)
    if engine is None or len(ids) == 0:
        return take_rows(source, ids)
    groups = -(-source.n_rows // (GROUP * TASKS_PER_WORKER * engine.n_workers))
    blocks = [
        span
        for span in spans(source.n_rows, groups * GROUP)
        if np.diff(np.searchsorted(ids, span))[0] > 0
    ]
    tell(STAGE, 0, source.n_rows)
    parts = list(engine.rows(Taking(ids), source, None, blocks))
    tell(STAGE, source.n_rows, source.n_rows)
    return stack(parts)


@frozen
class Taking:
    """The chosen ones among a block of rows."""

    ids: IdArray

    def ready(self) -> Callable[[Source, FloatArray | None, int, int], Rows]:
        return self._take

    def _take(self, source: Source, along: FloatArray | None, start: int, stop: int) -> Rows:
        begin, end = np.searchsorted(self.ids, [start, stop])
        return take_rows(source, self.ids[begin:end])


def take_rows(source: Source, ids: IdArray) -> Rows:
    """Rows by their ascending numbers, read at once where they are neighbours."""
    if len(ids) and ids[-1] - ids[0] == len(ids) - 1:
        return source.read(int(ids[0]), int(ids[-1]) + 1)
    return source.take(ids)
