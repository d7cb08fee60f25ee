"""Loops of the landmark graph: weights of edges, the graph on landmarks, labels by cones."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit

STRETCH = 0.3  # of a row's mean distance to its landmarks: its bandwidth is no narrower


@jit
def edge_weights(dist, gamma, out):  # dist: squared distances, nearest first; out: OUT (n, m)
    """exp(-γ_i·dist²): γ for most rows, but 1/(2s²) with s ≥ nearest/2 and s ≥ 0.3·mean distance.

    So no weight underflows, and outliers stay connected to several landmarks instead of becoming
    components, and clusters, of their own: those far from all landmarks (the first bound), and
    those who are one themselves (the second).
    """
    m = dist.shape[1]
    for i in range(dist.shape[0]):
        mean = 0.0
        for a in range(m):
            mean += np.sqrt(dist[i, a])
        bound = max(dist[i, 0] / 4.0, (STRETCH * mean / m) ** 2)  # of s²
        reach = min(gamma, 0.5 / max(bound, 1e-300))
        for a in range(dist.shape[1]):
            out[i, a] = np.exp(-reach * dist[i, a])


@jit
def landmark_graph(idx, weights, row_weights, E):  # E: INOUT (p, p)
    """E += Bᵀ D⁻¹ B: the rows folded away, what they say about pairs of landmarks kept."""
    for i in range(idx.shape[0]):
        degree = 0.0
        for a in range(idx.shape[1]):
            degree += weights[i, a]
        scale = row_weights[i] / degree
        for a in range(idx.shape[1]):
            for b in range(idx.shape[1]):
                E[idx[i, a], idx[i, b]] += scale * weights[i, a] * weights[i, b]


@jit
def cone_labels(idx, weights, scores, own, labels):  # labels: OUT (n,)
    """argmax_c of Σ_j w_j scores[j, c], scores[j, c] = ⟨landmark j's vector, centre c⟩.

    Where all landmarks of a row carry one label, so does the row: regions of the largest inner
    product are convex cones.
    """
    k = scores.shape[1]
    total = np.empty(k)
    for i in range(idx.shape[0]):
        label = own[idx[i, 0]]
        same = True
        for a in range(1, idx.shape[1]):
            same = same and own[idx[i, a]] == label
        if not same:
            total[:] = 0.0
            for a in range(idx.shape[1]):
                for c in range(k):
                    total[c] += weights[i, a] * scores[idx[i, a], c]
            label = 0
            for c in range(1, k):
                if total[c] > total[label]:
                    label = c
        labels[i] = label


@jit
def cone_labels_of_distances(idx, dist, gamma, scores, own, labels):  # labels: OUT (n,)
    """`cone_labels` with Gaussian weights, which are computed only where they decide."""
    k, m = scores.shape[1], idx.shape[1]
    total = np.empty(k)
    weights = np.empty((1, m))
    for i in range(idx.shape[0]):
        label = own[idx[i, 0]]
        same = True
        for a in range(1, m):
            same = same and own[idx[i, a]] == label
        if not same:
            edge_weights(dist[i : i + 1], gamma, weights)
            total[:] = 0.0
            for a in range(m):
                for c in range(k):
                    total[c] += weights[0, a] * scores[idx[i, a], c]
            label = 0
            for c in range(1, k):
                if total[c] > total[label]:
                    label = c
        labels[i] = label


@jit
def mean_vectors(idx, weights, vectors, out):  # out: OUT (n, m)
    """Σ_j w_j vectors[j] / Σ_j w_j: the coordinates of rows from those of their landmarks."""
    for i in range(idx.shape[0]):
        out[i, :] = 0.0
        degree = 0.0
        for a in range(idx.shape[1]):
            degree += weights[i, a]
            for c in range(out.shape[1]):
                out[i, c] += weights[i, a] * vectors[idx[i, a], c]
        for c in range(out.shape[1]):
            out[i, c] /= degree
