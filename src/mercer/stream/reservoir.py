"""Very many clusters of a stream: means of all rows, started and corrected on a reservoir.

Eigenvectors for a thousand clusters cost a thousand times as many numbers as rows, and a buffer has
ten rows of each. So here there are none. A *reservoir* holds a uniform sample of the rows seen;
k-means with centres that move (`cluster_many`) finds the clusters in it, the mean of each is then
updated by every row that comes, and when the reservoir has been replaced by as many rows as it had,
the clusters are searched again from the present means.

Means are taken of the rows themselves where the kernel is a Gaussian one of dense rows: of two
means the nearer is the more similar whatever the bandwidth. Other kernels and sparse rows are
represented by Nyström features at length 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._run.budget import Budget
from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.factors.dense import PivotFactor
from mercer.factors.nystrom import Nystrom
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.linalg.lloyd import sums_by_label
from mercer.linalg.numbering import numbering
from mercer.partitions.center_index import CenterIndex, build_index
from mercer.partitions.many_means import ManyMeans, cluster_many, seed_centers
from mercer.partitions.resampling import Resampler, by_centers
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, part, stack, take
from mercer.rows.sample import Sample
from mercer.stream.buffer import Reservoir
from mercer.stream.draws import largest_value, row_draws, smooth
from mercer.stream.reservoir_means import ReservoirMeans, coordinates_of, serves_plainly
from mercer.stream.running_means import PIVOTS
from mercer.stream.state import MOST_RESAMPLED
from mercer.stream.warm_start import label_sums

WORK_ROWS = 8192  # rows of a batch that one thread assigns
FIRST_ROWS = 60  # per cluster: the moves of a start are made on as many rows of the reservoir
FIRST_ROUNDS = 20  # of moves on these,
NEXT_ROUNDS = 8  # and on all rows of a start
PROVISIONAL_ROUNDS = 2  # of a model that is replaced as soon as there are more rows
WARM_ROUNDS = 6  # when clusters are searched again
EXPLAINED = 0.99  # of the reservoir's rows: others as far from their means are unexplained
LARGEST_SINGLE = 1e9  # squares of larger float32 values lose digits or overflow


@frozen
class ReservoirSettings:
    """The parameters of a stream of very many clusters, with numbers in place of None."""

    n_clusters: int
    initial_size: int
    max_size: int
    batch_size: int
    recluster_every: int | None
    forgetting: float
    max_iter: int
    threads: int
    key: int  # of all draws
    draws_rows: bool = True  # into the reservoir; `fit` starts with a sample of all rows
    first_rounds: int = FIRST_ROUNDS

    @property
    def first_rows(self) -> int:
        """Rows that `fit` starts with."""
        return self.max_size

    def for_fit(self) -> ReservoirSettings:
        return replace(self, draws_rows=False)

    def for_provisional(self) -> ReservoirSettings:
        """The settings of a model of the first rows while more are awaited: a quick one."""
        return replace(self, first_rounds=PROVISIONAL_ROUNDS)

    def demand(self, budget: Budget, n_rows: int, n_features: int) -> None:
        """Refuse a reservoir that does not fit, before the work."""
        size = self.max_size if self.draws_rows else min(self.max_size, n_rows)
        Reservoir(size, self.n_clusters).demand(budget, n_features)

    def start(self, problem: Problem, n_rows: int) -> ReservoirStream:
        return start_reservoir(self, problem, n_rows)

    def absorb(self, state: ReservoirStream, rows: Rows, weights: FloatArray) -> ReservoirStream:
        return absorb_rows(self, state, rows, weights)

    def finish(self, state: ReservoirStream) -> ReservoirStream:
        """Nothing is left to do when a stream ends."""
        return state


@frozen
class ReservoirStream(Record):
    """The state of a stream of very many clusters."""

    kernel: Kernel = stored(Kernel)
    format: RowFormat = stored(RowFormat)
    rows: Rows = stored("(s, d) rows")  # the reservoir, in `format`
    weights: FloatArray = stored("(s,) float64, finite, > 0")
    centers: FloatArray = stored("(k, r) float64, finite")
    counts: FloatArray = stored("(k,) float64, finite, >= 0")  # the weight behind each mean
    # of the rows seen, by the clusters they had when they came or the share of the reservoir since
    cluster_weights: FloatArray = stored("(k,) float64, finite, >= 0")
    limit: float = stored("float, finite, >= 0")  # squared distance of rows that are explained
    factor: PivotFactor | None = stored(PivotFactor | None, None)
    index: CenterIndex | None = stored(CenterIndex | None, None)
    n_seen: int = stored("int, >= 0", 0)
    n_batches: int = stored("int, >= 0", 0)
    additions: int = stored("int, >= 0", 0)  # rows that joined the reservoir,
    evictions: int = stored("int, >= 0", 0)  # and those they replaced
    births: int = stored("int, >= 0", 0)  # clusters that began, each where another ended
    clusterings: int = stored("int, >= 0", 0)
    pending: int = stored("int, >= 0", 0)  # additions since the last clustering,
    n_clustered: int = stored("int, >= 0", 0)  # and the rows that the reservoir had then
    unexplained: float = stored("float, in [0, 1]", 0.0)  # share of the latest rows
    is_provisional: bool = stored("bool", False)  # of the first rows of a queue still filling
    # a power of two: what a weight of 1 is in the user's units
    weight_unit: float = stored("float, finite, > 0", 1.0)
    n_iter: int = stored("int, >= 0", 0)  # sweeps of the first k-means
    is_converged: bool = stored("bool", True)

    def sizes(self) -> dict[str, int]:
        """d: columns of rows; k: clusters."""
        return {"d": int(self.rows.shape[1]), "k": len(self.counts)}

    def check(self) -> None:
        """The means belong to the rows."""
        self.format.check_fits(self.rows)
        expect(len(self.counts) <= len(self), "there are more clusters than rows of the reservoir")
        expect(np.frexp(self.weight_unit)[0] == 0.5, "weight_unit is not a power of two")
        if self.factor is not None:
            is_same = self.factor.format.is_same(self.format)
            is_same = is_same and repr(self.factor.kernel) == repr(self.kernel)
            expect(is_same, "the features of the means are of another kernel or row format")
            width = self.factor.rank
        else:
            expect(serves_plainly(self.kernel, self.rows), "the means need features of the rows")
            width = self.kernel.select(part(self.rows, 0, 1)).shape[1]
        expect(self.centers.shape[1] == width, "the means have another number of coordinates")
        if self.index is not None:
            sizes = {"k": len(self.counts), "r": int(width)}
            expect(self.index.sizes() == sizes, "the index does not belong to the means")

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    is_reservoir = True
    by_whole = False

    @property
    def n_clusters(self) -> int:
        return len(self.counts)

    @property
    def buffer_rows(self) -> Rows:
        return self.rows

    def means(self) -> ReservoirMeans:
        return ReservoirMeans(self.kernel, self.format, self.factor, self.centers, self.index)

    def centers_of(self, kind: str) -> ReservoirMeans:
        return self.means()

    def labels(self) -> IdArray:
        """The labels of the reservoir's rows, decided as for any other row."""
        means = self.means()
        return means.search()(coordinates_of(means, self.rows, np.float64))[0]

    def raw_kernel(self) -> Kernel:
        """The kernel as a function of raw rows: what users see."""
        return self.kernel.in_units(-self.format.exponent)

    def user_weights(self) -> FloatArray:
        """What the clusters weigh in the user's units: (k,)."""
        return self.cluster_weights * self.weight_unit

    def renumber(self, order: IdArray, weights: FloatArray) -> ReservoirStream:
        """The same clusters in another order, with these weights."""
        index = None if self.index is None else self.index.renumber(order)
        return replace(
            self,
            centers=self.centers[order],
            counts=self.counts[order],
            cluster_weights=weights[order],
            index=index,
        )

    def eigenpairs(self) -> tuple[FloatArray, FloatArray]:
        raise AttributeError("a stream of very many clusters has no eigenvectors")

    def resampler(self) -> Resampler:
        """How to cluster parts of the reservoir again; of no rows where that is expensive."""
        k = self.n_clusters
        if len(self) * self.centers.shape[1] * k > MOST_RESAMPLED:
            return by_centers(np.zeros((0, 1)), np.zeros(0), k)
        return by_centers(coordinates_of(self.means(), self.rows, np.float64), self.weights, k)

    def report_fields(self, centers: str) -> dict[str, Any]:
        """What the fit report says of this state."""
        space = "rows" if self.factor is None else f"{self.factor.rank} features of rows"
        found: dict[str, Any] = {
            "additions": self.additions,
            "evictions": self.evictions,
            "births": self.births,
            "deaths": self.births,
            "clusterings": self.clusterings,
            "n_batches": self.n_batches,
            "unexplained": self.unexplained,
            "buffer": len(self),
        }
        if self.index is not None:
            found["recall"] = self.index.recall
        return {
            "approximation": f"means of all {space}, clusters found in a reservoir",
            "rank": int(self.centers.shape[1]),
            "eigenvalues": (),
            "stream": found,
        }


