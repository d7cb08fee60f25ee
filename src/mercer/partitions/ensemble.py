"""Many partitions of one landmark graph, joined into one (shared ensemble; cf. U-SENC [huang2020]).

Base partitions differ in how many eigenvectors (= clusters) they use and where k-means starts; they
share the graph and its one eigendecomposition. The consensus is a transfer cut once more: rows
belong to base clusters as they belong to landmarks, the more so the fewer clusters of other
partitions divide them (local weighting [huang2018]).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import CountedLabels, Resampling, SpectralMap, Surroundings
from mercer.factors.landmarks import Edges, LandmarkGraph, landmark_surroundings
from mercer.linalg.eigen import leading_eigenpairs
from mercer.linalg.numbering import content_order
from mercer.linalg.products import unit_rows
from mercer.partitions.cones import find_cones
from mercer.rows.rows import Rows
from mercer.rows.sample import Sample, evenly

_jit = LazyModule("mercer.partitions._ensemble_jit")

WIDEST = 3  # base partitions have k to 3k clusters
CENTER_ROWS = 20_000  # rows that the consensus centres are chosen from
THETA = 0.4  # entropy at which a base cluster counts 1/e: as published
# Mean change of the ARI by certainty, on 84 numbers of clusters of the sets of benchmarks/suite,
# two graphs each: 2 or 3 clusters .00 (from -.59 to +.40), 4 to 9 +.04, more .00.
LEAST_WEIGHTED = 4  # clusters; of fewer, all base clusters count the same
BASE_POINTS = 5000  # points that a base partition is chosen on


@frozen
class Bases(Record):
    """b partitions of the landmarks, laid side by side: t base clusters in all."""

    scores: FloatArray = stored("(p, t) float64, finite")  # ⟨landmark's vector, base centre⟩
    own: IdArray = stored("(b, p) int")  # each landmark's base cluster
    offsets: IdArray = stored("(b+1,) int")

    def sizes(self) -> dict[str, int]:
        """r: landmarks; t: base clusters."""
        return dict(zip("rt", self.scores.shape, strict=True))

    def check(self) -> None:
        """Each partition has columns of its own, in which its landmarks' clusters lie."""
        own, offsets, n_columns = self.own, self.offsets, self.scores.shape[1]
        is_ascending = (offsets[1:] > offsets[:-1]).all()
        is_whole = is_ascending and offsets[0] == 0 and offsets[-1] == n_columns
        expect(is_whole, "Bases.offsets does not divide the columns of the scores")
        is_own = (own >= offsets[:-1, None]) & (own < offsets[1:, None])
        expect(is_own.all(), "the base cluster of a landmark is not one of its partition")

    def votes(self, edges: Edges) -> IdArray:
        """The base cluster of each row in each partition: (n, b)."""
        votes = np.empty((len(edges.idx), len(self.own)), np.intp)
        _jit.cast_votes(edges.idx, edges.weights, self.scores, self.own, self.offsets, votes)
        return votes


@frozen
class Consensus(Record):
    """What the bases agree on: vectors of base clusters, and the cones of the final clusters."""

    bases: Bases = stored(Bases)
    vectors: FloatArray = stored("(t, v) float64, finite")
    directions: FloatArray = stored("(k, v) float64, finite")  # unit rows
    values: FloatArray = stored("(e?,) float, finite")  # eigenvalues of the consensus
    n_iter: int = stored("int", 0)

    def sizes(self) -> dict[str, int]:
        """r: landmarks; k: clusters."""
        return {"r": len(self.bases.scores), "k": len(self.directions)}

    def coordinates(self, edges: Edges) -> FloatArray:
        """Where the bases put each row: (n, k)."""
        out = np.empty((len(edges.idx), self.vectors.shape[1]))
        _jit.vote_vectors(self.bases.votes(edges), self.vectors, out)
        return out


