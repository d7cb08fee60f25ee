"""Labels and coordinates of any rows, where clusters are cones of spectral coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import Factor
from mercer.factors.binning import BinningFactor
from mercer.factors.landmarks import Edges, LandmarkGraph
from mercer.factors.neighbors import AffinityGraph
from mercer.linalg.lloyd import nearest_center
from mercer.linalg.numbering import content_order
from mercer.linalg.products import row_products, unit_rows
from mercer.partitions.assignment import Assignment, CountedLabels, first_of
from mercer.partitions.ensemble import Consensus
from mercer.rows.rows import Rows, cast
from mercer.rows.sample import Sample

_jit = LazyModule("mercer.factors._landmarks_jit")


class AllSeen:
    """Labels of graphs and bins in which every row has a place, however far it is."""

    __slots__ = ()

    def labels(self) -> Callable[[Rows], IdArray]:
        raise NotImplementedError

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Raw rows → labels, and how many rows nothing is known of: none."""
        decide = self.labels()
        return lambda rows: (decide(rows), 0)


@dataclass(frozen=True, slots=True)
class LandmarkLabels(AllSeen):
    """A row's coordinates are the weighted mean of its landmarks'; its cluster, their cone."""

    factor: LandmarkGraph
    vectors: FloatArray  # (p, m)
    directions: FloatArray  # (k, m)

    def reordered(self, order: IdArray) -> LandmarkLabels:
        return replace(self, directions=self.directions[order])

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        decide = self.labels_of_edges()
        if self.factor.weighting != "gaussian":
            return lambda rows: decide(self.factor.edges(rows))
        order, scores, own = self._scores()

        def decide_quickly(rows: Rows) -> IdArray:
            idx, dist = self.factor.nearest(rows)
            labels = np.empty(len(idx), np.intp)
            _jit.cone_labels_of_distances(idx, dist, self.factor.gamma, scores, own, labels)
            return order[labels]

        return decide_quickly

    def _scores(self) -> tuple[IdArray, FloatArray, IdArray]:
        """Clusters in an order that their numbers do not change, scores of landmarks, labels."""
        order = content_order(self.directions)
        scores = np.ascontiguousarray(self.vectors @ self.directions[order].T)
        return order, scores, scores.argmax(axis=1)

    def labels_of_training(self, fitted: LandmarkGraph, sample: Sample) -> IdArray | None:
        """Labels of the rows the graph was fitted on: their ties are at hand."""
        return _labels_at_hand(self, fitted)

    def labels_of_edges(self) -> Callable[[Edges], IdArray]:
        """Ties to landmarks → labels."""
        order, scores, own = self._scores()

        def decide(edges: Edges) -> IdArray:
            labels = np.empty(len(edges.idx), np.intp)
            _jit.cone_labels(edges.idx, edges.weights, scores, own, labels)
            return order[labels]

        return decide

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""

        def embed(rows: Rows) -> FloatArray:
            edges = self.factor.edges(rows)
            out = np.empty((len(edges.idx), self.vectors.shape[1]))
            _jit.mean_vectors(edges.idx, edges.weights, self.vectors, out)
            return unit_rows(out)

        return embed


@dataclass(frozen=True, slots=True)
class EnsembleLabels(AllSeen):
    """The same for a consensus of many partitions of the landmarks."""

    factor: LandmarkGraph
    consensus: Consensus

    @property
    def directions(self) -> FloatArray:
        return self.consensus.directions

    def reordered(self, order: IdArray) -> EnsembleLabels:
        directions = self.consensus.directions[order]
        return replace(self, consensus=replace(self.consensus, directions=directions))

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        decide = self.labels_of_edges()
        return lambda rows: decide(self.factor.edges(rows))

    def labels_of_training(self, fitted: LandmarkGraph, sample: Sample) -> IdArray | None:
        """Labels of the rows the graph was fitted on: their ties are at hand."""
        return _labels_at_hand(self, fitted)

    def labels_of_edges(self) -> Callable[[Edges], IdArray]:
        """Ties to landmarks → labels."""
        order = content_order(self.directions)
        ordered = self.directions[order]
        return lambda edges: order[_largest(self.consensus.coordinates(edges), ordered)]

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""
        return lambda rows: unit_rows(self.consensus.coordinates(self.factor.edges(rows)))


