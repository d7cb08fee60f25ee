"""The state of a stream and its steps (Algorithm 1 of [chitta2015]): a buffer of rows, the leading
eigenpairs of its sparse kernel, and its clusters.

Every function takes a state and returns the next one; nothing is changed in place, so a batch that
fails leaves no trace. All draws come from one key: those of a row from a counter-based stream at
the row's number, others from the number of the event. So the state depends on the rows alone, not
on the calls that brought them, and a state that was saved goes on as if it had not been.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mercer._run.budget import Budget
from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.factors.mutual import BufferEdges, NeighborKernel, neighbor_kernel, rebuild
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.linalg.eigen import leading_eigenpairs, polish_eigenpairs
from mercer.linalg.eigenpairs import residuals
from mercer.linalg.lloyd import nearest_center, scores_of_centers
from mercer.linalg.numbering import numbering
from mercer.partitions.kmeans import kmeans
from mercer.partitions.resampling import Resampler, by_centers
from mercer.rows.distinct import row_hashes
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, cast, part, take
from mercer.stream.buffer import Buffer
from mercer.stream.centers import (
    Centers,
    MeanCenters,
    ProjectedCenters,
    points,
    whole_is_better,
)
from mercer.stream.draws import largest_value, row_draws, smooth
from mercer.stream.eigen_updates import (
    append,
    evict,
    leverage_of_rows,
    positive,
    rows_to_keep,
)
from mercer.stream.leverage import ridge_leverage, secular_leverage, squared_remainders
from mercer.stream.running_means import StreamMeans, start_means
from mercer.stream.warm_start import exchange_centers, label_means, refine_labels

WORK_ROWS = 2048  # rows of a batch that one thread compares with the buffer
DRIFT = 1e-2  # of the eigenvalues: larger residuals call for new eigenpairs
TURNOVER = 0.5  # of the buffer: after so many additions, new eigenpairs whatever the residuals
EXCHANGED = 0.1  # of a full buffer: after so many, new edges and eigenpairs before a clustering
LEAST_ADDITIONS = 64  # expected of a batch at most, however few the clusters,
ADDITIONS = 0.125  # or this share of the number of clusters, which bounds the cost of a batch,
GROWING = 0.5  # or this while the buffer has room
# Rows of a batch for each of these: on many_clusters of 60, zipf and equal sizes, NMI is then that
# of all rows (.948 and .995, all rows .940 and .994; a buffer of 2,500, one seed).
LOOKED_AT = 16
WARM_SWEEPS = 10
EXCHANGES = 3  # rounds in which centres move to other clusters, at every clustering
EXCHANGE_SWEEPS = 2  # after each
HELD = 0.5  # of an eigenvector, by one row
POLISH = 8  # degree of the filter before a clustering: cheap beside new eigenpairs
LARGEST_SINGLE = 1e9  # squares of larger float32 values lose digits or overflow
LEAST_RIDGE = 1e-3  # beside the mean of k(x, x)
EIGEN_TOLERANCE = 1e-4
MOST_RESAMPLED = 10**8  # products of one sweep, when parts of the buffer are clustered again


@frozen
class StreamSettings:
    """The parameters of a stream, with numbers in place of None."""

    n_clusters: int
    initial_size: int
    max_size: int
    n_neighbors: int
    batch_size: int
    sampling: str
    oversample: float
    is_bounded: bool  # additions of a batch, and the rows of it that are compared with the buffer
    recluster_every: int
    is_normalized: bool
    keeps_means: bool  # of all rows, where the buffer has few of each cluster
    forgetting: float
    n_init: int
    max_iter: int
    tol: float
    threads: int
    key: int  # of all draws

    @property
    def first_rows(self) -> int:
        """Rows that `fit` starts with."""
        return self.initial_size

    def for_fit(self) -> StreamSettings:
        return self

    def for_provisional(self) -> StreamSettings:
        return self

    def demand(self, budget: Budget, n_rows: int, n_features: int) -> None:
        """The buffer asks for its memory when it is made."""

    def start(self, problem: Problem, n_rows: int) -> Stream:
        """The state after the first rows of the problem's sample."""
        sample, kernel, size = problem.sample, problem.kernel, self.initial_size
        assert kernel is not None
        buffer = Buffer(self.max_size, self.n_neighbors, self.n_clusters)
        buffer.demand(problem.budget, sample.rows.shape[1])
        graph = neighbor_kernel(
            kernel,
            sample.format,
            cast(part(sample.rows, 0, size), np.float64),
            sample.weights[:size],
            n_neighbors=self.n_neighbors,
            is_normalized=self.is_normalized,
            threads=self.threads,
        )
        return replace(start_stream(self, graph, n_rows), weight_unit=problem.weight_unit)

    def absorb(self, state: Stream, rows: Rows, weights: FloatArray) -> Stream:
        return absorb(self, state, rows, weights)

    def finish(self, state: Stream) -> Stream:
        """Cluster the buffer once more, if rows joined since."""
        return recluster(self, state) if state.pending else state


