"""How local a partition should be, decided by evidence that needs no labels.

A graph of few neighbours follows any shape, but where clusters overlap in many columns it sees
noise, and averages over many rows see the clusters. So a fit compares: a graph of twice as many
neighbours is taken where it separates far fewer near rows, and one without the least dense rows
where it separates far fewer of the others. Where the partition of other rows would be another one,
a graph of four times as many neighbours is taken if its partition would not, and plain means if the
graph is vague.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.threads import single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import COMPARED_ROWS, SpectralMap
from mercer.linalg.lloyd import WeightedRows, nearest_center, scores_of_centers
from mercer.partitions.evidence import normalized_cut
from mercer.partitions.kmeans import kmeans
from mercer.partitions.layers import with_distances
from mercer.partitions.resampling import Resampler, by_cones, judges
from mercer.rows.sample import Sample, evenly

# Chosen on 77 public sets (65 generated, 12 real tables) and 24 pairs of Gaussians, confirmed on 33
# generated sets and 22 samples of pendigits, letter, satimage, shuttle, covtype, mnist and others:
# Graphs without sparse rows or of most neighbours were tried on half of the 77 sets and on the
# pairs of one column; the conditions on the densest rows and on the cut of all rows followed from
# the other half (one set was lost without the first). Confirmed on 30 generated sets that played no
# part (mixtures of 2 to 12 clusters in 1 to 50 columns, moons, arcs in noise): mean ARI .72 to .75.
NEAR = 7  # nearest rows that a partition should not separate
FEWER = 0.8  # times the cut: then the graph of more neighbours is better
MORE = 1.5  # times the cut of all rows, at most, of a partition that is better among dense ones
DOUBTFUL = 0.9  # times the cut of a consensus: then the single partition is better (12 tables)
VAGUE = 0.08  # a normalised cut from which on the graph may be wrong
STEADIER = 3  # times as far from agreement (ARI of 1 between halves of the rows) as means are
SPLITS = 3
RESAMPLED_ROWS = 4000
MEANS_STARTS = 10
SURE = 0.95  # ARI between halves of the rows: then nothing steadier is sought


@frozen
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

    def affinities(self, sample: Sample) -> Any:
        """Of the clusters to each other in the graph, (k, k); None if the labeller cannot tell."""
        found = self.labeller.cluster_affinities(self.graph, self.map, sample)
        labels = self.labeller.labels_of_training(self.factor, sample)
        if found is None or labels is None or not isinstance(sample.rows, np.ndarray):
            return found
        return with_distances(found, sample.rows, sample.weights, labels)

    def core_cut(self, sample: Sample, n_clusters: int) -> float:
        """The cut among the densest rows only; 1 where a cluster has none of them."""
        found = self.factor.core_edges(NEAR)
        if found is None:
            return 1.0
        core, edges = found
        labels = self.labeller.labels_of_training(self.factor, sample)[core]
        if len(np.unique(labels)) < n_clusters:
            return 1.0
        return normalized_cut(edges, labels, sample.weights[core], n_clusters)

    def agreement(self) -> float:
        """ARI of partitions made from disjoint halves of the rows."""
        return self.resampler.agreement(SPLITS)

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


def best_graph(
    opinion: Opinion, form: Callable[[Any], Opinion], sample: Sample, n_clusters: int
) -> Opinion:
    """The partition of this graph, or of one with more neighbours or without sparse rows.

    `form` makes the partition of another graph.
    """
    wider = opinion.factor.wider()
    if wider is None or n_clusters == 1 or wider.rank > COMPARED_ROWS:
        return opinion
    opinion = less_cut(opinion, form(wider))
    core_cut = opinion.core_cut(sample, n_clusters)
    opinion = less_disturbed(opinion, core_cut, form, sample)
    return steadier_graph(opinion, core_cut, form)


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


def less_disturbed(
    opinion: Opinion, core_cut: float, form: Callable[[Any], Opinion], sample: Sample
) -> Opinion:
    """The partition without the least dense rows, if it separates far fewer near ones of the rest.

    And not many more of all rows. Noise between clusters connects them; but a cluster without any
    of the densest rows would be lost with it.
    """
    if not 0.0 < core_cut < 1.0 or opinion.cut is None:
        return opinion
    dense = form(opinion.factor.of_dense_rows())
    is_less = dense.core_cut(sample, len(dense.labeller.directions)) < FEWER * core_cut
    is_more = dense.cut is None or dense.cut >= MORE * opinion.cut
    return dense if is_less and not is_more else opinion


def steadier_graph(opinion: Opinion, core_cut: float, form: Callable[[Any], Opinion]) -> Opinion:
    """The partition of the graph of most neighbours, if it is far more reproducible.

    Not where no near rows of the densest are separated. In one column chance alone makes gaps that
    no edge between few neighbours crosses: there it need only be more reproducible.
    """
    has_one_column = opinion.factor.row_coordinates().shape[1] == 1
    if (core_cut == 0 and not has_one_column) or (by_graph := opinion.agreement()) > SURE:
        return opinion
    widest = form(opinion.factor.widest())
    times = 1 if has_one_column else STEADIER
    return widest if is_steadier(widest.agreement(), by_graph, times) else opinion


def is_steadier(one: float, other: float, times: float = STEADIER) -> bool:
    """Whether halves of the rows agree far better."""
    return times * (1.0 - one) < 1.0 - other


def undoubted(consensus: Opinion, single: Opinion) -> Opinion:
    """The consensus of many partitions, unless the single one separates fewer near rows."""
    if consensus.cut is None or single.cut is None:
        return consensus
    return single if single.cut < DOUBTFUL * consensus.cut else consensus


def steadier(
    opinion: Opinion, sample: Sample, n_clusters: int, *, rng: np.random.Generator
) -> Opinion:
    """The graph's partition, unless it is vague and that into means is far more reproducible."""
    if opinion.cut is None or opinion.cut <= VAGUE:
        return opinion
    Z = opinion.factor.row_coordinates()
    some = evenly(len(Z), RESAMPLED_ROWS)
    of_means = by_means_of(Z[some], sample.weights[some], n_clusters)
    by_graph, by_means = opinion.agreement(), of_means.agreement(SPLITS)
    if not is_steadier(by_means, by_graph):
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


