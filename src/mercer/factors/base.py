"""What every approximation and every factor answers, with defaults where one makes sense.

An approximation makes a factor: a stand-in for the kernel matrix, K ≈ F Fᵀ or a sparse graph, that
works row by row. Estimators ask these verbs and never which factor they have. A new approximation
is one file with a subclass of each, and one line in `mercer.factors.names`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from mercer._run.frozen import frozen
from mercer._run.records import Record
from mercer._run.types import FloatArray, IdArray
from mercer.kernels.base import Kernel
from mercer.kernels.domain import check_columns
from mercer.kernels.unit_rows import UnitRows
from mercer.linalg.eigen import Solver
from mercer.linalg.eigenpairs import Eigenpairs
from mercer.linalg.products import row_products, unit_rows
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import Rows
from mercer.rows.sample import Sample, evenly
from mercer.rows.source import TILE
from mercer.rows.summary import Columns, check_rows

if TYPE_CHECKING:
    from mercer.factors.problem import Problem

COMPARED_ROWS = 20_000  # of more rows, one neighbour graph is fitted, and no other compared
LEAST_DENSITY = 1e-12  # of the mean: farther rows are all as far
TINY = np.finfo(float).tiny

CountedLabels: TypeAlias = tuple[IdArray, int]  # and how many of the rows no pivot sees


class Approximation(BaseEstimator):
    """Makes factors of one kind; its parameters are the user's."""

    default_kernel = "rbf"  # what kernel=None stands for
    default_rank: Any = 256  # of the approximation given by name
    scales_itself = False  # without a kernel and gamma, the graph chooses its own bandwidth:
    own_bandwidth = ""  # which it says in words
    takes_cosine = True  # as it is; else kernel="cosine" is its own kernel of rows of unit length
    takes_graph = False  # X itself is the graph
    is_sparse = False  # the factor has edges or bins, and no training rows
    has_dense_form = True  # `Factor.dense` gives features
    labels_training = False  # labels of the rows of the fit come without a pass over them
    makes_dense = False  # of sparse rows
    merges_clusters = False  # from landmarks, which are too many for eigenvectors of each cluster
    growth = 1.0  # time on n rows ~ n**growth
    rank: Any

    @classmethod
    def of_rank(cls, rank: Any, *, is_default: bool) -> Self:
        """The approximation that its name and this rank stand for; "auto" is its own default."""
        return cls(rank=cls.default_rank if rank == "auto" else rank)

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        """The classes of its factors, which model files may hold."""
        return ()

    def fit(self, kernel: Any, X: Any, *, rng: np.random.Generator, threads: int = 1) -> Any:
        """A factor of the kernel on these rows (anything `as_source` takes, or a Sample)."""
        raise NotImplementedError

    def fit_problem(
        self, problem: Problem, *, rng: np.random.Generator, threads: int, n_clusters: int = 1
    ) -> Any:
        """A factor of a problem's kernel on its sample, which new rows can be compared with."""
        context = self._context(problem, n_clusters)
        factor = self.fit(problem.kernel, problem.sample, rng=rng, threads=threads, **context)
        return factor.for_new_rows()

    def _context(self, problem: Problem, n_clusters: int) -> dict[str, Any]:
        """What `fit` takes beside the kernel and the sample."""
        return {}

    def check(self, kernel: Kernel | None) -> Any:
        """Refuse parameters and kernels that no data could make right."""

    def check_clusters(self, n_clusters: int) -> None:
        """Refuse a rank that cannot separate so many clusters."""
        rank = self.fixed_rank()
        if rank is not None and rank < n_clusters:
            raise ValueError(f"rank={rank} cannot separate n_clusters={n_clusters}; raise rank")

    def fixed_rank(self) -> int | None:
        """The rank as a number; None where there is none, or it is chosen later."""
        rank = self.get_params(deep=False).get("rank")
        return None if rank is None or isinstance(rank, str) else int(rank)

    def for_rows(self, n_rows: int, n_features: int, *, n_clusters: int = 1) -> Approximation:
        """The approximation for so many rows, columns and clusters, where that is left open."""
        return self

    def sample_rows(self, n_clusters: int) -> int:
        """So many rows of the sample are wanted for so many clusters; 0: as many as usual."""
        return 0

    def for_given_matrix(self, *, by_name: bool) -> Approximation:
        """What stands in when X is a matrix of affinities instead of rows."""
        return self

    def for_ensemble(self) -> Approximation:
        """The same, sized for an ensemble of partitions."""
        raise ValueError(
            "ensemble= joins partitions of a graph; use approximation='auto', 'neighbors' or "
            "'landmarks'"
        )

    def is_published(self) -> bool:
        """Is it an algorithm as published, whose ties are broken by the order of X?"""
        return False

    def enough_rows(self) -> int | None:
        """A draw of so many rows makes as good a factor as all of them (None: each row counts)."""
        return None

    def extra_passes(self, n_rows: int) -> int:
        """Passes over all rows that a fit on a sample of `n_rows` makes."""
        return 0

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        """Bytes that `fit` will hold on so many rows."""
        raise NotImplementedError

    def width(self, n_rows: int) -> int:
        """Columns of the dense factor of so many rows."""
        return min(int(self.rank), n_rows)

    def dense_bytes(self, n_rows: int, itemsize: int) -> int:
        """Bytes of the dense factor of so many rows, and of what it keeps of its fit."""
        return n_rows * self.width(n_rows) * itemsize

    def dense_memory(self, n_rows: int, itemsize: int) -> int:
        """Bytes while the dense factor is made of what `fit` gives."""
        return self.dense_bytes(n_rows, itemsize)

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """Bytes while leading directions of its factor are found, the factor included.

        F, and scaled tiles of it or coordinates of all rows and the cones found in them.
        """
        width = self.width(n_rows)
        tile = min(n_rows, TILE) * width * (itemsize + 8) + 5 * 8 * width**2
        cones = n_rows * (2 * itemsize * n_vectors + 80)
        return n_rows * width * itemsize + max(tile, cones)

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        """Bytes while so many rows are labelled by a factor of `n_rows`.

        Features of a tile in float64, and half as much while they are made.
        """
        return 12 * tile_rows * self.width(n_rows)


