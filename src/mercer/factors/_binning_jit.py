"""Loops of random binning: cells of a grid, tables of known bins, sums over bins and back."""

from __future__ import annotations

import numpy as np

from mercer._numba import jit

FIRST, SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)  # of murmur3
STEP = np.uint64(0x9E3779B97F4A7C15)
HALF, ONE = np.uint64(33), np.uint64(1)
LARGEST = 2.0**52  # added to a whole number below it, it leaves that number in the low bits
FEW = 1024  # bins of a grid whose sums fit into the first cache four times
CHUNK = 2048  # rows whose codes fit into the first cache


@jit
def mixed(h):
    """64 bits stirred, one to one."""
    h = (h ^ (h >> HALF)) * FIRST
    h = (h ^ (h >> HALF)) * SECOND
    return h ^ (h >> HALF)


@jit
def add_cells(x, low, high, scale, bias, factor, cells, codes):  # cells: scratch; codes: INOUT
    """codes += factor · ⌊(x - low)·scale + bias⌋ in one dimension, x kept within [low, high]."""
    n = x.shape[0]
    bits = cells.view(np.uint64)
    for i in range(n):
        value = min(max(np.float64(x[i]), low), high)
        cells[i] = min(np.floor((value - low) * scale + bias), LARGEST - 1.0) + LARGEST
    for i in range(n):
        codes[i] += bits[i] * factor


@jit
def dense_codes(XT, start, stop, low, high, dims, scales, biases, cells, codes):  # codes: OUT
    """Hashes of the bins of the rows start to stop in one grid; XT is (d, n)."""
    n = stop - start
    codes[:n] = np.uint64(0)
    for a in range(dims.shape[0]):
        j = dims[a]
        factor = mixed(np.uint64(j + 1) * STEP) | ONE
        add_cells(
            XT[j, start:stop], low[j], high[j], scales[a], biases[a], factor, cells[:n], codes[:n]
        )
    for i in range(n):
        codes[i] = mixed(codes[i])


@jit
def cell_bits(x, low, high, scale, bias, one):  # one: scratch (1,)
    """The number that `add_cells` multiplies, for one value."""
    value = min(max(np.float64(x), low), high)
    one[0] = min(np.floor((value - low) * scale + bias), LARGEST - 1.0) + LARGEST
    return one.view(np.uint64)[0]


@jit
def sparse_codes(data, indices, indptr, low, high, dims, scales, biases, place, codes):
    """The same for CSR rows, at a cost of their entries. place: scratch (d,) of -1; codes: OUT."""
    one = np.empty(1)
    zeros = np.empty(dims.shape[0], np.uint64)
    base = np.uint64(0)
    for a in range(dims.shape[0]):
        j = dims[a]
        place[j] = a
        zeros[a] = cell_bits(0.0, low[j], high[j], scales[a], biases[a], one)
        base += zeros[a] * (mixed(np.uint64(j + 1) * STEP) | ONE)
    for i in range(codes.shape[0]):
        code = base
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            a = place[j]
            if a >= 0:
                bits = cell_bits(data[p], low[j], high[j], scales[a], biases[a], one)
                code += (bits - zeros[a]) * (mixed(np.uint64(j + 1) * STEP) | ONE)
        codes[i] = mixed(code)
    for a in range(dims.shape[0]):
        place[dims[a]] = -1


@jit
def number_codes(codes, first, slots, keys, ids):
    """Numbers of codes by first appearance, `first` numbers having been given before.

    slots: INOUT, a power of two of them, -1 where free, at least half of them free at the end;
    keys: INOUT the code of each number; ids: OUT. Stops where slots get short, and returns how many
    codes were done and how many numbers there are.
    """
    mask = np.uint64(slots.shape[0] - 1)
    count = first
    for i in range(codes.shape[0]):
        if 2 * count >= slots.shape[0]:
            return i, count
        place = codes[i] & mask
        while slots[place] >= 0 and keys[slots[place]] != codes[i]:
            place = (place + ONE) & mask
        if slots[place] < 0:
            slots[place] = count
            keys[count] = codes[i]
            count += 1
        ids[i] = slots[place]
    return codes.shape[0], count


@jit
def fill_slots(keys, first, slots):  # slots: INOUT, all -1
    """Put the numbers first, first + 1, … of these keys into their slots."""
    mask = np.uint64(slots.shape[0] - 1)
    for b in range(keys.shape[0]):
        place = keys[b] & mask
        while slots[place] >= 0:
            place = (place + ONE) & mask
        slots[place] = first + b


