"""Loops over raw rows: content hashes, column ranges, lengths."""

from __future__ import annotations

import math

import numpy as np

from mercer._run.jit import jit

MIX = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)


@jit
def mix(h, word):
    h = (h ^ word) * MIX
    return h ^ (h >> SHIFT)


@jit
def hash_dense(bits, minus_zero, seed, out):  # out: OUT (n,) uint64
    """A 64-bit hash of each row's values; -0.0 counts as 0.0."""
    for i in range(bits.shape[0]):
        h = seed
        for j in range(bits.shape[1]):
            word = bits[i, j]
            if word == minus_zero:
                word = word ^ minus_zero
            h = mix(h, np.uint64(word))
        out[i] = h


@jit
def hash_sparse(bits, indices, indptr, minus_zero, seed, out):  # out: OUT (n,) uint64
    """The same for CSR rows with sorted indices; explicit zeros count as absent."""
    for i in range(indptr.shape[0] - 1):
        h = seed
        for p in range(indptr[i], indptr[i + 1]):
            if bits[p] != 0 and bits[p] != minus_zero:
                h = mix(mix(h, np.uint64(indices[p])), np.uint64(bits[p]))
        out[i] = h


@jit
def column_range(X, low, high):  # low, high: INOUT (d,)
    """Widen the range of each column; returns the first row that is not finite, or -1."""
    for i in range(X.shape[0]):
        finite = True
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            finite = finite and (x - x == 0.0)
            low[j] = min(low[j], x)
            high[j] = max(high[j], x)
        if not finite:
            return i
    return -1


@jit
def move_columns(X, shift, scale, out):  # out: OUT (n, d), may be X itself
    """out = (X - shift) · scale, in float64."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = (np.float64(X[i, j]) - shift[j]) * scale


@jit
def least_scale(largest):
    """A power of two that brings the largest value of a row near 1: no square is lost."""
    return math.ldexp(1.0, -max(math.frexp(largest)[1], -1000))


@jit
def unit_rows(X, shift, out):  # out: OUT (n, d), may be X itself
    """out = X / ‖X‖ - shift for each row, in float64; X / ‖X‖ of a row of zeros is zero."""
    for i in range(X.shape[0]):
        largest = 0.0
        for j in range(X.shape[1]):
            largest = max(largest, abs(np.float64(X[i, j])))
        scale, square = least_scale(largest), 0.0
        for j in range(X.shape[1]):
            x = np.float64(X[i, j]) * scale
            square += x * x
        length = math.sqrt(square) if square > 0.0 else 1.0
        for j in range(X.shape[1]):
            out[i, j] = np.float64(X[i, j]) * scale / length - shift[j]


@jit
def unit_rows_sparse(data, indptr, out):  # out: OUT, as long as data, may be data itself
    """The same for CSR rows with sorted indices, without a shift."""
    for i in range(indptr.shape[0] - 1):
        largest = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            largest = max(largest, abs(np.float64(data[p])))
        scale, square = least_scale(largest), 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[p]) * scale
            square += x * x
        length = math.sqrt(square) if square > 0.0 else 1.0
        for p in range(indptr[i], indptr[i + 1]):
            out[p] = np.float64(data[p]) * scale / length
