"""How many clusters the rows show: partitions into many numbers of clusters, judged by evidence.

Some rows are connected to their mutual neighbours, and their graph is cut into each number of
clusters. A number is good where partitions begin to separate close rows: one cluster more does so,
and the step from one fewer shows it too. Further, where a graph of more neighbours has a gap in its
spectrum, where methods that have little in common with the graph find the same clusters, and where
no cluster is a few stray rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, astuple
from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.embeddings.gaps import strengths
from mercer.kernels.base import Kernel
from mercer.linalg.walks import Walk
from mercer.metrics.pairs import adjusted_rand
from mercer.partitions.examined import NARROW, ExaminedRows, examine
from mercer.rows.sample import Sample, evenly

ROWS = 3000  # that are clustered; other numbers were not compared
COMPARED_ROWS = 1000  # of them, that other methods cluster ...
PER_CLUSTER = 10  # ... or as many for each cluster; no smaller ones are looked for
FEW = 5  # neighbours, where many clusters have few rows each
EACH = 21  # numbers up to here are all looked at; above, those at the largest gaps
GAPS = 5
FIRST_LIMIT = 60  # doubled while the best number is in its upper half
SMALL_PART = 0.6  # of the mean cluster, if there were as many as are looked at
ROUNDING = 1e-3  # cuts below this are alike
LEAST_RATE = 1e-9  # of a walk that leaves its cluster: below this, unconnected
WIDE_GAP = 2.0  # the log ratio of two rates beyond which a gap is as wide as can be
# A conditional logit over the numbers of clusters of a set, which takes one reference in seven for
# one that no evidence can find. Fitted to the 65 sets and 12 tables of benchmarks/suite, 51 of the
# others in benchmarks/trust and, at half their weight, 96 generated sets of ten kinds (blobs, arms
# of spirals, rings, filled shapes with and without noise, binary tables, factor models, heavy
# tails, nested blobs, unequal blobs, moons beside blobs). The six were selected among 40 by
# cross-validation over sets. Held out (mean of three divisions into ten folds), the number is that
# of a reference on 44.7 of the 65 sets, 5.7 of the 12 tables, 35.3 of the 51 others and 64.3 of the
# 96 generated sets; with five of the measurements that were used before 42, 5, 36 and 56. Since
# then the wide graph has other weak edges; with the weights as they were, the number is right on 46
# of the 65 sets, 6 of the 12 tables and 48 of all 64 others.
JUMP, RISE, GAP, AGREEMENT, LINKAGE, SMALLEST = 1.40, 1.13, 1.17, 5.56, 1.36, 1.20
# The probability of the best number of clusters. Held out, 15 % of the right numbers and 52 % of
# the wrong ones on the suite and the tables had less (other sets: 7 % and 43 %); the probability of
# all numbers about as large, and logistic models with its evidence, separate no better.
CLEAR = 0.42


@frozen
class Candidate:
    """A number of clusters, and what speaks for it."""

    n_clusters: int
    probability: float  # among the numbers that were looked at
    jump: float  # log of what the worst cluster loses of its close pairs, if there is one more
    rise: float  # log of what it loses more than if there were one fewer; 0 for two clusters
    gap: float  # in the spectrum of a graph of many neighbours, times the log of the number
    agreement: float  # ARI with single linkage of balanced sizes, or with Ward's if that is more
    linkage: float  # ARI with the former
    smallest: float  # share of the smallest cluster, 1 for equal sizes

    @property
    def is_clear(self) -> bool:
        """Whether other numbers are much less probable."""
        return self.probability >= CLEAR

    def score(self) -> float:
        """The log of its odds, up to a constant."""
        return (
            JUMP * self.jump
            + RISE * self.rise
            + GAP * self.gap
            + AGREEMENT * self.agreement
            + LINKAGE * self.linkage
            + SMALLEST * float(np.log(self.smallest + ROUNDING))
        )

    def entry(self) -> tuple[Any, ...]:
        """The number, its probability and the evidence, as plain numbers."""
        return astuple(self)


def count_clusters(
    kernel: Kernel | None, sample: Sample, least: int, most: int | None
) -> list[Candidate]:
    """Numbers of clusters from `least` (2 or more) to `most`, the most probable first.

    `most` None: as many as there are groups of ten rows. Empty where there are too few rows. Larger
    numbers are looked at while the best is among the largest, and, if none is clear, up to twice
    the number of groups that close neighbours make.
    """
    rows = examine(kernel, sample, evenly(len(sample), ROWS))
    n = len(rows)
    most = min(max(n // PER_CLUSTER, least) if most is None else most, n - 2)
    if most < least:
        return []
    limit, n_groups = min(most, max(FIRST_LIMIT, 2 * least)), rows.n_groups(FEW, PER_CLUSTER)
    found: list[Candidate] = []
    is_beyond = True
    while True:
        near = _neighbors(n, limit)
        walk = rows.walk(near, limit + 1, small_part=SMALL_PART / limit)
        if walk.n_parts <= limit // 2 or limit == most:
            here = _ranked(list(_candidates(rows, walk, 3 * near, least, limit)))
            if is_beyond or here[0].is_clear:
                found = here
            is_beyond = here[0].n_clusters > limit // 2
            is_done = found[0].is_clear or n_groups <= limit // 2
            if limit == most or (is_done and not is_beyond):
                return found
        least, limit = max(least, limit // 2), min(2 * limit, most)


def _neighbors(n_rows: int, most: int) -> int:
    """Of each row: fewer where many clusters would not have three times as many rows."""
    is_enough = most <= FIRST_LIMIT or n_rows >= 3 * NARROW * most
    return NARROW if is_enough else FEW


def count_memory(n_rows: int) -> int:
    """Bytes that `count_clusters` holds for a sample of so many rows."""
    n, compared = min(n_rows, ROWS), min(n_rows, COMPARED_ROWS)
    return 4 * n * n + 16 * compared * compared + 8 * n * (6 * FIRST_LIMIT + 100)


def _candidates(
    rows: ExaminedRows, walk: Walk, wide: int, least: int, most: int
) -> Iterator[Candidate]:
    """The numbers worth looking at, with the evidence for each; `wide`: so many neighbours."""
    sizes = _worth_looking_at(walk, least, most)
    beside = {max(k + step, 2) for k in sizes for step in (-1, 0, 1)}
    cuts = {k: _Cut.of(rows, walk, k) for k in sorted(beside)}
    gaps = _wide_gaps(rows, wide, most)
    some = evenly(len(rows), max(COMPARED_ROWS, PER_CLUSTER * most))
    compared = rows.take(some)
    linkage, ward = compared.linkage_labels(sizes), compared.ward_labels(sizes)
    for k in sizes:
        fewer, here, more = (cuts[max(k + step, 2)] for step in (-1, 0, 1))
        of_linkage = float(adjusted_rand(here.labels[some], linkage[k]))
        of_ward = float(adjusted_rand(here.labels[some], ward[k]))
        yield Candidate(
            k,
            0.0,
            more.worst - here.worst,
            here.worst - fewer.worst,
            float(gaps[k - 1] * np.log(k)),
            max(of_linkage, of_ward),
            of_linkage,
            here.smallest,
        )


def _wide_gaps(rows: ExaminedRows, n_neighbors: int, most: int) -> FloatArray:
    """Log ratio of the rates beside each gap of the spectrum of a graph of many neighbours."""
    values = rows.walk(n_neighbors, most + 1, small_part=SMALL_PART / most).values
    rates = np.log(np.maximum(1.0 - values, LEAST_RATE))
    gaps: FloatArray = np.clip(np.diff(rates), 0.0, WIDE_GAP)
    return np.pad(gaps, (0, max(most - len(gaps), 0)))


@frozen
class _Cut:
    """A partition of the graph, and how much its worst cluster is cut."""

    labels: IdArray
    worst: float  # log of the share of a cluster's close pairs that leave it
    smallest: float

    @classmethod
    def of(cls, rows: ExaminedRows, walk: Walk, k: int) -> _Cut:
        labels = rows.spectral_labels(walk, k)
        weights = np.bincount(labels, rows.weights, k)
        worst = float(np.log(rows.cuts(labels, k).max() + ROUNDING))
        return cls(labels, worst, float(k * weights.min() / weights.sum()))


def _worth_looking_at(walk: Walk, least: int, most: int) -> list[int]:
    """All small numbers; of larger ones the connected parts, and those at the largest gaps."""
    gaps = strengths(walk.values)
    larger = np.arange(max(least, EACH + 1), min(most, len(gaps)) + 1)
    peaks = larger[np.argsort(-gaps[larger - 1], kind="stable")[:GAPS]]
    beside = {int(k) + step for k in (*peaks, walk.n_parts) for step in (-1, 0, 1)}
    return sorted(k for k in {*range(least, EACH + 1), *beside} if least <= k <= most)


def _ranked(found: list[Candidate]) -> list[Candidate]:
    """The same with probabilities, the most probable first."""
    scores = np.array([one.score() for one in found])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    order = np.argsort(-shares, kind="stable")
    values = [asdict(found[i]) | {"probability": float(shares[i])} for i in order]
    return [Candidate(**value) for value in values]
