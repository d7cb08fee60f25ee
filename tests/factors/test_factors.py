"""Laws of projections, the theorems of paper 001, and what each approximation promises.

What holds for every factor is in tests/laws/test_factor_laws.py.
"""

from __future__ import annotations

import doctest
import importlib
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

import mercer
import reference
from factors import EXACT, GAMMA, GREEDY, PROJECTIONS, RANDOM, WAVES, cloud, fitted, gram
from marking import seeds
from mercer import KernelFeatures, KernelKMeans
from mercer.datasets import ring_and_core
from mercer.factors import IncompleteCholesky, Nystrom, RandomFourier
from mercer.factors.base import as_sample
from mercer.factors.cholesky import pivoted_cholesky
from mercer.factors.names import as_approximation
from mercer.factors.nystrom import NO_ROW, _ridge_scores
from mercer.kernels import RBF, Cosine, Laplacian, Polynomial
from mercer.kernels.given import GramMatrix
from mercer.metrics import accuracy
from mercer.rows.sample import Sample

pytestmark = pytest.mark.numeric

SEEDS = range(10)
KERNEL = RBF(GAMMA)
# rounding of k(x, y), over the root of the least pivot or eigenvalue that is kept
TOL = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-2}

METHODS = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
CONFIGURATIONS = sorted(set(re.findall(r"\| `(KernelKMeans\(.*?)` \|", METHODS)))

every_seed = seeds(len(SEEDS), quick=3)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def every(makers):
    return pytest.mark.parametrize("make", makers.values(), ids=makers.keys())


def kernel_matrix(X, Y=None):
    Y = X if Y is None else Y
    return np.exp(-GAMMA * ((X[:, None] - Y[None]) ** 2).sum(axis=2))


# Laws


@every(PROJECTIONS | EXACT)
@every_seed
def test_full_rank_is_exact(make, seed):
    X = cloud(seed, n=60)
    factor = fitted(make, X, rank=len(X), seed=seed)
    K = kernel_matrix(X)
    assert np.abs(gram(factor.training_rows) - K).max() < TOL[X.dtype]
    assert np.abs(gram(factor.rows(X)) - K).max() < TOL[X.dtype]
    assert factor.trace_error < TOL[X.dtype]


@every(PROJECTIONS)
@every_seed
@pytest.mark.parametrize("rank", [1, 7, 40])
def test_a_projection_never_exceeds_the_kernel(make, seed, rank):
    X = cloud(seed)
    F = fitted(make, X, rank=rank, seed=seed).rows(X)
    assert np.linalg.eigvalsh(kernel_matrix(X) - gram(F))[0] > -TOL[X.dtype]


@every(GREEDY)
@every_seed
def test_error_falls_as_rank_grows(make, seed):
    X = cloud(seed)
    errors = [fitted(make, X, rank=rank).trace_error for rank in (2, 5, 10, 20, 40)]
    assert np.all(np.diff(errors) < 0)


@every(RANDOM | WAVES)
def test_mean_error_falls_as_rank_grows(make):
    X = cloud(0)
    K = kernel_matrix(X)
    means = [
        np.mean(
            [np.linalg.norm(K - gram(fitted(make, X, rank=rank, seed=s).rows(X))) for s in SEEDS]
        )
        for rank in (4, 10, 20, 40)
    ]
    assert np.all(np.diff(means) < 0)


@every(PROJECTIONS | EXACT)
@every_seed
def test_new_rows_follow_the_formula(make, seed):
    X, Y = cloud(seed, n=50), cloud(seed + 100, n=9)
    factor = fitted(make, X, rank=8, seed=seed)
    pivots = factor.pivots + factor.format.shift
    expected = kernel_matrix(Y, pivots) @ factor.mix
    assert np.allclose(factor.rows(Y), expected, rtol=0, atol=TOL[X.dtype])
    if (factor.pivot_ids != NO_ROW).all():
        assert np.allclose(X[factor.pivot_ids], pivots)


