"""Labels, scores and memberships of any rows by a code book [novak2023]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.embeddings.scores import ScoreMap, Scores
from mercer.factors.base import CountedLabels, Surroundings
from mercer.factors.dense import n_unseen
from mercer.kernels.base import Kernel
from mercer.linalg.products import row_products
from mercer.partitions.codebooks import Codebook
from mercer.rows.rows import Rows


@frozen
class CodeLabels:
    """Features of a row → scores → coordinates of the encoding → the nearest cluster.

    All in float64 and products of one shape, so that a label is a function of the row alone.
    """

    factor: Any
    model: ScoreMap
    codebook: Codebook

    def reordered(self, order: IdArray) -> CodeLabels:
        return replace(self, codebook=self.codebook.reordered(order))

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        counted = self.counted_labels()
        return lambda rows: counted(rows)[0]

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Raw rows → labels, and how many rows no pivot sees."""
        if len(self.codebook) == 1:
            return lambda rows: (np.zeros(rows.shape[0], np.intp), 0)
        A, b = self._linear_map()
        features, row_format = self.factor.features(np.float64), self.factor.format
        kernel: Kernel = self.factor.kernel

        def decide(rows: Rows) -> CountedLabels:
            X = row_format.apply(rows, np.float64)
            G = features(X)
            Y = row_products(G, A) + b
            return self.codebook.labels(Y), n_unseen(kernel, X, G, Y, b)

        return decide

    def surroundings(self, mass: FloatArray | None) -> Callable[[Rows], Surroundings]:
        """Raw rows → density, and the distance to the nearest cluster beside the second."""
        features, row_format = self.factor.features(np.float64), self.factor.format
        folded, is_one = self.factor.folded_mass(mass), len(self.codebook) == 1
        A, b = self._linear_map() if not is_one else (folded[:, :0], np.zeros(0))

        def look(rows: Rows) -> Surroundings:
            G = features(row_format.apply(rows, np.float64))
            Y = row_products(G, A) + b
            labels = np.zeros(len(G), np.intp) if is_one else self.codebook.labels(Y)
            away = np.zeros((len(G), 1)) if is_one else self.codebook.distances(Y)
            return Surroundings.of_distances(labels, row_products(G, folded)[:, 0], away)

        return look

    def memberships(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → shares of the clusters, which sum to 1."""
        if len(self.codebook) == 1:
            return lambda rows: np.ones((rows.shape[0], 1))
        coordinates = self.coordinates()
        return lambda rows: self.codebook.memberships(coordinates(rows))

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → what the code book looks at."""
        return self._products(*self._linear_map())

    def scores(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → z, with bias (eq. 8)."""
        return self._products(self.model.coefficients, self.model.bias)

    def all_scores(self) -> Callable[[Rows], Scores]:
        """Raw rows → everything that a criterion looks at."""
        features, row_format = self.factor.features(np.float64), self.factor.format
        return lambda rows: self.model.of_features(features(row_format.apply(rows, np.float64)))

    def _linear_map(self) -> tuple[FloatArray, FloatArray]:
        return self.model.linear_map(self.codebook.encoding, len(self.codebook))

    def _products(self, A: FloatArray, b: FloatArray) -> Callable[[Rows], FloatArray]:
        features, row_format = self.factor.features(np.float64), self.factor.format

        def compute(rows: Rows) -> FloatArray:
            return row_products(features(row_format.apply(rows, np.float64)), A) + b

        return compute
