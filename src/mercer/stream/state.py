"""The stream itself (paper 000, Algorithm 1): a buffer, its eigenpairs, its clusters, and a step.

Every function takes a state and gives the next one; nothing is changed in place, so that a batch
that fails leaves no trace. All draws come from one key: those of a row from a counter-based stream
at the row's number, others from the number of the event. So the state depends on the rows alone,
not on the calls that brought them, and a state that was written to a file goes on as if it had not
been.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mercer._run.records import Record, expect, stored
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.factors.mutual import NeighborKernel, Ties, remade
from mercer.linalg.eigen import leading_eigenpairs, polish_eigenpairs
from mercer.linalg.eigenpairs import residuals
from mercer.linalg.lloyd import nearest_center, scores_of_centers
from mercer.linalg.numbering import numbering
from mercer.partitions.kmeans import kmeans
from mercer.rows.distinct import row_hashes
from mercer.rows.rows import BlockRows, Rows, cast, part, take
from mercer.stream.buffer_labels import Centers, MeanCenters, points, whole_is_better
from mercer.stream.leverage import ridge_leverage, secular_leverage, squared_remainders
from mercer.stream.running_means import StreamMeans, stream_means
from mercer.stream.updates import (
    append,
    evict,
    leverage_of_rows,
    positive,
    rows_to_keep,
)
from mercer.stream.warm import exchanged, label_means, relabelled

WORK_ROWS = 2048  # rows of a batch that one thread looks at
DRIFT = 1e-2  # of the eigenvalues: larger residuals call for new eigenpairs
TURNOVER = 0.5  # of the buffer: after so many additions, new eigenpairs whatever the residuals
EXCHANGED = 0.1  # of a full buffer: after so many, new ties and eigenpairs before a clustering
LEAST_ADDITIONS = 64  # that a batch may bring, however few the clusters
ADDITIONS = 0.125  # of the number of clusters, beyond that: what bounds the cost of a batch,
GROWING = 0.5  # and this while the buffer has room
WARM_SWEEPS = 10
EXCHANGES = 3  # rounds in which centres move to other clusters, at every clustering
EXCHANGE_SWEEPS = 2  # after each
HELD = 0.5  # of an eigenvector, by one row
POLISH = 8  # degree of the filter before a clustering: cheap beside new eigenpairs
LARGEST_SINGLE = 1e9  # squares of larger float32 values lose digits or overflow
LEAST_RIDGE = 1e-3  # beside the mean of k(x, x)
EIGEN_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user asked for, sizes resolved."""

    n_clusters: int
    initial_size: int
    max_size: int
    batch_size: int
    sampling: str
    oversample: float
    recluster_every: int
    forgetting: float
    keeps_means: bool  # of all rows, where the buffer has few of each cluster
    key: int  # of all draws


@dataclass(frozen=True, slots=True)
class Stream(Record):
    """Where a stream stands."""

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
    drift: float = stored("float, finite, >= 0", 0.0)  # ‖KV - Vλ‖ / ‖λ‖ when last looked at
    n_iter: int = stored("int, >= 0", 0)  # sweeps of the first k-means
    is_converged: bool = stored("bool", True)  # did it settle?
    is_provisional: bool = stored("bool", False)  # of the first rows of a queue still filling
    by_whole: bool = stored("bool", False)  # labels by the whole kernel, not by edges alone:
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

    @property
    def n_clusters(self) -> int:
        return len(self.cluster_weights)

    def centers(self) -> Centers:
        """The means that rows are compared with."""
        return self.buffer_means() if self.means is None else self.means

    def buffer_means(self) -> MeanCenters:
        """Of the buffer's clusters, by ties where those of all rows do the rest."""
        is_whole = self.by_whole and self.means is None
        return MeanCenters.of(self.graph, self.clusters, self.n_clusters, is_whole=is_whole)

    def labels(self) -> IdArray:
        """The clusters of the buffer's rows; with means, as any row gets its own."""
        return self.clusters.copy() if self.means is None else self.means.labels(self.graph)

    def user_weights(self) -> FloatArray:
        """What the clusters weigh in the user's units: (k,)."""
        return self.cluster_weights * self.weight_unit

    def renumbered(self, order: IdArray, weights: FloatArray) -> Stream:
        """The same clusters in another order, and what they weigh."""
        means = None if self.means is None else self.means.renumbered(order)
        clusters = np.argsort(order)[self.clusters]
        return replace(self, clusters=clusters, cluster_weights=weights[order], means=means)


