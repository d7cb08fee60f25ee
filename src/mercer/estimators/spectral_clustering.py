"""Spectral clustering for data of any size: landmark graphs, their ensembles, any factor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer._run.progress import LineWriter, listening
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray, IdArray, RandomState
from mercer.embeddings.angles import block_notes
from mercer.embeddings.gaps import CLEAR, SURE, gap_warnings, ranked_gaps, relative_gap, strength
from mercer.embeddings.spectral import SpectralMap, spectral_map
from mercer.estimators.base import Clusterer
from mercer.estimators.needs import Sweep, Work, eigen_memory, point_memory
from mercer.estimators.problem import pose
from mercer.factors.binning import RandomBinning
from mercer.factors.landmarks import Edges, LandmarkGraph, Landmarks
from mercer.factors.names import as_approximation
from mercer.factors.neighbors import AffinityGraph, GivenAffinity, Neighbors
from mercer.factors.problem import Problem, fit_factor, raw_kernel
from mercer.factors.quantized import Quantized, QuantizedFactor
from mercer.kernels.given import Precomputed
from mercer.kernels.registry import as_kernel
from mercer.linalg.numbering import numbering
from mercer.linalg.products import unit_rows
from mercer.partitions.assignment import label_rows
from mercer.partitions.cones import Cones, find_cones
from mercer.partitions.ensemble import WIDEST, make_bases, make_consensus
from mercer.partitions.labellers import AllLabels, EnsembleLabels, cone_labels
from mercer.partitions.resampling import Again, Fit, by_cones, by_factor, by_landmarks, judges
from mercer.rows.sample import Sample, evenly
from mercer.rows.source import Source
from mercer.trust.diagnosis import diagnose

ENSEMBLE_RANK = 2000  # landmarks of an ensemble, by rank="auto"
MOST_CLUSTERS = 15  # that n_clusters="auto" looks at
SELF_SCALED = "gamma by the mean distance of rows to their landmarks"
NAMED_RANK = 256  # of a dense approximation, by rank="auto"
GRAPHS_OF_ROWS = (Landmarks, Neighbors)  # by Euclidean distance, and can scale themselves


class SpectralClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Clusters of any shape, by the leading eigenvectors of a graph between rows.

    By default rows are tied to their nearest landmarks and the eigenproblem is solved on the
    landmarks alone (LSC, U-SPEC): 10⁷ rows in the plane take seconds, and a new row's label costs
    what finding its landmarks costs. `ensemble=20` joins many partitions of the same graph: 2.5
    (mnist) to 8 times slower (small sets), better where clusters are many or vague. Other
    approximations take any kernel: W ≈ F Fᵀ, eigenvectors of Fᵀ D⁻¹ F.

    Up to 100,000 distinct rows all take part; beyond, a seeded sample makes the graph and one pass
    labels every row. Labels are the same for any block size and number of threads.

    Parameters
    ----------
    n_clusters : number of clusters; "auto" takes the largest relative gap of the spectrum, keeps
        the ranking in `n_clusters_ranking_` and warns where it is not clear.
    kernel : None is the approximation's own (landmarks: a Gaussian that scales itself; binning:
        the Laplacian, the only kernel it can represent; else RBF); or a name, an object, a
        function. "precomputed": X is the graph, a symmetric matrix of affinities, dense or sparse,
        and the eigenvectors are those of it as it is (with another approximation: of its
        approximation, for positive semi-definite matrices); `predict` then takes rows of
        affinities to the items of the fit.
    gamma : bandwidth of a kernel given by name.
    approximation : "landmarks", "neighbors" (a graph between the rows themselves: dearer),
        "binning" (paper 003: random grids, in bins of which rows meet), "quantized" (paper 002:
        blocks of near rows), "cholesky", "nystrom", "fourier", "exact", or an object such as
        ``Quantized(radius=0.5)``.
    rank : landmarks, grids, pivots or features; "auto" lets the approximation decide.
    ensemble : number of base partitions (landmarks only); None for a single one.
    assign_labels : "kmeans" or "cluster_qr" on the eigenvectors.
    eigen_solver : "auto", "dense", "arpack", "lobpcg" or "primme".
    n_init, max_iter, tol : of k-means on the eigenvectors (on landmarks: cheap).
    max_memory, n_jobs, verbose, random_state : as in `KernelKMeans`.

    Attributes
    ----------
    labels_ : (n,) cluster of each row, numbered by decreasing weight (rows in memory only).
    cluster_weights_ : (k,) total weight of each cluster.
    eigenvalues_ : of the normalised graph, largest first; the top one is 1.
    n_clusters_ : how many clusters there are.
    n_clusters_ranking_ : (k, relative gap) pairs, best first.
    spectrum_, seed_ : what `labels_path` cuts (not in model files).
    factor_, kernel_, report_ : the graph or factor, the kernel, the story of the fit.

    Examples
    --------
    >>> from mercer import SpectralClustering
    >>> from mercer.datasets import rings
    >>> X, y = rings(3000, random_state=0)
    >>> model = SpectralClustering(n_clusters=3, random_state=0).fit(X)
    >>> model.predict([[1.0, 0.0]]) == model.predict([[-1.0, 0.0]])
    array([ True])
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "kernel": "no_validation",
        "gamma": "no_validation",
        "approximation": "no_validation",
        "rank": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "ensemble": [None, Interval(Integral, 2, None, closed="left")],
        "assign_labels": [StrOptions({"kmeans", "cluster_qr"})],
        "eigen_solver": [StrOptions({"auto", "dense", "arpack", "lobpcg", "primme"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_memory": "no_validation",
        "n_jobs": [None, Integral],
        "verbose": ["verbose", Interval(Real, 0, None, closed="left")],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        kernel: Any = None,
        gamma: Any = "auto",
        approximation: Any = "landmarks",
        rank: int | str = "auto",
        ensemble: int | None = None,
        assign_labels: str = "kmeans",
        eigen_solver: str = "auto",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.approximation = approximation
        self.rank = rank
        self.ensemble = ensemble
        self.assign_labels = assign_labels
        self.eigen_solver = eigen_solver
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SpectralClustering:
        """Cluster the rows of X (anything `mercer.as_source` takes)."""
        self._validate_params()
        rng, threads, record = as_generator(self.random_state), n_threads(self.n_jobs), Recorder()
        approximation, kernel = self._parts()
        with listening(LineWriter() if self.verbose else None), single_threaded_blas():
            problem = pose(
                self,
                X,
                sample_weight,
                rng=rng,
                record=record,
                kernel=kernel,
                least_rows=1 if self.n_clusters == "auto" else int(self.n_clusters),
                is_used=not (
                    self._is_self_scaled(approximation) or isinstance(approximation, GivenAffinity)
                ),
                takes_graph=isinstance(approximation, GivenAffinity),
            )
            most = self._most_clusters(problem, record)
            with record.stage("factor"):
                factor = self._factor(approximation, problem, most, rng=rng, threads=threads)
            with record.stage("eigenvectors"):
                found = self._spectral_map(factor, problem, most, rng=rng, threads=threads)
            ranking = ranked_gaps(found.values, MOST_CLUSTERS)
            k = self._settled_clusters(most, ranking, factor, found, record)
            seed = int(rng.integers(2**63))
            with record.stage("clusters"):
                labels_by, n_iter = self._partition(factor, found, problem, k, record, seed=seed)
                again = _again(factor, found, labels_by, problem.sample, k)
                if not problem.source.in_memory:
                    factor = factor.forget_training()  # goes before all rows come
            with record.stage("labels"):
                labels, weights = _label_all(labels_by, factor, k, problem, threads=threads)
            if isinstance(factor, QuantizedFactor):
                block_notes(factor, found.values, k, record)
            if (n_empty := int((weights == 0).sum())) and problem.weights is None:
                record.warn(f"{n_empty} of {k} clusters have no rows; ask for fewer clusters")
            _warn_of_map(found, k, record)
            trust = diagnose(
                Fit(
                    weights,
                    labels,
                    labels_by.labels(),
                    again,
                    None if self._is_self_scaled(approximation) else problem.kernel,
                    is_graph=isinstance(factor, AffinityGraph),
                    trace_error=factor.trace_error,
                    n_clamped=found.n_clamped,
                    eigenvalues=found.values,
                    residuals=found.residuals,
                ),
                problem,
                record,
            )
        found_here = Found(found, labels_by, labels, weights, ranking, n_iter, seed, trust)
        return self._remember(found_here, problem, approximation, record)

    def transform(self, X: Any) -> FloatArray:
        """Unit coordinates of each row by the leading eigenvectors (or the consensus): (n, m)."""
        tiles, _ = self._work(X, self._embedder, stage="transform")
        return np.concatenate([tile for _, tile in tiles])

    def memberships(self, X: Any) -> FloatArray:
        """How much each row belongs to each cluster: ∝ 1 / (1 - cosine to its direction)."""
        distances = 1.0 - self.transform(X) @ self._labels_by().directions.T
        closeness = 1.0 / np.maximum(distances, 1e-12)
        shares: FloatArray = closeness / closeness.sum(axis=1, keepdims=True)
        return shares

    def labels_path(self, X: Any, n_clusters: Iterable[int]) -> dict[int, IdArray]:
        """Labels of the rows of X for several numbers of clusters, from the one graph of the fit.

        Only the partition of the eigenvectors is made anew, so that this costs little more than
        one `predict`. The fit must have found enough eigenvectors: ask it for the largest number
        (or "auto", which looks at 15). Clusters are numbered by how many rows of X they have.
        """
        check_is_fitted(self)
        found, seed = self._spectrum()
        sizes = [self._checked_size(k, found) for k in n_clusters]
        cuts = [self._cut(self.factor_, found, k, seed)[0] for k in sizes]
        tiles, n_rows = self._work(X, lambda: AllLabels(tuple(cuts)).labels, stage="labels")
        path = np.empty((len(cuts), n_rows), np.intp)
        for start, tile in tiles:
            path[:, start : start + tile.shape[1]] = tile
        for cut, labels in zip(cuts, path, strict=True):
            counts = np.bincount(labels, minlength=len(cut.directions)).astype(np.float64)
            order = numbering(counts, cut.directions)
            labels[:] = np.argsort(order)[labels]
        return dict(zip(sizes, path, strict=True))

    def _spectrum(self) -> tuple[SpectralMap, int]:
        if self.ensemble is not None:
            raise ValueError(
                "labels_path cuts one spectrum, but an ensemble has many; use ensemble=None"
            )
        if "spectrum_" not in vars(self):
            raise ValueError(
                "labels_path needs the eigenvectors of the fit, which model files do not hold: "
                "use it before saving, or fit again"
            )
        return self.spectrum_, self.seed_

    def _checked_size(self, k: Any, found: SpectralMap) -> int:
        most = max(self.n_clusters_, found.vectors.shape[1] - 1)
        if not isinstance(k, int | np.integer) or not 1 <= k <= most:
            raise ValueError(
                f"n_clusters={k!r} must be a whole number from 1 to {most}, the eigenvectors of "
                "this fit; fit with the largest n_clusters first"
            )
        return int(k)

    def _parts(self) -> tuple[Any, Any]:
        """The approximation and the kernel, in agreement with each other."""
        by_name = isinstance(self.approximation, str)
        is_given = isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"
        if by_name and self.approximation in ("landmarks", "neighbors"):
            approximation: Any = self._graph(is_given)
        elif by_name and self.rank == "auto":
            named: Any = self.approximation
            approximation = as_approximation(named, NAMED_RANK, default_rank=NAMED_RANK)
        else:
            rank: Any = self.rank
            default: Any = "auto" if rank == "auto" or not by_name else NAMED_RANK
            approximation = as_approximation(self.approximation, rank, default_rank=default)
        if isinstance(approximation, GRAPHS_OF_ROWS) and is_given:
            raise ValueError(
                f"{type(approximation).__name__} needs rows, but kernel='precomputed' brings a "
                "matrix: leave approximation as it is to cluster by these affinities, or use "
                "'exact' or 'cholesky'"
            )
        if not isinstance(approximation, Landmarks) and self.ensemble is not None:
            raise ValueError(
                "ensemble= joins partitions of a landmark graph; use approximation='landmarks'"
            )
        own = "laplacian" if isinstance(approximation, RandomBinning) else "rbf"
        kernel = as_kernel(own if self.kernel is None else self.kernel, self.gamma)
        if isinstance(approximation, (*GRAPHS_OF_ROWS, RandomBinning, Quantized)):
            approximation.check(kernel)
        return approximation, kernel

    def _graph(self, is_given: bool) -> Any:
        """The graph that `approximation` names, or the one that came as X."""
        if self.approximation == "landmarks" and not is_given:
            wide = self.ensemble is not None and self.rank == "auto"
            return Landmarks(ENSEMBLE_RANK if wide else self.rank)
        if self.rank != "auto":
            raise ValueError(
                f"rank={self.rank} is given, but a graph between the rows themselves has no rank; "
                "leave rank='auto' (Neighbors(n_neighbors=…) tells how many ties a row has)"
            )
        return GivenAffinity() if self.approximation == "landmarks" else Neighbors()

    def _is_self_scaled(self, approximation: Any) -> bool:
        own = self.kernel is None and isinstance(self.gamma, str) and self.gamma == "auto"
        return isinstance(approximation, GRAPHS_OF_ROWS) and own

    def _most_clusters(self, problem: Problem, record: Recorder) -> int:
        """Clusters asked for (with "auto": looked at), as far as there are distinct rows."""
        if self.n_clusters == "auto":
            return min(MOST_CLUSTERS, max(len(problem.sample) - 1, 1))
        asked = int(self.n_clusters)
        return self._feasible_clusters(asked, problem, record)

    def _factor(
        self,
        approximation: Any,
        problem: Problem,
        most: int,
        *,
        rng: np.random.Generator,
        threads: int,
    ) -> Any:
        rank = getattr(approximation, "rank", "auto")
        if isinstance(rank, Integral) and rank < most and self.n_clusters != "auto":
            raise ValueError(f"rank={rank} cannot tell n_clusters={most} apart; raise rank")
        if isinstance(approximation, Quantized):
            blocks = fit_factor(approximation, problem, rng=rng, threads=threads, keep_rows=False)
            if len(blocks.block_weights) < most and self.n_clusters != "auto":
                raise ValueError(
                    f"radius={approximation.radius} leaves {len(blocks.block_weights)} "
                    f"representatives, which cannot tell n_clusters={most} apart; lower radius"
                )
            return blocks
        if not isinstance(approximation, GRAPHS_OF_ROWS):
            return fit_factor(approximation, problem, rng=rng, threads=threads)
        if self._is_self_scaled(approximation):
            problem = replace(problem, kernel=None)  # the graph scales itself
        return fit_factor(approximation, problem, rng=rng, threads=threads, n_clusters=most)

    def _spectral_map(
        self,
        factor: Any,
        problem: Problem,
        most: int,
        *,
        rng: np.random.Generator,
        threads: int,
    ) -> SpectralMap:
        """As many eigenvectors as clusters, one more for the gap, three times for an ensemble."""
        n_vectors = most + 1 if self.ensemble is None else WIDEST * most + 1
        solver: Any = self.eigen_solver
        return spectral_map(
            factor, problem.sample, n_vectors, solver=solver, rng=rng, threads=threads
        )

    def _settled_clusters(
        self,
        most: int,
        ranking: list[tuple[int, float]],
        factor: Any,
        found: SpectralMap,
        record: Recorder,
    ) -> int:
        """As many as asked for, if a given graph tells so many apart; or by the largest gap."""
        told = found.vectors.shape[1]
        if self.n_clusters != "auto" and isinstance(factor, AffinityGraph) and most > told:
            record.warn(
                f"the graph has {told} eigenvectors of positive eigenvalues, so that {told} "
                f"clusters were made instead of {most}: nothing in it tells more of them apart"
            )
            return told
        if self.n_clusters != "auto":
            return most
        if not ranking:
            return 1
        best, gap = ranking[0]
        record.note(f"n_clusters={best} by the largest relative gap of the spectrum ({gap:.2f})")
        rivals = [
            k
            for k, g in ranking[1:]
            if strength(g) > 0.7 * strength(gap) or (k > best and g > CLEAR)  # or finer and clear
        ]
        if gap < SURE or rivals:
            words = ", ".join(f"{k} ({g:.2f})" for k, g in ranking[:4])
            record.warn(
                f"the number of clusters is not clear: relative gaps are {words}; "
                "look at n_clusters_ranking_ and choose n_clusters yourself"
            )
        return best

    def _partition(
        self,
        factor: Any,
        found: SpectralMap,
        problem: Problem,
        k: int,
        record: Recorder,
        *,
        seed: int,
    ) -> tuple[Any, int]:
        """Cones around directions of the eigenvector coordinates, or of a consensus of many."""
        kept = factor.forget_training()
        if self.ensemble is not None and k > 1:
            rng = np.random.default_rng((seed, k))
            bases = make_bases(found, k, self.ensemble, rng=rng)
            consensus = make_consensus(
                bases, factor.training_edges, problem.sample, k, n_init=self.n_init, rng=rng
            )
            return EnsembleLabels(kept, consensus), consensus.n_iter
        labels_by, cones = self._cut(kept, found, k, seed)
        if not cones.is_converged:
            record.warn(
                f"k-means still moved after max_iter={self.max_iter} sweeps; raise max_iter or tol"
            )
        return labels_by, cones.n_iter

    def _cut(self, factor: Any, found: SpectralMap, k: int, seed: int) -> tuple[Any, Cones]:
        """k cones of the first k coordinates: for one seed and k always the same."""
        m = min(k, found.vectors.shape[1])
        cones = find_cones(
            unit_rows(found.points[:, :m]),
            found.point_weights,
            k,
            assign_labels=self.assign_labels,  # type: ignore[arg-type]
            n_init=self.n_init,
            rng=np.random.default_rng((seed, k)),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        vectors = np.ascontiguousarray(found.vectors[:, :m])
        return cone_labels(factor, vectors, cones.directions), cones

    @property
    def _n_features_out(self) -> int:
        return int(self._labels_by().directions.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def _labels_by(self) -> Any:
        if self.consensus_ is not None:
            return EnsembleLabels(self.factor_, self.consensus_)
        return cone_labels(self.factor_, self.vectors_, self.directions_)

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        approximation, _ = self._parts()
        seen = source.in_memory and sample_rows == source.n_rows  # labels come with the graph
        most = 1 if self.n_clusters == "auto" else int(self.n_clusters)
        at_hand = seen and isinstance(approximation, (*GRAPHS_OF_ROWS, RandomBinning))
        sweeps = () if at_hand else (Sweep("labels"),)
        n_vectors = (MOST_CLUSTERS if self.n_clusters == "auto" else most) + 1
        n_vectors *= 1 if self.ensemble is None else WIDEST
        solving, kept = partial(eigen_memory, n_vectors), partial(point_memory, n_vectors)
        return Work(approximation, sample_rows, sweeps, most, solving=solving, kept=kept)

    def _labeller(self) -> Any:
        return self._labels_by().counted_labels

    def _embedder(self) -> Any:
        return self._labels_by().coordinates

    def _remember(
        self, found: Found, problem: Problem, approximation: Any, record: Recorder
    ) -> SpectralClustering:
        """All fitted state, at once and last."""
        weights = found.weights
        order = numbering(weights, found.labels_by.directions)
        ordered = found.labels_by.reordered(order)
        factor, kernel = ordered.factor, raw_kernel(ordered.factor)
        is_ensemble = isinstance(ordered, EnsembleLabels)
        fitted = self._common_state(problem, order, found.labels, weights) | {
            "kernel_": kernel,
            "factor_": factor,
            "eigenvalues_": found.map.values,
            "consensus_": ordered.consensus if is_ensemble else None,
            "vectors_": None if is_ensemble else ordered.vectors,
            "directions_": None if is_ensemble else ordered.directions,
            "n_clusters_": len(weights),
            "n_clusters_ranking_": found.ranking,
            "n_iter_": found.n_iter,
            "spectrum_": found.map,
            "seed_": found.seed,
        }
        words = {"bandwidth": SELF_SCALED} if self._is_self_scaled(approximation) else {}
        fitted["report_"] = self._report(
            problem,
            approximation,
            factor,
            weights[order],
            record,
            kernel=repr(kernel),
            eigenvalues=tuple(map(float, found.map.values)),
            residuals=tuple(map(float, found.map.residuals)),
            solver=found.map.solver,
            trust=found.trust,
            gap=relative_gap(found.map.values, len(weights)),
            **words,
        )
        record.raise_warnings()
        return self._install(fitted, problem)


@dataclass(frozen=True, slots=True)
class Found:
    """What a fit found, before it is remembered."""

    map: SpectralMap
    labels_by: Any
    labels: IdArray | None
    weights: FloatArray
    ranking: list[tuple[int, float]]
    n_iter: int
    seed: int
    trust: Any


def _again(factor: Any, found: SpectralMap, labels_by: Any, sample: Sample, k: int) -> Again:
    """The partition, made again by part of the rows, as far as the kind of factor allows."""
    few = judges(sample)
    if isinstance(labels_by, EnsembleLabels):
        edges = factor.training_edges
        some = Edges(edges.idx[few], edges.weights[few])
        return by_cones(labels_by.consensus.coordinates(some), sample.weights[few], k)
    if isinstance(factor, LandmarkGraph) and not factor.ties_rows:
        return by_landmarks(factor, found, sample.weights, k, few)
    F = getattr(factor, "training_rows", None)
    if F is not None:
        return by_factor(F[few].astype(np.float64), sample.weights[few], k)
    ids = evenly(len(found.points), len(few))
    points = found.points[ids, : min(k, found.points.shape[1])]
    return by_cones(points, found.point_weights[ids], k)


def _warn_of_map(found: SpectralMap, k: int, record: Recorder) -> None:
    """What the eigenvectors leave open, and rows that had no part in them."""
    if k > 1:
        gap_warnings(found.values, found.residuals, k, record)
    if found.n_alone:
        record.warn(
            f"{found.n_alone:,} rows are tied to no other, not even to themselves: nothing "
            "tells their cluster, and they went to one of them; give them affinities"
        )
    if found.n_clamped:
        record.warn(
            f"{found.n_clamped:,} rows have no positive degree in the low-rank graph: its "
            "approximation is too coarse for this bandwidth; raise rank, or use a smaller gamma"
        )


def _label_all(
    labels_by: Any, factor: Any, k: int, problem: Problem, *, threads: int
) -> tuple[IdArray | None, FloatArray]:
    """Labels of all rows; what the factor knows of the rows it saw is not computed again."""
    inverse, source = problem.sample.inverse, problem.source
    seen = inverse is not None and source.in_memory
    of_sample = labels_by.labels_of_training(factor, problem.sample) if seen else None
    if of_sample is None:
        return label_rows(labels_by.labels, k, problem, threads=threads)
    labels = of_sample[inverse]
    return labels, np.bincount(labels, weights=problem.weights, minlength=k).astype(np.float64)
