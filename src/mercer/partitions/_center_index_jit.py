"""The nearest centre, exactly, where products exclude most."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit


@jit
def nearest_exactly(scores, slack, Z, C, labels, distances):  # labels, distances: OUT (n,)
    """Of the centres whose score is within the row's slack of the best, the nearest.

    scores: (n, m) ‖z - c‖² - ‖z‖², rounded; slack: (n,) more than twice their errors. Z: (n, r) and
    C: (m, r) float64. Of centres at one distance the first.
    """
    for i in range(scores.shape[0]):
        least = scores[i, 0]
        for j in range(1, scores.shape[1]):
            if scores[i, j] < least:
                least = scores[i, j]
        limit = least + slack[i]
        label, best = 0, np.inf
        for j in range(scores.shape[1]):
            if scores[i, j] <= limit:
                distance = 0.0
                for q in range(Z.shape[1]):
                    apart = Z[i, q] - C[j, q]
                    distance += apart * apart
                if distance < best:
                    label, best = j, distance
        labels[i], distances[i] = label, best
