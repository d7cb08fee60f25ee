"""The two nearest of many centres."""

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
