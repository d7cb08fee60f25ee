"""Means of all rows of a stream, in the Nyström features of a few rows of its buffer.

A buffer that holds ten rows of each cluster estimates their mean from ten rows, while a stream
brings thousands. Nyström features F(x) of some buffer rows, the *pivots*, make the whole kernel a
product of short vectors, so the mean of all rows nearest to a centre can be updated batch by batch:
mini-batch k-means, started from the clusters of the buffer. That needs a kernel wide enough for few
pivots; otherwise a cluster is represented by its buffer rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.records import Record, stored
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import Surroundings
from mercer.factors.dense import PivotFactor
from mercer.factors.mutual import NeighborKernel
from mercer.factors.nystrom import Nystrom
from mercer.kernels.base import NOTHING
from mercer.linalg.lloyd import nearest_center, scores_of_centers, sums_by_label
from mercer.linalg.products import row_products
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, cast, part, take
from mercer.rows.sample import Sample
from mercer.stream.warm_start import label_means, label_sums

PIVOTS = 256  # 512 and 1,024 were measured to be no better
SEEN = 0.9  # of the buffer's squared lengths in the features: below, some clusters are hidden
FADED = 0.95  # of that share when the pivots were chosen: below, others are chosen
ROUNDS = 3  # of exchanges, at every clustering
ALONE = 1e-9  # of a row's weight: less in the rest of its cluster counts as nothing
WORK_ROWS = 2048  # rows whose scores are held at once


@frozen
class StreamMeans(Record):
    """Means of rows at length 1 in feature space, z = F(x) / √k(x, x), and their weights.

    A row belongs to the mean at the smallest angle. (By distance, rows near to no mean would all go
    to the shortest, and make it shorter.)
    """

    factor: PivotFactor = stored(PivotFactor)
    centers: FloatArray = stored("(k, r) float64, finite")
    counts: FloatArray = stored("(k,) float64, finite, >= 0")  # the weight behind each
    # share of the buffer's squared lengths in the features when pivots were chosen
    seen: float = stored("float, finite, > 0")

    def sizes(self) -> dict[str, int]:
        """k: clusters; d: columns of rows."""
        return {"k": len(self.counts), "d": int(self.factor.pivots.shape[1])}

    @property
    def format(self) -> RowFormat:
        return self.factor.format

    def view(
        self, dtype: Any = np.float64, *, nearest: bool = True
    ) -> Callable[[Rows], FloatArray]:
        """Rows in format → z."""
        kernel, features, mix = self.factor.kernel, self.factor.features(dtype), self.factor.mix

        def of_rows(X: Rows) -> FloatArray:
            X = cast(X, dtype)
            Z = row_products(np.asarray(features(X), dtype), mix.astype(dtype))
            lengths = np.sqrt(np.maximum(np.asarray(kernel.diagonal(X), dtype), 0))
            Z /= np.where(lengths > 0, lengths, 1)[:, None]
            return Z

        return of_rows

    def nearest(self, Z: FloatArray) -> tuple[IdArray, FloatArray]:
        """Labels, and scores -2 cos(z, c)."""
        blocks = [Z[at : at + WORK_ROWS] for at in range(0, len(Z), WORK_ROWS)] or [Z]
        found = [nearest_center(self.scores(block)) for block in blocks]
        labels, scores = zip(*found, strict=True)
        return np.concatenate(labels), np.concatenate(scores)

    def scores(self, Z: FloatArray) -> FloatArray:
        """-2 cos(z, c) for every mean; inf for those of no rows."""
        lengths = np.sqrt(np.einsum("kr,kr->k", self.centers, self.centers))
        is_there = (self.counts > 0) & (lengths > 0)
        scale = np.where(is_there, -2.0 / np.where(is_there, lengths, 1.0), 0.0)
        scores = row_products(Z, np.ascontiguousarray((self.centers * scale[:, None]).T))
        if not is_there.all():
            scores[:, ~is_there] = np.inf
        return scores

    def lengths_of(self, Z: FloatArray) -> FloatArray:
        """What turns scores into squared distances: rows and means have length 1."""
        return np.full(len(Z), 2.0)

    def n_unseen(self, X: Rows, Z: FloatArray, scores: FloatArray) -> int:
        """How many of these rows are similar to no pivot: at a right angle to every mean."""
        ids = np.flatnonzero(np.abs(scores) <= NOTHING)
        return int((~self.factor.kernel.sees(take(X, ids), Z[ids])).sum()) if len(ids) else 0

    def around(self, Z: FloatArray, labels: IdArray, scores: FloatArray) -> Surroundings:
        """By the similarity to the nearest mean, and its distance beside the second."""
        squares = np.maximum(self.scores(Z) + 2.0, 0.0)
        return Surroundings.of_distances(labels, -scores / 2.0, np.sqrt(squares))

    def labels(self, graph: NeighborKernel) -> IdArray:
        """Of the buffer's rows."""
        return self.nearest(_buffer_view(graph, self.view()))[0]

    def absorb(
        self, rows: Rows, weights: FloatArray, *, decay: float = 1.0, threads: int = 1
    ) -> tuple[StreamMeans, FloatArray]:
        """The means after these rows joined those they belong to, and the weight each gained.

        `decay` multiplies the weight of the rows before.
        """
        view, k = self.view(), len(self.counts)

        def add_up(start: int) -> tuple[FloatArray, FloatArray, FloatArray]:
            Z = view(part(rows, start, start + WORK_ROWS))
            labels, w = self.nearest(Z)[0], weights[start : start + WORK_ROWS]
            has_direction = np.where(Z.any(axis=1), w, 0.0)
            return *sums_by_label(Z, labels, has_direction, k), label_sums(w, labels, k)

        sums, added, all_added = np.zeros_like(self.centers), np.zeros(k), np.zeros(k)
        for more, some, w in in_order(add_up, range(0, rows.shape[0], WORK_ROWS), threads):
            sums += more
            added += some
            all_added += w
        before = decay * self.counts
        counts = before + added
        means = (before[:, None] * self.centers + sums) / np.where(counts > 0, counts, 1)[:, None]
        centers = np.where(added[:, None] > 0, means, self.centers)
        return replace(self, centers=centers, counts=counts), all_added

    def recluster(
        self,
        graph: NeighborKernel,
        clusters: IdArray,
        cluster_weights: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[StreamMeans, FloatArray] | None:
        """The means after the buffer was clustered again, and the weights of their clusters.

        The buffer's clusters are candidates for means. Those whose rows gain most replace the means
        whose rows lose least, while the gain exceeds the loss. All other means stay: they are of
        more rows. None if no pivots represent the buffer any more.
        """
        Z, means = _buffer_view(graph, self.view()), self
        if _seen(Z) < FADED * self.seen:
            found = self._with_new_pivots(graph, rng)
            if found is None:
                return None
            means, Z = found
        k, n_clusters, w = len(means.counts), len(cluster_weights), graph.weights
        places = label_means(Z, w, clusters, n_clusters)
        counts = label_sums(w, clusters, n_clusters)
        means = replace(
            means,
            centers=np.concatenate([means.centers, places[k:]]),
            counts=np.concatenate([means.counts, counts[k:]]),
        )
        for _ in range(ROUNDS):
            labels, heirs, losses = means._losses(Z, w)
            to, of = _choose_exchanges(
                means._gains(Z, w, clusters, places, counts), losses, labels, heirs
            )
            if not len(of):
                break
            cluster_weights = _bequeath(cluster_weights, of, labels, heirs, w)
            centers, behind = means.centers.copy(), means.counts.copy()
            centers[of], behind[of] = places[to], counts[to]
            means = replace(means, centers=centers, counts=behind)
        return means, cluster_weights

    def renumber(self, order: IdArray) -> StreamMeans:
        return replace(self, centers=self.centers[order], counts=self.counts[order])

    def _losses(self, Z: FloatArray, weights: FloatArray) -> tuple[IdArray, IdArray, FloatArray]:
        """The nearest mean of each row, the next nearest (its heir), and the loss without each.

        By squared distances, as the gains: angles do not measure how much is lost.
        """
        scores, rows = self._distances(Z), np.arange(len(Z))
        labels, own = nearest_center(scores)
        scores[rows, labels] = np.inf
        heirs, next_best = nearest_center(scores)
        return labels, heirs, label_sums(weights * (next_best - own), labels, len(self.counts))

    def _gains(
        self,
        Z: FloatArray,
        weights: FloatArray,
        clusters: IdArray,
        places: FloatArray,
        counts: FloatArray,
    ) -> FloatArray:
        """What the rows of each cluster would gain by a mean at its place.

        Few rows are always near their own mean. So each is compared with the mean of the others of
        its cluster, which is W/(W - w) times as far; a single row is ignored.
        """
        others = counts[clusters] - weights
        has_others = others > ALONE * weights
        farther = counts[clusters] / np.where(has_others, others, 1.0)
        apart = Z - places[clusters]
        cost = np.einsum("ij,ij->i", apart, apart) * farther**2
        saved = nearest_center(self._distances(Z))[1] + np.einsum("ij,ij->i", Z, Z) - cost
        saved = np.where(has_others, weights * np.maximum(saved, 0.0), 0.0)
        return label_sums(saved, clusters, len(self.counts))

    def _distances(self, Z: FloatArray) -> FloatArray:
        """‖z - c‖² - ‖z‖²."""
        A, b = scores_of_centers(self.centers)
        scores = row_products(Z, A)
        scores += b
        return scores

    def _with_new_pivots(
        self, graph: NeighborKernel, rng: np.random.Generator
    ) -> tuple[StreamMeans, FloatArray] | None:
        """The same means in features of new pivots, and the buffer in these features.

        A centre is Σ_b (mix c)_b φ(b) over the old pivots b, which is projected on the new
        ones; the weight behind it falls with the share that is lost.
        """
        found = _pivots(graph, rng)
        if found is None:
            return None
        factor, Z = found
        across = self.factor.kernel.matrix(self.factor.pivots, factor.pivots) @ factor.mix
        centers = self.centers @ (self.factor.mix.T @ across)
        before, now = (np.einsum("kr,kr->k", c, c) for c in (self.centers, centers))
        share = np.divide(now, before, out=np.zeros_like(now), where=before > 0)
        counts = self.counts * np.minimum(share, 1.0)
        return StreamMeans(factor, centers, counts, _seen(Z)), Z


def start_means(
    graph: NeighborKernel, clusters: IdArray, n_clusters: int, rng: np.random.Generator
) -> StreamMeans | None:
    """Means of the buffer's clusters, to start with; None if no pivots represent the buffer."""
    found = _pivots(graph, rng)
    if found is None:
        return None
    factor, Z = found
    centers = label_means(Z, graph.weights, clusters, n_clusters)
    return StreamMeans(factor, centers, label_sums(graph.weights, clusters, n_clusters), _seen(Z))


def _choose_exchanges(
    gains: FloatArray, losses: FloatArray, labels: IdArray, heirs: IdArray
) -> tuple[IdArray, IdArray]:
    """Clusters that get a mean, by decreasing gain, and the means that move, by growing loss.

    Of a mean and the heir of its rows, one stays: the loss assumes so.
    """
    k = len(losses)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(k + 1))
    to = np.argsort(-gains, kind="stable")
    of: list[int] = []
    is_needed, has_left = np.zeros(k, bool), np.zeros(k, bool)
    for mean in np.argsort(losses, kind="stable"):
        if len(of) == k or losses[mean] >= gains[to[len(of)]]:
            break
        its_heirs = heirs[order[starts[mean] : starts[mean + 1]]]
        if not is_needed[mean] and not has_left[its_heirs].any():
            of.append(int(mean))
            has_left[mean], is_needed[its_heirs] = True, True
    return to[: len(of)], np.array(of, np.intp)


