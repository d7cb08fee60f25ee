"""Hostile inputs, and hostile treatment: each case states its right outcome, for every estimator.

An outcome is a correct result (by a stated check) or one clear error within two seconds. No numpy
warning escapes: warnings are errors here, and Mercer's own are named by the case.
"""

from __future__ import annotations

import inspect
import time
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from estimators import ESTIMATORS, TRANSFORMERS
from hostile_inputs import CASES, X0, with_value
from hostile_treatment import DEEDS, UNSEEN
from mercer import MercerWarning
from mercer.linalg.eigen import leading_eigenpairs

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
FEW = ("KernelKMeans", "SpectralClustering", "KernelSpectralClustering", "KernelFeatures")
STRICT = 2.0  # CPU seconds until an error


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """What the first fit of a process compiles is no part of the time until an error."""
    for name in FEW:
        (ESTIMATORS | TRANSFORMERS)[name]().fit(X0)


# A kernel near the identity, or weights of which most are nothing, leave rows that no pivot sees.
MAY_BE_UNSEEN = pytest.mark.filterwarnings(f"ignore:{UNSEEN}")

# An interrupt between the opening of a file and its `with` leaves the closing to Python.
LEFT_OPEN = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*FileIO:pytest.PytestUnraisableExceptionWarning"
)


def product(cases, estimators):
    """Every case on every estimator.

    In the short run, every case on two of the few main estimators in turn, and on one of the
    others (costly cases: on none of them); the whole product with the slow tests.
    """
    tried = []
    others = [name for name in estimators if name not in FEW]
    main = [name for name in estimators if name in FEW]
    for number, (name, case) in enumerate(cases.items()):
        turn = others[number % len(others)]
        for estimator, make in estimators.items():
            is_main = estimator in main and (main.index(estimator) - number) % 2 == 0
            is_short = is_main or (estimator == turn and not case.costly)
            marks = [] if is_short else [pytest.mark.slow]
            marks += [LEFT_OPEN] if name.startswith("interrupted") else []
            tried.append(pytest.param(make, case, id=f"{name}-{estimator}", marks=marks))
    return tried


def made(make, case):
    """The estimator of a case, or a skip where the case cannot be asked of it."""
    params = dict(case.params)
    known = inspect.signature(make().__init__).parameters
    for name in params:
        if name not in known:
            pytest.skip(f"it has no {name}")
    model = make(**params)
    kinds = {
        "auto": (None, "rbf"),
        "landmarks": (None, "rbf"),
        "neighbors": (None, "rbf"),
        "binning": (None, "rbf", "laplacian"),
        "quantized": (None, "rbf", "laplacian"),
    }
    taken = kinds.get(str(getattr(model, "approximation", None)))
    if taken is not None and "kernel" in params and params["kernel"] not in taken:
        pytest.skip("its approximation takes other kernels only, and says so: tested apart")
    return model


def outcome(model, case):
    """Fit under watch; the fitted model, or None where the stated error came in time."""
    X = case.X()
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if case.error is not None:
            with pytest.raises(case.error[0], match=case.error[1]):
                model.fit(X, **case.fit)
            assert time.process_time() - started < STRICT
            assert not [name for name in vars(model) if name.endswith("_")]
            return None, X, []
        model.fit(X, **case.fit)
    strays = [w for w in caught if not issubclass(w.category, MercerWarning)]
    assert not strays, strays[0].message
    return model, X, [str(w.message) for w in caught]


@MAY_BE_UNSEEN
@pytest.mark.parametrize(("make", "case"), product(CASES, ESTIMATORS))
def test_hostile_input_has_its_stated_outcome(make, case):
    model = made(make, case)
    if "max_iter" in case.params and case.error is None and "KMeans" not in type(model).__name__:
        pytest.skip("k-means on a few eigenvectors may settle in one sweep")
    model, X, told = outcome(model, case)
    if model is None:
        return
    labels = model.labels_ if "labels_" in vars(model) else model.predict(X)
    assert np.array_equal(model.predict(X), labels)
    assert np.isfinite(model.cluster_weights_).all()
    if any("unconnected parts" in text for text in told):
        return  # the labels are arbitrary, and the user was told
    if case.warns is not None:
        assert any(case.warns in text for text in told)
    assert case.labels(labels), np.bincount(labels)


@pytest.mark.parametrize(("make", "case"), product(CASES, TRANSFORMERS))
def test_hostile_input_to_a_transformer_has_its_stated_outcome(make, case):
    model, X, _ = outcome(made(make, case), case)
    if model is None:
        return
    Z = model.transform(X)
    assert np.isfinite(Z).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        again = make(**case.params).fit_transform(X, **case.fit)
    assert np.allclose(again, Z, atol=1e-4)


@pytest.mark.parametrize(("make", "deed"), product(DEEDS, ESTIMATORS | TRANSFORMERS))
def test_hostile_treatment_has_its_stated_outcome(make, deed, tmp_path):
    deed.act(make, tmp_path)


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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", UNSEEN, MercerWarning)
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


def test_there_are_a_hundred_cases_and_more():
    assert len(CASES) + len(DEEDS) >= 100
    assert all(case.error is not None or callable(case.labels) for case in CASES.values())


def test_a_matrix_within_rounding_of_the_identity_has_eigenvectors():
    """LAPACK finds no subset of these: a narrow bandwidth ended in an IndexError."""
    tiny = np.random.default_rng(0).random((256, 256)) * 1e-105
    pairs = leading_eigenpairs(np.eye(256) + tiny + tiny.T, 7, rng=np.random.default_rng(0))
    assert np.allclose(pairs.values, 1.0)
    assert np.allclose(pairs.vectors.T @ pairs.vectors, np.eye(7))