@frozen
class Stream(Record):
    """The state of a stream."""

    graph: NeighborKernel = stored(NeighborKernel)
    values: FloatArray = stored("(e,) float64, finite")  # leading eigenvalues of the graph's matrix
    vectors: FloatArray = stored("(s, e) float64, finite")
    # cluster of each buffer row, by k-means in the eigenspace
    clusters: IdArray = stored("(s,) int, >= 0")
    born: IdArray = stored("(s,) int")  # the batch that brought each row
    # of the rows seen, by the clusters they had when they came
    cluster_weights: FloatArray = stored("(k,) float64, finite, >= 0")
    n_seen: int = stored("int, >= 0", 0)
    n_batches: int = stored("int, >= 0", 0)
    additions: int = stored("int, >= 0", 0)
    evictions: int = stored("int, >= 0", 0)
    refactorizations: int = stored("int, >= 0", 0)
    pending: int = stored("int, >= 0", 0)  # additions since the last clustering
    turnover: int = stored("int, >= 0", 0)  # additions since the eigenpairs were new
    drift: float = stored("float, finite, >= 0", 0.0)  # ‖KV - Vλ‖ / ‖λ‖ when last computed
    unexplained: float = stored("float, in [0, 1]", 0.0)  # share of the latest rows without edges
    n_iter: int = stored("int, >= 0", 0)  # sweeps of the first k-means
    is_converged: bool = stored("bool", True)  # whether it did
    is_provisional: bool = stored("bool", False)  # of the first rows of a queue still filling
    by_whole: bool = stored("bool", False)  # labels by the whole kernel, not by edges alone
    means: StreamMeans | None = stored(StreamMeans | None, None)  # of all rows, or the buffer's
    # a power of two: what a weight of 1 is in the user's units
    weight_unit: float = stored("float, finite, > 0", 1.0)

    def sizes(self) -> dict[str, int]:
        """d: columns of rows; k: clusters."""
        return {"d": int(self.graph.rows.shape[1]), "k": len(self.cluster_weights)}

    def check(self) -> None:
        """The eigenpairs, clusters and means belong to the buffer."""
        graph, size, k = self.graph, len(self.graph), len(self.cluster_weights)
        expect(len(self.values) <= size, "there are more eigenpairs than rows of the buffer")
        expect(k <= size, "there are more clusters than rows of the buffer")
        expect(self.clusters.max() < k, f"a row of the buffer is not in one of {k} clusters")
        expect(np.frexp(self.weight_unit)[0] == 0.5, "weight_unit is not a power of two")
        if self.means is not None:
            factor = self.means.factor
            is_alike = type(factor.pivots) is type(graph.rows)
            is_alike = is_alike and repr(factor.kernel) == repr(graph.kernel)
            expect(is_alike, "the pivots of the means are not rows like those of the buffer")
            expect(factor.format.is_same(graph.format), "the means have another row format")

    is_reservoir = False

    @property
    def n_clusters(self) -> int:
        return len(self.cluster_weights)

    @property
    def format(self) -> RowFormat:
        return self.graph.format

    @property
    def buffer_rows(self) -> Rows:
        return self.graph.rows

    def raw_kernel(self) -> Kernel:
        """The kernel as a function of raw rows: what users see."""
        return self.graph.raw_kernel()

    def eigenpairs(self) -> tuple[FloatArray, FloatArray]:
        return self.values, self.vectors

    def centers_of(self, kind: str) -> Centers:
        """The centres that rows are compared with: "mean" or "projected"."""
        if kind == "mean":
            return self.centers()
        arrays = (self.graph, self.values, self.vectors, self.clusters, self.n_clusters)
        return ProjectedCenters.of(*arrays)

    def resampler(self) -> Resampler:
        """How to cluster parts of the buffer again; of no rows where that is expensive."""
        F, weights = points(self.graph, self.values, self.vectors)
        k = self.n_clusters
        if F.size * k > MOST_RESAMPLED:
            F = F[:0]
        return by_centers(F, weights[: len(F)], k)

    def report_fields(self, centers: str) -> dict[str, Any]:
        """What the fit report says of this state."""
        means = "whole clusters" if self.by_whole else "edges"
        if self.means is not None:
            means = f"means of all rows (seen by {self.means.factor.rank} of the buffer)"
        if centers == "projected":
            means = "projected centres"
        counts = ("additions", "evictions", "refactorizations", "drift", "n_batches")
        counted = {name: getattr(self, name) for name in (*counts, "unexplained")}
        neighbors = f"mutual neighbours (n_neighbors={self.graph.n_neighbors})"
        return {
            "approximation": f"{neighbors}, labels by {means}",
            "rank": len(self.values),
            "eigenvalues": tuple(map(float, self.values)),
            "stream": counted | {"buffer": len(self.graph)},
        }

    def centers(self) -> Centers:
        """The means that rows are compared with."""
        return self.buffer_means() if self.means is None else self.means

    def buffer_means(self) -> MeanCenters:
        """Means of the buffer's clusters; by edges alone where there are means of all rows."""
        is_whole = self.by_whole and self.means is None
        return MeanCenters.of(self.graph, self.clusters, self.n_clusters, is_whole=is_whole)

    def labels(self) -> IdArray:
        """The labels of the buffer's rows, decided as for any other row."""
        return self.clusters.copy() if self.means is None else self.means.labels(self.graph)

    def user_weights(self) -> FloatArray:
        """What the clusters weigh in the user's units: (k,)."""
        return self.cluster_weights * self.weight_unit

    def renumber(self, order: IdArray, weights: FloatArray) -> Stream:
        """The same clusters in another order, with these weights."""
        means = None if self.means is None else self.means.renumber(order)
        clusters = np.argsort(order)[self.clusters]
        return replace(self, clusters=clusters, cluster_weights=weights[order], means=means)


