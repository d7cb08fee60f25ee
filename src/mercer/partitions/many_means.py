"""k-means for very many clusters: centres that share a cluster move to clusters without one.

Lloyd's sweeps leave every centre in its neighbourhood, and of a thousand clusters a third start
without a centre of their own. So after every few sweeps each cluster is cut in two and each centre
compared with its *heir*, the centre that most of its rows would go to. Both are pairs of centres a,
b with weights W, and what the pair saves is

    W_a W_b / (W_a + W_b) · ‖a - b‖² · (1 - closeness / CLOSE) - 2·spread

The first factor is Ward's: what one centre in place of two would cost. Alone it prefers a cut
through a large cluster to a small cluster without a centre. The second asks whether there is a
valley: *closeness* is the weight of rows near the border between a and b, each compared with the
mean of the others of its part, and it is near CLOSE where the border cuts through one cluster of
any shape. So unequal sizes need no weights of rows by density, and equal sizes do not suffer from
them. The pairs that save most get the centres of the pairs that save least, while that pays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.linalg.lloyd import sums_by_label

_jit = LazyModule("mercer.partitions._many_means_jit")

# Chosen on many_clusters of 300 (convex and curved, equal and zipf sizes, separations .6 to 1):
# CLOSE and PAYS on seed 0, LEAST on seeds 0 and 1 after a look at 1,000 of zipf sizes, seed 0.
CLOSE = 0.1  # closeness of two halves of one cluster: .16 of a Gaussian one, .12 of a uniform one
LEAST = 0.01  # of what a pair saves counts without any valley
PAYS = 0.8  # a centre moves if it is missed by less than this share of what it saves elsewhere
SEED_ROUNDS = 8
FIRST_SWEEPS = 2
SWEEPS = 1  # between two rounds of moves
LAST_SWEEPS = 3
CUT_SWEEPS = 6  # of a cluster in two
POWER_STEPS = 6
CUT_ROWS = 1024  # of a cluster at most: a cut needs no more
WORK_ROWS = 2048  # rows whose scores are held at once
WORK_CLUSTERS = 64  # that one thread cuts
EXHAUSTIVE = 1024  # centres: rows of more are compared with the neighbours of their own alone
NEIGHBORS = 48
TINY = np.finfo(float).tiny


@frozen
class ManyMeans:
    """Centres of very many clusters."""

    centers: FloatArray  # (k, r) float64
    labels: IdArray  # (n,)
    distances: FloatArray  # (n,) squared, to the own centre
    n_moves: int  # of centres to other clusters
    n_iter: int  # sweeps
    is_converged: bool  # False where max_iter ended the search


@dataclass(slots=True)
class Assignment:
    """The nearest and the next nearest centre of each row, and the squared distances."""

    labels: IdArray
    heirs: IdArray
    near: FloatArray
    next: FloatArray

    @classmethod
    def empty(cls, n: int) -> Assignment:
        return cls(np.zeros(n, np.intp), np.zeros(n, np.intp), np.empty(n), np.empty(n))

    def put(self, rows: IdArray | slice, found: Assignment) -> None:
        self.labels[rows], self.heirs[rows] = found.labels, found.heirs
        self.near[rows], self.next[rows] = found.near, found.next


@frozen
class Pairs:
    """Two centres in place of one, for each cluster: where, and what they save."""

    first: FloatArray  # (k, r)
    second: FloatArray
    savings: FloatArray  # (k,)


def seed_centers(
    F: FloatArray, weights: FloatArray, n_clusters: int, *, rng: np.random.Generator
) -> FloatArray:
    """Rows drawn by their squared distance to those before, an eighth of them at a time."""
    n, norms = len(F), _norms(F)
    chosen = np.zeros(0, np.intp)
    costs = np.full(n, np.inf)
    size = -(-n_clusters // SEED_ROUNDS)
    while len(chosen) < n_clusters:
        mass = weights * np.where(np.isfinite(costs), costs, 1.0)
        mass[chosen] = 0.0
        if not mass.sum() > 0:  # all rows are among the centres, or equal to one
            mass = weights.copy()
            mass[chosen] = 0.0
        size = min(size, n_clusters - len(chosen))
        new = _draw(mass, size, rng)
        chosen = np.concatenate([chosen, new])
        for start in range(0, n, WORK_ROWS):
            some = slice(start, start + WORK_ROWS)
            found = norms[some] + _scores(F[some], F[new]).min(axis=1)
            costs[some] = np.minimum(costs[some], np.maximum(found, 0.0))
    return F[chosen].astype(np.float64)


def cluster_many(
    F: FloatArray,
    weights: FloatArray,
    centers: FloatArray,
    *,
    rounds: int,
    max_iter: int = 300,
    rng: np.random.Generator,
    threads: int = 1,
) -> ManyMeans:
    """k-means from these centres, with so many rounds of moves and at most `max_iter` sweeps.

    F: (n, r) float32 or float64, as many rows as centres or more. One sweep costs n·k products, or
    48·n beyond a thousand centres, and a round of moves about as much as ten products per row.
    """
    rows = _Rows(F, weights, _norms(F), float(np.median(weights)), threads)
    found = rows.assign(centers)
    n_iter = n_moves = 0

    def sweep(n_sweeps: int) -> None:
        nonlocal centers, found, n_iter
        for _ in range(min(n_sweeps, max_iter - n_iter)):
            centers, found = rows.sweep(centers, found)
            n_iter += 1

    sweep(FIRST_SWEEPS)
    for _ in range(rounds):
        if n_iter >= max_iter:
            break
        centers, n_moved = _move_centers(rows, centers, found, rng)
        if not n_moved:
            break
        n_moves += n_moved
        found = rows.assign(centers, found)
        sweep(SWEEPS)
    n_due = n_iter + LAST_SWEEPS
    sweep(LAST_SWEEPS)
    return ManyMeans(centers, found.labels, found.near, n_moves, n_iter, n_iter == n_due)


@frozen
class _Rows:
    F: FloatArray
    weights: FloatArray
    norms: FloatArray
    typical_weight: float  # a heavier row stands for several equal ones
    threads: int

    def sweep(self, centers: FloatArray, found: Assignment) -> tuple[FloatArray, Assignment]:
        """The means of the rows of each centre, and the rows' assignment to these."""
        sums, counts = sums_by_label(self.F, found.labels, self.weights, len(centers))
        means = sums / np.maximum(counts, TINY)[:, None]
        centers = np.where(counts[:, None] > 0, means, centers)
        return centers, self.assign(centers, found)

    def assign(self, centers: FloatArray, before: Assignment | None = None) -> Assignment:
        """By all centres or, if there are very many, by those near the one that each row had."""
        out = Assignment.empty(len(self.F))
        if before is not None and len(centers) > EXHAUSTIVE:
            self._assign_near(centers, before, out)
            return out
        some = partial(self._nearest, centers)
        spans = [slice(at, at + WORK_ROWS) for at in range(0, len(self.F), WORK_ROWS)]
        for span, found in zip(spans, in_order(some, spans, self.threads), strict=True):
            out.put(span, found)
        return out

    def _nearest(
        self, centers: FloatArray, rows: IdArray | slice, names: IdArray | None = None
    ) -> Assignment:
        scores, norms = _scores(self.F[rows], centers), self.norms[rows]
        found = Assignment.empty(len(scores))
        _jit.nearest_two(scores, found.labels, found.heirs, found.near, found.next)
        found.near = np.maximum(found.near + norms, 0.0)
        found.next = np.maximum(found.next + norms, 0.0)
        if names is not None:
            found.labels, found.heirs = names[found.labels], names[found.heirs]
        return found

    def _assign_near(self, centers: FloatArray, before: Assignment, out: Assignment) -> None:
        lists, k = nearest_centers(centers, NEIGHBORS, threads=self.threads), len(centers)
        order, starts = _by_label(before.labels, k)

        def assign(first: int) -> None:
            for center in range(first, min(first + WORK_CLUSTERS, k)):
                ids, near = order[starts[center] : starts[center + 1]], lists[center]
                if len(ids):
                    out.put(ids, self._nearest(centers[near], ids, near))

        for _ in in_order(assign, range(0, k, WORK_CLUSTERS), self.threads):
            pass


