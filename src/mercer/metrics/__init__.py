"""How good a partition is: it is compared with known classes, label numbers do not matter."""

from __future__ import annotations

from mercer.metrics.information import normalized_mutual_info
from mercer.metrics.matching import accuracy, mean_f, purity
from mercer.metrics.pairs import adjusted_rand, pairwise_f, rand_index
from mercer.metrics.ranks import average_ranks
from mercer.metrics.summary import evaluate

__all__ = [
    "accuracy",
    "adjusted_rand",
    "average_ranks",
    "evaluate",
    "mean_f",
    "normalized_mutual_info",
    "pairwise_f",
    "purity",
    "rand_index",
]
