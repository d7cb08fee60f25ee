"""A pass over all rows: read in blocks, worked on in tiles, results in tile order.

The plain loop and every engine run the same function on the same tiles, and sums have one shape:
tiles are added up in groups counted from row 0, groups in order. So results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from itertools import chain, islice
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from mercer._run.checkpoint import is_numbers, recall
from mercer._run.engine import Engine, current_for
from mercer._run.frozen import frozen
from mercer._run.printable import PrintableErrors
from mercer._run.progress import tell
from mercer._run.tally import WORK
from mercer._run.threads import in_order
from mercer._run.types import FloatArray
from mercer.rows.rows import Rows, part
from mercer.rows.source import TILE, Source, row_bytes, spans

GROUP = 32 * TILE  # rows whose results are added up first: 262,144
TASKS_PER_WORKER = 8  # enough to keep all busy to the end ...
MOST_GROUPS = 4  # ... but not so small that sending them takes longer than the work
PART_ROWS = MOST_GROUPS * GROUP  # whose labels go to one file: 1,048,576
RESULT_BYTES = 2**25  # of one task, where each row has a result

Result = TypeVar("Result")
Value = TypeVar("Value")
TileFunction: TypeAlias = Callable[[Rows, int, FloatArray | None], Result]
Combined = TypeVar("Combined", covariant=True)


class Pass(Protocol[Combined]):
    """Makes the function of tiles whose results are combined, and can check a result."""

    def __call__(self) -> TileFunction[Combined]: ...

    def fits(self, result: Any, source: Source, along: FloatArray | None) -> bool:
        """Whether this can be the combined result over a source; may raise where it cannot."""
        ...


def sweep(
    source: Source,
    make: Callable[[], TileFunction[Result]],
    *,
    along: FloatArray | None = None,
    deliver: Callable[[Result], Any] | None = None,
    block_rows: int,
    threads: int = 1,
    stage: str,
    row_bytes: int = 8,
) -> Iterator[Any]:
    """``function(rows, first_row, along)`` for each tile of the source, in order.

    `make` gives the function where it is to run: picklable, and the function must not depend on
    anything but its arguments, so that any engine may run it. `along` has one number per row
    (weights), cut as the rows are. `deliver` is called with each result in this process, by the
    tile's own thread where it has one; what it returns replaces the result. `row_bytes` is what
    the result takes for each row.

    Blocks of whole tiles are read by the calling thread and worked on by `threads`; or an engine
    reads and works on longer blocks elsewhere.
    """
    engine = current_for(source)
    if engine is None:
        yield from _sweep_here(source, make(), along, deliver, block_rows, threads, stage)
        return
    n_tiles = -(-source.n_rows // TILE)
    tiles = n_tiles // (TASKS_PER_WORKER * engine.n_workers)
    tiles = min(tiles, MOST_GROUPS * GROUP // TILE, RESULT_BYTES // (row_bytes * TILE))
    task = BlockTask(make, block_rows, stage=stage)
    for results in _sweep_there(engine, task, source, along, max(tiles, 1) * TILE, stage):
        yield from results if deliver is None else map(deliver, results)


def sweep_parts(
    source: Source,
    make: Callable[[], TileFunction[Result]],
    finish: Callable[[int, list[Result]], Value],
    *,
    block_rows: int,
    threads: int = 1,
    stage: str,
) -> Iterator[Value]:
    """``finish(first_row, results)`` of the tiles of a part of the rows each, in order.

    It is picklable and called where the results were found, so that an engine sends back only what
    it returns: a worker that is lost may have called it already for the same rows.
    """
    engine = current_for(source)
    if engine is None:
        tiles = _sweep_here(source, make(), None, None, block_rows, threads, stage)
        for start, stop in spans(source.n_rows, PART_ROWS):
            yield finish(start, list(islice(tiles, -(-(stop - start) // TILE))))
        tuple(tiles)  # the last word of the progress
        return
    tiles_each = -(-source.n_rows // TILE) // (TASKS_PER_WORKER * engine.n_workers)
    task_rows = min(max(tiles_each, 1) * TILE, PART_ROWS)
    task = BlockTask(make, block_rows, finish=finish, stage=stage)
    yield from _sweep_there(engine, task, source, None, task_rows, stage)


def total(
    source: Source,
    make: Pass[Result],
    combine: Callable[[Result, Result], Result],
    *,
    along: FloatArray | None = None,
    block_rows: int,
    threads: int = 1,
    stage: str,
) -> Result:
    """The results of all tiles, combined in a fixed shape; a pass that checkpoints keep.

    The result is a tuple of arrays and numbers.
    """

    def compute() -> Result:
        engine = current_for(source)
        if engine is None:
            tiles = _sweep_here(source, make(), along, None, block_rows, threads, stage)
            return folded(tiles, combine)
        n_groups = -(-source.n_rows // GROUP)
        groups = min(max(n_groups // (TASKS_PER_WORKER * engine.n_workers), 1), MOST_GROUPS)
        task = BlockTask(make, block_rows, combine, stage=stage)
        sums = _sweep_there(engine, task, source, along, groups * GROUP, stage)
        return reduce(combine, chain.from_iterable(sums))

    fits = partial(make.fits, source=source, along=along)
    return recall(stage, source, (make, along), compute, fits)


def is_weights(value: Any, n_clusters: int, source: Source, along: FloatArray | None) -> bool:
    """Whether these are the weights of clusters that share all rows of a source."""
    every = float(source.n_rows) if along is None else float(along.sum())
    is_shared = is_numbers(value, (n_clusters,)) and bool((value >= 0).all())
    return is_shared and bool(np.isclose(value.sum(), every, rtol=1e-6, atol=0.0))


def folded(results: Iterable[Value], combine: Callable[[Value, Value], Value]) -> Value:
    """The results of consecutive tiles from row 0 on, combined in groups, then the groups."""
    return reduce(combine, _groups(results, combine))


def add_each(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sums of several things at once."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


@frozen
class BlockTask:
    """The tiles of a block of rows: a list of their results, or of their groups' sums.

    With `finish`, what becomes of that list and the first row.
    """

    make: Callable[[], TileFunction[Any]]
    block_rows: int  # read at once
    combine: Callable[[Any, Any], Any] | None = None
    finish: Callable[[int, list[Any]], Any] | None = None
    stage: str = "rows"  # what dashboards call it

    def ready(self) -> Callable[[Source, FloatArray | None, int, int], Any]:
        function = self.make()

        def run(source: Source, along: FloatArray | None, start: int, stop: int) -> Any:
            blocks = ((start + a, start + b) for a, b in spans(stop - start, self.block_rows))
            tiles = chain.from_iterable(_tiles(source, along, *block) for block in blocks)
            results = (function(*tile) for tile in tiles)
            found = list(results if self.combine is None else _groups(results, self.combine))
            return found if self.finish is None else self.finish(start, found)

        return run


def _sweep_here(
    source: Source,
    function: TileFunction[Any],
    along: FloatArray | None,
    deliver: Callable[[Any], Any] | None,
    block_rows: int,
    threads: int,
    stage: str,
) -> Iterator[Any]:
    def tiles(span: tuple[int, int]) -> Iterator[Any]:
        tell(stage, span[0], source.n_rows)
        return _tiles(source, along, *span)

    def work(tile: Any) -> Any:
        result = function(*tile)
        return result if deliver is None else deliver(result)

    every_tile = chain.from_iterable(map(tiles, spans(source.n_rows, block_rows)))
    yield from in_order(work, every_tile, threads)
    _count_read(source)
    tell(stage, source.n_rows, source.n_rows)


def _sweep_there(
    engine: Engine,
    task: Any,
    source: Source,
    along: FloatArray | None,
    task_rows: int,
    stage: str,
) -> Iterator[Any]:
    tell(stage, 0, source.n_rows)
    blocks = list(spans(source.n_rows, task_rows))
    results = engine.rows(task, source, along, blocks)
    for (_, stop), result in zip(blocks, results, strict=True):
        tell(stage, stop, source.n_rows)
        yield result
    _count_read(source)


def _count_read(source: Source) -> None:
    """Count the rows of a whole pass, unless they were in memory."""
    if not source.in_memory:
        WORK["bytes read"].add(source.n_rows * row_bytes(source))


def _tiles(
    source: Source, along: FloatArray | None, start: int, stop: int
) -> Iterator[tuple[Rows, int, FloatArray | None]]:
    """The tiles of one block, which is read at once: rows, first row, what goes along."""
    with PrintableErrors():
        block = source.read(start, stop)
    for a, b in spans(stop - start, TILE):
        yield part(block, a, b), start + a, None if along is None else along[start + a : start + b]


def _groups(results: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Iterator[Any]:
    results = iter(results)
    for first in results:
        yield reduce(combine, islice(results, GROUP // TILE - 1), first)