def begun(
    plan: Plan,
    graph: NeighborKernel,
    *,
    n_rows: int,
    n_init: int,
    max_iter: int,
    tol: float,
    threads: int = 1,
) -> Stream:
    """Steps 3 to 7: the first rows, their eigenpairs, and k-means on V √λ."""
    k = min(plan.n_clusters, len(graph))
    values, vectors = _eigenpairs(plan, graph, 0)
    F, weights = points(graph, values, vectors)
    found = kmeans(
        F,
        weights,
        k,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        rng=np.random.default_rng([plan.key, 1]),
        threads=threads,
    )
    A, b = scores_of_centers(found.centers)
    clusters = exchanged(
        F,
        weights,
        nearest_center(F @ A + b)[0],
        k,
        rounds=EXCHANGES,
        max_iter=EXCHANGE_SWEEPS,
        threads=threads,
    )
    totals = np.bincount(clusters, weights=graph.weights, minlength=k).astype(np.float64)
    order = numbering(totals, label_means(F, weights, clusters, k))
    clusters = _with_untied(graph, vectors, np.argsort(order)[clusters])
    born = np.zeros(len(graph), np.int64)
    by_whole = whole_is_better(graph, k)
    rng = np.random.default_rng([plan.key, 5, 0])
    return Stream(
        graph,
        values,
        vectors,
        clusters,
        born,
        totals[order],
        n_seen=n_rows,
        n_iter=found.n_iter,
        is_converged=found.is_converged,
        by_whole=by_whole,
        means=stream_means(graph, clusters, k, rng) if by_whole and plan.keeps_means else None,
    )


def absorbed(
    plan: Plan, state: Stream, rows: Rows, weights: FloatArray, *, threads: int = 1
) -> Stream:
    """Steps 9 to 14 for a batch of rows in the graph's format."""
    first_row, n_rows, decay = state.n_seen, rows.shape[0], 1.0 - plan.forgetting
    state = replace(state, cluster_weights=decay * state.cluster_weights)
    if state.means is not None:
        means, joined = state.means.after(rows, weights, decay=decay, threads=threads)
        state = replace(state, means=means, cluster_weights=state.cluster_weights + joined)
    new, ids, weights, state = _unseen(state, rows, weights)
    state = replace(state, n_seen=first_row + n_rows, n_batches=state.n_batches + 1)
    if not len(ids):
        return state
    leverage, ties, clusters = _looked_at(plan, state, new, weights, threads=threads)
    if state.means is None:
        counts = np.bincount(clusters, weights=weights, minlength=state.n_clusters)
        state = replace(state, cluster_weights=state.cluster_weights + counts)
    chances = _chances(plan, state, leverage, first_row + ids)
    chosen = np.flatnonzero(row_draws(plan.key, first_row, n_rows)[ids] < chances)
    if len(chosen):
        newcomers = cast(take(new, chosen), np.float64)
        state = _with_rows(
            plan, state, newcomers, ties.take(chosen), clusters[chosen], threads=threads
        )
    if state.pending >= plan.recluster_every:
        state = reclustered(plan, state, threads=threads)
    return state


def reclustered(plan: Plan, state: Stream, *, threads: int = 1) -> Stream:
    """k-means from the labels there are, after the eigenpairs were polished or made anew.

    Rows that left a full buffer took their ties with them, and the thresholds of those that stay
    are of neighbours that are gone. Without new ties, small clusters fall apart unseen.
    """
    is_full = len(state.graph) >= plan.max_size
    if is_full and state.turnover >= EXCHANGED * plan.max_size:
        state, drift = _refactorized(plan, state, threads=threads), 0.0
    else:
        values, vectors = positive(
            *polish_eigenpairs(state.graph.matrix, state.values, state.vectors, degree=POLISH)
        )
        state = replace(state, values=values, vectors=vectors)
        drift = _drift(state)
        if drift > DRIFT:
            state, drift = _refactorized(plan, state, threads=threads), 0.0
    k = min(plan.n_clusters, len(state.graph))
    F, weights = points(state.graph, state.values, state.vectors)
    clusters = relabelled(F, weights, state.clusters, k, max_iter=WARM_SWEEPS, threads=threads)
    clusters = exchanged(
        F, weights, clusters, k, rounds=EXCHANGES, max_iter=EXCHANGE_SWEEPS, threads=threads
    )
    clusters = _with_untied(state.graph, state.vectors, clusters)
    totals: FloatArray = np.zeros(k)
    totals[: state.n_clusters] = state.cluster_weights
    means, clusters, totals = _with_means(plan, state, clusters, totals)
    return replace(
        state,
        clusters=clusters,
        by_whole=whole_is_better(state.graph, k),
        means=means,
        cluster_weights=totals,
        pending=0,
        drift=drift,
    )