def nearest_centers(centers: FloatArray, n_neighbors: int, *, threads: int = 1) -> IdArray:
    """The nearest centres of each, by growing number: (k, n_neighbors)."""
    k, single = len(centers), centers.astype(np.float32)
    out = np.empty((k, min(n_neighbors, k)), np.intp)

    def find(start: int) -> None:
        near = out[start : start + WORK_ROWS]
        scores = _scores(single[start : start + WORK_ROWS], single)
        _jit.smallest_scores(scores, near, np.empty(out.shape[1], np.float32))
        near.sort(axis=1)

    for _ in in_order(find, range(0, k, WORK_ROWS), threads):
        pass
    return out


def _move_centers(
    rows: _Rows, centers: FloatArray, found: Assignment, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Centres after those that save least moved to where they save most; labels follow (INOUT)."""
    k, labels = len(centers), found.labels
    counts = np.bincount(labels, weights=rows.weights, minlength=k).astype(np.float64)
    unit = rows.typical_weight * float(np.median(found.near))  # one row's cost
    heirs, losses = _losses(rows, centers, found, counts, unit)
    cut = _cut_clusters(rows, centers, found, counts, unit, _direction(rows, rng))
    of, to = _choose_moves(losses, cut.savings, heirs)
    if not len(of):
        return centers, 0
    centers = centers.copy()
    centers[of], centers[to] = cut.second[to], cut.first[to]
    has_left = np.zeros(k, bool)
    has_left[of] = True
    found.labels = np.where(has_left[labels], found.heirs, labels)
    return centers, len(of)


def _direction(rows: _Rows, rng: np.random.Generator) -> FloatArray:
    return np.asarray(rng.standard_normal(rows.F.shape[1]))


def _losses(
    rows: _Rows, centers: FloatArray, found: Assignment, counts: FloatArray, unit: float
) -> tuple[IdArray, FloatArray]:
    """The heir of each centre, and what the two of them save."""
    k, labels = len(centers), found.labels
    heirs = _most_common(labels, found.heirs, k)
    apart = ((centers - centers[heirs]) ** 2).sum(axis=1)

    def distances(start: int) -> FloatArray:
        some = slice(start, start + WORK_ROWS)
        far = rows.F[some] - centers[heirs[labels[some]]]
        return np.asarray(np.einsum("ij,ij->i", far, far))

    to_heir = np.concatenate(
        list(in_order(distances, range(0, len(labels), WORK_ROWS), rows.threads))
    )
    near = _without_own(found.near, counts[labels], rows.weights, rows.typical_weight)
    own, theirs = counts, counts[heirs]
    gap = _true_gap(apart, unit, own, theirs)
    border = _border(to_heir - near, gap[labels]) * rows.weights
    closeness = np.bincount(labels, weights=border, minlength=k) / np.maximum(counts, TINY)
    ward = own * theirs / np.maximum(own + theirs, TINY) * apart
    direct = np.bincount(labels, weights=rows.weights * (found.next - found.near), minlength=k)
    losses = _valley(np.minimum(ward, direct), closeness, 0.0, unit)
    return heirs, np.where(counts < 2 * rows.typical_weight, -1.0, losses)


def _cut_clusters(
    rows: _Rows,
    centers: FloatArray,
    found: Assignment,
    counts: FloatArray,
    unit: float,
    direction: FloatArray,
) -> Pairs:
    """Each cluster in two parts."""
    k = len(centers)
    order, starts = _by_label(found.labels, k)
    pairs = Pairs(np.zeros_like(centers), np.zeros_like(centers), np.zeros(k))
    typical = unit / rows.typical_weight

    def cut(first: int) -> None:
        for center in range(first, min(first + WORK_CLUSTERS, k)):
            ids = order[starts[center] : starts[center + 1]]
            if len(ids) < 2 or counts[center] < 4 * rows.typical_weight:
                continue
            ids = ids[:: -(-len(ids) // CUT_ROWS)]
            w = rows.weights[ids] / rows.typical_weight
            mean = (w @ rows.F[ids]) / w.sum()
            Z = np.asarray(rows.F[ids] - mean, np.float64)
            part = _cut_rows(Z, w, typical, direction)
            if part is None:
                continue
            a, b, closeness, share = part
            total, apart = counts[center], ((a - b) ** 2).sum()
            ward = share * (1.0 - share) * total * apart
            wide = 1.0 - typical * w.sum() / max(float(w @ found.near[ids]), TINY)
            pairs.first[center], pairs.second[center] = mean + a, mean + b
            pairs.savings[center] = _valley(ward, closeness, wide, unit)

    for _ in in_order(cut, range(0, k, WORK_CLUSTERS), rows.threads):
        pass
    return pairs


def _cut_rows(
    Z: FloatArray, weights: FloatArray, typical: float, direction: FloatArray
) -> tuple[FloatArray, FloatArray, float, float] | None:
    """Two means of rows around 0, their closeness and the weight of the first; None if there are
    no two parts. Once from the principal direction, once from the farthest row. `weights` are in
    units of a typical row's."""
    norms = np.einsum("ij,ij->i", Z, Z)
    far = Z[norms.argmax()]
    starts = (Z @ _principal(Z, weights, direction) > 0, 2.0 * (Z @ far) > far @ far - typical)
    best, least = None, np.inf
    for is_second in starts:
        means = _two_means(Z, weights, is_second)
        if means is None:
            continue
        a, b, is_second = means
        closeness, share = _closeness(Z, weights, norms, a, b, is_second)
        if closeness < least:
            best, least = (a, b, closeness, share), closeness
    return best


def _principal(Z: FloatArray, weights: FloatArray, direction: FloatArray) -> FloatArray:
    for _ in range(POWER_STEPS):
        direction = (weights * (Z @ direction)) @ Z
        length = float(np.sqrt(direction @ direction))
        if not length > 0:
            break
        direction = direction / length
    return direction


def _two_means(
    Z: FloatArray, weights: FloatArray, is_second: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]] | None:
    total, sums = weights.sum(), weights @ Z
    for _ in range(CUT_SWEEPS):
        inside = np.where(is_second, weights, 0.0)
        share = inside.sum()
        if share < 2.0 or share > total - 2.0:
            return None
        b = inside @ Z
        a, b = (sums - b) / (total - share), b / share
        before, is_second = is_second, Z @ (b - a) > 0.5 * (b @ b - a @ a)
        if np.array_equal(before, is_second):
            break
    return a, b, before


