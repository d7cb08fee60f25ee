"""Graphs between rows themselves: nearest neighbours, given affinities, many cuts of one graph."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from marking import seeds
from mercer import SpectralClustering
from mercer.datasets import gaussian_pair, rings
from mercer.exceptions import MercerWarning
from mercer.factors import Neighbors
from mercer.factors.base import as_sample
from mercer.factors.search import ListSearch
from mercer.kernels import RBF
from mercer.linalg import spanning
from mercer.linalg.eigen import leading_eigenpairs
from mercer.linalg.walks import leading_walk

SEEDS = range(3)
every_seed = pytest.mark.parametrize("seed", SEEDS)


def blobs(seed=0, n=240):
    return make_blobs(n, 2, centers=[[0, 0], [8, 0], [0, 8]], random_state=seed)


def neighbor_matrix(X, n_neighbors=10):
    A = kneighbors_graph(X, n_neighbors, include_self=True)
    return sp.csr_array((A + A.T) / 2)


def random_graph(seed, n=60, density=0.15):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density))
    return upper + upper.T + np.eye(n)


def clustered(X, k=3, **parameters):
    return SpectralClustering(k, random_state=0, **parameters).fit(X)


# The walk on a graph


@pytest.mark.numeric
@every_seed
@pytest.mark.parametrize("sparse", [False, True])
def test_a_walk_has_the_eigenvectors_of_the_dense_problem(seed, sparse):
    W, m = random_graph(seed), 5
    w = np.random.default_rng(seed).integers(1, 4, len(W)).astype(float)
    walk = leading_walk(
        sp.csr_array(W) if sparse else W, w, m, solver="auto", rng=np.random.default_rng(0)
    )
    P = W * w / (W @ w)[:, None]  # D⁻¹ W diag(w)
    values = np.sort(scipy.linalg.eigvals(P).real)[::-1][:m]
    assert np.allclose(walk.values, values)
    assert np.allclose(P @ walk.vectors, walk.vectors * walk.values)
    assert walk.residuals.max() < 1e-8


@pytest.mark.numeric
@seeds(len(SEEDS), quick=1)
@pytest.mark.parametrize("solver", ["auto", "arpack", "lobpcg"])
def test_large_walks_agree_with_the_dense_solver(seed, solver):
    X, _ = make_moons(1500, noise=0.1, random_state=seed)
    W, w = neighbor_matrix(X), np.ones(1500)
    rng = np.random.default_rng(0)
    walk = leading_walk(W, w, 4, solver=solver, rng=rng)
    D = np.asarray(W.sum(axis=1))
    values = scipy.linalg.eigvalsh(W.toarray() / np.sqrt(np.outer(D, D)))[::-1][:4]
    assert np.allclose(walk.values, values, atol=1e-6)


@pytest.mark.numeric
def test_the_vectors_of_unconnected_parts_are_their_indicators():
    W = scipy.linalg.block_diag(*(random_graph(seed, 20, 0.6) for seed in range(4)))
    walk = leading_walk(W, np.ones(80), 6, solver="auto", rng=np.random.default_rng(0))
    assert np.array_equal(walk.values[:4] == 1, [True] * 4)
    assert walk.values[4] < 1 - 1e-3
    for part in np.split(walk.vectors[:, :4], 4):
        assert np.allclose(part, part[0])
        assert np.count_nonzero(part[0]) == 1


@pytest.mark.numeric
def test_walks_of_dense_ties_do_not_depend_on_their_unit() -> None:
    """Ties are there or not: none is too small to be one (scipy drops dense ones below 1e-8)."""
    W = np.full((6, 6), 1e-9)
    W[:3, :3] = W[3:, 3:] = 1.0
    W[0, 3] = W[3, 0] = 0.0  # no row is tied to all others
    np.fill_diagonal(W, 0.0)
    for unit in (1.0, 1e-12, 1e12):
        walk = leading_walk(unit * W, np.ones(6), 3, solver="auto", rng=np.random.default_rng(0))
        assert walk.solver == "dense"  # one part only: the others are not known beforehand
        assert np.allclose(walk.values, [1.0, 1.0, -0.5], atol=1e-7)
        assert np.ptp(walk.vectors[:, 0]) < 1e-9 * np.abs(walk.vectors[:, 0]).max()


# Nearest neighbours


@every_seed
@pytest.mark.parametrize("n", [400, 3000])
def test_neighbors_find_shapes(seed, n):
    for X, y in (
        make_moons(n, noise=0.05, random_state=seed),
        rings(max(n, 1000), random_state=seed),
        blobs(seed, n),
    ):
        model = clustered(X, len(set(y)), approximation="neighbors")
        assert adjusted_rand_score(y, model.labels_) > 0.98
        assert np.array_equal(model.predict(X), model.labels_)


@pytest.mark.numeric
@every_seed
def test_neighbors_are_those_of_scikit_learn(seed):
    X, _ = blobs(seed)
    graph = Neighbors(7).fit(None, X, rng=np.random.default_rng(0))
    theirs = kneighbors_graph(X, 7).toarray() > 0
    assert np.array_equal(graph.lists.edges(7).toarray() > 0, theirs)
    mutual = graph._link(graph.lists, np.ones(len(X))).toarray() == 1
    assert np.array_equal(mutual, theirs & theirs.T)


def test_a_row_of_the_fit_keeps_its_place_and_a_new_one_goes_between_its_neighbours():
    X, _ = blobs()
    graph = Neighbors(7).fit(None, X, rng=np.random.default_rng(0))
    assert np.array_equal(graph.rows(X).toarray(), np.eye(len(X)))
    new = X[:20] + 0.01
    B = graph.rows(new).toarray()
    distances = np.linalg.norm(new[:, None] - X, axis=2)
    nearest = np.sort(distances, axis=1)[:, 6:7]
    weights = np.where(distances <= nearest, 1 / distances**2, 0.0)
    assert np.allclose(B, weights / weights.sum(axis=1, keepdims=True))


def test_parts_of_a_graph_are_connected_by_the_shortest_edges():
    sizes, centers = [200, 200, 8], [[0, 0], [20, 0], [0, 20]]
    X, y = make_blobs(sizes, 2, centers=centers, random_state=0)
    model = clustered(X, 2, approximation=Neighbors(5))
    assert adjusted_rand_score(y[y < 2], model.labels_[y < 2]) > 0.99


@pytest.mark.numeric
@pytest.mark.parametrize("most", [64, 2048])
def test_spanning_edges_are_a_minimum_spanning_tree_of_the_parts(most, monkeypatch):
    """Of few rows exactly; of more, edges that are not much longer."""
    monkeypatch.setattr(spanning, "MOST_COMPARED", most)
    X, part = make_blobs(300, 3, centers=12, cluster_std=0.3, random_state=0)
    same = sp.csr_array((part[:, None] == part) * 1.0)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    idx = np.argsort(distances, axis=1)[:, 1:20]
    lengths = np.take_along_axis(distances, idx, axis=1) ** 2
    tree = spanning.spanning_edges(X, same, idx, lengths)
    between = np.full((12, 12), np.inf)
    np.minimum.at(between, (part[:, None], part[None, :]), distances)
    np.fill_diagonal(between, 0.0)
    best = sp.csgraph.minimum_spanning_tree(sp.csr_array(between)).sum()
    found = float((tree.toarray() * distances).sum() / 2)
    assert tree.nnz == 2 * 11
    assert sp.csgraph.connected_components(same + tree)[0] == 1
    assert found == pytest.approx(best) if most == 2048 else found < 1.5 * best


@pytest.mark.numeric
@every_seed
def test_bridges_change_a_walk_as_the_dense_problem_says(seed):
    """Few weak edges between parts, or within one graph: the same leading space."""
    blocks = [random_graph(seed + i, 30, 0.5) for i in range(4)]
    W = sp.csr_array(scipy.linalg.block_diag(*blocks))
    T = np.zeros(W.shape)
    for i, j in ((0, 35), (31, 65), (64, 100)):
        T[i, j] = T[j, i] = 0.01
    whole = W.toarray() + T
    for m in (3, 4, 6):
        w, rng = np.ones(len(whole)), np.random.default_rng(0)
        walk = leading_walk(W, w, m, bridges=sp.csr_array(T), solver="auto", rng=rng)
        scale = 1.0 / np.sqrt(whole.sum(axis=1))
        values, vectors = np.linalg.eigh(scale[:, None] * whole * scale)
        assert np.allclose(walk.values, values[::-1][:m], atol=1e-5)
        ours = np.linalg.qr(walk.vectors / scale[:, None])[0]
        cosines = np.linalg.svd(vectors[:, ::-1][:, :m].T @ ours)[1]
        assert walk.n_parts == 4
        assert cosines.min() > (0.999 if m != 3 else 0.9)


@pytest.mark.numeric
def test_lists_find_nearly_all_neighbours_and_rows_find_themselves():
    X = np.random.default_rng(0).normal(size=(12_000, 6))
    graph = Neighbors().fit(None, X, rng=np.random.default_rng(0))
    search = graph.search
    assert isinstance(search, ListSearch)
    assert search.recall(10) > 0.95
    idx, dist = search.nearest(graph.row_coordinates(), 5)
    assert np.array_equal(idx[:, 0], np.arange(len(X)))
    assert not dist[:, 0].any()
    far = np.full((3, 6), 1e30)
    assert np.isfinite(search.nearest(far, 5)[1]).all()


def test_a_few_rows_far_away_are_a_cluster_and_stray_rows_are_not():
    X, y = make_blobs([2000, 5], 2, centers=[[0, 0], [40, 0]], random_state=0)
    assert adjusted_rand_score(y, clustered(X, 2).labels_) == 1.0
    rng = np.random.default_rng(0)
    X, y = make_blobs([500, 500], 2, centers=[[0, 0], [12, 0]], random_state=0)
    X = np.vstack([X, rng.uniform(-20, 30, (20, 2))])
    assert adjusted_rand_score(y, clustered(X, 2).labels_[:1000]) > 0.95


@pytest.mark.numeric
def test_a_row_near_the_dense_middle_of_a_cluster_is_none_of_its_own():
    X, _ = gaussian_pair(1024, 128, shape="hub", random_state=2)
    assert np.bincount(clustered(X, 2).labels_).min() > 400


@pytest.mark.numeric
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_gaps_of_one_column_are_no_borders(spread):
    X, y = gaussian_pair(1024, 1, spread=spread, random_state=0)
    best = adjusted_rand_score(y, X[:, 0] > 1.625 * spread)
    assert adjusted_rand_score(y, clustered(X, 2).labels_) > best - 0.1


@pytest.mark.numeric
@every_seed
def test_sparse_rows_are_placed_by_dense_ones(seed):
    """A graph without its least dense rows: they have no weight, and lie among their neighbours."""
    X, _ = blobs(seed)
    sample, rng = as_sample(None, X), np.random.default_rng(seed)
    graph = Neighbors().fit(None, X, rng=rng, n_clusters=3).of_dense_rows()
    found = graph.spectral_map(sample, 4, solver="auto", rng=rng)
    is_out = found.point_weights == 0
    assert 0 < is_out.sum() <= 0.1 * len(X)
    reach = graph.lists.dist.max(axis=1)
    assert reach[is_out].min() >= reach[~is_out].max()
    near = graph.lists.idx[is_out][:, :5]
    apart = np.linalg.norm(found.vectors[near] - found.vectors[is_out][:, None], axis=2)
    assert np.median(apart) < 0.1 * np.linalg.norm(found.vectors, axis=1).mean()


def test_a_graph_that_stays_in_pieces_is_told():
    X, _ = make_blobs(900, 2, centers=[[1000.0 * i, 0.0] for i in range(9)], random_state=0)
    with pytest.warns(MercerWarning, match="unconnected parts"):
        clustered(X, 2, approximation="neighbors")


@pytest.mark.parametrize(("n_neighbors", "weights"), [(0, "gaussian"), (5, "uniform")])
def test_neighbors_refuse_parameters(n_neighbors, weights):
    with pytest.raises(ValueError, match=r"n_neighbors|weights"):
        clustered(blobs()[0], approximation=Neighbors(n_neighbors, weights=weights))


def test_neighbors_have_no_rank():
    with pytest.raises(ValueError, match="has no rank"):
        clustered(blobs()[0], approximation="neighbors", rank=50)


# Affinities that are given


@pytest.mark.numeric
@every_seed
def test_a_given_graph_gives_what_its_rows_give(seed):
    X, y = blobs(seed)
    K = RBF(0.5)(X)
    dense, sparse = neighbor_matrix(X).toarray(), neighbor_matrix(X)
    for W in (K, dense, sparse, sparse.tocoo(), sparse.astype(np.float32)):
        model = clustered(W, kernel="precomputed")
        assert adjusted_rand_score(y, model.labels_) > 0.98
        assert np.array_equal(model.predict(W), model.labels_)


@pytest.mark.numeric
@every_seed
def test_a_sparse_graph_is_the_dense_one(seed):
    X, _ = blobs(seed)
    W = neighbor_matrix(X)
    assert np.array_equal(
        clustered(W, kernel="precomputed").labels_,
        clustered(W.toarray(), kernel="precomputed").labels_,
    )


@pytest.mark.numeric
@every_seed
def test_a_graph_is_the_same_at_any_scale(seed):
    W = neighbor_matrix(blobs(seed)[0])
    for scale in (1e-12, 1e12):
        model = clustered(scale * W, kernel="precomputed")
        same = clustered(W, kernel="precomputed")
        assert adjusted_rand_score(model.labels_, same.labels_) == 1


def test_new_items_of_a_graph_are_rows_of_affinities():
    X, y = blobs(0, 400)
    model = clustered(RBF(0.5)(X[:300]), kernel="precomputed")
    labels = model.predict(RBF(0.5)(X[300:], X[:300]))
    assert adjusted_rand_score(y[300:], labels) > 0.98


def test_weights_of_a_graph_count_items():
    X, _ = blobs(0, 90)
    counts = np.random.default_rng(0).integers(0, 3, 90)
    twice = np.repeat(np.arange(90), counts)
    weighted = SpectralClustering(3, kernel="precomputed", random_state=0).fit(
        RBF(0.5)(X), sample_weight=counts
    )
    repeated = clustered(RBF(0.5)(X[twice]), kernel="precomputed")
    assert adjusted_rand_score(weighted.labels_[twice], repeated.labels_) == 1


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((0, 1, 0.7), r"not symmetric.*\(A \+ A.T\) / 2"),
        ((2, 2, -0.5), "down to -0.5.*no edges below zero"),
        ((3, 3, np.nan), "NaN"),
    ],
)
def test_bad_affinities_are_refused(sparse, change, words):
    W = np.array(random_graph(0))
    i, j, value = change
    W[i, j] = value
    with pytest.raises(ValueError, match=words):
        clustered(sp.csr_array(W) if sparse else W, kernel="precomputed")


def test_a_graph_without_ties_is_refused():
    with pytest.raises(ValueError, match="all zero"):
        clustered(np.zeros((9, 9)), kernel="precomputed")


def test_a_graph_must_be_square():
    with pytest.raises(ValueError, match="square"):
        clustered(sp.csr_array(np.ones((5, 4))), kernel="precomputed")


def test_items_without_edges_are_reported_and_get_a_label():
    W = neighbor_matrix(blobs()[0]).toarray()
    W[7, :] = W[:, 7] = 0
    with pytest.warns(MercerWarning, match="1 rows have no edge"):
        model = clustered(W, kernel="precomputed")
    assert 0 <= model.labels_[7] < 3
    with pytest.warns(MercerWarning, match="1 of 240 rows are farther"):
        assert np.array_equal(model.predict(W), model.labels_)


def test_a_graph_between_two_sides_has_no_clusters_by_negative_eigenvalues():
    W = np.zeros((40, 40))
    W[:20, 20:] = W[20:, :20] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = clustered(W, 2, kernel="precomputed")
    assert np.array_equal(model.predict(W), model.labels_)


# A solver that does not converge


def test_a_solver_that_stops_early_gives_what_it_has():
    X, _ = make_moons(4000, noise=0.05, random_state=0)
    W = neighbor_matrix(X)
    d = 1 / np.sqrt(np.asarray(W.sum(axis=1)))
    M = sp.diags_array(d) @ W @ sp.diags_array(d)
    pairs = leading_eigenpairs(
        M, 8, solver="arpack", tol=1e-14, max_iter=1, rng=np.random.default_rng(0)
    )
    assert pairs.vectors.shape == (4000, 8)
    actual = np.linalg.norm(M @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert np.allclose(pairs.residuals, actual)


def test_eigenvectors_that_did_not_converge_are_told(monkeypatch):
    import mercer.linalg.walks as walks

    monkeypatch.setattr(walks, "MAX_ITER", 1)
    monkeypatch.setattr("mercer.linalg.eigen.RESCUE", 1)
    X, _ = make_moons(4000, noise=0.1, random_state=0)
    with pytest.warns(MercerWarning, match="did not converge"):
        clustered(X, 8, approximation="neighbors", eigen_solver="arpack")


# Many cuts of one graph


@pytest.mark.numeric
@every_seed
@pytest.mark.parametrize("approximation", ["landmarks", "neighbors", "cholesky"])
def test_one_graph_is_cut_into_any_number(seed, approximation):
    X, y = blobs(seed)
    model = clustered(X, 6, approximation=approximation)
    path = model.labels_path(X, [2, 3, 6])
    assert list(path) == [2, 3, 6]
    assert np.array_equal(path[6], model.labels_)
    assert adjusted_rand_score(y, path[3]) > 0.98
    for k, labels in path.items():
        counts = np.bincount(labels)
        assert len(counts) == k
        assert (np.diff(counts) <= 0).all()


@pytest.mark.numeric
def test_a_cut_is_what_a_fit_would_have_found():
    X, _ = blobs(0, 900)
    most = clustered(X, 6, rank=200)
    fewer = clustered(X, 3, rank=200)
    assert adjusted_rand_score(most.labels_path(X, [3])[3], fewer.labels_) == 1


def test_a_given_graph_is_cut_too():
    X, y = blobs()
    W = neighbor_matrix(X)
    path = clustered(W, 5, kernel="precomputed").labels_path(W, range(2, 6))
    assert adjusted_rand_score(y, path[3]) > 0.98


@pytest.mark.parametrize("k", [0, 7, 2.5, "3"])
def test_a_cut_that_was_not_prepared_is_refused(k):
    X, _ = blobs()
    with pytest.raises(ValueError, match="from 1 to 6"):
        clustered(X, 6).labels_path(X, [k])


def test_ensembles_and_loaded_models_have_no_path(tmp_path):
    from mercer import load

    X, _ = blobs()
    with pytest.raises(ValueError, match="ensemble"):
        clustered(X, ensemble=3).labels_path(X, [2])
    clustered(X).save(tmp_path / "a.model")
    with pytest.raises(ValueError, match="before saving"):
        load(tmp_path / "a.model").labels_path(X, [2])


def test_a_graph_that_tells_fewer_clusters_apart_says_so():
    W = sp.block_diag([np.ones((600, 600))] * 3, format="csr")
    with pytest.warns(MercerWarning, match="3 clusters were made instead of 5"):
        model = clustered(W, 5, kernel="precomputed")
    assert model.cluster_weights_.tolist() == [600, 600, 600]
