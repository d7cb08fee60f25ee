"""Streaming sparse kernel k-means [chitta2015]: the estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from mercer._run.budget import Budget
from mercer._run.progress import tell
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder, joined
from mercer._run.records import expect
from mercer._run.threads import n_threads
from mercer._run.types import FloatArray, IdArray, RandomState
from mercer.estimators.base import Clusterer, note_noise
from mercer.estimators.kernel_kmeans import LEAST_EXPLAINED
from mercer.estimators.needs import Sweep, Work
from mercer.estimators.preparation import prepare_problem
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.kernels.domain import check_columns, check_values
from mercer.kernels.registry import as_kernel
from mercer.linalg.numbering import numbering
from mercer.partitions.assignment import labels_and_sums
from mercer.partitions.outliers import OutlierModel, Scorer
from mercer.partitions.resampling import FitEvidence
from mercer.report import Report
from mercer.rows.checks import check_features, checked_source, checked_weights
from mercer.rows.distinct import EXACT_ROWS
from mercer.rows.inputs import as_source
from mercer.rows.rows import BlockRows, Rows, part, take
from mercer.rows.source import TILE, Source
from mercer.rows.summary import Columns, summarize
from mercer.stream.buffer import Buffer, Reservoir
from mercer.stream.centers import (
    Centers,
    NearestCounts,
    counted_labels_of_rows,
    distances_of_rows,
    labels_of_rows,
    nearest_of_rows,
    outliers_of_stream,
    surroundings_of_rows,
)
from mercer.stream.eigen_updates import leverage_of_rows
from mercer.stream.queue import Queue
from mercer.stream.reservoir import ReservoirSettings, ReservoirStream
from mercer.stream.state import Stream, StreamSettings
from mercer.trust.diagnosis import diagnose

# Above MANY clusters means were better than eigenvectors, or as good, at a tenth of the time on
# many_clusters of 300 (buffers of 3,000 and by default); of 100, by default only.
MANY, MANY_BY_DEFAULT = 150, 83
RESERVOIR_ROWS = (60, 300)  # per cluster, at least and at most
RESERVOIR = 2**18  # rows: as many per cluster as fit into this, between those two
FIRST_ROWS = 20  # per cluster, before the first model of a reservoir
BATCH_ROWS = (8192, 32768)  # of a reservoir, unless they are given
EIGEN_DEFAULTS = {  # parameters of eigenvectors: another value asks for them
    "n_neighbors": 30,
    "sampling": "leverage",
    "oversample": None,
    "normalize": True,
    "centers": "mean",
}
EIGEN_ATTRIBUTES = ("eigenvalues_", "leverage_", "factor_")
# Rows of the first buffer: per cluster, and at least and at most (unless 2·k·ln k is more). 1,000
# to 4,000 were compared on mnist, letter, pendigits, satimage and many_clusters of 20 to 80
# (20,000 and 100,000 rows, convex and curved): NMI rose with the rows on nearly all, and long
# streams took less time, for their batches are larger. With more than 400 rows of each, two or
# three rings, moons or spirals are cut across: n_neighbors does not reach far enough along them.
ROWS_PER_CLUSTER, FIRST_BUFFER = 400, (1000, 4000)
GROWTH = 2.5  # of the buffer, before rows leave it
LEAST_RESERVOIR = 1000
RECLUSTER = 0.1  # of the buffer's rows are new: time to cluster it again
State: TypeAlias = Stream | ReservoirStream
Settings: TypeAlias = Any  # StreamSettings or ReservoirSettings: each for its state
HEAVIEST = 2.0**300  # relative to the first weights of a stream: squares of larger ones overflow
WARM_UP = 1.5  # times as many rows: the provisional model is fitted again


class StreamingKernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Kernel k-means of streaming data, for very many clusters.

    The algorithm keeps a bounded buffer of informative rows (sparse kernel k-means [chitta2015]):

    1. The first `initial_size` rows fill the buffer. Mutual nearest neighbours among them are
       connected: a sparse kernel matrix (eq. 4).
    2. Its leading eigenvectors, V √λ, are clustered by k-means (eq. 9); if the kernel is
       normalised, their rows are first scaled to unit length.
    3. Rows of later batches join the buffer with a probability that grows with their leverage:
       their share of the leading eigenspace (eq. 3). Eigenpairs are updated in blocks, rows of
       lowest leverage leave a full buffer, and k-means is repeated at intervals from the current
       labels.
    4. A row is assigned to the cluster whose buffer mean is nearest, among those it has edges to.
       If clusters have fewer rows in the buffer than rows have neighbours, means of all rows seen
       are used, in Nyström features of 256 buffer rows.

    **Very many clusters** (``algorithm="means"``, used above 150 clusters, or above 83 if the
    buffer sizes are left at their defaults) are found without eigenvectors: a reservoir keeps a
    uniform sample of the rows seen, k-means on it moves centres to clusters that have none, and
    every new row updates the means. For a Gaussian kernel and dense rows these are means of the
    rows themselves, otherwise of their Nyström features.

    Memory O(max_size·(n_features + n_neighbors + n_clusters)) for a stream of any length; time per
    row O(max_size·n_features + 256·n_clusters). Rows are queued until there are `batch_size` of
    them, so the model depends on the rows and not on how they were divided into calls. A
    provisional model exists from `n_clusters` rows on, and is refitted until `initial_size` rows
    have arrived.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str, kernel object or callable, default="rbf"
        A name ("rbf", "laplacian", "chi2", "cosine", "polynomial", "histogram_intersection"), a
        kernel object such as ``RBF(0.5)``, sums and products over column blocks, or a function of
        (X, Y).
    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of a kernel given by name; "auto" chooses it from the first rows.
    algorithm : "auto", "eigen" or "means", default="auto"
        Eigenvectors of a sparse kernel of the buffer, as published, or means of all rows with a
        reservoir, for very many clusters. "auto" uses means above 150 clusters, and above 83 if
        `initial_size` and `max_size` are None, unless a parameter of eigenvectors is given
        (`n_neighbors`, `sampling`, `oversample`, `normalize`, `centers`).
    initial_size : int or None, default=None
        Number of rows of the first buffer; None is 400·k, at least 1,000 and at most 4,000 (more if
        2·k·ln k is), or 20·k with means (at most 100,000, unless k is larger). Fewer rows are
        faster on short streams, and find worse clusters of tables and images.
    max_size : int or None, default=None
        Maximum number of rows in the buffer; None is 2.5 times `initial_size`. With means: number
        of rows of the reservoir; None is 60 to 300 per cluster, within 262,144 rows.
    n_neighbors : int, default=30
        Number of most similar rows that a row may be connected to.
    batch_size : int or None, default=None
        Number of rows processed at once; None is `initial_size` (8,192 to 32,768 with means).
        Larger batches are faster: about a thousand rows of each are compared with the buffer.
    sampling : "leverage", "ridge" or "uniform", default="leverage"
        How rows are chosen for the buffer; "ridge" also selects rows unlike any before.
    oversample : float or None, default=None
        Factor of the probability ℓ/C with which a row of leverage ℓ joins the buffer; 1 is as
        published. None is n_clusters, with at most max(64, k/8) expected additions per batch (k/2
        while the buffer has room), chosen among 16 times as many rows. With a number, every row is
        compared with the buffer.
    recluster_every : int or None, default=None
        Number of additions between two clusterings; None is a tenth of `max_size`, or with means
        the size of the reservoir.
    normalize : bool, default=True
        Divide edges by the degrees of both rows, as in normalised cuts.
    centers : "mean" or "projected", default="mean"
        Means of rows in feature space, or their projections on the eigenvectors (eq. 8).
    forgetting : float, default=0.0
        Share of the buffer that each batch replaces regardless of leverage, and by which older rows
        count less: for clusters that move, appear or disappear.
    noise : float, "auto" or None, default=None
        Share of the rows to label -1 (noise), those with the largest outlier scores; "auto" selects
        rows whose score is far above the typical one. None labels every row.
    n_init : int, default=3
        Number of runs of the first k-means in the eigenspace; the best one is kept. Means use a
        single run.
    max_iter : int, default=300
        Maximum number of iterations of k-means.
    tol : float, default=1e-4
        Convergence tolerance in the eigenspace: movement of the centres relative to the mean
        variance of a coordinate. Means use a fixed number of iterations.
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
        Cluster of each row, numbered by decreasing size; only after `fit` of rows in memory.
    exemplars_ : array of shape (n_clusters, 3)
        Row numbers of the three most typical rows of each cluster, chosen from a sample; -1 if a
        cluster has fewer.
    outlier_scores_ : array of shape (n_rows,)
        How unusual each row is in its cluster: 1 is typical, larger is more unusual. Only for rows
        in memory.
    cluster_weights_ : array of shape (n_clusters,)
        Number of rows in each cluster, or the sum of their sample weights. In a stream, rows count
        for the cluster they were assigned to on arrival (of a large batch, the compared rows
        only).
    buffer_ : array of shape (n_buffer, n_features)
        The rows of the buffer.
    buffer_labels_ : array of shape (n_buffer,)
        Clusters of the buffer rows.
    leverage_ : array of shape (n_buffer,)
        Leverage of each buffer row: its share of the leading eigenspace; not with means.
    eigenvalues_ : array
        Eigenvalues of the buffer's sparse kernel, largest first; not with means.
    n_seen_ : int
        Number of rows seen so far.
    n_queued_ : int
        Number of rows queued until the next batch is full.
    inertia_ : float
        Σ w‖φ(x) - c‖² over all rows, after `fit`, in the space of `transform`.
    n_iter_ : int
        Number of iterations of the first k-means.
    kernel_ : Kernel
        The kernel, with the bandwidth that was used.
    report_ : Report
        The fit report: additions, evictions, stages and warnings. ``report_.stream`` has the share
        of recent rows that no cluster explains (farther from their mean than 99 % of the reservoir,
        or without an edge to the buffer) and, with means, the clusters that appeared and
        disappeared.

    References
    ----------
    [chitta2015]

    Examples
    --------
    >>> from mercer import StreamingKernelKMeans
    >>> from mercer.datasets import rings
    >>> X, y = rings(3000, random_state=0)
    >>> model = StreamingKernelKMeans(3, random_state=0)
    >>> for batch in (X[:1000], X[1000:1500], X[1500:]):
    ...     model = model.partial_fit(batch)
    >>> model.n_seen_, len(set(model.predict(X)))
    (3000, 3)
    """

    _fitted_fields: ClassVar[dict[str, Any]] = {
        "kernel_": Kernel,
        "n_features_in_": "int d, in [1, 4e18]",
        "stream_": Stream | ReservoirStream | None,
        "queue_": Queue,
        "key_": "int, >= 0",
        "cluster_weights_": "(k?,) float, finite",
    }
    _parameter_constraints = {  # noqa: RUF012
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "kernel": "no_validation",
        "gamma": "no_validation",
        "algorithm": [StrOptions({"auto", "eigen", "means"})],
        "initial_size": [None, Interval(Integral, 1, None, closed="left")],
        "max_size": [None, Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "batch_size": [None, Interval(Integral, 1, None, closed="left")],
        "sampling": [StrOptions({"leverage", "ridge", "uniform"})],
        "oversample": [None, Interval(Real, 0, None, closed="left")],
        "recluster_every": [None, Interval(Integral, 1, None, closed="left")],
        "normalize": ["boolean"],
        "centers": [StrOptions({"mean", "projected"})],
        "forgetting": [Interval(Real, 0, 1, closed="left")],
        "noise": [None, Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_memory": "no_validation",
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": "no_validation",
    }

    # In files of earlier versions, with the values that still load.
    _retired_parameters: ClassVar[dict[str, Any]] = {"search": ("exact",)}

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: Any = "auto",
        algorithm: str = "auto",
        initial_size: int | None = None,
        max_size: int | None = None,
        n_neighbors: int = 30,
        batch_size: int | None = None,
        sampling: str = "leverage",
        oversample: float | None = None,
        recluster_every: int | None = None,
        normalize: bool = True,
        centers: str = "mean",
        forgetting: float = 0.0,
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
        self.algorithm = algorithm
        self.initial_size = initial_size
        self.max_size = max_size
        self.n_neighbors = n_neighbors
        self.batch_size = batch_size
        self.sampling = sampling
        self.oversample = oversample
        self.recluster_every = recluster_every
        self.normalize = normalize
        self.centers = centers
        self.forgetting = forgetting
        self.noise = noise
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _check_fitted(self) -> None:
        check_columns(self.kernel_, self.n_features_in_)
        if (explanation := vars(self).get("explained_")) is not None:
            explanation.check_columns(self.n_features_in_)
        if self.stream_ is not None:
            is_same = np.array_equal(self.cluster_weights_, self.stream_.user_weights())
            expect(is_same, "cluster_weights_ are not those of the stream")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StreamingKernelKMeans:
        """Stream the rows of X (anything `mercer.as_source` takes), then label them all.

        Up to 100,000 rows are streamed in an order of their content, more as they stand, after a
        first buffer that is drawn from all of them.
        """
        self._check_parameters()
        rng, record = as_generator(self.random_state), Recorder()
        with self._running():
            settings = self._settings(int(rng.integers(2**63))).for_fit()
            problem = self._prepare(X, sample_weight, settings, record)
            self._feasible_clusters(self.n_clusters, problem, record)
            with record.stage("first clusters"):
                n_first = min(settings.first_rows, len(problem.sample))
                state = settings.start(problem, n_first)
            with record.stage("stream"):
                for rows, weights in _batches(settings, problem):
                    state = settings.absorb(state, rows, weights)
                state = settings.finish(state)
            with record.stage("labels"):
                by, outliers = self._centers(state), self._outliers_of(state)
                counts = partial(NearestCounts, by, state.n_clusters, outliers)
                kept, (totals, inertia) = labels_and_sums(
                    counts, problem, settings.threads, model=outliers
                )
                labels = kept.labels
            decide = labels_of_rows(self._centers(state))
            fit = FitEvidence(totals, labels, decide, state.resampler(), problem.kernel)
            trust = diagnose(fit, problem, record)
        order = numbering(totals, np.arange(len(totals), dtype=float)[:, None])
        state = replace(state.renumber(order, totals), n_seen=problem.source.n_rows)
        fitted = self._common_state(
            problem, order, labels, totals, outliers=outliers, scores=kept.scores
        )
        del fitted["outliers_"]  # a stream has what it needs
        note_noise(fitted, outliers, record)
        fitted |= self._fitted(settings, state, Queue(), record, problem.bandwidth)
        fitted["inertia_"] = inertia = inertia * problem.weight_unit
        fitted["report_"] = replace(
            fitted["report_"], inertia=inertia, trust=trust, data=problem.data
        )
        record.raise_warnings()
        return self._install(fitted, problem)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> StreamingKernelKMeans:
        """Take the rows of X as the next of the stream.

        Rows are queued until there are `batch_size` of them (`initial_size` at first). Rows that
        are refused (NaN, another number of columns) leave the model as it was.
        """
        self._check_parameters()
        record = Recorder()
        with self._running():
            with record.stage("check"):
                source, weights = self._check_batch(X, sample_weight)
            state: State | None = vars(self).get("stream_")
            settings = self._settings(self._key(), state)
            queue, bandwidth = vars(self).get("queue_", Queue()), self._bandwidth()
            with record.stage("stream"):
                for start in range(0, source.n_rows, settings.batch_size):
                    rows = source.read(start, start + settings.batch_size)
                    some = None if weights is None else weights[start : start + rows.shape[0]]
                    queue = queue.push(_own_copy(rows), some)
                    is_last = start + settings.batch_size >= source.n_rows
                    if is_last or len(queue) >= settings.initial_size or _is_running(state):
                        state, queue, bandwidth = self._process_queue(
                            settings, state, queue, bandwidth, record
                        )
                    tell("stream", start, source.n_rows)
        if state is None:
            record.warn(
                f"{len(queue)} rows so far are queued, and n_clusters={self.n_clusters} needs at "
                "least as many: there is no model yet; go on with partial_fit"
            )
        fitted: dict[str, Any] = {"n_features_in_": source.n_features}
        names = getattr(self, "feature_names_in_", source.feature_names)
        if names is not None:
            fitted["feature_names_in_"] = np.asarray(names, dtype=object)
        earlier = vars(self).get("report_")
        if earlier is not None:
            record.stages = list(joined(earlier.stages, record.stages))
        fitted |= self._fitted(settings, state, queue, record, bandwidth)
        record.raise_warnings()
        return self._install(fitted, None)

    def transform(self, X: Any) -> FloatArray:
        """The distance of each row to each centre: (n, k).

        With ``centers="mean"`` and ``normalize=True``, of rows and centres at length 1: in Nyström
        features of the kernel, if means are of all rows seen; else in the space of the sparse
        kernel, where a cluster without an edge to the row is at a right angle. Without `normalize`,
        a row's label is the nearest among the clusters that it has edges to. With
        ``algorithm="means"``: of the rows themselves for a Gaussian kernel of dense rows, else of
        their Nyström features at length 1.
        """
        source = as_source(X)
        tiles, n_rows = self._work(source, self._embedder, stage="transform")
        distances = np.empty((n_rows, self.stream_.n_clusters), source.dtype)
        for start, tile in tiles:
            distances[start : start + len(tile)] = tile
        return distances

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of these rows: -Σ w min‖φ(x) - c‖²."""
        tiles, n_rows = self._work(X, self._nearest, stage="score")
        weights = checked_weights(sample_weight, n_rows)
        total = 0.0
        for start, (_, distances) in tiles:
            stop = start + len(distances)
            w = np.ones(len(distances)) if weights is None else weights[start:stop]
            total += float(w @ distances)
        return -total

    @property
    def buffer_(self) -> Rows:
        return self.stream_.format.undo(self.stream_.buffer_rows)

    @property
    def buffer_labels_(self) -> IdArray:
        return self.stream_.labels()

    @property
    def leverage_(self) -> FloatArray:
        return leverage_of_rows(self.stream_.eigenpairs()[1])

    @property
    def eigenvalues_(self) -> FloatArray:
        return self.stream_.eigenpairs()[0].copy()

    @property
    def factor_(self) -> Any:
        self.stream_.eigenpairs()
        return self.stream_.graph

    @property
    def n_iter_(self) -> int:
        return int(self.stream_.n_iter)

    @property
    def n_queued_(self) -> int:
        return len(self.queue_)

    @property
    def n_seen_(self) -> int:
        state = self.stream_
        is_counted = state is not None and not state.is_provisional
        return len(self.queue_) + (state.n_seen if is_counted else 0)

    def _check_parameters(self) -> None:
        """Refuse parameters that contradict each other, before any data are read."""
        self._validate_params()
        if as_kernel(self.kernel, self.gamma).is_precomputed:
            raise ValueError(
                "kernel='precomputed' is a square matrix of all rows, and rows of a stream are "
                "compared with those to come: pass the rows and a kernel of them"
            )
        initial, most = self._initial_size(), self._max_size()
        if initial < self.n_clusters:
            raise ValueError(
                f"initial_size={initial} is smaller than n_clusters={self.n_clusters}: the first "
                "rows cannot show every cluster; leave it at None or raise it"
            )
        if most < initial:
            raise ValueError(
                f"max_size={most} is smaller than initial_size={initial}: the buffer starts with "
                "initial_size rows; raise max_size or lower initial_size"
            )

    def _uses_means(self) -> bool:
        """Whether clusters are found by means of all rows, without eigenvectors."""
        if self.algorithm != "auto":
            return self.algorithm == "means"
        if any(getattr(self, name) != value for name, value in EIGEN_DEFAULTS.items()):
            return False
        return self.n_clusters > (MANY if self.initial_size or self.max_size else MANY_BY_DEFAULT)

    def _initial_size(self) -> int:
        return (self._reservoir_sizes() if self._uses_means() else self._buffer_sizes())[0]

    def _max_size(self) -> int:
        return (self._reservoir_sizes() if self._uses_means() else self._buffer_sizes())[1]

    def _buffer_sizes(self) -> tuple[int, int]:
        """Rows of the first buffer, and of the largest."""
        k = int(self.n_clusters)
        least, most = FIRST_BUFFER
        least = int(
            np.clip(ROWS_PER_CLUSTER * k, least, max(least, min(self.max_size or most, most)))
        )
        initial = self.initial_size or max(least, int(np.ceil(2 * k * np.log(k))))
        return initial, self.max_size or int(GROWTH * initial)

    def _reservoir_sizes(self) -> tuple[int, int]:
        """Rows before the first model, and of the reservoir."""
        k = int(self.n_clusters)
        least, most = RESERVOIR_ROWS
        size = self.max_size or max(LEAST_RESERVOIR, k * min(max(RESERVOIR // k, least), most))
        initial = self.initial_size or max(min(FIRST_ROWS * k, size, EXACT_ROWS), k)
        return initial, self.max_size or max(size, initial)

    def _settings(self, key: int, state: State | None = None) -> Settings:
        """The parameters with numbers for None; a stream goes on as it began."""
        uses_means = self._uses_means() if state is None else state.is_reservoir
        return self._reservoir_settings(key) if uses_means else self._eigen_settings(key)

    def _reservoir_settings(self, key: int) -> ReservoirSettings:
        initial, most = self._reservoir_sizes()
        return ReservoirSettings(
            n_clusters=int(self.n_clusters),
            initial_size=initial,
            max_size=most,
            batch_size=self.batch_size or int(np.clip(initial, *BATCH_ROWS)),
            recluster_every=self.recluster_every,
            forgetting=float(self.forgetting),
            max_iter=self.max_iter,
            threads=n_threads(self.n_jobs),
            key=key,
        )

    def _eigen_settings(self, key: int) -> StreamSettings:
        (initial, most), k = self._buffer_sizes(), int(self.n_clusters)
        return StreamSettings(
            n_clusters=k,
            initial_size=initial,
            max_size=most,
            n_neighbors=self.n_neighbors,
            batch_size=self.batch_size or initial,
            sampling=self.sampling,
            oversample=float(k if self.oversample is None else self.oversample),
            is_bounded=self.oversample is None and self.sampling != "uniform",
            recluster_every=self.recluster_every or max(1, int(RECLUSTER * most)),
            is_normalized=self.normalize,
            keeps_means=self.centers == "mean",
            forgetting=float(self.forgetting),
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            threads=n_threads(self.n_jobs),
            key=key,
        )

    def _key(self) -> int:
        """The seed of all draws of this stream, drawn with its first rows."""
        known: int | None = vars(self).get("key_")
        return int(as_generator(self.random_state).integers(2**63)) if known is None else known

    def _bandwidth(self) -> str:
        report = vars(self).get("report_")
        return "" if report is None else report.bandwidth

    def _prepare(self, X: Any, weights: Any, settings: Settings, record: Recorder) -> Problem:
        """Rows that are checked, distinct and in an order of their content; the kernel resolved."""
        source = checked_source(X, self.n_clusters)
        settings.demand(Budget.of(self.max_memory), source.n_rows, source.n_features)
        return prepare_problem(
            self,
            source,
            weights,
            rng=np.random.default_rng([settings.key, 4]),
            record=record,
            least_mean=LEAST_EXPLAINED / self.n_clusters,
            least_rows=self.n_clusters,
            most_rows=settings.first_rows if source.n_rows > EXACT_ROWS else None,
        )

    def _check_batch(self, X: Any, sample_weight: Any) -> tuple[Source, FloatArray | None]:
        """Rows of X that match those before; every value is checked before any is used."""
        source = checked_source(X)
        if self.__sklearn_is_fitted__():
            check_features(self, source)
            _check_kind(source.read(0, 1), _example(self))
        weights = checked_weights(sample_weight, source.n_rows)
        kernel, state = vars(self).get("kernel_"), vars(self).get("stream_")
        if state is not None:
            _check_weights(np.ones(1) if weights is None else weights, state)
        if state is None:
            kernel = as_kernel(self.kernel, self.gamma)
            for simple in kernel.parts():
                simple.check_parameters()
            kernel = kernel.named_columns(source.feature_names)
        assert kernel is not None
        bytes_per_row = source.n_features * source.dtype.itemsize
        block_rows = Budget.of(self.max_memory).block_rows(bytes_per_row, TILE)
        check_values(kernel, summarize(source, block_rows=block_rows), Columns.of(source))
        return source, weights

    def _process_queue(
        self,
        settings: Settings,
        state: State | None,
        queue: Queue,
        bandwidth: str,
        record: Recorder,
    ) -> tuple[State | None, Queue, str]:
        """Absorb as many batches of the queue as are full."""
        if state is None or state.is_provisional:
            if len(queue) < settings.initial_size:
                n_first = _warm_up_rows(settings.n_clusters, len(queue))
                if n_first == 0 or (state is not None and state.n_seen == n_first):
                    return state, queue, bandwidth
                quick = settings.for_provisional()
                first, bandwidth = self._start_from_queue(quick, queue, n_first, Recorder())
                return replace(first, is_provisional=True), queue, bandwidth
            n_first = settings.initial_size
            state, bandwidth = self._start_from_queue(settings, queue, n_first, record)
            queue = queue.drop(n_first)
        while len(queue) >= settings.batch_size:
            raw, weights = queue.first(settings.batch_size)
            rows, heavy = state.format.apply(raw), np.flatnonzero(weights > 0)
            some = weights[heavy] / state.weight_unit
            state = settings.absorb(state, take(rows, heavy), some)
            queue = queue.drop(settings.batch_size)
        return state, queue, bandwidth

    def _start_from_queue(
        self, settings: Settings, queue: Queue, n_first: int, record: Recorder
    ) -> tuple[State, str]:
        """The state after the first rows of the queue."""
        raw, weights = queue.first(n_first)
        X = dict(zip(raw.names, raw.parts, strict=True)) if isinstance(raw, BlockRows) else raw
        problem = self._prepare(X, weights, settings, record)
        self._feasible_clusters(self.n_clusters, problem, record)
        return settings.start(problem, n_first), problem.bandwidth

    def _centers(self, state: State) -> Centers:
        return state.centers_of(self.centers)

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        k = int(self.n_clusters)
        buffer: Any = Buffer(self._max_size(), self.n_neighbors, k)
        if self._uses_means():
            return self._planned_reservoir(source)
        if source.n_rows <= EXACT_ROWS:  # all rows are in the sample, and streamed from there
            sweeps: tuple[Sweep, ...] = (Sweep("labels"),)
            return Work(buffer, source.n_rows, sweeps, k, kept=Buffer.kept_memory)
        sweeps, first = (Sweep("stream"), Sweep("labels")), self._initial_size()
        return Work(buffer, first, sweeps, k, kept=Buffer.kept_memory, sample_rows=first)

    def _planned_reservoir(self, source: Source) -> Work:
        size, k = self._max_size(), int(self.n_clusters)
        reservoir, kept = Reservoir(min(size, source.n_rows), k), Reservoir.kept_memory
        labels = Sweep("labels")
        if source.n_rows <= EXACT_ROWS:
            return Work(reservoir, source.n_rows, (labels,), 1, kept=kept)
        sweeps = (Sweep("stream"), labels)
        return Work(reservoir, size, sweeps, 1, kept=kept, sample_rows=size)

    def _cluster_distances(self, X: Any) -> FloatArray:
        return self.transform(X).astype(np.float64)

    def _labeller(self) -> Any:
        return partial(counted_labels_of_rows, self._centers(self.stream_))

    def _scorer(self) -> Scorer:
        look = partial(surroundings_of_rows, self._centers(self.stream_))
        return Scorer(look, self._outliers_of(self.stream_))

    def _outliers_of(self, state: State) -> OutlierModel:
        """What is usual in the clusters of the buffer or reservoir."""
        by = self._centers(state)
        return outliers_of_stream(by, state.buffer_rows, state.n_clusters, self.noise)

    def _nearest(self) -> Any:
        return partial(nearest_of_rows, self._centers(self.stream_))

    def _embedder(self) -> Any:
        return partial(distances_of_rows, self._centers(self.stream_))

    def _work(self, X: Any, make_function: Any, *, stage: str) -> Any:
        if self.__sklearn_is_fitted__() and self.stream_ is None:
            raise NotFittedError(
                f"{self.n_queued_} rows so far are fewer than n_clusters={self.n_clusters}: there "
                "is no model yet; go on with partial_fit"
            )
        return super()._work(X, make_function, stage=stage)

    def _fitted(
        self,
        settings: Settings,
        state: State | None,
        queue: Queue,
        record: Recorder,
        bandwidth: str,
    ) -> dict[str, Any]:
        """What every fit of this estimator leaves."""
        fitted: dict[str, Any] = {"key_": settings.key, "stream_": state, "queue_": queue.merge()}
        if state is None:
            kernel = as_kernel(self.kernel, self.gamma)
            return fitted | {"kernel_": kernel, "cluster_weights_": np.zeros(0)}
        if not state.is_converged:
            record.warn(
                f"the first k-means did not converge in max_iter={self.max_iter} iterations; raise "
                "max_iter or tol"
            )
        fitted["kernel_"] = state.raw_kernel()
        fitted["cluster_weights_"] = state.user_weights()
        fitted["report_"] = self._build_report(settings, state, queue, record, bandwidth)
        return fitted

    def _build_report(
        self,
        settings: Settings,
        state: State,
        queue: Queue,
        record: Recorder,
        bandwidth: str,
    ) -> Report:
        n_held, row_format = state.buffer_rows.shape[0], state.format
        if state.is_provisional:
            record.note(
                f"a provisional model of {n_held:,} of the {len(queue):,} rows so far: the "
                f"stream starts with {settings.initial_size:,}"
            )
        elif len(queue):
            record.note(f"{len(queue):,} rows are queued until there are {settings.batch_size:,}")
        return Report(
            estimator=f"{type(self).__name__}(n_clusters={self.n_clusters!r})",
            n_rows=len(queue) if state.is_provisional else state.n_seen + len(queue),
            n_features=int(state.buffer_rows.shape[1]),
            n_distinct=n_held,
            dtype=str(row_format.dtype),
            kernel=repr(state.raw_kernel().in_units(row_format.exponent)),
            bandwidth=bandwidth,
            trace_error=None,
            cluster_weights=tuple(map(float, state.user_weights())),
            stages=tuple(record.stages),
            notes=tuple(record.notes),
            warnings=tuple(record.warnings),
            **state.report_fields(self.centers),
        )

    def __getattr__(self, name: str) -> Any:
        if name in EIGEN_ATTRIBUTES and vars(self).get("stream_") is not None:
            raise AttributeError(
                f"a stream with means of all rows has no eigenvectors, so no {name}; "
                "algorithm='eigen' computes them"
            )
        return super().__getattr__(name)

    @property
    def _n_features_out(self) -> int:
        return int(self.stream_.n_clusters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _is_running(state: State | None) -> bool:
    """Whether the stream has started, so that batches are absorbed as they fill."""
    return state is not None and not state.is_provisional


def _batches(settings: Settings, problem: Problem) -> Iterator[tuple[Rows, FloatArray]]:
    """The rows after the first ones: in content order, or all of them as they stand."""
    source, sample = problem.source, problem.sample
    is_whole = source.n_rows <= EXACT_ROWS
    first, n_rows = (settings.first_rows, len(sample)) if is_whole else (0, source.n_rows)
    for start in range(first, n_rows, settings.batch_size):
        tell("stream", start, n_rows)
        stop = min(start + settings.batch_size, n_rows)
        if is_whole:
            yield part(sample.rows, start, stop), sample.weights[start:stop]
            continue
        rows = sample.format.apply(source.read(start, stop))
        if problem.weights is None:
            yield rows, np.ones(stop - start)
            continue
        heavy = np.flatnonzero(problem.weights[start:stop] > 0)
        if len(heavy):
            yield take(rows, heavy), problem.weights[start + heavy]


def _warm_up_rows(n_clusters: int, n_rows: int) -> int:
    """The largest n_clusters · 1.5ⁱ that is not above n_rows, or 0."""
    n_first = n_clusters
    while n_first * WARM_UP + 1 <= n_rows:
        n_first = int(n_first * WARM_UP + 1)
    return n_first if n_first <= n_rows else 0


def _own_copy(rows: Rows) -> Rows:
    """Rows that the caller cannot change any more."""
    return take(rows, np.arange(rows.shape[0]))


def _example(model: Any) -> Rows:
    """Some of the rows that came before."""
    queue = model.queue_
    return queue.pieces[0] if queue.pieces else model.stream_.buffer_rows


def _check_kind(rows: Rows, before: Rows) -> None:
    def kind(some: Rows) -> str:
        if isinstance(some, BlockRows):
            widths = {n: int(p.shape[1]) for n, p in zip(some.names, some.parts, strict=True)}
            return f"column blocks {widths}"
        return "sparse" if sp.issparse(some) else "dense"

    if kind(rows) != kind(before):
        raise ValueError(
            f"these rows are {kind(rows)}, and those before them were {kind(before)}: all batches "
            "of a stream must have the same format"
        )


def _check_weights(weights: FloatArray, state: State) -> None:
    """Refuse weights beside which those of the buffer vanish, or whose sum overflows."""
    most = float(weights.max())
    with np.errstate(over="ignore"):
        total = float(state.user_weights().sum() + weights.sum())
    if most / HEAVIEST > state.weight_unit or not np.isfinite(total):
        raise ValueError(
            f"sample_weight has values up to {most:.3g}, and the rows before them had weights "
            f"near {state.weight_unit:.3g}: too far apart to be compared; give the weights of all "
            "batches in one unit, or begin a new stream"
        )
