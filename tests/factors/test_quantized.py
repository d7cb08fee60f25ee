"""Block-quantised kernels: blocks, their eigenproblems, and the factor made of them."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from marking import seeds
from mercer import RBF, Cosine, KernelKMeans, Laplacian, Quantized, SpectralClustering
from mercer.datasets import rings
from mercer.embeddings.angles import angle_bound
from mercer.factors import quantized
from mercer.factors.base import as_sample
from mercer.factors.quantized import (
    TooManyBlocksError,
    block_objective,
    block_scale,
    block_values,
    fine_block_sums,
    move_representatives,
    quantize,
    sequential_sample,
)
from reference import quantized_eigen

SEEDS = range(5)
NORMALIZATIONS = ("none", "additive", "divisive")
KERNELS = {
    "rbf": RBF(0.2),
    "laplacian": Laplacian(0.3),
    "sum": 0.5 * RBF(0.1) + 2.0 * Laplacian(0.2),
    "product": RBF(0.1, columns=[0, 2]) * RBF(0.3, columns=[1]),
}
every_seed = seeds(len(SEEDS), quick=3)
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
every_normalization = pytest.mark.parametrize("normalization", NORMALIZATIONS)
either = pytest.mark.parametrize("correction", [False, True])


def cloud(seed, n=300, d=3, dtype=np.float64):
    X = np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)
    X.flags.writeable = False
    return X


def first_hits(X, radius):
    """Sequential sampling as the paper says it, row by row."""
    ids, labels = [], []
    for i, x in enumerate(np.asarray(X, np.float64)):
        near = [j for j, c in enumerate(ids) if ((x - X[c]) ** 2).sum() <= radius**2]
        if not near:
            ids.append(i)
        labels.append(near[0] if near else len(ids) - 1)
    return np.array(ids), np.array(labels)


def normalized(W, normalization):
    if normalization == "additive":
        return W - W.mean(axis=0) - W.mean(axis=1)[:, None] + W.mean()
    if normalization == "divisive":
        d = W.sum(axis=1)
        return W / np.sqrt(np.outer(d, d))
    return W


def blocks_of(X, radius=0.8):
    ids, labels = sequential_sample(X, radius)
    return labels, quantize(X, labels, len(ids))


# sampling


@every_seed
@pytest.mark.parametrize(("d", "radius"), [(1, 0.1), (3, 0.8), (40, 7.5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sequential_sampling_takes_the_first_within_reach(seed, d, radius, dtype):
    X = cloud(seed, d=d, dtype=dtype)
    ids, labels = sequential_sample(X, radius)
    wanted_ids, wanted_labels = first_hits(X.astype(np.float64), radius)
    assert np.array_equal(ids, wanted_ids)
    assert np.array_equal(labels, wanted_labels)


def test_neighbours_first_has_the_same_representatives_and_smoother_blocks():
    height, width = 20, 30
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    X = np.stack([x, y, 20 * (x > 14) + rng.normal(size=x.shape)], axis=-1).reshape(-1, 3) * 1.0
    ids, labels = sequential_sample(X, 6.0)
    same, smooth = sequential_sample(X, 6.0, width=width)
    assert np.array_equal(ids, same)
    assert (np.linalg.norm(X - X[same[smooth]], axis=1) <= 6.0).all()
    edges = [(np.diff(lab.reshape(height, width)) != 0).sum() for lab in (labels, smooth)]
    assert edges[1] <= edges[0]


def test_masked_rows_have_no_block():
    X = cloud(0)
    mask = np.arange(len(X)) % 3 > 0
    ids, labels = sequential_sample(X, 0.8, mask=mask)
    alone_ids, alone = sequential_sample(X[mask], 0.8)
    assert np.array_equal(labels[mask], alone)
    assert (labels[~mask] == -1).all()
    assert np.array_equal(ids, np.flatnonzero(mask)[alone_ids])


def test_a_radius_that_makes_too_many_blocks_is_refused_with_an_estimate():
    X = cloud(0, n=4000)
    true = len(sequential_sample(X, 0.2)[0])
    with pytest.raises(TooManyBlocksError, match=r"by estimate [\d,]+ for 4,000 rows") as caught:
        sequential_sample(X, 0.2, limit=500)
    estimate = int(str(caught.value).split("estimate ")[1].split(" ")[0].replace(",", ""))
    assert 0.5 * true < estimate <= len(X)
    with pytest.raises(ValueError, match="raise radius"):
        Quantized(radius=1e-3, rank=50).fit(RBF(0.5), X, rng=np.random.default_rng(0))


# eigenproblems


@pytest.mark.numeric
@either
@every_kernel
@every_normalization
def test_block_eigenvalues_are_those_of_the_whole_matrix(normalization, kernel, correction):
    X = cloud(1)
    labels, blocks = blocks_of(X)
    found = quantized_eigen(blocks, kernel, 4, correction=correction, normalization=normalization)
    W = block_values(blocks, kernel, correction=correction)[np.ix_(labels, labels)]
    wanted = np.linalg.eigvalsh(normalized(W, normalization))[::-1][:4]
    assert np.abs(found.values - wanted).max() < 1e-10 * wanted[0]
    vectors = found.vectors[labels]
    assert np.allclose(vectors.T @ vectors, np.eye(4), atol=1e-9)
    residual = normalized(W, normalization) @ vectors - vectors * found.values
    assert np.abs(residual).max() < 1e-9 * wanted[0]


@pytest.mark.numeric
@every_kernel
@every_normalization
def test_extension_at_a_representative_is_the_eigenvector(normalization, kernel):
    _, blocks = blocks_of(cloud(2))
    found = quantized_eigen(blocks, kernel, 3, correction=False, normalization=normalization)
    K = kernel.matrix(blocks.representatives, blocks.representatives)
    extended = K @ found.C + found.offset
    if normalization == "divisive":
        extended /= np.sqrt(K @ found.degree)[:, None]
    assert np.abs(extended - found.vectors).max() < 1e-12


def test_extension_with_the_correction_has_the_mean_of_a_block_right():
    """A representative is nearer to all rows than the rows it stands for: φ_i / g_i."""
    _, blocks = blocks_of(cloud(2))
    found = quantized_eigen(blocks, RBF(0.2), 3)
    scale = block_scale(blocks, RBF(0.2), correction=True)
    extended = RBF(0.2).matrix(blocks.representatives, blocks.representatives) @ found.C
    assert np.abs(scale[:, None] * extended - found.vectors).max() < 1e-12
    assert (scale <= 1).all()
    assert scale.min() < 1


@pytest.mark.numeric
@every_kernel
@every_normalization
def test_no_radius_at_all_is_the_dense_reference(normalization, kernel):
    X = cloud(3, n=120)
    _, blocks = blocks_of(X, 1e-9)
    assert len(blocks) == len(X)
    found = quantized_eigen(blocks, kernel, 3, normalization=normalization)
    wanted = np.linalg.eigvalsh(normalized(kernel.matrix(X, X), normalization))[::-1][:3]
    assert np.abs(found.values - wanted).max() < 1e-10 * wanted[0]


@every_seed
def test_the_variance_correction_brings_the_block_matrix_nearer(seed):
    X, kernel = cloud(seed, d=8), RBF(0.05)
    labels, blocks = blocks_of(X, 3.0)
    W = kernel.matrix(X, X)
    errors = [
        np.linalg.norm(W - block_values(blocks, kernel, correction=c)[np.ix_(labels, labels)])
        for c in (False, True)
    ]
    assert errors[1] < 0.7 * errors[0]


def test_the_correction_is_left_out_where_it_is_not_valid():
    _, blocks = blocks_of(cloud(0))
    for kernel in (Laplacian(0.3), RBF(0.1) + Laplacian(0.2)):
        assert (block_scale(blocks, kernel, correction=True) == 1).all()
    both = block_scale(blocks, RBF(0.1) * (2.0 * RBF(0.2)), correction=True)
    assert np.allclose(both, block_scale(blocks, RBF(0.3), correction=True))


# the gradient


@pytest.mark.numeric
@every_seed
@either
def test_the_gradient_step_never_raises_the_objective(seed, correction):
    X, kernel = cloud(seed), RBF(0.3)
    labels, blocks = blocks_of(X, 1.5)
    B = fine_block_sums(kernel, X, np.ones(len(X)), labels, len(blocks), 0.7)
    scale = block_scale(blocks, kernel, correction=correction)
    before, slope = block_objective(kernel, blocks.representatives, blocks.weights, B, scale)
    moved = move_representatives(kernel, blocks, B, scale)
    after, _ = block_objective(kernel, moved, blocks.weights, B, scale)
    assert after <= before
    assert after < before or np.abs(slope).max() < 1e-6 * abs(before)


def test_the_gradient_is_that_of_the_objective():
    X, kernel = cloud(0), RBF(0.3)
    labels, blocks = blocks_of(X, 1.5)
    n, T, scale = blocks.weights, blocks.representatives, np.ones(len(blocks))
    B = fine_block_sums(kernel, X, np.ones(len(X)), labels, len(blocks), 0.7)
    _, slope = block_objective(kernel, T, n, B, scale)
    step = np.random.default_rng(0).normal(size=T.shape)
    ends = [block_objective(kernel, T + h * step, n, B, scale)[0] for h in (-1e-5, 1e-5)]
    assert np.isclose((ends[1] - ends[0]) / 2e-5, (slope * step).sum(), rtol=1e-6)


def test_fine_sums_are_the_sums_over_rows_where_pieces_are_rows():
    X, kernel = cloud(0, n=80), RBF(0.3)
    labels, blocks = blocks_of(X, 1.5)
    B = fine_block_sums(kernel, X, np.ones(len(X)), labels, len(blocks), 1e-9)
    P = np.eye(len(blocks))[labels]
    assert np.allclose(B, P.T @ kernel.matrix(X, X) @ P)


# the factor


@every_kernel
def test_every_row_for_itself_is_the_kernel(kernel):
    X = cloud(0, n=100)
    factor = Quantized(rank=100).fit(kernel, X, rng=np.random.default_rng(0))
    F = factor.rows(X)
    assert np.abs(F @ F.T - kernel(X)).max() < 1e-5
    assert factor.trace_error < 1e-5
    assert factor.kernel_error < 1e-12


@pytest.mark.numeric
@every_kernel
@pytest.mark.parametrize("refine", [None, "kmeans"])
@pytest.mark.parametrize("size", [{"radius": 0.8}, {"rank": 40}])
def test_rows_of_blocks_are_a_factor_of_the_block_matrix(kernel, refine, size):
    X = cloud(4)
    factor = Quantized(refine=refine, **size).fit(kernel, X, rng=np.random.default_rng(0))
    F = factor.block_rows()
    wanted = block_values(factor.quantization, kernel, correction=True)
    assert np.abs(F @ F.T - wanted).max() < 1e-9
    assert np.isclose(factor.block_weights.sum(), len(X))
    assert np.allclose(factor.rows(X), factor.training_rows, atol=1e-9)


@pytest.mark.numeric
def test_weights_are_rows_twice():
    X = cloud(5, n=200)
    w = np.random.default_rng(0).integers(1, 4, len(X))
    made = Quantized(radius=0.8, refine=None)
    weighted = made.fit(RBF(0.2), as_sample(RBF(0.2), X, w), rng=np.random.default_rng(0))
    repeated = made.fit(RBF(0.2), np.repeat(X, w, axis=0), rng=np.random.default_rng(0))
    assert np.allclose(weighted.block_weights, repeated.block_weights)
    shift = weighted.format.shift - repeated.format.shift
    assert np.allclose(weighted.pivots + shift, repeated.pivots)


@pytest.mark.numeric
@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_threads_gives_the_same(threads):
    X = cloud(6, n=20_000)
    factor = Quantized(rank=50).fit(RBF(0.2), X, rng=np.random.default_rng(0), threads=threads)
    alone = Quantized(rank=50).fit(RBF(0.2), X, rng=np.random.default_rng(0))
    assert np.array_equal(factor.mix, alone.mix)


def test_sparse_rows_are_dense_rows():
    X = np.abs(cloud(7)) * (cloud(8) > 0)
    rows = [X - X.mean(axis=0), sp.csr_array(X)]
    factors = [Quantized(radius=0.5).fit(RBF(0.2), x, rng=np.random.default_rng(0)) for x in rows]
    assert np.allclose(factors[0].rows(rows[0]), factors[1].rows(rows[1]), atol=1e-8)


@pytest.mark.parametrize(
    ("made", "kernel", "words"),
    [
        (Quantized(), Cosine(), "mean of near rows"),
        (Quantized(refine="gradient"), Laplacian(1.0), "RBF only"),
        (Quantized(radius=-1.0), RBF(1.0), "radius=-1.0 must be a positive number"),
        (Quantized(rank=0), RBF(1.0), "rank=0 must be None or a whole number"),
        (Quantized(refine="much"), RBF(1.0), "refine='much' is unknown"),
    ],
)
def test_what_cannot_work_is_refused(made, kernel, words):
    with pytest.raises(ValueError, match=words):
        made.fit(kernel, cloud(0), rng=np.random.default_rng(0))


def test_column_blocks_are_refused():
    blocks = {"a": cloud(0), "b": cloud(1)}
    with pytest.raises(ValueError, match="one table of columns"):
        Quantized().fit(RBF(0.5, columns="a"), blocks, rng=np.random.default_rng(0))


# spectral clustering


@every_seed
@pytest.mark.parametrize("size", [{}, {"approximation": Quantized(radius=0.15)}])
def test_spectral_clustering_finds_rings(seed, size):
    X, y = rings(3000, random_state=seed)
    model = SpectralClustering(
        3, **{"approximation": "quantized", "gamma": 20.0} | size, random_state=seed
    )
    assert adjusted_rand_score(y, model.fit_predict(X)) > 0.99
    assert any("Davis-Kahan" in note for note in model.report_.notes)


def test_its_eigenvalues_are_those_of_the_normalised_cut_of_blocks():
    X, _ = rings(1000, random_state=0)
    model = SpectralClustering(3, approximation="quantized", random_state=0).fit(X)
    factor = model.factor_  # its kernel and its blocks are in one unit
    direct = quantized_eigen(factor.quantization, factor.kernel, 4, normalization="divisive")
    assert np.allclose(model.eigenvalues_, direct.values, atol=1e-8)


def test_too_few_representatives_for_the_clusters():
    X, _ = rings(1000, random_state=0)
    with pytest.raises(ValueError, match="cannot separate n_clusters=3; lower radius"):
        SpectralClustering(3, approximation=Quantized(radius=100.0), random_state=0).fit(X)


def test_a_sample_chooses_for_many_rows():
    X, y = rings(120_000, random_state=0)
    model = SpectralClustering(3, approximation="quantized", gamma=20.0, random_state=0)
    assert adjusted_rand_score(y, model.fit_predict(X)) > 0.99


def test_kernel_kmeans_takes_it_too():
    X = np.concatenate([cloud(0) - 4, cloud(1) + 4])
    labels = KernelKMeans(2, approximation="quantized", rank=30, random_state=0).fit_predict(X)
    assert adjusted_rand_score(np.repeat([0, 1], 300), labels) == 1.0


def test_the_angle_is_bounded_by_davis_and_kahan():
    rng = np.random.default_rng(0)
    A = np.diag([5.0, 4.0, 1.0, 0.5, 0.1])
    for size in (0.01, 0.1, 0.5):
        E = rng.normal(size=A.shape)
        E = size * (E + E.T) / np.linalg.norm(E + E.T, 2)
        values, vectors = np.linalg.eigh(A + E)
        turn = np.linalg.norm(vectors[2:, ::-1][:, :2], 2)
        bound = angle_bound(size, values[-2] - values[-3])
        assert bound is not None
        assert turn <= bound
    assert angle_bound(1.0, 1.5) is None


def test_docstrings():
    assert doctest.testmod(quantized).failed == 0
