"""Loops of the search for nearest rows: by products, by the cells of a grid, by inverted lists."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import inlined, jit

FAR = 1e300
GROUPS = 128  # of sums, whose least bound the smallest of all
HALVINGS = 12  # of the interval in which the bound is sought
SINGLE_ROUNDING = 1e-5  # of float32 products, relative to squared lengths
SINGLE_EPS = 2.0**-23
LEAST = 2.0**-126  # float32 below may become zero
LONG = 1e18  # rows beyond have squares that are large for float32


@inlined
def clear(values, items, i):  # values, items: INOUT (n, m), row i
    """Nothing is found yet."""
    for q in range(values.shape[1]):
        values[i, q] = FAR
        items[i, q] = -1


@inlined
def insert(value, item, values, items, i):  # values, items: INOUT (n, m), row i ascending
    """Keep the m smallest, ties by the smaller item."""
    q = values.shape[1] - 1
    if not (value > values[i, q] or (value == values[i, q] and item > items[i, q])):
        while q > 0 and (
            values[i, q - 1] > value or (values[i, q - 1] == value and items[i, q - 1] > item)
        ):
            values[i, q] = values[i, q - 1]
            items[i, q] = items[i, q - 1]
            q -= 1
        values[i, q] = value
        items[i, q] = item


@inlined
def squared_distance(Z, i, L, j):
    """‖z_i - l_j‖²."""
    z, l, total = Z[i], L[j], 0.0
    for a in range(z.shape[0]):
        t = z[a] - l[a]
        total += t * t
    return total


@jit
def nearest_by_products(
    Z, L, products, norms, longest, rounding, values, items, idx, dist, is_sure
):
    """The m nearest landmarks of each row. idx, dist: OUT (n, m), is_sure: OUT (n,).

    `products` (z·l, maybe in float32) proposes candidates, as many as values and items (scratch,
    (1, m + extra)) have room for; their distances are then computed directly in float64. A row is
    sure if no landmark beside the candidates can be as near as the m-th of them, whatever rounding
    did to its product: then the answer depends on the row alone.
    |fl(z·l) - z·l| ≤ rounding·‖z‖‖l‖, and ‖l‖² is off by less than rounding·‖l‖².
    """
    m, n_candidates = idx.shape[1], values.shape[1]
    for i in range(Z.shape[0]):
        clear(values, items, 0)
        worst = FAR
        for j in range(L.shape[0]):
            value = norms[j] - 2.0 * np.float64(products[i, j])
            if value < worst:
                insert(value, j, values, items, 0)
                worst = values[0, n_candidates - 1]
        clear(dist, idx, i)
        n_found = 0
        for c in range(n_candidates):
            j = items[0, c]
            if j >= 0:
                insert(squared_distance(Z, i, L, j), j, dist, idx, i)
                n_found += 1
        length = 0.0
        for a in range(Z.shape[1]):
            length += np.float64(Z[i, a]) * Z[i, a]
        error = rounding * (length + 2.0 * longest * (np.sqrt(length) + longest))
        nearest_other = values[0, n_candidates - 1] + length - error
        is_all = n_candidates == L.shape[0]
        is_sure[i] = n_found == n_candidates and (is_all or nearest_other > dist[i, m - 1])


@jit
def propose(products, lengths, first, least, values, items):
    """Keep the c smallest of products[i, j] + lengths[j] of each row, ties by the smaller number.

    Of every GROUPS-th sum the least is found first: a number that c of these do not exceed bounds
    the c smallest of all, and only groups that reach below it are looked at.
    products: INOUT, becomes the sums; values, items: INOUT (≥ n, c), ascending, items numbered
    from `first`; least: scratch (GROUPS,)
    """
    last, n_all = values.shape[1] - 1, lengths.shape[0]
    n_whole = n_all // GROUPS * GROUPS
    for i in range(products.shape[0]):
        sums = products[i]
        least[:] = np.inf
        for s in range(n_whole // GROUPS):
            for g in range(GROUPS):
                value = sums[s * GROUPS + g] + lengths[s * GROUPS + g]
                sums[s * GROUPS + g] = value
                least[g] = min(value, least[g])
        for j in range(n_whole, n_all):
            sums[j] += lengths[j]
            least[j - n_whole] = min(sums[j], least[j - n_whole])
        low, bound = least[0], least[0]
        for g in range(GROUPS):
            low, bound = min(low, least[g]), max(bound, least[g])
        for _ in range(HALVINGS):
            middle, n_small = np.float32(0.5) * (low + bound), 0
            for g in range(GROUPS):
                n_small += 1 if least[g] <= middle else 0
            if n_small <= last:
                low = middle
            else:
                bound = middle
                if n_small <= last + 4:
                    break
        bound = min(bound, values[i, last])
        for g in range(GROUPS):
            if least[g] <= bound:
                for j in range(g, n_all, GROUPS):
                    if sums[j] <= bound:
                        insert(sums[j], first + j, values, items, i)


@inlined
def insert_four(z, L, first, stop, sums, who, c, values, items, i):  # values, items: INOUT
    """Insert the four landmarks who[c:] by their sums, to which these coordinates are added.

    So many sums do not wait for each other.
    """
    j0, j1, j2, j3 = who[c], who[c + 1], who[c + 2], who[c + 3]
    s0, s1, s2, s3 = sums[c], sums[c + 1], sums[c + 2], sums[c + 3]
    l0, l1, l2, l3 = L[j0], L[j1], L[j2], L[j3]
    for a in range(first, stop):
        x = np.float64(z[a])
        t0, t1, t2, t3 = x - l0[a], x - l1[a], x - l2[a], x - l3[a]
        s0 += t0 * t0
        s1 += t1 * t1
        s2 += t2 * t2
        s3 += t3 * t3
    insert(s0, j0, values, items, i)
    insert(s1, j1, values, items, i)
    insert(s2, j2, values, items, i)
    insert(s3, j3, values, items, i)


@jit
def nearest_by_leading(Z, L, n_leading, longest, values, items, near, who, lengths, is_sure):
    """The c nearest landmarks in the leading coordinates, of more that float32 proposes.

    values, items: IN, as `propose` leaves them, a multiple of four; near, who: OUT (n, c);
    lengths: OUT (n,), of the leading coordinates; is_sure: OUT (n,). A row is sure if no landmark
    beside the proposed ones can be as near as the c-th of them, whatever rounding did to its sum
    ‖l‖² - 2 z·l: then what is found depends on the row alone. The sum is off by less than
    (n_leading + 4)·ε of 2‖z‖‖l‖ + ‖l‖², and by what underflows.
    """
    n_proposed, n_candidates = items.shape[1], who.shape[1]
    zeros = np.zeros(n_proposed)
    for i in range(Z.shape[0]):
        length = 0.0
        for a in range(n_leading):
            length += np.float64(Z[i, a]) * Z[i, a]
        lengths[i] = np.sqrt(length)
        is_sure[i] = lengths[i] < LONG and items[i, n_proposed - 1] >= 0
        if is_sure[i]:
            clear(near, who, i)
            for c in range(0, n_proposed, 4):
                insert_four(Z[i], L, 0, n_leading, zeros, items[i], c, near, who, i)
            error = (n_leading + 4) * (SINGLE_EPS * longest * (2.0 * lengths[i] + longest) + LEAST)
            nearest_other = values[i, n_proposed - 1] + length - error
            is_sure[i] = nearest_other > near[i, n_candidates - 1]


@jit
def nearest_of_candidates(Z, L, n_leading, longest, near, who, lengths, idx, dist, is_apart):
    """The m nearest of the candidates of each row, whose sums go on from the leading coordinates.

    idx, dist: OUT (n, m); is_apart: OUT (n,), whether the candidates differ by more than rounding
    does in float32. Their number is a multiple of four.
    """
    n_candidates = who.shape[1]
    for i in range(Z.shape[0]):
        longer = lengths[i] + longest
        spread = near[i, n_candidates - 1] - near[i, 0]
        is_apart[i] = spread > SINGLE_ROUNDING * longer * longer
        if is_apart[i]:
            clear(dist, idx, i)
            for c in range(0, n_candidates, 4):
                insert_four(Z[i], L, n_leading, Z.shape[1], near[i], who[i], c, dist, idx, i)


@jit
def nearest_of_all(Z, L, rows, idx, dist):  # idx, dist: INOUT (n, m)
    """The m nearest landmarks of some rows, by their distances to all."""
    for r in range(rows.shape[0]):
        i = rows[r]
        clear(dist, idx, i)
        for j in range(L.shape[0]):
            insert(squared_distance(Z, i, L, j), j, dist, idx, i)


@inlined
def sort_list(keys, items, start, n):  # keys: INOUT (≥ n,); items: INOUT, from `start` on
    """Shell's sort of n items by their keys."""
    gap = n
    while gap > 1:
        gap = max(5 * gap // 11, 1)
        for e in range(gap, n):
            key, item, q = keys[e], items[start + e], e
            while q >= gap and keys[q - gap] > key:
                keys[q] = keys[q - gap]
                items[start + q] = items[start + q - gap]
                q -= gap
            keys[q] = key
            items[start + q] = item


@jit
def fill_cells(
    low, step, sides, L, parents, parent_items, ratio, parent_sides, first, ptr, items, scratch
):
    """The lists of the cells of a grid, from cell `first` on; which cell had no room in `items`.

    Each holds the landmarks that can be among the m nearest of a point in the cell, near ones
    first: most others then fail. They lie within (m-th distance from the centre) + 2 · (half
    diagonal) of the centre. A coarser grid's lists (ratio cells per side; 0: none) bound the
    search. ptr, items: INOUT; scratch: center (1, d), distances (p,), best and who (1, m).
    """
    center, distances, best, who = scratch
    d, n_cells = L.shape[1], sides[0] * sides[1] * sides[2]
    half = 0.0
    for a in range(d):
        half += step[a] * step[a] / 4
    half = np.sqrt(half)
    filled = ptr[first]
    for c in range(first, n_cells):
        parent, place = 0, n_cells
        for a in range(3):
            place //= sides[a]
            position = c // place % sides[a]
            if a < d:
                center[0, a] = low[a] + (position + 0.5) * step[a]
            if ratio > 0:
                parent = parent * parent_sides[a] + position // ratio
        start, stop = 0, L.shape[0]
        if ratio > 0:
            start, stop = parents[parent], parents[parent + 1]
        if filled + stop - start > items.shape[0]:
            return c
        clear(best, who, 0)
        for e in range(start, stop):
            j = parent_items[e] if ratio > 0 else e
            distances[e - start] = squared_distance(center, 0, L, j)
            insert(distances[e - start], j, best, who, 0)
        reach = np.sqrt(best[0, best.shape[1] - 1]) + 2 * half
        limit = reach * reach * (1 + 1e-9)
        n = 0
        for e in range(start, stop):
            if distances[e - start] <= limit:
                items[filled + n] = parent_items[e] if ratio > 0 else e
                distances[n] = distances[e - start]
                n += 1
        sort_list(distances, items, filled, n)
        filled += n
        ptr[c + 1] = filled
    return n_cells


@jit
def nearest_by_grid(Z, L, low, step, sides, ptr, items, idx, dist):  # idx, dist: OUT (n, m)
    """The m nearest landmarks by the lists of the row's cell; rows outside look at all."""
    for i in range(Z.shape[0]):
        cell = 0
        inside = True
        for a in range(3):
            position = 0
            if a < Z.shape[1]:
                place = (Z[i, a] - low[a]) / step[a]
                inside = inside and place >= 0 and place < sides[a]
                position = int(place) if inside else 0
            cell = cell * sides[a] + position
        clear(dist, idx, i)
        start, stop = 0, L.shape[0]
        if inside:
            start, stop = ptr[cell], ptr[cell + 1]
        for e in range(start, stop):
            j = items[e] if inside else e
            insert(squared_distance(Z, i, L, j), j, dist, idx, i)


@jit
def add_squares(z, landmark, residuals, size, near):  # near: OUT (≥ size,)
    """Squared distances of z to the rows of a list, in float32; four columns at a time."""
    for j in range(size):
        near[j] = 0.0
    n_whole = z.shape[0] // 4 * 4
    for f in range(0, n_whole, 4):
        z0, z1 = np.float32(z[f] - landmark[f]), np.float32(z[f + 1] - landmark[f + 1])
        z2, z3 = np.float32(z[f + 2] - landmark[f + 2]), np.float32(z[f + 3] - landmark[f + 3])
        r0, r1 = residuals[f * size : (f + 1) * size], residuals[(f + 1) * size : (f + 2) * size]
        r2, r3 = (
            residuals[(f + 2) * size : (f + 3) * size],
            residuals[(f + 3) * size : (f + 4) * size],
        )
        for j in range(size):
            t0, t1, t2, t3 = z0 - r0[j], z1 - r1[j], z2 - r2[j], z3 - r3[j]
            near[j] += (t0 * t0 + t1 * t1) + (t2 * t2 + t3 * t3)
    for f in range(n_whole, z.shape[0]):
        z0, r0 = np.float32(z[f] - landmark[f]), residuals[f * size : (f + 1) * size]
        for j in range(size):
            t0 = z0 - r0[j]
            near[j] += t0 * t0


@jit
def nearest_in_lists(Z, probes, landmarks, starts, residuals, members, rows, extra, idx, dist):
    """The m nearest rows of each z among those in the lists of its nearest landmarks.

    `residuals` holds the rows of a list less its landmark, in float32, one column after the other,
    so that the innermost loop runs over rows: many at a time, each by the same operations wherever
    it stands. They propose m + extra candidates, whose distances are computed in float64.
    idx, dist: OUT (n, m); idx is -1 where the lists hold fewer rows.
    """
    n_columns, longest = Z.shape[1], 0
    for c in range(starts.shape[0] - 1):
        longest = max(longest, starts[c + 1] - starts[c])
    near = np.empty(longest, np.float32)
    n_candidates = idx.shape[1] + extra
    values = np.empty((1, n_candidates))
    items = np.empty((1, n_candidates), np.int64)
    for i in range(Z.shape[0]):
        clear(values, items, 0)
        for a in range(probes.shape[1]):
            c = probes[i, a]
            start = starts[c]
            size = starts[c + 1] - start
            add_squares(Z[i], landmarks[c], residuals[start * n_columns :], size, near)
            for j in range(size):
                if near[j] <= values[0, n_candidates - 1]:
                    insert(np.float64(near[j]), start + j, values, items, 0)
        clear(dist, idx, i)
        for e in range(n_candidates):
            if items[0, e] >= 0:
                row = members[items[0, e]]
                insert(squared_distance(Z, i, rows, row), row, dist, idx, i)


@jit
def add_to_nearest(Z, labels, weights, sums, counts):  # sums: INOUT (p, q), counts: INOUT (p,)
    """One half of a Lloyd sweep."""
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            sums[labels[i], j] += weights[i] * np.float64(Z[i, j])
        counts[labels[i]] += weights[i]
