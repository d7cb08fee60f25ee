"""What a search over numbers of clusters and bandwidths found."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray

ALIKE = 0.01  # of scores that differ by less, the widest kernel is chosen
# On the smaller sets of benchmarks/suite no wrong number of clusters is as far ahead; spirals are.
CLEAR_SCORE, CLEAR_GAP = 0.97, 0.1
CUT = "cut"  # the criterion 1 - normalised cut, whose best score is taken as it is


@frozen
class Candidate:
    """A number of clusters, a bandwidth (None: the kernel has none), and their score."""

    n_clusters: int
    gamma: float | None
    score: float


@frozen
class Selection(Record):
    """Scores of all pairs of a number of clusters and a bandwidth; larger is better.

    Attributes
    ----------
    criterion : str
        Name of the criterion.
    balance : float
        Weight of balanced cluster sizes in the criterion.
    n_clusters : tuple of int
        Numbers of clusters that were compared.
    gammas : tuple of (float or None)
        Bandwidths that were compared, ascending; None for a kernel without one.
    scores : array of shape (n_gammas, n_numbers)
        Score of each pair; NaN if it is infeasible.
    n_train, n_validation : int
        Number of training rows and of held-out rows.
    """

    criterion: str = stored("text")
    balance: float = stored("float")
    n_clusters: tuple[int, ...] = stored("tuple of int, >= 1")
    gammas: tuple[float | None, ...] = stored("tuple of float or None")  # ascending
    scores: FloatArray = stored("(g, s) float64")  # of each gamma and number of clusters
    n_train: int = stored("int")
    n_validation: int = stored("int")

    def check(self) -> None:
        is_scored = self.scores.shape == (len(self.gammas), len(self.n_clusters))
        is_feasible = is_scored and not np.isnan(self.scores).all()
        expect(is_feasible, "Selection.scores does not match its gammas and numbers of clusters")

    @property
    def is_feasible(self) -> bool:
        return not np.isnan(self.scores).all()

    def demand_feasible(self) -> Selection:
        """This, or an error where no pair is feasible."""
        if not self.is_feasible:
            raise ValueError(
                f"no pair of n_clusters={list(self.n_clusters)} and gamma={list(self.gammas)} is "
                "feasible: the kernel matrix has too few directions, or its approximation gives "
                "rows no positive degree; ask for fewer clusters, raise rank, or try other gammas"
            )
        return self

    @property
    def best(self) -> Candidate:
        """The best number of clusters, with the widest kernel that does as well.

        As well means within 0.01, or exactly where cuts are compared.
        """
        column = int(np.nanargmax(self.scores)) % len(self.n_clusters)
        margin = 0.0 if self.criterion == CUT else ALIKE
        alike = self.scores[:, column] >= np.nanmax(self.scores) - margin
        return self._candidate(int(np.flatnonzero(alike)[0]), column)

    @property
    def is_clear(self) -> bool:
        """Whether the best number of clusters is far better than all others."""
        best, *others = self.ranking()
        is_far = not others or others[0].score < best.score - CLEAR_GAP
        return bool(best.score >= CLEAR_SCORE and is_far)

    @property
    def is_at_edge(self) -> bool:
        """Whether the chosen bandwidth is the first or the last of those that were compared."""
        return len(self.gammas) > 2 and self.best.gamma in (self.gammas[0], self.gammas[-1])

    def ranking(self) -> list[Candidate]:
        """For each number of clusters its best bandwidth, best first: the best and runners-up."""
        feasible = [c for c in range(len(self.n_clusters)) if not np.isnan(self.scores[:, c]).all()]
        tops = [self._candidate(int(np.nanargmax(self.scores[:, c])), c) for c in feasible]
        return sorted(tops, key=lambda candidate: -candidate.score)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the table, the best pair and the runners-up."""
        best, *others = [self.best, *self.ranking()[1:]]
        return {
            "criterion": self.criterion,
            "balance": self.balance,
            "n_train": self.n_train,
            "n_validation": self.n_validation,
            "n_clusters": list(self.n_clusters),
            "gammas": list(self.gammas),
            "scores": [[None if np.isnan(s) else float(s) for s in row] for row in self.scores],
            "best": asdict(best),
            "runners_up": [asdict(other) for other in others],
        }

    def __str__(self) -> str:
        head = "gamma     " + "".join(f"{f'K={k}':>8}" for k in self.n_clusters)
        lines = [
            f"{'-' if gamma is None else format(gamma, '.4g'):<10}"
            + "".join("       -" if np.isnan(s) else f"{s:8.3f}" for s in row)
            for gamma, row in zip(self.gammas, self.scores, strict=True)
        ]
        return "\n".join([head, *lines])

    def _candidate(self, row: int, column: int) -> Candidate:
        score = float(self.scores[row, column])
        return Candidate(self.n_clusters[column], self.gammas[row], score)