def start_stream(settings: StreamSettings, graph: NeighborKernel, n_rows: int) -> Stream:
    """Steps 3 to 7: the first rows, their eigenpairs, and k-means on V √λ."""
    k = min(settings.n_clusters, len(graph))
    values, vectors = _eigenpairs(settings, graph, 0)
    F, weights = points(graph, values, vectors)
    found = kmeans(
        F,
        weights,
        k,
        n_init=settings.n_init,
        max_iter=settings.max_iter,
        tol=settings.tol,
        rng=np.random.default_rng([settings.key, 1]),
        threads=settings.threads,
    )
    A, b = scores_of_centers(found.centers)
    clusters = _exchange(settings, F, weights, nearest_center(F @ A + b)[0], k)
    totals = np.bincount(clusters, weights=graph.weights, minlength=k).astype(np.float64)
    order = numbering(totals, label_means(F, weights, clusters, k))
    clusters = _place_isolated(graph, vectors, np.argsort(order)[clusters])
    by_whole, means = whole_is_better(graph, k), None
    if by_whole and settings.keeps_means:
        rng = np.random.default_rng([settings.key, 5, 0])
        means = start_means(graph, clusters, k, rng)
    return Stream(
        graph,
        values,
        vectors,
        clusters,
        np.zeros(len(graph), np.int64),
        totals[order],
        n_seen=n_rows,
        n_iter=found.n_iter,
        is_converged=found.is_converged,
        by_whole=by_whole,
        means=means,
    )


