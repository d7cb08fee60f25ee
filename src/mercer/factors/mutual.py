"""The sparse kernel of mutual nearest neighbours on a buffer of rows ([chitta2015], eq. 4).

Two rows are connected where each is among the p most similar rows of the other, and the edge's
weight is their similarity. A buffer row keeps its p-th largest similarity as a *threshold*, so that
the test of a new row against the buffer is two comparisons per similarity; nothing is searched
again.

At any p below the number of rows this matrix is indefinite, even for a positive definite kernel:
its eigenvalues are to be taken algebraically, from the top.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Record, stored
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import LEAST_DENSITY, Surroundings
from mercer.kernels.base import NOTHING, Kernel
from mercer.kernels.domain import check_kernel
from mercer.kernels.unit_rows import UnitRows
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, cast, part, stack, take

_jit = LazyModule("mercer.factors._mutual_jit")

OFFSET = 0.1  # of the mean degree; less lets strays be clusters, five times as much hides thin ones
LOWEST = float(np.finfo(np.float32).min)  # a threshold that every similarity reaches
SAME = 1e-9  # rows are the same, if their similarity is so close to that with themselves
TILE_ROWS = 512  # rows whose similarities to the buffer are held at once
LANES = 4  # times p: the largest values of so many lanes bound the p-th largest of all closely


@frozen
class Groups:
    """A division of the buffer's rows, each with a coefficient in the sum of its group.

    A row that comes is compared with the groups it has edges to: by these edges, or, if
    `is_whole`, by its similarities to all rows of the group.
    """

    labels: IdArray  # (s,)
    coefficients: FloatArray  # (s,)
    members: IdArray  # (s,) rows by group
    starts: IdArray  # (k + 1,) where each group's begin there
    is_whole: bool

    @classmethod
    def of(
        cls, labels: IdArray, coefficients: FloatArray, n_groups: int, *, is_whole: bool
    ) -> Groups:
        starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_groups))])
        members = np.argsort(labels, kind="stable")
        return cls(labels, coefficients, members, starts, is_whole)


@frozen
class BufferEdges:
    """The edges of some rows to a buffer."""

    similarities: sp.csr_array  # (n, s) k(x, y) of mutual neighbours
    own: FloatArray  # (n,) k(x, x)
    weights: FloatArray  # (n,) how many rows each stands for
    degrees: FloatArray  # (n,) Σ of weighted similarities and an offset; 1 if not normalised
    sums: sp.csr_array | None = None  # (n, k) of similarities to each group that has an edge

    def __len__(self) -> int:
        return len(self.own)

    def n_unseen(self) -> int:
        """How many rows are similar to nothing in the buffer; of edges that keep the nearest."""
        csr = self.similarities
        largest = np.maximum.reduceat(csr.data, csr.indptr[:-1])  # each row has an edge
        return int(((np.abs(largest) <= NOTHING) & (self.own > 0)).sum())

    def around(self, labels: IdArray, own: IdArray, weights: FloatArray) -> Surroundings:
        """How similar the buffer's rows are in all, and how much of that has other labels.

        A row of the buffer is not similar to itself; to equal rows that it stands for, it is.
        """
        csr = self.similarities
        row = np.repeat(np.arange(len(self)), np.diff(csr.indptr))
        is_same = csr.data >= (1.0 - SAME) * self.own[row]
        others_there = weights[csr.indices] - is_same * np.median(weights)
        shares = np.maximum(csr.data, 0.0) * np.maximum(others_there, 0.0) / weights.sum()
        total = np.bincount(row, weights=shares, minlength=len(self))
        is_other = own[csr.indices] != labels[row]
        others = np.bincount(row, weights=shares * is_other, minlength=len(self))
        doubt = others / np.where(total > 0, total, 1.0)
        return Surroundings(labels, 1.0 / np.maximum(total, LEAST_DENSITY), doubt)

    def take(self, ids: IdArray) -> BufferEdges:
        arrays = (self.own[ids], self.weights[ids], self.degrees[ids])
        return BufferEdges(sp.csr_array(self.similarities[ids]), *arrays)

    @staticmethod
    def stack(tiles: list[BufferEdges]) -> BufferEdges:
        """The edges of consecutive rows as one."""
        if len(tiles) == 1:
            return tiles[0]
        return BufferEdges(
            _stack([tile.similarities for tile in tiles]),
            np.concatenate([tile.own for tile in tiles]),
            np.concatenate([tile.weights for tile in tiles]),
            np.concatenate([tile.degrees for tile in tiles]),
            None if tiles[0].sums is None else _stack([tile.sums for tile in tiles]),
        )


@frozen
class NeighborKernel(Record):
    """A buffer of rows and the sparse kernel matrix between them.

    A row of weight w counts as w equal rows: `matrix` is √w_i √w_j K_ij / √(D_i D_j). D are the
    degrees Σ_j w_j K_ij that rows had when they came (or when the kernel was last made anew) plus
    `offset`, a little of their mean then, which keeps a few rows without other edges from being the
    best of clusters. Without `is_normalized` all degrees are 1.
    """

    kernel: Kernel = stored(Kernel)
    format: RowFormat = stored(RowFormat)
    rows: Rows = stored("(s, d) rows")  # float64, in `format`
    weights: FloatArray = stored("(s,) float64, finite, > 0")  # how often each row came
    # the p-th largest similarity of each row in the buffer
    thresholds: FloatArray = stored("(s,) float64, finite")
    degrees: FloatArray = stored("(s,) float64, finite, > 0")
    masses: FloatArray = stored("(s,) float64, finite, > 0")  # weight × degree, as in the matrix
    matrix: sp.csr_array = stored("(s, s) csr, finite, symmetric")
    n_neighbors: int = stored("int, >= 1")
    is_normalized: bool = stored("bool")
    offset: float = stored("float, finite, >= 0", 0.0)  # of the degrees

    def sizes(self) -> dict[str, int]:
        """s: rows of the buffer; d: their columns."""
        return {"s": len(self), "d": int(self.rows.shape[1])}

    def check(self) -> None:
        self.format.check_fits(self.rows)
        check_kernel(self.kernel, self.rows)

    def __len__(self) -> int:
        return len(self.thresholds)

    @property
    def rank(self) -> int:
        return len(self)

    @property
    def trace_error(self) -> float | None:
        return None  # edges were left out on purpose: the trace is kept and tells nothing

    def raw_kernel(self) -> Kernel:
        """The kernel as a function of raw rows: what users see."""
        kernel = self.kernel.in_units(-self.format.exponent)
        return UnitRows(kernel) if self.format.unit_length else kernel

    def edges(
        self, dtype: Any, *, nearest: bool = False, groups: Groups | None = None
    ) -> Callable[..., BufferEdges]:
        """A function of rows in `format` (and weights) that gives their edges, taken in `dtype`.

        `nearest`: a row that is nobody's mutual neighbour keeps its most similar one. `groups`:
        similarities to each of them are summed.
        """
        similar = self.kernel.against(cast(self.rows, dtype))
        thresholds = self.thresholds.astype(dtype)
        floor = np.finfo(dtype).tiny if self.is_normalized else LOWEST

        def of_tile(X: Rows, weights: FloatArray) -> BufferEdges:
            K = np.ascontiguousarray(similar(X), dtype=dtype)
            entries = _mutual(K, thresholds, self.n_neighbors, dtype(floor), nearest=nearest)
            own = np.asarray(self.kernel.diagonal(X), np.float64)
            degrees = np.ones(len(own))
            if self.is_normalized:
                degrees = entries @ self.weights + weights * own + self.offset
            sums = None if groups is None else _sums(K, entries, groups, floor)
            return BufferEdges(entries, own, weights, np.where(degrees > 0, degrees, 1.0), sums)

        def of_rows(X: Rows, weights: FloatArray | None = None) -> BufferEdges:
            w = np.full(X.shape[0], self.weights.mean()) if weights is None else weights
            tiles = [slice(i, i + TILE_ROWS) for i in range(0, X.shape[0], TILE_ROWS)]
            return BufferEdges.stack([of_tile(part(X, t.start, t.stop), w[t]) for t in tiles])

        return of_rows

    def normalized(self, edges: BufferEdges) -> sp.csr_array:
        """Φᵀ: the edges as rows of the matrix, (n, s)."""
        csr = edges.similarities
        rows, columns = np.sqrt(edges.weights / edges.degrees), np.sqrt(self.masses) / self.degrees
        data = csr.data * np.repeat(rows, np.diff(csr.indptr)) * columns[csr.indices]
        return sp.csr_array((data, csr.indices, csr.indptr), shape=csr.shape)

    def own_entries(self, edges: BufferEdges) -> FloatArray:
        """κ: the new rows' entries on the diagonal of the matrix."""
        return edges.own * edges.weights / edges.degrees

    def join(self, X: Rows, edges: BufferEdges) -> tuple[BufferEdges, sp.csr_array, FloatArray]:
        """Rows that join together: their edges with degrees that count each other, Φᵀ and K_bb."""
        K = np.asarray(self.kernel.matrix(X, X), np.float64)
        K = (K + K.T) / 2
        least = self.least(X)
        if self.is_normalized:
            np.maximum(K, 0.0, out=K)
        K[(least > K) | (least[:, None] > K)] = 0.0
        np.fill_diagonal(K, edges.own)
        if self.is_normalized:
            among = K @ edges.weights - edges.own * edges.weights
            edges = replace(edges, degrees=edges.degrees + among)
        scale = np.sqrt(edges.weights / edges.degrees)
        return edges, self.normalized(edges), K * scale * scale[:, None]

    def least(self, X: Rows) -> FloatArray:
        """The thresholds of new rows: their p-th largest similarity to the buffer."""
        if self.n_neighbors >= len(self):
            return np.full(X.shape[0], LOWEST)
        K = np.asarray(self.kernel.matrix(X, self.rows), np.float64)
        place = K.shape[1] - self.n_neighbors
        return np.partition(K, place, axis=1)[:, place]

    def with_rows(
        self, X: Rows, edges: BufferEdges, phi: sp.csr_array, K_bb: FloatArray
    ) -> NeighborKernel:
        """The buffer with these rows at its end (eq. 5)."""
        new = sp.csr_array(K_bb)
        return replace(
            self,
            rows=stack([self.rows, X]),
            weights=np.r_[self.weights, edges.weights],
            thresholds=np.r_[self.thresholds, self.least(X)],
            degrees=np.r_[self.degrees, edges.degrees],
            masses=np.r_[self.masses, edges.weights * edges.degrees],
            matrix=sp.csr_array(sp.block_array([[self.matrix, phi.T], [phi, new]], format="csr")),
        )

    def keep(self, keep: NDArray[np.bool_]) -> NeighborKernel:
        """The buffer without the rows that are not marked."""
        ids = np.flatnonzero(keep)
        return replace(
            self,
            rows=take(self.rows, ids),
            weights=self.weights[ids],
            thresholds=self.thresholds[ids],
            degrees=self.degrees[ids],
            masses=self.masses[ids],
            matrix=sp.csr_array(self.matrix[ids][:, ids]),
        )


