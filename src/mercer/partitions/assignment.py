"""Passes over all rows with centres at hand: labels, costs, and better centres.

A row's score for a centre c is ‖f - c‖² - ‖f‖² = ‖c‖² - 2 f·c with f = g @ mix, so the centre is
folded into mix once and no row is ever multiplied by the rank × rank matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer._run.checkpoint import is_numbers
from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.factors.dense import DenseFactor, LinearScores
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.kernels.domain import check_values
from mercer.linalg.lloyd import Partition, Sums, lloyd, nearest_center, sums_by_label
from mercer.partitions.label_store import store_for
from mercer.partitions.outliers import NOISE, OutlierModel, Scorer
from mercer.rows.rows import Rows
from mercer.rows.source import Source
from mercer.rows.summary import Columns, check_rows
from mercer.rows.sweep import (
    Pass,
    TileFunction,
    add_each,
    folded,
    is_weights,
    sweep,
    sweep_parts,
    total,
)

FULL_SWEEPS = 5  # over all rows, after a sample has chosen the centres


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


def parts_of(
    source: Source,
    make: Callable[[], Callable[[Rows], Any]],
    finish: Callable[[int, list[tuple[int, Any]]], Any],
    *,
    kernel: Kernel,
    **how: Any,
) -> Iterator[Any]:
    """The same in parts of many tiles: what `finish` makes of them, where they were found."""
    yield from sweep_parts(source, CheckedTiles(make, kernel, Columns.of(source)), finish, **how)


@frozen
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
    counts = partial(LabelCounts, Unscored(make), n_clusters)
    kept, (totals,) = labels_and_sums(counts, problem, threads)
    return kept.labels, totals


def label_and_score_rows(
    scorer: Scorer, n_clusters: int, problem: Problem, *, threads: int
) -> tuple[Kept, FloatArray]:
    """The same, with outlier scores: labels and scores in memory, and each cluster's weight."""
    counts = partial(LabelCounts, scorer.labels_and_scores, n_clusters)
    kept, (totals,) = labels_and_sums(counts, problem, threads, model=scorer.model)
    return kept, totals


def labels_and_sums(
    counts: Callable[[bool], Pass[tuple[Any, ...]]],
    problem: Problem,
    threads: int,
    *,
    model: OutlierModel | None = None,
) -> tuple[Kept, tuple[Any, ...]]:
    """What is known of each row (nothing where rows are not in memory) and sums over all rows.

    `counts(keeps_labels)` makes a function of tiles: sums, and if wanted the first row, labels and
    outlier scores or None. By `model`, labels that go to a file are -1 for noise; labels in memory
    stay those of clusters.
    """
    source = problem.source
    how: Any = {"block_rows": problem.block_rows, "threads": threads, "stage": "labels"}
    how["along"] = problem.weights
    store = store_for(source)
    if store is None and not source.in_memory:
        return Kept(), total(source, counts(False), add_each, **how)
    found = Kept()
    if source.in_memory:
        scores = None if model is None else np.empty(source.n_rows)
        found = Kept(np.empty(source.n_rows, np.intp), scores)

    def write(result: tuple[Any, ...]) -> tuple[Any, ...]:
        *sums, start, labels, scores = result
        rows = slice(start, start + len(labels))
        if found.labels is None:
            is_noise = False if model is None else model.is_noise(scores)
            store[rows] = np.where(is_noise, NOISE, labels)  # type: ignore[index]
            return tuple(sums)
        found.labels[rows] = labels
        if found.scores is not None:
            found.scores[rows] = scores
        return tuple(sums)

    # a checkpoint would remember sums and no labels, so this pass is never one
    return found, folded(sweep(source, counts(True), deliver=write, **how), add_each)


@frozen
class Kept:
    """Labels and outlier scores of rows in memory; None for others."""

    labels: IdArray | None = None
    scores: FloatArray | None = None


@frozen
class Unscored:
    """Labels without scores, as `LabelCounts` takes them."""

    make: Callable[[], Callable[[Rows], IdArray]]

    def __call__(self) -> Callable[[Rows], tuple[IdArray, None]]:
        decide = self.make()
        return lambda rows: (decide(rows), None)


@frozen
class LabelCounts:
    """Tiles → the weight of each label, and where labels are wanted the first row and they."""

    make: Callable[[], Callable[[Rows], tuple[IdArray, FloatArray | None]]]
    n_clusters: int
    keeps_labels: bool

    def __call__(self) -> TileFunction[tuple[Any, ...]]:
        decide = self.make()

        def label(rows: Rows, start: int, weights: FloatArray | None) -> tuple[Any, ...]:
            tile, scores = decide(rows)
            counts = np.bincount(tile, weights=weights, minlength=self.n_clusters)
            found = counts.astype(np.float64)
            return (found, start, tile, scores) if self.keeps_labels else (found,)

        return label

    def fits(self, result: Any, source: Source, along: FloatArray | None) -> bool:
        (counts,) = result
        return is_weights(counts, self.n_clusters, source, along)


def refine_centers(
    factor: DenseFactor, problem: Problem, partition: Partition, *, max_iter: int, threads: int
) -> Partition:
    """A few of Lloyd's sweeps over all rows; nothing per row is kept.

    The cost needs Σ w‖f‖², which would be the slowest part of a sweep; it does not depend on the
    centres, so the mean over the sample stands for it.
    """
    factor = factor.forget_training()

    def sweep(centers: FloatArray, moves: FloatArray | None) -> Sums:
        sums, counts, best = total(
            problem.source,
            NearestSums(LinearScores.of_centers(factor, centers)),
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


@frozen
class NearestSums:
    """Tiles → Σ w·g and Σ w per nearest centre, and Σ w·score."""

    scores: LinearScores

    def __call__(self) -> TileFunction[tuple[FloatArray, FloatArray, float]]:
        row_format = self.scores.factor.format
        scorer = self.scores.scorer(row_format.dtype)

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
        shape = self.scores.A.shape[1], len(self.scores.factor.mix)
        is_sound = is_numbers(sums, shape) and isinstance(best, float) and bool(np.isfinite(best))
        return is_sound and is_weights(counts, shape[0], source, along)
