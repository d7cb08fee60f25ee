"""Code books: clusters from scores of kernel spectral clustering ([novak2021], section 2.1.1).

Rows of one cluster lie on one line through the origin of score space, in an orthant of their own:

* **blf**: a cluster is a word of signs; a row belongs to the nearest word in Hamming distance.
* **ams**: a cluster is the mean score of the rows that carry a word; the distance is
  1 - cosine, or |z - s| where there is one score (K = 2) [langone2013].
* **bas**: a cluster is a direction of *unbiased* scores, found on the reduced-set coefficients:
  unit mean of those that carry a word, then k-means; the distance is ‖z/‖z‖ - s‖ [novak2021].
  At K = 2 one score has no direction, and the published method stops there; we put the row's degree
  beside it (the eigenvector that centring removed): two clusters are two directions in a plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Record, stored
from mercer._run.types import FloatArray, IdArray
from mercer.linalg.lloyd import Sums, lloyd
from mercer.linalg.numbering import content_order
from mercer.linalg.products import unit_rows

_jit = LazyModule("mercer.linalg._jit")

Encoding = Literal["bas", "ams", "blf"]
ENCODINGS: tuple[Encoding, ...] = ("bas", "ams", "blf")

NEAR = 1e-100  # a distance that counts as none
SWEEPS = 100  # of k-means on directions, at most


@frozen
class Codebook(Record):
    """k clusters in a space of q coordinates, which depend on the encoding."""

    encoding: Encoding = stored(f"one of {' | '.join(ENCODINGS)}")
    # words of ±1, mean scores, or unit directions
    prototypes: FloatArray = stored("(k, q?) float64, finite")
    # weight of what carried each word; ties go to the more frequent
    counts: FloatArray = stored("(k,) float64, finite")

    def sizes(self) -> dict[str, int]:
        """k: clusters."""
        return {"k": len(self)}

    def __len__(self) -> int:
        return len(self.prototypes)

    def distances(self, Y: FloatArray) -> FloatArray:
        """How far each row is from each cluster, in the encoding's sense: (n, k)."""
        if self.encoding == "blf":
            return _mismatches(Y, self.prototypes)
        if self._on_a_line:
            return np.abs(Y - self.prototypes[:, 0])
        lengths = np.sqrt(_inner_products(Y, Y))
        cosines = _products(Y, self.prototypes) / np.where(lengths > 0, lengths, 1.0)[:, None]
        away = np.clip(1.0 - cosines, 0.0, 2.0)
        return away if self.encoding == "ams" else np.sqrt(2.0 * away)

    def labels(self, Y: FloatArray) -> IdArray:
        """The nearest cluster: a function of the row alone, whatever other rows there are."""
        order = np.lexsort((np.argsort(content_order(self.prototypes)), -self.counts))
        prototypes = self.prototypes[order]
        if self.encoding == "blf":
            return order[_mismatches(Y, prototypes).argmin(axis=1)]
        if self._on_a_line:
            return order[np.abs(Y - prototypes[:, 0]).argmin(axis=1)]
        return order[_products(Y, prototypes).argmax(axis=1)]

    def memberships(self, Y: FloatArray) -> FloatArray:
        """Shares that sum to 1: Π_{j≠k} d_j over their sum, that is ∝ 1/d_k [langone2013]."""
        closeness = 1.0 / np.maximum(self.distances(Y), NEAR)
        shares: FloatArray = closeness / closeness.sum(axis=1, keepdims=True)
        return shares

    def reordered(self, order: IdArray) -> Codebook:
        return replace(self, prototypes=self.prototypes[order], counts=self.counts[order])

    @property
    def _on_a_line(self) -> bool:
        return self.encoding == "ams" and self.prototypes.shape[1] == 1


@frozen
class Words:
    """The most frequent words of signs, and which rows carry them."""

    words: FloatArray  # (k, q) ±1
    counts: FloatArray  # (k,)
    carried: IdArray  # (n,) the word of each row, or -1 for another


