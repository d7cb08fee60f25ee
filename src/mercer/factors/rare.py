"""Pivots for rows that a sample hardly has: one pass over all rows for the worst explained ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular

from mercer._run.checkpoint import is_numbers
from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import PivotFactor
from mercer.rows.distinct import row_hashes
from mercer.rows.gather import gather
from mercer.rows.rows import Rows, cast, part, stack, take
from mercer.rows.sample import Sample
from mercer.rows.source import TILE, Source, spans
from mercer.rows.sweep import TileFunction, total

_jit = LazyModule("mercer.factors._cholesky_jit")

CANDIDATES = 32  # for each pivot: enough that one rare cluster does not crowd out the others

Worst: TypeAlias = tuple[FloatArray, IdArray, IdArray]  # residuals, row numbers, hashes of rows


def with_rare_pivots(
    factor: PivotFactor,
    sample: Sample,
    source: Source | None,
    n_pivots: int,
    *,
    block_rows: int = TILE,
    threads: int = 1,
) -> PivotFactor:
    """The factor and so many more pivots, by greedy choice among the rows it explains worst.

    They are looked for among all rows of the source (None: of the sample). The residual of a row is
    k(x, x) - ‖f‖²; it costs rank² products a row. Fewer pivots come where nothing is left.
    """
    n = CANDIDATES * n_pivots
    if source is None:
        ids = _largest(_residuals(factor, sample.rows, factor.training_rows), n)
        rows, ids = take(sample.rows, ids), sample.ids[ids]
    else:
        make, combine = WorstRows(factor.forget_training(), n), partial(_worst, n)
        how: Any = {"block_rows": block_rows, "threads": threads}
        ids = np.sort(total(source, make, combine, stage="rare rows", **how)[1])
        raw = source.take(ids) if source.in_memory else gather(source, ids)
        rows = factor.format.apply(raw, np.float64)
    return _extended(factor, sample, cast(rows, np.float64), ids, n_pivots)


@dataclass(frozen=True, slots=True)
class WorstRows:
    """Tiles → the n different rows with the largest residuals."""

    factor: PivotFactor
    n: int

    def __call__(self) -> TileFunction[Worst]:
        F_of = _row_function(self.factor)

        def find(raw: Rows, start: int, weights: FloatArray | None) -> Worst:
            rows = self.factor.format.apply(raw)
            residual = _residuals(self.factor, rows, F_of(rows))
            ids = np.arange(start, start + len(residual))
            return _worst(self.n, (residual, ids, row_hashes(raw).view(np.int64)), None)

        return find

    def fits(self, result: Any, source: Source, along: FloatArray | None) -> bool:
        residuals, ids, hashes = result
        shape = (min(len(ids), self.n, source.n_rows),)
        are_ids = is_numbers(ids, shape, np.intp) and is_numbers(hashes, shape, np.int64)
        is_inside = are_ids and len(np.unique(ids)) == len(ids) > 0
        is_inside = is_inside and bool(ids.min() >= 0 and ids.max() < source.n_rows)
        return is_inside and is_numbers(residuals, shape) and bool((residuals >= 0).all())


def _worst(n: int, a: Worst, b: Worst | None) -> Worst:
    """The n largest residuals of different rows; of equals, the first row."""
    if b is not None:
        a = tuple(np.concatenate(pair) for pair in zip(a, b, strict=True))  # type: ignore[assignment]
    order = np.lexsort((a[1], -a[0]))
    _, first = np.unique(a[2][order], return_index=True)
    kept = order[np.sort(first)[:n]]
    return a[0][kept], a[1][kept], a[2][kept]


def _extended(
    factor: PivotFactor, sample: Sample, rows: Rows, ids: IdArray, n_pivots: int
) -> PivotFactor:
    """Greedy choice among the candidates, by their own residual matrix in float64."""
    kernel = factor.kernel
    F = factor.features(np.float64)(rows) @ factor.mix
    S = kernel.matrix(rows, rows) - F @ F.T
    left = np.maximum(S.diagonal(), 0.0).copy()
    floor = 1e-9 * float(kernel.diagonal(rows).max())
    size = min(n_pivots, len(left))
    L, order = np.zeros((size, len(S))), np.empty(size, np.intp)
    n_taken = _jit.take_largest(S, left, floor, floor, L, order)
    chosen = order[:n_taken]
    pivots = stack([factor.pivots, take(rows, chosen)])
    try:
        lower = np.linalg.cholesky(kernel.matrix(pivots, pivots))  # K[B, B] = L Lᵀ
    except np.linalg.LinAlgError:  # nothing to be gained beyond rounding
        return factor
    mix = solve_triangular(lower, np.eye(len(lower)), lower=True).T
    extended = replace(
        factor,
        pivots=pivots,
        pivot_ids=np.concatenate([factor.pivot_ids, ids[chosen]]),
        mix=mix,
        training_rows=None,
    )
    F_of = _row_function(extended)
    F = np.concatenate([F_of(part(sample.rows, *span)) for span in spans(len(sample))])
    residual, w = _residuals(extended, sample.rows, F), sample.weights
    error = float(w @ residual) / float(w @ kernel.diagonal(sample.rows).astype(np.float64))
    return replace(extended, training_rows=F, trace_error=error)


def _row_function(factor: PivotFactor) -> Callable[[Rows], FloatArray]:
    dtype = factor.format.dtype
    features, mix = factor.features(dtype), factor.mix.astype(dtype)
    return lambda rows: features(rows) @ mix


def _residuals(factor: PivotFactor, rows: Rows, F: Any) -> FloatArray:
    """k(x, x) - ‖f‖² of rows in the factor's format."""
    diagonal = factor.kernel.diagonal(rows).astype(np.float64)
    return np.maximum(diagonal - np.einsum("ij,ij->i", F, F, dtype=np.float64), 0.0)


def _largest(values: FloatArray, n: int) -> IdArray:
    """The places of the n largest values; of equals, the first."""
    order: IdArray = np.argsort(-values, kind="stable")[:n]
    return order