def _bequeath(
    cluster_weights: FloatArray, of: IdArray, labels: IdArray, heirs: IdArray, weights: FloatArray
) -> FloatArray:
    """Weights of clusters after those of means that leave go to the heirs of their rows."""
    k = len(cluster_weights)
    has_left = np.zeros(k, bool)
    has_left[of] = True
    rows = np.flatnonzero(has_left[labels])
    share = weights[rows] / label_sums(weights, labels, k)[labels[rows]]
    inherited = label_sums(share * cluster_weights[labels[rows]], heirs[rows], k)
    return np.where(has_left, 0.0, cluster_weights) + inherited


def _pivots(
    graph: NeighborKernel, rng: np.random.Generator
) -> tuple[PivotFactor, FloatArray] | None:
    """Pivots, and the buffer in their features; None if they represent too little of it."""
    ids, ones = np.arange(len(graph)), np.ones(len(graph))
    sample = Sample(cast(graph.rows, graph.format.dtype), ones, ids, graph.format)
    factor = Nystrom(PIVOTS).fit(graph.kernel, sample, rng=rng).forget_training()
    none = StreamMeans(factor, np.zeros((0, factor.rank)), np.zeros(0), 0.0)
    Z = _buffer_view(graph, none.view())
    return (factor, Z) if _seen(Z) >= SEEN else None


def _seen(Z: FloatArray) -> float:
    """Mean ‖z‖²: 1 if the features represent the rows exactly."""
    return float(np.einsum("ij,ij->", Z, Z) / len(Z))


def _buffer_view(graph: NeighborKernel, view: Callable[[Rows], FloatArray]) -> FloatArray:
    starts = range(0, len(graph), WORK_ROWS)
    return np.concatenate([view(part(graph.rows, at, at + WORK_ROWS)) for at in starts])
