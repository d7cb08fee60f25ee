"""Centres that are means of all rows that came, as a few rows of the buffer see them.

A buffer that keeps ten rows of each cluster knows their mean no better than ten rows tell, and a
stream brings thousands. Nyström features F(x) of some buffer rows, the *pivots*, make the whole
kernel a product of short vectors, so the mean of everything that was nearest to a centre can go on
while rows pass: k-means in small batches, begun by the clusters of the buffer. It needs a kernel
that a few pivots see (a wide one); where they do not, a cluster is heard by its buffer rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._threads import in_order
from mercer._types import FloatArray, IdArray
from mercer.cluster.assignment import row_products
from mercer.data.format import RowFormat
from mercer.data.rows import Rows, cast, part
from mercer.data.sample import Sample
from mercer.factors.base import PivotFactor
from mercer.factors.neighbors import NeighborKernel
from mercer.factors.nystrom import Nystrom
from mercer.partitions.kmeans import nearest_center, scores_of_centers, sums_by_label
from mercer.partitions.warm import label_means, label_sums

__all__ = ["StreamMeans", "stream_means"]

PIVOTS = 256  # 512 and 1,024 were measured to be no better
SEEN = 0.5  # of the buffer's squared lengths, by the pivots: below, labels fall apart
FADED = 0.95  # of what they saw when chosen: time for others
ROUNDS = 3  # of moves, at every clustering
ALONE = 1e-9  # of a row's weight: less than this is nobody beside it
WORK_ROWS = 2048  # rows of a batch that one thread looks at


@dataclass(frozen=True, slots=True)
class StreamMeans:
    """Means of rows at length 1 in feature space, and of how many rows.

    ‖x - c‖² = 1 - 2⟨z, c⟩ + ‖c‖² with z = F(x) / √k(x, x).
    """

    factor: PivotFactor
    centers: FloatArray  # (k, r)
    counts: FloatArray  # (k,) the weight behind each
    seen: float  # share of the buffer's squared lengths that the pivots saw when chosen

    @property
    def format(self) -> RowFormat:
        return self.factor.format

    def view(self, dtype: Any, *, nearest: bool = True) -> Callable[[Rows], FloatArray]:
        """Rows in format → z; no row is without."""
        kernel, features = self.factor.kernel, self.factor.features(dtype)
        mix = self.factor.mix.astype(dtype)

        def of_rows(X: Rows) -> FloatArray:
            Z = row_products(np.asarray(features(X), dtype), mix)
            lengths = np.sqrt(np.maximum(np.asarray(kernel.diagonal(X), dtype), 0))
            Z /= np.where(lengths > 0, lengths, 1)[:, None]
            return Z

        return of_rows

    def nearest(self, Z: FloatArray) -> tuple[IdArray, FloatArray]:
        """Labels and scores ‖c‖² - 2⟨x, c⟩."""
        return nearest_center(self.scores(Z))

    def scores(self, Z: FloatArray) -> FloatArray:
        """‖c‖² - 2⟨x, c⟩ for every cluster."""
        A, b = scores_of_centers(self.centers)
        return row_products(Z, A.astype(Z.dtype)) + b.astype(Z.dtype)

    def lengths_of(self, Z: FloatArray) -> FloatArray:
        """‖x‖², beside which scores are distances."""
        return np.ones(len(Z))

    def after(
        self, rows: Rows, weights: FloatArray, *, decay: float = 1.0, threads: int = 1
    ) -> StreamMeans:
        """The means when these rows have joined those they are nearest to.

        `decay`: what the rows before still count.
        """
        view = self.view(self.factor.format.dtype.type)

        def joined(start: int) -> tuple[FloatArray, FloatArray]:
            Z = view(part(rows, start, start + WORK_ROWS))
            labels, w = self.nearest(Z)[0], weights[start : start + WORK_ROWS]
            return sums_by_label(Z, labels, w, len(self.centers))

        sums, added = np.zeros_like(self.centers), np.zeros_like(self.counts)
        for more, w in in_order(joined, range(0, rows.shape[0], WORK_ROWS), threads):
            sums += more
            added += w
        before = decay * self.counts
        counts = before + added
        share = before / np.where(counts > 0, counts, 1.0)
        means = share[:, None] * self.centers + sums / np.where(counts > 0, counts, 1.0)[:, None]
        return replace(
            self, centers=np.where(added[:, None] > 0, means, self.centers), counts=counts
        )

    def reclustered(
        self, graph: NeighborKernel, clusters: IdArray, n_clusters: int, rng: Any
    ) -> tuple[StreamMeans, NDArray[np.bool_]] | None:
        """The means after the buffer was clustered again, and which of them are others now.

        Its clusters are places where means might be. Those where the buffer's rows gain most take
        the means that these rows would miss least, while there is more to gain than to miss. All
        other means stay: they have seen more rows. None if there are no pivots any more.
        """
        means: StreamMeans | None = self
        if _seen(graph, self.view(np.float64)) < FADED * self.seen:
            means = self._by_others(graph, rng)
        if means is None:
            return None
        Z = _buffer_view(graph, means.view(np.float64))
        places = label_means(Z, graph.weights, clusters, n_clusters)
        counts = _counts(graph, clusters, n_clusters)
        k = len(means.counts)
        means = replace(
            means,
            centers=np.concatenate([means.centers, places[k:]]),
            counts=np.concatenate([means.counts, counts[k:]]),
        )
        is_other = np.arange(n_clusters) >= k
        for _ in range(ROUNDS):
            labels, heirs, losses = means._losses(Z, graph.weights)
            gains = means._gains(Z, graph.weights, clusters, places, counts)
            to, of = _exchanges(gains, losses, labels, heirs)
            if not len(of):
                break
            is_other[of] = True
            centers, behind = means.centers.copy(), means.counts.copy()
            centers[of], behind[of] = places[to], counts[to]
            means = replace(means, centers=centers, counts=behind)
        return means, is_other

    def _losses(self, Z: FloatArray, weights: FloatArray) -> tuple[IdArray, IdArray, FloatArray]:
        """The nearest mean of each row, the next nearest, and what rows would lose by each."""
        scores, rows = self.scores(Z), np.arange(len(Z))
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

        Few rows are always near their own mean, whatever they are. So each is compared with the
        mean of the others of its cluster, which is W/(W - w) times as far; one alone tells nothing.
        """
        others = counts[clusters] - weights
        has_others = others > ALONE * weights
        farther = counts[clusters] / np.where(has_others, others, 1.0)
        apart = Z - places[clusters]
        cost = np.einsum("ij,ij->i", apart, apart) * farther**2
        saved = self.nearest(Z)[1] + np.einsum("ij,ij->i", Z, Z) - cost
        saved = np.where(has_others, weights * np.maximum(saved, 0.0), 0.0)
        return label_sums(saved, clusters, len(self.counts))

    def renumbered(self, order: IdArray) -> StreamMeans:
        return replace(self, centers=self.centers[order], counts=self.counts[order])

    def _of_buffer(self, graph: NeighborKernel, clusters: IdArray, n_clusters: int) -> StreamMeans:
        """The same pivots, and means of the buffer's rows."""
        Z = _buffer_view(graph, self.view(np.float64))
        centers = label_means(Z, graph.weights, clusters, n_clusters)
        return replace(self, centers=centers, counts=_counts(graph, clusters, n_clusters))

    def _by_others(self, graph: NeighborKernel, rng: Any) -> StreamMeans | None:
        """The same means seen by rows that are in the buffer now.

        A centre is Σ_b (mix c)_b φ(b) over the old pivots b, so that is what the new ones see.
        """
        found = _pivots(graph, rng)
        if found is None:
            return None
        factor, seen = found
        across = self.factor.kernel.matrix(self.factor.pivots, factor.pivots) @ factor.mix
        return StreamMeans(factor, self.centers @ (self.factor.mix.T @ across), self.counts, seen)


