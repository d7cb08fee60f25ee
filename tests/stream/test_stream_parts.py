"""The parts of the stream: sparse kernels of mutual neighbours, moving eigenpairs, leverage."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from marking import slow_beyond
from mercer import RBF, Cosine, HistogramIntersection
from mercer.factors.mutual import _mutual, neighbor_kernel, rebuild
from mercer.linalg.eigenpairs import residuals
from mercer.rows.format import RowFormat
from mercer.rows.rows import BlockRows
from mercer.stream.centers import MeanCenters, points
from mercer.stream.eigen_updates import (
    append,
    evict,
    leverage_of_rows,
    rows_to_keep,
)
from mercer.stream.leverage import ridge_leverage, secular_leverage, squared_remainders
from mercer.stream.queue import Queue
from mercer.stream.state import row_draws
from mercer.stream.warm_start import exchange_centers, label_means, refine_labels

pytestmark = pytest.mark.numeric

seeds = pytest.mark.parametrize("seed", range(3))
DOUBLE = RowFormat(np.dtype(np.float64))


def cloud(seed, n=200, d=5, n_clusters=8):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_clusters, d))[rng.integers(0, n_clusters, n)] * 3 + rng.normal(
        size=(n, d)
    )


def graph_of(X, p=12, kernel=None, is_normalized=False, **more):
    weights = np.ones(X.shape[0])
    kernel = RBF(0.1) if kernel is None else kernel
    sizes = {"n_neighbors": p, "is_normalized": is_normalized, **more}
    return neighbor_kernel(kernel, DOUBLE, X, weights, **sizes)


def mutual_by_hand(K, p):
    """The matrix of eq. 4, entry by entry."""
    n = len(K)
    nearest = [set(np.argsort(-K[i], kind="stable")[:p]) for i in range(n)]
    out = np.zeros_like(K)
    for i in range(n):
        for j in range(n):
            if j in nearest[i] and i in nearest[j]:
                out[i, j] = K[i, j]
    return out


@seeds
@pytest.mark.parametrize("p", [2, 7, 40, 200, 500])
def test_the_sparse_kernel_is_that_of_the_paper(seed, p):
    X = cloud(seed)
    graph = graph_of(X, p)
    expected = mutual_by_hand(RBF(0.1).matrix(X, X), p)
    assert graph.matrix.toarray() == pytest.approx(expected, abs=1e-12)
    assert (abs(graph.matrix - graph.matrix.T)).max() == 0.0


@seeds
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_of_new_rows_are_two_comparisons(seed, dtype):
    X = cloud(seed, 260)
    S, new, p = X[:200], X[200:], 15
    edges = graph_of(S, p).edges(dtype)(new.astype(dtype))
    K, own = RBF(0.1).matrix(new, S), np.partition(RBF(0.1).matrix(S, S), -p, axis=1)[:, -p]
    least = np.partition(K, -p, axis=1)[:, -p]
    expected = np.where((own <= K) & (least[:, None] <= K), K, 0.0)
    found = edges.similarities.toarray()
    if dtype is np.float64:
        assert np.array_equal(found != 0, expected != 0)
    assert ((found != 0) != (expected != 0)).mean() < 1e-3
    both = (found != 0) & (expected != 0)
    assert found[both] == pytest.approx(expected[both], rel=1e-4)


def mutual_by_sorting(K, thresholds, p, floor, nearest):
    """The p-th largest of each row by sorting it; both tests on the dense matrix."""
    least = np.sort(K, axis=1)[:, ::-1][:, min(p, K.shape[1]) - 1]
    survives = (thresholds <= K) & (least[:, None] <= K) & (floor <= K) & (K != 0)
    if nearest:
        lonely = np.flatnonzero(~survives.any(axis=1))
        survives[lonely, K[lonely].argmax(axis=1)] = True
    return survives


@seeds
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("s", "p"), [(1, 1), (31, 5), (33, 40), (250, 3), (1000, 20), (1000, 999)])
def test_survivors_are_those_of_the_dense_rule_bit_for_bit(seed, dtype, s, p):
    """With equal values, zeros and negative values among them, and rows that nobody knows."""
    rng = np.random.default_rng(seed)
    K = (np.round(rng.normal(size=(40, s)), rng.integers(1, 4)) * 0.5).astype(dtype)
    K[3], K[4] = -5.0, 0.0
    for hard in (0.0, 2.0):
        thresholds = (rng.normal(size=s) + hard).astype(dtype)
        for floor in (np.finfo(dtype).tiny, np.finfo(np.float32).min):
            for nearest in (False, True):
                found = _mutual(K, thresholds, p, dtype(floor), nearest=nearest)
                expected = mutual_by_sorting(K, thresholds, p, floor, nearest)
                rows, columns = np.nonzero(expected)
                assert np.array_equal(np.repeat(np.arange(40), np.diff(found.indptr)), rows)
                assert np.array_equal(found.indices, columns)
                assert np.array_equal(found.data, K[rows, columns])


@seeds
def test_a_row_of_the_buffer_has_the_ties_it_has_there(seed):
    X = cloud(seed)
    for is_normalized in (False, True):
        graph = graph_of(X, 10, is_normalized=is_normalized)
        edges = graph.edges(np.float64)(X)
        again = edges.similarities.toarray() / np.sqrt(np.outer(graph.degrees, graph.degrees))
        assert again == pytest.approx(graph.matrix.toarray(), abs=1e-12)


def test_a_row_without_mutual_neighbours_keeps_its_nearest():
    X = cloud(0)
    far = X[:1] + 4.0
    graph = graph_of(X, 5)
    assert graph.edges(np.float64)(far).similarities.nnz == 0
    edges = graph.edges(np.float64, nearest=True)(far).similarities
    assert edges.nnz == 1
    assert edges.indices[0] == RBF(0.1).matrix(far, X)[0].argmax()


@pytest.mark.parametrize("is_normalized", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_of_blocks_counts_and_text(is_normalized, threads):
    rng = np.random.default_rng(0)
    text = sp.random_array((150, 60), density=0.1, rng=rng, format="csr")
    numbers = rng.normal(size=(150, 3))
    rows = BlockRows(("text", "numbers"), (text, numbers))
    mixed = 0.5 * Cosine(columns="text") + 0.5 * RBF(0.3, columns="numbers")
    blocks = RowFormat(np.dtype(np.float64), None, (DOUBLE, DOUBLE), rows.names, (60, 3))
    cases = ((mixed, rows, blocks), (HistogramIntersection(), np.abs(numbers), DOUBLE))
    for kernel, X, row_format in cases:
        graph = neighbor_kernel(
            kernel,
            row_format,
            X,
            np.ones(150),
            n_neighbors=20,
            is_normalized=is_normalized,
            threads=threads,
        )
        edges = graph.edges(np.float64)(X)
        again = edges.similarities.toarray() / np.sqrt(np.outer(graph.degrees, graph.degrees))
        assert again == pytest.approx(graph.matrix.toarray(), abs=1e-12)


@seeds
@pytest.mark.parametrize("is_normalized", [False, True])
def test_weight_two_is_the_row_twice_in_the_spectrum(seed, is_normalized):
    """Without a limit on neighbours: the kernel of repeated rows has the same eigenvalues."""
    X = cloud(seed, 40)
    weights = np.random.default_rng(seed).integers(1, 4, 40)
    sizes = {"n_neighbors": 1000, "is_normalized": is_normalized}
    weighted = neighbor_kernel(RBF(0.1), DOUBLE, X, weights * 1.0, **sizes)
    repeated = graph_of(np.repeat(X, weights, axis=0), 1000, is_normalized=is_normalized)
    several = np.linalg.eigvalsh(repeated.matrix.toarray())[-20:]
    assert np.linalg.eigvalsh(weighted.matrix.toarray())[-20:] == pytest.approx(several, abs=1e-9)


def cosines_by_hand(K, is_tied, among, weights, clusters, k):
    """⟨x, c⟩ / ‖c‖ of rows and the means of clusters; 0 for clusters without a tie.

    K, is_tied: of new rows and the buffer's. among: of the buffer's rows with each other.
    """
    cosines = np.zeros((len(K), k))
    for x in range(len(K)):
        for c in np.unique(clusters[is_tied[x]]):
            rows = np.flatnonzero(clusters == c)
            length = weights[rows] @ among[np.ix_(rows, rows)] @ weights[rows]
            cosines[x, c] = weights[rows] @ K[x, rows] / np.sqrt(length)
    return cosines


@seeds
@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("kernel", [RBF(0.1), Cosine()], ids=str)
def test_centres_are_means_of_ties_or_of_whole_clusters(seed, is_whole, kernel):
    X, k = cloud(seed, 140), 8
    S, new = X[:100], X[100:]
    rng = np.random.default_rng(seed)
    clusters, weights = rng.integers(0, k, len(S)), rng.integers(1, 4, len(S)).astype(float)
    sizes = {"n_neighbors": 12, "is_normalized": True}
    graph = neighbor_kernel(kernel, DOUBLE, S, weights, **sizes)
    by = MeanCenters.of(graph, clusters, k, is_whole=is_whole)
    edges = by.view(np.float64, nearest=False)(new)
    is_tied = edges.similarities.toarray() != 0
    K, among = kernel.matrix(new, S), kernel.matrix(S, S)
    if not is_whole:
        scale = np.sqrt(graph.degrees / weights)
        K, among = np.where(is_tied, K, 0.0), graph.matrix.toarray() * scale * scale[:, None]
    expected = cosines_by_hand(K, is_tied, among, weights, clusters, k)
    expected /= np.sqrt(kernel.diagonal(new))[:, None]
    found = -by.scores(edges) / 2
    assert np.maximum(found, 0) == pytest.approx(np.maximum(expected, 0), abs=1e-9)
    labels = by.nearest(edges)[0]
    some = expected.max(axis=1) > 1e-9
    assert some.any()
    assert np.array_equal(labels[some], expected.argmax(axis=1)[some])


@pytest.mark.parametrize("threads", [1, 2])
def test_the_sparse_kernel_is_made_without_the_dense_one(threads):
    X = cloud(0, 5000)
    graph_of(X[:600])  # whatever is compiled or imported
    tracemalloc.start()
    graph_of(X, 20, threads=threads)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(X) ** 2 * 0.4 * threads


@pytest.mark.parametrize("is_normalized", [False, True])
def test_points_of_a_normalised_kernel_are_directions(is_normalized):
    graph = graph_of(cloud(0), is_normalized=is_normalized)
    values, vectors = eigsh(graph.matrix, 8, which="LA")
    F, weights = points(graph, values, vectors)
    lengths, is_seen = np.linalg.norm(F, axis=1), (vectors**2).sum(axis=1) > 1e-6
    assert np.all(lengths < 1 + 1e-12)
    assert (np.abs(lengths[is_seen] - 1).max() < 1e-12) == is_normalized
    assert np.array_equal(weights, graph.weights)


@seeds
def test_appending_all_that_a_matrix_has_is_exact(seed):
    """With full rank and the blocks of K, the bordered matrix has its own eigenpairs."""
    X = cloud(seed, 60)
    K = graph_of(X, 15).matrix.toarray()
    values, vectors = np.linalg.eigh(K[:50, :50])
    grown = append(K[:50, :50], values[::-1], vectors[:, ::-1], K[:50, 50:], K[50:, 50:], 60)
    expected = np.linalg.eigvalsh(K)[::-1]
    n_positive = len(grown[0])
    assert grown[0] == pytest.approx(expected[:n_positive], abs=1e-9)
    assert grown[1].T @ grown[1] == pytest.approx(np.eye(n_positive), abs=1e-10)


@seeds
def test_eviction_is_exact_for_the_low_rank_matrix(seed):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(80, 6)))[0]
    values = np.sort(rng.random(6) + 0.1)[::-1]
    keep = np.ones(80, bool)
    keep[rng.choice(80, 20, replace=False)] = False
    expected = ((vectors * values) @ vectors.T)[np.ix_(keep, keep)]
    kept_values, kept_vectors = evict(sp.csr_array(expected), values, vectors, keep)
    found = (kept_vectors * kept_values) @ kept_vectors.T
    assert found == pytest.approx(expected, abs=1e-6)  # filtered in float32
    assert kept_vectors.T @ kept_vectors == pytest.approx(np.eye(len(kept_values)), abs=1e-10)


def test_evicting_a_row_that_holds_a_direction_alone():
    vectors = np.zeros((5, 2))
    vectors[0, 0], vectors[1:, 1] = 1.0, 0.5
    keep = np.array([False, True, True, True, True])
    K = sp.csr_array(2.0 * np.outer(vectors[keep, 1], vectors[keep, 1]))
    values, kept = evict(K, np.array([3.0, 2.0]), vectors, keep)
    assert values == pytest.approx([2.0])
    assert np.abs(kept[:, 0]) == pytest.approx([0.5] * 4)


@pytest.mark.parametrize("is_normalized", slow_beyond([False, True], quick=[True]))
def test_eigenpairs_follow_five_hundred_additions_and_evictions(is_normalized):
    """Within 1 % of a fresh decomposition of the same buffer, and the same subspace."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(20, 16)) * 3
    X = centers[rng.integers(0, 20, 1500)] + rng.normal(size=(1500, 16))
    graph = graph_of(X[:500], 40, RBF(0.02), is_normalized)
    values, vectors = eigsh(graph.matrix, 20, which="LA")
    values, vectors = values[::-1], vectors[:, ::-1]
    for start in range(500, 1500, 50):
        new = X[start : start + 50]
        edges = graph.edges(np.float64)(new)
        edges, phi, K_bb = graph.join(new, edges)
        values, vectors = append(graph.matrix, values, vectors, phi.T, K_bb, 20)
        graph = graph.with_rows(new, edges, phi, K_bb)
        keep = rows_to_keep(leverage_of_rows(vectors), 50)
        graph = graph.keep(keep)
        values, vectors = evict(graph.matrix, values, vectors, keep)
        assert len(graph) == 500
    fresh, basis = eigsh(graph.matrix, 20, which="LA")
    assert values == pytest.approx(fresh[::-1], rel=0.01)
    cosines = scipy.linalg.svdvals(vectors.T @ basis)
    assert cosines.min() >= 0.999
    assert vectors.T @ vectors == pytest.approx(np.eye(20), abs=1e-10)
    drift = residuals(graph.matrix, values, vectors) / values
    assert drift.max() < 0.05


