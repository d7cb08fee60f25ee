"""The hot loops of the mutual nearest-neighbour kernel: which similarities survive, row by row.

Each row of K is looked at by itself, so what survives depends on the row's values alone.
"""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit

BLOCK = 32  # entries that are counted together
LANES = 4  # times p: the largest values of so many lanes bound the p-th largest of all closely


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
def mutual_entries(K, thresholds, p, nearest, indptr):
    """The entries of each row that reach their column's threshold and are among the p largest.

    K: (n, s). thresholds: (s,), none below what an entry must reach anyway. indptr: OUT (n + 1,).
    Returns indices and data of the survivors as CSR. Entries of 0 do not survive; with `nearest`,
    a row without survivors keeps its largest entry.
    At least p entries reach the p-th largest of the lanes' largest values, and few more than p do:
    only those are looked at one by one, and blocks without any are left after one count.
    """
    n, s = K.shape
    lanes = np.empty(LANES * p if p < s // LANES else 0, K.dtype)
    above, ids = np.empty(s, K.dtype), np.empty(s + 1, np.int32)
    indices, data = np.empty(4 * n + s, np.int32), np.empty(4 * n + s)
    indptr[0] = 0
    for i in range(n):
        k, at, bound = K[i], indptr[i], K.dtype.type(-np.inf)
        if len(lanes):
            largest_of_lanes(k, lanes)
            bound = select_largest(lanes, len(lanes), p)
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
            bound = select_largest(above, n_above, p)
        if at + s > len(data):
            indices, data = grown(indices, 2 * len(data) + s), grown(data, 2 * len(data) + s)
        for q in range(n_above):
            j = ids[q]
            if k[j] >= bound and k[j] >= thresholds[j] and k[j] != 0:
                indices[at], data[at] = j, k[j]
                at += 1
        if nearest and at == indptr[i]:
            indices[at] = k.argmax()
            data[at] = k[indices[at]]
            at += 1
        indptr[i + 1] = at
    return indices[: indptr[n]].copy(), data[: indptr[n]].copy()


@jit
def edge_sums(K, indptr, indices, labels, coefficients, members, starts, whole, floor, out_indptr):
    """Σ_i a_i K_xi for each group to which row x has an edge: over these edges, or the whole group.

    K: (n, s). indptr, indices: the edges. labels, coefficients: (s,). members: (s,) rows by group,
    from starts (k + 1,) on. Sums below `floor` are raised to it. out_indptr: OUT (n + 1,).
    Returns indices and data of the sums as CSR, groups in the order of their first edge.
    """
    n, k = K.shape[0], len(starts) - 1
    groups, sums = np.empty(4 * n + k, np.int32), np.empty(4 * n + k)
    seen, place = np.full(k, -1), np.empty(k, np.intp)
    out_indptr[0] = at = 0
    for x in range(n):
        if at + k > len(sums):
            groups, sums = grown(groups, 2 * len(sums) + k), grown(sums, 2 * len(sums) + k)
        for edge in range(indptr[x], indptr[x + 1]):
            j = indices[edge]
            c = labels[j]
            if seen[c] != x:
                seen[c], place[c] = x, at
                groups[at], sums[at] = c, 0.0
                at += 1
                if whole:
                    for i in members[starts[c] : starts[c + 1]]:
                        sums[place[c]] += coefficients[i] * K[x, i]
            if not whole:
                sums[place[c]] += coefficients[j] * K[x, j]
        for q in range(out_indptr[x], at):
            sums[q] = max(sums[q], floor)
        out_indptr[x + 1] = at
    return groups[:at].copy(), sums[:at].copy()


@jit
def largest_of_lanes(values, lanes):  # lanes: OUT (m,)
    """The largest of each m-th value, from the first on, from the second on, ...: vector code."""
    m = len(lanes)
    lanes[:] = values[:m]
    for start in range(m, len(values), m):
        some = values[start : start + m]
        for j in range(len(some)):
            lanes[j] = some[j] if some[j] > lanes[j] else lanes[j]


@jit
def reaching(values, bound):
    """How many values reach the bound: vector code, for there is no branch."""
    count = 0
    for j in range(len(values)):
        count += values[j] >= bound
    return count


@jit
def grown(values, size):
    """A longer array with these values at its beginning."""
    longer = np.empty(size, values.dtype)
    longer[: len(values)] = values
    return longer