def _exchanges(
    gains: FloatArray, losses: FloatArray, labels: IdArray, heirs: IdArray
) -> tuple[IdArray, IdArray]:
    """Places that are taken, by decreasing gain, and the means that go there, by growing loss.

    Of a mean and one that has its rows when it is gone, one stays: the loss is reckoned so.
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


def stream_means(
    graph: NeighborKernel, clusters: IdArray, n_clusters: int, rng: Any
) -> StreamMeans | None:
    """The means of the buffer's clusters, to begin with; None if no pivots see the buffer."""
    found = _pivots(graph, rng)
    if found is None:
        return None
    factor, seen = found
    empty = StreamMeans(factor, np.zeros((0, factor.rank)), np.zeros(0), seen)
    return empty._of_buffer(graph, clusters, n_clusters)


def _pivots(graph: NeighborKernel, rng: Any) -> tuple[PivotFactor, float] | None:
    """Rows of the buffer that see it, and how much of it."""
    sample = Sample(
        cast(graph.rows, graph.format.dtype),
        np.ones(len(graph)),
        np.arange(len(graph)),
        graph.format,
    )
    factor = Nystrom(PIVOTS).fit(graph.kernel, sample, rng=rng).forget_training()
    means = StreamMeans(factor, np.zeros((0, factor.rank)), np.zeros(0), 0.0)
    seen = _seen(graph, means.view(np.float64))
    return (factor, seen) if seen >= SEEN else None


def _seen(graph: NeighborKernel, view: Callable[[Rows], FloatArray]) -> float:
    """Mean ‖z‖² of the buffer's rows: 1 if the pivots see them whole."""
    Z = _buffer_view(graph, view)
    return float(np.einsum("ij,ij->", Z, Z) / len(graph))


def _buffer_view(graph: NeighborKernel, view: Callable[[Rows], FloatArray]) -> FloatArray:
    pieces = range(0, len(graph), WORK_ROWS)
    return np.concatenate([view(part(graph.rows, at, at + WORK_ROWS)) for at in pieces])


def _counts(graph: NeighborKernel, clusters: IdArray, n_clusters: int) -> FloatArray:
    """The weight of each cluster's rows."""
    return label_sums(graph.weights, clusters, n_clusters)
