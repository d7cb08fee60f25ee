"""Hostile treatment of estimators as records: what is done, and what must be true afterwards.

`answer` is what an estimator says of rows: labels, or coordinates.
"""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

import mercer
from hostile_inputs import X0, XR, frame, with_value
from mercer import BudgetError, MercerWarning
from waiting import wait_until

Y, _ = make_blobs(200, 3, centers=3, cluster_std=3.0, random_state=8)  # blobs that touch
Y.setflags(write=False)
UNSEEN = r"\d.* rows are farther from every pivot"  # what predict says of them


@dataclass(frozen=True)
class Deed:
    """Something done to an estimator; `act` asserts the outcome that its docstring states."""

    act: Callable[[Callable[..., Any], Any], None]
    costly: bool = False


def answer(model: Any, X: Any) -> np.ndarray:
    return model.predict(X) if hasattr(model, "predict") else model.transform(X)


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Equal labels, or coordinates equal up to rounding."""
    if one.dtype.kind == "i":
        return np.array_equal(one, other)
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-5, atol=1e-6)


def fitted_names(model: Any) -> list[str]:
    return [name for name in vars(model) if name.endswith("_")]


def act_before_fit(make, tmp_path):
    """One error that says so, for every verb; nothing is set."""
    model = make()
    with pytest.raises(NotFittedError):
        answer(model, X0)
    with pytest.raises((ValueError, NotFittedError)):
        model.save(tmp_path / "model.mercer")
    assert not list(tmp_path.iterdir())
    assert not fitted_names(model)


def refit_on_other_rows(make, tmp_path):
    """Nothing of the first fit is left: as if fitted on the second rows alone."""
    model = make().fit(make_blobs(90, 5, centers=3, random_state=3)[0])
    assert same(answer(model.fit(X0), X0), answer(make().fit(X0), X0))
    assert model.n_features_in_ == 3


def refit_on_the_same_rows(make, tmp_path):
    """The same answer, to the last bit."""
    model = make()
    assert np.array_equal(answer(model.fit(Y), Y), answer(model.fit(Y), Y))


def refit_fails(make, tmp_path):
    """The model is as it was, and answers as it did."""
    model = make().fit(X0)
    before, state = answer(model, X0), dict(vars(model))
    for bad in (with_value(np.nan), X0[:, 0], X0 * 1e300, "missing.npy", None):
        with pytest.raises((ValueError, TypeError, OSError)):
            model.fit(bad)
    assert vars(model) == state
    assert np.array_equal(answer(model, X0), before)


def refit_with_bad_parameters(make, tmp_path):
    """An error that names the parameter; the fitted state stays."""
    model = make().fit(X0)
    before = answer(model, X0)
    with pytest.raises(ValueError, match="gamma"):
        model.set_params(gamma=-1.0).fit(X0)
    assert np.array_equal(answer(model, X0), before)


def set_params_after_fit(make, tmp_path):
    """Parameters are for the next fit; what was learnt answers as before."""
    model = make().fit(X0)
    before = answer(model, X0)
    model.set_params(random_state=5, n_jobs=2)
    assert np.array_equal(answer(model, X0), before)
    assert model.get_params()["random_state"] == 5


def set_params_unknown(make, tmp_path):
    """One error that names it."""
    with pytest.raises(ValueError, match="n_custers"):
        make().set_params(n_custers=3)


def parameters_unchanged(make, tmp_path):
    """fit writes no parameter, and no parameter's inside."""
    model = make()
    before = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(X0)
    assert {name: repr(value) for name, value in model.get_params().items()} == before


def cloned(make, tmp_path):
    """A clone has the parameters and nothing learnt, and learns the same."""
    model = make().fit(Y)
    twin = clone(model)
    assert not fitted_names(twin)
    assert np.array_equal(answer(twin.fit(Y), Y), answer(model, Y))


def copied(make, tmp_path):
    """Copies answer alike; a refit of the copy does not touch the original."""
    model = make().fit(X0)
    before = answer(model, X0)
    for duplicate in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(answer(duplicate, X0), before)
        duplicate.fit(Y)
        assert np.array_equal(answer(model, X0), before)


