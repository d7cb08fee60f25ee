"""The nearest of the clusters that a row is tied to."""

from __future__ import annotations

import numpy as np

from mercer._numba import jit


@jit
def nearest_mean(indptr, indices, data, scale, coefficients, clusters, lengths, labels, scores):
    """Of the clusters with a tie to row i, the one of the smallest ‖c‖² - 2⟨x, c⟩.

    indptr, indices, data: (n, s) ties. scale: (n,) of a row's ties. coefficients: (s,) of buffer
    rows in the mean of their cluster. clusters: (s,). lengths: (k,) ‖c‖².
    labels, scores: OUT (n,).
    """
    inner = np.zeros(lengths.shape[0])
    touched = np.empty(lengths.shape[0], np.intp)
    is_touched = np.zeros(lengths.shape[0], np.bool_)
    for i in range(labels.shape[0]):
        n_touched = 0
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            c = clusters[j]
            if not is_touched[c]:
                is_touched[c] = True
                touched[n_touched] = c
                n_touched += 1
            inner[c] += data[at] * coefficients[j]
        best, least = -1, np.inf
        for q in range(n_touched):
            c = touched[q]
            score = lengths[c] - 2.0 * inner[c] * scale[i]
            if score < least or (score == least and c < best):
                best, least = c, score
            inner[c], is_touched[c] = 0.0, False
        labels[i], scores[i] = best, least


@jit
def inner_products(indptr, indices, data, scale, coefficients, clusters, out):  # out: OUT (n, k)
    """⟨x, c⟩ for each row and cluster."""
    for i in range(out.shape[0]):
        out[i, :] = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            out[i, clusters[j]] += data[at] * coefficients[j] * scale[i]
