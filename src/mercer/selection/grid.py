"""Scores of many kernels and numbers of clusters: one factor for each kernel, one decomposition
for all numbers of clusters, threads over kernels ([novak2021], section 2.1.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mercer._run.engine import each
from mercer._run.frozen import frozen
from mercer._run.progress import tell
from mercer._run.types import FloatArray
from mercer.embeddings.scores import (
    ScoreMap,
    Scores,
    score_map,
    score_map_of_two,
    training_scores,
)
from mercer.embeddings.weighted_kpca import weighted_kpca
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.partitions.codebooks import Encoding
from mercer.partitions.criteria import BALANCE, criterion
from mercer.partitions.encode import encode
from mercer.rows.sample import Sample, subsample
from mercer.selection.result import Selection

SINGLE_RANGE = (1e-9, 1e9)  # of values whose squares float32 holds with all its digits
MOST_CLAMPED = 0.1  # of the rows may have no positive low-rank degree


@frozen
class Grid:
    """What all pairs have in common."""

    train: Sample  # rows that models are fitted on
    validation: Sample  # held-out rows that score them
    sizes: tuple[int, ...]  # numbers of clusters, ascending
    approximation: Any
    encoding: Encoding
    balance: float = BALANCE
    outlier: float = 0.0
    cholesky: Kernel | None = None  # of all factors, where coefficients have a kernel of their own


def search_grid(
    problem: Problem,
    kernels: Sequence[Kernel],
    *,
    approximation: Any,
    sizes: tuple[int, ...],
    gammas: tuple[float, ...],
    n_train: int,
    n_validation: int,
    encoding: Any,
    balance: float,
    outlier: float,
    cholesky_kernel: Callable[[Sample, np.random.Generator], Kernel | None],
    rng: np.random.Generator,
    threads: int,
) -> Selection:
    """The criterion on held-out rows of all kernels (none: the problem's) and numbers of clusters.

    `cholesky_kernel`: of the training sample, where coefficients have another kernel than factors.
    """
    train, validation = split(problem.sample, n_train, n_validation, rng=rng)
    check_validation_size(len(validation), sizes[-1])
    second = cholesky_kernel(train, rng)
    grid = Grid(train, validation, sizes, approximation, encoding, balance, outlier, second)
    own: Any = problem.kernel
    scores = score_grid(grid, kernels or [own], rng=rng, threads=threads)
    return Selection(
        encoding, balance, sizes, gammas or (None,), scores, len(train), len(validation)
    )


def score_grid(
    grid: Grid, kernels: Sequence[Kernel], *, rng: np.random.Generator, threads: int = 1
) -> FloatArray:
    """The criterion of each kernel (rows) with each number of clusters (columns)."""
    if all(kernel.has_bandwidth for kernel in kernels):
        grid = replace(grid, train=_single(grid.train), validation=_single(grid.validation))
    seeds = rng.integers(2**63, size=len(kernels) + 1)
    shared = None if grid.cholesky is None else _shared(grid, int(seeds[-1]))
    rows, n_rows = [], len(grid.validation)
    jobs = zip(kernels, seeds[:-1], strict=True)
    for number, row in enumerate(each(KernelScores(grid, shared), jobs, threads)):
        tell("search", (number + 1) * n_rows, len(kernels) * n_rows)
        rows.append(row)
    return np.array(rows)


@frozen
class KernelScores:
    """A kernel and a seed → its scores with all numbers of clusters."""

    grid: Grid
    shared: Any  # factor, multipliers and bias, where one Cholesky kernel serves all

    def __call__(self, job: tuple[Kernel, Any]) -> FloatArray:
        if self.shared is None:
            return _score_kernel(self.grid, job[0], np.random.default_rng(int(job[1])))
        return _score_second_kernel(self.grid, job[0], self.shared)


def split(
    sample: Sample, n_train: int, n_validation: int, *, rng: np.random.Generator
) -> tuple[Sample, Sample]:
    """Training rows and held-out rows; a third is held out where all would train."""
    n = len(sample)
    if n - n_train < n_train // 2:
        n_train = n - max(n // 3, 1)
    order = rng.permutation(n)
    held_out = order[n_train : n_train + n_validation]
    return subsample(sample, np.sort(order[:n_train])), subsample(sample, np.sort(held_out))


def check_validation_size(n_validation: int, n_clusters: int) -> None:
    """Refuse a split whose held-out rows cannot show every cluster."""
    if n_validation < n_clusters:
        raise ValueError(
            f"{n_validation} rows are held out, fewer than n_clusters={n_clusters}; pass "
            "more rows, lower train_size, or ask for fewer clusters"
        )


def _single(sample: Sample) -> Sample:
    """The rows in float32 where it can hold them: its precision is enough to compare models."""
    rows = sample.rows
    if not isinstance(rows, np.ndarray) or rows.dtype == np.float32:
        return sample
    low, high = SINGLE_RANGE
    if not low < np.abs(rows).max(initial=0.0) < high:
        return sample
    return replace(sample, rows=rows.astype(np.float32))


def _score_kernel(grid: Grid, kernel: Kernel, rng: np.random.Generator) -> FloatArray:
    """One factor, one decomposition, all numbers of clusters."""
    factor = grid.approximation.fit(kernel, grid.train, rng=rng).dense(grid.train, rng=rng)
    F, weights = factor.training_rows, grid.train.weights
    found = weighted_kpca(F, weights, grid.sizes[-1] - 1, rng=rng, by_qr=False)
    if found.n_clamped > MOST_CLAMPED * len(F):
        return np.full(len(grid.sizes), np.nan)
    model, train = score_map(factor, found), training_scores(F, found)
    return _score_sizes(grid, model, train, model.of_rows(factor, grid.validation))


def _shared(grid: Grid, seed: int) -> Any:
    """Pivots, eigenvectors and bias of the Cholesky kernel: the same for every second kernel."""
    rng = np.random.default_rng(seed)
    factor = grid.approximation.fit(grid.cholesky, grid.train, rng=rng)
    factor = factor.dense(grid.train, rng=rng)
    F = factor.training_rows
    found = weighted_kpca(F, grid.train.weights, grid.sizes[-1] - 1, rng=rng, by_qr=False)
    return factor, found.multipliers(F), found.bias


def _score_second_kernel(grid: Grid, kernel: Kernel, shared: Any) -> FloatArray:
    factor, multipliers, bias = shared
    second = factor.with_kernel(kernel)
    model = score_map_of_two(second, grid.train, multipliers, bias)
    train, validation = (model.of_rows(second, sample) for sample in (grid.train, grid.validation))
    return _score_sizes(grid, model, train, validation)


def _score_sizes(grid: Grid, model: ScoreMap, train: Scores, validation: Scores) -> FloatArray:
    """The criterion for each number of clusters; NaN where there are no such clusters."""
    scores = np.full(len(grid.sizes), np.nan)
    for column, k in enumerate(grid.sizes):
        if k - 1 > len(model.bias):
            continue
        codebook = encode(grid.encoding, train, grid.train.weights, model, k).codebook
        if len(codebook) == k:
            scores[column] = criterion(
                codebook,
                validation.coordinates(grid.encoding, k),
                grid.validation.weights,
                balance=grid.balance,
                outlier=grid.outlier,
                pivot_sums=validation.pivot_sums(),
            )
    return scores
