"""A few rows by their distances: nothing that is made of them changes them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mercer.partitions.examined import NARROW, WIDE, ExaminedRows


def examined(seed, n=240):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[: n // 2] += 6.0
    squared = ((X[:, None] - X) ** 2).sum(axis=2).astype(np.float32)
    return ExaminedRows(squared, np.ones(n))


@pytest.mark.parametrize("seed", range(3))
def test_evidence_does_not_depend_on_what_was_asked_before(seed):
    """Graphs of any number of neighbours, in any order, are those of rows never looked at."""
    rows, n_vectors = examined(seed), 4
    for n_neighbors in (WIDE, NARROW, 5, WIDE, NARROW):
        again = rows.walk(n_neighbors, n_vectors, solver="dense")
        fresh = examined(seed).walk(n_neighbors, n_vectors, solver="dense")
        assert np.array_equal(again.values, fresh.values)
        assert np.array_equal(rows.near, examined(seed).near)


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_those_of_sorting(seed):
    rows = examined(seed)
    order = np.argsort(rows.squared + np.diag(np.full(len(rows), np.inf)), axis=1, kind="stable")
    assert np.array_equal(rows.near, order[:, :WIDE])
    labels = rows.spectral_labels(rows.walk(WIDE, 2), 2)
    assert adjusted_rand_score(np.arange(len(rows)) < len(rows) // 2, labels) == 1.0
    assert rows.n_groups(NARROW, NARROW) >= 2
