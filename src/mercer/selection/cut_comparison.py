"""Which bandwidth suits kernel spectral clustering, and whether stray rows take part: by the
clusters they lead to, without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer._run.engine import each
from mercer._run.frozen import frozen
from mercer._run.progress import tell
from mercer._run.types import FloatArray, IdArray
from mercer.embeddings.scores import score_map, training_scores
from mercer.embeddings.weighted_kpca import trimmed_weights, weighted_kpca
from mercer.kernels.base import Kernel
from mercer.partitions.encode import encode
from mercer.partitions.evidence import normalized_cut
from mercer.rows.rows import cast, part, take
from mercer.rows.sample import Sample, evenly, subsample
from mercer.selection.result import CUT, Selection

# Chosen on the 65 sets and 12 tables of benchmarks/suite.py and 66 generated sets (blobs of equal
# and unequal spread in 2 to 64 dimensions, moons, rings, spirals, anisotropic blobs, clusters of 5
# to 20 rows far away). Mean ARI on the suite, the tables and the generated sets, one seed: the
# smallest cut of five bandwidths with and without TRIM .830, .517, .946; never TRIM .797, .500,
# .937; whichever candidate is best .860, .587, .950; the criterion of the encoding instead of the
# cut .79 on the suite, and .30 or, with TRIM, .41 on the tables. The estimator, five seeds: .83 and
# .50 (before: .777 and .375); on 99 sets of those kinds with other seeds .940 (before: .880). 5 to
# 15 neighbours behave alike. Where every edge counts the same, 5 rows far away are not found among
# 2,000 (mean ARI on rare clusters .64, else 1).
FIT_ROWS = 10_000  # that are clustered with each bandwidth: 4,000 gave .819 and .488
JUDGED_ROWS = 2000  # of them, whose neighbours are looked at
BLOCK = 64  # of them, that distances are computed to at a time
NEIGHBORS, LEAST_NEIGHBORS = 7, 2  # of each row; fewer where clusters have few rows
TRIM = 0.05  # share of the rows, the least dense ones
MOST_CLAMPED = 0.1  # of the rows may have no positive low-rank degree


@frozen
class CutChoice:
    """The candidate whose clusters split the fewest close neighbours."""

    place: int  # among the kernels
    trim: float  # share of the rows that take no part
    seed: int  # of its draws
    selection: Selection  # 1 - cut of each kernel


@frozen
class Neighbors:
    """The nearest of some rows."""

    ids: IdArray  # (n,) the rows
    edges: IdArray  # (n, q) places in `ids`
    closeness: FloatArray  # (n, q) the nearest neighbour's distance over this one's
    weights: FloatArray  # (n,)

    def cut(self, labels: IdArray, n_clusters: int) -> float:
        """The normalised cut of these labels of all rows."""
        return normalized_cut(
            self.edges, labels[self.ids], self.weights, n_clusters, self.closeness
        )


@frozen
class CutComparison:
    """Which of a few kernels suits kernel spectral clustering, and with or without stray rows.

    A narrow kernel makes clusters of a few stray rows, a wide one cuts rings and chains. Some rows
    are clustered with each kernel, and the partitions compared by a measure that does not depend on
    it: the normalised cut of the graph of nearest rows, in which an edge counts the less the longer
    it is beside the row's shortest one. So rows far from all others may be a cluster if they are
    close to each other, and not if they are far apart.
    """

    approximation: Any
    n_clusters: int
    encoding: Any
    trim: Any  # the share of the rows that is left out, or "auto": none or TRIM
    runs: dict[str, Any]  # how k-means runs

    @property
    def trims(self) -> tuple[float, ...]:
        return (0.0, TRIM) if self.trim == "auto" else (float(self.trim),)

    def is_possible(self, n_rows: int) -> bool:
        """Are there enough rows for each cluster?"""
        return _n_neighbors(n_rows, self.n_clusters) >= LEAST_NEIGHBORS

    def memory(self, n_rows: int, n_features: int, itemsize: int, threads: int) -> int:
        """Bytes that `choose` holds for a sample of so many rows: a factor for each thread."""
        few = min(n_rows, FIT_ROWS)
        return threads * int(self.approximation.memory(few, n_features, itemsize))

    def choose(
        self,
        sample: Sample,
        kernels: Sequence[Kernel],
        gammas: tuple[float, ...],
        *,
        rng: np.random.Generator,
        threads: int,
    ) -> CutChoice | None:
        """The kernel and the trim whose clusters split the fewest close neighbours.

        None where no candidate makes clusters. `gammas`: of the kernels, ascending.
        """
        few = sample
        if len(sample) > FIT_ROWS:
            few = subsample(sample, evenly(len(sample), FIT_ROWS))
        neighbors = nearest_rows(kernels[0], few, self.n_clusters)
        if neighbors is None:
            return None
        seeds = [int(seed) for seed in rng.integers(2**63, size=len(kernels))]
        judge, found = CandidateCuts(self, few, neighbors), []
        for number, row in enumerate(each(judge, zip(kernels, seeds, strict=True), threads)):
            tell("search", (number + 1) * len(few), len(kernels) * len(few))
            found.append(row)
        cuts = np.array(found)
        if np.isnan(cuts).all():
            return None
        place, column = np.unravel_index(np.nanargmin(cuts), cuts.shape)
        scores = 1.0 - np.fmin.reduce(cuts, axis=1, keepdims=True)
        n_judged = len(neighbors.ids)
        selection = Selection(CUT, 0.0, (self.n_clusters,), gammas, scores, len(few), n_judged)
        return CutChoice(int(place), self.trims[int(column)], seeds[int(place)], selection)


@frozen
class CandidateCuts:
    """A kernel and a seed → the cut of its clusters for each trim; NaN where there are none."""

    comparison: CutComparison
    sample: Sample
    neighbors: Neighbors

    def __call__(self, job: tuple[Kernel, int]) -> list[float]:
        kernel, seed = job
        rng, sample = np.random.default_rng(seed), self.sample
        factor = self.comparison.approximation.fit(kernel, sample, rng=rng)
        factor = factor.dense(sample, rng=rng)
        state, cuts = rng.bit_generator.state, []
        for trim in self.comparison.trims:
            rng.bit_generator.state = state  # as the fit with this candidate will have it
            cuts.append(self._cut(factor, trim, rng))
        return cuts

    def _cut(self, factor: Any, trim: float, rng: np.random.Generator) -> float:
        F, k, how = factor.training_rows, self.comparison.n_clusters, self.comparison
        weights = trimmed_weights(F, self.sample.weights, trim)
        found = weighted_kpca(F, weights, k - 1, rng=rng)
        if found.n_clamped > MOST_CLAMPED * len(F) or len(found.values) < k - 1:
            return np.nan
        scores, model = training_scores(F, found), score_map(factor, found)
        encoded = encode(how.encoding, scores, weights, model, k, rng=rng, **how.runs)
        if len(encoded.codebook) < k:
            return np.nan
        labels = encoded.codebook.labels(scores.coordinates(how.encoding, k))
        return self.neighbors.cut(labels, k)


def nearest_rows(kernel: Kernel, sample: Sample, n_clusters: int) -> Neighbors | None:
    """Neighbours of some rows of the sample; None where there are too few to tell clusters."""
    ids = evenly(len(sample), JUDGED_ROWS)
    q = _n_neighbors(len(ids), n_clusters)
    if q < LEAST_NEIGHBORS:
        return None
    rows = cast(take(sample.rows, ids), np.float64)
    edges, closeness = np.empty((len(ids), q), np.intp), np.ones((len(ids), q))
    for start in range(0, len(ids), BLOCK):
        D = kernel.distances(rows, part(rows, start, start + BLOCK)).T
        own = np.arange(len(D))
        D[own, start + own] = np.inf
        nearest = np.argpartition(D, q - 1, axis=1)[:, :q]
        lengths = np.take_along_axis(D, nearest, axis=1)
        edges[start : start + len(D)] = nearest
        shortest = np.broadcast_to(lengths.min(axis=1, keepdims=True), lengths.shape)
        np.divide(shortest, lengths, out=closeness[start : start + len(D)], where=lengths > 0)
    return Neighbors(ids, edges, closeness, sample.weights[ids])


def _n_neighbors(n_rows: int, n_clusters: int) -> int:
    """A quarter of an even cluster at most."""
    return min(NEIGHBORS, min(n_rows, JUDGED_ROWS) // (4 * n_clusters))
