"""Distinct rows with weights, in an order that depends on their content alone.

So a row of weight 2 is the same as the row twice, and permuted rows are the same problem: what
comes after (draws, ties, sums) never sees the difference.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._run.frozen import frozen
from mercer._run.lazy import FEW_VALUES, LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.rows.gather import gather
from mercer.rows.rows import BlockRows, Rows, take
from mercer.rows.source import TILE, Source, spans

_jit = LazyModule("mercer.rows._jit")

HashArray: TypeAlias = NDArray[np.uint64]

HASH_FACTOR, HASH_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
EXACT_ROWS = 100_000  # up to here every row is in the sample
SAMPLE_VALUES = 2**24  # beyond: a sample of at most this many numbers ...
SAMPLE_ROWS = 10_000  # ... but at least this many rows
WANTED_VALUES = 2**26  # at most, where more rows are wanted for very many clusters


@frozen
class DistinctRows:
    """Distinct rows, their weights, and the number of the first of each kind."""

    rows: Rows
    weights: FloatArray  # (n,) float64, positive
    ids: IdArray  # (n,) numbers in the source
    inverse: IdArray | None = None  # (n_rows,) the place here of each row there, if all are here

    def __len__(self) -> int:
        return len(self.weights)


def sample_size(n_rows: int, n_features: int, wanted: int = 0) -> int:
    """How many rows the sample of a fit has: all, or as many as fit any memory budget.

    `wanted`: so many are, if that is not more than four times the usual number of values.
    """
    if n_rows <= EXACT_ROWS:
        return n_rows
    d = max(n_features, 1)
    size = max(SAMPLE_VALUES // d, min(wanted, WANTED_VALUES // d))
    return int(np.clip(size, SAMPLE_ROWS, EXACT_ROWS))


def distinct_rows(
    source: Source,
    weights: FloatArray | None,
    *,
    rng: np.random.Generator,
    most: int | None = None,
    wanted: int = 0,
    exponent: int = 0,
) -> DistinctRows:
    """The distinct rows of the source (or of a seeded sample of it), in content order.

    `most`: a draw of so many of them is enough; `wanted`: see `sample_size`. `exponent`: of the
    unit of their content, so that X times a power of two has the same order.

    Rows of weight zero are left out; equal rows become one with the sum of their weights. Rows
    are identified by 64-bit hashes: if two different rows collide, one of them is ignored in
    choosing pivots and centres, and is labelled like any other.
    """
    ids = _chosen_ids(source, weights, wanted, rng=rng)
    rows = None if source.in_memory else gather(source, ids)  # a file is read once
    hashes = _row_hashes(source, ids, exponent) if rows is None else row_hashes(rows, exponent)
    order = np.argsort(hashes, kind="stable")
    ids, hashes = ids[order], hashes[order]
    equal = np.r_[False, hashes[1:] == hashes[:-1]]
    group = np.cumsum(~equal) - 1
    row_weights = np.ones(len(ids)) if weights is None else np.asarray(weights, np.float64)[ids]
    summed = _exact_group_sums(row_weights, group)
    first, places = ids[~equal], order[~equal]
    inverse = None
    if most is not None and most < len(first):
        drawn = np.sort(rng.choice(len(first), most, replace=False, shuffle=False))
        first, places, summed = first[drawn], places[drawn], summed[drawn]
    elif len(ids) == source.n_rows:
        inverse = np.empty(len(ids), np.intp)
        inverse[ids] = group
    kept = source.take(first) if rows is None else take(rows, places)
    return DistinctRows(kept, summed, first, inverse)


def _chosen_ids(
    source: Source, weights: FloatArray | None, wanted: int, *, rng: np.random.Generator
) -> IdArray:
    """Ascending numbers of the rows of positive weight, or of a sample of them."""
    heavy = None if weights is None else np.flatnonzero(weights > 0)
    n_heavy = source.n_rows if heavy is None else len(heavy)
    size = sample_size(source.n_rows, source.n_features, wanted)
    if n_heavy <= size:
        return np.arange(n_heavy) if heavy is None else heavy
    drawn = np.sort(rng.choice(n_heavy, size, replace=False, shuffle=False))
    return drawn if heavy is None else heavy[drawn]


def _exact_group_sums(weights: FloatArray, group: IdArray) -> FloatArray:
    """Sums of equal rows' weights; sorted within a group, so their order does not matter."""
    order = np.lexsort((weights, group))
    sums = np.zeros(int(group[-1]) + 1 if len(group) else 0)
    np.add.at(sums, group[order], weights[order])
    return sums


def _row_hashes(source: Source, ids: IdArray, exponent: int) -> HashArray:
    hashes = np.empty(len(ids), np.uint64)
    for start, stop in spans(len(ids), TILE):
        whole = ids[stop - 1] - ids[start] == stop - 1 - start
        span = ids[start:stop]
        X = source.read(int(span[0]), int(span[-1]) + 1) if whole else source.take(span)
        hashes[start:stop] = row_hashes(X, exponent)
    return hashes


def row_hashes(X: Rows, exponent: int = 0, seed: int = 0x1D8E4E27C47D124F) -> HashArray:
    """64 bits that identify a row by its values in units of 2^exponent (equal rows, equal ones)."""
    if isinstance(X, BlockRows):
        hashes: HashArray = np.zeros(len(X), np.uint64)
        for number, part in enumerate(X.parts):
            hashes = hashes * np.uint64(31) + row_hashes(part, exponent, seed + number)
        return hashes
    bits_type = np.uint32 if X.dtype == np.float32 else np.uint64
    minus_zero = bits_type(1 << (8 * X.dtype.itemsize - 1))
    out = np.empty(X.shape[0], np.uint64)
    if sp.issparse(X):
        bits = np.ldexp(X.data, -exponent).view(bits_type)
        _jit.hash_sparse(bits, X.indices, X.indptr, minus_zero, np.uint64(seed), out)
    else:
        bits = np.ldexp(np.ascontiguousarray(X), -exponent).view(bits_type)
        if bits.size <= FEW_VALUES:
            return _hash_few(bits, minus_zero, seed)
        _jit.hash_dense(bits, minus_zero, np.uint64(seed), out)
    return out


def _hash_few(bits: Any, minus_zero: Any, seed: int) -> HashArray:
    """What `hash_dense` does, without compiling it."""
    hashes: HashArray = np.full(len(bits), seed, np.uint64)
    for column in np.where(bits == minus_zero, bits.dtype.type(0), bits).T:
        hashes = (hashes ^ column) * HASH_FACTOR
        hashes ^= hashes >> HASH_SHIFT
    return hashes