def _with_means(
    plan: Plan, state: Stream, clusters: IdArray, totals: FloatArray
) -> tuple[StreamMeans | None, IdArray, FloatArray]:
    """Means of all rows that came now that the buffer has these clusters, and their weights.

    Numbers stay with clusters. Those of the means are their own; if means end, the clusters of the
    buffer take the numbers of the means that most of their rows belonged to.
    """
    k, graph, before = len(totals), state.graph, state.means
    means, found = None, None
    if plan.keeps_means and whole_is_better(graph, k):
        rng = np.random.default_rng([plan.key, 5, state.n_batches])
        if before is not None:
            found = before.reclustered(graph, clusters, totals, rng)
        else:
            means = stream_means(graph, clusters, k, rng)
    if found is not None:
        return found[0], clusters, found[1]
    had_rows = np.bincount(state.clusters, minlength=k) > 0
    if before is not None:
        clusters, had_rows = _renamed(clusters, state.labels(), k)
    return means, clusters, np.where(had_rows, totals, 0.0)


def _renamed(
    clusters: IdArray, labels: IdArray, n_clusters: int
) -> tuple[IdArray, NDArray[np.bool_]]:
    """The clusters by the numbers of the labels they share most rows with; which share any."""
    shared = np.zeros((n_clusters, n_clusters))
    np.add.at(shared, (clusters, labels), 1.0)
    rows, names = linear_sum_assignment(shared, maximize=True)
    is_known = np.zeros(n_clusters, bool)
    is_known[names] = shared[rows, names] > 0
    return names[clusters], is_known


