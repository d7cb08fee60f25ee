"""Laws that hold for every factor: see CONTRACTS in the documentation, and support/factors.py."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from factors import FACTORS, GAMMA, NAMED, cloud, dense, exported, fitted, gram, kernel_of
from marking import seeds, slow_beyond
from mercer import SpectralClustering, load
from mercer.factors import Neighbors
from mercer.kernels import RBF, Laplacian

pytestmark = [
    pytest.mark.numeric,
    pytest.mark.filterwarnings(
        "ignore::mercer.MercerWarning"
    ),  # waves of a small rank: poor graphs
]

# rounding of k(x, y), over the root of the least pivot or eigenvalue that is kept
TOL = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-2}

every_factor = pytest.mark.parametrize("make", FACTORS.values(), ids=FACTORS.keys())
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def without(*names):
    """Every factor but these, for which the law is not made; the law says why."""
    some = {name: make for name, make in FACTORS.items() if name not in names}
    return pytest.mark.parametrize("make", some.values(), ids=some.keys())


def training_rows(factor):
    """F of the rows of the fit, if the factor keeps it in this form."""
    return getattr(factor, "training_rows", None)


def clustered(make, X, *, kernel=None, seed=0, sample_weight=None):
    model = SpectralClustering(3, kernel=kernel, approximation=make(20), random_state=seed)
    return model.fit(X, sample_weight=sample_weight)


def blobs(seed=0, n=150, d=3):
    X, _ = make_blobs(n, d, centers=np.eye(3, d) * 6, random_state=seed)
    return X


def test_the_table_holds_every_approximation():
    tried = {type(make(2)) for make in FACTORS.values()}
    assert exported() <= tried
    assert {type(make(2)) for make in NAMED.values()} <= tried


# Rows


@every_factor
@seeds(quick=3)
@every_dtype
def test_rows_give_back_the_training_rows(make, seed, dtype):
    X = cloud(seed, dtype=dtype)
    factor = fitted(make, X, rank=16, seed=seed)
    F = factor.rows(X)
    assert F.shape[0] == len(X)
    assert np.isfinite(dense(F)).all()
    kept = training_rows(factor)
    if kept is not None:
        assert kept.dtype == F.dtype == dtype
        assert kept.shape == F.shape == (len(X), factor.rank)
        assert np.abs(F - kept).max() < TOL[X.dtype]
        assert training_rows(factor.forget_training()) is None


@every_factor
@every_dtype
def test_what_is_forgotten_is_not_needed_for_rows(make, dtype):
    X, Y = cloud(0, dtype=dtype), cloud(1, dtype=dtype)
    factor = fitted(make, X, rank=16)
    forgetful = factor.forget_training()
    assert np.array_equal(dense(forgetful.rows(Y)), dense(factor.rows(Y)))
    assert forgetful.rank == factor.rank


@every_factor
@seeds(quick=3)
def test_rows_in_pieces_are_those_at_once(make, seed):
    X = cloud(seed)
    factor = fitted(make, X, rank=16, seed=seed)
    cuts = np.sort(np.random.default_rng(seed).integers(1, len(X), 5))
    pieces = [dense(factor.rows(piece)) for piece in np.split(X, cuts) if len(piece)]
    whole = dense(factor.rows(X))
    assert np.allclose(np.vstack(pieces), whole, rtol=0, atol=TOL[X.dtype])
    order = np.random.default_rng(seed).permutation(len(X))
    assert np.allclose(dense(factor.rows(X[order])), whole[order], rtol=0, atol=TOL[X.dtype])


# Blocks of greedy pivots break ties by rounding, which differs; means are of dense rows; sparse
# rows are projected before landmarks are chosen.
@without("cholesky-greedy", "nystrom-kmeans", "landmarks", "landmarks-rank-weights", "auto")
@seeds(quick=3)
def test_dense_and_sparse_rows_give_the_same(make, seed):
    X = (cloud(seed, n=70, d=6) - 5.0) * (np.random.default_rng(seed).random((70, 6)) < 0.6)
    S = sp.csr_array(X)
    of_dense, of_sparse = (fitted(make, rows, rank=12, seed=seed) for rows in (X, S))
    assert np.allclose(gram(of_dense.rows(X)), gram(of_sparse.rows(S)), rtol=0, atol=TOL[X.dtype])
    kept = training_rows(of_sparse)
    if kept is not None:
        assert np.allclose(of_sparse.rows(X), kept, rtol=0, atol=TOL[X.dtype])


@every_factor
@seeds(quick=3)
def test_single_precision_is_near_double(make, seed):
    X = cloud(seed, dtype=np.float32)
    single = fitted(make, X, rank=16, seed=seed)
    double = fitted(make, X.astype(np.float64), rank=16, seed=seed)
    assert np.abs(gram(single.rows(X)) - gram(double.rows(X))).max() < TOL[X.dtype]
    assert (single.trace_error or 0.0) == pytest.approx(double.trace_error or 0.0, abs=1e-5)


@every_factor
def test_one_row_is_enough(make):
    factor = fitted(make, np.array([[1.0, 2.0]]), rank=4)
    assert gram(factor.rows([[1.0, 2.0]])) == pytest.approx(1.0, abs=0.6)


@every_factor
def test_a_bandwidth_that_is_not_a_number_yet(make):
    with pytest.raises(ValueError, match="gamma='auto' is chosen from data"):
        fitted(make, cloud(0), kernel=type(kernel_of(make))())


# Work


def rows_enough(make, *, many):
    """As many rows as several tiles have, or as few as n × n numbers or distances allow."""
    if isinstance(make(16), Neighbors):
        return min(many, 9000)
    return many if make(16).memory(many, 4, 8) < 10**9 else 700


@every_factor
@every_dtype
def test_any_number_of_threads_gives_the_same_bits(make, dtype):
    X = cloud(0, n=rows_enough(make, many=20_000), d=4, dtype=dtype)
    one, two = (fitted(make, X, rank=16, threads=threads) for threads in (1, 2))
    few = X[:: len(X) // 500]
    assert np.array_equal(dense(one.rows(few)), dense(two.rows(few)))
    assert one.trace_error == two.trace_error
    for name in ("training_rows", "mix"):
        if getattr(one, name, None) is not None:
            assert np.array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize("name", ["cholesky-random", "nystrom-leverage", "fourier"])
def test_any_number_of_threads_gives_the_same_bits_for_sparse_rows(name):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((20_000, 40)) * (rng.random((20_000, 40)) < 0.1))
    one, two = (fitted(FACTORS[name], X, rank=16, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.training_rows, two.training_rows)


@every_factor
def test_memory_covers_the_factor(make):
    approximation = make(16)
    kept = training_rows(fitted(make, cloud(0, n=1000), rank=16))
    assert approximation.memory(1000, 3, 8) >= (1 if kept is None else kept.nbytes)
    assert approximation.memory(2000, 3, 4) > approximation.memory(1000, 3, 4)


@without("quantized-gradient")  # how many finer blocks it cuts is not known beforehand
def test_memory_grows_at_least_as_what_a_fit_holds_does(make):
    few = rows_enough(make, many=8000) // 2
    peaks, bounds = [], []
    for n in (few, 2 * few):
        X = cloud(1, n=n, d=4)
        fitted(make, X, rank=16)  # what is compiled or imported is not held for the rows
        tracemalloc.start()
        try:
            fitted(make, X, rank=16)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        kept = getattr(make(16), "dense_bytes", lambda *_: 0)(n, 8)  # F, which others count
        bounds.append(make(16).memory(n, 4, 8) + kept + 3 * X.nbytes)  # and rows themselves
    assert np.diff(peaks) <= 1.01 * np.diff(bounds)


# In an estimator, which puts rows into an order of their own before anything is drawn


@every_factor
@seeds(quick=1)
def test_permuted_rows_are_the_same_problem(make, seed):
    X = blobs(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    model, shuffled = clustered(make, X, seed=seed), clustered(make, X[order], seed=seed)
    assert np.array_equal(model.labels_[order], shuffled.labels_)
    assert np.array_equal(dense(model.factor_.rows(X)), dense(shuffled.factor_.rows(X)))


@every_factor
@seeds(quick=1)
def test_weight_two_is_the_row_twice_in_a_graph(make, seed):
    X = blobs(seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(X))
    weighted = clustered(make, X, seed=seed, sample_weight=weights)
    repeated = clustered(make, np.repeat(X, weights, axis=0), seed=seed)
    assert adjusted_rand_score(weighted.predict(X), repeated.predict(X)) == 1.0
    assert weighted.cluster_weights_ == pytest.approx(repeated.cluster_weights_)
    found, expected = (gram(model.factor_.rows(X)) for model in (weighted, repeated))
    assert np.allclose(found, expected, rtol=0, atol=TOL[X.dtype])


@without("quantized-radius")  # a radius is in the units of the rows
@pytest.mark.parametrize("exponent", slow_beyond([-40, 3, 90], quick=[90]))
def test_a_power_of_two_times_the_rows_gives_the_same_bits(make, exponent):
    X, unit = blobs(), 2.0**exponent
    model, scaled = clustered(make, X), clustered(make, X * unit)
    assert np.array_equal(model.labels_, scaled.labels_)
    assert np.array_equal(model.predict(X), scaled.predict(X * unit))
    assert np.array_equal(dense(model.factor_.rows(X)), dense(scaled.factor_.rows(X * unit)))


@without("quantized-radius", "quantized-gradient")  # a radius, a step: in the units of the rows
def test_a_power_of_two_needs_no_estimator(make):
    X, kernel = cloud(0), kernel_of(make)
    scaled = {RBF: RBF(GAMMA / 64), Laplacian: Laplacian(GAMMA / 8)}[type(kernel)]
    F = dense(fitted(make, X, kernel=kernel).rows(X))
    assert np.array_equal(dense(fitted(make, 8 * X, kernel=scaled).rows(8 * X)), F)


@every_factor
def test_what_is_loaded_is_what_was_saved(make, tmp_path):
    X, Y = blobs(), blobs(1)
    model = clustered(make, X)
    path = tmp_path / "model.mercer"
    model.save(path)
    again = load(path)
    assert np.array_equal(again.predict(Y), model.predict(Y))
    assert np.array_equal(dense(again.factor_.rows(Y)), dense(model.factor_.rows(Y)))
    assert again.factor_.rank == model.factor_.rank