def absorb(settings: StreamSettings, state: Stream, rows: Rows, weights: FloatArray) -> Stream:
    """Steps 9 to 14 for a batch of rows in the graph's format."""
    first_row, n_rows, decay = state.n_seen, rows.shape[0], 1.0 - settings.forgetting
    state = replace(state, cluster_weights=decay * state.cluster_weights)
    if state.means is not None:
        means, joined = state.means.absorb(rows, weights, decay=decay, threads=settings.threads)
        state = replace(state, means=means, cluster_weights=state.cluster_weights + joined)
    new, ids, weights, state = _merge_known_rows(state, rows, weights)
    state = replace(state, n_seen=first_row + n_rows, n_batches=state.n_batches + 1)
    share = _looked_share(settings, state, len(ids))
    looked = np.flatnonzero(row_draws(settings.key + 1, first_row, n_rows)[ids] < share)
    if not len(looked):
        return state
    total, new, ids, weights = weights.sum(), take(new, looked), ids[looked], weights[looked]
    leverage, edges, clusters, n_alone = _inspect(settings, state, new, weights)
    alone = n_alone / len(ids)
    if state.n_batches > 1:
        alone = smooth(state.unexplained, alone)
    state = replace(state, unexplained=alone)
    if state.means is None:
        counts = np.bincount(clusters, weights=weights, minlength=state.n_clusters)
        counts = counts * (total / weights.sum())  # the others are taken to be like these
        state = replace(state, cluster_weights=state.cluster_weights + counts)
    probabilities = _probabilities(settings, state, leverage / share, first_row + ids)
    chosen = np.flatnonzero(row_draws(settings.key, first_row, n_rows)[ids] < probabilities)
    if len(chosen):
        newcomers = cast(take(new, chosen), np.float64)
        state = _add_rows(settings, state, newcomers, edges.take(chosen), clusters[chosen])
    return recluster(settings, state) if state.pending >= settings.recluster_every else state


def recluster(settings: StreamSettings, state: Stream) -> Stream:
    """k-means from the present labels, after the eigenpairs were polished or computed again.

    Rows that left a full buffer took their edges with them, and the thresholds of those that stay
    refer to neighbours that are gone. Without new edges, small clusters fall apart unseen.
    """
    is_full = len(state.graph) >= settings.max_size
    if is_full and state.turnover >= EXCHANGED * settings.max_size:
        state, drift = _refactorize(settings, state), 0.0
    else:
        pairs = polish_eigenpairs(state.graph.matrix, state.values, state.vectors, degree=POLISH)
        state = _with_pairs(state, positive(*pairs))
        drift = _drift(state)
        if drift > DRIFT:
            state, drift = _refactorize(settings, state), 0.0
    k = min(settings.n_clusters, len(state.graph))
    F, weights = points(state.graph, state.values, state.vectors)
    clusters = refine_labels(
        F, weights, state.clusters, k, max_iter=WARM_SWEEPS, threads=settings.threads
    )
    clusters = _exchange(settings, F, weights, clusters, k)
    clusters = _place_isolated(state.graph, state.vectors, clusters)
    totals: FloatArray = np.zeros(k)
    totals[: state.n_clusters] = state.cluster_weights
    means, clusters, totals = _update_means(settings, state, clusters, totals)
    return replace(
        state,
        clusters=clusters,
        by_whole=whole_is_better(state.graph, k),
        means=means,
        cluster_weights=totals,
        pending=0,
        drift=drift,
    )


