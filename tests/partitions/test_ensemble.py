"""What many partitions agree on: base clusters count by how far the others leave them whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from mercer.partitions.ensemble import LEAST_WEIGHTED, THETA, _certainty, _join, _shared_weight


def votes_of(partitions: list[np.ndarray]) -> np.ndarray:
    starts = np.cumsum([0, *(labels.max() + 1 for labels in partitions[:-1])])
    return np.column_stack(
        [labels + start for labels, start in zip(partitions, starts, strict=True)]
    )


def slow_certainty(votes: np.ndarray, weights: np.ndarray) -> list[float]:
    """As published: the entropy of each base cluster's division by each partition."""
    found = []
    for cluster in range(votes.max() + 1):
        rows, entropy = (votes == cluster).any(axis=1), 0.0
        for column in votes[rows].T:
            shares = np.bincount(column, weights[rows]) / weights[rows].sum()
            entropy -= sum(p * np.log2(p) for p in shares if p > 0)
        found.append(float(np.exp(-entropy / (THETA * votes.shape[1]))))
    return found


@given(st.integers(0, 10_000))
def test_certainty_is_the_published_one(seed):
    rng = np.random.default_rng(seed)
    partitions = [
        np.unique(rng.integers(0, k, 60), return_inverse=True)[1] for k in rng.integers(1, 6, 4)
    ]
    weights, votes = rng.uniform(0.5, 2.0, 60), votes_of(partitions)
    certainty = _certainty(_shared_weight(votes, weights), 4)
    assert certainty == pytest.approx(slow_certainty(votes, weights))
    assert ((certainty > 0) & (certainty <= 1)).all()


def test_a_cluster_that_no_partition_divides_is_certain():
    halves, quarters = np.repeat([0, 1], 20), np.repeat([0, 1, 2, 2], 10)
    certainty = _certainty(_shared_weight(votes_of([halves, quarters]), np.ones(40)), 2)
    assert certainty[1:] == pytest.approx(1.0)  # the second half and all parts of the other
    assert certainty[0] == pytest.approx(np.exp(-1 / (2 * THETA)))


@pytest.mark.parametrize("k", [2, LEAST_WEIGHTED, 6])
def test_the_consensus_outvotes_partitions_at_random(k):
    rng = np.random.default_rng(k)
    truth = np.repeat(np.arange(k), 50)
    right = [rng.permutation(k)[truth] for _ in range(4)]
    wrong = [rng.integers(0, k, len(truth)) for _ in range(4)]
    votes = votes_of(right + wrong)
    joined = _join(votes, np.ones(len(truth)), k, n_init=10, rng=rng)
    placed = joined.vectors[votes].sum(axis=1)
    assert adjusted_rand_score(truth, (placed @ joined.directions.T).argmax(axis=1)) == 1.0
