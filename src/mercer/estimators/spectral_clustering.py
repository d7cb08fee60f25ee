"""Spectral clustering for data of any size: landmark graphs, their ensembles, any factor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.records import expect
from mercer._run.threads import n_threads
from mercer._run.types import FloatArray, IdArray, RandomState
from mercer.embeddings.angles import factor_notes
from mercer.embeddings.gaps import (
    CLEAR,
    SURE,
    gap_warnings,
    ranked_gaps,
    relative_gap,
    strength,
)
from mercer.estimators.base import Clusterer
from mercer.estimators.needs import Sweep, Work, eigen_memory, point_memory
from mercer.estimators.preparation import prepare_problem
from mercer.factors.base import Approximation, Factor, SpectralMap
from mercer.factors.names import as_approximation, kernel_for
from mercer.factors.problem import Problem, fit_factor
from mercer.kernels.registry import is_precomputed
from mercer.linalg.numbering import numbering
from mercer.linalg.products import unit_rows
from mercer.partitions.assignment import label_rows
from mercer.partitions.cones import Cones, find_cones
from mercer.partitions.ensemble import WIDEST, Consensus, EnsembleLabeller, ensemble_labeller
from mercer.partitions.locality import Opinion, form_opinion, is_compared, less_cut, steadier
from mercer.partitions.resampling import FitEvidence
from mercer.rows.source import Source
from mercer.trust.diagnosis import diagnose

MOST_CLUSTERS = 15  # that n_clusters="auto" looks at


class SpectralClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Clusters of any shape, by the leading eigenvectors of a graph between rows.

    Up to 100,000 rows are connected to each other where they are mutual nearest neighbours. More
    rows are connected to their nearest landmarks, and the eigenproblem is solved on the landmarks
    alone [cai2015, huang2020]: 10⁷ rows in the plane take seconds. A new row's label costs what
    finding its neighbours or landmarks costs. `ensemble=20` joins many partitions of the same
    graph, which is slower, and better where clusters are many or vague. Other approximations take
    any kernel: W ≈ F Fᵀ, eigenvectors of Fᵀ D⁻¹ F.

    How local the clusters are is decided by evidence that needs no labels: a graph of twice as many
    neighbours is compared (up to 20,000 rows), and plain means where the graph is vague.

    Up to 100,000 distinct rows are fitted; beyond, a seeded sample makes the graph and one pass
    labels every row. Labels are the same for any block size and number of threads.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters. "auto" takes the largest relative gap of the spectrum, keeps the
        ranking in `n_clusters_ranking_` and warns where it is not clear.
    kernel : str, kernel object, callable or None, default=None
        None is the approximation's own: for landmarks and neighbours a Gaussian that scales
        itself, for binning the Laplacian, else RBF. With "precomputed" X is the graph, a symmetric
        matrix of affinities, dense or sparse, whose eigenvectors are used as they are (with
        another approximation than the default: those of its approximation, for positive
        semi-definite matrices); `predict` then takes rows of affinities to the items of the fit.
    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of a kernel given by name.
    approximation : str or approximation object, default="auto"
        "auto" ("neighbors" for up to 100,000 rows, 20,000 of up to 3 columns, else "landmarks"),
        "landmarks", "neighbors" (a graph between the rows themselves), "binning" (random
        grids [wu2018]), "quantized" (blocks of near rows [zhang2006]), "cholesky", "nystrom",
        "fourier", "exact", or an object such as ``Quantized(radius=0.5)``.
    rank : int or "auto", default="auto"
        Number of landmarks, grids, pivots or features; "auto" lets the approximation decide. With
        approximation="auto" a number is one of landmarks.
    ensemble : int or None, default=None
        Number of base partitions of a graph; None makes a single one.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How clusters are found in the eigenvectors.
    eigen_solver : {"auto", "dense", "arpack", "lobpcg", "primme"}, default="auto"
        Solver of the eigenproblem.
    n_init : int, default=10
        Runs of k-means, of which the best is kept.
    max_iter : int, default=300
        Sweeps of a run of k-means at most.
    tol : float, default=1e-4
        A run ends when the centres move by less than this, relative to the variance.
    max_memory : int, str or None, default=None
        Bytes, or words like "500MB", that Mercer may hold; None is half of what is free.
    n_jobs : int or None, default=None
        Number of threads, -1 for all cores; None is 1.
    verbose : int, default=0
        1 writes progress to standard error.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all draws; the same seed gives the same labels.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        Cluster of each row, numbered by decreasing weight (rows in memory only).
    cluster_weights_ : array of shape (n_clusters,)
        Total weight of each cluster.
    eigenvalues_ : array
        Of the normalised graph, largest first; the top one is 1.
    n_clusters_ : int
        Number of clusters.
    n_clusters_ranking_ : list of (int, float)
        Numbers of clusters with their relative gaps, best first.
    graph_, spectrum_, seed_ : Factor, SpectralMap, int
        What `labels_path` partitions (not in model files).
    factor_ : Factor
        The graph or factor.
    kernel_ : Kernel
        The kernel with its bandwidth as a number.
    report_ : Report
        The fit report.

    Examples
    --------
    >>> from mercer import SpectralClustering
    >>> from mercer.datasets import rings
    >>> X, y = rings(3000, random_state=0)
    >>> model = SpectralClustering(n_clusters=3, random_state=0).fit(X)
    >>> model.predict([[1.0, 0.0]]) == model.predict([[-1.0, 0.0]])
    array([ True])
    """

    _fitted_fields: ClassVar[dict[str, Any]] = Clusterer._fitted_fields | {
        "factor_": Factor,
        "eigenvalues_": "(e?,) float, finite",
        "consensus_": Consensus | None,
        "vectors_": "(r, v) float, finite, or None",
        "directions_": "(k, v) float64, finite, or None",
        "cluster_weights_": "(k,) float, finite",
        "n_clusters_": "int k",
        "n_clusters_ranking_": "list of tuple",
        "n_iter_": "int",
    }
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
        approximation: Any = "auto",
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

    def _check_fitted(self) -> None:
        super()._check_fitted()
        own = [self.vectors_ is not None, self.directions_ is not None]
        is_single = all(own) if self.consensus_ is None else not any(own)
        expect(is_single, "there must be either vectors_ and directions_, or a consensus_")
        factor, vectors = self.factor_, self.vectors_
        is_matched = vectors is None or vectors.dtype == factor.vector_dtype
        expect(is_matched, f"vectors_ must be {np.dtype(factor.vector_dtype)}")
        is_ensemble = self.consensus_ is None or factor.takes_ensembles
        expect(is_ensemble, "the partitions of consensus_ are not those of the landmarks")
        kinds = {tuple(map(type, pair)) for pair in self.n_clusters_ranking_}
        expect(kinds <= {(int, float)}, "n_clusters_ranking_ is not a list of numbers and gaps")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SpectralClustering:
        """Cluster the rows of X.

        Parameters
        ----------
        X : anything that `mercer.as_source` takes
            The rows.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        self
        """
        self._validate_params()
        rng, threads, record = as_generator(self.random_state), n_threads(self.n_jobs), Recorder()
        approximation, kernel = self._parts()
        is_self_scaled = self._is_self_scaled(approximation, kernel)
        with self._running():
            problem = prepare_problem(
                self,
                X,
                sample_weight,
                rng=rng,
                record=record,
                kernel=kernel,
                least_rows=1 if self.n_clusters == "auto" else int(self.n_clusters),
                is_used=not (is_self_scaled or approximation.takes_graph),
                takes_graph=approximation.takes_graph,
            )
            approximation = self._suited(approximation, *_whole_shape(problem))
            if is_self_scaled:
                problem = replace(problem, kernel=None, bandwidth=approximation.own_bandwidth)
            most = self._most_clusters(problem, record)
            with record.stage("factor"):
                factor = self._factor(approximation, problem, most, rng=rng, threads=threads)
            with record.stage("eigenvectors"):
                solver: Any = self.eigen_solver
                found = factor.spectral_map(
                    problem.sample, self._n_vectors(most), solver=solver, rng=rng, threads=threads
                )
            ranking = ranked_gaps(found.values, MOST_CLUSTERS)
            k = self._settled_clusters(most, ranking, found, record)
            seed = int(rng.integers(2**63))
            with record.stage("clusters"):
                opinion = self._opinion(factor, found, problem, k, record, seed=seed)
                opinion = self._compare(opinion, problem, k, record, seed=seed)
                if not problem.source.in_memory:
                    opinion = opinion.forget_training()  # goes before all rows come
                factor, found, labeller = opinion.factor, opinion.map, opinion.labeller
            with record.stage("labels"):
                labels, weights = _label_all(labeller, factor, k, problem, threads=threads)
            factor_notes(factor, found.values, k, record, total_weight=float(weights.sum()))
            _warn_of_map(found, weights, k, problem, record)
            evidence = FitEvidence(
                weights,
                labels,
                labeller.labels(),
                opinion.resampler,
                problem.kernel,
                is_graph=factor.is_graph,
                trace_error=factor.trace_error,
                n_clamped=found.n_clamped,
                eigenvalues=found.values,
                residuals=found.residuals,
            )
            trust = diagnose(evidence, problem, record)
        fit = SpectralFit(opinion, labels, weights, ranking, seed, trust)
        return self._remember_fit(fit, problem, approximation, record)

    def transform(self, X: Any) -> FloatArray:
        """Unit coordinates of each row by the leading eigenvectors, or by the consensus.

        Parameters
        ----------
        X : anything that `mercer.as_source` takes
            The rows.

        Returns
        -------
        array of shape (n_rows, n_coordinates)
        """
        tiles, _ = self._work(X, self._embedder, stage="transform")
        return np.concatenate([tile for _, tile in tiles])

    def memberships(self, X: Any) -> FloatArray:
        """How much each row belongs to each cluster: ∝ 1 / (1 - cosine to its direction).

        Parameters
        ----------
        X : anything that `mercer.as_source` takes
            The rows.

        Returns
        -------
        array of shape (n_rows, n_clusters)
            Shares that sum to 1.
        """
        distances = 1.0 - self.transform(X) @ self._fitted_labeller().directions.T
        closeness = 1.0 / np.maximum(distances, 1e-12)
        shares: FloatArray = closeness / closeness.sum(axis=1, keepdims=True)
        return shares

    def labels_path(self, X: Any, n_clusters: Iterable[int]) -> dict[int, IdArray]:
        """Labels of the rows of X for several numbers of clusters, from the one graph of the fit.

        Only the partition of the eigenvectors is made anew, so that this costs little more than
        one `predict`. The fit must have found enough eigenvectors: ask it for the largest number
        (or "auto", which looks at 15). Clusters are numbered by how many rows of X they have.

        Parameters
        ----------
        X : anything that `mercer.as_source` takes
            The rows.
        n_clusters : iterable of int
            Numbers of clusters.

        Returns
        -------
        dict of int to array of shape (n_rows,)
        """
        check_is_fitted(self)
        found, seed = self._spectrum()
        sizes = [self._checked_size(k, found) for k in n_clusters]
        cuts = tuple(self._cut(self.graph_, found, k, seed)[0] for k in sizes)
        make = partial(self.graph_.labels_of_cuts, cuts)
        tiles, n_rows = self._work(X, lambda: make, stage="labels")
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

    def _parts(self) -> tuple[Approximation, Any]:
        """The approximation and the kernel, in agreement with each other."""
        approximation = as_approximation(
            self.approximation, self.rank, default_rank="auto", is_given=is_precomputed(self.kernel)
        )
        if self.ensemble is not None:
            approximation = approximation.for_ensemble()
        return approximation, kernel_for(approximation, self.kernel, self.gamma)

    def _suited(self, approximation: Approximation, n_rows: int, n_features: int) -> Approximation:
        """The approximation for so many rows; to count clusters, one to landmarks.

        (Their spectrum has the clearer gaps: on 65 generated sets the number of clusters is right
        for 31 instead of 26.)
        """
        is_counting = self.n_clusters == "auto"
        suited = approximation.for_rows(n_rows, n_features, is_counting=is_counting)
        return suited if self.ensemble is None else suited.for_ensemble()

    def _is_self_scaled(self, approximation: Approximation, kernel: Any) -> bool:
        is_auto = isinstance(self.gamma, str) and self.gamma == "auto"
        is_own = self.kernel is None or (kernel.scales_rows and kernel.is_automatic)
        return approximation.scales_itself and is_own and is_auto

    def _most_clusters(self, problem: Problem, record: Recorder) -> int:
        """Clusters asked for (with "auto": looked at), as far as there are distinct rows."""
        if self.n_clusters == "auto":
            return min(MOST_CLUSTERS, max(len(problem.sample) - 1, 1))
        return self._feasible_clusters(int(self.n_clusters), problem, record)

    def _factor(self, approximation: Approximation, problem: Problem, most: int, **how: Any) -> Any:
        """The graph or factor, if it can separate the clusters asked for."""
        if self.n_clusters != "auto":
            approximation.check_clusters(most)
        factor = fit_factor(approximation, problem, n_clusters=most, **how)
        if self.n_clusters != "auto":
            factor.check_clusters(most)
        return factor

    def _n_vectors(self, most: int) -> int:
        """As many eigenvectors as clusters, one more for the gap, three times for an ensemble."""
        return most + 1 if self.ensemble is None else WIDEST * most + 1

    def _settled_clusters(
        self, most: int, ranking: list[tuple[int, float]], found: SpectralMap, record: Recorder
    ) -> int:
        """As many as asked for, if the graph can separate so many; or by the largest gap."""
        if self.n_clusters != "auto":
            limit = found.most_clusters
            if limit is None or most <= limit:
                return most
            record.warn(
                f"the graph has {limit} eigenvectors of positive eigenvalues, so that {limit} "
                f"clusters were made instead of {most}: it cannot separate more of them"
            )
            return limit
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

    def _opinion(
        self,
        factor: Any,
        found: SpectralMap,
        problem: Problem,
        k: int,
        record: Recorder,
        *,
        seed: int,
    ) -> Opinion:
        """Cones around directions of the eigenvector coordinates, or of a consensus of many."""
        if self.ensemble is not None and k > 1:
            rng = np.random.default_rng((seed, k))
            labeller, n_iter = ensemble_labeller(
                factor, found, problem.sample, k, self.ensemble, n_init=self.n_init, rng=rng
            )
            return form_opinion(factor, found, labeller, n_iter, problem.sample, k)
        labeller, cones = self._cut(factor.forget_training(), found, k, seed)
        if not cones.is_converged:
            record.warn(
                f"k-means still moved after max_iter={self.max_iter} sweeps; raise max_iter or tol"
            )
        return form_opinion(factor, found, labeller, cones.n_iter, problem.sample, k)

    def _compare(
        self, opinion: Opinion, problem: Problem, k: int, record: Recorder, *, seed: int
    ) -> Opinion:
        """The partition with the best evidence: of this graph, of a wider one, or into means."""
        rng, wider = np.random.default_rng((seed, k, 1)), opinion.factor.wider()
        if wider is not None and is_compared(wider, k):
            n_vectors, solver = opinion.map.vectors.shape[1], self.eigen_solver
            found = wider.spectral_map(problem.sample, n_vectors, solver=solver, rng=rng)
            opinion = less_cut(opinion, self._opinion(wider, found, problem, k, record, seed=seed))
        opinion = steadier(opinion, problem.sample, k, rng=rng)
        if opinion.note is not None:
            record.note(opinion.note)
        return opinion

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
        return factor.labeller(vectors, cones.directions), cones

    @property
    def _n_features_out(self) -> int:
        return int(self._fitted_labeller().directions.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def _fitted_labeller(self) -> Any:
        if self.consensus_ is not None:
            return EnsembleLabeller(self.factor_, self.consensus_)
        return self.factor_.labeller(self.vectors_, self.directions_)

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        approximation = self._suited(self._parts()[0], source.n_rows, source.n_features)
        is_whole = source.in_memory and sample_rows == source.n_rows
        most = 1 if self.n_clusters == "auto" else int(self.n_clusters)
        sweeps = () if is_whole and approximation.labels_training else (Sweep("labels"),)
        n_vectors = self._n_vectors(MOST_CLUSTERS if self.n_clusters == "auto" else most)
        solving, kept = partial(eigen_memory, n_vectors), partial(point_memory, n_vectors)
        return Work(approximation, sample_rows, sweeps, most, solving=solving, kept=kept)

    def _cluster_distances(self, X: Any) -> FloatArray:
        cosines = self.transform(X) @ self._fitted_labeller().directions.T
        return np.sqrt(2.0 * np.clip(1.0 - cosines, 0.0, 2.0))

    def _labeller(self) -> Any:
        return self._fitted_labeller().counted_labels

    def _embedder(self) -> Any:
        return self._fitted_labeller().coordinates

    def _remember_fit(
        self, fit: SpectralFit, problem: Problem, approximation: Any, record: Recorder
    ) -> Any:
        """All fitted state, at once and last."""
        labeller, found = fit.opinion.labeller, fit.opinion.map
        order = numbering(fit.weights, labeller.directions)
        ordered, k = labeller.reordered(order), len(fit.weights)
        fitted = self._common_state(problem, order, fit.labels, fit.weights) | {
            "kernel_": ordered.factor.raw_kernel(),
            "factor_": ordered.factor,
            "eigenvalues_": found.values,
            "consensus_": ordered.consensus,
            "vectors_": ordered.vectors,
            "directions_": None if ordered.consensus is not None else ordered.directions,
            "n_clusters_": k,
            "n_clusters_ranking_": fit.ranking,
            "n_iter_": fit.opinion.n_iter,
            "graph_": fit.opinion.graph.forget_training(),
            "spectrum_": found,
            "seed_": fit.seed,
        }
        return self._remember(
            fitted,
            problem,
            approximation,
            record,
            eigenvalues=tuple(map(float, found.values)),
            residuals=tuple(map(float, found.residuals)),
            solver=found.solver,
            trust=fit.trust,
            gap=relative_gap(found.values, k),
        )


@dataclass(frozen=True, slots=True)
class SpectralFit:
    """What a fit found, before it is remembered."""

    opinion: Opinion
    labels: IdArray | None
    weights: FloatArray
    ranking: list[tuple[int, float]]
    seed: int
    trust: Any


def _whole_shape(problem: Problem) -> tuple[int, int]:
    """Distinct rows, where all are in the sample, else rows; and columns."""
    is_whole = problem.sample.inverse is not None
    n_rows = len(problem.sample) if is_whole else problem.source.n_rows
    return n_rows, problem.source.n_features


def _warn_of_map(
    found: SpectralMap, weights: FloatArray, k: int, problem: Problem, record: Recorder
) -> None:
    """Clusters without rows, what the eigenvectors leave open, and rows that were ignored."""
    if (n_empty := int((weights == 0).sum())) and problem.weights is None:
        record.warn(f"{n_empty} of {k} clusters have no rows; ask for fewer clusters")
    if k > 1:
        gap_warnings(found.values, found.residuals, k, record, n_parts=found.n_parts)
    if found.n_isolated:
        record.warn(
            f"{found.n_isolated:,} rows have no edge, not even to themselves: their cluster is "
            "arbitrary; give them affinities"
        )
    if found.n_clamped:
        record.warn(
            f"{found.n_clamped:,} rows have no positive degree in the low-rank graph: its "
            "approximation is too coarse for this bandwidth; raise rank, or use a smaller gamma"
        )


def _label_all(
    labeller: Any, factor: Any, k: int, problem: Problem, *, threads: int
) -> tuple[IdArray | None, FloatArray]:
    """Labels of all rows; what the factor knows of the sample is not computed again."""
    inverse, source = problem.sample.inverse, problem.source
    is_held = inverse is not None and source.in_memory
    of_sample = labeller.labels_of_training(factor, problem.sample) if is_held else None
    if of_sample is None:
        return label_rows(labeller.labels, k, problem, threads=threads)
    labels = of_sample[inverse]
    return labels, np.bincount(labels, weights=problem.weights, minlength=k).astype(np.float64)