def _exchange(
    settings: StreamSettings, F: FloatArray, weights: FloatArray, clusters: IdArray, k: int
) -> IdArray:
    rounds = {"rounds": EXCHANGES, "max_iter": EXCHANGE_SWEEPS}
    return exchange_centers(F, weights, clusters, k, **rounds, threads=settings.threads)


def _update_means(
    settings: StreamSettings, state: Stream, clusters: IdArray, totals: FloatArray
) -> tuple[StreamMeans | None, IdArray, FloatArray]:
    """Means of all rows after the buffer got these clusters, the clusters, and their weights.

    Clusters keep their numbers. Those of the means are their own; if means end, the clusters of the
    buffer take the numbers of the means that most of their rows belonged to.
    """
    k, graph, before, means = len(totals), state.graph, state.means, None
    if settings.keeps_means and whole_is_better(graph, k):
        rng = np.random.default_rng([settings.key, 5, state.n_batches])
        if before is None:
            means = start_means(graph, clusters, k, rng)
        elif (found := before.recluster(graph, clusters, totals, rng)) is not None:
            return found[0], clusters, found[1]
    had_rows = np.bincount(state.clusters, minlength=k) > 0
    if before is not None:
        clusters, had_rows = _match_numbers(clusters, state.labels(), k)
    return means, clusters, np.where(had_rows, totals, 0.0)


def _match_numbers(
    clusters: IdArray, labels: IdArray, n_clusters: int
) -> tuple[IdArray, NDArray[np.bool_]]:
    """Clusters renumbered by the labels they share most rows with, and which share any."""
    shared = np.zeros((n_clusters, n_clusters))
    np.add.at(shared, (clusters, labels), 1.0)
    rows, names = linear_sum_assignment(shared, maximize=True)
    is_known = np.zeros(n_clusters, bool)
    is_known[names] = shared[rows, names] > 0
    return names[clusters], is_known


def _merge_known_rows(
    state: Stream, rows: Rows, weights: FloatArray
) -> tuple[Rows, IdArray, FloatArray, Stream]:
    """The rows that are not in the buffer yet, without repeats; others add to its weights."""
    graph = state.graph
    hashes = row_hashes(rows)
    _, ids, group = np.unique(hashes, return_index=True, return_inverse=True)
    summed = np.bincount(group, weights=weights)
    known = row_hashes(cast(graph.rows, graph.format.dtype))
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], hashes[ids]), len(known) - 1)
    is_known = known[order][place] == hashes[ids]
    if is_known.any():
        heavier, more = order[place[is_known]], graph.weights.copy()
        np.add.at(more, heavier, summed[is_known])
        totals = state.cluster_weights.copy()
        if state.means is None:  # else they have been counted
            np.add.at(totals, state.clusters[heavier], summed[is_known])
        state = replace(state, graph=replace(graph, weights=more), cluster_weights=totals)
    order = np.argsort(ids[~is_known])
    ids, summed = ids[~is_known][order], summed[~is_known][order]
    return take(rows, ids), ids, summed, state