def check_whole(name: str, value: Any, alternative: str = "") -> None:
    """Refuse a parameter that is no whole number of 1 or more."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (is_whole and value >= 1):
        raise ValueError(f"{name}={value!r} must be {alternative}a whole number of 1 or more")


class Factor(Record):
    """A frozen value that knows the kernel between any rows; the verbs that all factors share.

    Subclasses are dataclasses with `kernel` and `format`, with `rank` and `trace_error`, which is
    trace(K - F Fᵀ) / trace(K) on the rows of the fit or None if unknown, and with `rows(X)`.
    Fields are declared `stored` with their specification, or `unstored` if they serve the fit only.
    """

    __slots__ = ()

    is_graph = False  # X is a graph: rows have no neighbours beside its edges
    takes_ensembles = False  # of partitions of its landmarks
    points_are_rows = False  # each point of its spectral map is a row of the sample
    vector_dtype: Any = np.float64  # of the vectors that `labeller` takes

    kernel: Any
    format: RowFormat
    rank: Any
    trace_error: Any

    def rows(self, X: Any) -> Any:
        """F, or the edges, for any rows, seen or new."""
        raise NotImplementedError

    def row_space(self, rows: Rows) -> FloatArray | None:
        """Coordinates of raw rows whose distances are those that the factor sees; None: unknown."""
        return None

    def raw_kernel(self) -> Kernel:
        """The kernel as a function of raw rows: what users see."""
        kernel: Kernel = self.kernel.in_units(-self.format.exponent)
        return UnitRows(kernel) if self.format.unit_length else kernel

    def forget_training(self) -> Self:
        """The same without what serves the fit only: what a fitted model keeps."""
        held: Any = fields(self)  # type: ignore[arg-type]
        names = [field.name for field in held if field.metadata.get("stored", "") is None]
        return replace(self, **dict.fromkeys(names))  # type: ignore[type-var]

    def sizes(self) -> dict[str, int]:
        """r: rows of the vectors that `labeller` takes."""
        return {"r": int(self.rank)}

    def check_model(self, kernel: Kernel, n_features: int) -> None:
        """Refuse (ValueError) a model's kernel and number of columns if they are not the factor's.

        Called for models that were read from a file, whose `kernel` takes raw rows.
        """
        check_columns(kernel, n_features)

    def for_new_rows(self) -> Self:
        """The same with a kernel that takes rows it has not seen."""
        return self

    def with_kernel(self, kernel: Kernel) -> Any:
        """A factor of another kernel on the same pivots."""
        raise ValueError(
            "kernel_cholesky needs pivots that are rows: use approximation='cholesky' or 'nystrom'"
        )

    def dense(self, sample: Sample, *, rng: np.random.Generator, threads: int = 1) -> Any:
        """A factor with features of rows, and those of the sample as `training_rows`."""
        raise NotImplementedError

    def principal_form(self, sample: Sample, *, rng: np.random.Generator, threads: int = 1) -> Any:
        """What kernel PCA works on: dense features, or fewer rows that stand for all."""
        return self.dense(sample, rng=rng, threads=threads)

    def spectral_map(
        self,
        sample: Sample,
        n_vectors: int,
        *,
        solver: Solver,
        rng: np.random.Generator,
        threads: int = 1,
    ) -> SpectralMap:
        """The leading eigenvectors of the normalised graph, as coordinates of rows."""
        raise NotImplementedError

    def wider(self) -> Self | None:
        """The same graph with more edges, from the same search; None where there is none."""
        return None

    def affinities(self, weights: FloatArray, part: Any = slice(None)) -> Any:
        """The sparse graph between its landmarks, where `Approximation.merges_clusters`."""
        raise NotImplementedError

    def near_edges(self, n_neighbors: int) -> IdArray | None:
        """The nearest rows of each row of the fit, (n, n_neighbors); None if they are unknown."""
        return None

    def labeller(self, vectors: FloatArray, directions: FloatArray) -> ConeLabeller:
        """Labels any rows by the direction nearest to their coordinates by `vectors`."""
        raise NotImplementedError

    def labels_of_cuts(self, cuts: tuple[ConeLabeller, ...]) -> Callable[[Rows], IdArray]:
        """Raw rows → labels by each of several partitions of this factor: (cuts, n)."""
        deciders = [cut.labels() for cut in cuts]
        return lambda rows: np.stack([decide(rows) for decide in deciders])

    def resample(
        self, found: SpectralMap, sample: Sample, judges: IdArray, n_clusters: int
    ) -> Resampling:
        """The spectral map from part of the rows; here its points stay as they are."""
        ids = evenly(len(found.points), len(judges))
        points = found.points[ids, : min(n_clusters, found.points.shape[1])]
        Y, weights = unit_rows(np.asarray(points, np.float64)), found.point_weights[ids]
        return Resampling(len(Y), lambda part, rng: (Y[part], weights[part], Y))

    def check_clusters(self, n_clusters: int) -> None:
        """Refuse more clusters than the factor can separate."""

    def kept_share(self) -> float:
        """Of the kernel, by what `dense` keeps of the factor."""
        return 1.0

    def reduced_set(self) -> IdArray | None:
        """Row numbers of the pivots, where these are rows."""
        return None

    def notes(self) -> list[str]:
        """What a report says of the approximation, beside its error."""
        return []

    def error_norm(self, total_weight: float, *, is_normalized: bool) -> float | None:
        """A bound or an estimate of ‖K - K̂‖₂ on the rows of the fit; None if unknown."""
        return None

    def mass(self, sample: Sample) -> FloatArray | None:
        """What the density of new rows is computed from, beside the factor; None: nothing."""
        return None

    def densities(self, mass: FloatArray | None) -> Callable[[Rows], FloatArray]:
        """Raw rows → how much of the sample is near each, 1 for an average row of the sample.

        Here it is the same everywhere: a factor that does not know.
        """
        return lambda rows: np.ones(rows.shape[0])


@frozen
class SpectralMap:
    """Coordinates of a row = (its F) @ `vectors`; what they are clustered on, and how sure."""

    vectors: FloatArray  # (rank, m): eigenvector coordinates of landmarks, or of F's columns
    points: FloatArray  # (n, m) coordinates of what is clustered: landmarks, or sampled rows
    point_weights: FloatArray  # (n,)
    values: FloatArray  # (m,) eigenvalues, largest first, 1 at the top
    residuals: FloatArray  # (m,)
    solver: str
    n_clamped: int = 0  # rows whose low-rank degree was not positive
    n_isolated: int = 0  # rows without an edge
    n_parts: int = 1  # that only bridges connect
    most_clusters: int | None = None  # that the graph can separate; None: any number

    @classmethod
    def of_pairs(
        cls,
        vectors: FloatArray,
        points: FloatArray,
        weights: FloatArray,
        pairs: Eigenpairs,
        **more: Any,
    ) -> SpectralMap:
        """The map of eigenpairs, whose vectors became those of F's columns and of points."""
        solved = (pairs.values, pairs.residuals, pairs.solver)
        return cls(vectors, points, weights, *solved, **more)

    def affinities(self, labels: IdArray, n_clusters: int) -> FloatArray:
        """Between clusters of its points, as far as its eigenvectors show them: G Λ Gᵀ.

        With W = D Ψ Λ Ψᵀ D for degrees D, and L the clusters of the points, G = Lᵀ D Ψ.
        """
        weighted = self.point_weights[:, None] * self.points
        G = np.zeros((n_clusters, self.points.shape[1]))
        np.add.at(G, labels, weighted)
        G /= np.sqrt(np.maximum((self.points * weighted).sum(axis=0), TINY))  # ΨᵀDΨ = 1
        W = (G * self.values) @ G.T
        return np.maximum((W + W.T) / 2.0, 0.0)  # part of a spectrum may show less than none


