"""Products Z Zᵀ v from bin numbers alone, with several coarse grids read as one.

A grid of few bins costs as much per row as one of many. Joined, the cells of several grids are
still few, so one number per row stands for its bins in all of them: sums over cells are made once,
and the sums over each grid's bins come from the cells. Exact, and 2-4 times fewer numbers to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._run.lazy import LazyModule
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray

_jit = LazyModule("mercer.factors._binning_jit")

MOST_CELLS = 4096  # of joined grids: their sums fit into the first cache
ROWS_PER_CELL = 4  # with fewer, going over the cells costs more than is won
GROUPS = 8  # of bundles; their sums are added in order, so threads do not change the bits
AT_ONCE = 4  # bundles that one loop goes through


@dataclass(frozen=True, slots=True)
class Bundles:
    """Grids that are read as one: of each bundle, a cell for every row."""

    ids: Any  # (·, n) uint16 or int32
    rows: IdArray  # (T,) which of the ids are bundle t's
    starts: IdArray  # (T + 1,) where its grids' widths begin
    widths: IdArray  # values of each digit of a cell, the last of them for "in no kept bin"

    def __len__(self) -> int:
        return len(self.rows)

    def most_cells(self) -> int:
        sizes = np.multiply.reduceat(self.widths, self.starts[:-1]) if len(self) else [1]
        return int(np.max(sizes))

    def ends(self) -> IdArray:
        """Where groups of bundles end: whole fours."""
        fours = -(-len(self) // AT_ONCE)
        ends = AT_ONCE * (np.arange(GROUPS + 1) * fours // GROUPS)
        return np.minimum(ends, len(self))


def bundled(ids: Any, n_bins: IdArray) -> tuple[Bundles, Bundles]:
    """Grids joined, the coarsest first, while their cells are few; and those left alone."""
    n, widths = ids.shape[1], np.asarray(n_bins, np.int64) + 1
    most = min(MOST_CELLS, n // ROWS_PER_CELL)
    groups: list[list[int]] = []
    cells = most + 1
    for g in np.argsort(widths, kind="stable"):
        cells *= int(widths[g])
        if cells > most:
            groups.append([])
            cells = int(widths[g])
        groups[-1].append(int(g))
    shared = [group for group in groups if len(group) > 1]
    alone = [group for group in groups if len(group) == 1]
    joined = np.zeros((len(shared), n), np.uint16)
    for t, group in enumerate(shared):
        for g in group:
            _jit.join(ids[g], widths[g], joined[t])
    rows = np.array([g for (g,) in alone], np.int64)
    return (
        _bundles(joined, np.arange(len(shared)), shared, widths),
        _bundles(ids, rows, alone, widths),
    )


def _bundles(ids: Any, rows: IdArray, groups: list[list[int]], widths: IdArray) -> Bundles:
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    digits = np.array([widths[g] for group in groups for g in group], np.int64)
    return Bundles(ids, np.asarray(rows, np.int64), starts, digits)


def neighbor_sums(kinds: tuple[Bundles, ...], v: FloatArray, threads: int = 1) -> FloatArray:
    """Σ over grids of Z_g(Z_gᵀv), Z_g having a one in each row's kept bin."""
    ends = [kind.ends() for kind in kinds]
    most = max(kind.most_cells() for kind in kinds)

    def group(number: int) -> FloatArray:
        tables, rests, parts = np.empty((AT_ONCE, most)), np.empty(2 * most), np.empty(2 * most)
        out = np.zeros_like(v)
        for kind, end in zip(kinds, ends, strict=True):
            first, last = end[number], end[number + 1]
            if first < last:
                grids = kind.ids, kind.rows, kind.starts, kind.widths
                _jit.add_neighbor_sums(*grids, first, last, v, tables, rests, parts, out)
        return out

    total = np.zeros_like(v)
    for part in in_order(group, range(GROUPS), threads):
        total += part
    return total


def parts_of_rows(ids: Any, n_bins: IdArray, is_tied: Any) -> IdArray:
    """The part of the graph that each row is in: its first row. Rows without ties: their own.

    The coarsest grids tie most, so it is seen early that there is but one part.
    """
    parents = np.arange(ids.shape[1])
    firsts = np.empty(int(np.max(n_bins)), np.int64)
    n_parts = int(np.sum(is_tied))
    for g in np.argsort(n_bins, kind="stable"):
        if n_parts == 1:
            break
        n_parts -= _jit.unite_bins(ids[g], n_bins[g], parents, firsts)
    while not np.array_equal(parents, parents[parents]):
        parents = parents[parents]
    return parents
