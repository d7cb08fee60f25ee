"""Votes of a row's landmarks for their clusters."""

from __future__ import annotations

from mercer._run.jit import jit


@jit
def vote_labels(idx, weights, groups, labels):  # labels: OUT (n,)
    """The group with the largest sum of weights; of equals, that of the nearest landmark.

    Landmarks of group -1 do not vote; a row without any vote is in group 0.
    """
    m = idx.shape[1]
    for i in range(idx.shape[0]):
        best, most = 0, 0.0
        for a in range(m):
            group = groups[idx[i, a]]
            if group < 0:
                continue
            total = 0.0
            for b in range(m):
                if groups[idx[i, b]] == group:
                    total += weights[i, b]
            if total > most:
                best, most = group, total
        labels[i] = best


@jit
def vote_shares(idx, weights, groups, shares):  # shares: INOUT (n, k)
    """The share of each group in a row's weights."""
    for i in range(idx.shape[0]):
        total = 0.0
        for a in range(idx.shape[1]):
            total += weights[i, a]
        for a in range(idx.shape[1]):
            shares[i, groups[idx[i, a]]] += weights[i, a] / total
