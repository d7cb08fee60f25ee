"""Kernel k-means on a low-rank factor."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from mercer._run.frozen import frozen
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads
from mercer._run.types import FloatArray, RandomState
from mercer.estimators.base import Clusterer
from mercer.estimators.needs import Sweep, Work, kmeans_memory
from mercer.estimators.preparation import prepare_problem
from mercer.factors.base import Approximation
from mercer.factors.dense import LinearScores
from mercer.factors.names import as_dense_approximation, kernel_for
from mercer.factors.problem import Problem, fit_factor
from mercer.kernels.base import Kernel
from mercer.linalg.lloyd import Partition
from mercer.linalg.numbering import numbering
from mercer.partitions.assignment import (
    FULL_SWEEPS,
    Kept,
    label_and_score_rows,
    refine_centers,
)
from mercer.partitions.kmeans import kmeans
from mercer.partitions.outliers import OutlierModel
from mercer.partitions.resampling import FitEvidence, Resampler, by_centers, judges
from mercer.rows.checks import checked_weights
from mercer.rows.distinct import EXACT_ROWS
from mercer.rows.inputs import as_source
from mercer.rows.sample import Sample
from mercer.rows.source import Source
from mercer.selection.bandwidth_comparison import BandwidthComparison
from mercer.trust.diagnosis import diagnose

DEFAULT_RANK = 256
LEAST_EXPLAINED = 0.5  # of the kernel, by k equal clusters that share nothing: k · mean(K)
LITTLE_EXPLAINED = 0.2  # below this the clusters are not what the user is after


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """k-means in the feature space of a kernel, for data of any size.

    The kernel matrix is approximated by a factor, K ≈ F Fᵀ, and k-means runs on the rows of F. This
    is exact kernel k-means at full rank, and close to it at much lower ranks. New rows are mapped
    by the same formula.

    Up to 100,000 distinct rows are fitted; for more, pivots and initial centres come from a seeded
    sample, and up to five passes over all rows improve the centres. Time O(n·rank²), memory within
    `max_memory`; labels are the same for any block size and number of threads.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str, kernel object, callable or None, default="rbf"
        A name ("rbf", "laplacian", "chi2", "cosine", "polynomial", "histogram_intersection",
        "precomputed"), a kernel object such as ``RBF(0.5)`` or
        ``0.5 * Cosine(columns="text") + 0.5 * RBF(columns="image")``, or a function of (X, Y).
        None is the approximation's own: the Laplacian for "binning", else RBF.
    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of a kernel given by name. "auto" compares four bandwidths on at most 1,500 rows,
        from local (the neighbour rule of `mercer.kernels.bandwidth`) to nearly plain k-means (four
        mean distances), and keeps the one whose clusters split the fewest close neighbours. A
        narrow kernel favours small dense groups, a wide one divides rings and chains. Sums and
        products of kernels use the neighbour rule.
    approximation : str or approximation object, default="cholesky"
        "cholesky", "nystrom", "fourier", "binning" (k-means on the 32 leading principal directions
        of the bins), "quantized" or "exact", or an object such as
        ``IncompleteCholesky(tol=1e-3)``.
    rank : int, default=256
        Rank of an approximation given by name: its number of pivots, features or components.
    noise : float, "auto" or None, default=None
        Share of the rows to label -1 (noise), those with the largest outlier scores; "auto" selects
        rows whose score is far above the typical one. None labels every row.
    n_init : int, default=1
        Number of runs of k-means; the best one is kept. Each starts from the best of a few short
        runs.
    max_iter : int, default=300
        Maximum number of iterations of a run.
    tol : float, default=1e-4
        Convergence tolerance: movement of the centres relative to the mean variance of F's columns.
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
    cluster_centers_ : array of shape (n_clusters, rank)
        Centres in the space of F.
    exemplars_ : array of shape (n_clusters, 3)
        Row numbers of the three most typical rows of each cluster, chosen from a sample; -1 if a
        cluster has fewer.
    outlier_scores_ : array of shape (n_rows,)
        How unusual each row is in its cluster: 1 is typical, larger is more unusual. Only for rows
        in memory.
    cluster_weights_ : array of shape (n_clusters,)
        Number of rows in each cluster, or the sum of their sample weights.
    inertia_ : float
        Weighted sum of squared distances to the centres, Σ w‖f - c‖², over the sample, or over all
        rows after full passes.
    n_iter_ : int
        Number of iterations of the best run.
    factor_ : Factor
        ``factor_.rows(X)`` gives F for any rows.
    kernel_ : Kernel
        The kernel, with the bandwidth that was used.
    report_ : Report
        The fit report: stages, rank, error, bandwidth, grade and warnings.

    References
    ----------
    Kernel k-means by incomplete Cholesky factorisation [chen2020].

    Examples
    --------
    >>> from mercer import KernelKMeans
    >>> from mercer.datasets import ring_and_core
    >>> X, y = ring_and_core(1000, random_state=0)
    >>> model = KernelKMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.predict([[0.0, 0.0]]) == model.predict([[0.1, 0.0]])
    array([ True])
    """

    _fitted_fields: ClassVar[dict[str, Any]] = Clusterer._fitted_fields | {
        "cluster_centers_": "(k, r) float, finite",
        "cluster_weights_": "(k,) float, finite",
        "inertia_": "float",
        "n_iter_": "int",
    }
    _parameter_constraints = {  # noqa: RUF012
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "kernel": "no_validation",
        "gamma": "no_validation",
        "approximation": "no_validation",
        "rank": [Interval(Integral, 1, None, closed="left")],
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
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: Any = "auto",
        approximation: Any = "cholesky",
        rank: int = DEFAULT_RANK,
        noise: float | str | None = None,
        n_init: int = 1,
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
        self.noise = noise
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelKMeans:
        """Cluster the rows of X (anything `mercer.as_source` takes)."""
        self._validate_params()
        approximation, kernel = self._parts()
        rng, threads, record = as_generator(self.random_state), n_threads(self.n_jobs), Recorder()
        with self._running():
            problem = prepare_problem(
                self,
                X,
                sample_weight,
                rng=rng,
                record=record,
                kernel=kernel,
                least_mean=LEAST_EXPLAINED / self.n_clusters,
                least_rows=self.n_clusters,
            )
            k = self._feasible_clusters(self.n_clusters, problem, record)
            if kernel.is_automatic:
                with record.stage("bandwidth"):
                    problem = BandwidthComparison(k).choose(problem)
            with record.stage("factor"):
                factor = fit_factor(approximation, problem, rng=rng, threads=threads)
                factor = factor.dense(problem.sample, rng=rng, threads=threads)
            with record.stage("centres"):
                partition, resampler = self._centers(factor, problem.sample, k, rng, threads)
                mass = factor.mass(problem.sample)
                factor = factor.forget_training()  # what is held goes before all rows come
            if problem.source.n_rows > EXACT_ROWS:
                with record.stage("full sweeps"):
                    partition = refine_centers(
                        factor, problem, partition, max_iter=self.max_iter, threads=threads
                    )
            with record.stage("labels"):
                by = LinearScores.of_centers(factor, partition.centers)
                look, decide = partial(by.surroundings, mass), by.labels
                scorer = self._fit_outliers(look, mass, problem, k)
                kept, weights = label_and_score_rows(scorer, k, problem, threads=threads)
            explained = _explained_share(partition, problem, factor)
            self._warn_of_centers(partition, explained, k, record)
            evidence = FitEvidence(
                weights,
                kept.labels,
                decide(),
                resampler,
                problem.kernel,
                trace_error=factor.trace_error,
                explained=explained,
            )
            trust = diagnose(evidence, problem, record)
        fit = KMeansFit(factor, partition, kept, scorer.model, weights, explained, trust)
        return self._remember_fit(fit, problem, approximation, record)

    def transform(self, X: Any) -> FloatArray:
        """The distance of each row to each centre in the factor's space: (n, k)."""
        source = as_source(X)
        tiles, n_rows = self._work(source, self._embedder, stage="transform")
        distances = np.empty((n_rows, len(self.cluster_centers_)), source.dtype)
        for start, tile in tiles:
            distances[start : start + len(tile)] = tile
        return distances

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of these rows: -Σ w min‖f - c‖².

        Scores of models with different kernels are not comparable, and gamma="auto" depends on the
        rows and on n_clusters: compare numbers of clusters with gamma given as a number.
        """
        tiles, n_rows = self._work(X, self._distances, stage="score")
        weights = checked_weights(sample_weight, n_rows)
        total = 0.0
        for start, tile in tiles:
            w = np.ones(len(tile)) if weights is None else weights[start : start + len(tile)]
            total += float(w @ tile.min(axis=1))
        return -total

    def _parts(self) -> tuple[Approximation, Kernel]:
        """The approximation, and what the user wrote as kernel: None is the approximation's own."""
        approximation = as_dense_approximation(
            self.approximation, self.rank, default_rank=DEFAULT_RANK
        )
        return approximation, kernel_for(approximation, self.kernel, self.gamma)

    def _centers(
        self, factor: Any, sample: Sample, k: int, rng: np.random.Generator, threads: int
    ) -> tuple[Partition, Resampler]:
        """Lloyd's algorithm on the rows of the factor, and how it is followed again on part."""
        F, some = factor.training_rows, judges(sample)
        how: Any = {"n_init": self.n_init, "max_iter": self.max_iter, "tol": self.tol}
        partition = kmeans(F, sample.weights, k, rng=rng, threads=threads, **how)
        return partition, by_centers(F[some], sample.weights[some], k)

    def _warn_of_centers(
        self, partition: Partition, explained: float, k: int, record: Recorder
    ) -> None:
        if explained < LITTLE_EXPLAINED and k > 1:
            record.warn(
                f"the centres explain only {100 * explained:.0f} % of the kernel: rows of one "
                "cluster look unrelated to each other, and kernel k-means then prefers small dense "
                "pieces to clusters; use a smaller gamma (gamma='auto' or 'median'), or more "
                "clusters"
            )
        if not partition.is_converged:
            record.warn(
                f"k-means did not converge in max_iter={self.max_iter} iterations; raise max_iter "
                "or tol"
            )

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        approximation, kernel = self._parts()
        is_sampled = source.n_rows > EXACT_ROWS
        full = Sweep("full sweeps", least=1, most=min(FULL_SWEEPS, self.max_iter))
        sweeps = ((full,) if is_sampled else ()) + (Sweep("labels"),)
        k = int(self.n_clusters)
        solving = partial(kmeans_memory, k)
        compared = BandwidthComparison(k).memory(sample_rows) if kernel.is_automatic else 0
        return Work(approximation, sample_rows, sweeps, k, solving=solving, before=compared)

    def _cluster_distances(self, X: Any) -> FloatArray:
        return self.transform(X).astype(np.float64)

    def _labeller(self) -> Any:
        return self._scores().counted_labels

    def _surroundings(self, mass: FloatArray | None) -> Any:
        return partial(self._scores().surroundings, mass)

    def _embedder(self) -> Any:
        return self._scores().distances

    def _distances(self) -> Any:
        return self._scores().squared_distances

    def _scores(self) -> LinearScores:
        return LinearScores.of_centers(self.factor_, self.cluster_centers_)

    def _remember_fit(
        self, fit: KMeansFit, problem: Problem, approximation: Approximation, record: Recorder
    ) -> Any:
        """All fitted state, at once and last."""
        partition, order = fit.partition, numbering(fit.weights, fit.partition.centers)
        inertia = partition.inertia * problem.weight_unit
        fitted = self._common_state(
            problem,
            order,
            fit.kept.labels,
            fit.weights,
            outliers=fit.outliers,
            scores=fit.kept.scores,
        ) | {
            "kernel_": fit.factor.raw_kernel(),
            "factor_": fit.factor,
            "cluster_centers_": partition.centers[order],
            "inertia_": inertia,
            "n_iter_": partition.n_iter,
        }
        return self._remember(
            fitted,
            problem,
            approximation,
            record,
            inertia=inertia,
            n_iter=partition.n_iter,
            n_full_sweeps=partition.n_full_sweeps,
            explained=fit.explained,
            trust=fit.trust,
        )

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@frozen
class KMeansFit:
    """What a fit found, before it is remembered."""

    factor: Any
    partition: Partition
    kept: Kept
    outliers: OutlierModel
    weights: FloatArray
    explained: float
    trust: Any


def _explained_share(partition: Partition, problem: Problem, factor: Any) -> float:
    """1 - Σ w‖f - c‖² / Σ w‖f‖²."""
    total = problem.sample.weights.sum()
    if problem.source.n_rows > EXACT_ROWS:
        total = problem.source.n_rows if problem.weights is None else problem.weights.sum()
    explained = 1.0 - partition.inertia / max(total * partition.mean_norm, np.finfo(float).tiny)
    return float(explained * factor.kept_share())