@every(WAVES)
@every_seed
@pytest.mark.parametrize("rank", [1, 6, 7])
def test_new_rows_follow_the_formula_of_waves(make, seed, rank):
    X, Y = cloud(seed, n=50), cloud(seed + 100, n=9)
    factor = fitted(make, X, rank=rank, seed=seed)
    Z = (Y - factor.format.shift) @ factor.waves.T + factor.phases
    expected = np.hstack([np.cos(Z), np.sin(Z)])[:, :rank] * np.sqrt(2 / rank)
    assert np.allclose(factor.rows(Y), expected, rtol=0, atol=reference.TOL[X.dtype])
    assert np.allclose(factor.features(np.float64)(Y - factor.format.shift) @ factor.mix, expected)


@every(PROJECTIONS | EXACT)
@every_seed
def test_pivots_are_distinct_and_as_many_as_asked(make, seed):
    X = cloud(seed)
    factor = fitted(make, X, rank=30, seed=seed)
    n_pivots = len(X) if "Exact" in repr(make(30)) else 30
    assert len(np.unique(factor.pivots, axis=0)) == len(factor.pivots) == len(factor.pivot_ids)
    assert factor.mix.shape == (n_pivots, factor.rank) or n_pivots == len(X)
    assert factor.pivot_ids.dtype == np.intp


@every(PROJECTIONS | EXACT)
@every_seed
def test_trace_error_is_that_of_the_weighted_rows(make, seed):
    X = cloud(seed)
    weights = np.random.default_rng(seed).uniform(0.1, 9.0, len(X))
    factor = fitted(make, as_sample(KERNEL, X, weights), rank=12, seed=seed)
    residual = 1.0 - (factor.rows(X) ** 2).sum(axis=1)
    expected = weights @ residual / weights.sum()
    assert factor.trace_error == pytest.approx(expected, abs=TOL[X.dtype])


@every(PROJECTIONS)
@every_seed
def test_weight_two_is_the_row_twice(make, seed):
    X = cloud(seed, n=80)
    weights = np.random.default_rng(seed).integers(0, 4, len(X))
    features = KernelFeatures(kernel=KERNEL, approximation=make(15), random_state=seed)
    weighted = features.fit(X, sample_weight=weights).factor_
    repeated = features.fit(np.repeat(X, weights, axis=0)).factor_
    assert weighted.trace_error == pytest.approx(repeated.trace_error, rel=1e-12)
    assert np.allclose(weighted.pivots, repeated.pivots, rtol=0, atol=1e-12)


@every_seed
def test_weight_two_is_the_row_twice_without_an_estimator(seed):
    X = cloud(seed, n=80)
    weights = np.random.default_rng(seed).integers(1, 4, len(X))
    textbook = GREEDY["cholesky-textbook"]
    weighted = fitted(textbook, as_sample(KERNEL, X, weights), rank=15)
    repeated = fitted(textbook, np.repeat(X, weights, axis=0), rank=15)
    assert weighted.trace_error == pytest.approx(repeated.trace_error, rel=1e-9)


# Paper 001


@every(PROJECTIONS)
@every_seed
def test_theorem_2_s_steps_give_rank_s(make, seed):
    X = cloud(seed, n=60)
    for s in (1, 3, 9, 20):
        factor = fitted(make, X, rank=s, seed=seed)
        assert factor.rank == s
        assert np.linalg.matrix_rank(factor.rows(X)) == s
        assert np.linalg.matrix_rank(kernel_matrix(X, factor.pivots + factor.format.shift)) == s


@pytest.mark.parametrize(
    ("kernel", "n_features", "rank"),
    [
        (Polynomial(1, 1.0, coef0=0.0), 7, 7),  # the inner product: d
        (Polynomial(2, 1.0, coef0=1.0), 2, 6),  # all monomials up to degree 2 in 2 variables
        (Polynomial(3, 0.1, coef0=1.0), 3, 20),
    ],
    ids=["linear", "quadratic", "cubic"],
)
@every({name: make for name, make in PROJECTIONS.items() if "cholesky" in name})
@every_seed
def test_theorem_3_and_corollary_4_no_breakdown_before_the_rank_of_k(
    make, seed, kernel, n_features, rank
):
    X = np.random.default_rng(seed).normal(size=(50, n_features))
    factor = fitted(make, X, rank=len(X), seed=seed, kernel=kernel)
    K = kernel(X)
    assert factor.rank == len(factor.pivot_ids) == rank
    assert np.linalg.matrix_rank(K[:, factor.pivot_ids]) == rank
    assert np.abs(gram(factor.rows(X)) - K).max() < TOL[X.dtype] * K.max()


