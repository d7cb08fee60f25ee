"""A graph between the rows themselves: mutual nearest neighbours, connected by construction.

Two rows are connected where each is among the nearest rows of the other. Such edges avoid hubs and
keep clusters of different density apart; what they leave unconnected is held together by edges of
low weight [brito1997, maier2009].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored, unstored
from mercer._run.tally import kernel_values
from mercer._run.threads import single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import (
    COMPARED_ROWS,
    Approximation,
    Factor,
    Resampling,
    SpectralMap,
    Surroundings,
    as_sample,
)
from mercer.factors.given_affinity import refuse_matrix, refuse_rank
from mercer.factors.landmarks import EdgeLabeller, Edges, LandmarkGraph, labels_by_edges, self_scale
from mercer.factors.problem import Problem
from mercer.factors.search import (
    N_PROBES,
    PRODUCTS,
    WIDE,
    ListSearch,
    Search,
    choose_landmarks,
    make_search,
    nearest_all,
    nearest_in_lists,
    projected,
    projection_of,
)
from mercer.kernels.base import Kernel
from mercer.kernels.exponential import RBF
from mercer.linalg.eigen import Solver
from mercer.linalg.products import PRODUCT_ROWS, unit_rows
from mercer.linalg.spanning import spanning_edges
from mercer.linalg.walks import leading_walk
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import Rows
from mercer.rows.sample import Sample, evenly
from mercer.rows.source import spans

# Chosen on 77 public sets (65 generated, 12 real tables), confirmed on Gaussians of equal and
# unequal spread and on samples of pendigits, letter, satimage, shuttle, covtype and mnist:
N_NEIGHBORS = 10  # 8 and 15: mean ARI .87 and .88 instead of .89 on generated sets, alike on tables
N_WEAK = 3  # nearest rows that are connected whether mutual or not
WEAK_EDGE = 0.3
SPANNING_EDGE = 0.01  # between parts that no other edge connects
SMALL_PART = 0.1  # of the mean cluster: if parts outnumber clusters, those below are no clusters
FAR = 30.0  # times as far from all others as these from each other: a row is a part of its own
WIDER = 2  # times as many neighbours, in the second graph that a fit compares
WIDEST = 4  # in the graph that replaces one whose partition other rows would not confirm
SPARSE = 0.1  # of the rows, the least dense: they can be left out of the eigenvectors
CORE = 0.8  # of the rows, the densest: there, few near rows are in different clusters

EXACT_ROWS = 5000  # of more than 3 columns: beyond, neighbours are sought in lists
LIST_ROWS = 64  # rows of a list, on average
RESAMPLED_ROWS = 4000  # rows that are clustered again to see whether the clusters are stable
POINTS = 20_000  # rows whose coordinates are clustered, at most
SWEEPS = 3  # of Lloyd's algorithm over the landmarks of the lists


class Neighbors(Approximation):
    """Edges between rows that are each among the nearest rows of the other.

    A mutual edge has the weight 1. Each row is connected to its 3 nearest rows by edges of weight
    0.3 as well (where the graph has more parts than requested clusters, rows of small parts to
    3 rows of other parts too), and parts that remain unconnected by a minimum spanning tree of
    weight 0.01: so a few stray rows do not become a cluster. A new row is placed at the mean of
    its neighbours, weighted by 1/distance²; a row of the fit stays where it was.

    Neighbours are exact for up to 5,000 rows and for up to 3 features. Beyond, they are sought
    among the rows that share one of their 12 nearest landmarks (inverted lists of about 64 rows);
    the measured recall is part of the fit report.

    Cost: n·768·d for the search, then an eigensolver on about 10·n numbers. Up to 100,000 rows
    take part, as everywhere.

    Parameters
    ----------
    n_neighbors : int, default=10
        Nearest rows of each row that can be connected to it.
    weights : {"equal", "gaussian", "rank"}, default="equal"
        Weights of mutual edges: all 1, falling with the distance (with the kernel's bandwidth,
        or that of the mean distance), or 1, 1/2, 1/3 … by rank.

    Examples
    --------
    >>> from mercer import Neighbors, SpectralClustering
    >>> from mercer.datasets import moons
    >>> from mercer.metrics import adjusted_rand
    >>> X, y = moons(400, random_state=0)
    >>> graph = Neighbors(n_neighbors=12)
    >>> model = SpectralClustering(2, approximation=graph, random_state=0).fit(X)
    >>> adjusted_rand(y, model.labels_)
    1.0
    """

    scales_itself = True
    own_bandwidth = "none: edges between mutual neighbours have equal weights"
    takes_cosine = False
    is_sparse = True
    has_dense_form = False
    labels_training = True
    growth = 1.2

    @classmethod
    def of_rank(cls, rank: Any, *, is_default: bool) -> Neighbors:
        if not is_default:
            refuse_rank(rank)
        return cls()

    def __init__(
        self,
        n_neighbors: int = N_NEIGHBORS,
        *,
        weights: Literal["equal", "gaussian", "rank"] = "equal",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (NeighborGraph, LandmarkGraph)  # files of earlier versions hold the latter

    def fit(
        self,
        kernel: Kernel | None,
        X: Any,
        *,
        rng: np.random.Generator,
        threads: int = 1,
        n_clusters: int = 1,
    ) -> NeighborGraph:
        """Find the nearest rows of each row of X; kernel None scales itself."""
        self.check(kernel)
        sample = as_sample(kernel, X)
        with single_threaded_blas():
            projection = projection_of(sample.rows, rng=rng)
            Z = projected(sample.rows, projection, sample.format, threads)
            m = min(WIDER * self.n_neighbors + 1, len(Z))
            search, idx, dist = _search_rows(Z, sample.weights, m, rng=rng, threads=threads)
            lists = Lists.of(idx, dist)
        gamma = (
            lists.scale(self.n_neighbors, sample.weights) if kernel is None else kernel._number()
        )
        return NeighborGraph(
            sample.format,
            projection,
            search,
            min(self.n_neighbors, len(Z)),
            gamma,
            "gaussian" if kernel is not None else self.weights,
            lists=lists,
            n_linked=self.n_neighbors,
            n_clusters=n_clusters,
        )

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        """Rows in float64 and float32, lists of neighbours twice over, products of a block."""
        q = min(n_features, 2 * WIDE)
        found = 4 * self._n_listed(n_rows) + N_PROBES + 8
        block = PRODUCT_ROWS * max(n_rows // LIST_ROWS, min(n_rows, EXACT_ROWS))
        return n_rows * (8 * found + 28 * q) + 4 * max(PRODUCTS, block)

    def width(self, n_rows: int) -> int:
        return 2 * self._n_listed(n_rows)

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """Lists, graphs as they are combined, and the vectors of an eigensolver."""
        return 8 * n_rows * (8 * self._n_listed(n_rows) + 8 * n_vectors + 20)

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        q, block = min(n_features, 2 * WIDE), PRODUCT_ROWS * min(n_rows, EXACT_ROWS)
        return 8 * tile_rows * (q + 4 * WIDER * self.n_neighbors) + 4 * max(PRODUCTS, block)

    def for_given_matrix(self, *, by_name: bool) -> Approximation:
        return refuse_matrix(self)

    def for_ensemble(self) -> Approximation:
        return self

    def _context(self, problem: Problem, n_clusters: int) -> dict[str, Any]:
        return {"n_clusters": n_clusters}

    def check(self, kernel: Kernel | None) -> None:
        if not self.n_neighbors >= 1:
            raise ValueError(f"n_neighbors={self.n_neighbors!r} must be 1 or more")
        if self.weights not in ("equal", "gaussian", "rank"):
            raise ValueError(
                f"weights={self.weights!r} is unknown; choose 'equal', 'gaussian' or 'rank'"
            )
        if kernel is not None and not (kernel.is_gaussian and kernel.columns is None):
            raise ValueError(
                "neighbour graphs connect rows by Euclidean distance, which "
                f"{kernel!r} is not a function of; use kernel=None or RBF, or another "
                "approximation such as 'cholesky' or 'nystrom'"
            )

    def _n_listed(self, n_rows: int) -> int:
        return (WIDEST if n_rows <= COMPARED_ROWS else WIDER) * int(self.n_neighbors)


@frozen
class Lists:
    """The nearest rows of each row of the fit, itself apart, nearest first."""

    idx: IdArray  # (n, m)
    dist: FloatArray  # (n, m) squared distances
    first: IdArray  # (n,) the first row at the same place: itself, where none is equal

    @classmethod
    def of(cls, idx: IdArray, dist: FloatArray) -> Lists:
        """What a search for all rows found, in which each row comes first, or an equal one."""
        n, m = idx.shape
        others = idx != np.arange(n)[:, None]
        others[others.all(axis=1), -1] = False  # so many equal rows that it is not in its own list
        rest = (n, m - 1)
        first = np.where(dist[:, 0] == 0, idx[:, 0], np.arange(n))
        return cls(idx[others].reshape(rest), dist[others].reshape(rest), first)

    def edges(self, n_neighbors: int, has_edges: Any = True) -> sp.csr_array:
        """1 for the nearest rows of each row that `has_edges`."""
        n, m = self.idx.shape
        columns = self.idx[:, : min(n_neighbors, m)]
        known = (columns >= 0) & np.broadcast_to(has_edges, n)[:, None]
        indptr = np.r_[0, np.cumsum(known.sum(axis=1))]
        return sp.csr_array((np.ones(indptr[-1]), columns[known], indptr), shape=(n, n))

    def scale(self, n_neighbors: int, weights: FloatArray) -> float:
        """The bandwidth that the mean distance to neighbours suggests."""
        near = self.dist[:, :n_neighbors]
        return self_scale(near, weights) if near.size else 1.0

    def densest(self, share: float) -> IdArray:
        """The rows that reach as many others within the shortest distances, in ascending order."""
        order = np.argsort(self.dist.max(axis=1), kind="stable")
        return np.sort(order[: max(int(np.ceil(share * len(order))), 1)])

    def among(self, part: IdArray, n_neighbors: int) -> Lists:
        """The nearest of part of the rows, numbered as there, as far as the lists hold them.

        -1 stands for none.
        """
        place = np.full(len(self.idx), -1)
        place[part] = np.arange(len(part))
        idx = place[self.idx]
        order = np.argsort(idx < 0, axis=1, kind="stable")[:, :n_neighbors]
        idx, dist = (np.take_along_axis(values, order, axis=1) for values in (idx, self.dist))
        return Lists(idx, dist, self.first)

    def take(self, part: IdArray) -> Lists:
        """The lists of part of the rows, among themselves."""
        near = self.among(part, self.idx.shape[1])
        return Lists(near.idx[part], near.dist[part], np.arange(len(part)))


@frozen
class NeighborGraph(Factor):
    """The rows of the fit, connected to each other, and edges from any row to its nearest."""

    points_are_rows = True

    format: RowFormat = stored(RowFormat)
    projection: FloatArray | None = stored("(d, q) float64, finite, or None")
    search: Search | ListSearch = stored(Search | ListSearch)
    n_neighbors: int = stored("int, in [1, p]")
    gamma: float = stored("float, finite, > 0")
    weighting: str = stored("one of equal | gaussian | rank")
    lists: Lists | None = unstored()
    n_linked: int | None = unstored()  # nearest rows that can be mutual neighbours
    n_clusters: int | None = unstored()  # that were asked for
    sparse_share: float | None = unstored()  # share of the rows that eigenvectors leave out

    def check(self) -> None:
        expect(not self.format.blocks, "a neighbour graph has no column blocks")

    def check_model(self, kernel: Kernel, n_features: int) -> None:
        """Rows have the columns that lead to the graph's, and the kernel is the graph's."""
        inward = self.search.landmarks.T if self.projection is None else self.projection
        found, shift = len(inward), self.format.shift
        expect(found == n_features, f"the graph takes {found} columns, but X has {n_features}")
        is_shifted = shift is None or len(shift) == n_features
        expect(is_shifted, "the shift of the row format does not match the columns of the rows")
        own, is_unit = kernel.of_unit_rows(), self.format.unit_length
        is_same = own.is_gaussian and own.columns is None and kernel.scales_rows == is_unit
        is_same = is_same and kernel.gamma == self.raw_kernel().gamma
        expect(is_same, "the kernel is not that of the neighbour graph")

    @property
    def rank(self) -> int:
        return len(self.search.landmarks)

    @property
    def trace_error(self) -> None:
        return None

    @property
    def kernel(self) -> RBF:
        """A Gaussian of the mean distance between neighbours, or that of their weights."""
        return RBF(self.gamma)

    @property
    def training_edges(self) -> Edges | None:
        """A row of the fit is at its own place."""
        if self.lists is None:
            return None
        return Edges(self.lists.first[:, None], np.ones((self.rank, 1)))

    def notes(self) -> list[str]:
        return [] if self.lists is None else self.search.notes(self.n_neighbors)

    def row_space(self, rows: Rows) -> FloatArray:
        """The rows, projected where they are wide: distances are those of the graph."""
        return projected(self.format.apply(rows), self.projection, self.format)

    def edges(self, rows: Rows) -> Edges:
        """The edges from raw rows to their nearest rows: a row of the fit has one, to itself."""
        idx, dist = self.search.nearest(self.row_space(rows), self.n_neighbors)
        kernel_values.add(idx.size)
        return Edges(idx, _inverse_distances(dist))

    def rows(self, X: Any) -> sp.csr_array:
        """B for any rows, seen or new: CSR (n, rank), each row's weights summing to 1."""
        source = as_source(X)
        tiles = [self.edges(source.read(*tile)).shares(self.rank) for tile in spans(source.n_rows)]
        return sp.csr_array(sp.vstack(tiles))

    def wider(self) -> NeighborGraph | None:
        """The graph of twice as many neighbours, from the same search."""
        if self.lists is None or self.n_linked is None or self.lists.idx.shape[1] <= self.n_linked:
            return None
        return replace(self, n_linked=WIDER * self.n_linked)

    def widest(self) -> NeighborGraph:
        """The graph of four times as many neighbours, which are sought again."""
        lists, Z = self._training(), self.search.landmarks
        m = min(WIDEST * self.n_neighbors + 1, len(Z))
        if m > lists.idx.shape[1] + 1:
            with single_threaded_blas():
                search = make_search(Z, Z, m) if _is_exact(Z) else self.search
                lists = Lists.of(*nearest_all(Z, search, m))
        return replace(self, lists=lists, n_linked=WIDEST * self.n_neighbors, sparse_share=None)

    def of_dense_rows(self) -> NeighborGraph:
        """The same graph whose least dense rows follow their neighbours."""
        return replace(self, sparse_share=SPARSE)

    def core_edges(self, n_neighbors: int) -> tuple[IdArray, IdArray] | None:
        """The densest rows of the fit, and the nearest of them of each, numbered among them.

        A row takes the place of neighbours that are none of them.
        """
        if self.lists is None or not self.lists.idx.size:
            return None
        core = self.lists.densest(CORE)
        near = self.lists.take(core).idx[:, :n_neighbors]
        return core, np.where(near >= 0, near, np.arange(len(core))[:, None])

    def near_edges(self, n_neighbors: int) -> IdArray | None:
        """The nearest rows of each row of the fit."""
        found = None if self.lists is None else self.lists.idx[:, :n_neighbors]
        return None if found is None or not found.size else found

    def labels_of_cuts(self, cuts: tuple[Any, ...]) -> Callable[[Rows], IdArray]:
        """The edges of a row are found once for all cuts."""
        return labels_by_edges(self, cuts)

    def row_coordinates(self) -> FloatArray:
        """The rows of the fit, in the space where distances are taken."""
        return self.search.landmarks

    def on_landmarks(self, landmarks: FloatArray) -> LandmarkGraph:
        """Edges from any row to all of these landmarks, which are in the same space."""
        dist = Search(landmarks).nearest(self.search.landmarks, 1)[1]
        gamma = self_scale(dist, np.ones(len(dist)))
        return LandmarkGraph(
            self.format, self.projection, Search(landmarks), len(landmarks), gamma, "gaussian"
        )

    def spectral_map(
        self,
        sample: Sample,
        n_vectors: int,
        *,
        solver: Solver,
        rng: np.random.Generator,
        threads: int = 1,
    ) -> SpectralMap:
        """The walk between the rows of the fit: a new row is at the mean of its neighbours."""
        lists, Z = self._training(), self.search.landmarks
        return self._map(Z, lists, sample.weights, n_vectors, solver=solver, rng=rng)

    def _map(
        self, Z: FloatArray, lists: Lists, weights: FloatArray, n_vectors: int, **how: Any
    ) -> SpectralMap:
        """The walk between rows; those that it leaves out are at the mean of their neighbours."""
        dense = np.arange(len(Z))
        if self.sparse_share is not None:
            dense = lists.densest(1.0 - self.sparse_share)
        if len(dense) == len(Z):
            return _map_of_lists(Z, lists, weights, self._link(lists, weights), n_vectors, **how)
        some = lists.take(dense)
        edges = self._link(some, weights[dense])
        found = _map_of_lists(Z[dense], some, weights[dense], edges, n_vectors, **how)
        vectors = _placed(lists, dense, found.vectors, self.n_neighbors)
        lost = np.setdiff1d(np.flatnonzero(lists.among(dense, 1).idx[:, 0] < 0), dense)
        if len(lost):
            idx, dist = Search(Z[dense]).nearest(Z[lost], self.n_neighbors)
            vectors[lost] = Edges(idx, _inverse_distances(dist)).mean_vectors(found.vectors)
        mass, points = np.zeros(len(Z)), evenly(len(Z), POINTS)
        mass[dense[evenly(len(dense), POINTS)]] = found.point_weights
        return replace(found, vectors=vectors, points=vectors[points], point_weights=mass[points])

    def labeller(self, vectors: FloatArray, directions: FloatArray) -> NeighborLabeller:
        return NeighborLabeller(self, vectors, directions)

    def mass(self, sample: Sample) -> FloatArray | None:
        """How many rows each row of the fit stands for, beside the median; None: all are alike."""
        copies = _copies(sample.weights)
        return copies if copies.max() > 1.0 else None

    def nearby(self, rows: Rows) -> tuple[IdArray, FloatArray]:
        """As many nearest rows of raw rows as the fit sought, and squared distances."""
        Z = self.row_space(rows)
        return self.search.nearest(Z, min(WIDER * self.n_neighbors + 1, self.rank))

    def resample(
        self, found: SpectralMap, sample: Sample, judges: IdArray, n_clusters: int
    ) -> Resampling:
        """The graph of part of the rows; the others are placed at the mean of their neighbours."""
        lists = self._training()
        Z, weights, near = self.search.landmarks, sample.weights, self.n_neighbors
        if len(Z) > RESAMPLED_ROWS:  # their neighbours among fewer rows are others
            ids = evenly(len(Z), RESAMPLED_ROWS)
            Z, weights = Z[ids], weights[ids]
            with single_threaded_blas():
                search = make_search(Z, Z, lists.idx.shape[1] + 1)
                lists = Lists.of(*nearest_all(Z, search, lists.idx.shape[1] + 1))

        def points(part: IdArray, rng: np.random.Generator) -> Any:
            how: Any = {"solver": "auto", "rng": rng}
            drawn = self._map(Z[part], lists.take(part), weights[part], n_clusters, **how)
            vectors = drawn.vectors[:, :n_clusters]
            return unit_rows(vectors), drawn.point_weights, _placed(lists, part, vectors, near)

        return Resampling(len(Z), points)

    def _training(self) -> Lists:
        assert self.lists is not None
        return self.lists

    def _link(self, lists: Lists, weights: FloatArray) -> sp.csr_array:
        """Mutual edges and weak ones."""
        assert self.n_linked is not None
        if len(lists.idx) == 1:
            return sp.csr_array(np.ones((1, 1)))  # a single row is its own neighbour
        copies = _copies(weights)
        others = copies <= self.n_linked  # else its own copies are all its neighbours
        near, weak = lists.edges(self.n_linked, others), lists.edges(N_WEAK, others)
        mutual = near.minimum(near.T)
        if self.weighting != "equal":
            mutual = mutual.multiply(_weights_of(lists, self.n_linked, self.gamma, self.weighting))
        edges = sp.csr_array(mutual.maximum(weak.maximum(weak.T) * WEAK_EDGE))
        edges = _detach_far_rows(edges, lists, self.n_linked)
        edges = sp.csr_array(edges + _edges_of_copies(copies, self.n_linked))
        return _attach_small_parts(edges, lists, weights, self.n_clusters or 1)


