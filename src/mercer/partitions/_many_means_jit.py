"""The nearest of many centres: two, or a few dozen."""

from __future__ import annotations

import numpy as np

from mercer._run.jit import jit


@jit
def nearest_two(scores, labels, heirs, best, second):  # labels, heirs, best, second: OUT (n,)
    """The columns of the smallest and the next score in each row (the first of equals)."""
    for i in range(scores.shape[0]):
        label, heir = 0, 0
        least, runner_up = np.inf, np.inf
        for j in range(scores.shape[1]):
            score = scores[i, j]
            if score < runner_up:
                if score < least:
                    heir, runner_up = label, least
                    label, least = j, score
                else:
                    heir, runner_up = j, score
        labels[i], heirs[i] = label, heir
        best[i], second[i] = least, runner_up


@jit
def smallest_scores(scores, columns, values):  # columns: OUT (n, m); values: scratch (m,)
    """The columns of the m smallest scores in each row, smallest first (the first of equals)."""
    m = columns.shape[1]
    for i in range(scores.shape[0]):
        for place in range(m):  # where scores overflow, any columns
            values[place], columns[i, place] = np.inf, place
        for j in range(scores.shape[1]):
            score = scores[i, j]
            if score < values[m - 1]:
                place = m - 1
                while place > 0 and values[place - 1] > score:
                    values[place], columns[i, place] = values[place - 1], columns[i, place - 1]
                    place -= 1
                values[place], columns[i, place] = score, j
