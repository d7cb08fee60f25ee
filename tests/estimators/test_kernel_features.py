"""KernelFeatures: a scikit-learn transformer, whose columns are those of its factor."""

from __future__ import annotations

import doctest
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from marking import seeds
from mercer import (
    RBF,
    BudgetError,
    Cosine,
    IncompleteCholesky,
    KernelFeatures,
    MercerWarning,
    Nystrom,
    RandomFourier,
)
from mercer.datasets import ring_and_core
from mercer.estimators import kernel_features

SEEDS = range(10)
# rounding of F between two ways to the same rows, amplified by the least pivot
TOL = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 2e-3}
SMOOTH = 0.02  # what 20 pivots leave of a kernel with gamma=0.002 on `cloud`, at most

APPROXIMATIONS = {
    "cholesky": "cholesky",
    "greedy": IncompleteCholesky(20, pivots="greedy"),
    "nystrom": "nystrom",
    "kmeans": Nystrom(20, sampling="kmeans"),
    "leverage": Nystrom(20, sampling="leverage"),
    "fourier": "fourier",
    "odd": RandomFourier(21, orthogonal=True),
    "exact": "exact",
}

every_approximation = pytest.mark.parametrize(
    "approximation", APPROXIMATIONS.values(), ids=APPROXIMATIONS.keys()
)
every_seed = seeds(len(SEEDS), quick=3)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def cloud(seed, n=300, d=4, dtype=np.float64):
    X = np.random.default_rng(seed).normal(3.0, 2.0, size=(n, d)).astype(dtype)
    X.flags.writeable = False
    return X


def features(approximation="cholesky", **params):
    """A small one; `rank` sizes approximations by name."""
    named = isinstance(approximation, str) and approximation != "exact"
    size = {"rank": 20} if named else {}
    return KernelFeatures(approximation=approximation, **{"random_state": 0} | size | params)


