"""Loops of random binning: cells of a grid, tables of known bins, sums over bins and back."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit

FIRST, SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)  # of murmur3
STEP = np.uint64(0x9E3779B97F4A7C15)
HALF, ONE = np.uint64(33), np.uint64(1)
LARGEST = 2.0**52  # added to a whole number below it, it leaves that number in the low bits
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
def bins_of_grid(XT, first, last, low, high, dims, scales, biases, count, slots, ids, keys):
    """The bins of the rows first to last in one grid, numbered by first appearance.

    ids, keys: INOUT (n,); `count` bins were numbered before, in `slots`. Returns both as they are
    after these rows.
    """
    cells, codes = np.empty(CHUNK), np.empty(CHUNK, np.uint64)
    for start in range(first, last, CHUNK):
        stop = min(last, start + CHUNK)
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
    return count, slots


@jit
def bins_of_codes(codes, slots, ids, keys):  # ids, keys: OUT (n,)
    """The same for all rows, from codes that are at hand; returns how many bins there are."""
    count, done = 0, 0
    while done < codes.shape[0]:
        more, count = number_codes(codes[done:], count, slots, keys, ids[done:])
        done += more
        if done < codes.shape[0]:
            slots = np.full(4 * slots.shape[0], -1, np.int32)
            fill_slots(keys[:count], 0, slots)
    return count


@jit
def keep_shared(ids, heavy, sizes, alone):  # ids, sizes, alone: INOUT
    """Number anew the bins of two or more rows, or of a heavy one; all others share the last.

    sizes: zeros (number of bins,), on return 0 for bins that are not kept; alone += 1 for their
    rows.
    """
    for i in range(ids.shape[0]):
        sizes[ids[i]] += 1
    for i in heavy:
        sizes[ids[i]] += 1
    numbers = np.empty(sizes.shape[0], np.int32)
    count = 0
    for b in range(sizes.shape[0]):
        if sizes[b] > 1:
            numbers[b] = count
            count += 1
        else:
            sizes[b] = 0
    for b in range(sizes.shape[0]):
        if sizes[b] == 0:
            numbers[b] = count
    for i in range(ids.shape[0]):
        ids[i] = numbers[ids[i]]
        alone[i] += ids[i] == count


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
def join(ids, width, joined):  # joined: INOUT
    """One more digit, of `width` values, behind the numbers."""
    for i in range(ids.shape[0]):
        joined[i] = joined[i] * width + ids[i]


@jit
def spread(table, widths, rests, parts):  # table: INOUT; rests, parts: scratch
    """Sums over the cells of several grids at once → in each cell, Σ over the grids of its bin's.

    A cell's number has a digit for each grid. From the last digit to the first, sums over it and
    sums over all others; then back. The last value of a digit stands for no bin: its sum is 0.
    """
    size = 1
    for q in range(widths.shape[0]):
        size *= widths[q]
    whole = table[:size]
    place, part_place = 0, 0
    for q in range(widths.shape[0] - 1, 0, -1):
        width = widths[q]
        size //= width
        rest, part = rests[place : place + size], parts[part_place : part_place + width]
        part[:] = 0.0
        for r in range(size):
            total = 0.0
            for b in range(width):
                total += whole[r * width + b]
                part[b] += whole[r * width + b]
            rest[r] = total
        part[width - 1] = 0.0
        whole = rest
        place += size
        part_place += width
    whole[size - 1] = 0.0
    for q in range(1, widths.shape[0]):
        width = widths[q]
        place -= size
        part_place -= width
        rest, part = rests[place : place + size], parts[part_place : part_place + width]
        whole = table[: size * width]
        if q < widths.shape[0] - 1:
            whole = rests[place - size * width : place]
        for r in range(size):
            for b in range(width):
                whole[r * width + b] = rest[r] + part[b]
        size *= width


@jit
def add_neighbor_sums(ids, rows, starts, widths, first, last, v, tables, rests, parts, out):
    """out += Σ_g Z_g(Z_gᵀv) over the bundles first to last; tables, rests, parts are scratch.

    ids[rows[t]] are cells of bundle t, whose grids have the widths starts[t] to starts[t + 1]. Four
    bundles at a time: their sums do not wait for each other, and v and out are read once for all.
    """
    n = v.shape[0]
    for t in range(first, last, 4):
        for j in range(4):
            size = 1
            for q in range(starts[min(t + j, last - 1)], starts[min(t + j, last - 1) + 1]):
                size *= widths[q]
            tables[j, :size] = 0.0
        ids0, ids1 = ids[rows[t]], ids[rows[min(t + 1, last - 1)]]
        ids2, ids3 = ids[rows[min(t + 2, last - 1)]], ids[rows[min(t + 3, last - 1)]]
        sums0, sums1, sums2, sums3 = tables[0], tables[1], tables[2], tables[3]
        for i in range(n):
            sums0[np.uint32(ids0[i])] += v[i]
            sums1[np.uint32(ids1[i])] += v[i]
            sums2[np.uint32(ids2[i])] += v[i]
            sums3[np.uint32(ids3[i])] += v[i]
        for j in range(4):
            if t + j < last:
                spread(tables[j], widths[starts[t + j] : starts[t + j + 1]], rests, parts)
            else:  # the last bundle stood in for a fourth
                tables[j] = 0.0
        for i in range(n):
            out[i] += (sums0[np.uint32(ids0[i])] + sums1[np.uint32(ids1[i])]) + (
                sums2[np.uint32(ids2[i])] + sums3[np.uint32(ids3[i])]
            )


@jit
def root(parents, i):  # parents: INOUT
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i


@jit
def unite_bins(ids, width, parents, firsts):  # parents: INOUT; firsts: scratch (width,)
    """Join the parts that share a bin of a grid; returns how many parts fewer there are."""
    fewer = 0
    firsts[:width] = -1
    for i in range(ids.shape[0]):
        b = ids[i]
        if b < width:
            if firsts[b] < 0:
                firsts[b] = i
            else:
                one, other = root(parents, firsts[b]), root(parents, i)
                if one != other:
                    parents[max(one, other)] = min(one, other)
                    fewer += 1
    return fewer


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
