"""A pass over all rows: read in blocks, worked on in tiles, results in tile order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeVar

from mercer._progress import tell
from mercer._threads import in_order
from mercer.data.rows import Rows, part
from mercer.data.source import TILE, Source, spans

__all__ = ["sweep"]

Result = TypeVar("Result")


def sweep(
    source: Source,
    function: Callable[[Rows, int], Result],
    *,
    block_rows: int,
    threads: int = 1,
    stage: str,
) -> Iterator[Result]:
    """``function(rows, first_row)`` for each tile of the source, in order.

    Blocks of whole tiles are read by the calling thread; tiles are worked on by `threads`. The
    function must not depend on anything but its arguments, so any engine may run it.
    """

    def tiles(span: tuple[int, int]) -> Iterator[tuple[Rows, int]]:
        start, stop = span
        block = source.read(start, stop)
        tell(stage, start, source.n_rows)
        for a, b in spans(stop - start, TILE):
            yield part(block, a, b), start + a

    every_tile = chain.from_iterable(map(tiles, spans(source.n_rows, block_rows)))
    yield from in_order(lambda tile: function(*tile), every_tile, threads)
    tell(stage, source.n_rows, source.n_rows)
