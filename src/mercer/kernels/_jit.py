"""The hot loops of kernel evaluation: sums over coordinates, and a vectorised exponential.

Each loop runs over the pivots innermost (``YT`` is features × pivots), so that every row's result
is made by the same instructions wherever the row stands: its bits depend on its values alone.
"""

from __future__ import annotations

import numpy as np

from mercer._run.jit import inlined, jit

SQUARED, ABSOLUTE, CHI2, MINIMUM, PRODUCT = range(5)  # terms g(x, y); kernels pass these codes

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
MAGIC = 6755399441055744.0  # 1.5·2⁵²: adding it rounds to an integer kept in the low bits
ONE_BITS = 4607182418800017408  # the bits of 1.0

LOG2_E_32 = np.float32(LOG2_E)
LN2_HIGH_32, LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
MAGIC_32 = np.float32(12582912.0)  # 1.5·2²³
LEAST_32 = np.float32(-87.0)
C2, C3, C4, C5, C6, C7 = (np.float32(1.0 / f) for f in (2, 6, 24, 120, 720, 5040))
ONE_32 = np.float32(1.0)


@inlined
def add_terms(x, y, code, o):  # o: INOUT (r,)
    """o[q] += g(x, y[q]) for one coordinate of one row against all pivots."""
    if code == SQUARED:
        for q in range(o.shape[0]):
            t = x - y[q]
            o[q] += t * t
    elif code == ABSOLUTE:
        for q in range(o.shape[0]):
            o[q] += abs(x - y[q])
    elif code == CHI2:
        for q in range(o.shape[0]):
            t = x - y[q]
            s = x + y[q]
            o[q] += t * t / s if s > 0 else s
    elif code == MINIMUM:
        for q in range(o.shape[0]):
            o[q] += min(x, y[q])
    else:
        for q in range(o.shape[0]):
            o[q] += x * y[q]


@inlined
def subtract_terms_at_zero(y, code, o):  # o: INOUT (r,)
    """o[q] -= g(0, y[q]): undoes what the base sum assumed of an absent coordinate."""
    if code == SQUARED:
        for q in range(o.shape[0]):
            o[q] -= y[q] * y[q]
    elif code == ABSOLUTE:
        for q in range(o.shape[0]):
            o[q] -= abs(y[q])
    elif code == CHI2:
        for q in range(o.shape[0]):
            o[q] -= y[q]


@inlined
def term_at_zero(x, code):
    """g(x, 0), where no pivot has the coordinate."""
    if code == SQUARED:
        return x * x
    if code == ABSOLUTE:
        return abs(x)
    if code == CHI2:
        return x
    return 0.0 * x


@inlined
def exp_row(v, scale, bits, low_bits):  # v: INOUT (r,), bits and low_bits: scratch, same memory
    """v = exp(scale·v) for scale·v ≤ 0, float64: 2ᵏ·e^r with |r| ≤ ln 2 / 2, error 2e-16."""
    for i in range(v.shape[0]):
        x = max(v[i] * scale, -708.0)
        shifted = x * LOG2_E + MAGIC
        low_bits[i] = shifted
        k = shifted - MAGIC
        r = (x - k * LN2_HIGH) - k * LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        v[i] = p * r + 1.0
    for i in range(v.shape[0]):
        bits[i] = (bits[i] << 52) + ONE_BITS
    for i in range(v.shape[0]):
        v[i] *= low_bits[i]


@inlined
def exp_row_32(v, scale, bits, low_bits):  # v: INOUT (r,)
    """The same in float32."""
    for i in range(v.shape[0]):
        x = max(v[i] * scale, LEAST_32)
        shifted = x * LOG2_E_32 + MAGIC_32
        low_bits[i] = shifted
        k = shifted - MAGIC_32
        r = (x - k * LN2_HIGH_32) - k * LN2_LOW_32
        p = C7 * r + C6
        p = p * r + C5
        p = p * r + C4
        p = p * r + C3
        p = p * r + C2
        p = p * r + ONE_32
        v[i] = p * r + ONE_32
    for i in range(v.shape[0]):
        bits[i] = (bits[i] << np.int32(23)) + np.int32(1065353216)
    for i in range(v.shape[0]):
        v[i] *= low_bits[i]


