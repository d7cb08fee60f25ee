"""Sparse kernel spectral clustering: against the original algorithm, by laws, and by choice."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs

import mercer
import reference
from mercer import (
    RBF,
    Chi2,
    IncompleteCholesky,
    KernelKMeans,
    KernelSpectralClustering,
    MercerWarning,
    SpectralClustering,
)
from mercer.datasets import blobs, rings, spirals
from mercer.embeddings.scores import (
    score_map,
    score_map_of_two,
    training_scores,
)
from mercer.embeddings.weighted_kpca import trimmed_weights, weighted_kpca
from mercer.factors._cholesky_jit import take_best_of
from mercer.factors.base import as_sample
from mercer.factors.landmarks import Landmarks
from mercer.metrics import adjusted_rand
from mercer.partitions.codebooks import (
    Codebook,
    angle_codebook,
    direction_codebook,
    frequent_words,
    sign_codebook,
)
from mercer.partitions.criteria import balance_of, criterion, line_fit
from mercer.partitions.evidence import normalized_cut
from mercer.selection import search

RANK, GAMMA = 40, 2.0
seeds = pytest.mark.parametrize("seed", range(5))
encodings = pytest.mark.parametrize("encoding", ["bas", "ams", "blf"])


def rng(seed=0):
    return np.random.default_rng(seed)


def crescents(seed, n=300):
    """Three shapes that touch nothing, with eigenvalues that differ."""
    X, y = rings(n, radii=(1, 2, 3.5), noise=0.05, random_state=seed)
    return X, y


def fitted(seed, m=4, by_qr=None):
    """A greedy factor of rows in their own order, and weighted kernel PCA on it."""
    X, _ = crescents(seed)
    sample = as_sample(RBF(GAMMA), X)
    approximation = IncompleteCholesky(RANK, pivots="greedy", block=1)
    factor = approximation.fit(RBF(GAMMA), sample, rng=rng())
    found = weighted_kpca(factor.training_rows, sample.weights, m, rng=rng(), by_qr=by_qr)
    return X, sample, factor, found


def same_up_to_sign(A, B, tol):
    signs = np.sign((A * B).sum(axis=0))
    return np.abs(A * signs - B).max() <= tol * np.abs(B).max()


# Against the original algorithm


@pytest.mark.numeric
@seeds
@pytest.mark.parametrize("by_qr", [True, False])
def test_the_symmetric_problem_gives_what_the_original_gives(seed, by_qr):
    X, _, factor, found = fitted(seed, by_qr=by_qr)
    K = reference.kernel_values(reference.rbf(GAMMA), X, X)
    G, pivots = reference.textbook_cholesky(K, RANK)
    assert np.array_equal(factor.pivot_ids, pivots)
    assert pivots[0] == 0
    values, beta = reference.original_ksc(G, 4)
    assert found.values == pytest.approx(values, rel=1e-8)
    ours, theirs = training_scores(factor.training_rows, found).unbiased, G @ (G.T @ beta)
    assert same_up_to_sign(*(Z / np.linalg.norm(Z, axis=0) for Z in (ours, theirs)), 1e-8)


@pytest.mark.numeric
@seeds
def test_coefficients_solve_the_reduced_set_equations(seed):
    X, sample, factor, found = fitted(seed)
    F = factor.training_rows
    K = reference.kernel_values(reference.rbf(GAMMA), X, X)
    p = factor.pivot_ids
    xi = reference.reduced_set(K[np.ix_(p, p)], K[:, p], found.multipliers(F))
    model = score_map(factor, found)
    assert np.abs(K[:, p] @ (model.coefficients - xi)).max() < 1e-8 * np.abs(K[:, p] @ xi).max()
    scores = training_scores(F, found)
    assert np.allclose(scores.unbiased, K[:, p] @ model.coefficients, atol=1e-9)
    assert np.allclose(scores.unbiased, F @ (F.T @ found.multipliers(F)), atol=1e-9)
    assert np.allclose(model.of_rows(factor, sample).unbiased, scores.unbiased, atol=1e-9)
    assert np.allclose(scores.degrees**2, (F @ F.sum(0)) ** 2 / (F.sum(0) ** 2).sum())


@pytest.mark.numeric
@seeds
def test_both_biases_are_the_optimal_one_at_full_rank(seed):
    """The paper: they differ only by what the reduced set does not see."""
    X, _ = crescents(seed, n=60)
    kernel = RBF(0.5)
    sample = as_sample(kernel, X)
    factor = IncompleteCholesky(60, pivots="greedy").fit(kernel, sample, rng=rng())
    F = factor.training_rows
    found = weighted_kpca(F, sample.weights, 3, rng=rng())
    K = reference.kernel_values(reference.rbf(0.5), X, X)
    assert found.bias == pytest.approx(reference.exact_bias(K, found.multipliers(F)), abs=1e-6)
    p = factor.pivot_ids
    original = reference.original_bias(K[np.ix_(p, p)], score_map(factor, found).coefficients)
    assert found.bias == pytest.approx(original, abs=1e-3)


@pytest.mark.numeric
@seeds
def test_a_second_kernel_that_is_the_first_changes_nothing(seed):
    _, sample, factor, found = fitted(seed)
    second = factor.with_kernel(RBF(GAMMA))
    multipliers = found.multipliers(factor.training_rows)
    two = score_map_of_two(second, sample, multipliers, found.bias).of_rows(second, sample)
    one = training_scores(factor.training_rows, found)
    assert np.allclose(two.unbiased, one.unbiased, atol=1e-8)
    assert np.allclose(two.degrees, one.degrees, atol=1e-8)


@pytest.mark.numeric
@seeds
def test_weight_two_is_the_row_twice_for_the_decomposition(seed):
    _, sample, factor, _ = fitted(seed)
    F, w = factor.training_rows, rng(seed).integers(1, 4, len(sample)).astype(float)
    weighted = weighted_kpca(F, w, 3, rng=rng())
    repeated = weighted_kpca(
        np.repeat(F, w.astype(int), axis=0), np.ones(int(w.sum())), 3, rng=rng()
    )
    assert weighted.values == pytest.approx(repeated.values)
    assert weighted.bias == pytest.approx(repeated.bias, abs=1e-9)
    assert np.allclose(weighted.directions, repeated.directions, atol=1e-8)


def test_rows_without_a_degree_have_no_say():
    F = np.vstack([fitted(0)[2].training_rows, np.zeros((5, RANK))])
    found = weighted_kpca(F, np.ones(len(F)), 3, rng=rng())
    without = weighted_kpca(F[:-5], np.ones(len(F) - 5), 3, rng=rng())
    assert found.n_clamped == 5
    assert found.values == pytest.approx(without.values)
    assert found.bias == pytest.approx(without.bias)


def histograms(seed, n=400, n_columns=4):
    """Rows of counts, of which many are equal."""
    return rng(seed).multinomial(6, np.ones(n_columns) / n_columns, size=n) / 6


@pytest.mark.numeric
@seeds
@pytest.mark.parametrize("encoding", ["ams", "blf"])
@pytest.mark.parametrize("kind", ["spirals", "rings", "histograms"])
def test_the_published_algorithm_through_the_estimator(kind, encoding, seed):
    """Textbook pivots in the order of X, whatever order the estimator keeps rows in."""
    if kind == "histograms":
        X, kernel, rank, k = histograms(seed), Chi2(2.0), 30, 3
    elif kind == "rings":
        X, kernel, rank, k = crescents(seed)[0], RBF(GAMMA), RANK, 3
    else:
        X, kernel, rank, k = spirals(600, random_state=seed)[0], RBF(60.0), 80, 2
    model = KernelSpectralClustering(
        k,
        kernel=kernel,
        encoding=encoding,
        approximation=IncompleteCholesky(rank, pivots="greedy", block=1),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of clusters that histograms do not have
        model.fit(X)
    pivots, values, scores = reference.published_ksc(kernel(X), rank, k - 1)
    assert model.trim_ == 0
    assert model.pivots_[0] == 0
    assert np.array_equal(X[model.pivots_], X[pivots])
    assert len(np.unique(X, axis=0)) < len(X) or np.array_equal(model.pivots_, pivots)
    assert model.eigenvalues_ == pytest.approx(values, rel=1e-8)
    gaps = -np.diff(np.append(values, values[-1] / 2))
    if gaps.min() > 1e-3:  # else the eigenvectors are any rotation of these
        assert same_up_to_sign(model.transform(X), scores, 1e-6)


# Code books and criteria, small enough to check by hand


def test_words_are_counted_and_the_first_of_equals_comes_first():
    Z = np.array([[1, 1], [-1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1.0]])
    found = frequent_words(Z, np.ones(6), 3)
    assert found.words.tolist() == [[1, 1], [-1, 1], [-1, -1]]
    assert found.counts.tolist() == [2, 2, 1]
    assert found.carried.tolist() == [0, 1, 0, 2, 1, -1]
    heavy = frequent_words(Z, np.array([1, 1, 1, 9, 1, 1.0]), 1)
    assert heavy.words.tolist() == [[-1, -1]]


def test_signs_nearest_in_hamming_distance():
    book = sign_codebook(np.array([[1, 1], [1, 1], [-1, 1], [-1, -1.0]]), np.ones(4), 2)
    Y = np.array([[3, 1], [-3, 1], [0.1, -1], [-1, -1]])
    assert book.distances(Y).tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert book.labels(Y).tolist() == [0, 1, 0, 1]
    tie = Codebook("blf", np.array([[-1.0, -1], [1, 1]]), np.array([1.0, 2]))
    assert tie.labels(np.array([[1.0, -1]])).tolist() == [1]  # the more frequent word


def test_means_on_a_line_and_directions_in_a_plane():
    line = angle_codebook(np.array([[1.0], [3], [-4]]), np.ones(3), 2)
    assert line.prototypes.tolist() == [[2], [-4]]
    assert line.distances(np.array([[1.0]])).tolist() == [[1, 5]]
    assert line.memberships(np.array([[1.0]]))[0] == pytest.approx([5 / 6, 1 / 6])
    plane = angle_codebook(np.array([[2.0, 2], [4, 4], [-3, 3], [-1, -5]]), np.ones(4), 2)
    root = np.sqrt(0.5)
    assert plane.prototypes[0] == pytest.approx([root, root])
    assert plane.distances(np.array([[0.0, 7]]))[0, 0] == pytest.approx(1 - root)
    assert plane.labels(np.array([[1.0, 2]])).tolist() == [0]


def test_directions_are_refined_by_k_means():
    xi = np.array([[1.0, 0.1], [1, -0.1], [1, 0.2], [-1, 2], [-1, 2.2], [0.1, -3]])
    book = direction_codebook(xi, 3)
    assert book.labels(xi).tolist() == [0, 0, 0, 1, 1, 2] or adjusted_rand(
        [0, 0, 0, 1, 1, 2], book.labels(xi)
    ) == pytest.approx(1.0)
    assert np.allclose(np.linalg.norm(book.prototypes, axis=1), 1)
    assert book.distances(np.zeros((1, 2)))[0] == pytest.approx([np.sqrt(2)] * 3)


@encodings
def test_a_label_is_a_function_of_the_row_and_not_of_the_numbers(encoding):
    Y = rng(0).normal(size=(500, 4))
    make = {"blf": sign_codebook, "ams": angle_codebook}
    book = make[encoding](Y, np.ones(500), 5) if encoding in make else direction_codebook(Y, 5)
    labels, order = book.labels(Y), rng(1).permutation(5)
    assert np.array_equal(order[book.reordered(order).labels(Y)], labels)
    assert np.array_equal(
        np.concatenate([book.labels(Y[i : i + 1]) for i in range(99)]), labels[:99]
    )
    shares = book.memberships(Y)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    if encoding != "blf":  # whose words may be equally far
        assert np.array_equal(shares.argmax(axis=1), labels)


def test_line_fit_is_one_for_lines_and_zero_for_discs():
    t = np.linspace(1, 2, 50)
    lines = np.concatenate([np.outer(t, d) for d in ([1, 0], [-1, 1], [-1, -1])])
    labels, ones = np.repeat(np.arange(3), 50), np.ones(150)
    assert line_fit(lines, labels, ones, np.ones(3, bool)) == pytest.approx(1.0)
    angles = np.linspace(0, 2 * np.pi, 50, endpoint=False)
    discs = np.concatenate([np.c_[np.cos(angles), np.sin(angles)]] * 3)
    assert line_fit(discs, labels, ones, np.ones(3, bool)) == pytest.approx(0.0, abs=1e-12)


def test_criteria_by_hand():
    book = Codebook("bas", np.array([[1.0, 0], [0, 1]]), np.ones(2))
    Y = np.array([[2.0, 0], [0, 1], [0, 5], [0, 1]])
    assert criterion(book, Y, np.ones(4), balance=0.0) == 1.0
    assert criterion(book, Y, np.ones(4), balance=1.0) == pytest.approx(1 / 3)
    assert criterion(book, Y, np.array([3.0, 1, 1, 1]), balance=1.0) == 1.0
    assert criterion(book, np.ones((4, 2)), np.ones(4), balance=0.0) == pytest.approx(0.0)
    alone = criterion(book, Y, np.ones(4), balance=0.0, outlier=1.0)
    assert alone == pytest.approx(0.5)  # the cluster of one row is noise
    assert balance_of(np.array([0.0, 3.0])) == 0.0


# The estimator


@pytest.mark.parametrize("seed", range(3))
def test_defaults_choose_two_spirals_three_rings_ten_blobs(seed):
    angles = np.arange(10) * 2 * np.pi / 10
    centers = 20 * np.c_[np.cos(angles), np.sin(angles)]
    for X, y in (
        spirals(6000, random_state=seed),
        rings(3000, random_state=seed),
        make_blobs(3000, 2, centers=centers, random_state=seed),
    ):
        model = KernelSpectralClustering("auto", random_state=seed).fit(X)
        assert model.n_clusters_ == y.max() + 1
        assert adjusted_rand(y, model.labels_) == 1.0
        assert model.selection_.best.n_clusters == model.n_clusters_
        assert model.n_clusters_ranking_[0][0] == model.n_clusters_
        assert any(f"n_clusters={model.n_clusters_}" in note for note in model.report_.notes)


@encodings
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_encoding_finds_rings_and_saves(encoding, dtype, tmp_path):
    X, y = rings(2000, random_state=0, dtype=dtype)
    model = KernelSpectralClustering(3, encoding=encoding, gamma=16.0, random_state=0).fit(X)
    assert adjusted_rand(y, model.labels_) == 1.0
    assert model.score(X) > 0.9
    Z = model.transform(X)
    expected = model.kernel_(X.astype(float), X[model.pivots_].astype(float))
    assert np.allclose(Z, expected @ model.coefficients_ + model.bias_, atol=1e-5)
    assert model.memberships(X).argmax(axis=1).tolist() == model.labels_.tolist()
    model.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert np.array_equal(loaded.predict(X), model.labels_)
    assert np.array_equal(loaded.transform(X), Z)
    assert loaded.score(X) == model.score(X)


@encodings
def test_two_clusters_in_every_encoding(encoding):
    X, y = spirals(6000, random_state=1)
    model = KernelSpectralClustering(2, encoding=encoding, gamma=1 / 0.006, random_state=0).fit(X)
    assert adjusted_rand(y, model.labels_) == 1.0
    assert model.codebook_.prototypes.shape == (2, 2 if encoding == "bas" else 1)
    assert 0.5 < model.score(X) <= 1.0


@pytest.mark.numeric
@pytest.mark.parametrize(("n", "rank"), [(10_000, 121), (50_000, 115)])
@pytest.mark.parametrize("seed", range(3))
def test_default_pivots_leave_no_gap_in_a_spiral(n, rank, seed):
    """The ranks of Table 2 of [novak2023]: of random pivots, most draws fail."""
    X, y = spirals(n, random_state=seed)
    model = KernelSpectralClustering(
        2, gamma=1 / 0.006, rank=rank, train_size=n, random_state=seed
    ).fit(X)
    assert "spread" in model.report_.approximation
    assert adjusted_rand(y, model.labels_) > 0.99


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_features", [2, 8])
def test_a_few_rows_far_away_are_a_cluster(n_features, seed):
    draw = rng(seed)
    X = np.vstack(
        [draw.normal(size=(2000, n_features)), 40 + 0.5 * draw.normal(size=(5, n_features))]
    )
    model = KernelSpectralClustering(2, random_state=seed).fit(X)
    assert np.sort(model.cluster_weights_).tolist() == [5, 2000]


@pytest.mark.parametrize("seed", range(3))
def test_rows_far_from_all_others_are_no_cluster(seed):
    draw = rng(seed)
    X, y = make_blobs(1500, 3, centers=10 * np.eye(3), random_state=seed)
    strays = draw.uniform(-60, 60, size=(20, 3))
    model = KernelSpectralClustering(3, random_state=seed).fit(np.vstack([X, strays]))
    assert adjusted_rand(y, model.labels_[:1500]) > 0.95
    assert model.predict(strays).tolist() == model.labels_[1500:].tolist()


def test_a_trim_leaves_out_the_least_dense_rows():
    X, y = make_blobs(600, 2, centers=[[-3, 0], [3, 0]], random_state=0)
    stray = np.array([[0.0, 30.0]])
    both = np.vstack([X, stray])
    how = {"gamma": 0.5, "random_state": 0}
    assert KernelSpectralClustering(2, **how).fit(both).trim_ == 0
    whole = KernelSpectralClustering(2, **how).fit(both)
    assert adjusted_rand(y, whole.labels_[:-1]) < 0.5
    model = KernelSpectralClustering(2, trim=0.01, **how).fit(both)
    assert model.trim_ == 0.01
    assert adjusted_rand(y, model.labels_[:-1]) > 0.9
    assert len(model.degrees_) == 601
    F = rng(0).random((50, 3))
    weights = trimmed_weights(F, np.ones(50), 0.1)
    left_out = np.flatnonzero(weights == 0)
    degrees = F @ F.sum(axis=0)
    assert sorted(left_out) == sorted(np.argsort(degrees)[:5])
    assert trimmed_weights(F, np.ones(50), 0.0).all()


def test_the_fit_is_the_candidate_that_was_compared():
    X, _ = rings(1200, random_state=0)
    model = KernelSpectralClustering(3, random_state=0).fit(X)
    best = model.selection_.best
    assert model.selection_.criterion == "cut"
    assert model.selection_.gammas.index(best.gamma) == int(model.selection_.scores.argmax())
    assert model.kernel_.gamma == pytest.approx(best.gamma)
    assert best.score == model.selection_.scores.max()
    assert "split the fewest close neighbours" in " ".join(model.report_.notes)


def test_very_many_clusters_are_compared_by_the_criterion():
    X, y = make_blobs(3000, 2, centers=300, cluster_std=0.01, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = KernelSpectralClustering(300, rank=400, random_state=0).fit(X)
    assert model.selection_.criterion == "bas"
    assert adjusted_rand(y, model.labels_) > 0.9


def test_edges_count_by_their_closeness():
    """Two rows far from three: an edge across counts by the ratio of lengths."""
    edges = np.array([[1, 2], [0, 2], [1, 0], [4, 2], [3, 2]])
    labels, ones = np.array([0, 0, 0, 1, 1]), np.ones(5)
    plain = normalized_cut(edges, labels, ones, 2)
    assert plain == pytest.approx((2 / 14 + 2 / 6) / 2)
    closeness = np.ones((5, 2))
    closeness[3:, 1] = 1e-6
    assert normalized_cut(edges, labels, ones, 2, closeness) < 1e-5


@seeds
def test_spread_pivots_are_the_largest_of_each_few(seed):
    B = rng(seed).normal(size=(40, 12))
    S = B @ B.T
    L, order, left = np.zeros((5, 40)), np.empty(5, np.intp), S.diagonal().copy()
    n = take_best_of(S, 8, 0.1 * left.max(), left, L, order)
    assert order[:n].tolist() == reference.best_of_each(S, 8, 0.1 * S.diagonal().max())
    chosen = order[:n]
    assert np.allclose(L[:n, chosen].T @ L[:n, chosen], S[np.ix_(chosen, chosen)])


@pytest.mark.parametrize("seed", range(2))
def test_a_search_rejects_graphs_that_fall_apart(seed):
    """Rows in bins of their own are clear clusters to the criterion alone."""
    X, y = make_blobs(1500, 16, centers=10, cluster_std=7.0, random_state=seed)
    estimator = SpectralClustering(10, approximation="binning", random_state=0)
    rule = clone(estimator).fit(X).kernel_.gamma
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # narrow kernels make poor clusters
        found = search(estimator, X, n_clusters=[10], gamma=rule * np.array([1, 4, 32, 128]))
        best = clone(estimator).set_params(gamma=found.best.gamma).fit(X)
    assert np.isnan(found.scores[2:]).all()
    assert found.best.gamma <= 4.001 * rule
    assert adjusted_rand(y, best.labels_) > 0.5


def test_a_search_is_saved_with_the_model(tmp_path):
    X, _ = rings(3000, random_state=0)
    model = KernelSpectralClustering("auto", random_state=0).fit(X)
    model.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert np.array_equal(loaded.selection_.scores, model.selection_.scores, equal_nan=True)
    assert loaded.selection_.best == model.selection_.best


def test_a_damaged_code_book_is_refused(tmp_path):
    X, _ = rings(600, random_state=0)
    model = KernelSpectralClustering(3, gamma=16.0, random_state=0).fit(X)
    for name, value in (
        ("coefficients_", model.coefficients_[:, :1]),
        ("bias_", np.zeros(5)),
        ("codebook_", Codebook("bas", np.ones((3, 7)), np.ones(3))),
        ("codebook_", Codebook("zip", model.codebook_.prototypes, np.ones(3))),
        ("cluster_weights_", np.ones(2)),
        ("degree_coefficients_", np.full(len(model.pivots_), np.nan)),
    ):
        right = getattr(model, name)
        setattr(model, name, value)
        model.save(tmp_path / "m.mercer")
        setattr(model, name, right)
        with pytest.raises(mercer.ModelFileError):
            mercer.load(tmp_path / "m.mercer")


def test_a_sample_trains_and_all_rows_are_labelled():
    X, y = rings(20_000, random_state=0)
    for size, n in ((2000, 2000), (0.2, 4000), (None, 10_000)):
        model = KernelSpectralClustering(3, gamma=16.0, train_size=size, random_state=0).fit(X)
        assert len(model.degrees_) == n
        assert adjusted_rand(y, model.labels_) > 0.999


def test_two_kernels():
    X, y = rings(2000, random_state=0)
    params = {"kernel_cholesky": RBF(16.0), "random_state": 0}
    model = KernelSpectralClustering(3, gamma=12.0, **params).fit(X)
    assert adjusted_rand(y, model.labels_) == 1.0
    assert model.kernel_.gamma == 12.0
    factor = model.factor_  # measures rows in a unit of its own
    assert factor.kernel.in_units(-factor.format.exponent).gamma == 12.0
    found = search(
        KernelSpectralClustering(**params), X, gamma=[0.1, 4, 8, 16, 500], n_clusters=[2, 3, 4]
    )
    assert found.best.n_clusters == 3


def test_scores_of_a_precomputed_kernel():
    X, y = rings(1500, random_state=0)
    K = RBF(16.0)(X)
    model = KernelSpectralClustering(3, kernel="precomputed", random_state=0).fit(K)
    assert adjusted_rand(y, model.labels_) == 1.0
    assert np.array_equal(model.predict(K[:9]), model.labels_[:9])


# What cannot work


@pytest.mark.numeric
def test_degenerate_eigenvalues_leave_signs_undefined():
    X, _ = make_blobs(300, 2, centers=[[-40, 0], [40, 0], [0, 69]], random_state=0)
    with pytest.warns(MercerWarning, match="'ams' or 'bas'"):
        KernelSpectralClustering(3, encoding="blf", gamma=0.1, random_state=0).fit(X)


def test_more_clusters_than_the_rank_allows():
    X, _ = blobs(300, random_state=0)
    with pytest.raises(ValueError, match="rank=4 cannot separate n_clusters=8"):
        KernelSpectralClustering(8, rank=4).fit(X)
    with pytest.warns(MercerWarning, match="directions"):
        model = KernelSpectralClustering(8, kernel="polynomial", random_state=0).fit(X[:, :1])
    assert model.n_clusters_ < 8


def test_negative_degrees_of_a_coarse_factor_are_called_out():
    X, _ = blobs(2000, n_clusters=3, random_state=0)
    with pytest.warns(MercerWarning, match="no positive degree"):
        KernelSpectralClustering(3, rank=5, gamma=50.0, random_state=0).fit(X)


def test_parts_that_do_not_fit_are_refused():
    X, _ = rings(300, random_state=0)
    for params, words in (
        ({"approximation": Landmarks()}, "dense factor"),
        ({"kernel_cholesky": "precomputed"}, "precomputed"),
        ({"kernel_cholesky": RBF(1.0), "gamma": 1.0, "approximation": "fourier"}, "pivots"),
    ):
        with pytest.raises(ValueError, match=words):
            KernelSpectralClustering(3, **params).fit(X)
    with pytest.raises(ValueError, match="precomputed"):
        KernelSpectralClustering(3, kernel="precomputed", kernel_cholesky=RBF(1.0)).fit(RBF(1.0)(X))


def test_an_unclear_number_of_clusters_is_called_out():
    X = rng(0).random((1000, 2))
    with pytest.warns(MercerWarning, match="not clear"):
        KernelSpectralClustering("auto", random_state=0).fit(X)
    with pytest.warns(MercerWarning, match="too few"):
        assert KernelSpectralClustering("auto", random_state=0).fit(X[:20]).n_clusters_ == 2


def test_a_search_says_what_is_wrong():
    X, _ = rings(300, random_state=0)
    estimator = KernelSpectralClustering(rank=20, random_state=0)
    for options, words in (
        ({"n_clusters": [1, 2]}, "2 or more"),
        ({"n_clusters": []}, "2 or more"),
        ({"gamma": [0.0]}, "positive"),
        ({"criterion": "gap"}, "unknown"),
        ({"validation_size": 3}, "smaller than n_clusters"),
        ({"balance": 2.0}, "balance"),
        ({"n_clusters": [30]}, "no pair"),
        ({"gamma": [1e8]}, "no pair"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            with pytest.raises(ValueError, match=words):
                search(estimator, X, **options)
    with pytest.raises(ValueError, match="rows are held out, fewer"):
        search(estimator, X[:9], n_clusters=[5])
    with pytest.raises(ValueError, match="'blf' needs"):
        search(KernelKMeans(), X, criterion="blf")
    with pytest.raises(ValueError, match="train_size=301"):
        KernelSpectralClustering(3, train_size=301).fit(X)
    with pytest.raises(ValueError, match="no gamma"):
        search(KernelSpectralClustering(kernel="cosine"), X, gamma=[1.0])


# The search


@pytest.mark.numeric
def test_threads_do_not_change_a_search():
    X, _ = rings(1500, random_state=0)
    estimator = KernelSpectralClustering(random_state=0)
    one = search(estimator, X, n_clusters=range(2, 6), n_jobs=1)
    two = search(estimator, X, n_clusters=range(2, 6), n_jobs=2)
    assert np.array_equal(one.scores, two.scores, equal_nan=True)
    assert one.ranking()[0].n_clusters == 3
    assert one.to_dict()["best"]["n_clusters"] == 3
    assert "K=3" in str(one)


def test_a_search_for_the_other_estimators():
    X, _ = rings(1200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # of parts that two clusters cannot show
        found = search(SpectralClustering(random_state=0), X, n_clusters=[2, 3, 4])
    assert found.best.n_clusters == 3
    X, _ = make_blobs(600, 2, centers=[[-10, 0], [10, 0], [0, 17]], random_state=0)
    for name in ("bas", "ams"):
        found = search(
            KernelKMeans(random_state=0),
            X,
            n_clusters=[2, 3, 4],
            gamma=[0.01, 0.05],
            criterion=name,
        )
        assert found.best.n_clusters == 3


def test_a_picture_of_a_search(tmp_path):
    pytest.importorskip("matplotlib")
    from mercer.report.heat_map import draw_selection

    X, _ = rings(600, random_state=0)
    found = search(KernelSpectralClustering(random_state=0), X, n_clusters=range(2, 6))
    draw_selection(tmp_path / "tune.png", found)
    assert (tmp_path / "tune.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("approximation", ["binning", "neighbors", "landmarks"])
def test_graphs_and_bins_are_refused(approximation):
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(ValueError, match="needs a dense factor"):
        KernelSpectralClustering(3, kernel="laplacian", approximation=approximation).fit(X)


def test_a_draw_of_training_rows_keeps_heavy_rows():
    """A hundred copies of each of three rows among 3,000 strays: drawn by weight, not by kind."""
    rng = np.random.default_rng(0)
    heavy = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    clouds = np.concatenate([h + rng.normal(size=(300, 2)) for h in heavy])
    X = np.concatenate([clouds, heavy])
    weights = np.concatenate([np.ones(900), np.full(3, 1e4)])
    model = KernelSpectralClustering(3, gamma=0.02, train_size=60, random_state=0)
    model.fit(X, sample_weight=weights)
    assert {900, 901, 902} <= set(model.factor_.pivot_ids)
    assert len(set(model.predict(heavy))) == 3