def saved_and_loaded(make, tmp_path):
    """A loaded model answers to the last bit and reports the same, trust included."""
    model = make().fit(Y)
    model.save(tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert np.array_equal(answer(loaded, Y), answer(model, Y))
    assert str(loaded.report_) == str(model.report_)
    assert loaded.report_ == model.report_


def two_threads(make, tmp_path):
    """The same bits by one thread and by two."""
    one, two = make(n_jobs=1).fit(Y), make(n_jobs=2).fit(Y)
    assert np.array_equal(answer(one, Y), answer(two, Y))


def rows_permuted(make, tmp_path):
    """The same partition."""
    order = np.random.default_rng(0).permutation(len(Y))
    one, two = answer(make().fit(Y), Y), answer(make().fit(Y[order]), Y)
    if one.dtype.kind == "i":
        assert adjusted_rand_score(one, two) == 1.0
    else:
        assert np.allclose(np.abs(one), np.abs(two), atol=1e-6)


def input_overwritten(make, tmp_path):
    """Nothing kept is a view of X or of the weights, and neither is written to."""
    for X in (X0.copy(), X0.astype(np.float32), np.asfortranarray(X0), sp.csr_array(X0)):
        weights = np.ones(150)
        kept = X.copy()
        model = make().fit(X, sample_weight=weights)
        before = answer(model, kept)
        assert (kept != X).sum() == 0
        assert (weights == 1.0).all()
        (X.data if sp.issparse(X) else X)[...] = 0.0
        weights[:] = 0.0
        assert np.array_equal(answer(model, kept), before)


def answers_overwritten(make, tmp_path):
    """What is returned is the caller's: writing to it changes no later answer."""
    model = make().fit(X0)
    first = answer(model, X0)
    before = first.copy()
    first[...] = 0
    assert np.array_equal(answer(model, X0), before)


def columns_changed_in_name(make, tmp_path):
    """Reordered, renamed, missing or new columns are refused by name; none are warned about."""
    pandas = pytest.importorskip("pandas")
    table = frame("pandas")
    model = make().fit(table)
    for changed, words in (
        (table[["b", "a", "c"]], "same order"),
        (table.rename(columns={"a": "z"}), "unseen at fit time"),
        (table[["a", "b"]], "now missing"),
        (table.assign(d=1.0), "unseen at fit time"),
    ):
        with pytest.raises(ValueError, match=words):
            answer(model, changed)
    with pytest.warns(UserWarning, match="valid feature names"):
        answer(model, table.to_numpy())
    assert isinstance(table, pandas.DataFrame)


def columns_changed_in_number(make, tmp_path):
    """More or fewer columns are refused with both numbers."""
    model = make().fit(X0)
    for X in (X0[:, :2], np.c_[X0, X0], sp.csr_array(X0[:, :2])):
        with pytest.raises(ValueError, match=rf"{X.shape[1]} features.*3 features"):
            answer(model, X)


def other_forms_at_predict(make, tmp_path):
    """Float32, lists, Fortran order and sparse rows get the answer of the same numbers."""
    X = XR.astype(np.float32).astype(np.float64)  # numbers that both types hold
    model = make().fit(X)
    expected = answer(model, X)
    for form in (X.astype(np.float32), X.tolist(), np.asfortranarray(X), X[::-1][::-1]):
        assert same(answer(model, form).astype(expected.dtype), expected)


def pieces_at_predict(make, tmp_path):
    """A row's answer does not depend on the rows around it."""
    model = make().fit(Y)
    whole = answer(model, Y)
    for piece in (slice(0, 1), slice(3, 10), slice(150, 200)):
        assert same(answer(model, Y[piece]), whole[piece])


def far_rows_at_predict(make, tmp_path):
    """Rows beyond anything seen get an answer, finite and without a numpy warning."""
    model = make().fit(X0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", UNSEEN, MercerWarning)
        far = answer(model, np.array([[1e100, 0, 0], [-1e9, 1e9, 0], [0, 0, 0]]))
    assert np.isfinite(far).all()


def float32_against_float64(make, tmp_path):
    """The same clusters (by ARI), and coordinates that hold as much of the kernel."""
    one, two = make().fit(X0), make().fit(X0.astype(np.float32))
    a, b = answer(one, X0), answer(two, X0.astype(np.float32))
    if a.dtype.kind == "i":
        assert adjusted_rand_score(a, b) == 1.0
    else:
        assert a.shape[0] == b.shape[0]
        assert np.linalg.norm(b) == pytest.approx(np.linalg.norm(a), rel=0.05)  # other pivots


def every_random_state(make, tmp_path):
    """Ints of any kind agree; generators in equal states agree; None works; the rest is refused."""
    expected = answer(make(random_state=3).fit(Y), Y)
    for state in (np.int64(3), np.uint8(3)):
        assert np.array_equal(answer(make(random_state=state).fit(Y), Y), expected)
    for kind in (np.random.RandomState, np.random.default_rng):
        one, two = (answer(make(random_state=kind(3)).fit(Y), Y) for _ in range(2))
        assert np.array_equal(one, two)
    make(random_state=None).fit(Y)
    for bad in (-1, "seed", 1.5, True, [1, 2]):
        with pytest.raises(ValueError, match="random_state"):
            make(random_state=bad).fit(Y)


def global_state_untouched(make, tmp_path):
    """NumPy's global stream, its error state and the warning filters are as before."""
    np.random.seed(7)
    state, errors, filters = np.random.get_state()[1].copy(), np.geterr(), list(warnings.filters)
    answer(make().fit(X0), X0)
    assert np.array_equal(np.random.get_state()[1], state)
    assert np.geterr() == errors
    assert list(warnings.filters) == filters


def numpy_told_to_raise(make, tmp_path):
    """A caller who made every floating-point event an error gets the same answer."""
    expected = answer(make().fit(X0), X0)
    with np.errstate(all="raise"):
        assert np.array_equal(answer(make().fit(X0), X0), expected)


def finiteness_assumed(make, tmp_path):
    """scikit-learn's assume_finite does not let NaN in."""
    with sklearn.config_context(assume_finite=True), pytest.raises(ValueError, match="NaN at row"):
        make().fit(with_value(np.nan))


def memory_limits(make, tmp_path):
    """Any budget that suffices gives the same bits; too little is one error before the work."""
    expected = answer(make().fit(Y), Y)
    for budget in (40_000_000, "60MB", "2GB"):
        assert np.array_equal(answer(make(max_memory=budget).fit(Y), Y), expected)
    with pytest.raises(BudgetError, match="max_memory"):
        make(max_memory=1000).fit(Y)


def concurrent_fits(make, tmp_path):
    """Four fits at once give what each gives alone."""
    Xs = [make_blobs(120, 3, centers=np.eye(3) * 9, random_state=s)[0] for s in range(4)]
    alone = [answer(make().fit(X), X) for X in Xs]
    together = _at_once([lambda X=X: answer(make().fit(X), X) for X in Xs])
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def concurrent_predicts(make, tmp_path):
    """One model asked by four threads answers each as alone."""
    model = make().fit(Y)
    expected = answer(model, Y)
    assert all(np.array_equal(told, expected) for told in _at_once([lambda: answer(model, Y)] * 4))


def after_fork(make, tmp_path):
    """A child of a process that used two threads fits, and ends, with the same answer."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    expected = answer(make(n_jobs=2).fit(Y), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons dislike the fork
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if np.array_equal(answer(make(n_jobs=2).fit(Y), Y), expected) else 2
        finally:
            os._exit(code)
    assert _exit_code(child) == 0


def interrupted_fit(make, tmp_path):
    """Ctrl-C at any moment of a first fit leaves an estimator that is not fitted, and can be."""
    expected = answer(make().fit(Y), Y)
    for delay in _moments(lambda: make().fit(Y)):
        model = make()
        _interrupt(delay, partial(model.fit, Y))
        if fitted_names(model):  # it was done before the interrupt came
            assert np.array_equal(answer(model, Y), expected)
        assert np.array_equal(answer(model.fit(Y), Y), expected)


def interrupted_refit(make, tmp_path):
    """Ctrl-C at any moment of a second fit leaves the first model or the second, whole."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", UNSEEN, MercerWarning)  # rows of the one by the other
        first, second = answer(make().fit(X0), Y), answer(make().fit(Y), Y)
        for delay in _moments(lambda: make().fit(Y)):
            model = make().fit(X0)
            _interrupt(delay, partial(model.fit, Y))
            told = answer(model, Y)
            assert np.array_equal(told, first) or np.array_equal(told, second)


def warnings_as_errors(make, tmp_path):
    """A MercerWarning made an error leaves an estimator that is not fitted."""
    model = make(gamma=1e-300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MercerWarning):
            model.fit(X0)
    assert not fitted_names(model)


def in_a_process_without_numba_threads(make, tmp_path):
    """A fresh interpreter with odd settings of threads and locale gives the same labels."""
    name = type(make()).__name__
    asked = {"n_clusters": 3} if hasattr(make(), "n_clusters") else {}
    asked["random_state"] = 0
    code = (
        "import sys, numpy as np, mercer; X = np.load(sys.argv[1]);"
        f"m = mercer.{name}(**{asked!r}).fit(X);"
        "a = m.predict(X) if hasattr(m, 'predict') else m.transform(X); np.save(sys.argv[2], a)"
    )
    np.save(tmp_path / "X.npy", Y)
    here = getattr(mercer, name)(**asked).fit(Y)
    there = {**os.environ, "OMP_NUM_THREADS": "1", "LC_ALL": "C", "PYTHONHASHSEED": "123"}
    paths = [str(tmp_path / "X.npy"), str(tmp_path / "a.npy")]
    subprocess.run([sys.executable, "-W", "error", "-c", code, *paths], check=True, env=there)
    assert np.array_equal(np.load(paths[1]), answer(here, Y))


def _at_once(works):
    results = [None] * len(works)

    def run(i):
        results[i] = works[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _exit_code(child):
    """How a child ended; one that hangs is ended, and counts as -9."""
    found = []

    def has_ended():
        ended, status = os.waitpid(child, os.WNOHANG)
        found.extend([os.waitstatus_to_exitcode(status)] if ended else [])
        return ended

    if wait_until(has_ended):
        return found[0]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def _moments(work):
    """Six delays spread over the time that the work takes."""
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    return [seconds * share for share in (0.02, 0.2, 0.4, 0.6, 0.8, 0.97)]


def _interrupt(delay, work):
    """What Ctrl-C does, so many seconds from now, if the work still goes on."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timers here")

    def interrupt(number, where):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            work()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGALRM, before)


DEEDS = {
    "before fit": Deed(act_before_fit),
    "refit on other rows": Deed(refit_on_other_rows),
    "refit on the same rows": Deed(refit_on_the_same_rows),
    "refit fails": Deed(refit_fails),
    "refit with bad parameters": Deed(refit_with_bad_parameters),
    "set_params after fit": Deed(set_params_after_fit),
    "set_params unknown": Deed(set_params_unknown),
    "parameters unchanged": Deed(parameters_unchanged),
    "clone": Deed(cloned),
    "copy": Deed(copied),
    "save and load": Deed(saved_and_loaded),
    "two threads": Deed(two_threads),
    "rows permuted": Deed(rows_permuted),
    "input overwritten": Deed(input_overwritten),
    "answers overwritten": Deed(answers_overwritten),
    "columns changed in name": Deed(columns_changed_in_name),
    "columns changed in number": Deed(columns_changed_in_number),
    "other forms at predict": Deed(other_forms_at_predict),
    "pieces at predict": Deed(pieces_at_predict),
    "far rows at predict": Deed(far_rows_at_predict),
    "float32 against float64": Deed(float32_against_float64),
    "every random_state": Deed(every_random_state, costly=True),
    "global state untouched": Deed(global_state_untouched),
    "numpy told to raise": Deed(numpy_told_to_raise),
    "finiteness assumed": Deed(finiteness_assumed),
    "memory limits": Deed(memory_limits),
    "concurrent fits": Deed(concurrent_fits, costly=True),
    "concurrent predicts": Deed(concurrent_predicts),
    "after fork": Deed(after_fork),
    "interrupted fit": Deed(interrupted_fit, costly=True),
    "interrupted refit": Deed(interrupted_refit, costly=True),
    "warnings as errors": Deed(warnings_as_errors),
    "another process": Deed(in_a_process_without_numba_threads, costly=True),
}
