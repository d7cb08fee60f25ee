"""Dense factors: K ≈ F Fᵀ with a thin matrix F = G @ mix, row by row.

G are cheap features of a row (kernel values against pivots, random features) and `mix` a small
matrix, so that what is linear in F can be folded into `mix` and costs nothing per row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.records import expect, stored, unstored
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import (
    ConeLabeller,
    CountedLabels,
    Factor,
    Resampling,
    SpectralMap,
    Surroundings,
)
from mercer.kernels.base import NOTHING, Kernel
from mercer.kernels.domain import check_columns, check_kernel
from mercer.linalg.eigen import Solver, leading_eigenpairs
from mercer.linalg.eigenpairs import Eigenpairs
from mercer.linalg.lloyd import nearest_center, scores_of_centers
from mercer.linalg.numbering import content_order
from mercer.linalg.products import PRODUCT_ROWS, row_products, unit_rows
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import Rows, cast, pad, part, take
from mercer.rows.sample import Sample
from mercer.rows.source import spans

DRAW = 10  # rows per pivot to draw pivots from: more of them do not lower the error
BLOCK_ROWS = 8192  # of F that are summed together
COLUMNS = 128  # of F that are computed together
NO_ROW = -1  # the number of a pivot that is not a row of the source


class DenseFactor(Factor):
    """F = G @ mix; subclasses give `features`, `mix` and keep `training_rows`."""

    __slots__ = ()

    mix: Any
    training_rows: Any

    def sizes(self) -> dict[str, int]:
        """r: columns of F; m: features of a row."""
        return {"r": self.rank, "m": len(self.mix)}

    def features(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        """G for rows in `format`, computed in `dtype`."""
        raise NotImplementedError

    def row_function(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        """F for rows in `format`, computed in `dtype`."""
        features, mix = self.features(dtype), self.mix.astype(dtype)
        return lambda rows: features(rows) @ mix

    def rows(self, X: Any) -> FloatArray:
        source, dtype = as_source(X), self.format.dtype
        F, of_rows = np.empty((source.n_rows, self.rank), dtype), self.row_function(dtype)
        for start, stop in spans(source.n_rows):
            F[start:stop] = of_rows(self.format.apply(source.read(start, stop)))
        return F

    def row_space(self, rows: Rows) -> FloatArray | None:
        """F: distances are those of the kernel."""
        return self.raw_row_function()(rows)

    def raw_row_function(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → F, in products of one shape: a float64 row's bits are its own."""
        row_format, dtype = self.format, self.format.dtype
        features, blocks = self.features(dtype), _column_blocks(self.mix.astype(dtype))

        def mixed(rows: Rows) -> FloatArray:
            F = np.empty((rows.shape[0], self.rank), dtype)
            for start in range(0, len(F), PRODUCT_ROWS):  # few enough to stay in the cache
                out = F[start : start + PRODUCT_ROWS]
                G = features(row_format.apply(part(rows, start, start + len(out))))
                G = pad(G, PRODUCT_ROWS)
                for columns, used, block in blocks:
                    out[:, columns] = (G[:, :used] @ block)[: len(out)]
            return F

        return mixed

    def weighted_rows(self, sample: Sample) -> tuple[FloatArray, FloatArray]:
        """Rows of F whose weighted Gram matrix is that of all rows of the fit."""
        if self.training_rows is not None:
            return self.training_rows, sample.weights
        of_rows, X = self.row_function(sample.rows.dtype), sample.rows
        F = np.concatenate([of_rows(part(X, *span)) for span in spans(len(sample))])
        return F, sample.weights

    def dense(self, sample: Sample, *, rng: np.random.Generator, threads: int = 1) -> Any:
        return self

    def spectral_map(
        self,
        sample: Sample,
        n_vectors: int,
        *,
        solver: Solver,
        rng: np.random.Generator,
        threads: int = 1,
    ) -> SpectralMap:
        F, weights = self.weighted_rows(sample)
        return dense_spectral_map(F, weights, n_vectors, solver=solver, rng=rng)

    def labeller(self, vectors: FloatArray, directions: FloatArray) -> ConeLabeller:
        return DenseLabeller(self, vectors, directions)

    def resample(
        self, found: SpectralMap, sample: Sample, judges: IdArray, n_clusters: int
    ) -> Resampling:
        """Eigenvectors of part of the rows."""
        if self.training_rows is None:
            return Factor.resample(self, found, sample, judges, n_clusters)
        F, weights = self.training_rows[judges].astype(np.float64), sample.weights[judges]

        def points(part: IdArray, rng: np.random.Generator) -> Any:
            again = dense_spectral_map(F[part], weights[part], n_clusters, solver="dense", rng=rng)
            return unit_rows(again.points), weights[part], unit_rows(F @ again.vectors)

        return Resampling(len(F), points)

    def mass(self, sample: Sample) -> FloatArray | None:
        """The mean of F over the sample, in units in which its mean density is 1."""
        F, w = self.weighted_rows(sample)
        mean = np.zeros(F.shape[1])
        for start in range(0, len(F), BLOCK_ROWS):  # a copy of F in float64 may be too large
            block = slice(start, start + BLOCK_ROWS)
            mean += w[block] @ F[block].astype(np.float64)
        mean /= w.sum()
        square = float(mean @ mean)
        return mean / square if square > 0 else np.zeros(len(mean))

    def densities(self, mass: FloatArray | None) -> Callable[[Rows], FloatArray]:
        """Raw rows → the mean of the kernel between each and the sample."""
        features, row_format, folded = (
            self.features(np.float64),
            self.format,
            self.folded_mass(mass),
        )
        return lambda rows: row_products(features(row_format.apply(rows, np.float64)), folded)[:, 0]

    def folded_mass(self, mass: FloatArray | None) -> FloatArray:
        """What features are multiplied by for the density."""
        return (self.mix @ (np.zeros(self.rank) if mass is None else mass))[:, None]

    def error_norm(self, total_weight: float, *, is_normalized: bool) -> float | None:
        """‖E‖₂ ≤ trace(E), for kernels near 1."""
        is_known = self.trace_error is not None and not is_normalized
        return self.trace_error * total_weight if is_known else None


