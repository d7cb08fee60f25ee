"""Scores of any rows from their kernel values against the reduced set (eq. 8 of [novak2023])."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.embeddings.weighted_kpca import WeightedKpca
from mercer.factors.dense import DenseFactor, PivotFactor
from mercer.rows.rows import cast, part
from mercer.rows.sample import Sample
from mercer.rows.source import spans


@frozen
class Scores:
    """What encodings look at, for some rows."""

    unbiased: FloatArray  # (n, m) Σ_r k(x, x_r) ξ_r
    degrees: FloatArray  # (n,) the same for the constant eigenvector
    bias: FloatArray  # (m,)
    feature_sums: FloatArray | None = None  # (n,) Σ_r k(x, x_r)

    @classmethod
    def stacked(cls, tiles: list[Scores]) -> Scores:
        """Tiles of rows under each other."""
        return cls(
            np.concatenate([tile.unbiased for tile in tiles]),
            np.concatenate([tile.degrees for tile in tiles]),
            tiles[0].bias,
            np.concatenate([np.asarray(tile.feature_sums) for tile in tiles]),
        )

    def part(self, ids: IdArray) -> Scores:
        """Those of some rows."""
        sums = None if self.feature_sums is None else self.feature_sums[ids]
        return Scores(self.unbiased[ids], self.degrees[ids], self.bias, sums)

    def coordinates(self, encoding: str, k: int) -> FloatArray:
        """The coordinates in which the encoding tells k clusters apart: (n, q)."""
        if encoding != "bas":
            return self.unbiased[:, : k - 1] + self.bias[: k - 1]
        if k == 2:
            return np.column_stack([self.unbiased[:, :1], self.degrees])
        return self.unbiased[:, : k - 1]

    def pivot_sums(self) -> FloatArray | None:
        """Σ_r k(x, x_r) + b, the second coordinate of BLF when K = 2."""
        return None if self.feature_sums is None else self.feature_sums + self.bias[0]


@frozen
class ScoreMap:
    """The sparse model: scores are (features of a row) @ coefficients + bias."""

    coefficients: FloatArray  # (r, m) ξ
    degree_coefficients: FloatArray  # (r,) the same for the constant eigenvector
    bias: FloatArray  # (m,)

    def leading(self, k: int) -> ScoreMap:
        """What k clusters need of it: eigenvectors nest."""
        return ScoreMap(
            np.ascontiguousarray(self.coefficients[:, : k - 1]),
            self.degree_coefficients,
            self.bias[: k - 1].copy(),
        )

    def linear_map(self, encoding: str, k: int) -> tuple[FloatArray, FloatArray]:
        """A, b such that features @ A + b are the encoding's coordinates for k clusters."""
        own = Scores(self.coefficients, self.degree_coefficients, np.zeros_like(self.bias))
        A = own.coordinates(encoding, k)
        return A, np.zeros(A.shape[1]) if encoding == "bas" else self.bias[: k - 1]

    def of_features(self, G: FloatArray) -> Scores:
        """Scores of rows with these features."""
        m = self.coefficients.shape[1]
        columns = (self.coefficients, self.degree_coefficients, np.ones(len(self.coefficients)))
        S = (G @ np.column_stack(columns).astype(G.dtype)).astype(np.float64)
        return Scores(S[:, :m], S[:, m], self.bias, S[:, m + 1])

    def of_rows(self, factor: DenseFactor, sample: Sample) -> Scores:
        """Scores of a sample, tile by tile."""
        features = factor.features(sample.rows.dtype)
        return Scores.stacked(
            [self.of_features(features(part(sample.rows, a, b))) for a, b in spans(len(sample))]
        )


def score_map(factor: DenseFactor, found: WeightedKpca) -> ScoreMap:
    """One kernel throughout: ξ = G_B⁻ᵀ(Gᵀβ), one small product (eq. 6 with Ω ≈ G Gᵀ)."""
    mix = factor.mix
    return ScoreMap(mix @ found.directions, mix @ found.degree_direction, found.bias)


def training_scores(F: FloatArray, found: WeightedKpca) -> Scores:
    """Scores of the rows that the factor was made on: G(Gᵀβ), no kernel value again."""
    m = len(found.values)
    W = np.column_stack([found.directions, found.degree_direction]).astype(F.dtype)
    S = (F @ W).astype(np.float64)
    return Scores(S[:, :m], S[:, m], found.bias)


def score_map_of_two(
    second: PivotFactor, sample: Sample, multipliers: FloatArray, bias: FloatArray
) -> ScoreMap:
    """Eigenvectors β from one kernel, coefficients by another: Ω_ΨΨ ξ = Ω_ΨΦ β (eq. 6)."""
    dtype: Any = sample.rows.dtype
    features, w = second.kernel.against(cast(second.pivots, dtype)), sample.weights
    columns = np.column_stack([multipliers, np.ones(len(w))]) * w[:, None]
    against: Any = 0.0
    for a, b in spans(len(sample)):
        against = against + features(part(sample.rows, a, b)).T @ columns[a:b].astype(dtype)
    projected = second.mix.T @ against.astype(np.float64)
    degree = projected[:, -1] / max(np.linalg.norm(projected[:, -1]), np.finfo(float).tiny)
    return ScoreMap(second.mix @ projected[:, :-1], second.mix @ degree, bias)