def frequent_words(Z: FloatArray, weights: FloatArray, n_words: int) -> Words:
    """The n_words most frequent sign words (+ where z > 0), the first seen of equals first."""
    signs = Z > 0
    _, first, kind = np.unique(
        np.packbits(signs, axis=1), axis=0, return_index=True, return_inverse=True
    )
    kind = kind.reshape(-1)
    totals = np.bincount(kind, weights=weights).astype(np.float64)
    chosen = np.lexsort((first, -totals))[:n_words]
    place = np.full(len(totals), -1)
    place[chosen] = np.arange(len(chosen))
    return Words(np.where(signs[first[chosen]], 1.0, -1.0), totals[chosen], place[kind])


def sign_codebook(Z: FloatArray, weights: FloatArray, n_clusters: int) -> Codebook:
    """BLF: the most frequent words of the training scores (fewer, if there are fewer words)."""
    found = frequent_words(Z, weights, n_clusters)
    return Codebook("blf", found.words, found.counts)


def angle_codebook(Z: FloatArray, weights: FloatArray, n_clusters: int) -> Codebook:
    """AMS: the mean training score of each frequent word, of unit length if K > 2."""
    found = frequent_words(Z, weights, n_clusters)
    means = _means(Z, weights, found.carried, len(found.words))
    return Codebook("ams", means if Z.shape[1] == 1 else unit_rows(means), found.counts)


def direction_codebook(coefficients: FloatArray, n_clusters: int) -> Codebook:
    """BAS as published: words of the reduced-set coefficients ξ, refined by k-means on them."""
    ones = np.ones(len(coefficients))
    found = frequent_words(coefficients, ones, n_clusters)
    start = unit_rows(_means(coefficients, ones, found.carried, len(found.words)))
    return Codebook("bas", refine_directions(coefficients, start), found.counts)


def refine_directions(
    rows: FloatArray, directions: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """k-means by angle: each row to its nearest direction, each direction to its rows' mean."""
    weights = np.ones(len(rows)) if weights is None else weights
    labels = np.full(len(rows), -1)

    def sweep(directions: FloatArray, moves: FloatArray | None) -> Sums:
        nearest = (rows @ directions.T).argmax(axis=1)
        n_changed = int(np.count_nonzero(nearest != labels))
        labels[:] = nearest
        means = unit_rows(_means(rows, weights, labels, len(directions)))
        return Sums(means, means.any(axis=1).astype(float), n_changed)

    return lloyd(sweep, directions, max_iter=SWEEPS).centers


def farthest_directions(rows: FloatArray, n_clusters: int) -> FloatArray:
    """Unit rows that differ most: the longest, then the one farthest from those before it."""
    unit = unit_rows(rows)
    chosen = [int(_inner_products(rows, rows).argmax())]
    nearest = unit @ unit[chosen[0]]
    for _ in range(n_clusters - 1):
        chosen.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, unit @ unit[chosen[-1]])
    return unit[chosen]


def _means(rows: FloatArray, weights: FloatArray, group: IdArray, k: int) -> FloatArray:
    """The weighted mean of the rows in each group 0 … k - 1 (zeros where there are none)."""
    shares = np.zeros((len(rows), k + 1))  # the last column is for rows in no group
    shares[np.arange(len(rows)), group] = weights
    totals = shares[:, :k].sum(axis=0)
    return (shares[:, :k].T @ rows) / np.where(totals > 0, totals, 1.0)[:, None]


def _products(Y: FloatArray, prototypes: FloatArray) -> FloatArray:
    """Y @ prototypesᵀ, summed in one order for every row: its bits are its own."""
    out = np.empty((len(Y), len(prototypes)))
    _jit.row_products(np.ascontiguousarray(Y), np.ascontiguousarray(prototypes.T), out)
    return out


def _inner_products(A: FloatArray, B: FloatArray) -> FloatArray:
    out = np.zeros(len(A))
    for j in range(A.shape[1]):
        out += A[:, j] * B[:, j]
    return out


def _mismatches(Y: FloatArray, words: Sequence[FloatArray] | FloatArray) -> FloatArray:
    """Hamming distances between the signs of each row and each word."""
    signs, positive = Y > 0, np.asarray(words) > 0
    out = np.zeros((len(Y), len(positive)))
    for j in range(Y.shape[1]):
        out += signs[:, j, None] != positive[None, :, j]
    return out