def _closeness(
    Z: FloatArray,
    weights: FloatArray,
    norms: FloatArray,
    a: FloatArray,
    b: FloatArray,
    is_second: NDArray[np.bool_],
) -> tuple[float, float]:
    """How much of the less separate part lies near the border, and the weight of the first."""
    to_a, to_b = norms - 2.0 * (Z @ a) + a @ a, norms - 2.0 * (Z @ b) + b @ b
    near, far = np.where(is_second, to_b, to_a), np.where(is_second, to_a, to_b)
    totals = np.bincount(is_second, weights=weights, minlength=2).astype(np.float64)
    total = totals[is_second.astype(np.intp)]
    cost = float(weights @ near) / max(float(weights.sum()) - 2.0, 1.0)
    gap = _true_gap(float(((a - b) ** 2).sum()), cost, totals[0], totals[1])
    border = _border(far - _without_own(near, total, weights, 1.0), gap) * weights
    closeness = np.bincount(is_second, weights=border, minlength=2) / np.maximum(totals, TINY)
    return float(closeness.max()), float(totals[0] / totals.sum())


def _without_own(
    near: FloatArray, total: FloatArray, weights: FloatArray, typical_weight: float
) -> FloatArray:
    """The squared distance to the mean of the others, which is W/(W - w) times as far."""
    others = total - np.minimum(weights, typical_weight)
    has_others = others > 1e-9 * total
    return np.where(has_others, near * (total / np.where(has_others, others, 1.0)) ** 2, np.inf)