@frozen
class NeighborLabeller(EdgeLabeller):
    """Labels by the mean of neighbours, which also tell how far a row is from others."""

    def surroundings(self, mass: FloatArray | None) -> Callable[[Rows], Surroundings]:
        """Raw rows → how far the last of their neighbours is, and how many have other labels.

        A row of the fit is no neighbour of itself.
        """
        own, decide, n_votes = self.own_labels(), self.labels(), self.factor.n_neighbors

        def look(rows: Rows) -> Surroundings:
            idx, dist = self.factor.nearby(rows)
            is_known, extra = dist[:, 0] == 0, np.zeros(len(idx))
            if mass is not None:
                extra[is_known] = mass[idx[is_known, 0]] - 1.0
            idx[is_known, :-1], dist[is_known, :-1] = idx[is_known, 1:], dist[is_known, 1:]
            near = idx[:, :-1], dist[:, :-1]
            return _look_around(*near, decide(rows), own, n_votes, mass, extra)

        return look

    def surroundings_of_training(self, fitted: Any, mass: FloatArray | None) -> Surroundings | None:
        """The lists of the fit hold all that is needed."""
        lists, own = fitted.lists, self.own_labels()
        if lists is None:
            return None
        extra = np.zeros(len(own)) if mass is None else mass[lists.first] - 1.0
        m = WIDER * fitted.n_neighbors  # those of new rows
        near, labels = (lists.idx[:, :m], lists.dist[:, :m]), own[lists.first]
        return _look_around(*near, labels, own, fitted.n_neighbors, mass, extra)