def neighbor_kernel(
    kernel: Kernel,
    row_format: RowFormat,
    rows: Rows,
    weights: FloatArray,
    *,
    n_neighbors: int,
    is_normalized: bool,
    threads: int = 1,
) -> NeighborKernel:
    """The sparse kernel of these rows (float64, in format): O(s²d) by products and selections.

    For hundreds of neighbours this is several times quicker than any index.
    """
    s = rows.shape[0]
    p = min(n_neighbors, s)
    similar, own = kernel.against(rows), np.asarray(kernel.diagonal(rows), np.float64)

    def tile(start: int) -> FloatArray:
        K = np.asarray(similar(part(rows, start, start + TILE_ROWS)), np.float64)
        ids = np.arange(len(K))
        K[ids, start + ids] = own[start + ids]
        return K

    starts = range(0, s, TILE_ROWS)
    if p >= s:
        thresholds = np.full(s, LOWEST)
    else:

        def least(start: int) -> FloatArray:  # a copy: a view would keep the tile, so all of K
            return np.partition(tile(start), s - p, axis=1)[:, s - p].copy()

        thresholds = np.concatenate(list(in_order(least, starts, threads)))
    floor = np.finfo(float).tiny if is_normalized else LOWEST

    def mutual(start: int) -> sp.csr_array:
        K = tile(start)
        least = np.maximum(thresholds[start : start + len(K)], floor)
        return sp.csr_array(np.where((least[:, None] <= K) & (thresholds <= K), K, 0.0))

    K = sp.csr_array(sp.vstack(list(in_order(mutual, starts, threads)), format="csr"))
    K = sp.csr_array((K + K.T) / 2)
    K.sort_indices()
    degrees, offset = np.ones(s), 0.0
    if is_normalized:
        sums = K @ weights
        offset = OFFSET * float(np.average(sums, weights=weights))
        degrees = sums + offset if offset > 0 else degrees
    scale = np.sqrt(weights / degrees)
    K.data *= scale[K.indices] * np.repeat(scale, np.diff(K.indptr))
    masses = weights * degrees
    sizes = (n_neighbors, is_normalized, offset)
    return NeighborKernel(kernel, row_format, rows, weights, thresholds, degrees, masses, K, *sizes)


