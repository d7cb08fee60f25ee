"""Means of all rows that came: k-means in batches, as rows of the buffer see them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from mercer import RBF, Cosine, Polynomial, StreamingKernelKMeans
from mercer.cluster import stream_means as module
from mercer.cluster.stream_means import stream_means
from mercer.data.format import RowFormat
from mercer.datasets import many_clusters
from mercer.factors.neighbors import neighbor_kernel

DOUBLE = RowFormat(np.dtype(np.float64))
seeds = pytest.mark.parametrize("seed", range(3))
kernels = pytest.mark.parametrize(
    "kernel", [RBF(0.05), Cosine(), Polynomial(2, gamma=0.1, coef0=1.0)], ids=str
)


def cloud(seed, n=150, d=5, k=6):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.normal(size=(k, d))[y] * 2 + rng.normal(size=(n, d)), y


def begun(S, clusters, k, kernel=None, weights=None, seed=0):
    weights = np.ones(len(S)) if weights is None else weights
    kernel = RBF(0.05) if kernel is None else kernel
    graph = neighbor_kernel(kernel, DOUBLE, S, weights, n_neighbors=30, is_normalized=True)
    return graph, stream_means(graph, clusters, k, np.random.default_rng(seed))


def squared_distances(kernel, X, rows, coefficients):
    """‖x - c‖² of rows at length 1, where c = Σ a φ(y)/‖φ(y)‖ over `rows`: the whole kernel."""
    unit = kernel.matrix(X, rows) / np.sqrt(kernel.diagonal(X)[:, None] * kernel.diagonal(rows))
    among = kernel.matrix(rows, rows) / np.sqrt(
        kernel.diagonal(rows)[:, None] * kernel.diagonal(rows)
    )
    lengths = np.einsum("ki,ij,kj->k", coefficients, among, coefficients)
    return 1.0 - 2.0 * unit @ coefficients.T + lengths


@seeds
@kernels
def test_means_are_those_of_all_rows_in_feature_space(seed, kernel):
    """With every row a pivot: the distances of the whole kernel, batch after batch, weighted."""
    k, (X, _) = 6, cloud(seed)
    rng = np.random.default_rng(seed)
    weights, clusters = rng.integers(1, 4, len(X)).astype(float), rng.integers(0, k, len(X))
    means = begun(X, clusters, k, kernel, weights)[1]
    members = np.zeros((k, len(X)))  # of each row in each sum, by the weight it came with
    members[clusters, np.arange(len(X))] = weights
    for _ in range(3):
        coefficients = members / members.sum(axis=1, keepdims=True)
        expected = squared_distances(kernel, X, X, coefficients)
        Z = means.view(np.float64)(X)
        found = means.scores(Z) + means.lengths_of(Z)[:, None]
        assert found == pytest.approx(expected, abs=1e-5)
        some = rng.choice(len(X), 60, replace=False)
        labels = means.nearest(Z[some])[0]
        assert np.array_equal(labels, found[some].argmin(axis=1))
        w = rng.integers(1, 4, 60).astype(float)
        members[labels, some] += w
        means = means.after(X[some], w)
        assert means.counts == pytest.approx(members.sum(axis=1))


@seeds
def test_threads_and_weights_do_not_matter(seed):
    X, _ = cloud(seed, 6000)
    means = begun(X[:120], np.arange(120) % 6, 6)[1]
    more = np.random.default_rng(seed).integers(1, 3, 5880)
    one = means.after(X[120:], more.astype(float))
    two = means.after(X[120:], more.astype(float), threads=2)
    assert np.array_equal(one.centers, two.centers)
    repeated = means.after(np.repeat(X[120:], more, axis=0), np.ones(more.sum()))
    assert repeated.centers == pytest.approx(one.centers, abs=1e-9)
    assert repeated.counts == pytest.approx(one.counts)


def test_what_was_counts_less_when_it_is_to_be_forgotten():
    X, _ = cloud(0)
    means = begun(X[:100], np.arange(100) % 6, 6)[1]
    kept, faded = (means.after(X[100:], np.ones(50), decay=decay) for decay in (1.0, 0.5))
    assert faded.counts == pytest.approx(kept.counts - 0.5 * means.counts)
    moved = [np.linalg.norm(m.centers - means.centers) for m in (kept, faded)]
    assert moved[1] > moved[0]


@seeds
def test_a_cluster_that_stays_keeps_its_mean(seed):
    X, y = cloud(seed, 400)
    graph, means = begun(X[:100], y[:100], 6)
    means = means.after(X[100:], np.ones(300))
    after = y[:100].copy()
    after[y[:100] == 0] = 5  # 0 has left, 5 has more than it had, and 6 is new
    after[np.flatnonzero(y[:100] == 1)[:1]] = 0
    after[np.flatnonzero(y[:100] == 2)[:1]] = 6
    found = means.reclustered(graph, y[:100], after, 7, np.random.default_rng(0))
    fresh = means._of_buffer(graph, after, 7)
    is_old = np.array([np.array_equal(found.centers[c], means.centers[c]) for c in range(6)])
    is_new = np.array([np.array_equal(found.centers[c], fresh.centers[c]) for c in range(7)])
    assert is_old[1:5].all()
    assert is_new[[0, 6]].all()
    assert np.array_equal(found.counts[is_new], fresh.counts[is_new])


@seeds
@kernels
def test_other_pivots_see_the_same_means(seed, kernel, monkeypatch):
    """Centres are carried over: exactly, if the new pivots span what the old ones did."""
    monkeypatch.setattr(module, "FADED", 2.0)  # so that others are always chosen
    X, y = cloud(seed)
    graph, means = begun(X, y, 6, kernel)
    means = means.after(X[:70], np.ones(70))
    turned = replace(graph, rows=X[::-1].copy())
    found = means.reclustered(turned, y[::-1], y[::-1], 6, np.random.default_rng(1))
    assert not np.array_equal(found.factor.pivots, means.factor.pivots)
    for some in (X, X + 0.01):
        old, new = (m.scores(m.view(np.float64)(some)) for m in (means, found))
        assert new == pytest.approx(old, abs=1e-4)


def test_pivots_follow_a_buffer_that_has_moved():
    X, y = cloud(0, 300)
    means = begun(X, y, 6)[1]
    far, _ = begun(X + 30.0, y, 6)
    found = means.reclustered(far, y, y, 6, np.random.default_rng(0))
    assert found.seen > 0.9
    assert np.abs(found.factor.pivots - X.mean(axis=0)).mean() > 20


def test_a_narrow_kernel_has_no_pivots():
    X, y = cloud(0, 2000)
    assert begun(X, y, 6, RBF(1e3))[1] is None
    model = StreamingKernelKMeans(
        100, gamma=30.0, initial_size=1000, max_size=1000, random_state=0
    ).partial_fit(X)
    assert model.stream_.means is None
    assert model.stream_.by_whole
    assert "whole clusters" in model.report_.approximation


@pytest.mark.parametrize("sizes", ["equal", "zipf"])
@pytest.mark.parametrize("shape", ["convex", "curved"])
def test_means_of_all_rows_are_better_than_of_a_few(sizes, shape):
    X, y = many_clusters(50_000, 100, sizes=sizes, shape=shape, separation=0.8, random_state=0)
    X = X.astype(np.float32)
    buffer = {"initial_size": 500, "max_size": 500, "batch_size": 2000, "n_init": 1}
    model = StreamingKernelKMeans(100, random_state=0, **buffer).partial_fit(X)
    assert "means of all rows" in model.report_.approximation
    found = normalized_mutual_info_score(y, model.predict(X))
    model.stream_ = replace(model.stream_, means=None)
    assert found > normalized_mutual_info_score(y, model.predict(X))


def test_labels_of_a_fit_are_by_its_means():
    X, _ = many_clusters(3000, 60, random_state=0)
    model = StreamingKernelKMeans(60, initial_size=300, max_size=300, random_state=0).fit(X)
    assert model.stream_.means is not None
    assert np.array_equal(model.labels_, model.predict(X))
    assert np.array_equal(np.argsort(model.transform(X), axis=1)[:, 0], model.labels_)
    nearest = model.transform(X).min(axis=1)
    assert model.inertia_ == pytest.approx(float(nearest @ nearest))