def _true_gap(apart: Any, cost: float, own: FloatArray, theirs: FloatArray) -> FloatArray:
    """‖a - b‖² without what the noise of two means adds; `cost`: weight times squared distance."""
    with np.errstate(over="ignore"):  # of a centre without rows
        noise = cost / np.maximum(own, TINY) + cost / np.maximum(theirs, TINY)
    return np.maximum(apart - noise, 1e-9 * apart + TINY)


def _border(margin: FloatArray, gap: FloatArray) -> FloatArray:
    """1 for a row half way between two centres or beyond, 0 from a quarter of the way on."""
    share: FloatArray = np.clip(1.0 - 2.0 * margin / gap, 0.0, 1.0)
    return share


def _valley(
    ward: FloatArray, closeness: FloatArray | float, wide: float, unit: float
) -> FloatArray:
    """What a pair saves: less without a valley, unless the cluster is wider than most."""
    net = ward - 2.0 * unit
    share = np.clip(np.maximum(1.0 - closeness / CLOSE, wide), LEAST, 1.0)
    return np.where(net > 0, net * share, np.minimum(net, 0.0))


def _choose_moves(
    losses: FloatArray, savings: FloatArray, heirs: IdArray
) -> tuple[IdArray, IdArray]:
    """Centres that move, by growing loss, and the clusters they move to, by decreasing saving.

    Of a centre and its heir one stays, and so does the centre of a cluster that gets a second.
    """
    k = len(losses)
    has_left, is_needed = np.zeros(k, bool), np.zeros(k, bool)
    of: list[int] = []
    to: list[int] = []
    targets = iter(np.argsort(-savings, kind="stable").tolist())
    target = next(targets)
    for center in np.argsort(losses, kind="stable").tolist():
        while target is not None and has_left[target]:
            target = next(targets, None)
        if target is None or savings[target] <= 0 or losses[center] >= PAYS * savings[target]:
            break
        if is_needed[center] or has_left[heirs[center]] or center == target:
            continue
        of.append(center)
        to.append(target)
        has_left[center], is_needed[heirs[center]], is_needed[target] = True, True, True
        target = next(targets, None)
    return np.array(of, np.intp), np.array(to, np.intp)