@every_dtype
@pytest.mark.parametrize(
    ("kernel", "n", "n_features", "rank", "seeds"),
    [
        (Polynomial(1, 1.0, coef0=0.0), 50, 7, 7, 100),
        (Polynomial(3, 0.1, coef0=1.0), 50, 3, 20, 100),
        (Cosine(), 1500, 20, 20, 4),
    ],
    ids=["linear", "cubic", "cosine"],
)
@every({name: make for name, make in PROJECTIONS.items() if "cholesky" in name})
def test_rounding_errors_are_never_taken_for_a_pivot(
    make, kernel, n, n_features, rank, seeds, dtype
):
    """A pivot more than K has divides rounding errors by their own root: F was wrong by 1000."""
    for seed in range(seeds):
        X = np.random.default_rng(seed).normal(5.0, 1.0, (n, n_features)).astype(dtype)
        factor = fitted(make, X, rank=2 * rank, seed=seed, kernel=kernel)
        assert factor.rank <= rank, seed
        F, K = factor.rows(X[:50]), kernel(X[:50].astype(np.float64))
        assert np.abs(gram(F) - K).max() < TOL[X.dtype] * K.max(), seed


@every(GREEDY | {"cholesky-random": RANDOM["cholesky-random"]})
@every_seed
def test_theorem_5_error_decreases_with_every_step(make, seed):
    X = cloud(seed, n=80)
    factor = fitted(make, X, rank=40, seed=seed)
    errors = 1 - np.cumsum((factor.training_rows**2).sum(axis=0)) / len(X)  # after each step
    assert np.all(np.diff(errors) < 0)
    assert factor.trace_error == pytest.approx(errors[-1], abs=TOL[X.dtype])


@every_seed
def test_equation_4_bounds_the_error_by_eigenvalues(seed):
    """tr(K - K̂) ≤ (n - s)(P_B)²_ss ≤ n 4ˢ λ_s(K), from the proof of Theorem 6."""
    X = cloud(seed, n=80)
    eigenvalues = np.linalg.eigvalsh(kernel_matrix(X))[::-1]
    for s in (1, 2, 4, 8, 16):
        found = pivoted_cholesky(KERNEL, X, rank=s)
        last_pivot = found.F[found.pivots[-1], s - 1] ** 2
        assert found.error * len(X) <= (len(X) - s) * last_pivot * (1 + 1e-9)
        assert (len(X) - s) * last_pivot <= len(X) * 4**s * eigenvalues[s - 1]


@every(PROJECTIONS)
@every_seed
def test_theorem_7_the_objective_of_any_partition_is_close(make, seed):
    """0 ≤ tr Vᵀ(K - K̂)V ≤ √k tr(K - K̂) for the normalised indicators V of k clusters.

    Its proof's first step; in fact tr(K - K̂) is enough, as VVᵀ is a projection.
    """
    X, k = cloud(seed), 5
    labels = np.random.default_rng(seed).integers(k, size=len(X))
    V = np.eye(k)[labels] / np.sqrt(np.bincount(labels, minlength=k))
    factor = fitted(make, X, rank=10, seed=seed)
    gap = kernel_matrix(X) - gram(factor.rows(X))
    assert -TOL[X.dtype] < np.trace(V.T @ gap @ V) <= np.trace(gap) + TOL[X.dtype]
    assert np.trace(gap) <= np.sqrt(k) * len(X) * factor.trace_error + TOL[X.dtype]


def _best_indicators(K, k):
    """V with the largest tr(Vᵀ K V) among all partitions into k clusters, by trying each."""
    every = (np.array(labels) for labels in itertools.product(range(k), repeat=len(K)))
    made = (np.eye(k)[labels] for labels in every if len(set(labels.tolist())) == k)
    return max((V / np.sqrt(V.sum(axis=0)) for V in made), key=lambda V: np.trace(V.T @ K @ V))


