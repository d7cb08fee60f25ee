"""Very many clusters, merged from the landmarks of a graph: no eigenvector for each of them.

The landmarks are micro-clusters. The graph between them is merged two by two until as many parts
are left as clusters are asked for, and a row belongs to the part that its landmarks vote for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import CountedLabels, SpectralMap, Surroundings
from mercer.factors.landmarks import Edges, landmark_surroundings
from mercer.linalg.merging import cut_tree, merge_graph
from mercer.linalg.products import unit_rows
from mercer.partitions.locality import Opinion
from mercer.partitions.resampling import Resampler, judges
from mercer.rows.rows import Rows
from mercer.rows.sample import Sample

_jit = LazyModule("mercer.partitions._votes_jit")


@frozen
class VoteLabeller:
    """Labels by the votes of a row's landmarks, weighted as its edges are."""

    consensus: ClassVar[None] = None  # of an ensemble
    vectors: ClassVar[None] = None  # there are no eigenvectors of clusters

    factor: Any  # without its training rows
    groups: IdArray  # (p,) the cluster of each landmark
    n_clusters: int

    @property
    def directions(self) -> FloatArray:
        """Of the clusters, in the space of `coordinates`: its axes."""
        return np.eye(self.n_clusters)

    def tie_breaks(self) -> FloatArray:
        """What numbers clusters of equal weight: groups are numbered by their first landmarks."""
        return np.arange(float(self.n_clusters))[:, None]

    def reordered(self, order: IdArray) -> VoteLabeller:
        """The same with clusters in another order."""
        return replace(self, groups=np.argsort(order)[self.groups])

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        return lambda rows: vote(self.factor.edges(rows), self.groups)

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Raw rows → labels; every row has edges, however far it is."""
        decide = self.labels()
        return lambda rows: (decide(rows), 0)

    def labels_of_training(self, fitted: Any, sample: Sample) -> IdArray | None:
        """Labels of the sample, whose edges the fitted graph holds."""
        edges = fitted.training_edges
        return None if edges is None else vote(edges, self.groups)

    def cluster_affinities(self, graph: Any, found: SpectralMap, sample: Sample) -> sp.csr_array:
        """Of clusters to each other: the edges between their landmarks."""
        p, groups = len(self.groups), self.groups
        member = sp.csr_array((np.ones(p), (np.arange(p), groups)), shape=(p, self.n_clusters))
        return sp.csr_array(member.T @ graph.affinities(sample.weights) @ member)

    def surroundings(self, mass: FloatArray | None) -> Callable[[Rows], Surroundings]:
        """Raw rows → how far their landmarks are, and how many of these have other labels."""
        return landmark_surroundings(
            self.factor, lambda edges: vote(edges, self.groups), self.groups
        )

    def surroundings_of_training(self, fitted: Any, mass: FloatArray | None) -> None:
        """The graph keeps no distances."""

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → shares of the clusters in a row's edges, at unit length."""

        def embed(rows: Rows) -> FloatArray:
            edges = self.factor.edges(rows)
            shares = np.zeros((len(edges.idx), self.n_clusters))
            _jit.vote_shares(edges.idx, edges.weights, self.groups, shares)
            return unit_rows(shares)

        return embed


def vote(edges: Edges, groups: IdArray) -> IdArray:
    """The group that the edges of each row lead to."""
    labels = np.empty(len(edges.idx), np.intp)
    _jit.vote_labels(edges.idx, edges.weights, groups, labels)
    return labels


def merge_landmarks(W: sp.csr_array, n_clusters: int) -> IdArray:
    """The part of each landmark when so many are left; -1 for landmarks without edges."""
    used = np.flatnonzero(W.sum(axis=1) > 0)
    groups = np.full(W.shape[0], -1)
    groups[used] = cut_tree(merge_graph(W[used][:, used]), min(n_clusters, len(used)))
    return groups


def merged_opinion(factor: Any, found: SpectralMap, sample: Sample, n_clusters: int) -> Opinion:
    """The partition into merged landmarks, with its evidence."""
    groups = merge_landmarks(factor.affinities(sample.weights), n_clusters)
    labeller = VoteLabeller(factor.forget_training(), groups, n_clusters)
    judged = factor.training_edges.take(judges(sample))
    again = partial(_merge_again, factor, sample.weights, judged, n_clusters)
    return Opinion(factor, factor, found, labeller, 0, Resampler(len(sample), again))


def _merge_again(
    factor: Any,
    weights: FloatArray,
    judged: Edges,
    n_clusters: int,
    part: IdArray,
    rng: np.random.Generator,
) -> IdArray:
    """Labels of the judges by what part of the rows say of the landmarks."""
    return vote(judged, merge_landmarks(factor.affinities(weights, part), n_clusters))