@frozen
class Resampling:
    """A spectral map that can be made again from part of the rows."""

    n_rows: int  # to draw from
    # rows drawn → points and weights to cluster, and coordinates of the judges
    points: Callable[[IdArray, np.random.Generator], tuple[FloatArray, FloatArray, FloatArray]]


@frozen
class Surroundings:
    """What lies around rows: what tells rows that belong to no cluster from others."""

    labels: IdArray  # (n,)
    reach: FloatArray  # (n,) how far the rows of the fit are, in any unit
    doubt: FloatArray  # (n,) in [0, 1]: how much of what is around speaks for other labels

    @staticmethod
    def stack(parts: list[Surroundings]) -> Surroundings:
        """Those of consecutive rows as one."""
        arrays = ([getattr(part, name) for part in parts] for name in ("labels", "reach", "doubt"))
        return Surroundings(*map(np.concatenate, arrays))

    @classmethod
    def of_distances(
        cls, labels: IdArray, densities: FloatArray, distances: FloatArray
    ) -> Surroundings:
        """By densities, and by the distance to the nearest cluster, relative to the second.

        The columns of `distances` (INOUT) are reordered.
        """
        doubt = np.zeros(len(labels))
        if distances.shape[1] > 1:
            distances.partition(1, axis=1)
            doubt = distances[:, 0] / np.maximum(distances[:, 1], np.finfo(float).tiny)
        return cls(labels, 1.0 / np.maximum(densities, LEAST_DENSITY), np.minimum(doubt, 1.0))


