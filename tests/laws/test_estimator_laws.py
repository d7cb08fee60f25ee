"""Laws that hold for every estimator: see CONTRACTS in the documentation.

Partitions are compared by ARI; only the engine, block, thread, piece and save/load laws compare
label numbers.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import warnings
from unittest import SkipTest

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import estimator_checks_generator

import mercer
from estimators import ESTIMATORS
from marking import one_of_each_class, seeds
from mercer import MercerWarning
from mercer.rows.distinct import EXACT_ROWS

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
one_of_each = one_of_each_class(ESTIMATORS)


def overlapping(seed, n=2000, d=5, dtype=np.float32):
    """Blobs that touch, so that labels near borders are easily flipped by rounding."""
    X, _ = make_blobs(n, d, centers=4, cluster_std=4.0, random_state=seed)
    return X.astype(dtype)


def separated(seed, n=240, d=2):
    return make_blobs(n, d, centers=np.eye(3, d) * 20 - 10, random_state=seed)


@one_of_each
def test_scikit_learns_checks_pass(make):
    failures = []
    for estimator, check in estimator_checks_generator(make(n_clusters=3)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the checks themselves fit odd data
            try:
                check(estimator)
            except SkipTest:
                pass
            except Exception as error:
                failures.append((check.func.__name__, error))
    assert not failures


@every_estimator
@seeds(quick=1)
@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(np.float32, marks=pytest.mark.numeric),
        pytest.param(np.float64, marks=pytest.mark.slow),
    ],
)
def test_labels_do_not_depend_on_threads_blocks_or_pieces(make, seed, dtype):
    name = repr(make())
    n = 700 if "exact" in name else 3000 if "neighbors" in name else 20_000
    X = overlapping(seed, n=n, dtype=dtype)
    params = {} if "exact" in name or "greedy" in name else {"rank": 100}
    model = make(4, random_state=seed, **params).fit(X)
    for other in ({"n_jobs": 2}, {"max_memory": "60MB"}, {"max_memory": "2GB", "n_jobs": 2}):
        again = make(4, random_state=seed, **params, **other).fit(X)
        assert np.array_equal(again.labels_, model.labels_)
        assert np.array_equal(again.cluster_weights_, model.cluster_weights_)
    assert np.array_equal(model.predict(X), model.labels_)
    cuts = np.sort(np.random.default_rng(seed).integers(1, len(X), 5))
    pieces = [model.predict(piece) for piece in np.split(X, cuts) if len(piece)]
    assert np.array_equal(np.concatenate(pieces), model.labels_)


@every_estimator
@seeds(quick=1)
def test_equal_rows_get_equal_labels_wherever_they_stand(make, seed):
    X = overlapping(seed, n=700)
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, len(X), 1500)
    model = make(4, random_state=seed).fit(X)
    assert np.array_equal(model.predict(X[ids]), model.labels_[ids])


@every_estimator
@seeds(quick=1)
def test_weight_two_is_the_row_twice(make, seed):
    X = overlapping(seed, n=300, dtype=np.float64)
    weights = np.random.default_rng(seed).integers(0, 4, len(X))
    weighted = make(4, random_state=seed).fit(X, sample_weight=weights)
    repeated = make(4, random_state=seed).fit(np.repeat(X, weights, axis=0))
    assert adjusted_rand_score(weighted.predict(X), repeated.predict(X)) == 1.0
    assert weighted.cluster_weights_ == pytest.approx(repeated.cluster_weights_)


@every_estimator
@seeds(quick=1)
def test_permuted_rows_are_the_same_problem(make, seed):
    X = overlapping(seed, n=300, dtype=np.float64)
    order = np.random.default_rng(seed).permutation(len(X))
    model = make(4, random_state=seed).fit(X)
    shuffled = make(4, random_state=seed).fit(X[order])
    assert adjusted_rand_score(model.labels_[order], shuffled.labels_) == 1.0


@every_estimator
@seeds(quick=1)
def test_far_blobs_are_found_with_defaults(make, seed):
    for n, d in ((60, 2), (300, 2), (300, 100)):
        X, y = separated(seed, n, d)
        least = 0.97 if getattr(make(), "ensemble", None) else 1.0  # made for vaguer clusters
        assert adjusted_rand_score(y, make(3, random_state=seed).fit(X).labels_) >= least


@every_estimator
@seeds(quick=1)
def test_labels_are_numbered_by_weight(make, seed):
    X = overlapping(seed, n=500)
    model = make(4, random_state=seed).fit(X)
    counts = np.bincount(model.labels_, minlength=4)
    assert (np.diff(counts) <= 0).all()
    assert np.array_equal(counts, model.cluster_weights_)


@one_of_each
def test_dense_sparse_frames_and_lists_are_the_same_rows(make):
    pandas, polars, pyarrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    X, _ = separated(0)
    X = np.round(X, 3)
    names = ["a", "b"]
    expected = make().fit(X).labels_
    frame = pandas.DataFrame(X, columns=names)
    forms = {
        "fortran": np.asfortranarray(X),
        "view": np.repeat(X, 2, axis=1)[:, ::2],
        "list": X.tolist(),
        "batches": [X[:100], X[100:]],
        "pandas": frame,
        "polars": polars.DataFrame(X, schema=names),
        "pyarrow": pyarrow.table({"a": X[:, 0], "b": X[:, 1]}),
    }
    for name, form in forms.items():
        model = make().fit(form)
        labels = model.predict(form)
        assert np.array_equal(labels, expected), name
    for kind in ("csr", "csc", "coo", "lil", "dok"):
        sparse = sp.csr_array(X).asformat(kind)
        assert adjusted_rand_score(expected, make().fit(sparse).labels_) == 1.0
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert adjusted_rand_score(expected, make().fit(wide).labels_) == 1.0


@every_estimator
def test_feature_names_are_kept_and_checked(make):
    pandas = pytest.importorskip("pandas")
    X, _ = separated(0)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = make().fit(frame)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[["b", "a"]])
    with pytest.raises(ValueError, match="unseen at fit"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X)
    model.fit(X)
    assert not hasattr(model, "feature_names_in_")


@one_of_each
def test_every_kind_of_random_state(make):
    X = overlapping(0, n=300)
    for state in (0, np.int64(0)):
        assert np.array_equal(
            make(random_state=state).fit(X).labels_, make(random_state=0).fit(X).labels_
        )
    for kind in (np.random.RandomState, np.random.default_rng):
        one, two = make(random_state=kind(3)).fit(X), make(random_state=kind(3)).fit(X)
        assert np.array_equal(one.labels_, two.labels_)
    make(random_state=None).fit(X)
    for bad in (-1, "seed", 1.5, True):
        with pytest.raises(ValueError, match="random_state"):
            make(random_state=bad).fit(X)


@every_estimator
def test_nothing_passed_in_is_changed_or_kept(make):
    X, _ = separated(0)
    X = X.astype(np.float64)
    weights = np.ones(len(X))
    is_binning = getattr(make(), "approximation", None) == "binning"
    before, kernel = X.copy(), (mercer.Laplacian if is_binning else mercer.RBF)("auto")
    model = make(kernel=kernel).fit(X, sample_weight=weights)
    assert np.array_equal(X, before)
    assert kernel.gamma == "auto"
    assert model.kernel_.gamma != "auto"
    labels = model.predict(before)
    X[:] = 0.0
    weights[:] = 0.0
    assert np.array_equal(model.predict(before), labels)


@every_estimator
def test_a_failed_or_interrupted_fit_leaves_the_model_as_it_was(make, monkeypatch):
    X, _ = separated(0)
    model = make().fit(X)
    state = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 5, np.nan, X))
    assert vars(model) == state
    module = sys.modules[type(model).__module__]

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    stages = ("pose", "fit_factor", "start_stream", "absorb", "numbering")  # absorb: rows > first
    for name in (stage for stage in stages if hasattr(module, stage)):
        if name == "absorb" and len(X) <= (make().initial_size or len(X)):
            continue
        with monkeypatch.context() as patch:
            patch.setattr(module, name, interrupt)
            fresh = make()
            for estimator in (model, fresh):
                with pytest.raises(KeyboardInterrupt):
                    estimator.fit(X)
        assert vars(model) == state
        assert not [attribute for attribute in vars(fresh) if attribute.endswith("_")]


@every_estimator
def test_models_pickle_clone_and_refit(make):
    X, _ = separated(0)
    model = make().fit(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.labels_)
    assert not hasattr(clone(model), "n_features_in_")
    assert np.array_equal(model.fit(X).labels_, clone(model).fit(X).labels_)


@one_of_each
def test_concurrent_fits_do_not_disturb_each_other(make):
    Xs = [overlapping(seed, n=400) for seed in range(4)]
    alone = [make().fit(X).labels_ for X in Xs]
    together = [None] * 4

    def work(i):
        together[i] = make().fit(Xs[i]).labels_

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for a, b in zip(alone, together, strict=True):
        assert np.array_equal(a, b)


@every_estimator
def test_one_cluster_fits_with_a_word(make):
    X, _ = separated(0)
    with pytest.warns(MercerWarning, match="n_clusters=1"):
        model = make(1).fit(X)
    assert (model.labels_ == 0).all()


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "KMeans" in name])
def test_transform_and_score_agree_with_inertia(name):
    X, _ = separated(0)
    model = ESTIMATORS[name]().fit(X)
    distances = model.transform(X)
    assert distances.shape == (len(X), 3)
    assert np.array_equal(distances.argmin(axis=1), model.labels_)
    assert model.score(X) == pytest.approx(-(distances.min(axis=1) ** 2).sum(), rel=1e-6)
    assert -model.score(X) == pytest.approx(model.inertia_, rel=1e-3, abs=1e-6)
    assert len(model.get_feature_names_out()) == 3


def test_beyond_the_exact_limit_a_sample_chooses_and_all_rows_settle(tmp_path):
    """More rows than EXACT_ROWS: in memory, from a file and by batches, all the same labels."""
    n = EXACT_ROWS + 30_000
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = (np.array([[0, 0], [20, 0], [0, 20]])[y] + rng.normal(size=(n, 2))).astype(np.float32)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    make = ESTIMATORS["KernelKMeans"]
    model = make(rank=32).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.999
    assert np.array_equal(model.predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=0.05)
    from_file = make(rank=32, max_memory="100MB", n_jobs=2).fit(path)
    assert np.array_equal(from_file.predict(path), model.labels_)
    with pytest.raises(AttributeError, match="predict"):
        _ = from_file.labels_
    from_batches = make(rank=32).fit([X[:50_000], X[50_000:]])
    assert np.array_equal(from_batches.predict(X), model.labels_)
    weights = np.where(y == 0, 0.0, 1.0)
    weighted = make(2, rank=32).fit(X, sample_weight=weights)
    assert adjusted_rand_score(y[y > 0], weighted.labels_[y > 0]) > 0.999


def test_a_precomputed_kernel_gives_what_the_kernel_gives():
    X, y = separated(0)
    K = mercer.RBF(0.01)(X)
    model = ESTIMATORS["KernelKMeans"](kernel="precomputed").fit(K)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert np.array_equal(model.predict(K), model.labels_)
    assert np.array_equal(model.predict(K[:7]), model.labels_[:7])
    assert (
        adjusted_rand_score(
            y,
            ESTIMATORS["KernelKMeans"](kernel="precomputed").fit(K, sample_weight=y + 1.0).labels_,
        )
        == 1.0
    )


def test_column_blocks_cluster_text_beside_numbers():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    words = sp.csr_array(
        (rng.random((300, 30)) < 0.05 + 0.5 * (np.arange(30) // 10 == y[:, None])) * 1.0
    )
    numbers = rng.normal(size=(300, 2)) + 1e6
    kernel = 0.7 * mercer.Cosine(columns="text") + 0.3 * mercer.RBF(columns="numbers")
    X = {"text": words, "numbers": numbers}
    model = ESTIMATORS["KernelKMeans"](kernel=kernel).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert np.array_equal(model.predict(X), model.labels_)
    swapped = {"numbers": numbers, "text": words}
    assert np.array_equal(model.predict(swapped), model.labels_)
    for wrong in ({"text": words[:, :9], "numbers": numbers}, {"text": words}, numbers):
        with pytest.raises(ValueError, match=r"block|features"):
            model.predict(wrong)
    kernel = 0.7 * mercer.Cosine(columns=0) + 0.3 * mercer.RBF(columns=1)
    as_tuple = ESTIMATORS["KernelKMeans"](kernel=kernel).fit((words, numbers))
    assert np.array_equal(as_tuple.labels_, model.labels_)


def test_import_is_cheap_and_compiles_nothing():
    code = "import sys, mercer; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
