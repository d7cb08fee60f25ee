"""What clusters look like: their most central rows, and the columns that tell them from others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray, IdArray

ROWS_PER_CLUSTER, LEAST_ROWS, MOST_ROWS = 30, 1000, 10_000
MOST_NUMBERS = 2**22  # distances of rows to clusters that are held at once: 32 MB
EXEMPLARS = 3  # rows that represent a cluster
COLUMNS = 8  # of a cluster's profile
NOBODY = -1  # in place of a row or a column
LEAST_SPREAD = 0.01  # of that of all rows, inside and outside: no effect is infinite
ROUNDING = 1e-9  # of the mean size: a spread below is that of rounding


@frozen
class ColumnEffect:
    """How one column differs in a cluster.

    Attributes
    ----------
    name : str
        The name of the column, or its number.
    effect : float
        Mean in the cluster less mean in all other rows, in standard deviations (Cohen's d).
    mean, others : float
        These two means.
    """

    name: str
    effect: float
    mean: float
    others: float


@frozen
class Profile:
    """What distinguishes one cluster.

    Attributes
    ----------
    cluster : int
        Its number.
    weight : float
        Its total weight.
    columns : tuple of ColumnEffect
        The columns with the largest effects; of a sparse table, the terms that are more frequent.
    """

    cluster: int
    weight: float
    columns: tuple[ColumnEffect, ...]

    def __str__(self) -> str:
        words = ", ".join(f"{c.name} {c.effect:+.1f}" for c in self.columns)
        return f"cluster {self.cluster}: {words or 'like all others'}"


@frozen
class Explanation(Record):
    """Exemplars and profiles of all clusters, from a sample of the rows."""

    # Of each cluster the numbers of its exemplars, most central first (-1: none); then of each
    # column of its profile, largest effects first, its number (-1: none), the effect, the mean in
    # the cluster and that in all other rows. One array: a file spends more on arrays than on
    # numbers.
    table: FloatArray = stored("(k, w) float64, finite")

    @property
    def exemplars(self) -> IdArray:
        """(k, 3) row numbers."""
        return self.table[:, :EXEMPLARS].astype(np.intp)

    @property
    def effects(self) -> FloatArray:
        """(k, columns, 4)."""
        return self.table[:, EXEMPLARS:].reshape(len(self.table), -1, 4)

    def sizes(self) -> dict[str, int]:
        """k: clusters."""
        return {"k": len(self.table)}

    def check(self) -> None:
        width = self.table.shape[1] - EXEMPLARS
        expect(width >= 0 and width % 4 == 0, "an explanation is not whole")
        rows = self.table[:, :EXEMPLARS]
        is_row = (rows == np.floor(rows)) & (rows >= NOBODY) & (rows < 2**53)
        expect(is_row.all(), "an exemplar is not a row number")

    def check_columns(self, n_columns: int) -> None:
        """Refuse (ValueError) columns that X does not have."""
        columns = self.effects[:, :, 0]
        is_there = (columns == np.floor(columns)) & (columns >= NOBODY) & (columns < n_columns)
        expect(is_there.all(), "a profile names a column that X does not have")

    def profiles(self, names: Sequence[str], weights: FloatArray) -> tuple[Profile, ...]:
        """For people to read."""
        return tuple(
            Profile(
                number,
                float(weight),
                tuple(
                    ColumnEffect(str(names[int(column)]), *map(float, numbers))
                    for column, *numbers in self.effects[number]
                    if column != NOBODY
                ),
            )
            for number, weight in enumerate(weights)
        )


def explained_rows(n_clusters: int) -> int:
    """How many rows of a sample tell what clusters look like: 30 for each, within bounds."""
    return max(
        LEAST_ROWS, min(ROWS_PER_CLUSTER * n_clusters, MOST_ROWS, MOST_NUMBERS // n_clusters)
    )


def explain(
    table: Any,
    space: FloatArray,
    labels: IdArray,
    n_clusters: int,
    *,
    ids: IdArray,
    scores: FloatArray,
    weights: FloatArray,
) -> Explanation:
    """Exemplars and profiles from rows with these labels, coordinates and outlier scores."""
    exemplars = np.full((n_clusters, EXEMPLARS), float(NOBODY))
    for cluster in range(n_clusters):
        found = central_rows(space, labels, cluster, EXEMPLARS, scores=scores)
        exemplars[cluster, : len(found)] = ids[found]
    effects = column_effects(table, labels, n_clusters, weights, COLUMNS)
    return Explanation(np.hstack([exemplars, effects.reshape(n_clusters, -1)]))


def central_rows(
    space: Any, labels: IdArray, cluster: int, most: int, *, scores: FloatArray | None = None
) -> IdArray:
    """The rows of a cluster nearest to its mean in `space`, among its less outlying half.

    Where rows are at one place but for rounding, as in clusters that no edge connects, the least
    outlying come first.
    """
    places = np.flatnonzero(labels == cluster)
    if not len(places):
        return places
    mean = np.asarray(space[places].mean(axis=0)).ravel()
    away = _squared_distances(space[places], mean)
    if scores is None:
        return places[np.argsort(away, kind="stable")[:most]]
    size = max(float(mean @ mean), np.finfo(float).tiny)
    steps = np.floor(away / (ROUNDING * size))
    is_outer = scores[places] > np.median(scores[places])
    return places[np.lexsort((scores[places], steps, is_outer))[:most]]


def column_effects(
    table: Any, labels: IdArray, n_clusters: int, weights: FloatArray, most: int
) -> FloatArray:
    """Of each cluster, the columns of largest effect; effects, and means in it and outside.

    Of a sparse table only columns that are larger in the cluster: a term that is missing says
    little.
    """
    is_sparse = sp.issparse(table)
    shown, part = _filled_columns(sp.csr_array(table)) if is_sparse else _all_columns(table)
    tables = part, _squares(part)
    every = [_weighted_sum(one, weights) for one in tables]
    effects = np.zeros((n_clusters, min(most, len(shown)), 4))
    effects[:, :, 0] = NOBODY
    for cluster in range(n_clusters):
        rows = np.flatnonzero(labels == cluster)
        own = [_weighted_sum(one[rows], weights[rows]) for one in tables]
        found = _effects(own, every, weights[rows].sum(), weights.sum())
        rank = found[:, 0] if is_sparse else np.abs(found[:, 0])
        best = np.argsort(-rank, kind="stable")[: effects.shape[1]]
        best = best[rank[best] > 0]
        effects[cluster, : len(best)] = np.column_stack([shown[best], found[best]])
    return effects


def _filled_columns(table: sp.csr_array) -> tuple[IdArray, sp.csr_array]:
    """The columns with any number, and the table of these alone: no array has a place for each."""
    shown, places = np.unique(table.indices, return_inverse=True)
    shape = (table.shape[0], len(shown))
    return shown, sp.csr_array((table.data, places, table.indptr), shape=shape)


def _all_columns(table: Any) -> tuple[IdArray, FloatArray]:
    return np.arange(table.shape[1]), np.asarray(table, np.float64)


def _effects(
    own: list[FloatArray], every: list[FloatArray], weight: float, total: float
) -> FloatArray:
    """Effects of all columns, and their means inside and outside; from sums and sums of squares."""
    (sums, squares), outside = own, total - weight
    if weight == 0 or outside <= 0:
        return np.zeros((len(sums), 3))
    mean, others = sums / weight, (every[0] - sums) / outside
    rest = every[1] - squares - outside * others**2
    spread = np.sqrt(np.maximum(squares - weight * mean**2 + rest, 0.0) / total)
    overall = np.sqrt(np.maximum(every[1] / total - (every[0] / total) ** 2, 0.0))
    is_varied = overall > ROUNDING * np.sqrt(every[1] / total)
    spread = np.maximum(spread, LEAST_SPREAD * overall)
    effect = np.divide(mean - others, spread, out=np.zeros_like(mean), where=is_varied)
    return np.stack([effect, mean, others], axis=1)


def _weighted_sum(table: Any, weights: FloatArray) -> FloatArray:
    return np.asarray(weights @ table, np.float64).ravel()


def distinctive_columns(table: Any, labels: IdArray, most: int) -> list[int]:
    """The columns whose means differ most between clusters, relative to their spread."""
    mean = np.asarray(table.mean(axis=0)).ravel()
    second = np.asarray(_squares(table).mean(axis=0)).ravel()
    variance = np.maximum(second - mean**2, 0.0)
    between = np.zeros(len(mean))
    for cluster in np.unique(labels):
        mine = table[labels == cluster]
        between += mine.shape[0] * (np.asarray(mine.mean(axis=0)).ravel() - mean) ** 2
    ratio = np.divide(between, variance, out=np.zeros_like(between), where=variance > 0)
    return [int(j) for j in np.argsort(-ratio, kind="stable")[:most]]


def _squares(table: Any) -> Any:
    return table.multiply(table) if sp.issparse(table) else np.square(table, dtype=np.float64)


def _squared_distances(table: Any, centre: FloatArray) -> FloatArray:
    if sp.issparse(table):
        squares = np.asarray(table.multiply(table).sum(axis=1)).ravel()
        return squares - 2.0 * (table @ centre)
    return ((table - centre) ** 2).sum(axis=1)