def row_draws(key: int, first_row: int, n_rows: int) -> FloatArray:
    """A uniform number for each row, at the row's number of a counter-based stream."""
    skipped = first_row % 4  # one step of the counter gives four numbers
    bits = np.random.Philox(key=key)
    bits.advance(first_row // 4)
    return np.random.Generator(bits).random(n_rows + skipped)[skipped:]


def _unseen(
    state: Stream, rows: Rows, weights: FloatArray
) -> tuple[Rows, IdArray, FloatArray, Stream]:
    """The rows that the buffer has not, one of each kind; those it has make its own heavier."""
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


def _looked_at(
    plan: Plan, state: Stream, rows: Rows, weights: FloatArray, *, threads: int
) -> tuple[FloatArray, Ties, IdArray]:
    """Leverage, ties and clusters of the buffer, of new rows by the state as it is."""
    graph = state.graph
    largest = max(_magnitude(rows), _magnitude(graph.rows))
    dtype = np.float64 if largest > LARGEST_SINGLE else graph.format.dtype.type
    centers = state.buffer_means()
    rows, ties_of = cast(rows, dtype), centers.view(dtype, nearest=False)
    ridge = _ridge(plan, state)

    def look(start: int) -> tuple[FloatArray, Ties, IdArray]:
        stop = start + WORK_ROWS
        ties = ties_of(part(rows, start, stop), weights[start:stop])
        labels = centers.nearest(ties)[0]
        if plan.sampling == "uniform":
            return np.zeros(len(ties)), ties, labels
        phi, kappa = graph.normalized(ties), graph.own_entries(ties)
        A = np.asarray(phi @ state.vectors)
        rest = squared_remainders(phi, A)
        if plan.sampling == "ridge":
            return ridge_leverage(A, rest, kappa, state.values, ridge), ties, labels
        return secular_leverage(A, rest, kappa, state.values), ties, labels

    parts = list(in_order(look, range(0, rows.shape[0], WORK_ROWS), threads))
    labels = np.concatenate([labels for _, _, labels in parts])
    labels[labels < 0] = _largest_cluster(state)  # tied to nothing
    return np.concatenate([p[0] for p in parts]), Ties.stacked([p[1] for p in parts]), labels


def _with_untied(graph: NeighborKernel, vectors: FloatArray, clusters: IdArray) -> IdArray:
    """Rows that are tied to none but themselves go with the most similar row that is.

    Unless they hold an eigenvector by themselves: then they are a cluster.
    """
    entries = sp.csr_array(graph.matrix)
    n_ties = np.diff(entries.indptr) - (entries.diagonal() != 0)
    is_held = leverage_of_rows(vectors) > HELD
    untied, tied = np.flatnonzero((n_ties == 0) & ~is_held), np.flatnonzero(n_ties > 0)
    if not len(untied) or not len(tied):
        return clusters
    clusters, similar = clusters.copy(), graph.kernel.against(take(graph.rows, tied))
    for start in range(0, len(untied), WORK_ROWS):
        ids = untied[start : start + WORK_ROWS]
        clusters[ids] = clusters[tied[similar(take(graph.rows, ids)).argmax(axis=1)]]
    return clusters


def _magnitude(rows: Rows) -> float:
    """The largest absolute value."""
    parts = rows.parts if isinstance(rows, BlockRows) else (rows,)
    values = [piece.data if sp.issparse(piece) else piece for piece in parts]
    return max(float(np.abs(some).max(initial=0.0)) for some in values)


def _chances(plan: Plan, state: Stream, leverage: FloatArray, row_numbers: IdArray) -> FloatArray:
    """The probability with which each new row joins the buffer (eq. 3, times `oversample`).

    Leverage: no more additions are expected than keep the cost of a batch bounded. Uniform: each
    row that ever came is in the buffer with the same probability. Forgetting adds that share of
    the buffer in rows of this batch, whatever they are: leverage alone is blind to what is new.
    """
    if plan.sampling == "uniform":
        chances = np.minimum(1.0, plan.max_size / (row_numbers + 1.0))
    else:
        chances = np.minimum(1.0, leverage * plan.oversample / plan.n_clusters)
        share = GROWING if len(state.graph) < plan.max_size else ADDITIONS
        most = max(LEAST_ADDITIONS, share * plan.n_clusters)
        chances *= min(1.0, most / max(float(chances.sum()), 1.0))
    fresh = min(1.0, plan.forgetting * plan.max_size / len(leverage))
    return 1.0 - (1.0 - chances) * (1.0 - fresh)


def _with_rows(
    plan: Plan,
    state: Stream,
    rows: Rows,
    ties: Ties,
    clusters: IdArray,
    *,
    threads: int,
) -> Stream:
    """Steps 12 and 13: rows join the buffer, and those of least leverage leave it if it is full."""
    graph, n_new = state.graph, len(ties)
    ties, phi, K_bb = graph.joining(rows, ties)
    is_new = state.turnover + n_new > TURNOVER * len(graph)
    if not is_new:
        rank = min(plan.n_clusters, len(graph) + n_new)
        values, vectors = append(graph.matrix, state.values, state.vectors, phi.T, K_bb, rank)
        state = replace(state, values=values, vectors=vectors)
    state = replace(
        state,
        graph=graph.with_rows(rows, ties, phi, K_bb),
        clusters=np.r_[state.clusters, clusters],
        born=np.r_[state.born, np.full(n_new, state.n_batches)],
        additions=state.additions + n_new,
        pending=state.pending + n_new,
        turnover=state.turnover + n_new,
    )
    if is_new:
        state = _refactorized(plan, state, threads=threads)
    n_gone = len(state.graph) - plan.max_size
    return _without_rows(plan, state, n_gone) if n_gone > 0 else state


def _without_rows(plan: Plan, state: Stream, n_gone: int) -> Stream:
    """The rows that hold least of the eigenspace leave; forgetting makes old rows hold less."""
    if plan.sampling == "uniform":
        rng = np.random.default_rng([plan.key, 2, state.n_batches])
        scores = (state.born == state.n_batches) + rng.random(len(state.born))
    else:
        scores = leverage_of_rows(state.vectors)
    scores = scores * (1.0 - plan.forgetting) ** (state.n_batches - state.born)
    keep = rows_to_keep(scores, n_gone)
    graph = state.graph.kept(keep)
    values, vectors = evict(graph.matrix, state.values, state.vectors, keep)
    return replace(
        state,
        graph=graph,
        values=values,
        vectors=vectors,
        clusters=state.clusters[keep],
        born=state.born[keep],
        evictions=state.evictions + n_gone,
    )


def _refactorized(plan: Plan, state: Stream, *, threads: int) -> Stream:
    """Ties, degrees and eigenpairs of the buffer made anew; the vectors there are begin."""
    graph = remade(state.graph, threads=threads)
    count = state.refactorizations + 1
    values, vectors = _eigenpairs(plan, graph, count, state)
    return replace(
        state, graph=graph, values=values, vectors=vectors, refactorizations=count, turnover=0
    )


def _eigenpairs(
    plan: Plan, graph: NeighborKernel, count: int, state: Stream | None = None
) -> tuple[FloatArray, FloatArray]:
    """The leading eigenpairs of the graph's matrix, from those of the state if there is one."""
    rng = np.random.default_rng([plan.key, 3, count])
    rank = min(plan.n_clusters, len(graph))
    start = None if state is None else (state.values, state.vectors)
    pairs = leading_eigenpairs(graph.matrix, rank, tol=EIGEN_TOLERANCE, start=start, rng=rng)
    return positive(pairs.values, pairs.vectors)


def _drift(state: Stream) -> float:
    """‖KV - Vλ‖ / ‖λ‖: how far the pairs are from being eigenpairs of the buffer's kernel."""
    found = residuals(state.graph.matrix, state.values, state.vectors)
    return float(np.linalg.norm(found) / np.linalg.norm(state.values))


def _ridge(plan: Plan, state: Stream) -> float:
    """g = (tr K - Σλ)/C, what the discarded eigenvalues leave to each of the kept."""
    trace = float(state.graph.matrix.diagonal().sum())
    least = LEAST_RIDGE * trace / len(state.graph)
    return max((trace - float(state.values.sum())) / plan.n_clusters, least)


def _largest_cluster(state: Stream) -> int:
    return int(state.cluster_weights.argmax())
