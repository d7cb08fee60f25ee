"""How local a partition should be, decided by evidence that needs no labels.

A graph of few neighbours follows any shape, but where clusters overlap in many columns it sees
noise, and averages over many rows see the clusters. So a fit compares: a graph of twice as many
neighbours is taken where it separates far fewer near rows, and plain means where the graph is vague
and its partition of other rows would be another one, but that of means would not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._run.types import FloatArray
from mercer.factors.base import SpectralMap
from mercer.partitions.evidence import agreement, normalized_cut
from mercer.partitions.kmeans import kmeans
from mercer.partitions.resampling import Resampler, by_centers, by_cones, judges
from mercer.rows.sample import Sample, evenly

# Chosen on 77 public sets (65 generated, 12 real tables) and 24 pairs of Gaussians, confirmed on 33
# generated sets and 22 samples of pendigits, letter, satimage, shuttle, covtype, mnist and others:
NEAR = 7  # nearest rows that a partition should not separate
FEWER = 0.8  # times the cut: then the graph of more neighbours is better
VAGUE = 0.08  # a normalised cut from which on the graph may be wrong
STEADIER = 3  # times as far from agreement (ARI of 1 between halves of the rows) as means are
SPLITS = 3
COMPARED_ROWS = 20_000  # of more rows, one graph is fitted
RESAMPLED_ROWS = 4000
MEANS_STARTS = 10


@dataclass(frozen=True, slots=True)
class Opinion:
    """A partition, and what it was made from."""

    factor: Any  # that labels rows
    graph: Any  # whose spectral map it is
    map: SpectralMap
    labeller: Any
    n_iter: int
    resampler: Resampler
    cut: float | None = None  # mean share of a cluster's near pairs that lead out of it
    note: str | None = None

    def forget_training(self) -> Opinion:
        """The same without what serves the fit only."""
        factor, graph = self.factor.forget_training(), self.graph.forget_training()
        return replace(self, factor=factor, graph=graph)


def form_opinion(
    factor: Any, found: SpectralMap, labeller: Any, n_iter: int, sample: Sample, n_clusters: int
) -> Opinion:
    """A partition of a spectral map, with its evidence."""
    resampling = labeller.resample(factor, found, sample, judges(sample), n_clusters)
    edges, cut = factor.near_edges(NEAR), None
    if edges is not None and n_clusters > 1:
        labels = labeller.labels_of_training(factor, sample)
        cut = normalized_cut(edges, labels, sample.weights, n_clusters)
    return Opinion(factor, factor, found, labeller, n_iter, by_cones(resampling, n_clusters), cut)


def is_compared(factor: Any, n_clusters: int) -> bool:
    """Whether a graph of more neighbours is worth its time."""
    return n_clusters > 1 and factor.rank <= COMPARED_ROWS


def less_cut(narrow: Opinion, wide: Opinion) -> Opinion:
    """The graph of fewer neighbours, unless that of more separates far fewer near rows.

    Or it falls into just as many parts as there are clusters: then these are the clusters. Parts
    that more neighbours connect are not far apart.
    """
    if 1 < wide.map.n_parts == len(wide.labeller.directions):
        return wide
    if narrow.cut is None or wide.cut is None or wide.cut >= FEWER * narrow.cut:
        n_parts = min(narrow.map.n_parts, wide.map.n_parts)
        return replace(narrow, map=replace(narrow.map, n_parts=n_parts))
    return wide


def steadier(
    opinion: Opinion, sample: Sample, n_clusters: int, *, rng: np.random.Generator
) -> Opinion:
    """The graph's partition, unless it is vague and that into means is far more reproducible."""
    if opinion.cut is None or opinion.cut <= VAGUE:
        return opinion
    Z = opinion.factor.row_coordinates()
    some = evenly(len(Z), RESAMPLED_ROWS)
    of_means = by_centers(Z[some], sample.weights[some], n_clusters, starts=MEANS_STARTS)
    by_graph, by_means = (
        agreement(resampler.labels, resampler.n_rows, seeds=SPLITS)
        for resampler in (opinion.resampler, of_means)
    )
    if STEADIER * (1.0 - by_means) >= 1.0 - by_graph:
        return opinion
    centers = _means(Z, sample.weights, n_clusters, rng)
    graph = opinion.factor.on_landmarks(centers)
    axes = np.eye(n_clusters)
    note = (
        f"clusters are those of k-means, which are the same in other halves of the rows (ARI "
        f"{by_means:.2f}); those of the neighbour graph are not ({by_graph:.2f})"
    )
    labeller = graph.labeller(axes, axes)
    return replace(opinion, factor=graph, labeller=labeller, resampler=of_means, note=note)


def _means(
    Z: FloatArray, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> FloatArray:
    found = kmeans(Z, weights, n_clusters, n_init=MEANS_STARTS, max_iter=300, tol=1e-4, rng=rng)
    return found.centers