def _most_common(labels: IdArray, heirs: IdArray, k: int) -> IdArray:
    """The heir that most rows with each label have; the label itself where there are none."""
    pairs, counts = np.unique(labels * k + heirs, return_counts=True)
    order = np.lexsort((-counts, pairs // k))
    of = pairs[order] // k
    is_first = np.concatenate([[True], of[1:] != of[:-1]])
    found = np.arange(k)
    found[of[is_first]] = (pairs[order] % k)[is_first]
    return found


def _by_label(labels: IdArray, k: int) -> tuple[IdArray, IdArray]:
    """Rows in the order of their labels, and where each label starts."""
    order = np.argsort(labels, kind="stable")
    return order, np.searchsorted(labels[order], np.arange(k + 1))


def _draw(mass: FloatArray, size: int, rng: np.random.Generator) -> IdArray:
    """Different rows, with probabilities in proportion to their mass (by exponential clocks)."""
    clocks = np.full(len(mass), np.inf)
    np.divide(rng.exponential(size=len(mass)), mass / mass.max(), out=clocks, where=mass > 0)
    return np.sort(np.argpartition(clocks, size - 1)[:size])


def _norms(F: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", F, F, dtype=np.float64)


def _scores(F: FloatArray, centers: FloatArray) -> FloatArray:
    """‖f - c‖² - ‖f‖² in the type of the rows."""
    C = np.ascontiguousarray(centers, F.dtype)
    scores = F @ (-2.0 * C.T).astype(F.dtype)
    scores += _norms(C).astype(F.dtype)
    return scores