@every_seed
def test_theorem_7_as_it_holds_the_best_partition_of_the_factor_is_nearly_the_best(seed):
    """0 ≤ tr(V*ᵀ K V*) - tr(V̂ᵀ K V̂) ≤ tr(K - K̂) for the optima V* of K and V̂ of K̂."""
    X = cloud(seed, n=8)
    K = kernel_matrix(X)
    for rank in (1, 3):
        F = pivoted_cholesky(KERNEL, X, rank=rank).F[:, :rank]
        V, W = _best_indicators(K, 2), _best_indicators(F @ F.T, 2)
        gap = np.trace(V.T @ K @ V) - np.trace(W.T @ K @ W)
        assert -1e-12 <= gap <= np.trace(K - F @ F.T) + 1e-12


@every_seed
def test_theorem_7_as_printed_fails_where_the_same_clusters_are_numbered_differently(seed):
    X = cloud(seed, n=8)
    K = kernel_matrix(X)
    F = pivoted_cholesky(KERNEL, X, rank=7).F[:, :7]
    V = _best_indicators(K, 2)
    W = V[:, ::-1]  # the same partition, so a solution of both problems if V is
    assert np.trace(W.T @ K @ W) == pytest.approx(np.trace(V.T @ K @ V))
    left = np.trace((V - W).T @ K @ (V - W))
    assert left > 2 * np.sqrt(2) * np.trace(K - F @ F.T)


@every_seed
def test_greedy_pivots_draw_nothing(seed):
    X = cloud(seed)
    factors = [fitted(GREEDY["cholesky-greedy"], X, seed=other) for other in (seed, seed + 50)]
    assert np.array_equal(factors[0].pivot_ids, factors[1].pivot_ids)
    assert np.array_equal(factors[0].training_rows, factors[1].training_rows)


@pytest.mark.parametrize("line", CONFIGURATIONS)
def test_every_line_of_the_method_table_separates_rings(line):
    X, y = ring_and_core(400, random_state=0)
    public = {name: getattr(mercer, name) for name in mercer.__all__}
    model = eval(line, public, {"k": 2, "s": 60, "R": 60, "sigma": 1.0})
    labels = model.set_params(n_init=3, random_state=0).fit_predict(X)
    assert accuracy(y, labels) > 0.99


def test_accuracy_has_no_variance_with_greedy_pivots_and_a_fixed_seed():
    X, y = make_blobs(400, 2, centers=4, cluster_std=1.5, random_state=0)
    greedy = IncompleteCholesky(50, pivots="greedy")
    model = KernelKMeans(4, gamma="median", approximation=greedy, random_state=0)
    scores = [accuracy(y, model.fit_predict(X)) for _ in SEEDS]
    assert max(scores) == min(scores)
    assert 0.5 < scores[0] < 1


# Incomplete Cholesky


@every_seed
@pytest.mark.parametrize("d", [2, 50])
def test_block_of_one_is_the_textbook_pivot_by_pivot(seed, d):
    X = cloud(seed, n=300, d=d)
    kernel = RBF(GAMMA / d)
    sample = as_sample(kernel, X)
    factor = fitted(GREEDY["cholesky-textbook"], sample, rank=40, kernel=kernel)
    textbook = pivoted_cholesky(kernel, sample.rows, rank=40)
    assert np.array_equal(factor.pivot_ids, textbook.pivots)
    assert np.abs(factor.training_rows - textbook.F).max() < TOL[X.dtype]
    assert factor.trace_error == pytest.approx(textbook.error, rel=1e-6)


@every(GREEDY)
@every_seed
@every_dtype
def test_first_pivot_of_rbf_is_row_0(make, seed, dtype):
    assert fitted(make, cloud(seed, dtype=dtype)).pivot_ids[0] == 0


@every({name: make for name, make in PROJECTIONS.items() if "cholesky" in name})
@every_seed
@every_dtype
def test_duplicates_never_both_become_pivots(make, seed, dtype):
    X = np.tile(cloud(seed, n=25, dtype=dtype), (4, 1))
    factor = fitted(make, X, rank=60, seed=seed)
    assert len(np.unique(factor.pivot_ids % 25)) == factor.rank <= 25


@every(PROJECTIONS)
@every_seed
def test_duplicates_never_both_become_pivots_in_an_estimator(make, seed):
    X = np.tile(cloud(seed, n=25), (4, 1))
    factor = KernelFeatures(approximation=make(60), random_state=seed).fit(X).factor_
    assert len(np.unique(factor.pivots, axis=0)) == len(factor.pivots) <= 25


# Nyström