def start_reservoir(settings: ReservoirSettings, problem: Problem, n_rows: int) -> ReservoirStream:
    """The clusters of the first rows."""
    sample, kernel, size = problem.sample, problem.kernel, settings.max_size
    assert kernel is not None
    rows, weights = part(sample.rows, 0, size), sample.weights[:size].copy()
    k = min(settings.n_clusters, len(weights))
    factor = None
    if not serves_plainly(kernel, rows):
        few = part(rows, 0, FIRST_ROWS * settings.n_clusters)
        ids = np.arange(few.shape[0])
        basis = Sample(few, np.ones(len(ids)), ids, sample.format)
        rng = np.random.default_rng([settings.key, 5])
        factor = Nystrom(PIVOTS).fit(kernel, basis, rng=rng).forget_training()
    rows = take(rows, np.arange(len(weights)))
    none = np.zeros((0, 1))
    means = ReservoirMeans(kernel, sample.format, factor, none, None)
    Z = coordinates_of(means, rows, _dtype(rows, sample.format))
    first = _first_clusters(settings, Z, weights, k)
    state = ReservoirStream(
        kernel, sample.format, rows, weights, first.centers, np.zeros(k), np.zeros(k), 0.0, factor,
        n_seen=n_rows, weight_unit=problem.weight_unit,
        n_iter=first.n_iter, is_converged=first.is_converged,
    )  # fmt: skip
    rounds = NEXT_ROUNDS if len(Z) > len(first.labels) else 0
    found = _with_centers(settings, state, Z, first.centers, rounds)
    order = numbering(found.cluster_weights, found.centers)
    return replace(found.renumber(order, found.cluster_weights), births=0)


