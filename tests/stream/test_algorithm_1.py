"""Algorithm 1 of [chitta2015] as published, beside a dense one that decomposes every matrix."""

from __future__ import annotations

import numpy as np
import pytest

from marking import seeds
from mercer import RBF, StreamingKernelKMeans
from mercer.datasets import many_clusters
from mercer.stream.state import row_draws

pytestmark = pytest.mark.numeric

KERNEL, C, P, FIRST, BATCH = RBF(0.02), 5, 20, 80, 100


def leading(K):
    return np.linalg.eigh(K)[1][:, -C:]


class DenseAlgorithm:
    """Steps 3 to 13: the buffer, its sparse kernel (eq. 4) and the rows that join and leave it."""

    def __init__(self, first, max_size, key, oversample):
        self.S, self.max_size, self.key, self.oversample = first, max_size, key, oversample
        K = KERNEL.matrix(first, first)
        self.least = np.partition(K, -P, axis=1)[:, -P]
        self.K = np.where((self.least <= K) & (self.least[:, None] <= K), K, 0.0)
        self.n_seen, self.additions, self.chances = len(first), 0, []

    def edges(self, X):
        K = KERNEL.matrix(X, self.S)
        least = np.partition(K, -P, axis=1)[:, -P]
        return np.where((self.least <= K) & (least[:, None] <= K), K, 0.0), least

    def leverage(self, edges):
        """Eq. 3: what the leading eigenvectors of the bordered matrix (5) have in each new row."""
        values, vectors = np.linalg.eigh(self.K)
        low_rank = (vectors[:, -C:] * values[-C:]) @ vectors[:, -C:].T
        for phi in edges:
            bordered = np.block([[low_rank, phi[:, None]], [phi[None], np.ones((1, 1))]])
            yield (leading(bordered)[-1] ** 2).sum()

    def absorb(self, X):
        phi, least = self.edges(X)
        chances = self.oversample * np.array(list(self.leverage(phi))) / C
        self.chances.extend(chances)
        chosen = np.flatnonzero(row_draws(self.key, self.n_seen, len(X)) < chances)
        self.n_seen += len(X)
        if not len(chosen):
            return
        new, phi, least = X[chosen], phi[chosen], least[chosen]
        among = KERNEL.matrix(new, new)
        among = np.where((least <= among) & (least[:, None] <= among), among, 0.0)
        np.fill_diagonal(among, 1.0)
        self.S, self.least = np.concatenate([self.S, new]), np.concatenate([self.least, least])
        self.K = np.block([[self.K, phi.T], [phi, among]])
        self.additions += len(chosen)
        n_gone = len(self.S) - self.max_size
        if n_gone > 0:
            leverage = (leading(self.K) ** 2).sum(axis=1)
            keep = np.sort(np.argsort(leverage, kind="stable")[n_gone:])
            self.S, self.least, self.K = self.S[keep], self.least[keep], self.K[np.ix_(keep, keep)]


def as_set(rows):
    return {tuple(row) for row in np.round(rows, 6)}


@seeds(3, quick=1)
@pytest.mark.parametrize("oversample", [1, 4])
@pytest.mark.parametrize("room", [0, 100])
def test_the_published_algorithm_keeps_the_rows_of_the_dense_one(oversample, room, seed):
    X, _ = many_clusters(580, C, n_features=6, separation=3.0, random_state=seed)
    model = StreamingKernelKMeans(
        C, kernel=KERNEL, normalize=False, centers="projected", oversample=oversample,
        n_neighbors=P, initial_size=FIRST, max_size=FIRST + room, batch_size=BATCH,
        recluster_every=10**6, random_state=seed,
    ).partial_fit(X)  # fmt: skip
    dense = DenseAlgorithm(X[:FIRST], FIRST + room, model.key_, oversample)
    for start in range(FIRST, len(X), BATCH):
        dense.absorb(X[start : start + BATCH])
    assert dense.additions == model.report_.stream["additions"] > 1
    # ℓ/C says how many join: the expectation over all rows, within three deviations
    expected = np.sum(dense.chances)
    assert abs(dense.additions - expected) < 3 * np.sqrt(expected) + 1
    assert as_set(model.buffer_) == as_set(dense.S)
    values = np.linalg.eigvalsh(dense.K)[::-1][:C]
    assert model.eigenvalues_ == pytest.approx(values, rel=1e-2)


def test_a_number_given_bounds_nothing():
    """By default at most 64 rows of a batch are expected to join a small buffer."""
    X, _ = many_clusters(4000, C, n_features=6, separation=1.0, random_state=0)
    sizes = {"initial_size": 200, "max_size": 3000, "batch_size": 3800, "random_state": 0}
    bounded = StreamingKernelKMeans(C, **sizes).partial_fit(X)
    free = StreamingKernelKMeans(C, oversample=50 * C, **sizes).partial_fit(X)
    assert bounded.report_.stream["additions"] < 110 < free.report_.stream["additions"]