def rebuild(graph: NeighborKernel, *, threads: int = 1) -> NeighborKernel:
    """The same rows with thresholds, edges and degrees computed again."""
    return neighbor_kernel(
        graph.kernel,
        graph.format,
        graph.rows,
        graph.weights,
        n_neighbors=graph.n_neighbors,
        is_normalized=graph.is_normalized,
        threads=threads,
    )


def _sums(K: FloatArray, edges: sp.csr_array, groups: Groups, floor: float) -> sp.csr_array:
    """Σ_i a_i K_xi over each group with an edge, at least the floor: no edge counts against it."""
    n, k = len(K), len(groups.starts) - 1
    arrays = (groups.labels, groups.coefficients, groups.members, groups.starts, groups.is_whole)
    given = (K, edges.indptr, edges.indices, *arrays, float(floor))
    scratch = np.full(k, -1), np.empty(k, np.intp)
    return _grow_csr((n, k), lambda done, out: _jit.edge_sums(*given, done, *out, *scratch))


def _stack(tiles: list[Any]) -> sp.csr_array:
    return sp.csr_array(sp.vstack(tiles, format="csr"))


def _mutual(
    K: FloatArray, thresholds: FloatArray, p: int, floor: Any, *, nearest: bool
) -> sp.csr_array:
    s, needed = K.shape[1], np.maximum(thresholds, floor)
    lanes = np.empty(LANES * p if p < s // LANES else 0, K.dtype)
    scratch = lanes, np.empty(s, K.dtype), np.empty(s + 1, np.int32)
    given = (K, needed, p, nearest)
    return _grow_csr(K.shape, lambda done, out: _jit.mutual_entries(*given, done, *out, *scratch))


def _grow_csr(shape: tuple[int, int], fill: Callable[[int, Any], int]) -> sp.csr_array:
    """A sparse matrix of unknown size: `fill` starts at a row, and says where room was short."""
    n, width = shape
    indptr, size = np.zeros(n + 1, np.int32), 4 * n + width
    indices, data = np.empty(size, np.int32), np.empty(size)
    done = 0
    while (done := fill(done, (indptr, indices, data))) < n:
        filled, size = indptr[done], 2 * size + width
        shorter = indices, data
        indices, data = np.empty(size, np.int32), np.empty(size)
        indices[:filled], data[:filled] = (part[:filled] for part in shorter)
    return sp.csr_array((data[: indptr[n]].copy(), indices[: indptr[n]].copy(), indptr), shape)