@seeds
def test_leverage_of_a_candidate_is_that_of_the_bordered_matrix(seed):
    X = cloud(seed, 120)
    graph = graph_of(X[:100], 20)
    values, vectors = (part[..., ::-1] for part in np.linalg.eigh(graph.matrix.toarray()))
    values, vectors = values[:6], vectors[:, :6]
    low_rank = (vectors * values) @ vectors.T
    edges = graph.edges(np.float64)(X[100:])
    phi = edges.similarities
    A = phi @ vectors
    rest = squared_remainders(phi, A)
    found = secular_leverage(A, rest, edges.own, values)
    ridge = 0.7
    ridged = ridge_leverage(A, rest, edges.own, values, ridge)
    for i in range(20):
        column = phi[[i]].toarray().ravel()
        bordered = np.block([[low_rank, column[:, None]], [column, edges.own[i]]])
        basis = np.linalg.eigh(bordered)[1]
        assert found[i] == pytest.approx((basis[-1, -6:] ** 2).sum(), abs=1e-6)
        exact = np.linalg.solve(bordered + ridge * np.eye(101), bordered)[-1, -1]
        if exact > 1:  # the bordered matrix is indefinite: more than all of the row is explained
            exact = 0.0
        assert ridged[i] == pytest.approx(np.clip(exact, 0, 1), abs=1e-8)


