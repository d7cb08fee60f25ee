"""Passes over all rows with centres at hand: labels, costs, and better centres.

A row's score for a centre c is ‖f - c‖² - ‖f‖² = ‖c‖² - 2 f·c with f = g @ mix, so the centre is
folded into mix once and no row is ever multiplied by the rank × rank matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from mercer._run.checkpoint import is_numbers
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import Factor
from mercer.factors.problem import Problem
from mercer.kernels.base import NOTHING, Kernel
from mercer.kernels.checks import check_values
from mercer.linalg.lloyd import (
    Partition,
    Sums,
    lloyd,
    nearest_center,
    scores_of_centers,
    sums_by_label,
)
from mercer.linalg.numbering import content_order
from mercer.linalg.products import row_products
from mercer.partitions.label_store import store_for
from mercer.rows.rows import Rows, take
from mercer.rows.source import Source
from mercer.rows.summary import Columns, check_rows
from mercer.rows.sweep import Pass, TileFunction, add_each, folded, is_weights, sweep, total

CountedLabels: TypeAlias = tuple[IdArray, int]  # and how many of the rows no pivot sees

FULL_SWEEPS = 5  # over all rows, after a sample has chosen the centres


@dataclass(frozen=True, slots=True)
class Assignment:
    """Gives any row its scores for the clusters, f @ A + b; the smallest wins."""

    factor: Factor
    A: FloatArray  # (rank, k) float64
    b: FloatArray  # (k,)

    @classmethod
    def of_centers(cls, factor: Factor, centers: FloatArray) -> Assignment:
        """The nearest centre wins: scores are ‖f - c‖² - ‖f‖²."""
        return cls(factor, *scores_of_centers(centers))

    @classmethod
    def of_cones(cls, factor: Factor, vectors: FloatArray, directions: FloatArray) -> Assignment:
        """The direction of largest inner product with the coordinates f @ vectors wins."""
        return cls(factor, -vectors @ directions.T, np.zeros(len(directions)))

    def scorer(self, dtype: Any) -> Callable[[Rows], tuple[FloatArray, FloatArray]]:
        """Rows in the factor's format → features g and scores, computed in `dtype`."""
        features = self.factor.features(dtype)
        folded, offset = (self.factor.mix @ self.A).astype(dtype), self.b.astype(dtype)

        def scores(rows: Rows) -> tuple[FloatArray, FloatArray]:
            G = features(rows)
            return G, row_products(G, folded) + offset

        return scores

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        return first_of(self.counted_labels())

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Raw rows → labels, decided in float64, and how many rows no pivot sees.

        A float32 matrix product gives a row other bits at another place in the tile; float64
        products in one shape do not. So a label is a function of the row alone. Clusters are
        compared in an order of their content, so that ties do not depend on their numbers.
        """
        order = content_order(self.A.T)
        ordered = Assignment(self.factor, self.A[:, order], self.b[order])
        scores, row_format = ordered.scorer(np.float64), self.factor.format
        kernel: Kernel = self.factor.kernel  # type: ignore[attr-defined]

        def decide(rows: Rows) -> CountedLabels:
            X = row_format.apply(rows, np.float64)
            G, S = scores(X)
            return order[nearest_center(S)[0]], n_unseen(kernel, X, G, S, ordered.b)

        return decide

    def squared_distances(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → ‖f - c‖² for each centre, in float64."""
        scores, row_format = self.scorer(np.float64), self.factor.format

        def distances(rows: Rows) -> FloatArray:
            G, S = scores(row_format.apply(rows, np.float64))
            F = row_products(G, self.factor.mix)
            return np.maximum(S + np.einsum("ij,ij->i", F, F)[:, None], 0.0)

        return distances

    def distances(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → ‖f - c‖ for each centre."""
        squared = self.squared_distances()
        return lambda rows: np.sqrt(squared(rows))


def first_of(counted: Callable[[Rows], CountedLabels]) -> Callable[[Rows], IdArray]:
    """The labels alone."""
    return lambda rows: counted(rows)[0]


def n_unseen(kernel: Kernel, X: Rows, G: FloatArray, scores: FloatArray, offset: FloatArray) -> int:
    """How many rows no pivot sees: they leave all scores G @ A + offset at the offset.

    All such rows get one label, whatever they are. One column of the scores rules out nearly every
    row, so that this costs nothing beside the scores.
    """
    ids = np.flatnonzero(np.abs(scores[:, 0] - offset[0]) <= NOTHING)
    ids = ids[(np.abs(scores[ids] - offset) <= NOTHING).all(axis=1)]
    return int((~kernel.sees(take(X, ids), G[ids])).sum()) if len(ids) else 0


def tiles_of(
    source: Source,
    make: Callable[[], Callable[[Rows], Any]],
    *,
    kernel: Kernel,
    block_rows: int,
    threads: int,
    stage: str,
    row_bytes: int = 8,
) -> Iterator[tuple[int, Any]]:
    """(first row, function(rows)) for each tile; rows are checked on the way.

    `make` gives the function, and can be sent to other processes: a method of a frozen value.
    """
    checked = CheckedTiles(make, kernel, Columns.of(source))
    yield from sweep(
        source, checked, block_rows=block_rows, threads=threads, stage=stage, row_bytes=row_bytes
    )


@dataclass(frozen=True, slots=True)
class CheckedTiles:
    """Tiles whose values the kernel is defined for → (first row, what `make`'s function says)."""

    make: Callable[[], Callable[[Rows], Any]]
    kernel: Kernel
    columns: Columns

    def __call__(self) -> TileFunction[tuple[int, Any]]:
        function = self.make()

        def work(rows: Rows, start: int, weights: FloatArray | None) -> tuple[int, Any]:
            check_values(self.kernel, check_rows(rows, start, self.columns), self.columns)
            return start, function(rows)

        return work


def label_rows(
    make: Callable[[], Callable[[Rows], IdArray]],
    n_clusters: int,
    problem: Problem,
    *,
    threads: int,
) -> tuple[IdArray | None, FloatArray]:
    """The label of each row (None where rows are not in memory) and each cluster's weight.

    `make` gives the function of raw rows that decides.
    """
    labels, (totals,) = labels_and_sums(partial(LabelCounts, make, n_clusters), problem, threads)
    return labels, totals


def labels_and_sums(
    counts: Callable[[bool], Pass[tuple[Any, ...]]], problem: Problem, threads: int
) -> tuple[IdArray | None, tuple[Any, ...]]:
    """The label of each row (None where rows are not in memory) and sums over all rows.

    `counts(keeps_labels)` makes a function of tiles: sums, and if wanted the first row and labels.
    """
    source = problem.source
    how: Any = {"block_rows": problem.block_rows, "threads": threads, "stage": "labels"}
    how["along"] = problem.weights
    store = store_for(source)
    if store is None and not source.in_memory:
        return None, total(source, counts(False), add_each, **how)
    labels = np.empty(source.n_rows, np.intp) if source.in_memory else None
    kept: Any = store if labels is None else labels

    def write(result: tuple[Any, ...]) -> tuple[Any, ...]:
        *sums, start, tile = result
        kept[start : start + len(tile)] = tile
        return tuple(sums)

    # a checkpoint would remember sums and no labels, so this pass is never one
    return labels, folded(sweep(source, counts(True), deliver=write, **how), add_each)


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Tiles → the weight of each label, and where labels are wanted the first row and they."""

    make: Callable[[], Callable[[Rows], IdArray]]
    n_clusters: int
    keeps_labels: bool

    def __call__(self) -> TileFunction[tuple[Any, ...]]:
        decide = self.make()

        def label(rows: Rows, start: int, weights: FloatArray | None) -> tuple[Any, ...]:
            tile = decide(rows)
            counts = np.bincount(tile, weights=weights, minlength=self.n_clusters)
            found = counts.astype(np.float64)
            return (found, start, tile) if self.keeps_labels else (found,)

        return label

    def fits(self, result: Any, source: Source, along: FloatArray | None) -> bool:
        (counts,) = result
        return is_weights(counts, self.n_clusters, source, along)


def refine_centers(
    factor: Factor, problem: Problem, partition: Partition, *, max_iter: int, threads: int
) -> Partition:
    """A few of Lloyd's sweeps over all rows; nothing per row is kept.

    The cost needs Σ w‖f‖², which would be the slowest part of a sweep; it does not depend on the
    centres, so the mean over the sample stands for it.
    """
    factor = factor.forget_training()

    def sweep(centers: FloatArray, moves: FloatArray | None) -> Sums:
        sums, counts, best = total(
            problem.source,
            NearestSums(Assignment.of_centers(factor, centers)),
            add_each,
            along=problem.weights,
            block_rows=problem.block_rows,
            threads=threads,
            stage="full sweeps",
        )
        cost = float(counts.sum() * partition.mean_norm + best)
        return Sums(sums @ factor.mix, counts, inertia=cost)

    found = lloyd(
        sweep,
        partition.centers,
        max_iter=min(FULL_SWEEPS, max_iter),
        least_shift=partition.least_shift,
    )
    return replace(
        partition, centers=found.centers, inertia=found.inertia, n_full_sweeps=found.n_iter
    )


@dataclass(frozen=True, slots=True)
class NearestSums:
    """Tiles → Σ w·g and Σ w per nearest centre, and Σ w·score."""

    assignment: Assignment

    def __call__(self) -> TileFunction[tuple[FloatArray, FloatArray, float]]:
        row_format = self.assignment.factor.format
        scorer = self.assignment.scorer(row_format.dtype)

        def add_up(
            rows: Rows, start: int, weights: FloatArray | None
        ) -> tuple[FloatArray, FloatArray, float]:
            G, scores = scorer(row_format.apply(rows))
            labels, best = nearest_center(scores)
            w = np.ones(len(labels)) if weights is None else weights
            sums, counts = sums_by_label(G, labels, w, scores.shape[1])
            return sums, counts, float(w @ best)

        return add_up

    def fits(self, result: Any, source: Source, along: FloatArray | None) -> bool:
        sums, counts, best = result
        shape = self.assignment.A.shape[1], len(self.assignment.factor.mix)
        is_sound = is_numbers(sums, shape) and isinstance(best, float) and bool(np.isfinite(best))
        return is_sound and is_weights(counts, shape[0], source, along)