@jit
def dense_sums(X, YT, code, scale, out, bits, low_bits):  # out: OUT (n, r) float64
    """out[i, q] = exp(scale · Σ_j g(X[i, j], Y[q, j])), row by row while it is in cache.

    Without the exponential where there is no room for its bits (scratch, (r,) int64, and the same
    memory as float64).
    """
    for i in range(X.shape[0]):
        o = out[i]
        for q in range(o.shape[0]):
            o[q] = 0.0
        for j in range(X.shape[1]):
            add_terms(X[i, j], YT[j], code, o)
        if bits.shape[0] > 0:
            exp_row(o, scale, bits, low_bits)


@jit
def dense_sums_32(X, YT, code, scale, out, bits, low_bits):  # out: OUT (n, r) float32
    """The same in float32."""
    for i in range(X.shape[0]):
        o = out[i]
        for q in range(o.shape[0]):
            o[q] = 0.0
        for j in range(X.shape[1]):
            add_terms(X[i, j], YT[j], code, o)
        if bits.shape[0] > 0:
            exp_row_32(o, scale, bits, low_bits)


@jit
def exp_rows(scale, out, bits, low_bits):  # out: INOUT (n, r) float64
    for i in range(out.shape[0]):
        exp_row(out[i], scale, bits, low_bits)


@jit
def exp_rows_32(scale, out, bits, low_bits):  # out: INOUT (n, r) float32
    for i in range(out.shape[0]):
        exp_row_32(out[i], scale, bits, low_bits)


@inlined
def squared_length(x, sums):  # sums: scratch (8,)
    """‖x‖² in float64, by eight sums that do not wait for each other."""
    for lane in range(8):
        sums[lane] = 0.0
    whole = x.shape[0] // 8 * 8
    for j in range(0, whole, 8):
        for lane in range(8):
            sums[lane] += np.float64(x[j + lane]) * x[j + lane]
    total = 0.0
    for lane in range(8):
        total += sums[lane]
    for j in range(whole, x.shape[0]):
        total += np.float64(x[j]) * x[j]
    return total


@jit
def squared_from_products(X, y_norms, out, sums):  # out: INOUT (n, r), x·y in, ‖x - y‖² ≥ 0 out
    zero = y_norms.dtype.type(0)
    for i in range(out.shape[0]):
        x_norm = y_norms.dtype.type(squared_length(X[i], sums))
        for q in range(out.shape[1]):
            out[i, q] = max(y_norms[q] - (out[i, q] + out[i, q]) + x_norm, zero)


@inlined
def place_of(column, columns):
    """Where a number stands among ascending ones, or -1."""
    low, high = 0, columns.shape[0]
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    if low < columns.shape[0] and columns[low] == column:
        return low
    return -1


@jit
def sparse_sums(data, indices, indptr, columns, YT, base, code, out):  # out: OUT (n, r)
    """Σ_j g(x_j, y_j) for CSR rows, in float64.

    base[q] = Σ_j g(0, Y[q, j]); only the coordinates that x has change it. YT holds the columns
    that some pivot has; `columns` are their ascending numbers.
    """
    for i in range(out.shape[0]):
        o = out[i]
        for q in range(o.shape[0]):
            o[q] = base[q]
        alone = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[p])
            column = place_of(indices[p], columns)
            if column < 0:
                alone += term_at_zero(x, code)
            else:
                add_terms(x, YT[column], code, o)
                subtract_terms_at_zero(YT[column], code, o)
        for q in range(o.shape[0]):
            o[q] += alone
