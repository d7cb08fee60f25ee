"""Sparse kernel k-means of rows that keep coming (paper 000)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from mercer._run.budget import Budget
from mercer._run.progress import LineWriter, listening, tell
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.records import expect
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray, IdArray, RandomState
from mercer.estimators.base import Clusterer
from mercer.estimators.kernel_kmeans import LEAST_EXPLAINED
from mercer.estimators.needs import Sweep, Work
from mercer.estimators.problem import (
    check_features,
    checked_source,
    checked_weights,
    prepare_problem,
)
from mercer.factors.mutual import TILE_ROWS, neighbor_kernel
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.kernels.checks import check_columns, check_values
from mercer.kernels.names import as_kernel
from mercer.linalg.numbering import numbering
from mercer.partitions.assignment import labels_and_sums
from mercer.partitions.resampling import FitEvidence, Resampler, by_centers
from mercer.report import Report
from mercer.rows.distinct import EXACT_ROWS
from mercer.rows.inputs import as_source
from mercer.rows.rows import BlockRows, Rows, cast, part, take
from mercer.rows.source import TILE, Source
from mercer.rows.summary import Columns, summarize
from mercer.stream.buffer_labels import (
    Centers,
    NearestCounts,
    ProjectedCenters,
    counted_labels_of_rows,
    distances_of_rows,
    labels_of_rows,
    nearest_of_rows,
    points,
)
from mercer.stream.queue import Queue
from mercer.stream.running_means import PIVOTS
from mercer.stream.state import Plan, Stream, absorbed, begun, reclustered
from mercer.stream.updates import leverage_of_rows
from mercer.trust.diagnosis import diagnose

LEAST_INITIAL = 1000  # rows that begin a stream, unless n_clusters asks for more
GROWTH = 2.5  # of the buffer, before rows leave it
RECLUSTER = 0.1  # of the buffer's rows are new: time to cluster it again
MOST_AGAIN = 10**8  # products of one sweep over the buffer, when it is clustered again
HEAVIEST = 2.0**300  # beside the first weights of a stream: squares of larger ones overflow
WARM_UP = 1.5  # as many rows again: a stream that has not begun yet gets another first model


class StreamingKernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Kernel k-means of rows that keep coming, for very many clusters.

    1. The first `initial_size` rows are the buffer. Rows that are among each other's most similar
       ones are tied by the kernel, all others are not: a sparse kernel matrix (eq. 4).
    2. Its leading eigenvectors V √λ are clustered by k-means (eq. 9); of a normalised kernel the
       rows of these at length 1.
    3. Of every batch that follows, rows join the buffer with a probability that grows with their
       leverage: how much of the leading eigenspace they would hold (eq. 3). Eigenpairs are brought
       up to date in blocks, rows of least leverage leave a full buffer, and now and then k-means
       goes on from the labels there are.
    4. Any row gets the cluster whose mean, over the buffer, it is nearest to, among those it is
       tied to. If clusters have fewer rows in the buffer than rows have neighbours, the means are
       of all rows that came, as 256 rows of the buffer see them by the whole kernel: k-means in
       batches, begun by the clusters of the buffer. (By a kernel too narrow for that: of all rows
       that the buffer has of the cluster.)

    Memory O(max_size·(n_features + n_neighbors + n_clusters)), whatever the length of the stream;
    time per row O(max_size·n_features + 256·n_clusters). Rows wait until there are `batch_size` of
    them, so the model depends on the rows that came, not on the calls that brought them. Before
    `initial_size` rows there is a first model from `n_clusters` rows on, made anew as they grow by
    half.

    Parameters
    ----------
    n_clusters : number of clusters.
    kernel, gamma : as in `KernelKMeans`; sums and products over column blocks too.
    initial_size : rows that begin; None is max(1000, 2·k·ln k).
    max_size : rows that the buffer holds at most; None is 2.5 times `initial_size`.
    n_neighbors : similar rows that a row may be tied to.
    batch_size : rows that are worked on at once; None is `initial_size`.
    sampling : "leverage"; "ridge", which also sees rows that are like nothing before; or "uniform".
    oversample : additions that are expected of as many rows as span the eigenspace once; None is
        n_clusters: rows join with their leverage as probability. (At most max(64, k/8) are
        expected per batch, k/2 while the buffer has room.)
    recluster_every : additions between two clusterings; None is a tenth of `max_size`.
    normalize : divide ties by the degrees of both rows, as normalised cuts do.
    centers : "mean" of rows in feature space, or "projected" on the eigenvectors.
    forgetting : share of the buffer that each batch replaces whatever its leverage, and by which
        old rows count less when rows leave: for clusters that move, appear or die.
    n_init, max_iter, tol : of the first k-means.
    max_memory, n_jobs, verbose, random_state : as in `KernelKMeans`.

    Attributes
    ----------
    labels_ : (n,) cluster of each row, by decreasing weight; after `fit` of rows in memory only.
    cluster_weights_ : (k,) weight of each cluster: after `fit` of all rows, in a stream by the
        clusters that rows had when they came.
    buffer_ : (s, d) the rows of the buffer.
    buffer_labels_ : (s,) their clusters.
    leverage_ : (s,) how much of the leading eigenspace each of them holds.
    eigenvalues_ : (r,) of the buffer's sparse kernel, largest first.
    n_seen_ : rows that came.
    n_queued_ : those of them that wait for a batch to fill.
    inertia_ : Σ w‖φ(x) - c‖² over all rows, after `fit`.
    n_iter_ : sweeps of the first k-means.
    kernel_, report_ : the kernel with its numbers; additions, evictions and the rest of the story.

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
        "stream_": Stream | None,
        "queue_": Queue,
        "key_": "int, >= 0",
        "cluster_weights_": "(k?,) float, finite",
    }
    _parameter_constraints = {  # noqa: RUF012
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "kernel": "no_validation",
        "gamma": "no_validation",
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
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_memory": "no_validation",
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": "no_validation",
    }

    _retired_parameters: ClassVar[dict[str, Any]] = {"search": ("exact",)}

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: Any = "auto",
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
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _check_fitted(self) -> None:
        check_columns(self.kernel_, self.n_features_in_)
        if self.stream_ is not None:
            is_same = np.array_equal(self.cluster_weights_, self.stream_.user_weights())
            expect(is_same, "cluster_weights_ are not those of the stream")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StreamingKernelKMeans:
        """Stream the rows of X (anything `mercer.as_source` takes), then label them all.

        Up to 100,000 rows are streamed in an order of their content, more as they stand, after a
        beginning that is drawn from all of them.
        """
        self._check_parameters()
        rng, threads, record = as_generator(self.random_state), n_threads(self.n_jobs), Recorder()
        with listening(LineWriter() if self.verbose else None), single_threaded_blas():
            plan = self._plan(int(rng.integers(2**63)))
            problem = self._pose(X, sample_weight, plan, record)
            self._feasible_clusters(self.n_clusters, problem, record)
            with record.stage("first clusters"):
                n_first = min(plan.initial_size, len(problem.sample))
                state = self._begun(plan, problem, n_first, threads)
            with record.stage("stream"):
                for rows, weights in self._batches(plan, problem):
                    state = absorbed(plan, state, rows, weights, threads=threads)
                if state.pending:
                    state = reclustered(plan, state, threads=threads)
            with record.stage("labels"):
                labels, totals, inertia = self._labelled(state, problem, threads)
            trust = self._diagnosed(state, labels, totals, problem, record)
        order = numbering(totals, np.arange(len(totals), dtype=float)[:, None])
        state = replace(state.renumbered(order, totals), n_seen=problem.source.n_rows)
        fitted = self._common_state(problem, order, labels, totals)
        fitted |= self._fitted(plan, state, Queue(), record, problem.bandwidth)
        fitted["inertia_"] = inertia = inertia * problem.weight_unit
        told = {"inertia": inertia, "trust": trust, "data": problem.data}
        fitted["report_"] = replace(fitted["report_"], **told)
        record.raise_warnings()
        return self._install(fitted, problem)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> StreamingKernelKMeans:
        """Take the rows of X as the next of the stream.

        Rows wait until there are `batch_size` of them (`initial_size` at first). Rows that are
        refused (NaN, another number of columns) leave the model as it was.
        """
        self._check_parameters()
        threads, record = n_threads(self.n_jobs), Recorder()
        with listening(LineWriter() if self.verbose else None), single_threaded_blas():
            with record.stage("check"):
                source, weights = self._checked_batch(X, sample_weight)
            plan = self._plan(self._key())
            state: Stream | None = vars(self).get("stream_")
            queue, bandwidth = vars(self).get("queue_", Queue()), self._bandwidth()
            with record.stage("stream"):
                for start in range(0, source.n_rows, plan.batch_size):
                    rows = source.read(start, start + plan.batch_size)
                    some = None if weights is None else weights[start : start + rows.shape[0]]
                    queue = queue.pushed(_own_copy(rows), some)
                    state, queue, bandwidth = self._worked_off(
                        plan, state, queue, bandwidth, record, threads
                    )
                    tell("stream", start, source.n_rows)
        if state is None:
            record.warn(
                f"{len(queue)} rows so far wait in the queue: n_clusters={self.n_clusters} need "
                "as many before there is a model"
            )
        fitted: dict[str, Any] = {"n_features_in_": source.n_features}
        names = getattr(self, "feature_names_in_", source.feature_names)
        if names is not None:
            fitted["feature_names_in_"] = np.asarray(names, dtype=object)
        fitted |= self._fitted(plan, state, queue, record, bandwidth)
        record.raise_warnings()
        return self._install(fitted, None)

    def transform(self, X: Any) -> FloatArray:
        """The distance of each row to each centre: (n, k).

        With ``centers="mean"`` and ``normalize=True`` of rows and centres at length 1: in the space
        of the kernel as pivots see it, if means are of all rows that came; else in that of the
        sparse kernel, a cluster without a tie to the row being at a right angle. Without
        `normalize`, a row's label is the nearest among the clusters that it has ties to.
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
        graph = self.stream_.graph
        return graph.format.undo(graph.rows)

    @property
    def buffer_labels_(self) -> IdArray:
        return self.stream_.labels()

    @property
    def leverage_(self) -> FloatArray:
        return leverage_of_rows(self.stream_.vectors)

    @property
    def eigenvalues_(self) -> FloatArray:
        return self.stream_.values.copy()

    @property
    def factor_(self) -> Any:
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
        """Refuse what no data could make right, before any data are read."""
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
                "rows cannot show every cluster; leave it to None or raise it"
            )
        if most < initial:
            raise ValueError(
                f"max_size={most} is smaller than initial_size={initial}: a buffer cannot begin "
                "larger than it may become"
            )

    def _initial_size(self) -> int:
        k = int(self.n_clusters)
        return self.initial_size or max(LEAST_INITIAL, int(np.ceil(2 * k * np.log(k))))

    def _max_size(self) -> int:
        return self.max_size or int(GROWTH * self._initial_size())

    def _plan(self, key: int) -> Plan:
        """The parameters with numbers for None."""
        initial, most, k = self._initial_size(), self._max_size(), int(self.n_clusters)
        return Plan(
            n_clusters=k,
            initial_size=initial,
            max_size=most,
            batch_size=self.batch_size or initial,
            sampling=self.sampling,
            oversample=float(k if self.oversample is None else self.oversample),
            recluster_every=self.recluster_every or max(1, int(RECLUSTER * most)),
            forgetting=float(self.forgetting),
            keeps_means=self.centers == "mean",
            key=key,
        )

    def _key(self) -> int:
        """What all draws of this stream come from: chosen with its first rows."""
        known: int | None = vars(self).get("key_")
        return int(as_generator(self.random_state).integers(2**63)) if known is None else known

    def _bandwidth(self) -> str:
        report = vars(self).get("report_")
        return "" if report is None else report.bandwidth

    def _pose(self, X: Any, weights: Any, plan: Plan, record: Recorder) -> Problem:
        """Rows that are checked, distinct and in an order of their content; the kernel resolved."""
        source = checked_source(X, self.n_clusters)
        return prepare_problem(
            self,
            source,
            weights,
            rng=np.random.default_rng([plan.key, 4]),
            record=record,
            least_mean=LEAST_EXPLAINED / self.n_clusters,
            least_rows=self.n_clusters,
            most_rows=plan.initial_size if source.n_rows > EXACT_ROWS else None,
        )

    def _begun(self, plan: Plan, problem: Problem, n_rows: int, threads: int) -> Stream:
        """The state after the first rows of the problem's sample."""
        sample, kernel = problem.sample, problem.kernel
        assert kernel is not None
        _demand_buffer(problem.budget, plan, sample.rows.shape[1], self.n_neighbors)
        graph = neighbor_kernel(
            kernel,
            sample.format,
            cast(part(sample.rows, 0, plan.initial_size), np.float64),
            sample.weights[: plan.initial_size],
            n_neighbors=self.n_neighbors,
            is_normalized=self.normalize,
            threads=threads,
        )
        state = begun(
            plan,
            graph,
            n_rows=n_rows,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            threads=threads,
        )
        return replace(state, weight_unit=problem.weight_unit)

    def _batches(self, plan: Plan, problem: Problem) -> Iterator[tuple[Rows, FloatArray]]:
        """The rows after the first ones: in content order, or all of them as they stand."""
        source, sample = problem.source, problem.sample
        is_whole = source.n_rows <= EXACT_ROWS
        first, n_rows = (plan.initial_size, len(sample)) if is_whole else (0, source.n_rows)
        for start in range(first, n_rows, plan.batch_size):
            tell("stream", start, n_rows)
            stop = min(start + plan.batch_size, n_rows)
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

    def _checked_batch(self, X: Any, sample_weight: Any) -> tuple[Source, FloatArray | None]:
        """Rows of X that fit those before; every value is looked at before any is used."""
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

    def _worked_off(
        self,
        plan: Plan,
        state: Stream | None,
        queue: Queue,
        bandwidth: str,
        record: Recorder,
        threads: int,
    ) -> tuple[Stream | None, Queue, str]:
        """As many batches of the queue as are full."""
        if state is None or state.is_provisional:
            if len(queue) < plan.initial_size:
                n_first = _warm_up_rows(plan.n_clusters, len(queue))
                if n_first == 0 or (state is not None and state.n_seen == n_first):
                    return state, queue, bandwidth
                begin, bandwidth = self._begun_on(plan, queue, n_first, Recorder(), threads)
                return replace(begin, is_provisional=True), queue, bandwidth
            state, bandwidth = self._begun_on(plan, queue, plan.initial_size, record, threads)
            queue = queue.without(plan.initial_size)
        while len(queue) >= plan.batch_size:
            raw, weights = queue.first(plan.batch_size)
            rows = state.graph.format.apply(raw)
            heavy = np.flatnonzero(weights > 0)
            counted = weights[heavy] / state.weight_unit
            state = absorbed(plan, state, take(rows, heavy), counted, threads=threads)
            queue = queue.without(plan.batch_size)
        return state, queue, bandwidth

    def _begun_on(
        self, plan: Plan, queue: Queue, n_first: int, record: Recorder, threads: int
    ) -> tuple[Stream, str]:
        """The state after the first rows of the queue."""
        raw, weights = queue.first(n_first)
        X = dict(zip(raw.names, raw.parts, strict=True)) if isinstance(raw, BlockRows) else raw
        problem = self._pose(X, weights, plan, record)
        self._feasible_clusters(self.n_clusters, problem, record)
        return self._begun(plan, problem, n_first, threads), problem.bandwidth

    def _centers(self, state: Stream) -> Centers:
        if self.centers == "mean":
            return state.centers()
        arrays = (state.graph, state.values, state.vectors, state.clusters, state.n_clusters)
        return ProjectedCenters.of(*arrays)

    def _labelled(
        self, state: Stream, problem: Problem, threads: int
    ) -> tuple[IdArray | None, FloatArray, float]:
        """The label of each row (if rows are in memory), the clusters' weights, the inertia."""
        counts = partial(NearestCounts, self._centers(state), state.n_clusters)
        labels, (totals, inertia) = labels_and_sums(counts, problem, threads)
        return labels, totals, inertia

    def _diagnosed(
        self,
        state: Stream,
        labels: IdArray | None,
        totals: FloatArray,
        problem: Problem,
        record: Recorder,
    ) -> Any:
        """How far to trust the clusters; only few are made again to see."""
        decide = labels_of_rows(self._centers(state))
        return diagnose(
            FitEvidence(totals, labels, decide, _again(state), problem.kernel), problem, record
        )

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        k = int(self.n_clusters)
        buffer = Buffer(self._max_size(), self.n_neighbors, k)
        if source.n_rows <= EXACT_ROWS:  # all rows are in the sample, and streamed from there
            sweeps: tuple[Sweep, ...] = (Sweep("labels"),)
            return Work(buffer, source.n_rows, sweeps, k, kept=_buffer_memory)
        sweeps, first = (Sweep("stream"), Sweep("labels")), self._initial_size()
        return Work(buffer, first, sweeps, k, kept=_buffer_memory, sample_rows=first)

    def _labeller(self) -> Any:
        return partial(counted_labels_of_rows, self._centers(self.stream_))

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
        self, plan: Plan, state: Stream | None, queue: Queue, record: Recorder, bandwidth: str
    ) -> dict[str, Any]:
        """What every fit of this estimator leaves."""
        fitted: dict[str, Any] = {"key_": plan.key, "stream_": state, "queue_": queue.joined()}
        if state is None:
            kernel = as_kernel(self.kernel, self.gamma)
            return fitted | {"kernel_": kernel, "cluster_weights_": np.zeros(0)}
        if not state.is_converged:
            record.warn(
                f"the first k-means still moved after max_iter={self.max_iter} sweeps; raise "
                "max_iter or tol"
            )
        fitted["kernel_"] = state.graph.raw_kernel()
        fitted["cluster_weights_"] = state.user_weights()
        fitted["report_"] = self._story(plan, state, queue, record, bandwidth)
        return fitted

    def _story(
        self, plan: Plan, state: Stream, queue: Queue, record: Recorder, bandwidth: str
    ) -> Report:
        graph = state.graph
        if state.is_provisional:
            record.note(
                f"{len(queue):,} rows so far, and the stream begins with {plan.initial_size:,}: "
                f"this is a first model of {len(graph):,} of them"
            )
        elif len(queue):
            record.note(f"{len(queue):,} rows wait until there are {plan.batch_size:,}")
        means = "whole clusters" if state.by_whole else "ties"
        if state.means is not None:
            means = f"means of all rows (seen by {state.means.factor.rank} of the buffer)"
        if self.centers == "projected":
            means = "projected centres"
        told = ("additions", "evictions", "refactorizations", "drift", "n_batches")
        return Report(
            estimator=f"{type(self).__name__}(n_clusters={self.n_clusters!r})",
            n_rows=len(queue) if state.is_provisional else state.n_seen + len(queue),
            n_features=int(graph.rows.shape[1]),
            n_distinct=len(graph),
            dtype=str(graph.format.dtype),
            kernel=repr(graph.kernel),
            bandwidth=bandwidth,
            approximation=f"mutual neighbours (n_neighbors={self.n_neighbors}), labels by {means}",
            rank=len(state.values),
            trace_error=None,
            cluster_weights=tuple(map(float, state.user_weights())),
            stages=tuple(record.stages),
            notes=tuple(record.notes),
            warnings=tuple(record.warnings),
            eigenvalues=tuple(map(float, state.values)),
            stream={name: getattr(state, name) for name in told} | {"buffer": len(graph)},
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.stream_.n_clusters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


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
    return queue.pieces[0] if queue.pieces else model.stream_.graph.rows


def _check_kind(rows: Rows, before: Rows) -> None:
    def kind(some: Rows) -> str:
        if isinstance(some, BlockRows):
            widths = {n: int(p.shape[1]) for n, p in zip(some.names, some.parts, strict=True)}
            return f"column blocks {widths}"
        return "sparse" if sp.issparse(some) else "dense"

    if kind(rows) != kind(before):
        raise ValueError(
            f"these rows are {kind(rows)}, and those before them were {kind(before)}: all batches "
            "of a stream must be of one kind"
        )


def _check_weights(weights: FloatArray, state: Stream) -> None:
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


@dataclass(frozen=True, slots=True)
class Buffer:
    """What a stream keeps, in the place of an approximation where memory is asked for."""

    size: int
    n_neighbors: int
    n_clusters: int

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        """Bytes of rows, ties, eigenvectors and the work on them."""
        ties = 12 * 6 * min(self.n_neighbors, self.size)
        columns = 2 * min(n_features, 2**14) + 4 * min(self.n_clusters, self.size) + 2 * TILE_ROWS
        means = 2 * 8 * PIVOTS * min(self.n_clusters, self.size)
        return self.size * (8 * columns + ties) + means

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """Coordinates of the buffer's rows, and the clusters that are made in them again."""
        return 8 * self.size * (4 * n_vectors + 6)

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        """Means: products with pivots; projections: similarities of a few rows to the buffer."""
        return 8 * max(tile_rows * (PIVOTS + n_features), 2 * TILE_ROWS * self.size)


def _buffer_memory(buffer: Buffer, n_rows: int, itemsize: int) -> int:
    """A stream keeps all that it works with, but for a tile's similarities."""
    return buffer.memory(n_rows, 0, itemsize) // 4


def _again(state: Stream) -> Resampler:
    """The clusters of the buffer, made again by some of its rows; of none where that is dear."""
    F, weights = points(state.graph, state.values, state.vectors)
    k = state.n_clusters
    if F.size * k > MOST_AGAIN:
        F = F[:0]
    return by_centers(F, weights[: len(F)], k)


def _demand_buffer(budget: Budget, plan: Plan, n_features: int, n_neighbors: int) -> None:
    """Refuse a buffer that cannot fit, before the work."""
    size, k = plan.max_size, plan.n_clusters
    budget.demand(
        Buffer(size, n_neighbors, k).memory(size, n_features, 8),
        what=f"a buffer of {size:,} rows with {n_neighbors:,} neighbours and {k:,} eigenvectors",
        advice="raise max_memory, or lower max_size, initial_size or n_neighbors",
    )
