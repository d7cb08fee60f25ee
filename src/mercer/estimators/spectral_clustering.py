"""Spectral clustering for data of any size: landmark graphs, their ensembles, any factor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer._run.frozen import frozen
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.records import expect
from mercer._run.threads import n_threads
from mercer._run.types import FloatArray, IdArray, RandomState
from mercer.embeddings.angles import factor_notes
from mercer.embeddings.gaps import gap_warnings, ranked_gaps, relative_gap
from mercer.estimators.base import Clusterer
from mercer.estimators.cluster_number import is_open, least_clusters, open_bounds, tell_choice
from mercer.estimators.needs import Sweep, Work, eigen_memory, point_memory
from mercer.estimators.preparation import prepare_problem
from mercer.factors.base import Approximation, CountedLabels, Factor, SpectralMap
from mercer.factors.names import as_approximation, kernel_for
from mercer.factors.problem import Problem, fit_factor
from mercer.kernels.registry import is_precomputed
from mercer.linalg.numbering import numbering
from mercer.linalg.products import unit_rows
from mercer.partitions.assignment import Kept, label_and_score_rows
from mercer.partitions.cones import Cones, find_cones
from mercer.partitions.ensemble import WIDEST, Consensus, EnsembleLabeller, ensemble_labeller
from mercer.partitions.layers import Layers, find_layers
from mercer.partitions.locality import (
    Opinion,
    best_graph,
    form_opinion,
    steadier,
    undoubted,
)
from mercer.partitions.merged import VoteLabeller, merged_opinion
from mercer.partitions.outliers import OutlierModel, Scorer, fit_outliers
from mercer.partitions.resampling import FitEvidence
from mercer.rows.distinct import sample_size
from mercer.rows.rows import Rows
from mercer.rows.sample import Sample, evenly
from mercer.rows.source import Source
from mercer.selection.cluster_count import count_clusters, count_memory
from mercer.trust.diagnosis import diagnose

CLEAR_GAP = 0.65  # a relative gap that one cloud of points rarely has
LOOKED_AT = 60  # eigenvalues of a given graph, where the number of clusters is open
PLANNED = 15  # clusters that a plan reckons with, where their number is open, and whose eigenvalues
# are reported where clusters are merged


class SpectralClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Clusters of any shape, by the leading eigenvectors of a graph between rows.

    Up to 100,000 rows form a graph of mutual nearest neighbours. Larger data are connected to
    landmarks, and the eigenproblem is solved on the landmarks alone [cai2015, huang2020]: 10⁷ rows
    with two columns take seconds. `predict` places new rows by their nearest neighbours or
    landmarks. `ensemble=20` combines many partitions of the same graph, which is slower, and better
    for many or overlapping clusters. Other approximations accept any kernel: W ≈ F Fᵀ, with the
    eigenvectors of Fᵀ D⁻¹ F.

    More than 128 clusters (with 20 rows or more on average) are found by merging landmarks instead
    of computing as many eigenvectors: the two most tightly connected groups are merged until
    `n_clusters` are left [bonald2018]. The clusters of any fit are merged further in the same way:
    `tree_` is the whole tree, and `layers_` are the coarser partitions that persist.

    The graph is chosen without labels (up to 20,000 rows): graphs with twice and four times as many
    neighbours and one without the least dense rows are compared, and plain k-means if the graph has
    no clear structure.

    Up to 100,000 distinct rows are fitted; for more, the graph is built on a seeded sample, and one
    pass labels every row. Labels are the same for any block size and number of threads.

    Parameters
    ----------
    n_clusters : int, "auto" or (int, int), default=8
        Number of clusters, or its bounds (smallest, largest). "auto" and bounds compare partitions
        of a sample: whether one more cluster would split close neighbours, and whether other
        methods find the same clusters. `n_clusters_ranking_` has the candidates; if the number is
        not clear, the fit warns. For a precomputed graph the largest relative gap of the spectrum
        decides.
    kernel : str, kernel object, callable or None, default=None
        None is the approximation's own: for landmarks and neighbours a self-tuning Gaussian, for
        binning the Laplacian, else RBF. With "precomputed", X is a symmetric matrix of affinities,
        dense or sparse, and `predict` takes affinities of new items to the training items. (With an
        approximation other than "auto" the matrix must be positive semi-definite.)
    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of a kernel given by name.
    approximation : str or approximation object, default="auto"
        "auto" ("neighbors" for up to 100,000 rows, 20,000 of up to 3 columns, else "landmarks"),
        "landmarks", "neighbors" (a graph between the rows themselves), "binning" (random
        grids [wu2018]), "quantized" (blocks of near rows [zhang2006]), "cholesky", "nystrom",
        "fourier", "exact", or an object such as ``Quantized(radius=0.5)``.
    rank : int or "auto", default="auto"
        Number of landmarks, grids, pivots or features; "auto" lets the approximation decide. With
        approximation="auto" it is the number of landmarks.
    ensemble : int or None, default=None
        Number of base partitions that are combined; None makes a single one.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How clusters are found in the eigenvectors.
    eigen_solver : {"auto", "dense", "arpack", "lobpcg", "primme"}, default="auto"
        Solver of the eigenproblem.
    noise : float, "auto" or None, default=None
        Share of the rows to label -1 (noise), those with the largest outlier scores; "auto" selects
        rows whose score is far above the typical one. None labels every row.
    n_init : int, default=10
        Number of runs of k-means; the best one is kept.
    max_iter : int, default=300
        Maximum number of iterations of a run of k-means.
    tol : float, default=1e-4
        Convergence tolerance of k-means: movement of the centres relative to the variance.
    max_memory : int, str or None, default=None
        Memory limit in bytes, or as text such as "500MB"; None is half of the free memory.
    n_jobs : int or None, default=None
        Number of threads, -1 for all cores; None is 1.
    verbose : int, default=0
        Verbosity; 1 writes progress to standard error.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the random numbers; the same seed gives the same labels.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        Cluster of each row, numbered by decreasing size. Only for rows in memory; for files, use
        ``predict(path, out=…)``.
    exemplars_ : array of shape (n_clusters, 3)
        Row numbers of the three most typical rows of each cluster, chosen from a sample; -1 if a
        cluster has fewer.
    outlier_scores_ : array of shape (n_rows,)
        How unusual each row is in its cluster: 1 is typical, larger is more unusual. Only for rows
        in memory.
    cluster_weights_ : array of shape (n_clusters,)
        Number of rows in each cluster, or the sum of their sample weights.
    eigenvalues_ : array
        Eigenvalues of the normalised graph, largest first; the first is 1.
    n_clusters_ : int
        Number of clusters.
    n_clusters_ranking_ : list of (int, float, ...)
        Candidates for the number of clusters, best first. With "auto" or bounds, each entry has the
        number, its probability and the evidence: how much one more cluster would split, and how
        much it splits more than one fewer; the gap of the spectrum; the agreement with other
        methods, and with linkage alone; and the relative size of the smallest cluster. Otherwise
        each entry has the number and its relative gap.
    layers_ : array of shape (n_layers, n_clusters)
        Nested partitions, coarse to fine: for each layer, the cluster of the layer that every
        cluster belongs to. ``layers_[i][labels_]`` are the labels of the training rows, and
        ``predict(X, layer=i)`` those of any rows. Ensembles have none.
    layer_evidence_ : array of shape (n_layers,)
        How long each layer persists in the tree, relative to the longest range expected by chance
        among partitions into half to twice as many clusters; at least 1.
    tree_ : array of shape (n_clusters - 1, 4)
        The clusters merged two by two, as a linkage matrix of `scipy.cluster.hierarchy`.
    n_iter_ : int
        Number of iterations of the best run of k-means.
    graph_, spectrum_, seed_ : Factor, SpectralMap, int
        State used by `labels_path` (not in model files).
    row_sample_ : RowSample
        The rows of the fit that `embedding_map` draws from (not in model files).
    factor_ : Factor
        The graph or factor.
    kernel_ : Kernel
        The kernel, with the bandwidth that was used.
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

    _has_memberships = True
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
    _optional_fields: ClassVar[dict[str, Any]] = Clusterer._optional_fields | {
        "groups_": "(r,) int, in [0, k), or None",
        "layers_": "(l?, k) int, in [0, k)",
        "layer_evidence_": "(l?,) float, finite",
        "tree_": "(t?, 4) float, finite",
    }
    _parameter_constraints = {  # noqa: RUF012
        "n_clusters": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
            tuple,
            list,
        ],
        "kernel": "no_validation",
        "gamma": "no_validation",
        "approximation": "no_validation",
        "rank": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "ensemble": [None, Interval(Integral, 2, None, closed="left")],
        "assign_labels": [StrOptions({"kmeans", "cluster_qr"})],
        "eigen_solver": [StrOptions({"auto", "dense", "arpack", "lobpcg", "primme"})],
        "noise": [None, Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"})],
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
        n_clusters: int | str | tuple[int, int] = 8,
        *,
        kernel: Any = None,
        gamma: Any = "auto",
        approximation: Any = "auto",
        rank: int | str = "auto",
        ensemble: int | None = None,
        assign_labels: str = "kmeans",
        eigen_solver: str = "auto",
        noise: float | str | None = None,
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
        self.noise = noise
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
        others = [self.consensus_ is not None, self._groups() is not None]
        is_single = all(own) if not any(others) else not any(own) and not all(others)
        expect(is_single, "there must be either vectors_ and directions_, a consensus_, or groups_")
        factor, vectors = self.factor_, self.vectors_
        is_matched = vectors is None or vectors.dtype == factor.vector_dtype
        expect(is_matched, f"vectors_ must be {np.dtype(factor.vector_dtype)}")
        is_ensemble = not any(others) or factor.takes_ensembles
        expect(
            is_ensemble, "the partitions of consensus_ or groups_ are not those of the landmarks"
        )
        is_ranking = all(
            len(entry) > 1 and type(entry[0]) is int and {type(one) for one in entry[1:]} == {float}
            for entry in self.n_clusters_ranking_
        )
        expect(is_ranking, "n_clusters_ranking_ is not a list of numbers and evidence")

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
        with self._running():
            task = self._prepare(X, sample_weight, rng, record)
            problem, approximation = task.problem, task.approximation
            with record.stage("factor"):
                factor = self._factor(task, rng=rng, threads=threads)
            with record.stage("eigenvectors"):
                n_vectors, solver = self._n_vectors(task.most, approximation), self.eigen_solver
                found = factor.spectral_map(
                    problem.sample, n_vectors, solver=solver, rng=rng, threads=threads
                )
            ranking = task.ranking or ranked_gaps(found.values, task.most)
            k = self._settled_clusters(task.most, ranking, found, record)
            seed = int(rng.integers(2**63))
            with record.stage("clusters"):
                if approximation.merges_clusters:
                    opinion = merged_opinion(factor, found, problem.sample, k)
                else:
                    opinion = self._opinion(factor, found, problem, k, record, seed=seed)
                    opinion = self._compare(opinion, problem, k, record, seed=seed)
                mass = opinion.factor.mass(problem.sample)
                affinities = opinion.affinities(problem.sample)
                if not problem.source.in_memory:
                    opinion = opinion.forget_training()  # goes before all rows come
                factor, found = opinion.factor, opinion.map
            with record.stage("labels"):
                scorer, kept, weights = self._label_all(opinion, mass, k, problem, threads=threads)
            if affinities is None:
                affinities = _affinities_of_points(opinion, kept.labels, problem.sample, k)
            factor_notes(factor, found.values, k, record, total_weight=float(weights.sum()))
            _warn_of_map(found, weights, k, problem, record)
            trust = diagnose(_evidence(opinion, kept.labels, weights, problem), problem, record)
        fit = SpectralFit(opinion, kept, scorer.model, weights, ranking, seed, trust, affinities)
        return self._remember_fit(fit, problem, approximation, record)

    def predict(self, X: Any, *, layer: int | None = None, out: Any = None) -> Any:
        """The cluster of each row, seen or new.

        Parameters
        ----------
        X : anything that `mercer.as_source` takes
            The rows.
        layer : int or None, default=None
            A number of `layers_`, 0 for the coarsest; None is the clusters themselves.
        out : str or path, default=None
            A file (``.npy``, ``.parquet``, ``.csv`` or ``.zarr``) to write the labels to as they
            are found, in the order of the rows.

        Returns
        -------
        array of shape (n_rows,), or `out` if it is given
        """
        check_is_fitted(self)
        model = self
        if layer is not None:
            model = copy(self)
            model._parents = self._parents_of(layer)
        return Clusterer.predict(model, X, out=out)

    def _parents_of(self, layer: Any) -> IdArray:
        """The cluster of a layer that each cluster belongs to."""
        layers = vars(self).get("layers_", np.zeros((0, 0), np.intp))
        is_number = isinstance(layer, int | np.integer) and not isinstance(layer, bool)
        if not is_number or not -len(layers) <= layer < len(layers):
            raise ValueError(
                f"layer={layer!r} must be a whole number below {len(layers)}, the number of layers "
                "of this model; layers_ lists them, coarse to fine"
            )
        parents: IdArray = layers[layer]
        return parents

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

        Only the eigenvectors are partitioned again, so this costs little more than one `predict`.
        The fit must have computed enough eigenvectors: fit with the largest number.
        Clusters are numbered by how many rows of X they have.

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
        most = found.vectors.shape[1] - 1
        if self._groups() is None:
            most = max(self.n_clusters_, most)
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

    def _suited(
        self, approximation: Approximation, n_rows: int, n_features: int, n_clusters: int
    ) -> Approximation:
        """The approximation for so many rows and clusters."""
        asked = n_clusters if self.ensemble is None else 1
        suited = approximation.for_rows(n_rows, n_features, n_clusters=asked)
        return suited if self.ensemble is None else suited.for_ensemble()

    def _asked(self) -> int:
        """Clusters asked for; 1 where their number is to be found."""
        return 1 if is_open(self.n_clusters) else least_clusters(self.n_clusters)

    def _is_self_scaled(self, approximation: Approximation, kernel: Any) -> bool:
        is_auto = isinstance(self.gamma, str) and self.gamma == "auto"
        is_own = self.kernel is None or (kernel.scales_rows and kernel.is_automatic)
        return approximation.scales_itself and is_own and is_auto

    def _prepare(
        self, X: Any, sample_weight: Any, rng: np.random.Generator, record: Recorder
    ) -> SpectralTask:
        """The rows of the fit, how many clusters are looked for, and the graph that suits both."""
        approximation, kernel = self._parts()
        is_self_scaled = self._is_self_scaled(approximation, kernel)
        problem = prepare_problem(
            self,
            X,
            sample_weight,
            rng=rng,
            record=record,
            kernel=kernel,
            least_rows=least_clusters(self.n_clusters),
            wanted_rows=approximation.sample_rows(self._asked()),
            is_used=not (is_self_scaled or approximation.takes_graph),
            takes_graph=approximation.takes_graph,
        )
        if is_self_scaled:
            problem = replace(problem, kernel=None)
        with record.stage("number of clusters"):
            most, ranking = self._number_of_clusters(approximation, problem, record)
        approximation = self._suited(approximation, *_whole_shape(problem), most)
        if is_self_scaled:
            problem = replace(problem, bandwidth=approximation.own_bandwidth)
        return SpectralTask(problem, approximation, most, ranking)

    def _number_of_clusters(
        self, approximation: Approximation, problem: Problem, record: Recorder
    ) -> tuple[int, list[Any]]:
        """As many as asked for, as far as there are distinct rows, or as the rows show.

        Of a given graph, as many as are looked at.
        """
        if not is_open(self.n_clusters):
            return self._feasible_clusters(least_clusters(self.n_clusters), problem, record), []
        least, most = open_bounds(self.n_clusters)
        n = len(problem.sample)
        if approximation.takes_graph:
            return min(most or LOOKED_AT, max(n - 1, 1)), []
        candidates = count_clusters(problem.kernel, problem.sample, max(least, 2), most)
        if not candidates:
            return min(least, n), []
        tell_choice(candidates, record)
        ranking = [candidate.entry() for candidate in candidates]
        return self._feasible_clusters(candidates[0].n_clusters, problem, record), ranking

    def _factor(self, task: SpectralTask, **how: Any) -> Any:
        """The graph or factor, if it can separate the clusters asked for."""
        is_asked = not is_open(self.n_clusters)
        if is_asked:
            task.approximation.check_clusters(task.most)
        factor = fit_factor(task.approximation, task.problem, n_clusters=task.most, **how)
        if is_asked:
            factor.check_clusters(task.most)
        return factor

    def _n_vectors(self, most: int, approximation: Approximation) -> int:
        """As many eigenvectors as clusters, one more for the gap, three times for an ensemble.

        A few, which show the spectrum, where clusters are merged.
        """
        if approximation.merges_clusters:
            return PLANNED + 1
        return most + 1 if self.ensemble is None else WIDEST * most + 1

    def _settled_clusters(
        self, most: int, ranking: list[Any], found: SpectralMap, record: Recorder
    ) -> int:
        """As many as asked for or counted, if the graph can separate so many.

        Of a given graph whose number of clusters is open, as the largest gap shows.
        """
        if is_open(self.n_clusters) and not ranking:
            return 1
        if not is_open(self.n_clusters) or len(ranking[0]) > 2:  # with evidence: counted before
            limit = found.most_clusters
            if limit is None or most <= limit:
                return most
            record.warn(
                f"the graph has {limit} eigenvectors of positive eigenvalues, so that {limit} "
                f"clusters were made instead of {most}: it cannot separate more of them"
            )
            return limit
        least, _ = open_bounds(self.n_clusters)
        allowed = [(k, gap) for k, gap in ranking if k >= least] or ranking
        best, gap = allowed[0]
        record.note(f"n_clusters={best} by the largest relative gap of the spectrum ({gap:.2f})")
        if gap < CLEAR_GAP:
            words = ", ".join(f"{k} ({g:.2f})" for k, g in allowed[:4])
            record.warn(
                f"the number of clusters is not clear: relative gaps are {words}; "
                "choose n_clusters yourself"
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
        """Cones around directions of the eigenvector coordinates, or of a consensus of many.

        The latter unless the single partition separates fewer near rows. A graph of just as many
        parts as clusters needs no consensus: these are the clusters, also where one is so small
        that most base partitions would not see it.
        """
        labeller, cones = self._cut(factor.forget_training(), found, k, seed)
        if not cones.is_converged:
            record.warn(
                f"k-means did not converge in max_iter={self.max_iter} iterations; raise max_iter "
                "or tol"
            )
        single = form_opinion(factor, found, labeller, cones.n_iter, problem.sample, k)
        if self.ensemble is None or k in (1, found.n_parts):
            return single
        rng = np.random.default_rng((seed, k))
        labeller, n_iter = ensemble_labeller(
            factor, found, problem.sample, k, self.ensemble, n_init=self.n_init, rng=rng
        )
        consensus = form_opinion(factor, found, labeller, n_iter, problem.sample, k)
        return undoubted(consensus, single)

    def _compare(
        self, opinion: Opinion, problem: Problem, k: int, record: Recorder, *, seed: int
    ) -> Opinion:
        """The partition with the best evidence: of this graph, of others, or into means."""
        sample, rng = problem.sample, np.random.default_rng((seed, k, 1))
        n_vectors, solver = opinion.map.vectors.shape[1], self.eigen_solver

        def form(graph: Any) -> Opinion:
            found = graph.spectral_map(sample, n_vectors, solver=solver, rng=rng)
            return self._opinion(graph, found, problem, k, record, seed=seed)

        opinion = steadier(best_graph(opinion, form, sample, k), sample, k, rng=rng)
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

    def _groups(self) -> IdArray | None:
        """The cluster of each landmark, where clusters were merged."""
        return vars(self).get("groups_")

    def _fitted_labeller(self) -> Any:
        groups = self._groups()
        if groups is not None:
            return VoteLabeller(self.factor_, groups, self.n_clusters_)
        if self.consensus_ is not None:
            return EnsembleLabeller(self.factor_, self.consensus_)
        return self.factor_.labeller(self.vectors_, self.directions_)

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        given, most = self._parts()[0], self._asked()
        wanted = given.sample_rows(most)
        sample_rows = max(sample_rows, sample_size(source.n_rows, source.n_features, wanted))
        approximation = self._suited(given, source.n_rows, source.n_features, most)
        is_chosen = approximation is not given  # by the number of rows: a trial has fewer
        trial = clone(self).set_params(approximation=approximation, rank="auto")
        is_whole = source.in_memory and sample_rows == source.n_rows
        sweeps = () if is_whole and approximation.labels_training else (Sweep("labels"),)
        is_counted = is_open(self.n_clusters)
        looked_at = open_bounds(self.n_clusters)[1] or PLANNED if is_counted else most
        n_vectors = self._n_vectors(looked_at, approximation)
        solving, kept = partial(eigen_memory, n_vectors), partial(point_memory, n_vectors)
        return Work(
            approximation,
            sample_rows,
            sweeps,
            most,
            trial if is_chosen else None,
            solving=solving,
            kept=kept,
            before=count_memory(sample_rows) if is_counted else 0,
            wanted_rows=wanted,
        )

    def _label_all(
        self, opinion: Opinion, mass: FloatArray | None, k: int, problem: Problem, *, threads: int
    ) -> tuple[Scorer, Kept, FloatArray]:
        """Labels and outlier scores; what the factor knows of the sample is not computed again."""
        labeller, sample, source = opinion.labeller, problem.sample, problem.source
        look = partial(labeller.surroundings, mass)
        is_held = sample.inverse is not None and source.in_memory
        around = labeller.surroundings_of_training(opinion.factor, mass) if is_held else None
        if around is None:
            scorer = self._fit_outliers(look, mass, problem, k)
            return scorer, *label_and_score_rows(scorer, k, problem, threads=threads)
        model = fit_outliers(around, sample.weights, k, mass=mass, noise=self.noise)
        labels, scores = around.labels[sample.inverse], model.scores(around)[sample.inverse]
        weights = np.bincount(labels, weights=problem.weights, minlength=k).astype(np.float64)
        return Scorer(look, model), Kept(labels, scores), weights

    def _cluster_distances(self, X: Any) -> FloatArray:
        cosines = self.transform(X) @ self._fitted_labeller().directions.T
        return np.sqrt(2.0 * np.clip(1.0 - cosines, 0.0, 2.0))

    def _labeller(self) -> Any:
        return self._fitted_labeller().counted_labels

    def _noise_labeller(self) -> Any:
        make, parents = super()._noise_labeller(), vars(self).get("_parents")
        return make if parents is None else LayerLabels(make, parents)

    def _surroundings(self, mass: FloatArray | None) -> Any:
        return partial(self._fitted_labeller().surroundings, mass)

    def _embedder(self) -> Any:
        return self._fitted_labeller().coordinates

    def _remember_fit(
        self, fit: SpectralFit, problem: Problem, approximation: Any, record: Recorder
    ) -> Any:
        """All fitted state, at once and last."""
        labeller, found = fit.opinion.labeller, fit.opinion.map
        order = numbering(fit.weights, labeller.tie_breaks())
        ordered, k = labeller.reordered(order), len(fit.weights)
        layers = _layers_of(fit, order)
        is_cut = ordered.vectors is not None
        fitted = self._common_state(
            problem,
            order,
            fit.kept.labels,
            fit.weights,
            outliers=fit.outliers,
            scores=fit.kept.scores,
        ) | {
            "kernel_": ordered.factor.raw_kernel(),
            "factor_": ordered.factor,
            "eigenvalues_": found.values,
            "consensus_": ordered.consensus,
            "vectors_": ordered.vectors,
            "directions_": ordered.directions if is_cut else None,
            "groups_": getattr(ordered, "groups", None),
            "layers_": layers.parents,
            "layer_evidence_": layers.evidence,
            "tree_": layers.tree,
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


@frozen
class SpectralTask:
    """What a fit looks for, in which rows, by which graph."""

    problem: Problem
    approximation: Approximation
    most: int  # clusters; of a given graph whose number is open, the most that are looked at
    ranking: list[Any]  # of numbers of clusters, where they were counted before


@frozen
class SpectralFit:
    """What a fit found, before it is remembered."""

    opinion: Opinion
    kept: Kept
    outliers: OutlierModel
    weights: FloatArray
    ranking: list[tuple[int, float]]
    seed: int
    trust: Any
    affinities: Any  # (k, k) between clusters; None: unknown


@frozen
class LayerLabels:
    """Labels of a layer: those of the clusters that belong to its clusters."""

    make: Callable[[], Callable[[Rows], CountedLabels]]
    parents: IdArray

    def __call__(self) -> Callable[[Rows], CountedLabels]:
        decide = self.make()

        def of_layer(rows: Rows) -> CountedLabels:
            labels, n_unseen = decide(rows)
            return np.where(labels < 0, labels, self.parents[labels]), n_unseen

        return of_layer


def _affinities_of_points(
    opinion: Opinion, labels: IdArray | None, sample: Sample, k: int
) -> FloatArray | None:
    """Affinities of clusters by the rows whose coordinates were clustered, where they are known."""
    if labels is None or not opinion.graph.points_are_rows:
        return None
    points = sample.ids[evenly(len(sample), len(opinion.map.points))]
    return opinion.map.affinities(labels[points], k)


def _evidence(
    opinion: Opinion, labels: IdArray | None, weights: FloatArray, problem: Problem
) -> FitEvidence:
    """What the fit knows of itself."""
    found, factor = opinion.map, opinion.factor
    return FitEvidence(
        weights,
        labels,
        opinion.labeller.labels(),
        opinion.resampler,
        problem.kernel,
        is_graph=factor.is_graph,
        trace_error=factor.trace_error,
        n_clamped=found.n_clamped,
        eigenvalues=found.values,
        residuals=found.residuals,
    )


def _layers_of(fit: SpectralFit, order: IdArray) -> Layers:
    """The layers of clusters in this order."""
    if fit.affinities is None:
        return Layers.none(len(order))
    return find_layers(fit.affinities[order][:, order], fit.weights[order])


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