@parametrize_with_checks(
    [
        KernelFeatures(random_state=0),
        KernelFeatures(approximation="exact", random_state=0),
        KernelFeatures(approximation="nystrom", rank=10, random_state=0),
        KernelFeatures(approximation="fourier", rank=7, random_state=0),
        KernelFeatures(approximation=Nystrom(10, sampling="leverage"), random_state=0),
        KernelFeatures(kernel="cosine", rank=5, random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")  # the checks fit odd data
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@every_approximation
@every_dtype
def test_transform_gives_the_rows_of_the_factor(approximation, dtype):
    X, Y = cloud(0, dtype=dtype), cloud(1, n=50, dtype=dtype)
    model = features(approximation).fit(X)
    for rows in (X, Y):
        F = model.transform(rows)
        assert F.shape == (len(rows), model.factor_.rank)
        assert F.dtype == dtype
        assert np.abs(F - model.factor_.rows(rows)).max() < TOL[F.dtype]
    assert model.factor_.training_rows is None
    assert isinstance(model.kernel_.gamma, float)


@every_approximation
@every_dtype
def test_fit_transform_is_fit_then_transform(approximation, dtype):
    X = cloud(0, dtype=dtype)
    model = features(approximation)
    F = model.fit_transform(X)
    assert F.dtype == dtype
    assert np.abs(F - model.transform(X)).max() < TOL[F.dtype]
    assert np.array_equal(model.transform(X), clone(model).fit(X).transform(X))


@every_approximation
def test_fit_transform_with_equal_rows_and_weights(approximation):
    X = np.vstack([cloud(0, n=60), cloud(0, n=60)[::2]])
    weights = np.arange(len(X)) % 3
    model = features(approximation)
    F = model.fit_transform(X, sample_weight=weights)
    assert np.array_equal(F, model.transform(X))
    assert np.array_equal(F[60:], F[:60][::2])


@pytest.mark.numeric
@every_approximation
@every_seed
def test_a_row_has_its_features_in_any_split(approximation, seed):
    X = cloud(seed, n=700, d=40)
    model = features(approximation, gamma=0.01, random_state=seed).fit(X[:200])
    whole = model.transform(X)
    cuts = np.sort(np.random.default_rng(seed).integers(1, len(X), 5))
    pieces = [model.transform(piece) for piece in np.split(X, cuts) if len(piece)]
    assert np.array_equal(np.concatenate(pieces), whole)
    order = np.random.default_rng(seed).permutation(len(X))
    assert np.array_equal(model.transform(X[order]), whole[order])


@pytest.mark.numeric
@every_approximation
@every_dtype
def test_threads_and_blocks_change_no_bit(approximation, dtype):
    n = 20_000 if approximation != "exact" else 500
    X = cloud(0, n=n, dtype=dtype)
    one = features(approximation)
    F = one.fit_transform(X)
    for params in ({"n_jobs": 2}, {"max_memory": "60MB", "n_jobs": 2}):
        other = features(approximation, **params)
        assert np.array_equal(other.fit_transform(X), F)
        assert np.array_equal(other.transform(X), one.transform(X))


@every_approximation
def test_sparse_rows(approximation):
    X = cloud(0) * (np.random.default_rng(1).random((300, 4)) < 0.7)
    model = features(approximation, gamma=0.1).fit(X)
    from_sparse = model.transform(sp.csr_array(X))
    assert np.abs(from_sparse - model.transform(X)).max() < TOL[X.dtype]
    if approximation is not APPROXIMATIONS["kmeans"]:
        F = features(approximation, gamma=0.1).fit_transform(sp.csr_array(X))
        assert sp.issparse(F) is False
        assert F.shape[0] == 300


def test_inner_products_are_kernel_values():
    X = cloud(0)
    F = features("exact", gamma=0.2).fit_transform(X)
    assert np.allclose(F @ F.T, RBF(0.2)(X), rtol=0, atol=1e-9)


def test_random_pivots_err_less_than_uniform_ones():
    """On rows of common and rare kinds, at the same rank: the reason to prefer "cholesky"."""
    centers = np.random.default_rng(0).uniform(-10, 10, (15, 3))
    sizes = np.geomspace(5, 500, 15).astype(int)
    X, _ = make_blobs(sizes, 3, centers=centers, cluster_std=0.3, random_state=0)
    errors = {
        name: [
            features(name, gamma=0.5, random_state=seed).fit(X).factor_.trace_error
            for seed in SEEDS
        ]
        for name in ("cholesky", "nystrom")
    }
    assert np.mean(errors["cholesky"]) < 0.9 * np.mean(errors["nystrom"])


# In scikit-learn's company


def test_pipeline_separates_rings():
    X, y = ring_and_core(1000, random_state=0)
    model = make_pipeline(StandardScaler(), features(rank=60), RidgeClassifier())
    assert model.fit(X, y).score(X, y) > 0.99


def test_grid_search_over_parts():
    X, y = ring_and_core(400, random_state=0)
    model = make_pipeline(features(kernel=RBF(), rank=30), RidgeClassifier())
    grid = {
        "kernelfeatures__kernel__gamma": [1e-4, 1.0, "auto"],
        "kernelfeatures__approximation": ["cholesky", "nystrom"],
    }
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.99
    assert search.best_params_["kernelfeatures__kernel__gamma"] != 1e-4


def test_grid_search_over_the_parameters_of_an_approximation():
    X, y = ring_and_core(400, random_state=0)
    model = make_pipeline(features(Nystrom()), RidgeClassifier())
    grid = {"kernelfeatures__approximation__rank": [1, 40]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"kernelfeatures__approximation__rank": 40}


def test_grid_search_over_a_precomputed_kernel():
    X, y = ring_and_core(300, random_state=0)
    model = make_pipeline(features(kernel="precomputed"), RidgeClassifier())
    search = GridSearchCV(model, {"kernelfeatures__rank": [1, 40]}, cv=3).fit(RBF(1.0)(X), y)
    assert search.best_params_ == {"kernelfeatures__rank": 40}
    assert search.best_score_ > 0.99


@pytest.mark.parametrize("approximation", ["cholesky", "nystrom", "exact"])
def test_precomputed_rows_are_as_good_as_vectors(approximation):
    X, Y, kernel = cloud(0), cloud(1, n=40), RBF(0.002)
    given = features(approximation, kernel="precomputed")
    F = given.fit_transform(kernel(X))
    assert np.abs(F - given.transform(kernel(X))).max() < TOL[F.dtype]
    assert np.abs(given.transform(kernel(Y, X)) @ F.T - kernel(Y, X)).max() < SMOOTH


def test_feature_names():
    model = features(rank=3).fit(cloud(0))
    names = ["kernelfeatures0", "kernelfeatures1", "kernelfeatures2"]
    assert list(model.get_feature_names_out()) == names


@pytest.mark.parametrize("library", ["pandas", "polars"])
@every_approximation
def test_set_output(library, approximation):
    frames = pytest.importorskip(library)
    X = cloud(0, n=60)
    frame = frames.DataFrame({name: X[:, i] for i, name in enumerate("abcd")})
    model = features(approximation).set_output(transform=library)
    for F in (model.fit_transform(frame), model.transform(frame)):
        assert isinstance(F, frames.DataFrame)
        assert list(F.columns) == list(model.get_feature_names_out())
        assert np.allclose(F, features(approximation).fit_transform(X), rtol=0, atol=1e-8)
    assert list(model.feature_names_in_) == list("abcd")


def test_columns_by_name():
    frames = pytest.importorskip("pandas")
    X = cloud(0)
    frame = frames.DataFrame(X, columns=list("abcd"))
    named = features(kernel=RBF(0.1, columns=["a", "c"])).fit(frame)
    alone = features(kernel=RBF(0.1)).fit(X[:, [0, 2]])
    assert named.factor_.trace_error == pytest.approx(alone.factor_.trace_error, rel=0.5)
    other = frame.assign(b=0.0, d=1.0)
    assert np.array_equal(named.transform(other), named.transform(frame))


@every_approximation
def test_pickled_and_cloned(approximation):
    X = cloud(0)
    model = features(approximation).fit(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))
    assert not hasattr(clone(model), "factor_")


@pytest.mark.parametrize("form", ["npy", "batches", "blocks"])
def test_rows_from_elsewhere(form, tmp_path):
    X = cloud(0)
    kernel = RBF(0.002)
    if form == "npy":
        given = tmp_path / "rows.npy"
        np.save(given, X)
    elif form == "batches":
        given = [X[:100], X[100:]]
    else:
        given, kernel = {"a": X, "b": X[:, :1]}, RBF(0.002, columns="a")
    F = features(kernel=kernel).fit_transform(given)
    assert np.abs(F @ F.T - RBF(0.002)(X)).max() < SMOOTH
    if form != "blocks":  # other content, so another order and other draws
        plain = features(kernel=kernel).fit(X)
        assert np.abs(F - plain.transform(X)).max() < TOL[F.dtype]


# What goes wrong, and what stays as it was


def test_report_tells_rank_and_error():
    model = features(rank=5).fit(cloud(0))
    assert model.report_.rank == 5
    assert model.report_.trace_error == model.factor_.trace_error
    assert "IncompleteCholesky(rank=5)" in str(model.report_)
    assert [stage.name for stage in model.report_.stages] == ["check", "sample", "kernel", "factor"]


def test_a_failed_fit_leaves_the_fitted_state():
    X = cloud(0)
    model = features().fit(X)
    F = model.transform(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((3, 4), np.nan))
    with pytest.raises(ValueError, match="RandomFourier cannot represent Polynomial"):
        model.set_params(approximation="fourier", kernel="polynomial").fit(X)
    assert np.array_equal(model.transform(X), F)


def test_feature_names_of_an_earlier_fit_are_forgotten():
    frames = pytest.importorskip("pandas")
    model = features().fit(frames.DataFrame(cloud(0), columns=list("abcd")))
    assert not hasattr(model.fit(cloud(0)), "feature_names_in_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rank": 0}, "rank"),
        ({"approximation": "best"}, "approximation='best' is unknown"),
        ({"approximation": Nystrom(5), "rank": 7}, "rank=7 is given together with"),
        ({"approximation": "exact", "rank": 7}, "has no rank"),
        ({"kernel": Cosine(), "gamma": 0.5}, "gamma=0.5 was given together with a kernel object"),
    ],
)
def test_parameters_that_contradict(params, message):
    with pytest.raises(ValueError, match=message):
        KernelFeatures(**params).fit(cloud(0))