def _inspect(
    settings: StreamSettings, state: Stream, rows: Rows, weights: FloatArray
) -> tuple[FloatArray, BufferEdges, IdArray, int]:
    """Leverage, edges and clusters of new rows, and how many of them have no edge."""
    graph = state.graph
    largest = max(largest_value(rows), largest_value(graph.rows))
    dtype = np.float64 if largest > LARGEST_SINGLE else graph.format.dtype.type
    centers = state.buffer_means()
    rows, edges_of = cast(rows, dtype), centers.view(dtype, nearest=False)
    ridge = _ridge(settings, state)

    def inspect(start: int) -> tuple[FloatArray, BufferEdges, IdArray]:
        stop = start + WORK_ROWS
        edges = edges_of(part(rows, start, stop), weights[start:stop])
        labels = centers.nearest(edges)[0]
        if settings.sampling == "uniform":
            return np.zeros(len(edges)), edges, labels
        phi, kappa = graph.normalized(edges), graph.own_entries(edges)
        A = np.asarray(phi @ state.vectors)
        rest = squared_remainders(phi, A)
        if settings.sampling == "ridge":
            return ridge_leverage(A, rest, kappa, state.values, ridge), edges, labels
        return secular_leverage(A, rest, kappa, state.values), edges, labels

    tiles = list(in_order(inspect, range(0, rows.shape[0], WORK_ROWS), settings.threads))
    leverage, edges, labels = zip(*tiles, strict=True)
    clusters = np.concatenate(labels)
    alone = clusters < 0  # rows without edges
    clusters[alone] = int(state.cluster_weights.argmax())
    return np.concatenate(leverage), BufferEdges.stack(list(edges)), clusters, int(alone.sum())


def _place_isolated(graph: NeighborKernel, vectors: FloatArray, clusters: IdArray) -> IdArray:
    """Rows without edges to others join the cluster of the most similar row that has some.

    Unless they hold an eigenvector by themselves: then they are a cluster.
    """
    entries = sp.csr_array(graph.matrix)
    n_edges = np.diff(entries.indptr) - (entries.diagonal() != 0)
    is_held = leverage_of_rows(vectors) > HELD
    alone, others = np.flatnonzero((n_edges == 0) & ~is_held), np.flatnonzero(n_edges > 0)
    if not len(alone) or not len(others):
        return clusters
    clusters, similar = clusters.copy(), graph.kernel.against(take(graph.rows, others))
    for start in range(0, len(alone), WORK_ROWS):
        ids = alone[start : start + WORK_ROWS]
        clusters[ids] = clusters[others[similar(take(graph.rows, ids)).argmax(axis=1)]]
    return clusters


def _most_additions(settings: StreamSettings, state: Stream) -> float:
    """Additions that are expected of a batch at most, where they are bounded."""
    share = GROWING if len(state.graph) < settings.max_size else ADDITIONS
    return max(LEAST_ADDITIONS, share * settings.n_clusters)


def _looked_share(settings: StreamSettings, state: Stream, n_rows: int) -> float:
    """The share of the new rows of a batch that is compared with the buffer.

    Among many more rows than may join, those that do are found in a part of them.
    """
    if not settings.is_bounded:
        return 1.0
    wanted = max(_most_additions(settings, state), settings.forgetting * settings.max_size)
    return min(1.0, LOOKED_AT * wanted / max(n_rows, 1))


def _probabilities(
    settings: StreamSettings, state: Stream, leverage: FloatArray, row_numbers: IdArray
) -> FloatArray:
    """The probability with which each new row joins the buffer (eq. 3, times `oversample`).

    Without `oversample`, no more are expected than keep the cost of a batch bounded. Uniform:
    each row seen is in the buffer with the same probability. Forgetting replaces that share of the
    buffer by rows of this batch, whatever they are: leverage alone is blind to what is new.
    """
    if settings.sampling == "uniform":
        probabilities = np.minimum(1.0, settings.max_size / (row_numbers + 1.0))
    else:
        probabilities = np.minimum(1.0, leverage * settings.oversample / settings.n_clusters)
        if settings.is_bounded:
            most = _most_additions(settings, state)
            probabilities *= min(1.0, most / max(float(probabilities.sum()), 1.0))
    fresh = min(1.0, settings.forgetting * settings.max_size / len(leverage))
    return 1.0 - (1.0 - probabilities) * (1.0 - fresh)