def by_means_of(Z: FloatArray, weights: FloatArray, n_clusters: int) -> Resampler:
    """k-means again, on part of the rows."""

    def labels(ids: IdArray, rng: np.random.Generator) -> IdArray:
        A, b = scores_of_centers(_means(Z[ids], weights[ids], n_clusters, rng))
        return nearest_center(Z @ A + b)[0]

    return Resampler(len(Z), labels)


def _means(
    Z: FloatArray, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> FloatArray:
    """Centres of least variance: started from rows, and from those of the leading axes alone.

    In many columns the rows of a wide cluster are closer to the centre of another than to each
    other, so that sweeps started from rows may never leave them; along the leading principal axes
    the clusters lie apart [ding2004].
    """
    how: dict[str, Any] = {"max_iter": 300, "tol": 1e-4, "rng": rng}
    found = kmeans(Z, weights, n_clusters, n_init=MEANS_STARTS, **how)
    if Z.shape[1] <= n_clusters:
        return found.centers
    with single_threaded_blas():
        mean = weights @ Z / weights.sum()
        spread = (Z - mean) * np.sqrt(weights)[:, None]
        axes = np.linalg.eigh(spread.T @ spread)[1][:, -n_clusters:]
        coordinates = np.ascontiguousarray((Z - mean) @ axes)
    flat = kmeans(coordinates, weights, n_clusters, n_init=MEANS_STARTS, **how)
    start = mean + flat.centers @ axes.T
    guided = WeightedRows.of(Z, weights).lloyd(start, max_iter=300, least_shift=found.least_shift)
    return min((found, guided), key=lambda run: run.inertia).centers
