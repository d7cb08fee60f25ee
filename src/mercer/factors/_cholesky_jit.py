"""Loops of the factorisations."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import inlined, jit


@jit
def subtract_squares(F, residual):  # residual: INOUT (n,) float64
    """residual[i] -= Σ_j F[i, j]², clamped at 0."""
    for i in range(F.shape[0]):
        total = 0.0
        for j in range(F.shape[1]):
            f = np.float64(F[i, j])
            total += f * f
        residual[i] = max(residual[i] - total, 0.0)


@inlined
def eliminate(S, L, left, q, j):  # L: INOUT (size, m), row q; left: INOUT (m,)
    """Row q of the small factor, with candidate j as its pivot, and what is left after it."""
    for i in range(L.shape[1]):
        L[q, i] = S[i, j]
    for p in range(q):
        c = L[p, j]
        for i in range(L.shape[1]):
            L[q, i] -= L[p, i] * c
    root = np.sqrt(left[j])
    for i in range(L.shape[1]):
        L[q, i] /= root
        left[i] -= L[q, i] * L[q, i]
    left[j] = -np.inf


@jit
def take_largest(S, left, least, floor, L, order):  # left, L: INOUT; order: OUT (size,)
    """Candidates of the largest residual, one after the other; how many were taken."""
    for q in range(order.shape[0]):
        j = 0
        for i in range(1, left.shape[0]):
            if left[i] > left[j]:
                j = i
        if left[j] <= least and (q > 0 or left[j] <= floor):
            return q
        eliminate(S, L, left, q, j)
        order[q] = j
    return order.shape[0]


@jit
def take_by_chance(S, proposed, chances, shrunk, floor, left, L, order):  # left, L: INOUT
    """Candidates in turn, each with the chance it still deserves; how many were taken."""
    q = 0
    for j in range(order.shape[0]):
        wanted = max(chances[j] * proposed[j], shrunk * proposed[j], floor)
        if left[j] <= 0 or (q > 0 and left[j] <= wanted):
            continue
        eliminate(S, L, left, q, j)
        order[q] = j
        q += 1
    return q


@jit
def take_best_of(S, rivals, wanted, left, L, order):  # left, L: INOUT; order: OUT (size,)
    """The largest residual of all, then of each few candidates in turn; how many were taken."""
    q = 0
    for start in range(0, left.shape[0], rivals):
        j, stop = start, left.shape[0] if q == 0 else min(start + rivals, left.shape[0])
        for i in range(start, stop):
            if left[i] > left[j]:
                j = i
        if left[j] <= 0 or (q > 0 and left[j] <= wanted):
            continue
        eliminate(S, L, left, q, j)
        order[q] = j
        q += 1
    return q