def test_values_are_checked_in_transform():
    model = features().fit(cloud(0))
    with pytest.raises(ValueError, match="infinity at row 1"):
        model.transform([[0.0] * 4, [np.inf] * 4])
    with pytest.raises(ValueError, match="3 features, but KernelFeatures is expecting 4"):
        model.transform(np.zeros((2, 3)))


def test_features_that_do_not_fit_into_memory():
    X = cloud(0, n=5000)
    with pytest.raises(BudgetError, match="raise max_memory, or lower the rank"):
        KernelFeatures(max_memory="2MB").fit(X)
    small = features(max_memory="2MB").fit(X[:300])
    with pytest.raises(BudgetError, match="the result, 100,000 rows × 20"):
        small.transform(np.zeros((100_000, 4)))


@every_dtype
def test_fit_transform_within_little_memory(dtype):
    X = cloud(0, n=60_000, dtype=dtype)
    tight = features(max_memory=2_190_000 * X.itemsize)  # F takes 1,200,000
    assert np.abs(tight.fit_transform(X) - features().fit_transform(X)).max() < TOL[X.dtype]


def test_a_kernel_that_sees_nothing_is_told_of():
    with pytest.warns(MercerWarning, match="nearly the identity") as caught:
        features(gamma=1e9).fit(cloud(0))
    assert caught[0].filename == __file__


def test_examples_in_docstrings():
    results = doctest.testmod(kernel_features)
    assert results.attempted > 0
    assert results.failed == 0
