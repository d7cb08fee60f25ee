"""Votes of base partitions, and the graph of the clusters that share them."""

from __future__ import annotations

from mercer._run.jit import jit

FAR = 1e300


@jit
def cast_votes(idx, weights, scores, own, offsets, votes):  # votes: OUT (n, b)
    """The label of each row in each of b partitions of the landmarks, as a column of `scores`.

    Partition a uses the columns offsets[a] to offsets[a + 1]; own[a, j] is landmark j's column.
    """
    for i in range(idx.shape[0]):
        for a in range(own.shape[0]):
            label = own[a, idx[i, 0]]
            same = True
            for e in range(1, idx.shape[1]):
                same = same and (weights[i, e] == 0.0 or own[a, idx[i, e]] == label)
            if not same:
                best = -FAR
                for c in range(offsets[a], offsets[a + 1]):
                    total = 0.0
                    for e in range(idx.shape[1]):
                        total += weights[i, e] * scores[idx[i, e], c]
                    if total > best:
                        best = total
                        label = c
            votes[i, a] = label


@jit
def vote_graph(votes, row_weights, E):  # E: INOUT (t, t)
    """E += HᵀH: how much weight each pair of base clusters shares."""
    for i in range(votes.shape[0]):
        for a in range(votes.shape[1]):
            for b in range(votes.shape[1]):
                E[votes[i, a], votes[i, b]] += row_weights[i]


@jit
def vote_vectors(votes, vectors, out):  # out: OUT (n, k)
    """The mean of a row's base clusters' vectors."""
    for i in range(votes.shape[0]):
        out[i, :] = 0.0
        for a in range(votes.shape[1]):
            for c in range(out.shape[1]):
                out[i, c] += vectors[votes[i, a], c]
