"""Loops of block quantisation: which rows share a representative, and what it is."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit

LANES = 8  # representatives that are compared with a row side by side
STRIDE = 32  # coordinates between two looks at whether any of them can still be near
FAR = 1e160  # its square overflows to infinity: an empty lane is within no radius


@jit
def put_lane(x, place, lanes):  # lanes: INOUT (n_groups, d, 8)
    """Make row x the representative number `place`."""
    group, lane = place // LANES, place % LANES
    if lane == 0:
        lanes[group] = FAR
    for j in range(x.shape[0]):
        lanes[group, j, lane] = x[j]


@jit
def lane_distance(x, place, lanes):
    """‖x - representative‖²."""
    group, lane = place // LANES, place % LANES
    total = 0.0
    for j in range(x.shape[0]):
        t = np.float64(x[j]) - lanes[group, j, lane]
        total += t * t
    return total


@jit
def first_within(x, n_found, lanes, radius2, near):  # near: scratch (8,)
    """The first of so many representatives within the radius, or -1."""
    d = x.shape[0]
    for group in range((n_found + LANES - 1) // LANES):
        near[:] = 0.0
        for start in range(0, d, STRIDE):
            for j in range(start, min(start + STRIDE, d)):
                value = np.float64(x[j])
                for lane in range(LANES):
                    t = value - lanes[group, j, lane]
                    near[lane] += t * t
            least = near[0]
            for lane in range(1, LANES):
                least = min(least, near[lane])
            if least > radius2:  # sums only grow: none of these
                break
        for lane in range(LANES):
            if near[lane] <= radius2:
                return group * LANES + lane
    return -1


@jit
def sequential(X, radius2, width, is_used, lanes, ids, labels, growth):
    """Sequential sampling ([zhang2006], section 4.2): the first representative within r, or itself.

    lanes: scratch (n_groups, d, 8); ids: OUT (limit,); labels: OUT (n,), -1 where not used;
    growth: OUT (64,), representatives after 2^k rows. With a width > 0 rows are pixels, and the
    representatives of the left and the upper neighbour are tried first. Returns (representatives,
    rows seen); fewer rows than there are where `ids` is full.
    """
    n, n_found, power = X.shape[0], 0, 0
    near = np.empty(LANES)
    for i in range(n):
        if i == 1 << power:
            growth[power] = n_found
            power += 1
        labels[i] = -1
        if is_used.shape[0] > 0 and not is_used[i]:
            continue
        hit = -1
        if width > 0:
            left = labels[i - 1] if i % width > 0 else -1
            if left >= 0 and lane_distance(X[i], left, lanes) <= radius2:
                hit = left
            upper = labels[i - width] if hit < 0 and i >= width else -1
            if upper >= 0 and lane_distance(X[i], upper, lanes) <= radius2:
                hit = upper
        if hit < 0:
            hit = first_within(X[i], n_found, lanes, radius2, near)
        if hit < 0:
            if n_found == ids.shape[0]:
                return n_found, i
            put_lane(X[i], n_found, lanes)
            ids[n_found] = i
            hit = n_found
            n_found += 1
        labels[i] = hit
    return n_found, n


@jit
def add_block_sums(X, labels, weights, sums, counts):  # sums: INOUT (m, d), counts: INOUT (m,)
    """Σ w x and Σ w of the rows of each block; labels below 0 are of none."""
    for i in range(X.shape[0]):
        block = labels[i]
        if block >= 0:
            w = weights[i] if weights.shape[0] > 0 else 1.0
            counts[block] += w
            for j in range(X.shape[1]):
                sums[block, j] += w * np.float64(X[i, j])


@jit
def add_block_squares(X, labels, weights, means, squares):  # squares: INOUT (m, d)
    """Σ w (x - mean)², column by column, of the rows of each block."""
    for i in range(X.shape[0]):
        block = labels[i]
        if block >= 0:
            w = weights[i] if weights.shape[0] > 0 else 1.0
            for j in range(X.shape[1]):
                t = np.float64(X[i, j]) - means[block, j]
                squares[block, j] += w * t * t
