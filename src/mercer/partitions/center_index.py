"""The nearest of very many centres, without comparing a row with all of them.

*Inverted lists*: the centres are clustered into groups, a row is compared with the groups and then
with the centres of the nearest few. How many that are is measured on rows of the sample, so that
the recall of the nearest centre is known; where it takes an eighth of all centres or more, as in
high dimensions without any structure, there is no index, and rows are compared with all centres.

A label is decided in float64: products in float32 only exclude centres that are farther away than
their rounding errors. So it does not depend on which rows are labelled together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray, IdArray
from mercer.linalg.lloyd import scores_of_centers
from mercer.linalg.products import row_products
from mercer.partitions.many_means import cluster_many, seed_centers

_jit = LazyModule("mercer.partitions._center_index_jit")

INDEXED = 2048  # centres: fewer are compared at once
GROUPS = 6.0  # times the square root of the number of centres
JUDGES = 4096  # rows that measure the recall
RECALL = 0.995
WORTH = 1 / 8  # of all centres: measured, lists cost five to seven times as much per centre
WORK_ROWS = 2048  # rows whose scores are held at once
LARGEST_SINGLE = 1e9  # squares of larger float32 values lose digits or overflow

Search = Callable[[FloatArray], tuple[IdArray, FloatArray]]


@frozen
class CenterIndex(Record):
    """Groups of centres, and how many of them a row is compared with."""

    groups: FloatArray = stored("(g, r) float64, finite")
    starts: IdArray = stored("(g+1,) int, >= 0, sorted")  # of the lists
    members: IdArray = stored("(k,) int, in [0, k)")  # the centres, list after list
    n_probes: int = stored("int, >= 1")
    recall: float = stored("float, in [0, 1]")  # of the nearest centre, when it was measured

    def sizes(self) -> dict[str, int]:
        """k: centres; r: their coordinates."""
        return {"k": len(self.members), "r": self.groups.shape[1]}

    def check(self) -> None:
        is_cut = self.starts[0] == 0 and self.starts[-1] == len(self.members)
        is_cut = is_cut and len(np.unique(self.members)) == len(self.members)
        expect(is_cut, "a centre is not on one list of the index")
        expect(self.n_probes <= len(self.groups), "the index has fewer lists than a row is given")

    def renumber(self, order: IdArray) -> CenterIndex:
        """The same lists after centre order[i] became number i."""
        members = np.argsort(order)[self.members]
        return CenterIndex(self.groups, self.starts, members, self.n_probes, self.recall)


def search_centers(centers: FloatArray, index: CenterIndex | None = None) -> Search:
    """A function of rows (n, r): the nearest centre of each and the squared distance to it."""
    if index is None:
        every = _List.of(centers, np.arange(len(centers)))
        return lambda Z: _in_blocks(every.search, Z)
    pairs = zip(index.starts[:-1], index.starts[1:], strict=True)
    lists = [_List.of(centers, np.sort(index.members[start:stop])) for start, stop in pairs]
    A, b = scores_of_centers(index.groups)
    n_probes = index.n_probes

    def search(Z: FloatArray) -> tuple[IdArray, FloatArray]:
        scores = row_products(np.asarray(Z, np.float64), A) + b
        probes = np.argpartition(scores, n_probes - 1, axis=1)[:, :n_probes].ravel()
        order = np.argsort(probes, kind="stable")
        starts = np.searchsorted(probes[order], np.arange(len(lists) + 1))
        labels, distances = np.zeros(len(probes), np.intp), np.full(len(probes), np.inf)
        for group, some in enumerate(lists):
            slots = order[starts[group] : starts[group + 1]]
            if len(slots) and len(some.names):
                labels[slots], distances[slots] = some.search(Z[slots // n_probes])
        shape = len(Z), n_probes
        return _least(labels.reshape(shape), distances.reshape(shape))

    return lambda Z: _in_blocks(search, Z)


def build_index(
    centers: FloatArray, Z: FloatArray, *, rng: np.random.Generator
) -> CenterIndex | None:
    """Lists for these centres and rows like Z; None where all centres are as quick to look at."""
    k = len(centers)
    if k <= INDEXED:
        return None
    n_groups, ones = int(GROUPS * np.sqrt(k)), np.ones(k)
    start = seed_centers(centers, ones, n_groups, rng=rng)
    groups = cluster_many(centers, ones, start, rounds=0, rng=rng).centers
    own = search_centers(groups)(centers)[0]
    members = np.argsort(own, kind="stable")
    starts = np.searchsorted(own[members], np.arange(n_groups + 1))
    judges = Z[rng.permutation(len(Z))[:JUDGES]]
    nearest = search_centers(centers)(judges)[0]
    A, b = scores_of_centers(groups)
    scores = np.asarray(judges, np.float64) @ A + b
    ranks = (scores < scores[np.arange(len(judges)), own[nearest], None]).sum(axis=1)
    n_probes = int(np.quantile(ranks, RECALL, method="higher")) + 1
    if n_groups + n_probes * k / n_groups > WORTH * k:
        return None
    recall = float((ranks < n_probes).mean())
    return CenterIndex(groups, starts, members, n_probes, recall)


@frozen
class _List:
    """Some of the centres, ready for products."""

    centers: FloatArray  # (m, r) float64
    names: IdArray
    products: FloatArray  # (r, m) -2c
    lengths: FloatArray  # (m,) ‖c‖²
    longest: float  # ‖c‖

    @classmethod
    def of(cls, centers: FloatArray, names: IdArray) -> _List:
        some = np.ascontiguousarray(centers[names])
        A, b = scores_of_centers(some)
        dtype = np.float32 if np.abs(some).max(initial=0.0) < LARGEST_SINGLE else np.float64
        longest = float(np.sqrt(b.max(initial=0.0)))
        return cls(some, names, np.ascontiguousarray(A, dtype), b.astype(dtype), longest)

    def search(self, Z: FloatArray) -> tuple[IdArray, FloatArray]:
        exact = np.asarray(Z, np.float64)
        norms = np.einsum("ij,ij->i", exact, exact)
        A, b = self.products, self.lengths
        if norms.max(initial=0.0) >= LARGEST_SINGLE**2:
            A, b = A.astype(np.float64), b.astype(np.float64)
        scores = np.asarray(Z, A.dtype) @ A
        scores += b
        # every sum of r products is wrong by less than r roundings of its absolute terms
        slack = 4.0 * (len(A) + 4) * np.finfo(A.dtype).eps
        slack = slack * self.longest * (2.0 * np.sqrt(norms) + self.longest)
        labels, distances = np.empty(len(Z), np.intp), np.empty(len(Z))
        _jit.nearest_exactly(scores, slack, exact, self.centers, labels, distances)
        return self.names[labels], distances


def _in_blocks(search: Search, Z: FloatArray) -> tuple[IdArray, FloatArray]:
    if len(Z) <= WORK_ROWS:
        return search(Z)
    found = [search(Z[at : at + WORK_ROWS]) for at in range(0, len(Z), WORK_ROWS)]
    labels, distances = zip(*found, strict=True)
    return np.concatenate(labels), np.concatenate(distances)


def _least(labels: IdArray, distances: FloatArray) -> tuple[IdArray, FloatArray]:
    """The nearest of each row's candidates, of equals the first centre."""
    best = distances.min(axis=1)
    last = np.iinfo(np.intp).max
    return np.where(distances == best[:, None], labels, last).min(axis=1), best
