"""What a fit will hold at once: counted here and nowhere else, before the first pass.

An estimator tells what it will do (`Work`), an approximation how large its factors are, a source
what reading takes. The widest stage is what `fit` asks of the budget and what `plan` tells; blocks
of rows get what the others leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from mercer._run.budget import Budget
from mercer._run.frozen import frozen
from mercer._run.threads import n_threads
from mercer.partitions.resampling import JUDGES
from mercer.rows.distinct import row_hashes, sample_size
from mercer.rows.source import TILE, Source, reading, row_bytes

ALLOCATOR = 1.1  # resident bytes for each that is counted: small things, gaps between large ones
LOOKED_AT = 1000  # rows whose pairs are compared: for the bandwidth, and for trust at the end
ORDERING = 72  # bytes per drawn row while rows are put into an order of their content
FEW_EDGES = 10  # numbers per row of a sparse graph
SHUFFLED = 50  # numpy draws from this many times the sample by a list of all row numbers


Memory: TypeAlias = Callable[[Any, int, int], int]  # of an approximation, rows and itemsize


@frozen
class Sweep:
    """A pass over all rows once a sample has chosen; it works as hard as a label costs."""

    stage: str
    least: int = 1
    most: int = 1


@frozen
class Work:
    """What one kind of estimator does with its rows."""

    approximation: Any
    factor_rows: int  # rows that the factor is made of
    sweeps: tuple[Sweep, ...] = ()
    n_clusters: int = 1  # rows that a trial needs at least
    trial: Any = None  # the estimator for fewer rows, where it cannot be the same
    solving: Memory | None = None  # bytes after the factor is made
    kept: Memory | None = None  # the same: bytes that stay to the end
    sample_rows: int | None = None  # that are kept of the drawn ones; None: all
    wanted_rows: int = 0  # of the sample, for very many clusters
    before: int = 0  # bytes beside the sample, before the factor is made


@frozen
class Needs:
    """Bytes that a fit holds, stage by stage."""

    work: Work
    source: Source
    threads: int
    has_weights: bool
    buffers: int  # bytes of the reader itself
    read_bytes: float  # of each row that is read at once

    @classmethod
    def of(cls, work: Work, source: Source, threads: int, *, has_weights: bool) -> Needs:
        """The reader is asked once: it may have to look into the file."""
        buffers = reading(source, 0)
        read_bytes = (reading(source, TILE) - buffers) / TILE if source.n_rows else 0.0
        return cls(work, source, threads, has_weights, buffers, read_bytes)

    @property
    def resting(self) -> int:
        """What the reader keeps between passes."""
        return int(getattr(self.source, "resting", 0))

    @property
    def n_drawn(self) -> int:
        return sample_size(self.source.n_rows, self.source.n_features, self.work.wanted_rows)

    @property
    def n_sample(self) -> int:
        most = self.work.sample_rows
        return self.n_drawn if most is None else min(most, self.n_drawn)

    def total(self, block_rows: int) -> int:
        """The widest stage, and what the allocator adds."""
        widest = max(self.reading(block_rows), self.drawing(), self.choosing(block_rows))
        return int(ALLOCATOR * widest)

    def reading(self, block_rows: int) -> int:
        """A block of rows; with threads, tiles of the blocks before it."""
        rows = min(block_rows, self.source.n_rows)
        waiting = min((2 * self.threads + 1) * TILE, self.source.n_rows) if self.threads > 1 else 0
        given = 8 * self.source.n_rows if self.has_weights else 0
        return self.buffers + int(self.read_bytes * (rows + waiting)) + given

    def drawing(self) -> int:
        """The sample: as it is drawn, and as it is kept."""
        n_rows, n_drawn = self.source.n_rows, self.n_drawn
        is_all = n_rows <= n_drawn
        numbers = 0 if is_all or n_rows > SHUFFLED * n_drawn else 8 * n_rows
        each = row_bytes(self.source)
        drawn = (each + ORDERING) * n_drawn + self.resting
        return max(numbers + 16 * n_drawn, drawn + max(self.buffers, each * self.n_sample))

    def choosing(self, block_rows: int) -> int:
        """The sample, and the widest of what is done with it and with all rows after it."""
        work, n, d = self.work, self.work.factor_rows, self.source.n_features
        itemsize, approximation = self.source.dtype.itemsize, work.approximation
        near = min(self.n_sample, LOOKED_AT)
        pairs, few_pairs = 8 * near * (near + 64), 8 * near * 2 * 64  # all, and for a few rows
        tile = min(TILE, self.source.n_rows)
        on_tile = approximation.label_memory(n, d, tile) + 16 * tile * (d + 2 * work.n_clusters)
        labelling = self.threads * on_tile
        made = approximation.memory(n, d, itemsize) + (self.threads - 1) * on_tile
        solved = 0 if work.solving is None else work.solving(approximation, n, itemsize)
        kept = 0 if work.kept is None else work.kept(approximation, n, itemsize)
        again = approximation.eigen_memory(min(n, JUDGES), work.n_clusters, 8)
        passes = self.reading(block_rows) + labelling if work.sweeps else 0
        labels = 16 * self.source.n_rows if self.source.in_memory and work.sweeps else 0
        judging = pairs + again if work.n_clusters > 1 else 0
        sample = (row_bytes(self.source) + 24) * self.n_sample + self.resting
        after = kept + labels + max(passes, judging)
        return sample + max(few_pairs, work.before, made, solved, after)


def demand_fit(
    estimator: Any, source: Source, budget: Budget, *, has_weights: bool = False
) -> tuple[Needs, int]:
    """The needs of a fit and the rows to read at a time; BudgetError if it cannot fit."""
    needs = _readable(estimator, source, budget, has_weights=has_weights)
    demand_sample(needs, budget)
    return needs, _block_rows(needs, budget)


def demand_start(
    estimator: Any, source: Source, budget: Budget, *, has_weights: bool
) -> tuple[Needs, int]:
    """The same before a fit, where rows that repeat may make the sample small: see them first.

    A tile of rows is looked at; if some of it are equal, `demand_sample` decides once the distinct
    rows have been counted.
    """
    needs = _readable(estimator, source, budget, has_weights=has_weights)
    if not budget.allows(needs.total(TILE)) and not _has_repeats(source):
        demand_sample(needs, budget)
    return needs, _block_rows(needs, budget)


def demand_sample(needs: Needs, budget: Budget, n_distinct: int | None = None) -> None:
    """Refuse work on the sample that does not fit, with the rank that would."""
    work = needs.work
    if n_distinct is not None:
        n_rows = min(work.factor_rows, n_distinct)
        work = replace(work, factor_rows=n_rows, sample_rows=n_distinct)
        needs = replace(needs, work=work)
    budget.demand(
        needs.total(TILE),
        what=f"{work.approximation!r} on {work.factor_rows:,} rows",
        advice="raise max_memory" + _smaller(needs, budget),
    )


def _readable(estimator: Any, source: Source, budget: Budget, *, has_weights: bool) -> Needs:
    """The needs of a fit whose rows can be read and drawn; else BudgetError."""
    sample_rows = sample_size(source.n_rows, source.n_features)
    work = estimator._planned_work(source, sample_rows)
    needs = Needs.of(work, source, n_threads(estimator.n_jobs), has_weights=has_weights)
    budget.demand(
        needs.reading(TILE),
        what="reading the rows, a chunk or partition at a time,",
        advice="raise max_memory, or save the rows in smaller chunks (x.rechunk, df.repartition; "
        "of Parquet: smaller pages, without dictionaries)",
    )
    budget.demand(
        needs.drawing(),
        what=f"holding {sample_rows:,} rows × {source.n_features:,} features to choose pivots from",
        advice="raise max_memory, pass float32, or fewer columns",
    )
    return needs


def _block_rows(needs: Needs, budget: Budget) -> int:
    """Rows to read at a time: as many as the rest leaves room for, a tile at least."""
    source = needs.source
    block_rows = budget.block_rows(source.n_features * source.dtype.itemsize, TILE)
    while block_rows > TILE and not budget.allows(needs.total(block_rows)):
        block_rows = max(block_rows // 2 // TILE, 1) * TILE
    return block_rows


def _has_repeats(source: Source) -> bool:
    """Are some of the first rows equal?"""
    hashes = row_hashes(source.read(0, min(TILE, source.n_rows)))
    return len(np.unique(hashes)) < len(hashes)


def dense_memory(approximation: Any, n_rows: int, itemsize: int) -> int:
    """F of so many rows, and what it is made of."""
    return int(approximation.dense_memory(n_rows, itemsize))


def kmeans_memory(n_clusters: int, approximation: Any, n_rows: int, itemsize: int) -> int:
    """k-means on the rows of F: F, the rows it starts from, labels and bounds, a tile of scores."""
    some = min(n_rows, max(10_000, 20 * n_clusters))
    width = approximation.width(n_rows)
    tile = min(n_rows, TILE) * (width * itemsize + 24 * n_clusters)
    running = some * width * itemsize + 40 * n_rows + tile
    held = approximation.dense_bytes(n_rows, itemsize) + running
    return int(max(held, approximation.dense_memory(n_rows, itemsize)))


def eigen_memory(n_vectors: int, approximation: Any, n_rows: int, itemsize: int) -> int:
    """Leading directions of a factor, and clusters in them."""
    return int(approximation.eigen_memory(n_rows, n_vectors, itemsize))


def component_memory(approximation: Any, n_rows: int, itemsize: int) -> int:
    """Principal directions of the rows of F."""
    width = approximation.width(n_rows)
    tiles = 3 * 8 * min(n_rows, TILE) * width + 5 * 8 * width**2
    held = approximation.dense_bytes(n_rows, itemsize) + tiles + 8 * n_rows
    return int(max(held, approximation.dense_memory(n_rows, itemsize)))


def point_memory(n_vectors: int, approximation: Any, n_rows: int, itemsize: int) -> int:
    """Coordinates of the sample's rows, which `labels_path` cuts, or their edges to landmarks."""
    return 8 * n_rows * max(n_vectors, FEW_EDGES)


def _smaller(needs: Needs, budget: Budget) -> str:
    """Which rank would fit, in words; nothing where none would."""
    rank = needs.work.approximation.fixed_rank()
    if rank is None:
        return ""

    def fits(smaller: int) -> bool:
        approximation = clone(needs.work.approximation).set_params(rank=smaller)
        work = replace(needs.work, approximation=approximation)
        return budget.allows(replace(needs, work=work).total(TILE))

    low, high = 0, min(rank, needs.work.factor_rows)  # what fits, and what does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return f", or lower the rank to about {low}" if low else ""
