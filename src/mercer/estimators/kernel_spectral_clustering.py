"""Sparse kernel spectral clustering with model selection."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils._param_validation import Interval, StrOptions

from mercer._run.frozen import frozen
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.records import expect
from mercer._run.threads import n_threads
from mercer._run.types import FloatArray, RandomState
from mercer.embeddings.scores import (
    ScoreMap,
    Scores,
    score_map,
    score_map_of_two,
    training_scores,
)
from mercer.embeddings.weighted_kpca import WeightedKpca, trimmed_weights, weighted_kpca
from mercer.estimators.base import Clusterer
from mercer.estimators.cluster_number import (
    is_open,
    least_clusters,
    open_bounds,
    tell_choice,
)
from mercer.estimators.needs import Sweep, Work, dense_memory, eigen_memory
from mercer.estimators.preparation import prepare_problem
from mercer.factors.base import Approximation
from mercer.factors.names import as_approximation, kernel_for
from mercer.factors.problem import Problem, fit_factor
from mercer.kernels.base import Kernel
from mercer.kernels.registry import as_kernel, is_precomputed
from mercer.linalg.numbering import numbering
from mercer.partitions.assignment import Kept, label_and_score_rows
from mercer.partitions.codebooks import Codebook
from mercer.partitions.codes import CodeLabels
from mercer.partitions.criteria import criterion
from mercer.partitions.encode import encode
from mercer.partitions.outliers import OutlierModel
from mercer.partitions.resampling import JUDGES, FitEvidence, Resampler, by_scores
from mercer.rows.checks import checked_weights
from mercer.rows.sample import Sample, evenly, subsample
from mercer.rows.source import Source
from mercer.rows.weights import in_own_unit
from mercer.selection.cluster_count import Candidate, count_clusters, count_memory
from mercer.selection.cut_comparison import CutComparison
from mercer.selection.grid import search_grid
from mercer.trust.diagnosis import diagnose

DEFAULT_RANK = 256
TRAIN_ROWS = 10_000  # more did not improve the segmentations of [novak2023]
SEARCH_ROWS = 4000  # that make, and that judge, the models of an automatic choice
LEAST_SEARCH_ROWS = 50  # fewer tell nothing about a bandwidth or a number of clusters
PLANNED = 15  # clusters that a plan reckons with, where their number is open
RIVAL = 0.5  # of the probability of the best number of clusters: the criterion decides
IGNORED = 0.01  # of the training rows without a positive degree: worth a warning
DEGENERATE = 1e-6  # eigenvalues closer than this do not fix their eigenvectors' signs


class KernelSpectralClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Spectral clustering as weighted kernel PCA: a sparse model with a selection criterion.

    1. A training sample is factorised, K ≈ G Gᵀ, with few pivots (the reduced set).
    2. Weighted kernel PCA on G gives K - 1 score variables (eqs. 9 and 10 of [novak2023]), and
       coefficients on the pivots that compute them for any row (eqs. 6 and 8).
    3. An encoding of the scores defines the clusters.
    4. Every row is labelled in one pass: rank kernel values each.

    With ``gamma="auto"`` at most 10,000 rows are clustered with five bandwidths, each with and
    without the rows of lowest degree, and the clusters that split the fewest close neighbours are
    kept. With ``n_clusters="auto"`` the number is chosen as by `SpectralClustering`; the published
    choice, by the encoding's criterion on held-out rows, is `mercer.selection.search`.
    Time O(train·rank² + n·rank), memory O(train·rank).

    The algorithm of [novak2023], pivot for pivot: give the bandwidth and
    ``approximation=IncompleteCholesky(rank, pivots="greedy", block=1)``.

    Parameters
    ----------
    n_clusters : int, "auto" or (int, int), default=8
        Number of clusters, or its bounds (smallest, largest). "auto" and bounds compare partitions
        of a sample: whether one more cluster would split close neighbours, and whether other
        methods find the same clusters.
    kernel : str, kernel object or callable, default="rbf"
        A name, an object such as ``Chi2(10.0)``, or a function; "precomputed" for a matrix.
    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of a kernel given by name. "auto" starts from the neighbour rule and compares it
        with 4 and 16 times wider and narrower ones.
    approximation : str or approximation object, default="cholesky"
        "cholesky" (with pivots="spread": every region of the rows has a pivot), "nystrom",
        "fourier", "quantized", "exact" or an object.
    rank : int, default=256
        Rank of an approximation given by name: its number of pivots, features or components.
    encoding : {"bas", "ams", "blf"}, default="bas"
        "bas" (directions of unbiased scores), "ams" (mean scores, soft memberships) or "blf"
        (sign patterns; not defined if eigenvalues coincide).
    train_size : int, float or None, default=None
        Number or share of the rows to train on; None is min(n, 10,000). They are drawn from at
        most 100,000 distinct rows.
    kernel_cholesky : kernel object or None, default=None
        A different kernel for the factor and the eigenvectors (the second kernel parameter of
        [novak2023]); None uses `kernel` for both.
    trim : float or "auto", default="auto"
        Share of the training rows, those of lowest degree, left out of the eigenvectors, so that
        stray rows do not become clusters. They are labelled like any other row. "auto"
        compares 0 and 0.05 if the bandwidth is chosen too, and is 0 if it is given.
    balance : float, default=0.2
        η, the weight of balanced cluster sizes in the criterion.
    noise : float, "auto" or None, default=None
        Share of the rows to label -1 (noise), those with the largest outlier scores; "auto" selects
        rows whose score is far above the typical one. None labels every row.
    n_init : int, default=3
        Number of runs of k-means in addition to the published start; the best one is kept ("bas"
        only).
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
    n_clusters_ : int
        Number of clusters.
    eigenvalues_ : array of shape (n_clusters - 1,)
        λ of the weighted kernel PCA, largest first.
    coefficients_, bias_ : arrays of shapes (rank, n_clusters - 1) and (n_clusters - 1,)
        ξ and b: scores are k(X, pivots) @ ξ + b.
    degree_coefficients_ : array of shape (rank,)
        Coefficients on the pivots that give the degree of a row.
    codebook_ : Codebook
        The encoding of the clusters: `prototypes`, `distances`, `memberships`.
    pivots_ : array of shape (rank,)
        Row numbers of the reduced set.
    degrees_ : array of shape (train,)
        Low-rank degrees of the training rows (not in model files).
    trim_ : float
        Share of the training rows that were left out (not in model files).
    n_iter_ : int
        Number of iterations of k-means on directions.
    n_clusters_ranking_ : list of (int, float, ...)
        With "auto" or bounds, the numbers of clusters that were compared, best first, each with its
        probability and the evidence, as of `SpectralClustering`; else empty.
    selection_ : Selection or None
        The comparison of bandwidths, where gamma="auto".
    factor_ : Factor
        The factor.
    kernel_ : Kernel
        The kernel of the scores.
    report_ : Report
        The fit report.

    References
    ----------
    [novak2023, alzate2010, alzate2011, langone2013, novak2021]

    Examples
    --------
    >>> from mercer import KernelSpectralClustering
    >>> from mercer.datasets import rings
    >>> X, y = rings(3000, random_state=0)
    >>> model = KernelSpectralClustering("auto", random_state=0).fit(X)
    >>> model.n_clusters_
    3
    """

    _compares_at_once = True

    _fitted_fields: ClassVar[dict[str, Any]] = Clusterer._fitted_fields | {
        "eigenvalues_": "(k-1,) float, finite",
        "coefficients_": "(m, k-1) float64, finite",
        "degree_coefficients_": "(m,) float64, finite",
        "bias_": "(k-1,) float64, finite",
        "codebook_": Codebook,
        "cluster_weights_": "(k,) float, finite",
        "n_clusters_": "int k",
        "n_iter_": "int",
        "selection_": "mercer.selection.result:Selection or None",
    }
    _optional_fields: ClassVar[dict[str, Any]] = Clusterer._optional_fields | {
        "n_clusters_ranking_": "list of tuple",
    }
    _has_memberships = True
    _usual_pivots = "spread"
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
        "rank": [Interval(Integral, 1, None, closed="left")],
        "encoding": [StrOptions({"bas", "ams", "blf"})],
        "train_size": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "kernel_cholesky": "no_validation",
        "trim": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "balance": [Interval(Real, 0, 1, closed="both")],
        "noise": [None, Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_memory": "no_validation",
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        n_clusters: int | str | tuple[int, int] = 8,
        *,
        kernel: Any = "rbf",
        gamma: Any = "auto",
        approximation: Any = "cholesky",
        rank: int = DEFAULT_RANK,
        encoding: str = "bas",
        train_size: float | None = None,
        kernel_cholesky: Any = None,
        trim: float | str = "auto",
        balance: float = 0.2,
        noise: float | str | None = None,
        n_init: int = 3,
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
        self.encoding = encoding
        self.train_size = train_size
        self.kernel_cholesky = kernel_cholesky
        self.trim = trim
        self.balance = balance
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
        codebook, k = self.codebook_, self.n_clusters_
        is_plane = k == 2 and codebook.encoding == "bas"  # the score and the degree
        found, wanted = codebook.prototypes.shape[1], 2 if is_plane else k - 1
        expect(found == wanted, f"codebook_ has {found} coordinates, its encoding has {wanted}")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelSpectralClustering:
        """Cluster the rows of X (anything `mercer.as_source` takes)."""
        self._validate_params()
        rng, threads, record = as_generator(self.random_state), n_threads(self.n_jobs), Recorder()
        least_rows = least_clusters(self.n_clusters)
        approximation, kernel = self._parts(least_rows)
        with self._running():
            problem = prepare_problem(
                self, X, sample_weight, rng=rng, record=record, kernel=kernel, least_rows=least_rows
            )
            train = self._training_problem(problem, rng=rng)
            if approximation.is_published():
                train = _in_order_of_rows(train)
            with record.stage("search"):
                choice = self._choose(
                    problem, train.sample, approximation, record, rng=rng, threads=threads
                )
            problem, k = choice.problem, choice.n_clusters
            train = replace(train, kernel=problem.kernel)
            rng = rng if choice.seed is None else np.random.default_rng(choice.seed)
            with record.stage("factor"):
                second = self._cholesky_kernel(train.sample, rng)
                first = replace(train, kernel=second or train.kernel)
                factor = fit_factor(approximation, first, rng=rng, threads=threads)
                factor = factor.dense(train.sample, rng=rng, threads=threads)
                F = factor.training_rows
            with record.stage("eigenvectors"):
                core = _trimmed(F, train, choice.trim)
                found = weighted_kpca(F, core.sample.weights, max(k - 1, 0), rng=rng)
                k = self._separable_clusters(k, found, record)
                model = self._score_model(factor, found, core)
            with record.stage("clusters"):
                labeller, n_iter = self._encode(model, core, k, record, rng=rng)
            with record.stage("labels"):
                held = factor if self.kernel_cholesky is None else labeller.factor
                mass, k = held.mass(train.sample), len(labeller.codebook)
                look = partial(labeller.surroundings, mass)
                scorer = self._fit_outliers(look, mass, problem, k)
                kept, weights = label_and_score_rows(scorer, k, problem, threads=threads)
            self._warn_of_spectrum(found, len(train.sample), len(labeller.codebook), record)
            evidence = FitEvidence(
                weights,
                kept.labels,
                labeller.labels(),
                _resampler(F, core, len(weights)),
                train.kernel,
                trace_error=factor.trace_error,
                n_clamped=found.n_clamped,
            )
            trust = diagnose(evidence, train, record)
        degrees = found.degrees(F) * problem.weight_unit
        fit = KscFit(
            labeller, found.values, degrees, kept, scorer.model, weights, choice, n_iter, trust
        )
        return self._remember_fit(fit, problem, approximation, factor, record)

    def transform(self, X: Any) -> FloatArray:
        """The score variables of each row: (n, k - 1)."""
        tiles, _ = self._work(X, self._embedder, stage="transform")
        return np.concatenate([tile for _, tile in tiles])

    def memberships(self, X: Any) -> FloatArray:
        """How much each row belongs to each cluster, in the encoding's distances: (n, k)."""
        tiles, _ = self._work(X, lambda: self._fitted_labeller().memberships, stage="memberships")
        return np.concatenate([tile for _, tile in tiles])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The encoding's criterion on these rows: 1 is best."""
        tiles, n_rows = self._work(X, lambda: self._fitted_labeller().all_scores, stage="score")
        weights, _ = in_own_unit(checked_weights(sample_weight, n_rows))
        scores = Scores.stacked([tile for _, tile in tiles])
        if self.n_clusters_ == 1:
            return 0.0
        return criterion(
            self.codebook_,
            scores.coordinates(self.codebook_.encoding, self.n_clusters_),
            np.ones(n_rows) if weights is None else weights,
            balance=self.balance,
            pivot_sums=scores.pivot_sums(),
        )

    def search_scores(
        self,
        X: Any,
        sample_weight: Any,
        sizes: tuple[int, ...],
        gammas: tuple[float, ...],
        *,
        encoding: str,
        balance: float,
        outlier: float,
        n_validation: int,
        threads: int,
    ) -> Any:
        """What `mercer.selection.search` asks for, and checks: the criterion of all pairs."""
        self._validate_params()
        approximation, kernel = self._parts(1)
        rng, record = as_generator(self.random_state), Recorder()
        with self._running():
            problem = prepare_problem(self, X, sample_weight, rng=rng, record=record, kernel=kernel)
            if not gammas and kernel.is_automatic:
                gammas = problem.gammas_around()
            n_train = self._n_train(len(problem.sample))
            selection = self._search(
                problem,
                approximation,
                sizes,
                gammas,
                rng=rng,
                threads=threads,
                n_most=n_train,
                n_validation=n_validation,
                encoding=encoding,
                balance=balance,
                outlier=outlier / problem.weight_unit,
            )
        record.raise_warnings()
        return selection

    def _parts(self, n_clusters: int) -> tuple[Approximation, Kernel]:
        """The approximation and the kernel, after what cannot work is refused."""
        approximation = as_approximation(
            self.approximation,
            self.rank,
            default_rank=DEFAULT_RANK,
            suits=lambda kind: not kind.is_sparse,
        )
        if approximation.is_sparse:
            raise ValueError(
                f"weighted kernel PCA needs a dense factor, not {type(approximation).__name__}: "
                "use approximation='cholesky', or SpectralClustering for graphs and bins"
            )
        if self.approximation == "cholesky":
            approximation.set_params(pivots=self._usual_pivots)
        kernel = kernel_for(approximation, self.kernel, self.gamma)
        approximation.check_clusters(n_clusters)
        second = self.kernel_cholesky
        if second is not None and (is_precomputed(self.kernel) or is_precomputed(second)):
            raise ValueError(
                "kernel_cholesky needs rows that both kernels can evaluate, but one of them is "
                "precomputed"
            )
        if second is not None and kernel.scales_rows != as_kernel(second).scales_rows:
            raise ValueError(
                "kernel and kernel_cholesky look at the same rows, but only one of them scales "
                "rows to unit length; use UnitRows for both or for none"
            )
        return approximation, kernel

    def _n_train(self, n: int) -> int:
        """How many of n distinct rows train."""
        if self.train_size is None:
            return min(n, TRAIN_ROWS)
        if isinstance(self.train_size, Integral):
            if self.train_size > n:
                raise ValueError(
                    f"train_size={self.train_size} exceeds the {n:,} distinct rows to train on; "
                    "lower train_size, or leave it None"
                )
            return int(self.train_size)
        return max(int(self.train_size * n), 1)

    def _training_problem(self, problem: Problem, *, rng: np.random.Generator) -> Problem:
        """The problem on a seeded draw of its rows, in which heavy rows stay [duffield2007].

        Priorities w/u with u uniform: the first n_train are drawn, and weights below the next
        priority are raised to it, so that sums over the draw are those over all, in the mean.
        """
        n = len(problem.sample)
        n_train = self._n_train(n)
        if n_train == n:
            return problem
        priorities = problem.sample.weights / (1.0 - rng.random(n))
        order = np.argsort(-priorities, kind="stable")
        drawn = subsample(problem.sample, np.sort(order[:n_train]))
        weights = np.maximum(drawn.weights, priorities[order[n_train]])
        return replace(problem, sample=replace(drawn, weights=weights))

    def _cholesky_kernel(self, sample: Sample, rng: np.random.Generator) -> Kernel | None:
        """The kernel that the factor is made of, where it is not that of the scores."""
        if self.kernel_cholesky is None:
            return None
        kernel = as_kernel(self.kernel_cholesky).of_unit_rows().in_units(sample.format.exponent)
        return kernel.resolve(sample.rows, sample.weights, rng=rng)

    def _choose(
        self,
        problem: Problem,
        train: Sample,
        approximation: Any,
        record: Recorder,
        *,
        rng: np.random.Generator,
        threads: int,
    ) -> Choice:
        """The number of clusters, the bandwidth and the trim: as given, or by evidence."""
        is_auto, least = is_open(self.n_clusters), least_clusters(self.n_clusters)
        gammas = problem.gammas_around() if self._seeks_gamma(approximation) else ()
        how: Any = {"rng": rng, "threads": threads}
        ranking: list[Candidate] = []
        if is_auto and len(problem.sample) < LEAST_SEARCH_ROWS:
            least = min(max(least, 2), len(problem.sample))
            record.warn(
                f"{len(problem.sample)} distinct rows are too few to compare numbers of clusters; "
                f"{least} clusters were made: choose n_clusters yourself"
            )
        elif is_auto:
            ranking = self._rank_numbers(problem, approximation, gammas, record, **how)
        wanted = ranking[0].n_clusters if ranking else least
        asked = self._feasible_clusters(wanted, problem, record)
        given = Choice(problem, asked, 0.0 if self.trim == "auto" else float(self.trim), ranking)
        if asked == 1 or len(problem.sample) < max(LEAST_SEARCH_ROWS, 5 * asked) or not gammas:
            return given
        compares_cuts = self._comparison(approximation, asked).is_possible(len(train))
        if self.kernel_cholesky is None and compares_cuts:
            found = self._choose_by_cut(given, train, approximation, gammas, record, **how)
            return self._with_own_bandwidth(given, record) if found is None else found
        return self._choose_by_criterion(given, approximation, gammas, record, **how)

    def _rank_numbers(
        self,
        problem: Problem,
        approximation: Any,
        gammas: tuple[float, ...],
        record: Recorder,
        **how: Any,
    ) -> list[Candidate]:
        """Numbers of clusters, the best first; the encoding's criterion decides among rivals."""
        least, most = open_bounds(self.n_clusters)
        found = count_clusters(problem.kernel, problem.sample, max(least, 2), most)
        rivals = [one for one in found if one.probability >= RIVAL * found[0].probability]
        is_clear = False
        if len(rivals) > 1:
            sizes = tuple(sorted(one.n_clusters for one in rivals))
            selection = self._search(
                problem, approximation, sizes, gammas, n_most=SEARCH_ROWS, **how
            )
            if selection.is_feasible:
                chosen = selection.best.n_clusters
                is_clear = selection.is_clear
                found.sort(key=lambda one: one.n_clusters != chosen)
        if found:
            tell_choice(found, record, is_clear=is_clear)
        return found

    def _choose_by_cut(
        self,
        given: Choice,
        train: Sample,
        approximation: Any,
        gammas: tuple[float, ...],
        record: Recorder,
        *,
        rng: np.random.Generator,
        threads: int,
    ) -> Choice | None:
        """The bandwidth and the trim whose clusters split the fewest close neighbours.

        None where no candidate makes clusters.
        """
        problem = given.problem
        compared = self._comparison(approximation, given.n_clusters).choose(
            train,
            [problem.with_gamma(gamma) for gamma in gammas],
            gammas,
            rng=rng,
            threads=threads,
        )
        if compared is None:
            return None
        if len(gammas) > 1:
            kernel = problem.with_gamma(gammas[compared.place])
            words = "gamma by the fewest close neighbours split, around the neighbour rule"
            problem = replace(problem, kernel=kernel, bandwidth=words)
            record.note(_cut_note(compared.selection))
        if compared.trim > 0:
            record.note(
                f"eigenvectors and clusters without the {100 * compared.trim:.2g} % of the "
                "training rows that have the least degree: stray rows are labelled, and make no "
                "clusters"
            )
        return replace(
            given,
            problem=problem,
            trim=compared.trim,
            selection=compared.selection,
            seed=compared.seed,
        )

    def _choose_by_criterion(
        self,
        given: Choice,
        approximation: Any,
        gammas: tuple[float, ...],
        record: Recorder,
        *,
        rng: np.random.Generator,
        threads: int,
    ) -> Choice:
        """The bandwidth by the encoding's criterion."""
        problem, sizes = given.problem, (given.n_clusters,)
        selection = self._search(
            problem, approximation, sizes, gammas, rng=rng, threads=threads, n_most=SEARCH_ROWS
        )
        if not selection.is_feasible:
            return self._with_own_bandwidth(given, record)
        best = selection.best
        words = f"gamma by the criterion {self.encoding}, around the neighbour rule"
        kernel = problem.with_gamma(best.gamma)
        record.note(_selection_note(selection))
        return replace(
            given, problem=replace(problem, kernel=kernel, bandwidth=words), selection=selection
        )

    def _with_own_bandwidth(self, given: Choice, record: Recorder) -> Choice:
        """What was given, where no candidate makes clusters."""
        record.warn(
            "no bandwidth around the neighbour rule gives a graph that separates the "
            "clusters; the rule's own was taken: raise rank, or choose gamma yourself"
        )
        return given

    def _comparison(self, approximation: Any, n_clusters: int) -> CutComparison:
        runs = {"n_init": self.n_init, "max_iter": self.max_iter, "tol": self.tol}
        return CutComparison(approximation, n_clusters, self.encoding, self.trim, runs)

    def _seeks_gamma(self, approximation: Approximation) -> bool:
        """Is the bandwidth to be chosen?"""
        return kernel_for(approximation, self.kernel, self.gamma).is_automatic

    def _search(
        self,
        problem: Problem,
        approximation: Any,
        sizes: tuple[int, ...],
        gammas: tuple[float, ...],
        *,
        rng: np.random.Generator,
        threads: int,
        n_most: int,
        n_validation: int | None = None,
        encoding: Any = None,
        balance: float | None = None,
        outlier: float = 0.0,
    ) -> Any:
        """The criterion on held-out rows, for all pairs."""
        return search_grid(
            problem,
            [problem.with_gamma(gamma) for gamma in gammas],
            approximation=approximation,
            sizes=sizes,
            gammas=gammas,
            n_train=min(self._n_train(len(problem.sample)), n_most),
            n_validation=n_validation or n_most,
            encoding=self.encoding if encoding is None else encoding,
            balance=float(self.balance if balance is None else balance),
            outlier=outlier,
            cholesky_kernel=self._cholesky_kernel,
            rng=rng,
            threads=threads,
        )

    def _separable_clusters(self, k: int, found: WeightedKpca, record: Recorder) -> int:
        """As many clusters as there are directions for."""
        n_separable = len(found.values) + 1
        if k > n_separable:
            record.warn(
                f"the kernel matrix has only {n_separable - 1} directions beside the constant one, "
                f"which separate {n_separable} clusters, not n_clusters={k}; use a larger gamma or "
                "rank"
            )
        return min(k, n_separable)

    def _score_model(
        self, factor: Any, found: WeightedKpca, train: Problem
    ) -> tuple[Any, ScoreMap, Scores]:
        """What computes scores: the factor of the scores' kernel, coefficients, training scores."""
        if self.kernel_cholesky is None:
            scores = training_scores(factor.training_rows, found)
            return factor.forget_training(), score_map(factor, found), scores
        second = factor.with_kernel(train.kernel)
        multipliers = found.multipliers(factor.training_rows)
        model = score_map_of_two(second, train.sample, multipliers, found.bias)
        return second, model, model.of_rows(second, train.sample)

    def _encode(
        self,
        scored: tuple[Any, ScoreMap, Scores],
        train: Problem,
        k: int,
        record: Recorder,
        *,
        rng: np.random.Generator,
    ) -> tuple[CodeLabels, int]:
        """Labels of any rows, and the sweeps of k-means behind them."""
        factor, model, scores = scored
        if k == 1:
            nothing = Codebook("bas", np.zeros((1, 0)), np.ones(1))
            return CodeLabels(factor, model.leading(1), nothing), 1
        encoded = encode(
            self.encoding,  # type: ignore[arg-type]
            scores,
            train.sample.weights,
            model,
            k,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
        )
        codebook = encoded.codebook
        if not encoded.is_settled:
            record.warn(
                f"k-means did not converge in max_iter={self.max_iter} iterations; raise max_iter "
                "or tol"
            )
        if len(codebook) < k:
            record.warn(
                f"the scores have only {len(codebook)} different sign patterns for "
                f"n_clusters={k}; {len(codebook)} clusters were made: use encoding='bas'"
            )
        return CodeLabels(factor, model.leading(len(codebook)), codebook), encoded.n_iter

    def _warn_of_spectrum(
        self, found: WeightedKpca, n_train: int, k: int, record: Recorder
    ) -> None:
        """Say in words where the labels are not determined by the data."""
        if found.n_clamped and k > 1:
            tell = record.warn if found.n_clamped > IGNORED * n_train else record.note
            tell(
                f"{found.n_clamped:,} of {n_train:,} training rows have no positive degree in the "
                "low-rank graph and are ignored: its approximation is too coarse for them; raise "
                "rank, or use a smaller gamma"
            )
        gaps = -np.diff(found.values[: k - 1])
        if self.encoding == "blf" and k > 2 and (gaps < DEGENERATE).any():
            first = int((gaps < DEGENERATE).argmax())
            record.warn(
                f"eigenvalues {first + 1} and {first + 2} agree to {gaps[first]:.0e}, so the signs "
                "of their scores are arbitrary and encoding='blf' is not defined; use "
                "encoding='ams' or 'bas'"
            )

    def _fitted_labeller(self) -> CodeLabels:
        model = ScoreMap(self.coefficients_, self.degree_coefficients_, self.bias_)
        return CodeLabels(self.factor_, model, self.codebook_)

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        k = 1 if is_open(self.n_clusters) else least_clusters(self.n_clusters)
        n_train, trial = self._n_train(sample_rows), clone(self)
        if isinstance(self.train_size, Integral):
            trial.set_params(train_size=None)
        solving = partial(eigen_memory, PLANNED if is_open(self.n_clusters) else k)
        sweeps, approximation = (Sweep("labels"),), self._parts(k)[0]
        compared = 0
        if self._seeks_gamma(approximation):
            shape = n_train, source.n_features, source.dtype.itemsize
            compared = self._comparison(approximation, k).memory(*shape, n_threads(self.n_jobs))
        if is_open(self.n_clusters):
            compared = max(compared, count_memory(sample_rows))
        return Work(
            approximation, n_train, sweeps, k, trial, solving, dense_memory, before=compared
        )

    def _default_criterion(self) -> str:
        return self.encoding

    def _labeller(self) -> Any:
        return self._fitted_labeller().counted_labels

    def _surroundings(self, mass: FloatArray | None) -> Any:
        return partial(self._fitted_labeller().surroundings, mass)

    def _embedder(self) -> Any:
        return self._fitted_labeller().scores

    def _remember_fit(
        self, fit: KscFit, problem: Problem, approximation: Any, factor: Any, record: Recorder
    ) -> Any:
        """All fitted state, at once and last."""
        order = numbering(fit.weights, fit.labeller.codebook.prototypes)
        by = fit.labeller.reordered(order)
        k = len(by.codebook)
        fitted = self._common_state(
            problem,
            order,
            fit.kept.labels,
            fit.weights,
            outliers=fit.outliers,
            scores=fit.kept.scores,
        ) | {
            "kernel_": by.factor.raw_kernel(),
            "factor_": by.factor,
            "eigenvalues_": fit.eigenvalues[: max(k - 1, 0)],
            "coefficients_": by.model.coefficients,
            "degree_coefficients_": by.model.degree_coefficients,
            "bias_": by.model.bias,
            "codebook_": by.codebook,
            "degrees_": fit.degrees,
            "n_clusters_": k,
            "n_clusters_ranking_": [candidate.entry() for candidate in fit.choice.ranking],
            "n_iter_": fit.n_iter,
            "selection_": fit.choice.selection,
            "trim_": fit.choice.trim,
        }
        if (pivots := factor.reduced_set()) is not None:
            fitted["pivots_"] = pivots
        return self._remember(
            fitted,
            problem,
            approximation,
            record,
            rank=factor.rank,
            trace_error=factor.trace_error,
            eigenvalues=tuple(map(float, fitted["eigenvalues_"])),
            trust=fit.trust,
        )

    @property
    def _n_features_out(self) -> int:
        return len(self.bias_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


@frozen
class Choice:
    """What a fit works with."""

    problem: Problem  # its kernel has the bandwidth
    n_clusters: int
    trim: float  # share of the training rows that take no part
    ranking: list[Candidate]  # numbers of clusters with the evidence for each, where it was open
    selection: Any = None  # the comparison behind it
    seed: int | None = None  # of the draws that led to the judged clusters


@frozen
class KscFit:
    """What a fit found, before it is remembered."""

    labeller: CodeLabels
    eigenvalues: FloatArray
    degrees: FloatArray
    kept: Kept
    outliers: OutlierModel
    weights: FloatArray
    choice: Choice
    n_iter: int
    trust: Any


def _in_order_of_rows(train: Problem) -> Problem:
    """The problem with its rows in the order of X, where ties are broken by it."""
    return replace(train, sample=subsample(train.sample, np.argsort(train.sample.ids)))


def _trimmed(F: FloatArray, train: Problem, trim: float) -> Problem:
    """The problem with weight 0 for the least dense of its rows."""
    weights = trimmed_weights(F, train.sample.weights, trim)
    return replace(train, sample=replace(train.sample, weights=weights))


def _resampler(F: FloatArray, core: Problem, k: int) -> Resampler:
    """Scores and their directions, made again from part of the training rows."""
    counted = np.flatnonzero(core.sample.weights)
    some = counted[evenly(len(counted), JUDGES)]
    return by_scores(F[some], core.sample.weights[some], k)


def _cut_note(selection: Any) -> str:
    """How the bandwidth was chosen."""
    best = selection.best
    return (
        f"gamma={best.gamma:.4g}: its clusters split the fewest close neighbours (normalised cut "
        f"{1 - best.score:.3f}) among {len(selection.gammas)} bandwidths, compared on "
        f"{selection.n_train:,} rows"
    )


def _selection_note(selection: Any) -> str:
    """How the bandwidth was chosen."""
    best = selection.best
    return (
        f"gamma={best.gamma:.4g} by the criterion {selection.criterion} ({best.score:.2f}) on "
        f"{selection.n_validation:,} rows, models made on {selection.n_train:,} others"
    )
