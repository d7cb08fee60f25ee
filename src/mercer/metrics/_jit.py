"""Maximum matchings of sparse bipartite graphs, by Hopcroft and Karp."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit


@jit
def match(first, neighbors, left, right):
    """Pair as many left nodes as can be with a neighbour each; returns how many.

    first, neighbors: the graph in CSR form, nearest neighbours first; left, right: OUT, the
    partner of each node or -1
    """
    n = left.shape[0]
    left[:] = -1
    right[:] = -1
    n_pairs = 0
    for i in range(n):  # most pixels find a free partner at once
        for p in range(first[i], first[i + 1]):
            if right[neighbors[p]] < 0:
                left[i], right[neighbors[p]] = neighbors[p], i
                n_pairs += 1
                break
    level, queue = np.empty(n, np.int64), np.empty(n, np.int64)
    place, path = np.empty(n, np.int64), np.empty(n, np.int64)
    while layer(first, neighbors, left, right, level, queue):
        place[:] = first[:-1]
        for i in range(n):
            if left[i] < 0 and augment(i, first, neighbors, left, right, level, place, path):
                n_pairs += 1
    return n_pairs


@jit
def layer(first, neighbors, left, right, level, queue):
    """Distances from free left nodes along alternating paths; is a free right node reached?"""
    head, tail = 0, 0
    for i in range(left.shape[0]):
        level[i] = -1
        if left[i] < 0:
            level[i] = 0
            queue[tail] = i
            tail += 1
    reached = False
    while head < tail:
        i = queue[head]
        head += 1
        for p in range(first[i], first[i + 1]):
            other = right[neighbors[p]]
            if other < 0:
                reached = True
            elif level[other] < 0:
                level[other] = level[i] + 1
                queue[tail] = other
                tail += 1
    return reached


@jit
def augment(start, first, neighbors, left, right, level, place, path):
    """Flip an alternating path from a free left node to a free right one, if layers have any."""
    depth = 0
    path[0] = start
    while depth >= 0:
        i = path[depth]
        if place[i] == first[i + 1]:
            depth -= 1
            if depth >= 0:
                place[path[depth]] += 1
            continue
        other = right[neighbors[place[i]]]
        if other < 0:
            for step in range(depth + 1):
                node = path[step]
                left[node], right[neighbors[place[node]]] = neighbors[place[node]], node
            return True
        if level[other] == level[i] + 1:
            depth += 1
            path[depth] = other
        else:
            place[i] += 1
    return False
