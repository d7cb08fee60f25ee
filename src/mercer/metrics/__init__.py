"""How good a partition is: it is compared with known classes, label numbers do not matter."""

from __future__ import annotations

from mercer.metrics.boundaries import BoundaryScore, boundaries, boundary_f, boundary_score
from mercer.metrics.information import normalized_mutual_info
from mercer.metrics.matching import accuracy, mean_f, purity
from mercer.metrics.overlaps import (
    probabilistic_rand,
    segmentation_covering,
    variation_of_information,
)
from mercer.metrics.overview import evaluate
from mercer.metrics.pairs import adjusted_rand, pairwise_f, rand_index
from mercer.metrics.ranks import average_ranks

__all__ = [
    "BoundaryScore",
    "accuracy",
    "adjusted_rand",
    "average_ranks",
    "boundaries",
    "boundary_f",
    "boundary_score",
    "evaluate",
    "mean_f",
    "normalized_mutual_info",
    "pairwise_f",
    "probabilistic_rand",
    "purity",
    "rand_index",
    "segmentation_covering",
    "variation_of_information",
]