def _look_around(
    idx: IdArray,
    dist: FloatArray,
    labels: IdArray,
    own: IdArray,
    n_votes: int,
    mass: FloatArray | None,
    extra: FloatArray,
) -> Surroundings:
    """From the nearest other rows; `extra`: how many more are at the row's own place.

    Of rows that stand for several, fewer are as many. Those at the same place have its label.
    """
    if idx.shape[1] == 0:
        return Surroundings(labels, np.zeros(len(idx)), np.zeros(len(idx)))
    votes = (own[idx[:, :n_votes]] != labels[:, None]) & (dist[:, :n_votes] > 0)
    last = np.full(len(idx), idx.shape[1] - 1)
    if mass is not None:
        counts = np.cumsum(mass[idx], axis=1) + extra[:, None]
        last = np.minimum((counts < idx.shape[1]).sum(axis=1), last)
    reach = np.sqrt(dist[np.arange(len(idx)), last])
    if mass is not None:
        reach[extra >= idx.shape[1]] = 0.0
    return Surroundings(labels, reach, votes.mean(axis=1))


def _copies(weights: FloatArray) -> FloatArray:
    """How many rows each stands for, beside the median one."""
    return np.maximum(weights / np.median(weights), 1.0)


def _edges_of_copies(copies: FloatArray, n_linked: int) -> sp.dia_array:
    """A row that stands for several equal ones is connected to itself, as these would be."""
    return sp.diags_array(np.minimum(copies - 1.0, n_linked) / copies)