@every_seed
def test_equal_pivots_do_no_harm(seed):
    X = np.tile(cloud(seed, n=25), (4, 1))
    factor = fitted(RANDOM["nystrom-uniform"], X, rank=90, seed=seed)
    assert np.abs(gram(factor.rows(X)) - kernel_matrix(X)).max() < TOL[X.dtype]


@every_seed
def test_a_row_like_nothing_is_no_pivot(seed):
    X = np.vstack([np.zeros((50, 2)), np.eye(2)])
    factor = fitted(RANDOM["nystrom-uniform"], X, rank=2, seed=seed, kernel=Cosine())
    assert np.array_equal(factor.pivot_ids, [50, 51])
    assert factor.trace_error == 0


def test_cutoff_leaves_out_small_eigenvalues():
    X = cloud(0)
    K = kernel_matrix(X)
    values = np.linalg.eigvalsh(K)
    for cutoff in (0.5, 0.1, 1e-3):
        factor = fitted(lambda rank, cutoff=cutoff: Nystrom(rank, cutoff=cutoff), X, rank=len(X))
        assert factor.rank == (values > cutoff * values[-1]).sum()
        kept = np.linalg.eigvalsh(gram(factor.training_rows))[::-1]  # F Fᵀ: K without the rest
        assert np.allclose(kept[: factor.rank], values[::-1][: factor.rank])
        assert np.allclose(kept[factor.rank :], 0, atol=1e-10)


def test_uniform_sampling_draws_in_proportion_to_weight():
    X = cloud(0, n=40)
    weights = np.where(np.arange(40) < 4, 50.0, 1.0)
    sample = as_sample(KERNEL, X, weights)
    counts = np.zeros(40)
    for seed in range(400):
        counts[fitted(RANDOM["nystrom-uniform"], sample, rank=1, seed=seed).pivot_ids] += 1
    share = weights / weights.sum()
    assert np.abs(counts[:4] / 400 - share[:4]).max() < 5 * np.sqrt(share[0] / 400)
    assert counts[:4].sum() / 400 == pytest.approx(200 / 236, abs=5 * np.sqrt(0.13 / 400))


@pytest.mark.parametrize("sampling", ["uniform", "leverage", "kmeans"])
def test_weights_of_any_size_can_be_drawn_by(sampling):
    X = cloud(0, n=300)
    weights = np.geomspace(1e-300, 1e300, 300)
    factor = Nystrom(20, sampling=sampling).fit(
        KERNEL, as_sample(KERNEL, X, weights), rng=np.random.default_rng(0)
    )
    assert np.isfinite(factor.mix).all()
    assert factor.trace_error < 0.05  # the heaviest rows are all there is


@every_seed
def test_ridge_scores_of_a_full_sample_are_exact(seed):
    """With S = I they are the diagonal of K(K + λI)⁻¹; a weight of 2 is two equal rows' sum."""
    X = cloud(seed, n=30)
    rows = np.arange(30)
    kept = {"n_directions": 5, "threads": 1}
    K = kernel_matrix(X)
    ridge = np.linalg.eigvalsh(K)[:-5].sum() / 5
    expected = np.diag(K @ np.linalg.inv(K + ridge * np.eye(30)))
    scores = _ridge_scores(KERNEL, as_sample(KERNEL, X), rows, rows, np.ones(30), **kept)
    assert np.allclose(scores, expected)

    weights = 1.0 + (rows < 10)
    double = _ridge_scores(KERNEL, as_sample(KERNEL, X, weights), rows, rows, np.ones(30), **kept)
    twice = np.concatenate([X, X[:10]])
    every_row = np.arange(40)
    single = _ridge_scores(
        KERNEL, as_sample(KERNEL, twice), every_row, every_row, np.ones(40), **kept
    )
    summed = single[:30].copy()
    summed[:10] += single[30:]
    assert np.allclose(double, np.minimum(summed, 1.0))


def mostly_alike():
    """3,000 rows that are nearly the same to the kernel, but for the first 30."""
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0, 5, (30, 2)), rng.normal(0, 0.1, (2970, 2))])


def test_leverage_draws_rare_rows_that_uniform_misses():
    X, rare = mostly_alike(), {}
    for name in ("nystrom-uniform", "nystrom-leverage"):
        factors = [fitted(RANDOM[name], X, rank=20, seed=seed) for seed in SEEDS]
        rare[name] = sum((factor.pivot_ids < 30).sum() for factor in factors)
    assert rare["nystrom-leverage"] > 5 * rare["nystrom-uniform"]


