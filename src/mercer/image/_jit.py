"""Loops over pixels: nearest representatives, windows, colours."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit


@jit
def squared_distance(F, i, C, j):
    total = 0.0
    for a in range(F.shape[1]):
        step = np.float64(F[i, a]) - C[j, a]
        total += step * step
    return total


@jit
def nearest_centers(F, inside, width, centers, order, apart, owner):
    """The nearest centre of each pixel, exactly, by a walk that starts at a neighbour's centre.

    With x at distance s from a centre c, no centre at 2s or more from c is nearer to x: so the
    centres around c are tried outwards up to there, and the walk goes on from the first that is
    nearer. Of equally near ones the lower number wins.

    centers: (m, d); order: (m, m) of each centre, all by distance; apart: (m, m) a quarter of
    those distances squared; owner: OUT (n,) int32, -1 outside
    """
    x = np.empty((1, F.shape[1]))
    for i in range(F.shape[0]):
        owner[i] = -1
        if not inside[i]:
            continue
        for a in range(F.shape[1]):
            x[0, a] = F[i, a]
        best = 0
        if i % width > 0 and owner[i - 1] >= 0:
            best = owner[i - 1]
        elif i >= width and owner[i - width] >= 0:
            best = owner[i - width]
        least = squared_distance(x, 0, centers, best)
        place = 1
        while place < centers.shape[0] and apart[best, place] <= least:
            j = order[best, place]
            place += 1
            s = squared_distance(x, 0, centers, j)
            if s < least or (s == least and j < best):
                best, least, place = j, s, 1
        owner[i] = best


@jit
def add_pixels(F, owner, sums, squares, counts):  # the last three: INOUT (m, d), (m, d), (m,)
    """Sums of the pixels of each representative, of their squares, and how many there are."""
    for i in range(F.shape[0]):
        j = owner[i]
        if j >= 0:
            counts[j] += 1.0
            for a in range(F.shape[1]):
                x = np.float64(F[i, a])
                sums[j, a] += x
                squares[j, a] += x * x


@jit
def window_counts(codes, inside, half, counts):  # counts: OUT (h, w, n_codes)
    """How often each code occurs in the window around each pixel; edge pixels are repeated.

    Pixels outside a mask are not counted.
    """
    for y in range(codes.shape[0]):
        count_columns(codes, inside, y, half, counts[y])
        widen(counts[y], half)


@jit
def count_columns(codes, inside, y, half, row):  # row: OUT (w, n_codes)
    height, width = codes.shape
    row[:] = 0
    for step in range(-half, half + 1):
        line = min(max(y + step, 0), height - 1)
        for x in range(width):
            if inside[line, x]:
                row[x, codes[line, x]] += 1


@jit
def widen(row, half):  # row: INOUT (w, n_codes), column sums → window sums
    width, n_codes = row.shape
    columns = row.copy()
    for c in range(n_codes):
        total = row.dtype.type(0)
        for step in range(-half, half + 1):
            total += columns[min(max(step, 0), width - 1), c]
        row[0, c] = total
        for x in range(1, width):
            total += columns[min(x + half, width - 1), c]
            total -= columns[max(x - 1 - half, 0), c]
            row[x, c] = total


@jit
def nearest_color(P, i, palette):
    best, least = 0, np.inf
    for j in range(palette.shape[0]):
        s = squared_distance(P, i, palette, j)
        if s < least:
            best, least = j, s
    return best


@jit
def nearest_colors(P, palette, codes):  # codes: OUT (n,) uint8
    for i in range(P.shape[0]):
        codes[i] = nearest_color(P, i, palette)


@jit
def dither(P, width, palette, codes):  # P: INOUT (n, c) float64; codes: OUT (n,) uint8
    """Floyd-Steinberg: the rounding error goes to the neighbours that follow."""
    n, channels = P.shape
    for i in range(n):
        codes[i] = nearest_color(P, i, palette)
        x = i % width
        for a in range(channels):
            lost = (P[i, a] - palette[codes[i], a]) / 16.0
            if x + 1 < width:
                P[i + 1, a] += 7.0 * lost
            if i + width < n:
                P[i + width, a] += 5.0 * lost
                if x > 0:
                    P[i + width - 1, a] += 3.0 * lost
                if x + 1 < width:
                    P[i + width + 1, a] += lost