def absorb_rows(
    settings: ReservoirSettings, state: ReservoirStream, rows: Rows, weights: FloatArray
) -> ReservoirStream:
    """A batch: every row joins the mean of its cluster, some join the reservoir."""
    first_row, n_rows, decay = state.n_seen, int(rows.shape[0]), 1.0 - settings.forgetting
    if not n_rows:
        return replace(state, n_batches=state.n_batches + 1)
    means, k = state.means(), state.n_clusters
    view, search = means.view(_dtype(rows, state.format)), means.search()

    def add_up(start: int) -> tuple[FloatArray, FloatArray, float]:
        Z, w = view(part(rows, start, start + WORK_ROWS)), weights[start : start + WORK_ROWS]
        labels, squares = search(Z)
        far = float((squares > state.limit).sum())
        return *sums_by_label(Z, labels, w, k), far

    sums, added, n_far = np.zeros_like(state.centers), np.zeros(k), 0.0
    for more, some, far in in_order(add_up, range(0, n_rows, WORK_ROWS), settings.threads):
        sums += more
        added += some
        n_far += far
    before = decay * state.counts
    counts = before + added
    moved = (before[:, None] * state.centers + sums) / np.where(counts > 0, counts, 1.0)[:, None]
    share = n_far / n_rows
    state = replace(
        state,
        centers=np.where(added[:, None] > 0, moved, state.centers),
        counts=counts,
        cluster_weights=decay * state.cluster_weights + added,
        n_seen=first_row + n_rows,
        n_batches=state.n_batches + 1,
        unexplained=share if not state.n_batches else smooth(state.unexplained, share),
    )
    if settings.draws_rows:
        state = _draw_rows(settings, state, rows, weights, first_row)
    every = settings.recluster_every or state.n_clustered
    is_full = state.n_clustered < len(state) == settings.max_size  # for the first time
    return search_clusters(settings, state) if is_full or state.pending >= every else state


