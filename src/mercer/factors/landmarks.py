"""A sparse graph between rows and landmarks: the fast road to spectral clustering.

Each row is connected to its few nearest landmarks by Gaussian weights b_ij; the affinity of two
rows is W = B D_L⁻¹ Bᵀ, never formed. [cai2015 (LSC), huang2020 (U-SPEC)]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Record, expect, stored, unstored
from mercer._run.tally import kernel_values
from mercer._run.threads import single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import (
    Approximation,
    ConeLabeller,
    Factor,
    Resampling,
    SpectralMap,
    Surroundings,
    as_sample,
    check_whole,
)
from mercer.factors.leading_search import LeadingSearch, search_landmarks, search_wide
from mercer.factors.problem import Problem
from mercer.factors.search import (
    PRODUCTS,
    ROWS_PER_LANDMARK,
    WIDE,
    Search,
    choose_landmarks,
    nearest_all,
    projected,
    projection_of,
)
from mercer.kernels.base import Kernel
from mercer.kernels.exponential import RBF
from mercer.linalg.eigen import Solver, leading_eigenpairs
from mercer.linalg.numbering import content_order
from mercer.linalg.products import PRODUCT_ROWS, unit_rows
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import Rows
from mercer.rows.sample import Sample
from mercer.rows.source import spans

LEAST_DEGREE = 1e-10  # of the mean: below, a landmark is ignored

_jit = LazyModule("mercer.factors._landmarks_jit")

FEW_ROWS = 1000  # below, every row is a landmark: an exact nearest-neighbour graph
MOST_LANDMARKS = 1000  # by rank="auto"
NEIGHBORS = 4  # landmarks per row (one more where a landmark stands for few rows)
EXACT_NEIGHBORS = 10  # per row where every row is a landmark
ENSEMBLE_RANK = 2000  # landmarks of an ensemble, by rank="auto"
MOST_DENSE = 3000  # landmarks: the graph between more of them is sparse
# Of clusters so many that they are merged instead of cut. On 200 directions of zipf sizes (200,000
# × 768), 6 per cluster gave an NMI of .70 instead of .74 and took 0.7 of the time of `predict`.
MANY_LANDMARKS = 10  # per cluster, of at least
ROWS_OF_ONE = 4  # rows each


class Landmarks(Approximation):
    """K ≈ B D_L⁻¹ Bᵀ with B sparse: n_neighbors weights per row, on `rank` landmarks.

    1. More than 64 features (or sparse rows) are projected on the principal components of 5,000
       rows that keep 90 % of their variance, and 75 % of that of differences between near rows.
    2. Landmarks are means: a random start, `sweeps` of Lloyd on 10 rows per landmark.
    3. The nearest landmarks are found exactly: by products, or by a grid for up to 3 features.
       Of 128 projected coordinates or more, the leading ones propose 16 candidates, if that finds
       99.9 % of the nearest landmarks; the fit report has the measured recall.
    4. Weights are exp(-γ‖x - l‖²) with γ = 1/(2s²), s the mean distance of a row to its
       landmarks, so the graph is self-tuning; but a row's own s is at least half the distance to
       its nearest landmark, and 0.3 of the mean distance to all of its landmarks, so that
       outliers stay connected to several landmarks. (0.3 was chosen on generated blobs, moons,
       rings and spirals, pendigits, satimage and letter; wider bandwidths cut spirals wrongly,
       narrower ones make a cluster of one stray point.)

    Cost: n·rank·d products (0.1 µs a row in the plane); memory for rank² and a tile.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Number of landmarks. "auto" is min(1000, n/10), at least 10 per cluster; n/4 below
        3,000 rows and every row below 1,000 (means of a few rows are less noisy than rows: 250 of
        them separate 1,000 points on spirals more reliably than all 1,000 do).
    n_neighbors : int or None, default=None
        Landmarks per row; None is 4, or 5 if a landmark represents fewer than five rows, or 10
        if every row is one. Chosen on generated shapes, pendigits, satimage and letter, and
        confirmed on mnist.
    weights : {"gaussian", "rank"}, default="gaussian"
        "gaussian", or "rank" for 1, 1/2, 1/3 …, which is robust to outliers.
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
    takes_cosine = False
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
            projection = projection_of(sample.rows, rng=rng)
            Z = projected(sample.rows, projection, sample.format, threads, dtype=np.float32)
            rank = self._rank(len(sample), n_clusters)
            how: dict[str, Any] = {"sweeps": self.sweeps, "rng": rng, "threads": threads}
            L = choose_landmarks(Z, sample.weights, rank, search_for=search_wide, **how)
            m = self.n_neighbors or _usual_neighbors(len(Z), len(L))
            m = min(m, max(len(L) // n_clusters, 1))  # no more than a cluster has landmarks
            search = search_landmarks(L, Z, m)
            idx, dist = nearest_all(Z, search, min(m, len(L)), threads)
            used = np.unique(idx)
            if len(used) < len(L) < len(Z):  # landmarks that no row is near tell nothing
                search, idx = search_landmarks(L[used], Z, m), np.searchsorted(used, idx)
        gamma = self_scale(dist, sample.weights) if kernel is None else kernel._number()
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
        from mercer.factors.given_affinity import GivenAffinity, refuse_matrix, refuse_rank

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


class ManyLandmarks(Landmarks):
    """`Landmarks` for very many clusters, which are merged from landmarks instead of cut.

    What `approximation="auto"` takes for more than 128 clusters: no eigenvectors in number of the
    clusters, and a sparse graph between the landmarks.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Number of landmarks.
    """

    merges_clusters = True

    def __init__(self, rank: int | str = "auto") -> None:
        super().__init__(rank)

    @classmethod
    def for_clusters(cls, n_sample: int, n_clusters: int) -> ManyLandmarks:
        """Six per cluster, of four rows or more each."""
        return cls(min(MANY_LANDMARKS * n_clusters, max(n_sample // ROWS_OF_ONE, 1)))

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """The edges of all rows, the sparse graph, and what merging makes of it."""
        pairs = n_rows * self._most_neighbors() ** 2
        return 8 * n_rows * self.width(n_rows) + 120 * min(pairs, self._rank(n_rows, 1) ** 2)


@frozen
class Edges:
    """The landmarks of rows and the weights of these edges."""

    idx: IdArray  # (n, m)
    weights: FloatArray  # (n, m)

    def take(self, rows: Any) -> Edges:
        """Those of some of the rows."""
        return Edges(self.idx[rows], self.weights[rows])

    def shares(self, rank: int) -> sp.csr_array:
        """As a matrix (n, rank) whose rows sum to 1."""
        shares = self.weights / self.weights.sum(axis=1, keepdims=True)
        indptr = np.arange(0, shares.size + 1, shares.shape[1])
        return sp.csr_array((shares.ravel(), self.idx.ravel(), indptr), shape=(len(shares), rank))

    def mean_vectors(self, vectors: FloatArray) -> FloatArray:
        """The mean of the landmarks' vectors by the weights of each row's edges."""
        out = np.empty((len(self.idx), vectors.shape[1]))
        _jit.mean_vectors(self.idx, self.weights, vectors, out)
        return out


@frozen
class LandmarkGraph(Factor):
    """Edges from any row to its nearest landmarks."""

    takes_ensembles = True

    format: RowFormat = stored(RowFormat)
    projection: FloatArray | None = stored("(d, q) float64, finite, or None")
    search: Search | LeadingSearch = stored(Search | LeadingSearch)
    n_neighbors: int = stored("int, in [1, p]")
    gamma: float = stored("float, finite, > 0")
    weighting: str = stored("one of gaussian | rank")
    ties_rows: bool = stored("bool", False)  # of files of earlier versions: nothing reads it
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
        own, is_unit = kernel.of_unit_rows(), self.format.unit_length
        is_same = own.is_gaussian and own.columns is None and kernel.scales_rows == is_unit
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

    def row_space(self, rows: Rows) -> FloatArray:
        """The rows, projected where they are wide: distances are those of the graph."""
        rows = self.format.apply(rows)
        return projected(rows, self.projection, self.format, dtype=np.float32)

    def notes(self) -> list[str]:
        return self.search.notes(self.n_neighbors)

    def nearest(self, rows: Rows) -> tuple[IdArray, FloatArray]:
        """The landmarks of raw rows and squared distances; the same wherever a row stands."""
        return self.search.nearest(self.row_space(rows), self.n_neighbors)

    def edges(self, rows: Rows) -> Edges:
        """The edges from raw rows to landmarks."""
        idx, dist = self.nearest(rows)
        return Edges(idx, _edge_weights(dist, self.gamma, self.weighting))

    def spectral_map(
        self,
        sample: Sample,
        n_vectors: int,
        *,
        solver: Solver,
        rng: np.random.Generator,
        threads: int = 1,
    ) -> SpectralMap:
        """Transfer cut [li2012]: the eigenproblem of rows and landmarks, solved on landmarks."""
        E, degrees, scale = self._landmark_affinities(self._edges(), sample.weights)
        pairs = leading_eigenpairs(_scaled(E, scale), n_vectors, solver=solver, rng=rng)
        vectors = scale[:, None] * pairs.vectors
        return SpectralMap.of_pairs(vectors, vectors, degrees, pairs)

    def labeller(self, vectors: FloatArray, directions: FloatArray) -> LandmarkLabeller:
        return LandmarkLabeller(self, vectors, directions)

    def labels_of_cuts(self, cuts: tuple[Any, ...]) -> Callable[[Rows], IdArray]:
        """The edges of a row are found once for all cuts."""
        return labels_by_edges(self, cuts)

    def resample(
        self, found: SpectralMap, sample: Sample, judges: IdArray, n_clusters: int
    ) -> Resampling:
        """Eigenvectors of the landmarks as part of the rows connect them."""
        edges, weights, judged = self._edges(), sample.weights, self._edges().take(judges)

        def points(part: IdArray, rng: np.random.Generator) -> Any:
            E, degrees, scale = self._landmark_affinities(edges.take(part), weights[part])
            start = found.values, found.vectors / scale[:, None]
            pairs = leading_eigenpairs(_scaled(E, scale), n_clusters, start=start, rng=rng)
            vectors = (scale[:, None] * pairs.vectors)[:, :n_clusters]
            return unit_rows(vectors), degrees, judged.mean_vectors(vectors)

        return Resampling(len(weights), points)

    def _edges(self) -> Edges:
        assert self.training_edges is not None
        return self.training_edges

    def affinities(self, weights: FloatArray, part: Any = slice(None)) -> sp.csr_array:
        """The graph between the landmarks: E = Bᵀ D⁻¹ B by the rows of the fit, or part of them."""
        B = self._edges().take(part).shares(self.rank)
        return sp.csr_array((B.T * weights[part]) @ B)

    def _landmark_affinities(
        self, edges: Edges, weights: FloatArray
    ) -> tuple[Any, FloatArray, FloatArray]:
        """Affinities between landmarks by the rows they share, their degrees, and degrees^-½."""
        if self.rank > MOST_DENSE:
            B = edges.shares(self.rank)
            E: Any = sp.csr_array((B.T * weights) @ B)
        else:
            E = np.zeros((self.rank, self.rank))
            _jit.landmark_graph(edges.idx, edges.weights, weights, E)
        degrees = np.asarray(E.sum(axis=1), np.float64)
        least = LEAST_DEGREE * degrees.mean()  # landmarks that are only ever a far fourth
        return E, degrees, 1.0 / np.sqrt(np.maximum(degrees, least))

    def rows(self, X: Any) -> sp.csr_array:
        """B for any rows, seen or new: CSR (n, rank), each row's weights summing to 1."""
        source = as_source(X)
        tiles = [self.edges(source.read(*tile)).shares(self.rank) for tile in spans(source.n_rows)]
        return sp.csr_array(sp.vstack(tiles))


def _scaled(E: Any, scale: FloatArray) -> Any:
    """D^-½ E D^-½."""
    if sp.issparse(E):
        return sp.csr_array(sp.diags_array(scale) @ E @ sp.diags_array(scale))
    return scale[:, None] * E * scale


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


def self_scale(dist: FloatArray, weights: FloatArray) -> float:
    """1/(2s²), s the mean distance of a row to its landmarks."""
    s = float(np.average(np.sqrt(dist).mean(axis=1), weights=weights))
    return 1.0 / (2.0 * s**2) if s > 0 else 1.0


def labels_by_edges(factor: Any, cuts: tuple[Any, ...]) -> Callable[[Rows], IdArray]:
    """Raw rows → labels by each of several partitions, from edges that are found once."""
    by_edges = [cut.labels_of_edges() for cut in cuts]

    def decide_all(rows: Rows) -> IdArray:
        edges = factor.edges(rows)
        return np.stack([decide(edges) for decide in by_edges])

    return decide_all


@frozen
class EdgeLabeller(ConeLabeller):
    """A row's coordinates are the weighted mean of those it has edges to; its cluster, their cone.

    Its edges may lead to landmarks or to rows of the fit.
    """

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        decide = self.labels_of_edges()
        return lambda rows: decide(self.factor.edges(rows))

    def labels_of_training(self, fitted: Any, sample: Sample) -> IdArray | None:
        """Their edges are at hand."""
        edges = fitted.training_edges
        return None if edges is None else self.labels_of_edges()(edges)

    def labels_of_edges(self) -> Callable[[Edges], IdArray]:
        """Edges → labels."""
        order, scores, own = self._scores()

        def decide(edges: Edges) -> IdArray:
            labels, total = np.empty(len(edges.idx), np.intp), np.empty(scores.shape[1])
            _jit.cone_labels(edges.idx, edges.weights, scores, own, total, labels)
            return order[labels]

        return decide

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""

        def embed(rows: Rows) -> FloatArray:
            return unit_rows(self.factor.edges(rows).mean_vectors(self.vectors))

        return embed

    def own_labels(self) -> IdArray:
        """The label of each landmark, or row of the fit."""
        order, _, own = self._scores()
        return order[own]

    def _scores(self) -> tuple[IdArray, FloatArray, IdArray]:
        """Clusters in an order that their numbers do not change, scores of landmarks, labels."""
        order = content_order(self.directions)
        scores = np.ascontiguousarray(self.vectors @ self.directions[order].T)
        return order, scores, scores.argmax(axis=1)


@frozen
class LandmarkLabeller(EdgeLabeller):
    """The same, with Gaussian weights that are computed only where they decide."""

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        if self.factor.weighting != "gaussian":
            return EdgeLabeller.labels(self)
        order, scores, own = self._scores()

        def decide(rows: Rows) -> IdArray:
            idx, dist = self.factor.nearest(rows)
            labels, total = np.empty(len(idx), np.intp), np.empty(scores.shape[1])
            given = (idx, dist, self.factor.gamma, scores, own)
            _jit.cone_labels_of_distances(*given, total, np.empty((1, idx.shape[1])), labels)
            return order[labels]

        return decide

    def surroundings(self, mass: FloatArray | None) -> Callable[[Rows], Surroundings]:
        """Raw rows → how far their landmarks are, and how many of these have other labels."""
        decide, own = self.labels_of_edges(), self.own_labels()
        return landmark_surroundings(self.factor, decide, own)


def landmark_surroundings(
    factor: LandmarkGraph, decide: Callable[[Edges], IdArray], own: IdArray
) -> Callable[[Rows], Surroundings]:
    """By the distance to the last landmark of a row, and the weight of those of other labels.

    Where rows have edges to all landmarks, as to the means of clusters, by that to the nearest.
    """
    last = 0 if factor.n_neighbors == factor.rank else factor.n_neighbors - 1

    def look(rows: Rows) -> Surroundings:
        idx, dist = factor.nearest(rows)
        weights = _edge_weights(dist, factor.gamma, factor.weighting)
        labels, doubt = decide(Edges(idx, weights)), np.empty(len(idx))
        _jit.share_of_others(idx, weights, own, labels, doubt)
        return Surroundings(labels, np.sqrt(dist[:, last]), doubt)

    return look
