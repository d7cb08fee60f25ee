"""Loops over regions: connected components, their boundaries, merging of small ones."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit


@jit
def root_of(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@jit
def join(parent, i, j):
    a, b = root_of(parent, i), root_of(parent, j)
    if a < b:
        parent[b] = a
    else:
        parent[a] = b
    return min(a, b)


@jit
def components(labels, outside, diagonal, parent, out):
    """Connected pixels of one label get one number, in scan order; returns how many there are.

    labels: (h, w); parent: scratch (h·w + 1,); out: OUT (h, w) int32, -1 where labels == outside
    """
    height, width = labels.shape
    n = 0
    for y in range(height):
        for x in range(width):
            here = labels[y, x]
            number = -1
            if here == outside:
                out[y, x] = -1
                continue
            if x > 0 and labels[y, x - 1] == here:
                number = out[y, x - 1]
            if y > 0:
                for step in range(-diagonal, diagonal + 1):
                    if 0 <= x + step < width and labels[y - 1, x + step] == here:
                        other = out[y - 1, x + step]
                        if number < 0:
                            number = other
                        elif number != other:
                            number = join(parent, number, other)
            if number < 0:
                number = n
                parent[n] = n
                n += 1
            out[y, x] = number
    n_roots = 0
    for i in range(n):  # a root has the lowest number of its tree: it comes first
        if parent[i] == i:
            parent[i] = -1 - n_roots
            n_roots += 1
        else:
            parent[i] = parent[parent[i]]
    for y in range(height):
        for x in range(width):
            if out[y, x] >= 0:
                out[y, x] = -1 - parent[out[y, x]]
    return n_roots


@jit
def component_sizes(parts, labels, sizes, label_of):  # the last two: OUT (n_parts,)
    sizes[:] = 0
    for y in range(parts.shape[0]):
        for x in range(parts.shape[1]):
            if parts[y, x] >= 0:
                sizes[parts[y, x]] += 1
                label_of[parts[y, x]] = labels[y, x]


@jit
def borders_of_small(parts, sizes, least, pairs):
    """(small part, neighbour) for each pixel edge of a part below the least size; how many.

    pairs: OUT (capacity, 2); counted only where there is no room.
    """
    height, width = parts.shape
    n = 0
    for y in range(height):
        for x in range(width):
            a = parts[y, x]
            for down in range(2):
                yy, xx = y + down, x + 1 - down
                if yy >= height or xx >= width:
                    continue
                b = parts[yy, xx]
                if a == b or a < 0 or b < 0:
                    continue
                if sizes[a] < least:
                    if n < pairs.shape[0]:
                        pairs[n, 0], pairs[n, 1] = a, b
                    n += 1
                if sizes[b] < least:
                    if n < pairs.shape[0]:
                        pairs[n, 0], pairs[n, 1] = b, a
                    n += 1
    return n


@jit
def merge_small(order, sizes, least, first, neighbors, lengths, parent):
    """Each small part joins the neighbour with which it shares the longest boundary.

    order: small parts, smallest first; first, neighbors, lengths: boundaries in CSR form by part;
    sizes: INOUT; parent: INOUT (n_parts,), a forest whose roots stay.
    """
    n_parts = sizes.shape[0]
    follows = np.full(n_parts, -1, np.int64)  # the parts merged into a root, as a chain
    last = np.arange(n_parts)
    shared = np.zeros(n_parts, np.int64)
    for part in order:
        here = root_of(parent, part)
        if here != part or sizes[here] >= least:
            continue
        best = -1
        member = here
        while member >= 0:
            for p in range(first[member], first[member + 1]):
                other = root_of(parent, neighbors[p])
                if other != here:
                    shared[other] += lengths[p]
                    if best < 0 or is_better(shared, sizes, other, best):
                        best = other
            member = follows[member]
        member = here
        while member >= 0:
            for p in range(first[member], first[member + 1]):
                shared[root_of(parent, neighbors[p])] = 0
            member = follows[member]
        if best >= 0:
            parent[here] = best
            sizes[best] += sizes[here]
            follows[last[best]] = here
            last[best] = last[here]


@jit
def take_roots(parent):  # parent: INOUT, a forest → the root of each
    for i in range(parent.shape[0]):
        parent[i] = root_of(parent, i)


@jit
def is_better(shared, sizes, a, b):
    """Longer boundary; then the larger part, then the one that comes first."""
    if shared[a] != shared[b]:
        return shared[a] > shared[b]
    if sizes[a] != sizes[b]:
        return sizes[a] > sizes[b]
    return a < b


@jit
def relabel(parts, labels_of, outside, out):  # out: OUT (h, w)
    for y in range(parts.shape[0]):
        for x in range(parts.shape[1]):
            out[y, x] = labels_of[parts[y, x]] if parts[y, x] >= 0 else outside
