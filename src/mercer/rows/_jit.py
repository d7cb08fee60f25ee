"""Loops over raw rows: content hashes, column ranges, lengths."""

from __future__ import annotations

import math

import numpy as np

from mercer._run.jit import inlined, jit

MIX = np.uint64(0x9E3779B97F4A7C15)  # as in distinct.py
SHIFT = np.uint64(29)
SMALL_SQUARE = 1e-200  # squares of smaller rows may lose digits


@inlined
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
        n_infinite = 0
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            n_infinite += 0 if x - x == 0.0 else 1
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            low[j] = min(low[j], x)
            high[j] = max(high[j], x)
        if n_infinite > 0:
            return i
    return -1


@jit
def move_columns(X, shift, scale, out):  # out: OUT (n, d), may be X itself
    """out = (X - shift) · scale, in float64."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = (np.float64(X[i, j]) - shift[j]) * scale


@inlined
def least_scale(largest):
    """A power of two that brings the largest value of a row near 1: no square is lost."""
    return math.ldexp(1.0, -max(math.frexp(largest)[1], -1000))


@inlined
def sum_of_squares(x, scale):
    """Four sums at once, none of which waits for the others."""
    n_whole = x.shape[0] // 4 * 4
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for j in range(0, n_whole, 4):
        x0, x1 = np.float64(x[j]) * scale, np.float64(x[j + 1]) * scale
        x2, x3 = np.float64(x[j + 2]) * scale, np.float64(x[j + 3]) * scale
        s0 += x0 * x0
        s1 += x1 * x1
        s2 += x2 * x2
        s3 += x3 * x3
    for j in range(n_whole, x.shape[0]):
        x0 = np.float64(x[j]) * scale
        s0 += x0 * x0
    return (s0 + s1) + (s2 + s3)


@jit
def unit_rows(X, shift, out):  # out: OUT (n, d), may be X itself
    """out = X / ‖X‖ - shift for each row, in float64; X / ‖X‖ of a row of zeros is zero."""
    for i in range(X.shape[0]):
        scale, square = 1.0, sum_of_squares(X[i], 1.0)
        if not SMALL_SQUARE < square < 1.0 / SMALL_SQUARE:
            largest = 0.0
            for j in range(X.shape[1]):
                largest = max(largest, abs(np.float64(X[i, j])))
            scale = least_scale(largest)
            square = sum_of_squares(X[i], scale)
        length = math.sqrt(square) if square > 0.0 else 1.0
        for j in range(X.shape[1]):
            out[i, j] = np.float64(X[i, j]) * scale / length - shift[j]


@inlined
def sum_of_sparse_squares(data, indices, start, end, n_columns, scale):
    """The sum of the dense row, bit for bit: each entry goes where its column would."""
    n_whole = n_columns // 4 * 4
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for p in range(start, end):
        x = np.float64(data[p]) * scale
        place = indices[p] % 4 if indices[p] < n_whole else 0
        if place == 0:
            s0 += x * x
        elif place == 1:
            s1 += x * x
        elif place == 2:
            s2 += x * x
        else:
            s3 += x * x
    return (s0 + s1) + (s2 + s3)


@jit
def unit_rows_sparse(data, indices, indptr, n_columns, out):  # out: OUT, may be data itself
    """The same for CSR rows with sorted indices, without a shift."""
    for i in range(indptr.shape[0] - 1):
        start, end = indptr[i], indptr[i + 1]
        scale = 1.0
        square = sum_of_sparse_squares(data, indices, start, end, n_columns, scale)
        if not SMALL_SQUARE < square < 1.0 / SMALL_SQUARE:
            largest = 0.0
            for p in range(start, end):
                largest = max(largest, abs(np.float64(data[p])))
            scale = least_scale(largest)
            square = sum_of_sparse_squares(data, indices, start, end, n_columns, scale)
        length = math.sqrt(square) if square > 0.0 else 1.0
        for p in range(start, end):
            out[p] = np.float64(data[p]) * scale / length
