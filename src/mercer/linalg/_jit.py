"""Loops of k-means."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit


@jit
def nearest(scores, labels, best):  # labels: OUT (n,) intp, best: OUT (n,) float64
    """The column with the smallest score in each row (the first of equals), and that score."""
    for i in range(scores.shape[0]):
        label = 0
        least = scores[i, 0]
        for j in range(1, scores.shape[1]):
            if scores[i, j] < least:
                least = scores[i, j]
                label = j
        labels[i] = label
        best[i] = least


@jit
def nearest_two(scores, labels, best, second):  # labels, best, second: OUT (n,)
    """`nearest`, and the score of the runner-up (inf where there is none)."""
    for i in range(scores.shape[0]):
        label = 0
        least = np.float64(scores[i, 0])
        runner_up = np.inf
        for j in range(1, scores.shape[1]):
            score = np.float64(scores[i, j])
            if score < least:
                runner_up = least
                least = score
                label = j
            elif score < runner_up:
                runner_up = score
        labels[i] = label
        best[i] = least
        second[i] = runner_up


@jit
def move_rows(F, old, new, weights, sums, counts):  # sums: INOUT (k, r), counts: INOUT (k,)
    """Take each row that changed its label from one cluster's sum to another's (old -1: none)."""
    for i in range(F.shape[0]):
        if old[i] != new[i]:
            w, there, here = weights[i], new[i], old[i]
            for q in range(F.shape[1]):
                sums[there, q] += w * np.float64(F[i, q])
            counts[there] += w
            if here >= 0:
                for q in range(F.shape[1]):
                    sums[here, q] -= w * np.float64(F[i, q])
                counts[here] -= w


@jit
def row_norms(F, out):  # out: OUT (n,) float64
    """‖f‖² of each row."""
    for i in range(F.shape[0]):
        total = 0.0
        for q in range(F.shape[1]):
            f = np.float64(F[i, q])
            total += f * f
        out[i] = total


@jit
def row_products(Y, PT, out):  # out: OUT (n, k)
    """Y @ PT, each row summed in the same order."""
    for i in range(Y.shape[0]):
        for c in range(out.shape[1]):
            out[i, c] = 0.0
        for j in range(Y.shape[1]):
            for c in range(out.shape[1]):
                out[i, c] += Y[i, j] * PT[j, c]
