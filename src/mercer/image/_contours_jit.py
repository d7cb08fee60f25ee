"""Loops of the region tree: basins, histograms, contrast along borders, merging.

One assignment a line: numba makes a tuple of two, and compiles it.
"""

from __future__ import annotations

import numpy as np

from mercer._run.jit import inlined, jit


@jit
def reduce_blocks(values, inside, step, out, counts):
    """Means of step × step pixels; those outside the mask are ignored.

    values: (h, w, c); out: OUT (ceil(h/step), ceil(w/step), c); counts: OUT, pixels inside
    """
    height, width, channels = values.shape
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            counts[y, x] = 0
            for c in range(channels):
                out[y, x, c] = 0.0
    for y in range(height):
        for x in range(width):
            if inside[y, x]:
                counts[y // step, x // step] += 1
                for c in range(channels):
                    out[y // step, x // step, c] += np.float32(values[y, x, c])
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            for c in range(channels):
                out[y, x, c] /= np.float32(max(counts[y, x], 1))


@jit
def enlarge(owner, inside, step, first_line, out):
    """Each pixel takes the region with the largest bilinear weight among its four cells.

    owner: (rows, columns); inside: (h, w) of these lines; out: OUT (h, w), -1 outside
    """
    rows, columns = owner.shape
    for y in range(out.shape[0]):
        v = min(max((first_line + y + 0.5) / step - 0.5, 0.0), rows - 1.0)
        top = int(v)
        low = min(top + 1, rows - 1)
        down = v - top
        for x in range(out.shape[1]):
            if not inside[y, x]:
                out[y, x] = -1
                continue
            u = min(max((x + 0.5) / step - 0.5, 0.0), columns - 1.0)
            left = int(u)
            right = min(left + 1, columns - 1)
            across = u - left
            a, b = owner[top, left], owner[top, right]
            c, d = owner[low, left], owner[low, right]
            if a == b and a == c and a == d and a >= 0:
                out[y, x] = a
                continue
            best, most = owner[(first_line + y) // step, x // step], 0.0
            for i in range(4):
                here = a if i == 0 else b if i == 1 else c if i == 2 else d
                if here < 0:
                    continue
                weight = 0.0
                if a == here:
                    weight += (1.0 - down) * (1.0 - across)
                if b == here:
                    weight += (1.0 - down) * across
                if c == here:
                    weight += down * (1.0 - across)
                if d == here:
                    weight += down * across
                if weight > most:
                    best, most = here, weight
            out[y, x] = best


@jit
def find_basins(strength, inside, flat, target, path):
    """Each pixel flows to its lowest neighbour; pixels that meet make a basin. Their number.

    Of equally low pixels the first in scan order counts as lower, so plateaus have one sink.

    strength: (h, w); flat: OUT (h·w,) int32, -1 outside; target, path: scratch (h·w,) int32
    """
    height, width = strength.shape
    for y in range(height):
        for x in range(width):
            here = y * width + x
            best = here
            least = strength[y, x]
            flat[here] = -1
            if not inside[y, x]:
                target[here] = -1
                continue
            if y > 0 and inside[y - 1, x] and strength[y - 1, x] <= least:
                best = here - width
                least = strength[y - 1, x]
            if x > 0 and inside[y, x - 1]:
                near = strength[y, x - 1]
                if near < least or (near == least and here - 1 < best):
                    best = here - 1
                    least = near
            if x + 1 < width and inside[y, x + 1] and strength[y, x + 1] < least:
                best = here + 1
                least = strength[y, x + 1]
            if y + 1 < height and inside[y + 1, x] and strength[y + 1, x] < least:
                best = here + width
            target[here] = best
    return number_basins(target, flat, path)


@inlined
def is_lower(a, i, b, j):
    return a < b or (a == b and i < j)


@inlined
def number_basins(target, flat, path):  # flat: INOUT, -1 → the basin
    n = 0
    for i in range(target.shape[0]):
        if flat[i] >= 0 or target[i] < 0:
            continue
        n_path = 0
        j = i
        while flat[j] < 0 and target[j] != j:
            path[n_path] = j
            n_path += 1
            j = target[j]
        if flat[j] < 0:
            flat[j] = n
            n += 1
        for p in range(n_path):
            flat[path[p]] = flat[j]
    return n


@jit
def texture_codes(across, down, steps, out):
    """Strength (weak, or one of three) and direction (one of four) of the gradient: 13 codes.

    steps: (3,) the least strengths; out: OUT (h, w) uint8
    """
    for y in range(across.shape[0]):
        for x in range(across.shape[1]):
            a = across[y, x]
            b = down[y, x]
            square = a * a + b * b
            level = 0
            for i in range(3):
                if square >= steps[i] * steps[i]:
                    level = i + 1
            if level == 0:
                out[y, x] = 0
                continue
            direction = 1 if a * b > 0 else 3
            if abs(b) < 0.41421356 * abs(a):  # tan 22.5°
                direction = 0
            elif abs(a) < 0.41421356 * abs(b):
                direction = 2
            out[y, x] = 4 * level - 3 + direction


@jit
def add_histograms(colors, codes, owner, low, width, first, H, sizes):
    """Count each pixel in the histograms of its owner, colours shared by the two nearest bins.

    owner: (h, w), -1 outside; low, width: (3,) first bin and bins per unit of each channel;
    first: (5,) where the bins of L, a, b and texture begin; H: INOUT (n, bins); sizes: INOUT (n,)
    """
    for y in range(owner.shape[0]):
        for x in range(owner.shape[1]):
            r = owner[y, x]
            if r < 0:
                continue
            sizes[r] += 1.0
            for c in range(3):
                last = first[c + 1] - first[c] - 1
                v = min(max((colors[c, y, x] - low[c]) * width[c], 0.0), last - 1e-3)
                i = int(v)
                H[r, first[c] + i] += 1.0 - (v - i)
                H[r, first[c] + i + 1] += v - i
            H[r, first[3] + codes[y, x]] += 1.0


@jit
def blur_lines(H, weights, out):
    """Weighted means of each line and its neighbours; lines at the edge are repeated.

    H: (lines, width); weights: (2 half + 1,); out: OUT (lines, width)
    """
    half = weights.shape[0] // 2
    for y in range(H.shape[0]):
        for x in range(H.shape[1]):
            out[y, x] = 0.0
        for t in range(-half, half + 1):
            line = min(max(y + t, 0), H.shape[0] - 1)
            weight = weights[t + half]
            for x in range(H.shape[1]):
                out[y, x] += weight * H[line, x]


@jit
def add_contrast(lower, upper, edge, normals, width, H, step, reach, first, column, sums):
    """χ² between the histograms on the two sides of a border, `reach` pixels away from it.

    lower, upper, edge: (n,) pairs of pixels and the border they belong to; normals: (edges, 2) unit
    vectors, or zeros where a border has no direction; H: (rows, columns, bins) smoothed, one per
    step × step pixels; sums: INOUT (edges, …), one column per histogram from `column` on
    """
    rows, columns, _ = H.shape
    for i in range(lower.shape[0]):
        e = edge[i]
        ya = lower[i] // width
        xa = lower[i] - ya * width
        yb = upper[i] // width
        xb = upper[i] - yb * width
        ny = normals[e, 0]
        nx = normals[e, 1]
        if ny == 0.0 and nx == 0.0:
            ny = np.float64(yb - ya)
            nx = np.float64(xb - xa)
        y = 0.5 * (ya + yb) + 0.5
        x = 0.5 * (xa + xb) + 0.5
        y0 = min(max(int((y - reach * ny) / step), 0), rows - 1)
        y1 = min(max(int((y + reach * ny) / step), 0), rows - 1)
        x0 = min(max(int((x - reach * nx) / step), 0), columns - 1)
        x1 = min(max(int((x + reach * nx) / step), 0), columns - 1)
        for g in range(first.shape[0] - 1):
            total = np.float32(0.0)
            for b in range(first[g], first[g + 1]):
                p = H[y0, x0, b]
                q = H[y1, x1, b]
                total += (p - q) * (p - q) / (p + q + np.float32(1e-12))
            sums[e, column + g] += 0.5 * total


@inlined
def dissimilarity(e, a, b, sums, lengths, H, sizes, first, weights, speck, least):
    """How much two neighbouring regions differ.

    Σ weight · √(mean along the border) + Σ weight · √χ² of their histograms, lower by `speck[0]`
    per factor e by which the smaller one is below `speck[1]` pixels. Regions below `least` pixels
    come before all others.
    """
    n_cues = sums.shape[1]
    total = 0.0
    for j in range(n_cues):
        total += weights[j] * np.sqrt(sums[e, j] / lengths[e])
    for_a = 1.0 / sizes[a]
    for_b = 1.0 / sizes[b]
    for g in range(first.shape[0] - 1):
        square = 0.0
        for t in range(first[g], first[g + 1]):
            p = H[a, t] * for_a
            q = H[b, t] * for_b
            square += (p - q) * (p - q) / (p + q + 1e-12)
        total += weights[n_cues + g] * np.sqrt(0.5 * square)
    smaller = min(sizes[a], sizes[b])
    if smaller < speck[1]:
        total += speck[0] * np.log(smaller / speck[1])
    return total - 1e3 if smaller < least else total


@inlined
def push(keys, ids, n, key, item):  # a heap of n, smallest key first, then smallest number
    i = n
    while i > 0:
        above = (i - 1) >> 1
        if not is_lower(key, item, keys[above], ids[above]):
            break
        keys[i] = keys[above]
        ids[i] = ids[above]
        i = above
    keys[i] = key
    ids[i] = item


@inlined
def drop_first(keys, ids, n):  # a heap of n becomes one of n - 1
    n -= 1
    key = keys[n]
    item = ids[n]
    i = 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and is_lower(keys[child + 1], ids[child + 1], keys[child], ids[child]):
            child += 1
        if not is_lower(keys[child], ids[child], key, item):
            break
        keys[i] = keys[child]
        ids[i] = ids[child]
        i = child
    keys[i] = key
    ids[i] = item


@inlined
def find_edge(a, b, ends, is_open, first_half, next_half, n_halves):
    """The open border between two regions, in the shorter of their chains; -1 if there is none."""
    mine = a
    other = b
    if n_halves[b] < n_halves[a]:
        mine = b
        other = a
    half = first_half[mine]
    before = -1
    while half >= 0:
        e = half >> 1
        following = next_half[half]
        if not is_open[e]:  # leaves the chain
            n_halves[mine] -= 1
            if before < 0:
                first_half[mine] = following
            else:
                next_half[before] = following
        else:
            if ends[e, 0] == other or ends[e, 1] == other:
                return e
            before = half
        half = following
    return -1


@inlined
def merge_edges(a, b, ends, is_open, first_half, next_half, n_halves, sums, lengths, changed):
    """Region a takes over the borders of b; borders with the same third region become one.

    first_half, next_half, n_halves: the borders of each region as a chain, 2e and 2e + 1 the
    halves of e, and its length; changed: OUT, the borders that changed. Returns how many.
    """
    n_changed = 0
    half = first_half[b]
    while half >= 0:
        e = half >> 1
        following = next_half[half]
        if is_open[e]:
            side = 0 if ends[e, 0] == b else 1
            known = find_edge(a, ends[e, 1 - side], ends, is_open, first_half, next_half, n_halves)
            if known >= 0:
                is_open[e] = False
                lengths[known] += lengths[e]
                for j in range(sums.shape[1]):
                    sums[known, j] += sums[e, j]
                changed[n_changed] = known
            else:
                ends[e, side] = a
                next_half[half] = first_half[a]
                first_half[a] = half
                n_halves[a] += 1
                changed[n_changed] = e
            n_changed += 1
        half = following
    return n_changed


@inlined
def open_edges(a, is_open, first_half, next_half, found):
    """All borders of a region into `found`; how many."""
    n = 0
    half = first_half[a]
    while half >= 0:
        if is_open[half >> 1]:
            found[n] = half >> 1
            n += 1
        half = next_half[half]
    return n


@jit
def merge_regions(
    ends,
    sums,
    lengths,
    H,
    sizes,
    first,
    weights,
    speck,
    least,
    growth,
    pairs,
    heights,
    chains,
    heap,
):
    """Merge the two most similar neighbours again and again; the number of merges.

    ends: INOUT (edges, 2); sums, lengths: INOUT contrast along the borders, and their lengths;
    H, sizes: INOUT histograms and pixels of regions; growth: the share by which a region grows
    before all its borders are compared again (changed ones always are); pairs: OUT (n - 1, 2)
    which region took which; heights: OUT (n - 1,) their dissimilarity, never less than before.
    chains: scratch (first_half, next_half, n_halves, is_open, changed, compared), heap: scratch
    (keys, ids, current), as `merge_room` makes them
    """
    first_half, next_half, n_halves, is_open, changed, compared = chains
    keys, ids, current = heap
    m = ends.shape[0]
    held = 0
    n_merged = 0
    top = -np.inf
    for e in range(m):
        for side in range(2):
            next_half[2 * e + side] = first_half[ends[e, side]]
            first_half[ends[e, side]] = 2 * e + side
            n_halves[ends[e, side]] += 1
        changed[e] = e
    n_changed = m
    while True:
        for i in range(n_changed):
            e = changed[i]
            value = dissimilarity(
                e, ends[e, 0], ends[e, 1], sums, lengths, H, sizes, first, weights, speck, least
            )
            if value == current[e]:
                continue
            current[e] = value
            start = e
            stop = e + 1
            if held == keys.shape[0]:  # outdated entries make room
                held = 0
                start = 0
                stop = m
            for entry in range(start, stop):
                if is_open[entry]:
                    push(keys, ids, held, current[entry], entry)
                    held += 1
        key = 0.0
        e = 0
        found = False
        while held > 0 and not found:
            key = keys[0]
            e = ids[0]
            drop_first(keys, ids, held)
            held -= 1
            found = is_open[e] and key == current[e]
        if not found:
            return n_merged
        a = ends[e, 0]
        b = ends[e, 1]
        if sizes[a] < sizes[b] or (sizes[a] == sizes[b] and b < a):
            a = b
            b = ends[e, 0]
        top = max(top, key)
        heights[n_merged] = top
        pairs[n_merged, 0] = a
        pairs[n_merged, 1] = b
        n_merged += 1
        is_open[e] = False
        sizes[a] += sizes[b]
        for t in range(H.shape[1]):
            H[a, t] += H[b, t]
        n_changed = merge_edges(
            a, b, ends, is_open, first_half, next_half, n_halves, sums, lengths, changed
        )
        if sizes[a] > (1.0 + growth) * compared[a] or compared[a] < least:
            compared[a] = sizes[a]
            n_changed = open_edges(a, is_open, first_half, next_half, changed)
