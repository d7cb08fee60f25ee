"""Hostile inputs: each states its right outcome, for every estimator.

An outcome is a correct partition (by a stated check) or one clear error. No numpy warning escapes:
warnings are errors here, and Mercer's own are named by the case.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from estimators import ESTIMATORS, UNLIKE
from mercer import RBF, BudgetError, MercerWarning

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())

X0, Y0 = make_blobs(150, 3, centers=np.eye(3) * 20, random_state=0)
X0.setflags(write=False)


@dataclass(frozen=True)
class Case:
    """A hostile input and what must come of it."""

    X: Callable[[], Any]
    error: tuple[type[Exception], str] | None = None
    warns: str | None = None  # a MercerWarning that must be given
    labels: Callable[[np.ndarray], bool] = lambda labels: adjusted_rand_score(Y0, labels) == 1.0
    params: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)


def refused(X, words, error=ValueError, **more):
    return Case(X, error=(error, words), **more)


def with_value(value, dtype=np.float64):
    X = X0.astype(dtype)
    X[17, 1] = value
    return X


def corrupt_csr(change):
    X = sp.csr_array(X0)
    change(X)
    return X


def set_index(X):
    X.indices[5] = 10**6


def set_pointer(X):
    X.indptr[3] = 10**6


def any_labels(labels):
    return labels.min() >= 0


def one_cluster(labels):
    return (labels == 0).all()


CASES = {
    # values
    "nan": refused(lambda: with_value(np.nan), r"NaN at row 17, column 1"),
    "inf": refused(lambda: with_value(np.inf), r"infinity at row 17"),
    "minus inf": refused(lambda: with_value(-np.inf, np.float32), r"infinity at row 17"),
    "sparse nan": refused(lambda: sp.csr_array(with_value(np.nan)), r"NaN at row 17, column 1"),
    "1e300": refused(lambda: X0 * 1e300, "overflow"),
    "1e-300": refused(lambda: X0 * 1e-300, "underflow"),
    "scaled 1e20": Case(lambda: X0 * 1e20),
    "scaled 1e-20": Case(lambda: X0 * 1e-20),
    "float32 scaled 1e20": Case(lambda: (X0 * 1e20).astype(np.float32)),
    "float32 scaled 1e-20": Case(lambda: (X0 * 1e-20).astype(np.float32)),
    "shifted 1e9": Case(lambda: X0 + 1e9),
    "shifted 1e12": Case(lambda: X0 + 1e12),
    "float32 shifted 1e4": Case(lambda: (X0 + 1e4).astype(np.float32)),
    "negative values for chi2": refused(lambda: X0, r"values ≥ 0", params={"kernel": "chi2"}),
    "chi2 with zero rows": Case(
        lambda: np.vstack([np.abs(X0), np.zeros((1, 3))]),
        labels=any_labels,
        params={"kernel": "chi2"},
    ),
    # shapes
    "empty": refused(lambda: np.empty((0, 3)), "0 sample"),
    "no columns": refused(lambda: np.empty((10, 0)), "0 feature"),
    "one row": refused(lambda: X0[:1], "n_samples=1"),
    "one row, one cluster": Case(
        lambda: X0[:1], warns="n_clusters=1", labels=one_cluster, params={"n_clusters": 1}
    ),
    "rows < clusters": refused(lambda: X0[:2], "fewer rows than clusters"),
    "K = N": Case(
        lambda: X0[:6], labels=lambda labels: len(set(labels)) == 6, params={"n_clusters": 6}
    ),
    "one column": Case(lambda: X0[:, :1] + np.array([0, 30, 60])[Y0][:, None]),
    "constant columns": Case(lambda: np.c_[X0, np.full(len(X0), 7.0), np.zeros(len(X0))]),
    "n much less than d": Case(
        lambda: make_blobs(30, 3000, centers=3, random_state=0)[0],
        labels=lambda labels: (
            adjusted_rand_score(make_blobs(30, 3000, centers=3, random_state=0)[1], labels) == 1.0
        ),
    ),
    "1-d": refused(lambda: X0[:, 0], "2D array"),
    "3-d": refused(lambda: X0.reshape(50, 3, 3), "dim"),
    "scalar": refused(lambda: 3.0, "2D array"),
    # duplicates
    "identical rows": Case(lambda: np.ones((50, 3)), warns="1 distinct", labels=one_cluster),
    "K-1 distinct rows": Case(
        lambda: np.repeat(np.eye(2, 3), 25, axis=0),
        warns="2 distinct",
        labels=lambda labels: len(set(labels[:25])) == 1 and labels[0] != labels[-1],
    ),
    "heavy duplicates": Case(
        lambda: np.vstack([X0, np.repeat(X0[:1], 2000, axis=0)]),
        labels=lambda labels: adjusted_rand_score(Y0, labels[:150]) > 0.5,
    ),
    "all zeros": Case(lambda: np.zeros((20, 2)), warns="1 distinct", labels=one_cluster),
    # types
    "integers": Case(lambda: X0.astype(int)),
    "int8": Case(lambda: X0.astype(np.int8)),
    "float16": Case(lambda: X0.astype(np.float16)),
    "big-endian": Case(lambda: X0.astype(">f8")),
    "longdouble": Case(lambda: X0.astype(np.longdouble)),
    "bool": Case(lambda: X0 > 10),
    "numbers as objects": Case(lambda: X0.astype(object)),
    "complex": refused(lambda: X0 + 1j, "Complex data not supported"),
    "sparse complex": refused(lambda: sp.csr_array(X0 + 1j), "Complex data not supported"),
    "words": refused(lambda: np.array([["a", "b"]] * 10), "numeric"),
    "words as objects": refused(lambda: np.array([["a", "b"]] * 10, object), "could not convert"),
    "dates": refused(lambda: X0.astype("datetime64[s]"), "numeric"),
    "time spans": refused(lambda: X0.astype("timedelta64[s]"), "numeric"),
    "masked": refused(lambda: np.ma.masked_greater(X0, 15), "masked", TypeError),
    "a dict of different lengths": refused(lambda: {"a": X0, "b": X0[:9]}, "same rows"),
    "a generator": refused(lambda: (row for row in X0), "once", TypeError),
    "None": refused(lambda: None, "", error=(ValueError, TypeError)),
    # layout
    "fortran order": Case(lambda: np.asfortranarray(X0)),
    "negative strides": Case(
        lambda: X0[::-1], labels=lambda labels: adjusted_rand_score(Y0[::-1], labels) == 1.0
    ),
    # sparse
    "corrupt index": refused(lambda: corrupt_csr(set_index), "corrupt"),
    "corrupt pointer": refused(lambda: corrupt_csr(set_pointer), "corrupt"),
    "empty sparse rows": Case(
        lambda: sp.csr_array(np.where(Y0[:, None] == 0, 0.0, X0)),
        labels=lambda labels: adjusted_rand_score(Y0, labels) == 1.0,
    ),
    "sparse without entries": Case(
        lambda: sp.csr_array((20, 5)), warns="1 distinct", labels=one_cluster
    ),
    "explicit zeros": Case(
        lambda: sp.csr_array((np.zeros(20), (np.arange(20), np.zeros(20, int))), shape=(20, 2)),
        warns="1 distinct",
        labels=one_cluster,
    ),
    # geometry
    "an outlier at 1e6 sigma": Case(
        lambda: np.vstack([X0, [[1e6, 1e6, 1e6]]]),
        labels=lambda labels: adjusted_rand_score(Y0, labels[:150]) > 0.5,
    ),
    "imbalance": Case(
        lambda: np.vstack(
            [make_blobs(5000, 3, centers=1, random_state=0)[0], [[90.0, 90, 90]] * 3]
        ),
        labels=any_labels,
    ),
    # parameters
    "gamma 0": refused(lambda: X0, "gamma", params={"gamma": 0}),
    "gamma -1": refused(lambda: X0, "gamma", params={"gamma": -1.0}),
    "gamma nan": refused(lambda: X0, "gamma", params={"gamma": np.nan}),
    "gamma word": refused(lambda: X0, "gamma", params={"gamma": "automatic"}),
    "gamma 1e12": Case(lambda: X0, warns="identity", labels=any_labels, params={"gamma": 1e12}),
    "gamma 1e-300": Case(lambda: X0, warns="constant", labels=any_labels, params={"gamma": 1e-300}),
    "unknown kernel": refused(lambda: X0, "unknown", params={"kernel": "gauss"}),
    "kernel of nan": refused(
        lambda: X0, "NaN", params={"kernel": lambda X, Y: np.full((len(X), len(Y)), np.nan)}
    ),
    "kernel not symmetric": refused(
        lambda: X0, "symmetric", params={"kernel": lambda X, Y: X @ Y.T + X[:, :1]}
    ),
    "indefinite kernel": refused(
        lambda: X0,
        "semi-definite",
        params={"kernel": lambda X, Y: 1.0 + ((X[:, None] - Y[None]) ** 2).sum(2)},
    ),
    "gamma beside a kernel object": refused(
        lambda: X0, "beside", params={"kernel": RBF(1.0), "gamma": 2.0}
    ),
    "n_clusters 0": refused(lambda: X0, "n_clusters", params={"n_clusters": 0}),
    "n_clusters 2.5": refused(lambda: X0, "n_clusters", params={"n_clusters": 2.5}),
    "n_init 0": refused(lambda: X0, "n_init", params={"n_init": 0}),
    "max_iter 0": refused(lambda: X0, "max_iter", params={"max_iter": 0}),
    "max_iter 1": Case(lambda: X0, labels=any_labels, params={"max_iter": 1}, warns="max_iter"),
    "tol -1": refused(lambda: X0, "tol", params={"tol": -1.0}),
    "unknown approximation": refused(lambda: X0, "unknown", params={"approximation": "svd"}),
    "approximation of the wrong type": refused(
        lambda: X0, "approximation", TypeError, params={"approximation": 3}
    ),
    "memory in unknown words": refused(lambda: X0, "max_memory", params={"max_memory": "lots"}),
    "memory too small": refused(
        lambda: X0, "raise max_memory", BudgetError, params={"max_memory": 10}
    ),
    "precomputed not square": refused(lambda: X0, "square", params={"kernel": "precomputed"}),
    # weights
    "weights negative": refused(
        lambda: X0, "negative", fit={"sample_weight": np.r_[-1.0, np.ones(149)]}
    ),
    "weights nan": refused(lambda: X0, "NaN", fit={"sample_weight": np.r_[np.nan, np.ones(149)]}),
    "weights of wrong length": refused(lambda: X0, "shape", fit={"sample_weight": np.ones(3)}),
    "weights all zero": refused(lambda: X0, "zero", fit={"sample_weight": np.zeros(150)}),
    "weights as words": refused(lambda: X0, "dtype", fit={"sample_weight": np.array(["a"] * 150)}),
    "weights mostly zero": Case(
        lambda: X0, fit={"sample_weight": (np.arange(150) % 2).astype(float)}
    ),
    "weights tiny": Case(lambda: X0, fit={"sample_weight": np.full(150, 1e-30)}),
    "weights huge": Case(lambda: X0, fit={"sample_weight": np.full(150, 1e30)}),
    # files
    "missing file": refused(lambda: "no-such-file.npy", "no-such-file", FileNotFoundError),
}


@every_estimator
@pytest.mark.parametrize("name", CASES)
def test_hostile_input_has_its_stated_outcome(make, name):
    case = CASES[name]
    params = dict(case.params)
    if "approximation" in params and "rank" in params:
        params.pop("rank")
    unlike = {n: why for n, why in UNLIKE.items() if n in params and not hasattr(make(), n)}
    if unlike:
        pytest.skip("; ".join(unlike.values()))
    model = make(params.pop("n_clusters", 3), **params)
    approximation = str(getattr(model, "approximation", None))
    if approximation in ("landmarks", "neighbors") and model.kernel not in (None, "rbf"):
        pytest.skip("landmark graphs take RBF kernels only, and say so: tested apart")
    if approximation == "binning" and model.kernel not in (None, "rbf", "laplacian"):
        pytest.skip("random binning takes the Laplacian only, and says so: tested apart")
    if approximation == "quantized" and model.kernel not in (None, "rbf", "laplacian"):
        pytest.skip("quantised kernels are stationary, and say so: tested apart")
    if name == "max_iter 1" and "KMeans" not in type(model).__name__:
        pytest.skip("k-means on a few eigenvectors may settle in one sweep")
    X = case.X()
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if case.error is not None:
            with pytest.raises(case.error[0], match=case.error[1]):
                model.fit(X, **case.fit)
            assert time.perf_counter() - started < 2.0
            assert not hasattr(model, "n_features_in_")
            return
        labels = model.fit(X, **case.fit).labels_
        assert np.array_equal(model.predict(X), labels)
    strays = [w for w in caught if not issubclass(w.category, MercerWarning)]
    assert not strays, strays[0].message
    if any("unconnected parts" in str(w.message) for w in caught):
        return  # the labels are arbitrary, and the user was told
    if case.warns is not None:
        assert any(case.warns in str(w.message) for w in caught)
    assert case.labels(labels), np.bincount(labels)


@every_estimator
def test_predict_is_as_strict_as_fit(make):
    model = make()
    with pytest.raises(NotFittedError):
        model.predict(X0)
    model.fit(X0)
    for X, words in (
        (with_value(np.nan), "NaN at row 17"),
        (X0[:, :2], "2 features"),
        (np.empty((0, 3)), "0 sample"),
        (X0 * 1e300, "overflow"),
        (X0.astype("datetime64[s]"), "numeric"),
    ):
        with pytest.raises(ValueError, match=words):
            model.predict(X)
    with pytest.raises(TypeError, match="masked"):
        model.predict(np.ma.masked_greater(X0, 15))
    far = model.predict([[1e9, -1e9, 0.0]])
    assert far.shape == (1,)
    assert 0 <= far[0] < 3


# Streams divide ties by degrees, so that a narrow kernel still follows neighbours.
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name.startswith("KernelKMeans")])
def test_a_narrow_bandwidth_is_called_out(name):
    make = ESTIMATORS[name]
    X, _ = make_blobs(500, 2, centers=[[-10, 0], [10, 0], [0, 17]], random_state=0)
    with pytest.warns(MercerWarning, match="explain only"):
        make(gamma=100.0).fit(X)
