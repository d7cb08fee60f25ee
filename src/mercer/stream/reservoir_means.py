"""The means of very many clusters, and how a row is compared with them.

Means are taken of the rows themselves where the kernel is a Gaussian one of dense rows: of two
means the nearer is the more similar whatever the bandwidth. Other kernels and sparse rows are
represented by Nyström features at length 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import Surroundings
from mercer.factors.dense import PivotFactor
from mercer.kernels.base import Kernel
from mercer.linalg.products import row_products
from mercer.partitions.center_index import CenterIndex, Search, search_centers
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, cast, part, take
from mercer.stream.buffer import MOST_COLUMNS

WORK_ROWS = 8192  # rows whose coordinates are made at once


@frozen
class ReservoirMeans:
    """Means in the coordinates that rows are compared in, as `Centers` are asked for them."""

    kernel: Kernel
    format: RowFormat
    factor: PivotFactor | None
    centers: FloatArray
    index: CenterIndex | None

    def view(
        self, dtype: Any = np.float64, *, nearest: bool = True
    ) -> Callable[[Rows], FloatArray]:
        """Rows in format → their coordinates."""
        if self.factor is None:
            return lambda X: np.ascontiguousarray(self.kernel.select(cast(X, dtype)))
        features, mix = self.factor.features(dtype), self.factor.mix.astype(dtype)

        def of_rows(X: Rows) -> FloatArray:
            Z = row_products(np.asarray(features(cast(X, dtype)), dtype), mix)
            lengths = np.sqrt(np.einsum("ij,ij->i", Z, Z))
            Z /= np.where(lengths > 0, lengths, 1.0)[:, None]
            return Z

        return of_rows

    def search(self) -> Search:
        """Coordinates → the nearest mean and the squared distance."""
        return search_centers(self.centers, self.index)

    def nearest(self, Z: FloatArray) -> tuple[IdArray, FloatArray]:
        """Labels and squared distances."""
        labels, squares = self.search()(Z)
        return labels, squares * self._unit()

    def scores(self, Z: FloatArray) -> FloatArray:
        squares = np.empty((len(Z), len(self.centers)))
        A, b = -2.0 * self.centers.T, np.einsum("kr,kr->k", self.centers, self.centers)
        squares[:] = row_products(np.asarray(Z, np.float64), np.ascontiguousarray(A))
        squares += b
        squares += np.einsum("ij,ij->i", Z, Z)[:, None]
        return np.maximum(squares, 0.0) * self._unit()

    def around(self, Z: FloatArray, labels: IdArray, squares: FloatArray) -> Surroundings:
        """By the distance to the mean: of very many clusters, others are not looked at."""
        return Surroundings(labels, np.sqrt(np.maximum(squares, 0.0)), np.zeros(len(labels)))

    def lengths_of(self, Z: FloatArray) -> FloatArray:
        """Scores are squared distances already."""
        return np.zeros(len(Z))

    def n_unseen(self, X: Rows, Z: FloatArray, scores: FloatArray) -> int:
        """How many rows are similar to no pivot; the nearest mean of rows is always defined."""
        ids = np.flatnonzero(~Z.any(axis=1)) if self.factor is not None else np.zeros(0, np.intp)
        return int((self.kernel.diagonal(take(X, ids)) > 0).sum()) if len(ids) else 0

    def _unit(self) -> float:
        """Squared distances of raw rows, in those of rows in format; features have no unit."""
        return 1.0 if self.factor is not None else 4.0**self.format.exponent


def serves_plainly(kernel: Kernel, rows: Rows) -> bool:
    """Whether means of the rows themselves represent the kernel's."""
    if not kernel.is_gaussian:
        return False
    some = kernel.select(part(rows, 0, 1))
    return not sp.issparse(some) and some.shape[1] <= MOST_COLUMNS


def coordinates_of(means: ReservoirMeans, rows: Rows, dtype: Any) -> FloatArray:
    """Rows in format, as the means see them."""
    view = means.view(dtype)
    starts = range(0, rows.shape[0], WORK_ROWS)
    return np.concatenate([view(part(rows, at, at + WORK_ROWS)) for at in starts])
