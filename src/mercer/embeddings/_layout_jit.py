"""The loop of the layout of neighbour graphs in the plane."""

from __future__ import annotations

from mercer._run.jit import jit


@jit
def move_points(xy, near, others, rate):  # xy: INOUT (n, 2)
    """Move each point towards its neighbours and away from others: one step of gradient descent.

    The probability of an edge at distance r is 1 / (1 + r²). An edge moves both of its ends by the
    gradient of its log-likelihood, and then its first end by that of a few pairs without an edge.
    """
    n, m = near.shape
    n_others = others.shape[1] // m
    most = 4.0 * rate
    for i in range(n):
        for s in range(m):
            j = near[i, s]
            dx, dy = xy[i, 0] - xy[j, 0], xy[i, 1] - xy[j, 1]
            pull = 2.0 * rate / (1.0 + dx * dx + dy * dy)
            dx, dy = pull * dx, pull * dy
            dx, dy = min(max(dx, -most), most), min(max(dy, -most), most)
            xy[i, 0] -= dx
            xy[i, 1] -= dy
            xy[j, 0] += dx
            xy[j, 1] += dy
            for t in range(s * n_others, (s + 1) * n_others):
                j = others[i, t]
                dx, dy = xy[i, 0] - xy[j, 0], xy[i, 1] - xy[j, 1]
                r2 = dx * dx + dy * dy
                push = 2.0 * rate / ((0.001 + r2) * (1.0 + r2))
                xy[i, 0] += min(max(push * dx, -most), most)
                xy[i, 1] += min(max(push * dy, -most), most)
