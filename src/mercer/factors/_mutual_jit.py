"""The hot loops of the mutual nearest-neighbour kernel: which similarities survive, row by row.

Each row of K is looked at by itself, so what survives depends on the row's values alone.
"""

from __future__ import annotations

import numpy as np

from mercer._run.jit import inlined, jit

BLOCK = 32  # entries that are counted together


@jit
def select_largest(values, n, p):  # values: INOUT (≥ n,), reordered
    """The p-th largest of the first n values (Hoare's quickselect, pivots by median of three)."""
    low, high, target = 0, n - 1, p - 1
    while low < high:
        middle = (low + high) // 2
        a, b, c = values[low], values[middle], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            break
    return values[target]


@jit
def mutual_entries(
    K, thresholds, p, nearest, first, indptr, indices, data, lanes, above, ids
):  # indptr, indices, data: INOUT, rows from `first` on
    """The entries of each row that reach their column's threshold and are among the p largest.

    K: (n, s). thresholds: (s,), none below what an entry must reach anyway. Returns the row for
    whose entries there may be no room. Entries of 0 do not survive; with `nearest`, a row without
    survivors keeps its largest entry.
    At least p entries reach the p-th largest of the lanes' largest values, and few more than p do:
    only those are looked at one by one, and blocks without any are left after one count.
    lanes (may be empty), above: scratch of K's type; ids: scratch (s + 1,).
    """
    n, s = K.shape
    for i in range(first, n):
        k, at, bound = K[i], indptr[i], K.dtype.type(-np.inf)
        if at + s > data.shape[0]:
            return i
        if lanes.shape[0] > 0:
            largest_of_lanes(k, lanes)
            bound = select_largest(lanes, lanes.shape[0], p)
        n_above = 0
        for start in range(0, s, BLOCK):
            stop = min(start + BLOCK, s)
            if reaching(k[start:stop], bound):
                for j in range(start, stop):  # no branch: which do is hard to foresee
                    ids[n_above] = j
                    n_above += k[j] >= bound
        if n_above > p:
            for q in range(n_above):
                above[q] = k[ids[q]]
            bound = select_largest(above, np.int64(n_above), p)
        for q in range(n_above):
            j = ids[q]
            if k[j] >= bound and k[j] >= thresholds[j] and k[j] != 0:
                indices[at] = j
                data[at] = k[j]
                at += 1
        if nearest and at == indptr[i]:
            most = 0
            for j in range(1, s):
                if k[j] > k[most]:
                    most = j
            indices[at] = most
            data[at] = k[most]
            at += 1
        indptr[i + 1] = at
    return n


@jit
def edge_sums(
    K,
    indptr,
    indices,
    labels,
    coefficients,
    members,
    starts,
    whole,
    floor,
    first,
    out_indptr,
    groups,
    sums,
    seen,
    place,
):  # out_indptr, groups, sums: INOUT, rows from `first` on
    """Σ_i a_i K_xi for each group to which row x has an edge: over these edges, or the whole group.

    K: (n, s). indptr, indices: the edges. labels, coefficients: (s,). members: (s,) rows by group,
    from starts (k + 1,) on. Sums below `floor` are raised to it. out_indptr, groups and sums are a
    CSR matrix, groups in the order of their first edge. seen (-1 at first), place: scratch (k,).
    Returns the row for whose sums there may be no room.
    """
    k, at = starts.shape[0] - 1, out_indptr[first]
    for x in range(first, K.shape[0]):
        if at + k > sums.shape[0]:
            return x
        for edge in range(indptr[x], indptr[x + 1]):
            j = indices[edge]
            c = labels[j]
            if seen[c] != x:
                seen[c] = x
                place[c] = at
                groups[at] = c
                sums[at] = 0.0
                at += 1
                if whole:
                    for q in range(starts[c], starts[c + 1]):
                        i = members[q]
                        sums[place[c]] += coefficients[i] * K[x, i]
            if not whole:
                sums[place[c]] += coefficients[j] * K[x, j]
        for q in range(out_indptr[x], at):
            sums[q] = max(sums[q], floor)
        out_indptr[x + 1] = at
    return K.shape[0]


@inlined
def largest_of_lanes(values, lanes):  # lanes: OUT (m,)
    """The largest of each m-th value, from the first on, from the second on, ...: vector code."""
    m = lanes.shape[0]
    for j in range(m):
        lanes[j] = values[j]
    for start in range(m, values.shape[0], m):
        some = values[start : start + m]  # counted from 0, which vector code needs
        for j in range(some.shape[0]):
            lanes[j] = some[j] if some[j] > lanes[j] else lanes[j]


@inlined
def reaching(values, bound):
    """How many values reach the bound: vector code, for there is no branch."""
    count = 0
    for j in range(values.shape[0]):
        count += values[j] >= bound
    return count
