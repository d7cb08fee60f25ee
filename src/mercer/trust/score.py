"""The probability that a partition is right, estimated from all evidence together.

A logistic model of five measurements, fitted to fits of four estimators with default settings at
the number of clusters of each reference: the 65 sets and 12 tables of benchmarks/suite (three
seeds), 64 others (pairs of Gaussians, samples of pendigits, letter, satimage, shuttle, mnist and
covtype, generated blobs and shapes), and 8 sets without any clusters. The target is the ARI with
the reference, 0 below .2 and 1 from .8 on. Sizes, pieces and clusterings of halves of the rows were
tried and add nothing. `python -m benchmarks.trust --fit` prints these terms. Rates on sets that
took no part in a fit are in benchmarks/results/trust.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mercer._run.frozen import frozen


@frozen
class Term:
    """What one measurement adds to the log-odds: weight · (value - usual)."""

    weight: float
    usual: float  # its mean over the fits; a measurement that is missing counts as usual


INTERCEPT = 1.83
TERMS = {
    "linkage": Term(3.06, 0.68),  # ARI with other methods
    "neighbors": Term(1.84, 0.79),
    "wide neighbors": Term(0.61, 0.76),
    "ward": Term(1.23, 0.60),
    "borders": Term(-0.53, -1.81),  # log of the cut relative to cells around random rows
}
LEAST_CUT = 0.02  # added to the cut before its log
# POOR was set on an earlier seed of these fits, so that about 4.5 % of those with ARI > .9 are
# below it; now 4.1 % are. GOOD is above the score of a fit without evidence; of cross-validated
# scores above it, 1.2 % had an ARI < .5.
POOR, GOOD = 0.67, 0.88


def contributions(values: Mapping[str, float]) -> dict[str, float]:
    """What each measurement adds to the log-odds that the partition is right."""
    return {
        name: term.weight * (float(values[name]) - term.usual)
        for name, term in TERMS.items()
        if name in values
    }


def probability(values: Mapping[str, float]) -> float:
    """The estimated probability that the partition is right."""
    odds = INTERCEPT + sum(contributions(values).values())
    return float(1.0 / (1.0 + np.exp(-odds)))
