"""The search for nearest rows: exact by products or by a grid, or among inverted lists.

Rows that are wide or sparse are projected first. Whatever is found for a row depends on the row
alone, not on the rows it came with.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Allowance, Record, expect, stored
from mercer._run.threads import in_order, single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer.linalg.lloyd import Sums, lloyd
from mercer.linalg.products import PRODUCT_ROWS, row_products, unit_rows
from mercer.rows.format import RowFormat
from mercer.rows.rows import BlockRows, Rows, cast
from mercer.rows.sample import evenly
from mercer.rows.source import spans

_jit = LazyModule("mercer.factors._search_jit")

WIDE = 64  # more features than this are reduced first
KEPT_VARIANCE = 0.9
NEAR_VARIANCE = 0.75  # of differences between near rows: noise is a larger share of them
PCA_ROWS = 5000
SEEDS = 64  # rows; the variance of other rows' differences from the nearest of them is kept too
NEAR_ROWS = 1000  # such rows
ROWS_PER_LANDMARK = 10  # of the sample that landmarks are averaged over
EXTRA_CANDIDATES = 3
PRODUCTS = 2**20  # float32 products held at once: 4 MB, which are used again and stay in the cache
FEW_PAIRS = 2**21  # for up to 3 features, so many distances are there before a grid is
GRID_CELLS = 60_000
GRID_RATIOS = {1: 16, 2: 8, 3: 4}  # fine cells per coarse one and side, by number of features
GRID_ITEMS = 5 * 10**7  # longer lists (all rows in one cell, for a far outlier) are not worth it
# Of model files, whose grids are made anew:
MOST_CELLS = 200_000
MOST_STEPS = 2**30  # of sorting the nearest landmarks of a cell, one by one: about a second
ITEM_BYTES = 16  # for each item of a list, while lists grow
WITHIN_SQUARES = "in (-1e150, 1e150)"  # coordinates beyond have no finite square
N_PROBES = 12  # inverted lists that are searched (recall on mnist: 8 .93, 12 .96)
EXTRA_LISTED = 4  # candidates by float32, of which float64 takes the nearest
RECALL_ROWS = 200  # rows whose neighbours are sought exactly as well, to measure the recall


@frozen
class SearchPlan(Record):
    """A search as a file holds it: landmarks, and the box and cells of the grid over them.

    Loops without bounds checks follow the lists of a grid, so those of a file are not trusted but
    made anew. The search is exact with any grid or none, so it finds the same, bit for bit.
    """

    landmarks: FloatArray = stored(f"(p, q) float64, {WITHIN_SQUARES}")
    low: FloatArray | None = stored(f"(q,) float64, {WITHIN_SQUARES}, or None", None)  # a corner
    step: FloatArray | None = stored(f"(q,) float64, {WITHIN_SQUARES}, > 0, or None", None)
    shape: IdArray | None = stored("(3,) int, >= 1, or None", None)  # cells along each side
    grid_neighbors: int = stored("int", 0)  # the grid answers for so many

    def check(self) -> None:
        """The grid has whole coarse cells, and not too many."""
        given = [part is not None for part in (self.low, self.step, self.shape)]
        expect(all(given) or not any(given), "the grid of the landmarks is not complete")
        if self.shape is None:
            return
        (p, d), sides = self.landmarks.shape, [int(n) for n in self.shape]
        expect(d in GRID_RATIOS, f"there is no grid for landmarks of {d} columns")
        is_whole = all(n % GRID_RATIOS[d] == 0 for n in sides[:d]) and set(sides[d:]) <= {1}
        is_small = sides[0] * sides[1] * sides[2] <= MOST_CELLS
        expect(is_whole and is_small, f"the grid of the landmarks has the shape {sides}")
        m = self.grid_neighbors
        expect(1 <= m <= p, f"grid_neighbors={m} is not between 1 and the {p} landmarks")

    def rebuild(self, allowance: Allowance) -> Search:
        """The search; with a grid if that is worth the work and the memory."""
        if self.low is None or self.step is None or self.shape is None:
            return Search(self.landmarks)
        L, m, many = self.landmarks, self.grid_neighbors, self.shape.astype(np.int64)
        p, d = L.shape
        ratio, few = GRID_RATIOS[d], many.copy()
        few[:d] //= ratio
        most = min(GRID_ITEMS, MOST_STEPS // m, allowance.left // ITEM_BYTES)
        if max(p * int(few.prod()), int(many.prod())) > most:
            return Search(L)
        none = np.zeros(1, np.int64), np.zeros(1, np.int32)
        coarse = cell_candidates(self.low, self.step * ratio, few, L, m, *none, 0, few)
        if len(coarse[1]) * ratio**d > most:
            return Search(L)
        fine = cell_candidates(self.low, self.step, many, L, m, *coarse, ratio, few)
        return Search(L, (self.low, self.step, many, *fine), m)


@frozen
class Search(Record):
    """Finds nearest landmarks exactly: by products, or by a grid where there are few features."""

    stored_as = SearchPlan

    landmarks: FloatArray  # (p, q) float64
    grid: tuple[FloatArray, FloatArray, IdArray, IdArray, IdArray] | None = None
    grid_neighbors: int = 0  # the grid answers for so many

    def sizes(self) -> dict[str, int]:
        """p: landmarks; q: their columns."""
        return dict(zip("pq", self.landmarks.shape, strict=True))

    def stored_form(self) -> SearchPlan:
        grid = () if self.grid is None else (*self.grid[:3], self.grid_neighbors)
        return SearchPlan(self.landmarks, *grid)

    def nearest(self, Z: FloatArray, m: int) -> tuple[IdArray, FloatArray]:
        """Numbers and squared distances of the m nearest landmarks, nearest first."""
        L, idx, dist = self.landmarks, np.empty((len(Z), m), np.intp), np.empty((len(Z), m))
        if self.grid is not None and m <= self.grid_neighbors:
            _jit.nearest_by_grid(Z, L, *self.grid, idx, dist)
            return idx, dist
        if L.shape[1] <= 3 and len(Z) * len(L) <= FEW_PAIRS:
            _jit.nearest_of_all(Z, L, np.arange(len(Z)), idx, dist)
            return idx, dist
        unsure = self._by_products(Z, np.float32, idx, dist)
        if len(unsure):  # groups so far apart that float32 cannot see inside them
            rows, idx_there, dist_there = Z[unsure], idx[unsure], dist[unsure]
            still = self._by_products(rows, np.float64, idx_there, dist_there)
            if len(still):
                _jit.nearest_of_all(rows, L, still, idx_there, dist_there)
            idx[unsure], dist[unsure] = idx_there, dist_there
        return idx, dist

    def notes(self, n_neighbors: int) -> list[str]:
        """What a report says of the search: nothing, where it is exact."""
        return []

    def _by_products(self, Z: FloatArray, dtype: Any, idx: IdArray, dist: FloatArray) -> IdArray:
        """Fill idx and dist by products in `dtype`; the rows whose answer rounding leaves open."""
        L = self.landmarks.astype(dtype)
        norms = np.einsum("ij,ij->i", L, L, dtype=np.float64)
        step = max(PRODUCT_ROWS, PRODUCTS // len(L))
        held = np.empty((min(step, len(Z)), len(L)), dtype)
        is_sure = np.empty(len(Z), np.bool_)
        rounding = (L.shape[1] + 4) * float(np.finfo(dtype).eps)  # of a product, beside ‖z‖‖l‖
        longest, n_candidates = np.sqrt(norms.max()), min(idx.shape[1] + EXTRA_CANDIDATES, len(L))
        scratch = np.empty((1, n_candidates)), np.empty((1, n_candidates), np.int64)
        for start in range(0, len(Z), step):
            piece = slice(start, start + step)
            products = held[: len(Z[piece])]
            with np.errstate(over="ignore", invalid="ignore"):  # rows beyond float32 are unsure
                np.matmul(Z[piece].astype(dtype), L.T, out=products)
            arrays = (Z[piece], self.landmarks, products, norms, longest, rounding, *scratch)
            _jit.nearest_by_products(*arrays, idx[piece], dist[piece], is_sure[piece])
        return np.flatnonzero(~is_sure)


@frozen
class ListPlan(Record):
    """Inverted lists as a file holds them: loops follow lists, so those are made anew."""

    rows: FloatArray = stored(f"(p, q) float64, {WITHIN_SQUARES}")
    landmarks: FloatArray = stored(f"(l, q) float64, {WITHIN_SQUARES}")

    def rebuild(self, allowance: Allowance) -> ListSearch:
        allowance.hold(self.rows.size * 12 + 16 * len(self.rows))
        return ListSearch.of(self.rows, self.landmarks)


@frozen
class ListSearch(Record):
    """Finds nearest rows among those that share one of their nearest landmarks."""

    stored_as = ListPlan

    rows: FloatArray  # (p, q) float64
    coarse: Search  # of the landmarks
    starts: IdArray  # (l + 1,) where the list of each landmark begins
    members: IdArray  # (p,) the rows, list by list
    residuals: FloatArray  # (p·q,) float32: of each list (q, size), rows less their landmark

    @classmethod
    def of(cls, rows: FloatArray, landmarks: FloatArray) -> ListSearch:
        """Each row is in the list of its nearest landmark."""
        coarse = Search(landmarks)
        return cls._of_nearest(rows, coarse, nearest_all(rows, coarse, 1)[0][:, 0])

    @classmethod
    def _of_nearest(cls, rows: FloatArray, coarse: Search, nearest: IdArray) -> ListSearch:
        """The lists of rows whose nearest landmark is known."""
        landmarks = coarse.landmarks
        members = np.argsort(nearest, kind="stable")
        starts = np.r_[0, np.cumsum(np.bincount(nearest, minlength=len(landmarks)))]
        residuals = np.empty(rows.size, np.float32)
        for c, (start, stop) in enumerate(pairwise(starts)):
            block = rows[members[start:stop]] - landmarks[c]
            residuals[start * rows.shape[1] : stop * rows.shape[1]] = block.T.ravel()
        return cls(rows, coarse, starts, members, residuals)

    @property
    def landmarks(self) -> FloatArray:
        """The rows that are found: what a search among landmarks calls so."""
        return self.rows

    def sizes(self) -> dict[str, int]:
        """p: rows; q: their columns."""
        return dict(zip("pq", self.rows.shape, strict=True))

    def stored_form(self) -> ListPlan:
        return ListPlan(self.rows, self.coarse.landmarks)

    def nearest(self, Z: FloatArray, m: int) -> tuple[IdArray, FloatArray]:
        """Numbers and squared distances of the m nearest rows, nearest first."""
        return self._nearest_in(self.coarse.nearest(Z, _n_probes(self.coarse))[0], Z, m)

    def _nearest_in(self, probes: IdArray, Z: FloatArray, m: int) -> tuple[IdArray, FloatArray]:
        """The same in the lists of these landmarks; rows that share lists come together.

        (They find them in the cache: a third of the time. What is found does not depend on it.)
        """
        order = np.argsort(probes[:, 0], kind="stable")
        Z, probes, back = Z[order], probes[order], np.argsort(order)
        idx, dist = np.empty((len(Z), m), np.intp), np.empty((len(Z), m))
        with np.errstate(over="ignore", invalid="ignore"):  # rows beyond float32: see below
            _jit.nearest_in_lists(
                Z,
                probes,
                self.coarse.landmarks,
                self.starts,
                self.residuals,
                self.members,
                self.rows,
                EXTRA_LISTED,
                idx,
                dist,
            )
        few = np.flatnonzero(idx[:, -1] < 0)
        if len(few):
            _jit.nearest_of_all(Z, self.rows, few, idx, dist)
        return idx[back], dist[back]

    def notes(self, n_neighbors: int) -> list[str]:
        """What a report says of the search."""
        recall = self.recall(n_neighbors)
        return [f"neighbours were sought in inverted lists: recall {recall:.3f}"]

    def recall(self, n_neighbors: int) -> float:
        """Share of the true neighbours that the lists find, of some of the rows."""
        ids = evenly(len(self.rows), RECALL_ROWS)
        found = self.nearest(self.rows[ids], n_neighbors + 1)[0]
        true = Search(self.rows).nearest(self.rows[ids], n_neighbors + 1)[0]
        return float((found[:, :, None] == true[:, None, :]).any(axis=1).mean())


def make_search(L: FloatArray, Z: FloatArray, m: int) -> Search:
    """Finds the m nearest of L: a grid over the box of Z for up to 3 features, else products."""
    d = L.shape[1]
    if d > 3 or len(L) < 32 or len(Z) * len(L) <= FEW_PAIRS:
        return Search(L)
    low, high = Z.min(axis=0), Z.max(axis=0)
    ratio = GRID_RATIOS[d]
    coarse = max(2, round(min(GRID_CELLS, max(2048, len(Z) // 2)) ** (1 / d) / ratio))
    step = (high - low) / (coarse * ratio) * (1 + 1e-9) + np.finfo(float).tiny
    few = np.array([coarse] * d + [1] * (3 - d))
    many = np.array([coarse * ratio] * d + [1] * (3 - d))
    none = np.zeros(1, np.int64), np.zeros(1, np.int32)
    m = min(m, len(L))
    ptr, items = cell_candidates(low, step * ratio, few, L, m, *none, 0, few)
    if len(items) * ratio**d > GRID_ITEMS:
        return Search(L)
    ptr, items = cell_candidates(low, step, many, L, m, ptr, items, ratio, few)
    return Search(L, (low, step, many, ptr, items), m)


def cell_candidates(
    low: FloatArray,
    step: FloatArray,
    sides: IdArray,
    L: FloatArray,
    m: int,
    parents: Any,
    parent_items: Any,
    ratio: int,
    parent_sides: IdArray,
) -> tuple[IdArray, IdArray]:
    """For each cell of a grid, the landmarks that can be among the m nearest of a point in it.

    A coarser grid's lists (ratio cells per side; 0: none) bound the search.
    """
    n_cells, (p, d) = int(sides.prod()), L.shape
    ptr, items = np.zeros(n_cells + 1, np.int64), np.empty(max(16 * n_cells, p), np.int32)
    scratch = np.empty((1, d)), np.empty(p), np.empty((1, m)), np.empty((1, m), np.int64)
    grid, coarse = (low, step, sides, L), (parents, parent_items, ratio, parent_sides)
    done = 0
    while (done := _jit.fill_cells(*grid, *coarse, done, ptr, items, scratch)) < n_cells:
        shorter, items = items, np.empty(2 * (len(items) + p), np.int32)
        items[: len(shorter)] = shorter
    return ptr, items[: ptr[-1]].copy()


def projection_of(X: Rows, *, rng: np.random.Generator) -> FloatArray | None:
    """Principal directions that keep 90 % of the variance, for wide or sparse rows.

    And 75 % of the variance of differences between near rows: groups that are far apart are most
    of the variance, and must not hide what is inside them.
    """
    if isinstance(X, BlockRows):
        raise ValueError(
            "landmark graphs need one table of columns; column blocks work with kernels that name "
            "their block and approximation='cholesky' or 'nystrom'"
        )
    if sp.issparse(X):
        from sklearn.utils.extmath import randomized_svd

        q = min(WIDE, X.shape[1], X.shape[0])
        some = cast(X[: min(X.shape[0], PCA_ROWS)], np.float64)
        seed = int(rng.integers(2**31))
        return randomized_svd(some, q, random_state=seed)[2].T.copy()
    if X.shape[1] <= WIDE:
        return None
    some = X[:PCA_ROWS] - X[:PCA_ROWS].mean(axis=0)  # content order: as good as a random sample
    gram = some.T @ some if some.shape[1] <= len(some) else some @ some.T
    values, vectors = np.linalg.eigh(gram.astype(np.float64))
    if some.shape[1] > len(some):
        vectors = some.T @ vectors / np.sqrt(np.maximum(values, values[-1] * 1e-12))
    vectors = vectors[:, ::-1]
    near = ((_near_differences(some) @ vectors.astype(some.dtype)) ** 2).sum(axis=0)
    q = max(_n_kept(values[::-1]), _n_kept(near.astype(np.float64), NEAR_VARIANCE))
    return np.ascontiguousarray(vectors[:, :q])


def _n_kept(variances: FloatArray, kept: float = KEPT_VARIANCE) -> int:
    """How many of the directions keep such a share of the variance."""
    share = np.cumsum(variances) / max(variances.sum(), np.finfo(float).tiny)
    return min(int(np.searchsorted(share, kept)) + 1, len(variances))


def _near_differences(X: FloatArray) -> FloatArray:
    """Rows less the nearest of the first few."""
    seeds, rows = X[:SEEDS], X[SEEDS : SEEDS + NEAR_ROWS]
    if len(rows) == 0:
        return X[:0]
    nearest = Search(seeds.astype(np.float64)).nearest(rows.astype(np.float64), 1)[0][:, 0]
    differences: FloatArray = rows - seeds[nearest]
    return differences


def is_angle(row_format: RowFormat) -> bool:
    """Whether projected rows are scaled to unit length again, as latent semantic analysis does.

    Where rows of unit length keep their origin (sparse ones), few directions hold a small and
    uneven share of each row. Measured on three generated corpora (NMI +.000 to +.015) and on 20
    newsgroups with three kinds of TF-IDF (+.025 to +.035).
    """
    return row_format.unit_length and row_format.shift is None


def projected(
    X: Rows,
    projection: FloatArray | None,
    row_format: RowFormat,
    threads: int = 1,
    *,
    dtype: Any = np.float64,
) -> FloatArray:
    """Rows in format in the space of the search, each by the same instructions.

    They are float64, or `dtype` if it holds the products of projected rows as exactly.
    """
    if projection is None:
        return np.ascontiguousarray(X, dtype=np.float64)
    Z = _products(X, projection, threads, dtype)
    return unit_rows(Z.astype(np.float64, copy=False)) if is_angle(row_format) else Z


def _products(X: Rows, projection: FloatArray, threads: int, dtype: Any) -> FloatArray:
    if sp.issparse(X):
        return cast(X, np.float64) @ projection
    Z = np.empty((len(X), projection.shape[1]), np.promote_types(X.dtype, dtype))

    def project(start: int) -> None:  # in float64: the bits of float32 products depend on the place
        piece = slice(start, start + PRODUCT_ROWS)
        Z[piece] = row_products(X[piece].astype(np.float64, copy=False), projection)

    with single_threaded_blas():  # several threads of BLAS sum in another order
        for _ in in_order(project, range(0, len(X), PRODUCT_ROWS), threads):
            pass
    return Z


def choose_landmarks(
    Z: FloatArray,
    weights: FloatArray,
    rank: int,
    *,
    sweeps: int,
    rng: np.random.Generator,
    threads: int = 1,
    search_for: Callable[[FloatArray, FloatArray, int], Any] | None = None,
) -> FloatArray:
    """A random start, then a few of Lloyd's sweeps on ten rows per landmark.

    `search_for(L, Z, m)` makes the search among landmarks; None is an exact one.
    """
    if rank >= len(Z):
        return Z.astype(np.float64)
    size = min(len(Z), ROWS_PER_LANDMARK * rank)
    some = np.sort(rng.choice(len(Z), size, replace=False))
    if size < len(Z):  # all of them need no copy
        Z, weights = Z[some], weights[some]
    L = Z[np.sort(rng.choice(len(Z), rank, replace=False))].astype(np.float64)

    def sweep(L: FloatArray, moves: FloatArray | None) -> Sums:
        search = Search(L) if search_for is None else search_for(L, Z, 1)
        labels = nearest_all(Z, search, 1, threads)[0][:, 0]
        sums, counts = np.zeros_like(L), np.zeros(len(L))
        _jit.add_to_nearest(Z, labels, weights, sums, counts)
        return Sums(sums, counts)

    return lloyd(sweep, L, max_iter=sweeps).centers


def nearest_in_lists(
    Z: FloatArray, landmarks: FloatArray, m: int, threads: int = 1
) -> tuple[ListSearch, IdArray, FloatArray]:
    """A search among the rows of Z by lists of these landmarks, and what it finds for each row."""
    coarse = Search(landmarks)
    probes = nearest_all(Z, coarse, _n_probes(coarse), threads)[0]
    search = ListSearch._of_nearest(Z, coarse, probes[:, 0])
    idx, dist = np.empty((len(Z), m), np.intp), np.empty((len(Z), m))

    def find(span: tuple[int, int]) -> None:
        rows = search.members[slice(*span)]  # list by list: see _nearest_in
        idx[rows], dist[rows] = search._nearest_in(probes[rows], Z[rows], m)

    for _ in in_order(find, spans(len(Z)), threads):
        pass
    return search, idx, dist


def _n_probes(coarse: Search) -> int:
    return min(N_PROBES, len(coarse.landmarks))


def nearest_all(Z: FloatArray, search: Any, m: int, threads: int = 1) -> tuple[IdArray, FloatArray]:
    tiles = spans(len(Z))
    pieces = list(in_order(lambda span: search.nearest(Z[slice(*span)], m), tiles, threads))
    return np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])