@frozen
class ConeLabeller:
    """Labels of any rows, where clusters are cones of spectral coordinates."""

    consensus: ClassVar[None] = None  # of an ensemble

    factor: Any  # without its training rows
    vectors: FloatArray  # (rank, m)
    directions: FloatArray  # (k, m)

    def tie_breaks(self) -> FloatArray:
        """What numbers clusters of equal weight."""
        return self.directions

    def reordered(self, order: IdArray) -> Self:
        """The same with clusters in another order."""
        return replace(self, directions=self.directions[order])

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        counted = self.counted_labels()
        return lambda rows: counted(rows)[0]

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Raw rows → labels, and how many rows nothing is known of: here every row has a place."""
        decide = self.labels()
        return lambda rows: (decide(rows), 0)

    def labels_of_training(self, fitted: Any, sample: Sample) -> IdArray | None:
        """Labels of the sample from what the fitted factor holds; None: they must be computed."""
        return None

    def resample(
        self, fitted: Any, found: SpectralMap, sample: Sample, judges: IdArray, n_clusters: int
    ) -> Resampling:
        """The coordinates again, from part of the rows, as the fitted factor makes them."""
        again: Resampling = fitted.resample(found, sample, judges, n_clusters)
        return again

    def surroundings(self, mass: FloatArray | None) -> Callable[[Rows], Surroundings]:
        """Raw rows → what lies around them: here density, and the angles to directions."""
        decide, embed = self.labels(), self.coordinates()
        densities = self.factor.densities(mass)
        against = np.ascontiguousarray(self.directions.T)

        def look(rows: Rows) -> Surroundings:
            away = 1.0 - np.clip(row_products(embed(rows), against), -1.0, 1.0)
            return Surroundings.of_distances(decide(rows), densities(rows), away)

        return look

    def surroundings_of_training(self, fitted: Any, mass: FloatArray | None) -> Surroundings | None:
        """Those of the sample, from what the fitted factor holds; None: they must be computed."""
        return None

    def cluster_affinities(self, graph: Any, found: SpectralMap, sample: Sample) -> Any:
        """Of clusters to each other, if they are cones of this map; else None."""
        m, k = self.vectors.shape[1], len(self.directions)
        if not np.array_equal(self.vectors, found.vectors[:, :m]):
            return None
        return found.affinities((found.points[:, :m] @ self.directions.T).argmax(axis=1), k)

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""
        raise NotImplementedError


def as_sample(kernel: Kernel | None, X: Any, sample_weight: FloatArray | None = None) -> Sample:
    """X as it stands, in its own order: for using a factor without an estimator around it.

    kernel None: what scales itself sees the rows in units of their own size.
    """
    if isinstance(X, Sample):
        return X
    source = as_source(X)
    raw = source.read(0, source.n_rows)
    if kernel is None and isinstance(raw, np.ndarray):
        summary = check_rows(raw, 0, Columns.of(source))
        exponent = summary.exponent(is_centred=True)
        row_format = RowFormat.centred(raw, source.dtype, np.ones(raw.shape[1], bool), exponent)
    else:
        movable = True if kernel is None else kernel.movable(raw)
        row_format = RowFormat.centred(raw, source.dtype, movable)
    weights = np.ones(source.n_rows) if sample_weight is None else np.asarray(sample_weight, float)
    return Sample(row_format.apply(raw), weights, np.arange(source.n_rows), row_format)
