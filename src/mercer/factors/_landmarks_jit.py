"""Loops of the landmark graph: weights of edges, the graph on landmarks, labels by cones."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import inlined, jit

STRETCH = 0.3  # of a row's mean distance to its landmarks: its bandwidth is no narrower


@inlined
def weigh(dist, gamma, i, out, o):  # out: OUT, row o
    """The weights of the edges of one row."""
    m = dist.shape[1]
    mean = 0.0
    for a in range(m):
        mean += np.sqrt(dist[i, a])
    bound = max(dist[i, 0] / 4.0, (STRETCH * mean / m) ** 2)  # of s²
    reach = min(gamma, 0.5 / max(bound, 1e-300))
    for a in range(m):
        out[o, a] = np.exp(-reach * dist[i, a])


@jit
def edge_weights(dist, gamma, out):  # dist: squared distances, nearest first; out: OUT (n, m)
    """exp(-γ_i·dist²): γ for most rows, but 1/(2s²) with s ≥ nearest/2 and s ≥ 0.3·mean distance.

    So no weight underflows, and outliers stay connected to several landmarks instead of becoming
    components, and clusters, of their own: those far from all landmarks (the first bound), and
    those who are one themselves (the second).
    """
    for i in range(dist.shape[0]):
        weigh(dist, gamma, i, out, i)


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


@inlined
def best_cone(idx, i, weights, w, scores, total):  # total: scratch (k,)
    """argmax_c of Σ_j w_j scores[j, c] for row i, whose weights are row w."""
    for c in range(total.shape[0]):
        total[c] = 0.0
    for a in range(idx.shape[1]):
        for c in range(total.shape[0]):
            total[c] += weights[w, a] * scores[idx[i, a], c]
    label = 0
    for c in range(1, total.shape[0]):
        if total[c] > total[label]:
            label = c
    return label


@jit
def cone_labels(idx, weights, scores, own, total, labels):  # labels: OUT (n,)
    """argmax_c of Σ_j w_j scores[j, c], scores[j, c] = ⟨landmark j's vector, centre c⟩.

    Where all landmarks of a row carry one label, so does the row: regions of the largest inner
    product are convex cones. total: scratch (k,)
    """
    for i in range(idx.shape[0]):
        label = own[idx[i, 0]]
        same = True
        for a in range(1, idx.shape[1]):
            same = same and own[idx[i, a]] == label
        labels[i] = label
        if not same:
            labels[i] = best_cone(idx, i, weights, i, scores, total)


@jit
def cone_labels_of_distances(idx, dist, gamma, scores, own, total, weights, labels):
    """`cone_labels` with Gaussian weights, which are computed only where they decide.

    weights: scratch (1, m); labels: OUT (n,)
    """
    for i in range(idx.shape[0]):
        label = own[idx[i, 0]]
        same = True
        for a in range(1, idx.shape[1]):
            same = same and own[idx[i, a]] == label
        labels[i] = label
        if not same:
            weigh(dist, gamma, i, weights, 0)
            labels[i] = best_cone(idx, i, weights, 0, scores, total)


@jit
def mean_vectors(idx, weights, vectors, out):  # out: OUT (n, m)
    """Σ_j w_j vectors[j] / Σ_j w_j: the coordinates of rows from those of their landmarks."""
    for i in range(idx.shape[0]):
        for c in range(out.shape[1]):
            out[i, c] = 0.0
        degree = 0.0
        for a in range(idx.shape[1]):
            degree += weights[i, a]
            for c in range(out.shape[1]):
                out[i, c] += weights[i, a] * vectors[idx[i, a], c]
        for c in range(out.shape[1]):
            out[i, c] /= degree


@jit
def share_of_others(idx, weights, own, labels, out):  # out: OUT (n,)
    """The share of a row's weight on landmarks of other labels than its own."""
    for i in range(idx.shape[0]):
        total = 0.0
        others = 0.0
        for a in range(idx.shape[1]):
            total += weights[i, a]
            if own[idx[i, a]] != labels[i]:
                others += weights[i, a]
        out[i] = others / total