def test_leverage_is_blind_to_a_far_row_and_ridge_leverage_is_not():
    values = np.array([5.0, 4.0])
    nothing, one = np.zeros((1, 2)), np.ones(1)
    assert secular_leverage(nothing, np.zeros(1), one, values)[0] == pytest.approx(0.0, abs=1e-6)
    assert ridge_leverage(nothing, np.zeros(1), one, values, 0.1)[0] > 0.9


def test_reclustering_does_not_see_rotations():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(4, 3))[np.repeat(np.arange(4), 25)] * 5 + rng.normal(size=(100, 3)) * 0.1
    labels, weights = np.repeat([3, 1, 0, 2], 25), np.ones(100)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for rotated in (F, F @ turn):
        found = refine_labels(rotated, weights, labels, 4, max_iter=10)
        assert np.array_equal(found, labels)
    assert label_means(F, weights, labels, 4)[3] == pytest.approx(F[:25].mean(axis=0))
    assert len(set(refine_labels(F, weights, np.zeros(100, np.intp), 4, max_iter=10))) == 4


def inertia(F, weights, labels, k):
    return float(weights @ ((F - label_means(F, weights, labels, k)[labels]) ** 2).sum(axis=1))


@seeds
@pytest.mark.parametrize("threads", [1, 2])
def test_centres_leave_a_cluster_that_has_two_for_two_that_share_one(seed, threads):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(20), 30)
    F = 10 * rng.normal(size=(20, 6))[truth] + rng.normal(size=(600, 6))
    weights, labels = rng.uniform(1, 2, 600), truth.copy()
    labels[truth == 3] = 4  # they share a centre,
    labels[(truth == 7) & (rng.random(600) < 0.5)] = 3  # and this one has two
    stuck = refine_labels(F, weights, labels, 20, max_iter=50)
    assert inertia(F, weights, stuck, 20) > 1.3 * inertia(F, weights, truth, 20)
    freed = exchange_centers(F, weights, stuck, 20, rounds=3, max_iter=5, threads=threads)
    assert inertia(F, weights, freed, 20) <= inertia(F, weights, truth, 20)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("k", [1, 3, 12, 60])