def ensemble_labeller(
    factor: Any,
    found: SpectralMap,
    sample: Sample,
    n_clusters: int,
    n_bases: int,
    *,
    n_init: int,
    rng: np.random.Generator,
) -> tuple[Any, int]:
    """Labels by the consensus of many partitions of one spectral map, and sweeps of k-means.

    Where each row of the sample is a point of the map, the consensus places the rows themselves;
    else it joins base clusters of landmarks, and a row belongs to those of its landmarks.
    """
    kept, cones = factor.forget_training(), base_cones(found, n_clusters, n_bases, rng=rng)
    if factor.points_are_rows:
        votes = _votes_of_points(found.vectors, cones)
        joined = _join(votes, sample.weights, n_clusters, n_init=n_init, rng=rng)
        placed = np.empty((len(votes), n_clusters))
        _jit.vote_vectors(votes, joined.vectors, placed)
        return kept.labeller(unit_rows(placed), joined.directions), joined.n_iter
    bases = make_bases(found, cones)
    consensus = make_consensus(
        bases, factor.training_edges, sample, n_clusters, n_init=n_init, rng=rng
    )
    return EnsembleLabeller(kept, consensus), consensus.n_iter


def base_cones(
    found: SpectralMap, n_clusters: int, n_bases: int, *, rng: np.random.Generator
) -> list[FloatArray]:
    """Directions of k to 3k clusters for each partition, from one start of k-means."""
    most = min(WIDEST * n_clusters, found.vectors.shape[1])
    sizes = rng.integers(max(2, min(n_clusters, most)), most + 1, n_bases)
    some = evenly(len(found.points), BASE_POINTS)
    points, weights = found.points[some], found.point_weights[some]
    return [
        find_cones(
            unit_rows(points[:, :size]),
            weights,
            int(size),
            assign_labels="kmeans",
            n_init=1,
            rng=rng,
            max_iter=20,
        ).directions
        for size in sizes
    ]


def make_bases(found: SpectralMap, cones: list[FloatArray]) -> Bases:
    """The partitions of the landmarks into these cones."""
    offsets = np.concatenate([[0], np.cumsum([len(C) for C in cones])]).astype(np.intp)
    scores = [found.vectors[:, : C.shape[1]] @ C.T for C in cones]
    own = [start + s.argmax(axis=1) for start, s in zip(offsets[:-1], scores, strict=True)]
    return Bases(np.ascontiguousarray(np.hstack(scores)), np.array(own, np.intp), offsets)


def _votes_of_points(vectors: FloatArray, cones: list[FloatArray]) -> IdArray:
    """The base cluster of each point in each partition: (n, b), numbered over all of them."""
    votes, start = np.empty((len(vectors), len(cones)), np.intp), 0
    for column, C in enumerate(cones):
        votes[:, column] = start + (vectors[:, : C.shape[1]] @ C.T).argmax(axis=1)
        start += len(C)
    return votes


def make_consensus(
    bases: Bases,
    edges: Edges,
    sample: Sample,
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.Generator,
) -> Consensus:
    """Join the bases: eigenvectors of the graph of base clusters, then cones over rows."""
    joined = _join(bases.votes(edges), sample.weights, n_clusters, n_init=n_init, rng=rng)
    return Consensus(bases, joined.vectors, joined.directions, joined.values, joined.n_iter)


@frozen
class _Joined:
    """Vectors of base clusters, and the cones of the final clusters."""

    vectors: FloatArray  # (t, k)
    directions: FloatArray  # (k, k)
    values: FloatArray
    n_iter: int


def _join(
    votes: IdArray, weights: FloatArray, n_clusters: int, *, n_init: int, rng: np.random.Generator
) -> _Joined:
    """Transfer cut: two base clusters are alike by the weight of the rows they share.

    A base cluster counts by its certainty, a row as much as another of equal weight.
    """
    certainty: FloatArray = np.ones(int(votes.max()) + 1)
    if n_clusters >= LEAST_WEIGHTED:
        certainty = _certainty(_shared_weight(votes, weights), votes.shape[1])
    totals = np.empty((len(votes), 1))
    _jit.vote_vectors(votes, certainty[:, None], totals)
    E = _shared_weight(votes, weights / np.square(totals[:, 0]))
    E *= certainty[:, None] * certainty
    degrees = E.sum(axis=1)
    used = degrees > 0
    scale = np.where(used, 1.0 / np.sqrt(np.where(used, degrees, 1.0)), 0.0)
    pairs = leading_eigenpairs(scale[:, None] * E * scale, n_clusters + 1, rng=rng)
    vectors = np.ascontiguousarray((certainty * scale)[:, None] * pairs.vectors[:, :n_clusters])
    some = np.sort(rng.choice(len(votes), min(len(votes), CENTER_ROWS), replace=False))
    U = np.empty((len(some), vectors.shape[1]))
    _jit.vote_vectors(votes[some], vectors, U)
    cones = find_cones(
        unit_rows(U),
        weights[some],
        n_clusters,
        assign_labels="kmeans",
        n_init=n_init,
        rng=rng,
    )
    return _Joined(vectors, cones.directions, pairs.values, cones.n_iter)


