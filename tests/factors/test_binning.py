"""Random binning: the kernel it stands for, its exact savings, and what is made of it."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import mercer
from mercer import KernelFeatures, KernelKMeans, Laplacian, RandomBinning, SpectralClustering
from mercer.exceptions import ModelFileError
from mercer.factors.base import as_sample
from mercer.factors.binning import BinGraph, bin_components
from mercer.metrics import normalized_mutual_info


def rng(seed=0):
    return np.random.default_rng(seed)


def cloud(n=120, d=3, seed=0):
    return rng(seed).normal(size=(n, d))


def slow_bins(factor, X):
    """Cells of every row in every grid, in all dimensions that divide the box: obvious and slow."""
    grids = factor.grids
    rows = np.clip(factor.format.apply(X), grids.low, grids.high)
    rows = rows.toarray() if sp.issparse(rows) else rows
    bins = []
    for g in range(len(grids)):
        low, _, dims, scales, biases = grids.grid(g)
        cells = np.floor((rows[:, dims] - low[dims]) * scales + biases)
        bins.append([tuple(row) for row in cells])
    return bins


def dense_kernel(factor, X):
    """Z Zᵀ of all bins, one or many rows in them."""
    K = np.zeros((len(X), len(X)))
    for cells in slow_bins(factor, X):
        numbers = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
        ids = np.array([numbers[cell] for cell in cells])
        K += ids[:, None] == ids
    return K / factor.rank


def test_the_share_of_common_bins_is_the_kernel():
    X = cloud(40)
    for gamma in (0.2, 1.0):
        factor = RandomBinning(20_000).fit(Laplacian(gamma), X, rng=rng())
        graph = BinGraph(factor)
        K = graph.product(np.eye(len(X))) + np.diag(graph.diagonal())
        exact = Laplacian(gamma)(X)
        deviation = (K - exact) / np.sqrt(np.maximum(exact * (1 - exact), 1e-9) / factor.rank)
        off = ~np.eye(len(X), dtype=bool)
        assert np.abs(deviation[off]).max() < 5  # 780 pairs of nearly normal numbers
        assert abs(deviation[off].mean()) < 3  # grids are shared by all pairs
        assert np.allclose(np.diag(K), 1.0)


@pytest.mark.numeric
@pytest.mark.parametrize("gamma", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("n", [60, 300])
def test_products_degrees_and_diagonal_equal_those_of_the_dense_matrix(gamma, n):
    X = cloud(n, seed=n)
    factor = RandomBinning(37).fit(Laplacian(gamma), X, rng=rng(1))
    K, graph = dense_kernel(factor, X), BinGraph(factor)
    tied = graph.is_connected()
    V = rng(2).normal(size=(n, 5))
    expected = (K @ V)[tied]
    found = graph.product(V) + graph.diagonal()[:, None] * V
    # a row that is in bins of its own only has no ties at all
    alone = (K - np.eye(n)).max(axis=1) == 0
    assert np.array_equal(tied, ~alone | (n <= 100))
    np.testing.assert_allclose(found[tied], expected, atol=1e-12)
    one = graph.product(V[:, 0]) + graph.diagonal() * V[:, 0]
    np.testing.assert_allclose(one[tied], expected[:, 0], atol=1e-12)


@pytest.mark.numeric
def test_threads_do_not_change_a_bit():
    X = cloud(2000)
    one, two = (RandomBinning(50).fit(Laplacian(1.0), X, rng=rng(), threads=t) for t in (1, 2))
    assert np.array_equal(one.training_bins.ids, two.training_bins.ids)
    v = rng(1).normal(size=len(X))
    assert np.array_equal(BinGraph(one, 1).product(v), BinGraph(two, 2).product(v))


def test_skipped_dimensions_change_nothing():
    """A dimension is skipped where all rows are in one cell: the bins are those of all."""
    X = np.c_[cloud(200), 1e-3 * cloud(200, 2, seed=1), np.full(200, 5.0)]
    factor = RandomBinning(64).fit(Laplacian(0.3), X, rng=rng(3))
    grids = factor.grids
    assert len(grids.dims) < grids.starts[-1] + 1 < 64 * X.shape[1]
    draw, low, high = rng(3), grids.low, grids.high
    for g in range(64):
        scales, biases = 0.3 / draw.gamma(2.0, 1.0, 6), draw.random(6)
        cells = np.floor((factor.format.apply(X) - low) * scales + biases)
        _, full = np.unique(cells, axis=0, return_inverse=True)
        _, skipped = np.unique(cells[:, grids.grid(g)[2]], axis=0, return_inverse=True)
        assert np.array_equal(full.ravel(), skipped.ravel())
    assert (high >= low).all()


def test_rows_of_the_fit_and_new_rows_find_the_same_bins():
    X = cloud(500)
    factor = RandomBinning(40).fit(Laplacian(1.0), X, rng=rng())
    table = rng(1).normal(size=(len(factor.bins), 4)).astype(np.float32)
    sample = as_sample(factor.kernel, X)
    at_hand = factor.sums_of_training(sample, table)
    assert np.array_equal(factor.sums(sample.rows, table), at_hand)
    pieces = [factor.sums(sample.rows[i : i + 7], table) for i in range(0, 500, 7)]
    assert np.array_equal(np.concatenate(pieces), at_hand)
    Z = factor.rows(X)
    assert Z.shape == (500, len(factor.bins))
    np.testing.assert_allclose((Z @ table) * np.sqrt(40), at_hand, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_fall_into_the_bins_of_dense_ones(dtype):
    X = (cloud(300, 8) * (rng(5).random((300, 8)) < 0.4)).astype(dtype)
    X[:, 7] = np.abs(X[:, 7]) + 1  # a column without zeros
    kernel = Laplacian(0.7)
    dense = RandomBinning(30).fit(kernel, X, rng=rng())
    sparse = RandomBinning(30).fit(kernel, sp.csr_array(X), rng=rng())
    same = dense.training_bins.ids == sparse.training_bins.ids
    assert same.mean() > 0.999  # but for rounding of the dense rows' shift
    K = dense_kernel(sparse, sp.csr_array(X).toarray())
    graph = BinGraph(sparse)
    tied = graph.is_connected()
    found = graph.product(np.eye(300)) + np.diag(graph.diagonal())
    np.testing.assert_allclose(found[tied], K[tied], atol=1e-12)


@pytest.mark.numeric
def test_eigenvectors_are_those_of_the_dense_graph():
    X = cloud(90)  # few rows: every bin is kept
    factor = RandomBinning(64).fit(Laplacian(0.5), X, rng=rng())
    sample = as_sample(factor.kernel, X, rng(1).integers(1, 4, 90))
    found = factor.spectral_map(sample, 4, solver="auto", rng=rng())
    K, w = dense_kernel(factor, X), sample.weights
    s = np.sqrt(w / (K @ w))
    values, vectors = np.linalg.eigh(s[:, None] * K * s)
    np.testing.assert_allclose(found.values, values[::-1][:4], atol=1e-10)
    assert found.residuals.max() < 1e-8
    expected = vectors[:, ::-1][:, :4] / s[:, None]  # Σ_j K_ij s_j u_j / λ
    for a, b in zip(found.points.T, expected.T, strict=True):
        assert abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b) > 1 - 1e-6


@pytest.mark.numeric
@pytest.mark.parametrize("solver", ["arpack", "lobpcg"])
def test_solvers_agree(solver):
    X, y = make_blobs(600, 4, centers=3, random_state=0)
    params = {"approximation": "binning", "random_state": 0}
    dense = SpectralClustering(3, eigen_solver="dense", **params).fit(X)
    other = SpectralClustering(3, eigen_solver=solver, **params).fit(X)
    assert np.allclose(dense.eigenvalues_, other.eigenvalues_, atol=1e-4)
    assert adjusted_rand_score(dense.labels_, other.labels_) == 1.0
    assert adjusted_rand_score(y, other.labels_) == 1.0


def test_more_grids_come_closer_to_exact_spectral_clustering():
    """Theorem 2: the objective of the exact problem, at the subspace that R grids find."""
    X, _ = make_blobs(200, 3, centers=4, cluster_std=2.0, random_state=0)
    K = Laplacian(0.3)(X)
    s = 1 / np.sqrt(K.sum(axis=1))
    M = s[:, None] * K * s
    best = np.linalg.eigvalsh(M)[-4:].sum()

    def loss(n_grids, seed):
        factor = RandomBinning(n_grids).fit(Laplacian(0.3), X, rng=rng(seed))
        K_of_bins = dense_kernel(factor, X)
        t = 1 / np.sqrt(K_of_bins.sum(axis=1))
        U = np.linalg.eigh(t[:, None] * K_of_bins * t)[1][:, -4:]
        return best - np.trace(U.T @ M @ U)

    losses = [np.mean([loss(n, seed) for seed in range(3)]) for n in (8, 64, 512)]
    assert losses[0] > 3 * losses[1] > 9 * losses[2] > 0


def test_rows_in_no_known_bin_get_the_label_of_the_nearest_reference():
    X, y = make_blobs(300, 2, centers=[[0, 0], [40, 0], [0, 40]], random_state=0)
    X = np.r_[X, [[1000.0, 0.0]]]  # alone in all of its bins, and less than 1 % of the weight
    params = {"gamma": 2.0, "approximation": "binning", "rank": 64, "random_state": 0}
    model = SpectralClustering(3, **params).fit(X)
    assert adjusted_rand_score(y, model.labels_[:-1]) > 0.95
    new = np.array([[20.0, 0.0], [0.0, 23.0], [1000.0, 0.0]])
    factor = model.factor_
    hits = factor.rows(new).sum(axis=1)
    assert (hits[:2] == 0).all()
    references = factor.format.undo(factor.references)
    nearest = np.abs(new[:, None] - references).sum(axis=2).argmin(axis=1)
    assert np.array_equal(model.predict(new)[:2], model.predict(references[nearest])[:2])
    assert np.array_equal(model.predict(X), model.labels_)


def test_a_heavy_row_may_be_a_cluster_of_its_own():
    X = np.r_[cloud(200, 2), [[500.0, 500.0]]]
    weights = np.r_[np.ones(200), 100.0]
    model = SpectralClustering(2, approximation="binning", random_state=0)
    labels = model.fit(X, sample_weight=weights).labels_
    assert np.array_equal(labels[:-1] == labels[-1], np.zeros(200, bool))


def test_no_two_rows_in_one_bin_is_said():
    X = cloud(200)
    model = SpectralClustering(3, gamma=1e9, approximation="binning", random_state=0)
    with (
        pytest.warns(mercer.MercerWarning, match="no two rows"),
        pytest.warns(mercer.MercerWarning, match="unconnected parts"),
    ):
        model.fit(X)
    assert np.array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("n", [500, 3000])
def test_no_part_of_the_graph_is_overlooked(n):
    """Six parts: six eigenvalues of 1, of which one start vector sees one."""
    X, y = make_blobs(n, 2, centers=6 * [[0, 0]], random_state=0)
    X += 1000.0 * y[:, None]
    model = SpectralClustering(6, approximation="binning", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.eigenvalues_[:6] == pytest.approx(np.ones(6))
    assert model.eigenvalues_[6] < 0.99


def test_other_kernels_are_refused_with_the_reason():
    X = cloud(30)
    for kernel in ("rbf", "polynomial", mercer.RBF(1.0), "precomputed"):
        with pytest.raises(ValueError, match=r"k'' ≥ 0.*kernel='laplacian'"):
            SpectralClustering(2, kernel=kernel, approximation="binning").fit(X)
    with pytest.raises(ValueError, match="k'' ≥ 0"):
        KernelKMeans(2, approximation="binning").fit(X)
    for bad in ({"rank": 0}, {"rank": 2.5}, {"components": 0}):
        with pytest.raises(ValueError, match="whole number"):
            RandomBinning(**bad).fit(Laplacian(1.0), X, rng=rng())
    with pytest.raises(ValueError, match="ensemble"):
        SpectralClustering(2, ensemble=5, approximation="binning").fit(X)


def test_kernel_k_means_and_features_work_on_the_leading_directions():
    X, y = make_blobs(400, 3, centers=3, random_state=0)
    factor = RandomBinning(200, components=90).fit(Laplacian(0.2), X[:90], rng=rng())
    dense = bin_components(factor, as_sample(factor.kernel, X[:90]), rng=rng())
    F = dense.training_rows
    np.testing.assert_allclose(F @ F.T, dense_kernel(factor, X[:90]), atol=1e-5)
    assert dense.trace_error < 1e-6
    np.testing.assert_allclose(dense.rows(X[:90]), F, atol=1e-12)
    model = KernelKMeans(3, kernel=None, approximation="binning", n_init=10, random_state=0)
    assert adjusted_rand_score(y, model.fit(X).labels_) == 1.0
    assert isinstance(model.kernel_, Laplacian)
    features = KernelFeatures(kernel="laplacian", approximation="binning", random_state=0).fit(X)
    assert features.transform(X).shape == (400, 32)


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cls", [SpectralClustering, KernelKMeans])
def test_models_come_back_from_a_file(cls, rows, tmp_path):
    X, _ = make_blobs(300, 4, centers=3, random_state=0)
    X = rows(X)
    model = cls(3, kernel=None, approximation="binning", rank=32, random_state=0).fit(X)
    model.save(tmp_path / "m.model")
    loaded = mercer.load(tmp_path / "m.model")
    assert np.array_equal(loaded.predict(X), model.labels_)
    assert np.array_equal(loaded.transform(X), model.transform(X))
    with zipfile.ZipFile(tmp_path / "m.model") as file:
        assert not [name for name in file.namelist() if "slots" in name or "training" in name]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("grids.dims", lambda a: a + 9, r"Grids.dims should be in \[0, d\)"),
        ("grids.scales", lambda a: -a, "Grids.scales should be > 0"),
        ("grids.biases", lambda a: a + 1, r"Grids.biases should be in \[0, 1\)"),
        ("grids.starts", lambda a: a[::-1].copy(), "Grids.starts should be sorted"),
        ("bins.starts", lambda a: a * 2, "among the grids"),
        ("bins.keys", lambda a: a * 0, "a bin is listed twice"),
        ("references", lambda a: a[:, :2].copy(), "shift|columns"),
    ],
)
def test_a_file_with_wrong_numbers_is_refused(name, change, words, tmp_path):
    from mercer.io.archive import write_archive

    X, _ = make_blobs(300, 4, centers=3, random_state=0)
    model = SpectralClustering(3, approximation="binning", rank=32, random_state=0).fit(X)
    path = tmp_path / "m.model"
    model.save(path)
    with zipfile.ZipFile(path) as file:
        manifest = json.loads(file.read("manifest.json"))
        arrays = {
            key: np.load(file.open(next(n for n in file.namelist() if n.endswith(f"{key}.npy"))))
            for key in manifest["arrays"]
        }
    member = next(key for key in arrays if key.endswith(name))
    arrays[member] = change(arrays[member])
    manifest.pop("arrays")
    write_archive(path, manifest, arrays)
    with pytest.raises(ModelFileError, match=words):
        mercer.load(path)


def test_a_sample_chooses_and_all_rows_are_labelled():
    from mercer.rows.distinct import EXACT_ROWS

    n = EXACT_ROWS + 5000
    X, y = make_blobs(n, 2, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    model = SpectralClustering(3, approximation="binning", rank=32, random_state=0)
    labels = model.fit(X.astype(np.float32)).labels_
    assert normalized_mutual_info(y, labels) > 0.99
    assert np.array_equal(model.predict(X.astype(np.float32)), labels)
