"""The nearest of the clusters that a row has edges to."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit


@jit
def nearest_mean(indptr, indices, data, scale, lengths, labels, scores):
    """Of the clusters with an edge to row i, the one of the smallest ‖c‖² - 2⟨x, c⟩.

    indptr, indices, data: (n, k) ⟨x, c⟩ / scale. scale: (n,). lengths: (k,) ‖c‖².
    labels, scores: OUT (n,); -1 and inf without any edge.
    """
    for i in range(labels.shape[0]):
        best, least = -1, np.inf
        for at in range(indptr[i], indptr[i + 1]):
            c = indices[at]
            score = lengths[c] - 2.0 * data[at] * scale[i]
            if score < least or (score == least and c < best):
                best, least = c, score
        labels[i], scores[i] = best, least