@jit
def bins_of_grid(XT, low, high, dims, scales, biases, ids, keys):  # ids, keys: OUT (n,)
    """The bin of each row in one grid, numbered by first appearance; returns how many there are."""
    n = ids.shape[0]
    cells, codes = np.empty(CHUNK), np.empty(CHUNK, np.uint64)
    slots = np.full(1024, -1, np.int32)
    count = 0
    for start in range(0, n, CHUNK):
        stop = min(n, start + CHUNK)
        dense_codes(XT, start, stop, low, high, dims, scales, biases, cells, codes)
        done = start
        while done < stop:
            more, count = number_codes(
                codes[done - start : stop - start], count, slots, keys, ids[done:stop]
            )
            done += more
            if done < stop:
                slots = np.full(4 * slots.shape[0], -1, np.int32)
                fill_slots(keys[:count], 0, slots)
    return count


@jit
def bins_of_codes(codes, ids, keys):  # ids, keys: OUT (n,)
    """The same from codes that are at hand."""
    slots = np.full(1024, -1, np.int32)
    count, done = 0, 0
    while done < codes.shape[0]:
        more, count = number_codes(codes[done:], count, slots, keys, ids[done:])
        done += more
        if done < codes.shape[0]:
            slots = np.full(4 * slots.shape[0], -1, np.int32)
            fill_slots(keys[:count], 0, slots)
    return count


@jit
def find_codes(codes, keys, slots, ids):  # ids: OUT
    """The numbers of known codes, -1 for others."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(codes.shape[0]):
        place = codes[i] & mask
        while slots[place] >= 0 and keys[slots[place]] != codes[i]:
            place = (place + ONE) & mask
        ids[i] = slots[place]


@jit
def add_by_lanes(row, v, y):  # y: INOUT (width + 1,)
    """y[row] += v in four lanes: where bins are few, a sum need not wait for the one before."""
    n, width = v.shape[0], y.shape[0]
    lanes = np.zeros((4, width))
    for i in range(0, n - n % 4, 4):
        lanes[0, row[i]] += v[i]
        lanes[1, row[i + 1]] += v[i + 1]
        lanes[2, row[i + 2]] += v[i + 2]
        lanes[3, row[i + 3]] += v[i + 3]
    for i in range(n - n % 4, n):
        lanes[0, row[i]] += v[i]
    for b in range(width):
        y[b] += (lanes[0, b] + lanes[1, b]) + (lanes[2, b] + lanes[3, b])


@jit
def neighbor_sums(ids, starts, first, last, v, y, out):  # y: scratch; out: OUT (n,)
    """out = Σ_g Z_g(Z_gᵀv) over the grids first to last, Z_g having a one in each row's bin.

    A grid's sums y are read while they are in the cache. Ids of rows outside kept bins point to the
    last number of their grid, whose sum is taken for nothing.
    """
    out[:] = 0.0
    n = v.shape[0]
    for g in range(first, last):
        row, width = ids[g], starts[g + 1] - starts[g]
        y[: width + 1] = 0.0
        if width < FEW:
            add_by_lanes(row, v, y[: width + 1])
        else:
            for i in range(n):
                y[row[i]] += v[i]
        y[width] = 0.0
        for i in range(n):
            out[i] += y[row[i]]


@jit
def block_neighbor_sums(ids, starts, first, last, V, Y, out):  # Y: scratch; out: OUT (n, m)
    """The same for the columns of V at once."""
    out[:] = 0.0
    n, m = V.shape
    for g in range(first, last):
        row, width = ids[g], starts[g + 1] - starts[g]
        Y[: width + 1] = 0.0
        for i in range(n):
            b = row[i]
            for c in range(m):
                Y[b, c] += V[i, c]
        Y[width] = 0.0
        for i in range(n):
            b = row[i]
            for c in range(m):
                out[i, c] += Y[b, c]


@jit
def add_bins(ids, start, width, table, out, hits):  # out: INOUT (n, m) float64; hits: INOUT (n,)
    """out += the rows of the table that belong to the bins of one grid; unknown bins add nothing.

    Called grid by grid in one order, so that a row's bits are its own.
    """
    for i in range(ids.shape[0]):
        b = ids[i]
        if b >= 0 and b < width:
            hits[i] += 1
            for c in range(table.shape[1]):
                out[i, c] += table[start + b, c]


@jit
def sums_of_bins(ids, V, Y):  # Y: OUT (width + 1, m)
    """Zᵀ V in one grid."""
    Y[:] = 0.0
    for i in range(ids.shape[0]):
        b = ids[i]
        for c in range(V.shape[1]):
            Y[b, c] += V[i, c]