@every({name: RANDOM[name] for name in ("nystrom-leverage", "nystrom-kmeans")})
def test_dearer_sampling_leaves_a_smaller_error(make):
    plain, better = (
        np.mean([fitted(way, mostly_alike(), seed=seed).trace_error for seed in SEEDS])
        for way in (RANDOM["nystrom-uniform"], make)
    )
    assert better < 0.9 * plain


def test_centres_look_only_at_the_columns_of_the_kernel():
    X = cloud(0, n=500, d=3)
    noise = np.random.default_rng(1).normal(size=(500, 1)) * 1000
    kernel = RBF(GAMMA, columns=[0, 1, 2])
    plain = fitted(RANDOM["nystrom-kmeans"], X, kernel=kernel)
    noisy = fitted(RANDOM["nystrom-kmeans"], np.hstack([X, noise]), kernel=kernel)
    assert noisy.trace_error == pytest.approx(plain.trace_error, rel=1e-9)
    assert (noisy.pivot_ids == NO_ROW).all()


@pytest.mark.parametrize(
    ("X", "kernel", "what"),
    [
        (sp.csr_array(np.eye(5)), RBF(1.0), "sparse rows"),
        ({"a": np.eye(5)}, RBF(1.0, columns="a"), "column blocks"),
        (np.arange(5.0)[:, None], GramMatrix(np.eye(5)), "a precomputed kernel"),
    ],
)
def test_kmeans_says_where_there_are_no_means(X, kernel, what):
    with pytest.raises(ValueError, match=f"sampling='kmeans' needs dense rows.*{what}"):
        fitted(RANDOM["nystrom-kmeans"], X, rank=2, kernel=kernel)


# Random Fourier features


@pytest.mark.parametrize(
    ("kernel", "orthogonal"),
    [(RBF(0.4), False), (RBF(0.4), True), (Laplacian(0.3), False)],
    ids=["rbf", "rbf-orthogonal", "laplacian"],
)
@pytest.mark.parametrize("rank", [1, 4, 9])
def test_waves_are_unbiased(kernel, orthogonal, rank):
    """The mean of F Fᵀ over 500 draws is K within 5 standard errors, for every pair of rows."""
    X = cloud(0, n=6, d=4)
    draws = np.stack(
        [
            gram(
                RandomFourier(rank, orthogonal=orthogonal)
                .fit(kernel, X, rng=np.random.default_rng(seed))
                .training_rows
            )
            for seed in range(500)
        ]
    )
    standard_error = draws.std(axis=0) / np.sqrt(len(draws)) + 1e-12
    assert (np.abs(draws.mean(axis=0) - kernel(X)) / standard_error).max() < 5


@every(WAVES)
def test_rows_of_waves_have_length_1(make):
    X = cloud(0)
    F = fitted(make, X, rank=30).rows(X)
    assert np.allclose((F**2).sum(axis=1), 1.0)


@every(WAVES)
@every_seed
def test_kernel_error_is_what_it_says(make, seed):
    X = cloud(seed)
    factor = fitted(make, X, rank=30, seed=seed)
    K = kernel_matrix(X)
    expected = np.linalg.norm(K - gram(factor.rows(X))) / np.linalg.norm(K)
    assert factor.trace_error is None
    assert factor.kernel_error == pytest.approx(expected, rel=1e-9)


def test_orthogonal_waves_are_orthogonal_and_err_less():
    X = cloud(0, d=8)
    plain, orthogonal = ([fitted(make, X, seed=s) for s in SEEDS] for make in WAVES.values())
    W = orthogonal[0].waves
    assert np.allclose(W[:8] @ W[:8].T, np.diag((W[:8] ** 2).sum(axis=1)))
    assert np.mean([f.kernel_error for f in orthogonal]) < np.mean([f.kernel_error for f in plain])


