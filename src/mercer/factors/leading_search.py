"""The search for nearest landmarks by the leading ones of many coordinates.

Coordinates come by decreasing variance. The first few of them propose candidates, by products in
float32, of which those nearest in these coordinates are taken in float64; their distances are then
computed in all coordinates. So what is found depends on the row alone. How many are enough is
measured on rows of the fit: the first number whose recall of the exact search is high is taken,
and the search stays exact if there is none, or if it would not be faster.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray, IdArray
from mercer.factors.search import Search, make_search
from mercer.linalg.products import PRODUCT_ROWS
from mercer.rows.sample import evenly

_jit = LazyModule("mercer.factors._search_jit")

LANDMARKS = 512  # fewer are compared in all coordinates
COORDINATES = 128  # fewer are used at once
LEADING = (32, 48, 64, 96, 128, 192, 256)  # numbers of coordinates that are tried, up to half
CANDIDATES = 16
EXTRA_CANDIDATES = 4  # by float32, of which float64 takes the nearest
# Of the nearest landmarks: few may be missed, since the rows that miss one lie between clusters.
# On 200 directions (100,000 × 768, 2,000 landmarks; three sets, two fits each) a recall of .99 had
# a mean NMI of .737 and .999 one of .748, the exact search .749; CPU seconds 4.9, 5.2 and 6.9.
RECALL = 0.999
MEASURED_ROWS = 500
LARGEST = 1e15  # coordinates beyond have squares that are large for float32
BLOCK = 4096  # landmarks whose products are held at once: 4 MB, which stay in the cache


@frozen
class LeadingSearch(Record):
    """Finds nearest landmarks among candidates by the leading coordinates."""

    landmarks: FloatArray = stored("(p, q) float32, in (-1e15, 1e15)")
    n_leading: int = stored("int, in [1, q]")
    n_candidates: int = stored("int, in [1, p]")
    recall: float = stored("float, in [0, 1]")  # of the nearest landmarks, when it was measured

    def sizes(self) -> dict[str, int]:
        """p: landmarks; q: their coordinates."""
        return dict(zip("pq", self.landmarks.shape, strict=True))

    def check(self) -> None:
        expect(self.n_candidates % 4 == 0, "the candidates of the search are not in fours")

    def nearest(self, Z: FloatArray, m: int) -> tuple[IdArray, FloatArray]:
        """Numbers and squared distances of the m nearest landmarks, nearest first."""
        leading = self.landmarks[:, : self.n_leading].astype(np.float64)
        norms = np.einsum("ij,ij->i", leading, leading)
        given = self.landmarks, self.n_leading, float(np.sqrt(norms.max()))
        idx, dist = np.empty((len(Z), m), np.intp), np.empty((len(Z), m))
        near = np.empty((len(Z), self.n_candidates))
        who = np.empty(near.shape, np.intp)
        lengths, is_sure = np.empty(len(Z)), np.empty(len(Z), np.bool_)
        for piece, values, items in self._proposed(Z, leading, norms):
            found = near[piece], who[piece], lengths[piece], is_sure[piece]
            _jit.nearest_by_leading(Z[piece], *given, values, items, *found)
        unsure = np.flatnonzero(~is_sure)
        if len(unsure):
            rows = Z[unsure, : self.n_leading]
            who[unsure], near[unsure] = Search(leading).nearest(rows, self.n_candidates)
        is_apart = is_sure
        _jit.nearest_of_candidates(Z, *given, near, who, lengths, idx, dist, is_apart)
        vague = np.flatnonzero(~is_apart)
        if len(vague):  # so far, or with so many equal landmarks, that candidates tell nothing
            exact = Search(self.landmarks.astype(np.float64))
            idx[vague], dist[vague] = exact.nearest(Z[vague], m)
        return idx, dist

    def _proposed(
        self, Z: FloatArray, leading: FloatArray, norms: FloatArray
    ) -> Iterator[tuple[slice, FloatArray, IdArray]]:
        """More candidates than needed, by products in float32: sums and numbers, for some rows."""
        A, b = (-2.0 * leading.T).astype(np.float32, order="C"), norms.astype(np.float32)
        scores = np.empty((PRODUCT_ROWS, min(BLOCK, len(b))), np.float32)
        values = np.empty((PRODUCT_ROWS, self.n_candidates + EXTRA_CANDIDATES), np.float32)
        items, least = np.empty(values.shape, np.int64), np.empty(_jit.GROUPS, np.float32)
        for start in range(0, len(Z), PRODUCT_ROWS):
            piece = slice(start, start + PRODUCT_ROWS)
            with np.errstate(over="ignore", invalid="ignore"):  # such rows are unsure
                rows = Z[piece, : self.n_leading].astype(np.float32)
                values.fill(np.inf)
                items.fill(-1)
                for first in range(0, len(b), BLOCK):
                    block = slice(first, first + BLOCK)
                    products = scores[: len(rows), : len(b[block])]
                    np.matmul(rows, A[:, block], out=products)
                    _jit.propose(products, b[block], first, least, values, items)
            yield piece, values, items

    def notes(self, n_neighbors: int) -> list[str]:
        """What a report says of the search."""
        return [
            f"nearest landmarks were sought by the first {self.n_leading} of "
            f"{self.landmarks.shape[1]} coordinates: recall {self.recall:.3f}"
        ]


def search_landmarks(L: FloatArray, Z: FloatArray, m: int) -> Search | LeadingSearch:
    """Finds the m nearest of L for rows like Z: by leading coordinates, a grid, or products."""
    return search_wide(L, Z, m) if L.shape[1] >= COORDINATES else make_search(L, Z, m)


def search_wide(L: FloatArray, Z: FloatArray, m: int) -> Search | LeadingSearch:
    """The same by leading coordinates, where these suffice, or by products."""
    exact, is_moderate = Search(L), np.abs(L).max(initial=0.0) < LARGEST
    if len(L) < LANDMARKS or L.shape[1] < COORDINATES or m > CANDIDATES or not is_moderate:
        return exact
    some, rounded = Z[evenly(len(Z), MEASURED_ROWS)], L.astype(np.float32)
    wanted = exact.nearest(some, m)[0]
    for n_leading in LEADING:
        if n_leading > L.shape[1] // 2:
            break
        found = LeadingSearch(rounded, n_leading, CANDIDATES, 0.0).nearest(some, m)[0]
        recall = float((found[:, :, None] == wanted[:, None, :]).any(axis=1).mean())
        if recall >= RECALL:
            return LeadingSearch(rounded, n_leading, CANDIDATES, recall)
    return exact