def _shared_weight(votes: IdArray, weights: FloatArray) -> FloatArray:
    """The weight of the rows that each pair of base clusters shares: (t, t)."""
    t = int(votes.max()) + 1
    shared = np.zeros((t, t))
    _jit.vote_graph(votes, weights, shared)
    return shared


def _certainty(shared: FloatArray, n_bases: int) -> FloatArray:
    """How far the other partitions leave each base cluster whole, in (0, 1].

    exp(-H / (θ·b)), where H sums, over the b partitions, the entropy of a base cluster's division
    among their clusters [huang2018].
    """
    own = np.diagonal(shared)[:, None]
    shares = np.divide(shared, own, out=np.zeros_like(shared), where=own > 0)
    bits = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    entropy = -np.einsum("ab,ab->a", shares, bits)
    certainty: FloatArray = np.exp(-entropy / (THETA * n_bases))
    return certainty


@frozen
class EnsembleLabeller:
    """Labels by the consensus of many partitions of the landmarks."""

    factor: LandmarkGraph
    consensus: Consensus

    vectors: ClassVar[None] = None  # those of the consensus are of base clusters

    @property
    def directions(self) -> FloatArray:
        return self.consensus.directions

    def tie_breaks(self) -> FloatArray:
        """What numbers clusters of equal weight."""
        return self.directions

    def reordered(self, order: IdArray) -> EnsembleLabeller:
        """The same with clusters in another order."""
        directions = self.consensus.directions[order]
        return replace(self, consensus=replace(self.consensus, directions=directions))

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        decide = self.labels_of_edges()
        return lambda rows: decide(self.factor.edges(rows))

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Raw rows → labels; every row has edges, however far it is."""
        decide = self.labels()
        return lambda rows: (decide(rows), 0)

    def labels_of_training(self, fitted: LandmarkGraph, sample: Sample) -> IdArray | None:
        """Labels of the sample, whose edges the fitted graph holds."""
        edges = fitted.training_edges
        return None if edges is None else self.labels_of_edges()(edges)

    def resample(
        self, fitted: LandmarkGraph, found: Any, sample: Sample, judges: IdArray, n_clusters: int
    ) -> Resampling:
        """The graph of part of the rows, cut once: a whole ensemble would take as long as a fit."""
        again: Resampling = fitted.resample(found, sample, judges, n_clusters)
        return again

    def cluster_affinities(self, graph: Any, found: Any, sample: Sample) -> None:
        """Unknown: the clusters are not those of one graph."""
        return

    def labels_of_edges(self) -> Callable[[Edges], IdArray]:
        """Edges to landmarks → labels."""
        order = content_order(self.directions)
        ordered = self.directions[order]
        return lambda edges: order[_largest(self.consensus.coordinates(edges), ordered)]

    def surroundings(self, mass: FloatArray | None) -> Callable[[Rows], Surroundings]:
        """Raw rows → how far their landmarks are, and how many of these have other labels."""
        decide, p = self.labels_of_edges(), self.factor.rank
        own = decide(Edges(np.arange(p)[:, None], np.ones((p, 1))))
        return landmark_surroundings(self.factor, decide, own)

    def surroundings_of_training(
        self, fitted: LandmarkGraph, mass: FloatArray | None
    ) -> Surroundings | None:
        """The graph keeps no distances."""
        return None

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""
        return lambda rows: unit_rows(self.consensus.coordinates(self.factor.edges(rows)))


def _largest(U: FloatArray, directions: FloatArray) -> IdArray:
    """argmax of U @ directionsᵀ, summed in one order for every row."""
    scores = np.zeros((len(U), len(directions)))
    for j in range(U.shape[1]):
        scores += U[:, j, None] * directions[None, :, j]
    return scores.argmax(axis=1)