@pytest.mark.parametrize("d", [3, 50])
@pytest.mark.parametrize("kernel", [RBF(0.1), Laplacian(0.1)])
def test_a_row_of_waves_does_not_depend_on_its_neighbours(kernel, d):
    X = cloud(0, n=700, d=d)
    factor = RandomFourier(33).fit(kernel, X, rng=np.random.default_rng(0))
    whole = factor.rows(X)
    assert all(np.array_equal(factor.rows(X[i : i + 1])[0], whole[i]) for i in range(0, 700, 23))
    assert np.array_equal(factor.rows(X[::-1])[::-1], whole)


@pytest.mark.parametrize("kind", ["table", "blocks"])
def test_waves_look_only_at_the_columns_of_the_kernel(kind):
    X = cloud(0, d=5)
    given = X if kind == "table" else {"left": X[:, :2], "right": sp.csr_array(X[:, 2:])}
    columns = [0, 1] if kind == "table" else "left"
    chosen = fitted(WAVES["fourier"], given, kernel=RBF(GAMMA, columns=columns))
    alone = fitted(WAVES["fourier"], X[:, :2])
    assert np.allclose(chosen.rows(given), alone.rows(X[:, :2]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [Cosine(), 2 * RBF(1.0), RBF(1.0) + RBF(2.0)], ids=repr)
def test_waves_refuse_a_kernel_without_a_known_spectrum(kernel):
    with pytest.raises(ValueError, match=r"RandomFourier cannot represent .*RBF and Laplacian"):
        fitted(WAVES["fourier"], cloud(0), kernel=kernel)


def test_orthogonal_waves_refuse_a_spectrum_with_directions():
    with pytest.raises(ValueError, match=r"orthogonal=True needs .*Laplacian does not"):
        fitted(WAVES["fourier-orthogonal"], cloud(0), kernel=Laplacian(1.0))


# Parameters, names, documentation


@pytest.mark.parametrize(
    ("approximation", "message"),
    [
        (Nystrom(0), "rank=0 must be"),
        (Nystrom(2.5), r"rank=2\.5 must be"),
        (Nystrom(sampling="best"), "sampling='best' is unknown"),
        (Nystrom(cutoff=1.0), r"cutoff=1\.0 must be"),
        (Nystrom(cutoff=-0.1), r"cutoff=-0\.1 must be"),
        (RandomFourier(0), "rank=0 must be"),
    ],
)
def test_parameters_out_of_range(approximation, message):
    with pytest.raises(ValueError, match=message):
        approximation.fit(KERNEL, cloud(0), rng=np.random.default_rng(0))


@pytest.mark.parametrize(("name", "kind"), [("nystrom", Nystrom), ("fourier", RandomFourier)])
def test_approximations_by_name(name, kind):
    made = as_approximation(name, 17, default_rank=256)
    assert isinstance(made, kind)
    assert made.rank == 17


@pytest.mark.parametrize("sampling", ["uniform", "leverage"])
def test_a_precomputed_kernel_is_as_good_as_rows(sampling):
    X = cloud(0)
    items = Sample(
        np.arange(120.0)[:, None], np.ones(120), np.arange(120), as_sample(Cosine(), X).format
    )
    approximation = Nystrom(20, sampling=sampling)
    given = approximation.fit(GramMatrix(KERNEL(X)), items, rng=np.random.default_rng(0))
    rows = approximation.fit(KERNEL, X, rng=np.random.default_rng(0))
    assert np.array_equal(given.pivot_ids, rows.pivot_ids)
    assert given.trace_error == pytest.approx(rows.trace_error, rel=1e-6)


@pytest.mark.parametrize("sampling", ["uniform", "leverage"])
@every_seed
def test_a_precomputed_kernel_in_single_precision(sampling, seed):
    """Its eigenvalues of rounding size are those of float32, whatever the items' type."""
    X = cloud(seed)
    K = RBF(0.01)(X)
    items = as_sample(Cosine(), np.arange(120.0)[:, None])
    factor = Nystrom(60, sampling=sampling).fit(
        GramMatrix(K.astype(np.float32)), items, rng=np.random.default_rng(seed)
    )
    assert factor.rank < 40
    assert np.abs(gram(factor.training_rows) - K).max() < 1e-2


@pytest.mark.parametrize("module", ["cholesky", "nystrom", "fourier"])
def test_examples_in_docstrings(module):
    results = doctest.testmod(importlib.import_module(f"mercer.factors.{module}"))
    assert results.attempted > 0
    assert results.failed == 0
