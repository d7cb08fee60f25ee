"""A sparse graph between rows and landmarks: the fast road to spectral clustering.

Each row is connected to its few nearest landmarks by Gaussian weights b_ij; the affinity of two
rows is W = B D_L⁻¹ Bᵀ, never formed. [cai2015 (LSC), huang2020 (U-SPEC)]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer._run.lazy import LazyModule
from mercer._run.records import Allowance, Record, expect, stored, unstored
from mercer._run.tally import kernel_values
from mercer._run.threads import in_order, single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import (
    Approximation,
    ConeLabeller,
    Factor,
    Resampling,
    SpectralMap,
    as_sample,
    check_whole,
)
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.kernels.exponential import RBF
from mercer.linalg.eigen import Solver, leading_eigenpairs
from mercer.linalg.lloyd import Sums, lloyd
from mercer.linalg.numbering import content_order
from mercer.linalg.products import unit_rows
from mercer.linalg.walks import leading_walk
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import BlockRows, Rows, cast, pad
from mercer.rows.sample import Sample
from mercer.rows.source import spans

LEAST_DEGREE = 1e-10  # of the mean: below, a landmark is ignored

_jit = LazyModule("mercer.factors._landmarks_jit")

FEW_ROWS = 1000  # below, every row is a landmark: an exact nearest-neighbour graph
MOST_LANDMARKS = 1000  # by rank="auto"
NEIGHBORS = 4  # landmarks per row (one more where a landmark stands for few rows)
WIDE = 64  # more features than this are reduced first
KEPT_VARIANCE = 0.9
NEAR_VARIANCE = 0.75  # of differences between near rows: noise is a larger share of them
PCA_ROWS = 5000
SEEDS = 64  # rows; the variance of other rows' differences from the nearest of them is kept too
NEAR_ROWS = 1000  # such rows
ROWS_PER_LANDMARK = 10  # of the sample that landmarks are averaged over
EXTRA_CANDIDATES = 3
PRODUCT_ROWS = 256  # one shape for float64 products, so a row's bits are its own
PRODUCTS = 2**20  # float32 products held at once: 4 MB, which are used again and stay in the cache
GRID_CELLS = 60_000
GRID_RATIOS = {1: 16, 2: 8, 3: 4}  # fine cells per coarse one and side, by number of features
GRID_ITEMS = 5 * 10**7  # longer lists (all rows in one cell, for a far outlier) are not worth it
EXACT_NEIGHBORS = 10  # per row where every row is a landmark
ENSEMBLE_RANK = 2000  # landmarks of an ensemble, by rank="auto"
# Of model files, whose grids are made anew:
MOST_CELLS = 200_000
MOST_STEPS = 2**30  # of sorting the nearest landmarks of a cell, one by one: about a second
ITEM_BYTES = 16  # for each item of a list, while lists grow
WITHIN_SQUARES = "in (-1e150, 1e150)"  # coordinates beyond have no finite square


class Landmarks(Approximation):
    """K ≈ B D_L⁻¹ Bᵀ with B sparse: n_neighbors weights per row, on `rank` landmarks.

    1. More than 64 features (or sparse rows) are projected on the principal components of 5,000
       rows that keep 90 % of their variance, and 75 % of that of differences between near rows.
    2. Landmarks are means: a random start, `sweeps` of Lloyd on 10 rows per landmark.
    3. The nearest landmarks are found exactly: by products, or by a grid for up to 3 features.
    4. Weights are exp(-γ‖x - l‖²) with γ = 1/(2s²), s the mean distance of a row to its
       landmarks, so the graph scales itself; but a row's own s is at least half the distance to
       its nearest landmark, and 0.3 of the mean distance to all of its landmarks, so that
       outliers stay connected to several landmarks. (0.3 was chosen on generated blobs, moons,
       rings and spirals, pendigits, satimage and letter; wider bandwidths cut spirals wrongly,
       narrower ones make a cluster of one stray point.)

    Cost: n·rank·d products (0.1 µs a row in the plane); memory for rank² and a tile.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Number of landmarks. "auto" is min(1000, n/10), at least 10 per cluster asked for; n/4 below
        3,000 rows and every row below 1,000 (means of a few rows are less noisy than rows: 250 of
        them separate 1,000 points on spirals more reliably than all 1,000 do).
    n_neighbors : int or None, default=None
        Landmarks per row; None is 4, or 5 where a landmark stands for fewer than five rows, or 10
        where every row is one. Chosen on generated shapes, pendigits, satimage and letter, and
        confirmed on mnist.
    weights : {"gaussian", "rank"}, default="gaussian"
        "gaussian", or "rank" for 1, 1/2, 1/3 …, which no outlier can bend.
    sweeps : int, default=3
        Sweeps of Lloyd's algorithm over the landmarks.

    Examples
    --------
    >>> from mercer import Landmarks, SpectralClustering
    >>> from mercer.datasets import rings
    >>> from mercer.metrics import adjusted_rand
    >>> X, y = rings(3000, random_state=0)
    >>> model = SpectralClustering(3, approximation=Landmarks(500), random_state=0).fit(X)
    >>> adjusted_rand(y, model.labels_)
    1.0
    """

    default_rank = "auto"
    scales_itself = True
    own_bandwidth = "gamma by the mean distance of rows to their landmarks"
    is_sparse = True
    has_dense_form = False
    labels_training = True

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        n_neighbors: int | None = None,
        weights: Literal["gaussian", "rank"] = "gaussian",
        sweeps: int = 3,
    ) -> None:
        self.rank = rank
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.sweeps = sweeps

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (LandmarkGraph,)

    def fit(
        self,
        kernel: Kernel | None,
        X: Any,
        *,
        rng: np.random.Generator,
        threads: int = 1,
        n_clusters: int = 1,
    ) -> LandmarkGraph:
        """Choose landmarks among (means of) the rows of X; kernel None scales itself."""
        self.check(kernel)
        sample = as_sample(kernel, X)
        with single_threaded_blas():
            projection = _projection(sample.rows, rng=rng)
            Z = _projected(sample.rows, projection, threads)
            rank = self._rank(len(sample), n_clusters)
            L = _choose_landmarks(Z, sample.weights, rank, sweeps=self.sweeps, rng=rng)
            m = self.n_neighbors or _usual_neighbors(len(Z), len(L))
            m = min(m, max(len(L) // n_clusters, 1))  # no more than a cluster has landmarks
            search = make_search(L, Z, m)
            idx, dist = _nearest_all(Z, search, min(m, len(L)), threads)
            used = np.unique(idx)
            if len(used) < len(L) < len(Z):  # landmarks that no row is near tell nothing
                search, idx = make_search(L[used], Z, m), np.searchsorted(used, idx)
        gamma = _self_scale(dist, sample.weights) if kernel is None else kernel._number()
        edges = Edges(idx, _edge_weights(dist, gamma, self.weights))
        return LandmarkGraph(
            sample.format,
            projection,
            search,
            idx.shape[1],
            gamma,
            self.weights,
            training_edges=edges,
        )

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        p, q = self._rank(n_rows, 1), min(n_features, 2 * WIDE)
        return 8 * n_rows * (q + 4 * self._most_neighbors()) + 4 * max(PRODUCTS, PRODUCT_ROWS * p)

    def width(self, n_rows: int) -> int:
        return 2 * self._most_neighbors()

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """The edges of all rows, the landmarks' graph and what is made of it on the way."""
        p = self._rank(n_rows, 1)
        return 8 * (n_rows * self.width(n_rows) + 3 * p * p + 4 * p * n_vectors)

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        p, q = self._rank(n_rows, 1), min(n_features, 2 * WIDE)
        return 8 * tile_rows * (q + 2 * self.width(n_rows)) + 4 * max(PRODUCTS, PRODUCT_ROWS * p)

    def for_given_matrix(self, *, by_name: bool) -> Approximation:
        """The default makes way for the graph that came as X."""
        from mercer.factors.neighbors import GivenAffinity, refuse_matrix, refuse_rank

        if not by_name:
            refuse_matrix(self)
        if self.rank != "auto":
            refuse_rank(self.rank)
        return GivenAffinity()

    def for_ensemble(self) -> Landmarks:
        """More landmarks than a single partition needs, where the rank is not given."""
        copy: Landmarks = clone(self)
        return copy.set_params(rank=ENSEMBLE_RANK) if self.rank == "auto" else copy

    def _context(self, problem: Problem, n_clusters: int) -> dict[str, Any]:
        return {"n_clusters": n_clusters}

    def _most_neighbors(self) -> int:
        return int(self.n_neighbors or NEIGHBORS + 1)

    def _rank(self, n_rows: int, n_clusters: int) -> int:
        if self.rank == "auto":
            share = 4 if n_rows < 3 * FEW_ROWS else ROWS_PER_LANDMARK
            rank = max(min(MOST_LANDMARKS, n_rows // share), 10 * n_clusters)
            rank = n_rows if n_rows < FEW_ROWS else rank
        else:
            rank = int(self.rank)
        return min(rank, n_rows)

    def check(self, kernel: Kernel | None) -> None:
        if self.rank != "auto":
            check_whole("rank", self.rank, "'auto' or ")
        if self.n_neighbors is not None and not self.n_neighbors >= 1:
            raise ValueError(f"n_neighbors={self.n_neighbors!r} must be 1 or more, or None")
        if self.weights not in ("gaussian", "rank"):
            raise ValueError(f"weights={self.weights!r} is unknown; choose 'gaussian' or 'rank'")
        if kernel is not None and not (kernel.is_gaussian and kernel.columns is None):
            raise ValueError(
                "landmark graphs connect rows to landmarks by Euclidean distance, which "
                f"{kernel!r} is not a function of; use kernel=None (self-scaled) or RBF, or "
                "another approximation such as 'cholesky' or 'nystrom'"
            )


@dataclass(frozen=True, slots=True)
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
        coarse = _jit.cell_candidates(self.low, self.step * ratio, few, L, m, *none, 0, few)
        if len(coarse[1]) * ratio**d > most:
            return Search(L)
        fine = _jit.cell_candidates(self.low, self.step, many, L, m, *coarse, ratio, few)
        return Search(L, (self.low, self.step, many, *fine), m)


@dataclass(frozen=True, slots=True)
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
        unsure = self._by_products(Z, np.float32, idx, dist)
        if len(unsure):  # groups so far apart that float32 cannot see inside them
            rows, idx_there, dist_there = Z[unsure], idx[unsure], dist[unsure]
            still = self._by_products(rows, np.float64, idx_there, dist_there)
            _jit.nearest_of_all(rows, L, still, idx_there, dist_there)
            idx[unsure], dist[unsure] = idx_there, dist_there
        return idx, dist

    def _by_products(self, Z: FloatArray, dtype: Any, idx: IdArray, dist: FloatArray) -> IdArray:
        """Fill idx and dist by products in `dtype`; the rows whose answer rounding leaves open."""
        L = self.landmarks.astype(dtype)
        norms = np.einsum("ij,ij->i", L, L, dtype=np.float64)
        step = max(PRODUCT_ROWS, PRODUCTS // len(L))
        held = np.empty((min(step, len(Z)), len(L)), dtype)
        is_sure = np.empty(len(Z), np.bool_)
        rounding = (L.shape[1] + 4) * float(np.finfo(dtype).eps)  # of a product, beside ‖z‖‖l‖
        for start in range(0, len(Z), step):
            piece = slice(start, start + step)
            products = held[: len(Z[piece])]
            with np.errstate(over="ignore", invalid="ignore"):  # rows beyond float32 are unsure
                np.matmul(Z[piece].astype(dtype), L.T, out=products)
            arrays = (Z[piece], self.landmarks, products, norms, rounding, EXTRA_CANDIDATES)
            _jit.nearest_by_products(*arrays, idx[piece], dist[piece], is_sure[piece])
        return np.flatnonzero(~is_sure)


@dataclass(frozen=True, slots=True)
class Edges:
    """The landmarks of rows and the weights of these edges."""

    idx: IdArray  # (n, m)
    weights: FloatArray  # (n, m)

    def take(self, rows: Any) -> Edges:
        """Those of some of the rows."""
        return Edges(self.idx[rows], self.weights[rows])

    def mean_vectors(self, vectors: FloatArray) -> FloatArray:
        """The mean of the landmarks' vectors by the weights of each row's edges."""
        out = np.empty((len(self.idx), vectors.shape[1]))
        _jit.mean_vectors(self.idx, self.weights, vectors, out)
        return out


@dataclass(frozen=True, slots=True)
class LandmarkGraph(Factor):
    """Edges from any row to its nearest landmarks."""

    takes_ensembles = True

    format: RowFormat = stored(RowFormat)
    projection: FloatArray | None = stored("(d, q) float64, finite, or None")
    search: Search = stored(Search)
    n_neighbors: int = stored("int, in [1, p]")
    gamma: float = stored("float, finite, > 0")
    weighting: str = stored("one of gaussian | rank")
    # landmarks are the rows themselves, and connected to each other
    ties_rows: bool = stored("bool", False)
    training_edges: Edges | None = unstored()

    def check(self) -> None:
        expect(not self.format.blocks, "a landmark graph has no column blocks")

    def check_model(self, kernel: Kernel, n_features: int) -> None:
        """Rows have the columns that lead to the landmarks, and the kernel is the graph's."""
        inward = self.search.landmarks.T if self.projection is None else self.projection
        found, shift = len(inward), self.format.shift
        expect(found == n_features, f"the graph takes {found} columns, but X has {n_features}")
        is_shifted = shift is None or len(shift) == n_features
        expect(is_shifted, "the shift of the row format does not match the columns of the rows")
        is_same = kernel.is_gaussian and kernel.columns is None
        is_same = is_same and kernel.gamma == self.raw_kernel().gamma
        expect(is_same, "the kernel is not that of the landmark graph")

    @property
    def rank(self) -> int:
        return len(self.search.landmarks)

    @property
    def trace_error(self) -> None:
        return None

    @property
    def kernel(self) -> RBF:
        """The weights of edges, as a kernel."""
        return RBF(self.gamma)

    def nearest(self, rows: Rows) -> tuple[IdArray, FloatArray]:
        """The landmarks of raw rows and squared distances; the same wherever a row stands."""
        Z = _projected(self.format.apply(rows), self.projection)
        return self.search.nearest(Z, self.n_neighbors)

    def edges(self, rows: Rows) -> Edges:
        """The edges from raw rows to landmarks."""
        idx, dist = self.nearest(rows)
        return Edges(idx, _edge_weights(dist, self.gamma, self.weighting))

    def affinities(self) -> sp.csr_array:
        """(A + Aᵀ)/2 among the rows of the fit, where each of them is a landmark."""
        edges, n = self._edges(), self.rank
        indptr = np.arange(0, edges.idx.size + 1, edges.idx.shape[1])
        A = sp.csr_array((edges.weights.ravel(), edges.idx.ravel(), indptr), shape=(n, n))
        return sp.csr_array((A + A.T) / 2)

    def spectral_map(
        self,
        sample: Sample,
        n_vectors: int,
        *,
        solver: Solver,
        rng: np.random.Generator,
        threads: int = 1,
    ) -> SpectralMap:
        """Transfer cut [li2012]: the eigenproblem of rows and landmarks, solved on landmarks alone.

        Where the rows are connected to each other, the walk between them: a new row's coordinates
        are the mean of its neighbours'.
        """
        if self.ties_rows:
            walk = leading_walk(
                self.affinities(), sample.weights, n_vectors, solver=solver, rng=rng
            )
            solved = (walk.values, walk.residuals, walk.solver)
            return SpectralMap(walk.vectors, walk.vectors, walk.weights, *solved)
        E, degrees, scale = self._landmark_affinities(self._edges(), sample.weights)
        pairs = leading_eigenpairs(scale[:, None] * E * scale, n_vectors, solver=solver, rng=rng)
        vectors = scale[:, None] * pairs.vectors
        return SpectralMap.of_pairs(vectors, vectors, degrees, pairs)

    def labeller(self, vectors: FloatArray, directions: FloatArray) -> LandmarkLabeller:
        return LandmarkLabeller(self, vectors, directions)

    def labels_of_cuts(self, cuts: tuple[Any, ...]) -> Callable[[Rows], IdArray]:
        """The edges of a row are found once for all cuts."""
        by_edges = [cut.labels_of_edges() for cut in cuts]

        def decide_all(rows: Rows) -> IdArray:
            edges = self.edges(rows)
            return np.stack([decide(edges) for decide in by_edges])

        return decide_all

    def resample(
        self, found: SpectralMap, sample: Sample, judges: IdArray, n_clusters: int
    ) -> Resampling:
        """Eigenvectors of the landmarks as part of the rows connect them."""
        if self.ties_rows:
            return Factor.resample(self, found, sample, judges, n_clusters)
        edges, weights, judged = self._edges(), sample.weights, self._edges().take(judges)

        def points(part: IdArray, rng: np.random.Generator) -> Any:
            E, degrees, scale = self._landmark_affinities(edges.take(part), weights[part])
            start = found.values, found.vectors / scale[:, None]
            pairs = leading_eigenpairs(scale[:, None] * E * scale, n_clusters, start=start, rng=rng)
            vectors = (scale[:, None] * pairs.vectors)[:, :n_clusters]
            return unit_rows(vectors), degrees, judged.mean_vectors(vectors)

        return Resampling(len(weights), points)

    def _edges(self) -> Edges:
        assert self.training_edges is not None
        return self.training_edges

    def _landmark_affinities(
        self, edges: Edges, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Affinities between landmarks by the rows they share, their degrees, and degrees^-½."""
        E = np.zeros((self.rank, self.rank))
        _jit.landmark_graph(edges.idx, edges.weights, weights, E)
        degrees = E.sum(axis=1)
        least = LEAST_DEGREE * degrees.mean()  # landmarks that are only ever a far fourth
        return E, degrees, 1.0 / np.sqrt(np.maximum(degrees, least))

    def rows(self, X: Any) -> sp.csr_array:
        """B for any rows, seen or new: CSR (n, rank), each row's weights summing to 1."""
        source = as_source(X)
        blocks = []
        for start, stop in spans(source.n_rows):
            edges = self.edges(source.read(start, stop))
            shares = edges.weights / edges.weights.sum(axis=1, keepdims=True)
            indptr = np.arange(0, shares.size + 1, self.n_neighbors)
            shape = (len(shares), self.rank)
            blocks.append(sp.csr_array((shares.ravel(), edges.idx.ravel(), indptr), shape=shape))
        return sp.csr_array(sp.vstack(blocks))


def make_search(L: FloatArray, Z: FloatArray, m: int) -> Search:
    """Finds the m nearest of L: a grid over the box of Z for up to 3 features, else products."""
    d = L.shape[1]
    if d > 3 or len(L) < 32:
        return Search(L)
    low, high = Z.min(axis=0), Z.max(axis=0)
    ratio = GRID_RATIOS[d]
    coarse = max(2, round(min(GRID_CELLS, max(2048, len(Z) // 2)) ** (1 / d) / ratio))
    step = (high - low) / (coarse * ratio) * (1 + 1e-9) + np.finfo(float).tiny
    few = np.array([coarse] * d + [1] * (3 - d))
    many = np.array([coarse * ratio] * d + [1] * (3 - d))
    none = np.zeros(1, np.int64), np.zeros(1, np.int32)
    m = min(m, len(L))
    ptr, items = _jit.cell_candidates(low, step * ratio, few, L, m, *none, 0, few)
    if len(items) * ratio**d > GRID_ITEMS:
        return Search(L)
    ptr, items = _jit.cell_candidates(low, step, many, L, m, ptr, items, ratio, few)
    return Search(L, (low, step, many, ptr, items), m)


def _projection(X: Rows, *, rng: np.random.Generator) -> FloatArray | None:
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


def _projected(X: Rows, projection: FloatArray | None, threads: int = 1) -> FloatArray:
    """The rows in the space landmarks live in, float64, each by the same instructions."""
    if projection is None:
        return np.ascontiguousarray(X, dtype=np.float64)
    if sp.issparse(X):
        return cast(X, np.float64) @ projection
    Z = np.empty((len(X), projection.shape[1]))

    def project(start: int) -> None:
        rows = X[start : start + PRODUCT_ROWS].astype(np.float64, copy=False)
        Z[start : start + PRODUCT_ROWS] = (pad(rows, PRODUCT_ROWS) @ projection)[: len(rows)]

    for _ in in_order(project, range(0, len(X), PRODUCT_ROWS), threads):
        pass
    return Z


def _choose_landmarks(
    Z: FloatArray, weights: FloatArray, rank: int, *, sweeps: int, rng: np.random.Generator
) -> FloatArray:
    """A random start, then a few of Lloyd's sweeps on ten rows per landmark."""
    if rank >= len(Z):
        return Z.copy()
    size = min(len(Z), ROWS_PER_LANDMARK * rank)
    some = np.sort(rng.choice(len(Z), size, replace=False))
    Z, weights = Z[some], weights[some]
    L = Z[np.sort(rng.choice(len(Z), rank, replace=False))]

    def sweep(L: FloatArray, moves: FloatArray | None) -> Sums:
        labels = _nearest_all(Z, Search(L), 1)[0][:, 0]
        sums, counts = np.zeros_like(L), np.zeros(len(L))
        _jit.add_to_nearest(Z, labels, weights, sums, counts)
        return Sums(sums, counts)

    return lloyd(sweep, L, max_iter=sweeps).centers


def _nearest_all(
    Z: FloatArray, search: Search, m: int, threads: int = 1
) -> tuple[IdArray, FloatArray]:
    tiles = spans(len(Z))
    pieces = list(in_order(lambda span: search.nearest(Z[slice(*span)], m), tiles, threads))
    return np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])


def _edge_weights(dist: FloatArray, gamma: float, weighting: str) -> FloatArray:
    weights = np.empty_like(dist)
    kernel_values.add(weights.size)
    if weighting == "rank":
        weights[:] = 1.0 / np.arange(1, dist.shape[1] + 1)
    else:
        _jit.edge_weights(dist, gamma, weights)
    return weights


def _usual_neighbors(n_rows: int, n_landmarks: int) -> int:
    if n_landmarks == n_rows:
        return EXACT_NEIGHBORS
    return NEIGHBORS if n_rows >= 5 * n_landmarks else NEIGHBORS + 1


def _self_scale(dist: FloatArray, weights: FloatArray) -> float:
    """1/(2s²), s the mean distance of a row to its landmarks."""
    s = float(np.average(np.sqrt(dist).mean(axis=1), weights=weights))
    return 1.0 / (2.0 * s**2) if s > 0 else 1.0


@dataclass(frozen=True, slots=True)
class LandmarkLabeller(ConeLabeller):
    """A row's coordinates are the weighted mean of its landmarks'; its cluster, their cone."""

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        decide = self.labels_of_edges()
        if self.factor.weighting != "gaussian":
            return lambda rows: decide(self.factor.edges(rows))
        order, scores, own = self._scores()

        def decide_quickly(rows: Rows) -> IdArray:
            idx, dist = self.factor.nearest(rows)
            labels = np.empty(len(idx), np.intp)
            _jit.cone_labels_of_distances(idx, dist, self.factor.gamma, scores, own, labels)
            return order[labels]

        return decide_quickly

    def _scores(self) -> tuple[IdArray, FloatArray, IdArray]:
        """Clusters in an order that their numbers do not change, scores of landmarks, labels."""
        order = content_order(self.directions)
        scores = np.ascontiguousarray(self.vectors @ self.directions[order].T)
        return order, scores, scores.argmax(axis=1)

    def labels_of_training(self, fitted: LandmarkGraph, sample: Sample) -> IdArray | None:
        """Their edges are at hand."""
        edges = fitted.training_edges
        return None if edges is None else self.labels_of_edges()(edges)

    def labels_of_edges(self) -> Callable[[Edges], IdArray]:
        """Edges to landmarks → labels."""
        order, scores, own = self._scores()

        def decide(edges: Edges) -> IdArray:
            labels = np.empty(len(edges.idx), np.intp)
            _jit.cone_labels(edges.idx, edges.weights, scores, own, labels)
            return order[labels]

        return decide

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""

        def embed(rows: Rows) -> FloatArray:
            return unit_rows(self.factor.edges(rows).mean_vectors(self.vectors))

        return embed
