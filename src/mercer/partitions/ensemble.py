"""Many partitions of one landmark graph, joined into one (shared ensemble; cf. U-SENC [huang2020]).

Base partitions differ in how many eigenvectors (= clusters) they use and where k-means starts; they
share the graph and its one eigendecomposition. The consensus is a transfer cut once more: rows
belong to base clusters as they belong to landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._lazy import LazyModule
from mercer._types import FloatArray, IdArray
from mercer.data.sample import Sample
from mercer.data.source import spans
from mercer.embeddings.eigen import leading_eigenpairs
from mercer.embeddings.spectral import SpectralMap, unit_rows
from mercer.factors.landmarks import LandmarkGraph
from mercer.partitions.cones import cone_directions

__all__ = ["Bases", "Consensus", "make_bases", "make_consensus"]

_jit = LazyModule("mercer.factors._landmark_jit")

WIDEST = 3  # base partitions have k to 3k clusters
CENTER_ROWS = 20_000  # rows that the consensus centres are chosen from


@dataclass(frozen=True, slots=True)
class Bases:
    """b partitions of the landmarks, laid side by side: t base clusters in all."""

    scores: FloatArray  # (p, t) ⟨landmark's vector, base centre⟩
    own: IdArray  # (b, p) each landmark's base cluster
    offsets: IdArray  # (b + 1,)

    def votes(self, idx: IdArray, weights: FloatArray) -> IdArray:
        """The base cluster of each row in each partition: (n, b)."""
        votes = np.empty((len(idx), len(self.own)), np.intp)
        _jit.cast_votes(idx, weights, self.scores, self.own, self.offsets, votes)
        return votes


@dataclass(frozen=True, slots=True)
class Consensus:
    """What the bases agree on: vectors of base clusters, and the cones of the final clusters."""

    bases: Bases
    vectors: FloatArray  # (t, k)
    directions: FloatArray  # (k, k) unit rows
    values: FloatArray  # eigenvalues of the consensus

    def coordinates(self, idx: IdArray, weights: FloatArray) -> FloatArray:
        """Where the bases put each row: (n, k)."""
        out = np.empty((len(idx), self.vectors.shape[1]))
        _jit.vote_vectors(self.bases.votes(idx, weights), self.vectors, out)
        return out


def make_bases(
    found: SpectralMap, n_clusters: int, n_bases: int, *, rng: np.random.Generator
) -> Bases:
    """Partitions of the landmarks into k to 3k clusters, one start of k-means each."""
    most = min(WIDEST * n_clusters, found.vectors.shape[1])
    sizes = rng.integers(max(2, min(n_clusters, most)), most + 1, n_bases)
    scores, own, start = [], [], 0
    for size in sizes:
        V = found.vectors[:, :size]
        C = cone_directions(
            unit_rows(V),
            found.point_weights,
            int(size),
            assign_labels="kmeans",
            n_init=1,
            rng=rng,
            max_iter=20,
        )
        scores.append(V @ C.T)
        own.append(start + scores[-1].argmax(axis=1))
        start += int(size)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    return Bases(np.ascontiguousarray(np.hstack(scores)), np.array(own, np.intp), offsets)


def make_consensus(
    bases: Bases,
    graph: LandmarkGraph,
    sample: Sample,
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.Generator,
) -> Consensus:
    """Join the bases: eigenvectors of the graph of base clusters, then cones over rows."""
    t = bases.scores.shape[1]
    E, votes = np.zeros((t, t)), []
    for start, stop in spans(len(sample)):
        rows = sample.rows[start:stop].astype(np.float64)
        votes.append(bases.votes(*graph.edges(rows)))
        _jit.vote_graph(votes[-1], sample.weights[start:stop], E)
    degrees = E.sum(axis=1)
    used = degrees > 0
    scale = np.where(used, 1.0 / np.sqrt(np.where(used, degrees, 1.0)), 0.0)
    pairs = leading_eigenpairs(scale[:, None] * E * scale, n_clusters + 1, rng=rng)
    vectors = np.ascontiguousarray(scale[:, None] * pairs.vectors[:, :n_clusters])
    every = np.concatenate(votes)
    some = np.sort(rng.choice(len(every), min(len(every), CENTER_ROWS), replace=False))
    U = np.empty((len(some), vectors.shape[1]))
    _jit.vote_vectors(every[some], vectors, U)
    directions = cone_directions(
        unit_rows(U),
        sample.weights[some],
        n_clusters,
        assign_labels="kmeans",
        n_init=n_init,
        rng=rng,
    )
    return Consensus(bases, vectors, directions, pairs.values)
