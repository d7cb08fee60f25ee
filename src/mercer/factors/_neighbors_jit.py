"""The hot loops of the mutual nearest-neighbour kernel: which similarities survive, row by row.

Each row of K is looked at by itself, so what survives depends on the row's values alone.
"""

from __future__ import annotations

import numpy as np

from mercer._numba import jit


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
def mutual_thresholds(K, thresholds, p, floor, least, counts):
    """The value that each row's entries must reach beside the columns' own thresholds.

    K: (n, s). least: OUT (n,), the p-th largest of the row, or `floor` where more do not matter.
    counts: OUT (n,), how many entries survive.
    Only entries above the smallest survivor of the columns' test can decide, so the selection
    runs on those few.
    """
    s = K.shape[1]
    above = np.empty(s, K.dtype)
    for i in range(K.shape[0]):
        k = K[i]
        smallest, n_survivors = np.inf, 0
        for j in range(s):
            if k[j] >= thresholds[j] and k[j] >= floor and k[j] != 0:
                n_survivors += 1
                smallest = min(smallest, k[j])
        least[i] = floor
        counts[i] = n_survivors
        if n_survivors == 0 or p >= s:
            continue
        n_above = 0
        for j in range(s):
            if k[j] >= smallest:
                above[n_above] = k[j]
                n_above += 1
        if n_above > p:
            least[i] = max(floor, select_largest(above, n_above, p))
            n_survivors = 0
            for j in range(s):
                if k[j] >= thresholds[j] and k[j] >= least[i] and k[j] != 0:
                    n_survivors += 1
            counts[i] = n_survivors


@jit
def fill_entries(K, thresholds, least, indptr, indices, data):  # indices, data: OUT (nnz,)
    """The survivors as CSR; a row without any keeps the entry of its most similar column."""
    for i in range(K.shape[0]):
        k, at = K[i], indptr[i]
        if indptr[i + 1] - at == 1 and least[i] == np.inf:
            best = 0
            for j in range(1, K.shape[1]):
                if k[j] > k[best]:
                    best = j
            indices[at], data[at] = best, k[best]
            continue
        for j in range(K.shape[1]):
            if k[j] >= thresholds[j] and k[j] >= least[i] and k[j] != 0:
                indices[at], data[at] = j, k[j]
                at += 1
