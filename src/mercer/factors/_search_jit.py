"""Loops of the search for nearest rows: by products, by the cells of a grid, by inverted lists."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit

FAR = 1e300


@jit
def insert(value, item, values, items):  # values, items: INOUT (m,), ascending by (value, item)
    """Keep the m smallest, ties by the smaller item."""
    q = values.shape[0] - 1
    if value > values[q] or (value == values[q] and item > items[q]):
        return
    while q > 0 and (values[q - 1] > value or (values[q - 1] == value and items[q - 1] > item)):
        values[q] = values[q - 1]
        items[q] = items[q - 1]
        q -= 1
    values[q] = value
    items[q] = item


@jit
def squared_distance(x, y):
    total = 0.0
    for j in range(x.shape[0]):
        t = np.float64(x[j]) - y[j]
        total += t * t
    return total


@jit
def nearest_by_products(Z, L, products, norms, rounding, extra, idx, dist, is_sure):
    """The m nearest landmarks of each row. idx, dist: OUT (n, m), is_sure: OUT (n,).

    `products` (z·l, maybe in float32) proposes m + extra candidates; their distances are then
    computed directly in float64. A row is sure if no landmark beside the candidates can be as near
    as the m-th of them, whatever rounding did to its product: then the answer depends on the row
    alone. |fl(z·l) - z·l| ≤ rounding·‖z‖‖l‖, and ‖l‖² is off by less than rounding·‖l‖².
    """
    m = idx.shape[1]
    n_candidates = min(m + extra, L.shape[0])
    values = np.empty(n_candidates)
    items = np.empty(n_candidates, np.int64)
    longest = 0.0
    for j in range(norms.shape[0]):
        longest = max(longest, norms[j])
    longest = np.sqrt(longest)
    for i in range(Z.shape[0]):
        values[:] = FAR
        items[:] = -1
        worst = FAR
        for j in range(L.shape[0]):
            value = norms[j] - 2.0 * np.float64(products[i, j])
            if value < worst:
                insert(value, j, values, items)
                worst = values[n_candidates - 1]
        dist[i, :] = FAR
        idx[i, :] = -1
        n_found = 0
        for c in range(n_candidates):
            j = items[c]
            if j >= 0:
                insert(squared_distance(Z[i], L[j]), j, dist[i], idx[i])
                n_found += 1
        length = 0.0
        for a in range(Z.shape[1]):
            length += Z[i, a] * Z[i, a]
        error = rounding * (length + 2.0 * longest * (np.sqrt(length) + longest))
        nearest_other = values[n_candidates - 1] + length - error
        is_all = n_candidates == L.shape[0]
        is_sure[i] = n_found == n_candidates and (is_all or nearest_other > dist[i, m - 1])


@jit
def nearest_of_all(Z, L, rows, idx, dist):  # idx, dist: INOUT (n, m)
    """The m nearest landmarks of some rows, by their distances to all."""
    for i in rows:
        dist[i, :] = FAR
        idx[i, :] = -1
        for j in range(L.shape[0]):
            insert(squared_distance(Z[i], L[j]), j, dist[i], idx[i])


@jit
def cell_candidates(low, step, shape, L, m, parent_ptr, parent_items, ratio, parent_shape):
    """For each cell of a grid, the landmarks that can be among the m nearest of a point in it.

    They lie within (m-th distance from the centre) + 2 · (half diagonal) of the centre. A coarser
    grid's lists (ratio cells per side; 0: none) bound the search.
    """
    d, n_cells = L.shape[1], shape[0] * shape[1] * shape[2]
    half = 0.0
    for a in range(d):
        half += step[a] * step[a] / 4
    half = np.sqrt(half)
    ptr = np.zeros(n_cells + 1, np.int64)
    items = np.empty(max(16 * n_cells, L.shape[0]), np.int32)
    distances = np.empty(L.shape[0])
    center = np.empty(d)
    cell = np.zeros(3, np.int64)
    best, who = np.empty(m), np.empty(m, np.int64)
    filled = 0
    for c in range(n_cells):
        cell[0], cell[1], cell[2] = (
            c // (shape[1] * shape[2]),
            (c // shape[2]) % shape[1],
            c % shape[2],
        )
        for a in range(d):
            center[a] = low[a] + (cell[a] + 0.5) * step[a]
        start, stop = 0, L.shape[0]
        if ratio > 0:
            parent = (cell[0] // ratio) * parent_shape[1] + cell[1] // ratio
            parent = parent * parent_shape[2] + cell[2] // ratio
            start, stop = parent_ptr[parent], parent_ptr[parent + 1]
        best[:] = FAR
        who[:] = -1
        for e in range(start, stop):
            j = parent_items[e] if ratio > 0 else e
            distances[e - start] = squared_distance(center, L[j])
            insert(distances[e - start], j, best, who)
        limit = (np.sqrt(best[m - 1]) + 2 * half) ** 2 * (1 + 1e-9)
        if filled + stop - start > items.shape[0]:
            grown = np.empty(2 * (filled + stop - start), np.int32)
            grown[:filled] = items[:filled]
            items = grown
        first = filled
        for e in range(start, stop):
            if distances[e - start] <= limit:
                items[filled] = parent_items[e] if ratio > 0 else e
                distances[filled - first] = distances[e - start]
                filled += 1
        order = np.argsort(distances[: filled - first])  # near ones first: most others then fail
        items[first:filled] = items[first:filled][order]
        ptr[c + 1] = filled
    return ptr, items[:filled].copy()


@jit
def nearest_by_grid(Z, L, low, step, shape, ptr, items, idx, dist):  # idx, dist: OUT (n, m)
    """The m nearest landmarks by the lists of the row's cell; rows outside look at all."""
    d = Z.shape[1]
    for i in range(Z.shape[0]):
        cell = 0
        inside = True
        for a in range(3):
            position = 0
            if a < d:
                place = (Z[i, a] - low[a]) / step[a]
                inside = inside and place >= 0 and place < shape[a]
                position = int(place) if inside else 0
            cell = cell * shape[a] + position
        dist[i, :] = FAR
        idx[i, :] = -1
        if inside:
            for e in range(ptr[cell], ptr[cell + 1]):
                insert(squared_distance(Z[i], L[items[e]]), items[e], dist[i], idx[i])
        else:
            for j in range(L.shape[0]):
                insert(squared_distance(Z[i], L[j]), j, dist[i], idx[i])


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
    values = np.empty(n_candidates)
    items = np.empty(n_candidates, np.int64)
    for i in range(Z.shape[0]):
        for e in range(n_candidates):
            values[e] = FAR
            items[e] = -1
        for a in range(probes.shape[1]):
            c = probes[i, a]
            start = starts[c]
            size = starts[c + 1] - start
            add_squares(Z[i], landmarks[c], residuals[start * n_columns :], size, near)
            for j in range(size):
                if near[j] <= values[n_candidates - 1]:
                    insert(np.float64(near[j]), start + j, values, items)
        for e in range(idx.shape[1]):
            dist[i, e] = FAR
            idx[i, e] = -1
        for e in range(n_candidates):
            if items[e] >= 0:
                row = members[items[e]]
                insert(squared_distance(Z[i], rows[row]), row, dist[i], idx[i])


@jit
def add_to_nearest(Z, labels, weights, sums, counts):  # sums: INOUT (p, q), counts: INOUT (p,)
    """One half of a Lloyd sweep."""
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            sums[labels[i], j] += weights[i] * np.float64(Z[i, j])
        counts[labels[i]] += weights[i]