def test_exchanging_centres_never_costs_more(seed, k):
    rng = np.random.default_rng(seed)
    F, weights = rng.normal(size=(200, 3)), rng.uniform(1, 2, 200)
    labels = rng.integers(0, k, 200)
    found = exchange_centers(F, weights, labels, k, rounds=4, max_iter=2)
    assert inertia(F, weights, found, k) <= inertia(F, weights, labels, k)
    assert found.min() >= 0
    assert found.max() < k


def test_draws_belong_to_rows():
    whole = row_draws(7, 0, 100)
    for first in (0, 1, 2, 3, 4, 50, 97):
        assert np.array_equal(row_draws(7, first, 3), whole[first : first + 3])
    assert 0.3 < whole.mean() < 0.7
    assert not np.array_equal(row_draws(8, 0, 100), whole)


def test_a_queue_gives_rows_in_the_order_they_came():
    queue, rows = Queue(), np.arange(20.0)[:, None]
    for start, stop in ((0, 3), (3, 4), (4, 15), (15, 20)):
        queue = queue.push(rows[start:stop], None)
    for n in (1, 3, 4, 10, 20):
        assert np.array_equal(queue.first(n)[0], rows[:n])
        left = queue.drop(n)
        assert len(left) == 20 - n
        if n < 20:
            assert np.array_equal(left.first(20 - n)[0], rows[n:])
    assert np.array_equal(queue.merge().pieces[0], rows)


def test_a_remade_kernel_of_unchanged_rows_is_the_same():
    graph = graph_of(cloud(0), is_normalized=True)
    again = rebuild(graph, threads=2)
    assert np.array_equal(again.matrix.toarray(), graph.matrix.toarray())
    assert np.array_equal(again.thresholds, graph.thresholds)