def _far_rows(lists: Lists) -> IdArray:
    """Rows that are thirty times as far from all others as those are from each other.

    And as rows are from each other on the whole: in the middle of a cluster that thins out from
    there, a few rows can be much closer to each other than any others.
    """
    if lists.idx.shape[1] <= N_WEAK:
        return np.empty(0, np.intp)
    known = lists.idx[:, 0] >= 0
    nearest = np.where(known, lists.dist[:, 0], 0.0)
    scale = np.where(lists.idx[:, N_WEAK - 1] >= 0, lists.dist[:, N_WEAK - 1], np.inf)
    usual = np.maximum(scale[lists.idx[:, 0]], np.median(scale))
    return np.flatnonzero(known & (nearest > FAR**2 * usual))


def _detach_far_rows(edges: sp.csr_array, lists: Lists, degree: float) -> sp.csr_array:
    """Far rows keep an edge to themselves alone: each may be a cluster, if there is room."""
    far = _far_rows(lists)
    if not len(far):
        return edges
    kept = np.ones(edges.shape[0])
    kept[far] = 0.0
    alone = sp.diags_array(degree * (1.0 - kept))
    return sp.csr_array(sp.diags_array(kept) @ edges @ sp.diags_array(kept) + alone)


def _attach_small_parts(
    edges: sp.csr_array, lists: Lists, weights: FloatArray, n_clusters: int
) -> sp.csr_array:
    """Rows of parts too small to be clusters get weak edges to their nearest rows elsewhere.

    Only where the graph has more parts than clusters: a few rows far away may be a cluster.
    """
    n_parts, part = connected_components(edges, directed=False)
    if n_parts <= n_clusters:
        return edges
    sizes = np.bincount(part, weights=weights)
    small = np.flatnonzero(sizes[part] < SMALL_PART * weights.sum() / n_clusters)
    small = np.setdiff1d(small, _far_rows(lists))
    near = lists.idx[small]
    outward = (near >= 0) & (part[near] != part[small, None])
    outward &= np.cumsum(outward, axis=1) <= N_WEAK
    one, other = np.repeat(small, outward.sum(axis=1)), near[outward]
    more = sp.csr_array((np.full(len(one), WEAK_EDGE), (one, other)), shape=edges.shape)
    return sp.csr_array(edges.maximum(more).maximum(more.T))