class FeatureFactor(DenseFactor):
    """F are the features themselves: `mix` is the identity."""

    __slots__ = ()

    @property
    def mix(self) -> FloatArray:
        return np.eye(self.rank)

    def sizes(self) -> dict[str, int]:
        """r: columns of F; m: of the features."""
        return {"r": self.rank, "m": self.rank}

    def row_function(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        return self.features(dtype)

    def raw_row_function(self) -> Callable[[Rows], FloatArray]:
        features, row_format = self.features(self.format.dtype), self.format
        return lambda rows: features(row_format.apply(rows))


@frozen
class PivotFactor(DenseFactor):
    """F = k(X, pivots) @ mix: Cholesky, Nyström and exact factors."""

    kernel: Kernel = stored(Kernel)
    format: RowFormat = stored(RowFormat)
    pivots: Rows = stored("(m, d) rows")  # in `format`: what the kernel is evaluated against
    pivot_ids: IdArray = stored("(m,) int")  # their numbers in the source
    mix: FloatArray = stored("(m, r) float, finite")
    trace_error: float | None = stored("float or None")  # trace(K - F Fᵀ) / trace(K)
    training_rows: FloatArray | None = unstored()

    @property
    def rank(self) -> int:
        return int(self.mix.shape[1])

    def check(self) -> None:
        if not self.kernel.is_precomputed:
            self.format.check_fits(self.pivots)
        check_kernel(self.kernel, self.pivots)

    def check_model(self, kernel: Kernel, n_features: int) -> None:
        """The pivots have the columns of X, or are columns of it if X is a kernel matrix."""
        check_columns(kernel, n_features)
        if kernel is not self.kernel:
            check_kernel(kernel, self.pivots)
        pivots, row_format = self.pivots, self.format
        if not self.kernel.is_precomputed:
            found = pivots.shape[1]
            expect(found == n_features, f"pivots have {found} columns, but X has {n_features}")
            return
        is_items = isinstance(pivots, np.ndarray) and pivots.shape[1] == 1
        expect(is_items, "the pivots of a precomputed kernel are not one column of item numbers")
        is_there = pivots.min() >= 0 and pivots.max() < n_features
        is_plain = row_format.shift is None and row_format.exponent == 0
        expect(is_there and is_plain, f"a pivot is not among the {n_features} items of X")

    def features(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        return self.kernel.against(cast(self.pivots, dtype))

    def for_new_rows(self) -> PivotFactor:
        return replace(self, kernel=self.kernel.for_new_rows())

    def reduced_set(self) -> IdArray | None:
        return self.pivot_ids.copy()

    def with_kernel(self, kernel: Kernel) -> PivotFactor:
        """F = k(X, B) K[B, B]^-½ with directions of no weight left out.

        What the second kernel parameter of kernel spectral clustering [novak2023] works on.
        """
        K = kernel.matrix(self.pivots, self.pivots)
        values, vectors = np.linalg.eigh(K)
        kept = values > len(K) * np.finfo(np.float64).eps * values[-1]
        mix = vectors[:, kept] / np.sqrt(values[kept])
        return PivotFactor(kernel, self.format, self.pivots, self.pivot_ids, mix, None)


def pivot_factor(
    kernel: Kernel, sample: Sample, pivots: IdArray, mix: FloatArray, **values: Any
) -> PivotFactor:
    """A PivotFactor whose pivots are rows of the sample."""
    rows = cast(take(sample.rows, pivots), np.float64)
    mix = np.ascontiguousarray(mix)  # as a model file keeps it: products have the same bits
    return PivotFactor(kernel, sample.format, rows, sample.ids[pivots], mix, **values)


@frozen
class LinearScores:
    """Gives any row its scores for the clusters, f @ A + b; the smallest wins."""

    factor: Any
    A: FloatArray  # (rank, k) float64
    b: FloatArray  # (k,)

    @classmethod
    def of_centers(cls, factor: Any, centers: FloatArray) -> LinearScores:
        """The nearest centre wins: scores are ‖f - c‖² - ‖f‖²."""
        return cls(factor, *scores_of_centers(centers))

    @classmethod
    def of_cones(cls, factor: Any, vectors: FloatArray, directions: FloatArray) -> LinearScores:
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

    def ordered(self) -> tuple[IdArray, Callable[[Rows], tuple[FloatArray, FloatArray]]]:
        """An order of the clusters by their content, and the scores in it, in float64."""
        order = content_order(self.A.T)
        by = LinearScores(self.factor, self.A[:, order], self.b[order])
        return order, by.scorer(np.float64)

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        counted = self.counted_labels()
        return lambda rows: counted(rows)[0]

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Raw rows → labels, decided in float64, and how many rows no pivot sees.

        A float32 matrix product gives a row other bits at another place in the tile; float64
        products in one shape do not. So a label is a function of the row alone. Clusters are
        compared in an order of their content, so that ties do not depend on their numbers.
        """
        (order, scores), row_format = self.ordered(), self.factor.format
        kernel, offset = self.factor.kernel, self.b[order]

        def decide(rows: Rows) -> CountedLabels:
            X = row_format.apply(rows, np.float64)
            G, S = scores(X)
            return order[nearest_center(S)[0]], n_unseen(kernel, X, G, S, offset)

        return decide

    def surroundings(self, mass: FloatArray | None) -> Callable[[Rows], Surroundings]:
        """Raw rows → density, and the distance to the nearest centre beside the second.

        Distances are those in the kernel's own space, ‖φ - c‖² = k(x, x) + score.
        """
        (order, scores), row_format = self.ordered(), self.factor.format
        kernel, folded = self.factor.kernel, self.factor.folded_mass(mass)

        def look(rows: Rows) -> Surroundings:
            X = row_format.apply(rows, np.float64)
            G, S = scores(X)
            labels = order[nearest_center(S)[0]]
            if kernel.is_precomputed:  # rows that do not hold k(x, x)
                F = row_products(G, self.factor.mix)
                own = np.einsum("ij,ij->i", F, F)
            else:
                own = np.asarray(kernel.diagonal(X), np.float64)
            away = np.sqrt(np.maximum(S + own[:, None], 0.0))
            return Surroundings.of_distances(labels, row_products(G, folded)[:, 0], away)

        return look

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


def n_unseen(kernel: Kernel, X: Rows, G: FloatArray, scores: FloatArray, offset: FloatArray) -> int:
    """How many rows no pivot sees: they leave all scores G @ A + offset at the offset.

    All such rows get one label, whatever they are. One column of the scores rules out nearly every
    row, so that this costs nothing beside the scores.
    """
    ids = np.flatnonzero(np.abs(scores[:, 0] - offset[0]) <= NOTHING)
    ids = ids[(np.abs(scores[ids] - offset) <= NOTHING).all(axis=1)]
    return int((~kernel.sees(take(X, ids), G[ids])).sum()) if len(ids) else 0


@frozen
class DenseLabeller(ConeLabeller):
    """Coordinates of a row are f @ vectors."""

    def counted_labels(self) -> Callable[[Rows], CountedLabels]:
        """Raw rows → labels, and how many rows no pivot sees."""
        return LinearScores.of_cones(self.factor, self.vectors, self.directions).counted_labels()

    def surroundings(self, mass: FloatArray | None) -> Callable[[Rows], Surroundings]:
        """Raw rows → density, and angles to directions, from features that are computed once."""
        factor = self.factor
        order, scores = LinearScores.of_cones(factor, self.vectors, self.directions).ordered()
        embed, folded = factor.mix @ self.vectors, factor.folded_mass(mass)

        def look(rows: Rows) -> Surroundings:
            G, S = scores(factor.format.apply(rows, np.float64))
            lengths = np.linalg.norm(row_products(G, embed), axis=1)
            away = 1.0 + np.clip(S / np.where(lengths > 0, lengths, 1.0)[:, None], -1.0, 1.0)
            labels = order[nearest_center(S)[0]]
            return Surroundings.of_distances(labels, row_products(G, folded)[:, 0], away)

        return look

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""
        features, row_format = self.factor.features(np.float64), self.factor.format
        folded = self.factor.mix @ self.vectors

        def embed(rows: Rows) -> FloatArray:
            return unit_rows(row_products(features(row_format.apply(rows, np.float64)), folded))

        return embed


def dense_spectral_map(
    F: FloatArray,
    w: FloatArray,
    m: int,
    *,
    solver: Solver,
    rng: np.random.Generator,
) -> SpectralMap:
    """The Gram matrix of a thin dense factor, Fᵀ D⁻¹ F = V Λ Vᵀ, gives coordinates F V Λ^-½."""
    degrees = F @ (F.T @ w.astype(F.dtype)).astype(F.dtype)
    least = 1e-6 * float(np.average(degrees, weights=w))
    clamped = degrees <= least
    scale = np.sqrt(w / np.maximum(degrees, least)).astype(F.dtype)[:, None]
    G = np.zeros((F.shape[1], F.shape[1]))
    for start, stop in spans(len(F)):
        scaled = F[start:stop] * scale[start:stop]
        G += scaled.T @ scaled
    pairs = leading_eigenpairs((G + G.T) / 2, m, solver=solver, rng=rng)
    kept = pairs.values > 1e-10 * pairs.values[0]
    V = pairs.vectors[:, kept] / np.sqrt(pairs.values[kept])
    trimmed = Eigenpairs(pairs.values[kept], V, pairs.residuals[kept], pairs.solver)
    points, n_clamped = F @ V.astype(F.dtype), int(clamped.sum())
    return SpectralMap.of_pairs(V, points, w, trimmed, n_clamped=n_clamped)


def _column_blocks(mix: FloatArray) -> list[tuple[slice, int, FloatArray]]:
    """Columns of mix without the zero rows below them: of a triangular mix, a quarter is saved."""
    blocks = []
    for start in range(0, mix.shape[1], COLUMNS):
        columns = slice(start, start + COLUMNS)
        used = int(np.flatnonzero(mix[:, columns].any(axis=1))[-1]) + 1
        blocks.append((columns, used, np.ascontiguousarray(mix[:used, columns])))
    return blocks