@dataclass(frozen=True, slots=True)
class FactorLabels:
    """The same for a dense factor: coordinates f @ vectors."""

    factor: Factor
    vectors: FloatArray  # (rank, m)
    directions: FloatArray  # (k, m)

    def reordered(self, order: IdArray) -> FactorLabels:
        return replace(self, directions=self.directions[order])

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        return first_of(self.counted_labels())

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Raw rows → labels, and how many rows no pivot sees."""
        return Assignment.of_cones(self.factor, self.vectors, self.directions).counted_labels()

    def labels_of_training(self, fitted: Any, sample: Sample) -> IdArray | None:
        """None: training rows may be float32, and labels are decided in float64."""
        return None

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""
        features, row_format = self.factor.features(np.float64), self.factor.format
        folded = self.factor.mix @ self.vectors

        def embed(rows: Rows) -> FloatArray:
            return unit_rows(row_products(features(row_format.apply(rows, np.float64)), folded))

        return embed


@dataclass(frozen=True, slots=True)
class AffinityLabels:
    """The same for a graph that was given: rows are affinities to the items of the fit."""

    factor: AffinityGraph
    vectors: FloatArray  # (n_items, m)
    directions: FloatArray  # (k, m)

    def reordered(self, order: IdArray) -> AffinityLabels:
        return replace(self, directions=self.directions[order])

    def labels(self) -> Callable[[Rows], IdArray]:
        """Affinities → labels."""
        return first_of(self.counted_labels())

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Affinities → labels, and how many items are tied to nothing: they go with one cone."""
        order = content_order(self.directions)
        against = np.ascontiguousarray(self.directions[order].T)
        embed = self.coordinates()

        def decide(rows: Rows) -> CountedLabels:
            U = embed(rows)
            nowhere = np.flatnonzero(~U.any(axis=1))
            n_tied = np.count_nonzero(abs(rows[nowhere]).sum(axis=1)) if len(nowhere) else 0
            labels = order[nearest_center(-row_products(U, against))[0]]
            return labels, len(nowhere) - int(n_tied)

        return decide

    def labels_of_training(self, fitted: AffinityGraph, sample: Sample) -> IdArray | None:
        """None: the matrix is at hand as X itself."""
        return None

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Affinities → unit coordinates."""

        def embed(rows: Rows) -> FloatArray:
            if sp.issparse(rows):
                return unit_rows(cast(rows, np.float64) @ self.vectors)
            return unit_rows(row_products(rows.astype(np.float64, copy=False), self.vectors))

        return embed


@dataclass(frozen=True, slots=True)
class BinningLabels(AllSeen):
    """The same for random bins: coordinates are sums of the vectors of a row's bins."""

    factor: BinningFactor
    vectors: FloatArray  # (D, m) float32
    directions: FloatArray  # (k, m)

    def reordered(self, order: IdArray) -> BinningLabels:
        return replace(self, directions=self.directions[order])

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        decide = self._labels_of_sums()
        return lambda rows: decide(self._sums(rows))

    def labels_of_training(self, fitted: BinningFactor, sample: Sample) -> IdArray | None:
        """Labels of the rows of the fit: their bins are at hand."""
        if fitted.training_bins is None:
            return None
        return self._labels_of_sums()(fitted.sums_of_training(sample, self.vectors))

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""
        return lambda rows: unit_rows(self._sums(rows))

    def _sums(self, rows: Rows) -> FloatArray:
        return self.factor.sums(self.factor.format.apply(rows), self.vectors)

    def _labels_of_sums(self) -> Callable[[FloatArray], IdArray]:
        order = content_order(self.directions)
        against = np.ascontiguousarray(-self.directions[order].T)
        return lambda sums: order[nearest_center(row_products(sums, against))[0]]


def cone_labels(factor: Any, vectors: FloatArray, directions: FloatArray) -> Any:
    """Labels by cones, for the kind of factor: the one place that knows which."""
    kinds: dict[type, Any] = {
        LandmarkGraph: LandmarkLabels,
        AffinityGraph: AffinityLabels,
        BinningFactor: BinningLabels,
    }
    return kinds.get(type(factor), FactorLabels)(factor, vectors, directions)


@dataclass(frozen=True, slots=True)
class AllLabels:
    """Labels by each of several cuts of one graph."""

    cuts: tuple[Any, ...]

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels by each cut: (cuts, n)."""
        cuts = self.cuts
        if not all(isinstance(cut, LandmarkLabels) for cut in cuts):
            deciders = [cut.labels() for cut in cuts]
            return lambda rows: np.stack([decide(rows) for decide in deciders])
        by_edges = [cut.labels_of_edges() for cut in cuts]

        def decide_all(rows: Rows) -> IdArray:
            edges = cuts[0].factor.edges(rows)  # found once
            return np.stack([decide(edges) for decide in by_edges])

        return decide_all


def _labels_at_hand(by: LandmarkLabels | EnsembleLabels, fitted: LandmarkGraph) -> IdArray | None:
    edges = fitted.training_edges
    return None if edges is None else by.labels_of_edges()(edges)


def _largest(U: FloatArray, directions: FloatArray) -> IdArray:
    """argmax of U @ directionsᵀ, summed in one order for every row."""
    scores = np.zeros((len(U), len(directions)))
    for j in range(U.shape[1]):
        scores += U[:, j, None] * directions[None, :, j]
    return scores.argmax(axis=1)