def _add_rows(
    settings: StreamSettings, state: Stream, rows: Rows, edges: BufferEdges, clusters: IdArray
) -> Stream:
    """Steps 12 and 13: rows join the buffer, and those of least leverage leave it if it is full."""
    graph, n_new = state.graph, len(edges)
    edges, phi, K_bb = graph.join(rows, edges)
    is_new = state.turnover + n_new > TURNOVER * len(graph)
    if not is_new:
        rank = min(settings.n_clusters, len(graph) + n_new)
        pairs = append(graph.matrix, state.values, state.vectors, phi.T, K_bb, rank)
        state = _with_pairs(state, pairs)
    state = replace(
        state,
        graph=graph.with_rows(rows, edges, phi, K_bb),
        clusters=np.r_[state.clusters, clusters],
        born=np.r_[state.born, np.full(n_new, state.n_batches)],
        additions=state.additions + n_new,
        pending=state.pending + n_new,
        turnover=state.turnover + n_new,
    )
    if is_new:
        state = _refactorize(settings, state)
    n_gone = len(state.graph) - settings.max_size
    return _remove_rows(settings, state, n_gone) if n_gone > 0 else state


def _remove_rows(settings: StreamSettings, state: Stream, n_gone: int) -> Stream:
    """Remove the rows of least leverage; forgetting lowers that of old rows."""
    if settings.sampling == "uniform":
        rng = np.random.default_rng([settings.key, 2, state.n_batches])
        scores = (state.born == state.n_batches) + rng.random(len(state.born))
    else:
        scores = leverage_of_rows(state.vectors)
    scores = scores * (1.0 - settings.forgetting) ** (state.n_batches - state.born)
    keep = rows_to_keep(scores, n_gone)
    graph = state.graph.keep(keep)
    state = _with_pairs(state, evict(graph.matrix, state.values, state.vectors, keep))
    return replace(
        state,
        graph=graph,
        clusters=state.clusters[keep],
        born=state.born[keep],
        evictions=state.evictions + n_gone,
    )


def _with_pairs(state: Stream, pairs: tuple[FloatArray, FloatArray]) -> Stream:
    return replace(state, values=pairs[0], vectors=pairs[1])


def _refactorize(settings: StreamSettings, state: Stream) -> Stream:
    """Compute edges, degrees and eigenpairs of the buffer again, starting from its eigenpairs."""
    graph, count = rebuild(state.graph, threads=settings.threads), state.refactorizations + 1
    state = _with_pairs(state, _eigenpairs(settings, graph, count, state))
    return replace(state, graph=graph, refactorizations=count, turnover=0)


def _eigenpairs(
    settings: StreamSettings, graph: NeighborKernel, count: int, state: Stream | None = None
) -> tuple[FloatArray, FloatArray]:
    """The leading eigenpairs of the graph's matrix, from those of the state if there is one."""
    rng = np.random.default_rng([settings.key, 3, count])
    rank = min(settings.n_clusters, len(graph))
    start = None if state is None else (state.values, state.vectors)
    pairs = leading_eigenpairs(graph.matrix, rank, tol=EIGEN_TOLERANCE, start=start, rng=rng)
    return positive(pairs.values, pairs.vectors)


def _drift(state: Stream) -> float:
    """‖KV - Vλ‖ / ‖λ‖: how far the pairs are from being eigenpairs of the buffer's kernel."""
    found = residuals(state.graph.matrix, state.values, state.vectors)
    return float(np.linalg.norm(found) / np.linalg.norm(state.values))


def _ridge(settings: StreamSettings, state: Stream) -> float:
    """g = (tr K - Σλ)/C: the discarded eigenvalues, shared among those that are kept."""
    trace = float(state.graph.matrix.diagonal().sum())
    least = LEAST_RIDGE * trace / len(state.graph)
    return max((trace - float(state.values.sum())) / settings.n_clusters, least)