def search_clusters(settings: ReservoirSettings, state: ReservoirStream) -> ReservoirStream:
    """Find the clusters of the reservoir again, from the present means."""
    k = min(settings.n_clusters, len(state))
    Z = coordinates_of(state.means(), state.rows, _dtype(state.rows, state.format))
    centers = state.centers
    if len(centers) < k:  # the first rows were fewer than the clusters that are asked for
        centers = _first_clusters(settings, Z, state.weights, k).centers
    return _with_centers(settings, state, Z, centers, WARM_ROUNDS)


def _first_clusters(
    settings: ReservoirSettings, Z: FloatArray, weights: FloatArray, k: int
) -> ManyMeans:
    """The clusters of a start, made on some of the rows."""
    rng, few = np.random.default_rng([settings.key, 1]), max(FIRST_ROWS * k, 1)
    centers = seed_centers(Z[:few], weights[:few], k, rng=rng)
    return cluster_many(
        Z[:few], weights[:few], centers,
        rounds=settings.first_rounds, max_iter=settings.max_iter, rng=rng,
        threads=settings.threads,
    )  # fmt: skip


def _with_centers(
    settings: ReservoirSettings, state: ReservoirStream, Z: FloatArray, centers: FloatArray,
    rounds: int,
) -> ReservoirStream:  # fmt: skip
    """The state after k-means of the reservoir from these centres."""
    rng = np.random.default_rng([settings.key, 2, state.n_batches])
    found = cluster_many(
        Z, state.weights, centers,
        rounds=rounds, max_iter=settings.max_iter, rng=rng, threads=settings.threads,
    )  # fmt: skip
    k = len(found.centers)
    counts = label_sums(state.weights, found.labels, k)
    total = float(state.cluster_weights.sum()) or float(counts.sum())
    return replace(
        state,
        centers=found.centers,
        counts=counts,
        cluster_weights=counts * (total / counts.sum()),
        limit=float(np.quantile(found.distances, EXPLAINED)),
        index=build_index(found.centers, Z, rng=rng),
        births=state.births + found.n_moves,
        clusterings=state.clusterings + 1,
        pending=0,
        n_clustered=len(state),
    )


def _draw_rows(
    settings: ReservoirSettings,
    state: ReservoirStream,
    rows: Rows,
    weights: FloatArray,
    first_row: int,
) -> ReservoirStream:
    """The reservoir with rows of this batch: each row seen is in it with the same probability.

    Forgetting replaces that share of it by rows of this batch.
    """
    size, held, n_rows = settings.max_size, len(state), len(weights)
    n_free = min(size - held, n_rows)
    draws = row_draws(settings.key, first_row, n_rows)
    numbers = np.arange(first_row + 1.0, first_row + n_rows + 1.0)
    fresh = min(1.0, settings.forgetting * size / n_rows)
    chances = 1.0 - (1.0 - np.minimum(size / numbers, 1.0)) * (1.0 - fresh)
    joins = np.flatnonzero(draws < chances)
    joins = joins[joins >= n_free]
    slots = (draws[joins] / chances[joins] * size).astype(np.intp)
    last = dict(zip(slots.tolist(), joins.tolist(), strict=True))  # the later of two stays
    kept_rows, kept = state.rows, state.weights
    if n_free:
        kept_rows = stack([kept_rows, part(rows, 0, n_free)])
        kept = np.concatenate([kept, weights[:n_free]])
    if last:
        n_held, ids = len(kept), np.arange(len(kept))
        places = np.fromiter(last, np.intp)
        new = np.fromiter(last.values(), np.intp)
        ids[places] = n_held + np.arange(len(new))
        kept_rows = take(stack([kept_rows, take(rows, new)]), ids)
        kept = np.concatenate([kept, weights[new]])[ids]
    return replace(
        state,
        rows=kept_rows,
        weights=kept,
        additions=state.additions + n_free + len(last),
        evictions=state.evictions + len(last),
        pending=state.pending + n_free + len(last),
    )


def _dtype(rows: Rows, row_format: RowFormat) -> Any:
    """The type of the rows, unless squares of these values would lose digits in float32."""
    return np.float64 if largest_value(rows) > LARGEST_SINGLE else row_format.dtype.type