def _is_exact(Z: FloatArray) -> bool:
    """Whether exact neighbours are cheap: of few rows, or few features."""
    return len(Z) <= EXACT_ROWS or Z.shape[1] <= 3


def _search_rows(
    Z: FloatArray, weights: FloatArray, m: int, *, rng: np.random.Generator, threads: int
) -> tuple[Search | ListSearch, IdArray, FloatArray]:
    """The m nearest rows of each."""
    if _is_exact(Z):
        exact = make_search(Z, Z, m)
        idx, dist = nearest_all(Z, exact, m, threads)
        return exact, idx, dist
    how: dict[str, Any] = {"sweeps": SWEEPS, "rng": rng, "threads": threads}
    landmarks = choose_landmarks(Z, weights, len(Z) // LIST_ROWS, **how)
    return nearest_in_lists(Z, landmarks, m, threads)


def _map_of_lists(
    Z: FloatArray,
    lists: Lists,
    weights: FloatArray,
    edges: sp.csr_array,
    n_vectors: int,
    *,
    solver: Solver,
    rng: np.random.Generator,
) -> SpectralMap:
    """Leading eigenvectors of the graph, its parts connected by a spanning tree."""
    tree = spanning_edges(Z, edges, lists.idx, lists.dist) * SPANNING_EDGE
    walk = leading_walk(edges, weights, n_vectors, bridges=tree, solver=solver, rng=rng)
    some = evenly(len(Z), POINTS)
    solved = (walk.values, walk.residuals, walk.solver)
    points, weights = walk.vectors[some], walk.weights[some]
    return SpectralMap(walk.vectors, points, weights, *solved, n_parts=walk.n_parts)


def _weights_of(lists: Lists, n_linked: int, gamma: float, weighting: str) -> sp.csr_array:
    """Weights of the edges of the lists, symmetric where the edges are."""
    near = lists.edges(n_linked)
    known = lists.idx[:, :n_linked] >= 0
    ranks = np.broadcast_to(np.arange(1, known.shape[1] + 1), known.shape)
    values = 1.0 / ranks if weighting == "rank" else np.exp(-gamma * lists.dist[:, :n_linked])
    W = sp.csr_array((values[known], near.indices, near.indptr), shape=near.shape)
    return sp.csr_array((W + W.T) / 2)


def _inverse_distances(dist: FloatArray) -> FloatArray:
    """1/distance², as shares of the nearest one's: 1, 0, 0 … where that is at distance 0."""
    nearest = dist[:, :1]
    weights: FloatArray = np.where(dist > 0, nearest, 0.0) / np.where(dist > 0, dist, 1.0)
    weights[:, 0] = 1.0
    return weights


def _placed(lists: Lists, part: IdArray, vectors: FloatArray, n_neighbors: int) -> FloatArray:
    """Coordinates of all rows from those of part of them: the mean of their neighbours there."""
    near = lists.among(part, n_neighbors)
    missing = near.idx < 0
    weights = np.where(missing, 0.0, _inverse_distances(near.dist))
    weights[:, 0] = 1.0  # a row without any neighbour there goes with the first
    placed = Edges(np.where(missing, 0, near.idx), weights).mean_vectors(vectors)
    placed[part] = vectors
    return placed
