"""Streams of very many clusters: a reservoir and means of all rows, without eigenvectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import mercer
from marking import seeds
from mercer import RBF, BudgetError, Cosine, MercerWarning, StreamingKernelKMeans
from mercer.cli.stream import stream_rows
from mercer.datasets import many_clusters
from mercer.exceptions import ModelFileError
from mercer.rows.format import RowFormat

SIZES = {"initial_size": 120, "max_size": 150, "batch_size": 60}


def clusters(seed=0, n=500, k=6, d=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(k, d))[y] * 8 + rng.normal(size=(n, d))
    return X.astype(dtype), y


def make(n_clusters=6, **parameters):
    parameters = {"algorithm": "means", "random_state": 0, **SIZES, **parameters}
    return StreamingKernelKMeans(n_clusters, **parameters)


def assert_same_stream(one, two, X):
    for name in ("centers", "counts", "weights", "cluster_weights"):
        assert np.array_equal(getattr(one.stream_, name), getattr(two.stream_, name)), name
    assert np.array_equal(one.buffer_, two.buffer_)
    assert one.report_.stream == two.report_.stream
    assert (one.n_seen_, one.n_queued_) == (two.n_seen_, two.n_queued_)
    assert np.array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize(
    ("n_clusters", "parameters", "is_reservoir"),
    [
        (8, {}, False),
        (83, {}, False),
        (84, {}, True),
        (100, {"max_size": 2500}, False),
        (100, {"sampling": "uniform"}, False),
        (151, {"initial_size": 500, "max_size": 600}, True),
        (151, {"n_neighbors": 50}, False),
        (151, {"algorithm": "eigen"}, False),
        (3, {"algorithm": "means"}, True),
    ],
)
def test_the_number_of_clusters_chooses_the_algorithm(n_clusters, parameters, is_reservoir):
    X, _ = many_clusters(1000, n_clusters, n_features=4, random_state=0)
    model = StreamingKernelKMeans(n_clusters, random_state=0, **parameters).partial_fit(X)
    assert model.stream_.is_reservoir == is_reservoir


@seeds(3, quick=1)
@pytest.mark.parametrize("sizes", ["equal", "zipf"])
@pytest.mark.parametrize("shape", ["convex", "curved"])
def test_many_clusters_are_found(sizes, shape, seed):
    """Of each family more than eigenvectors, or k-means from one start, find (.88 to .97)."""
    X, y = many_clusters(
        20_000, 100, sizes=sizes, shape=shape, separation=1.0, random_state=seed, dtype=np.float32
    )
    model = StreamingKernelKMeans(100, random_state=seed).partial_fit(X)
    least = 0.88 if (sizes, shape) == ("zipf", "curved") else 0.97
    assert normalized_mutual_info_score(y, model.predict(X)) > least


@pytest.mark.numeric
@pytest.mark.parametrize("forgetting", [0.0, 0.1])
def test_any_split_into_calls_is_the_same_stream(forgetting):
    X, _ = clusters()
    whole = make(forgetting=forgetting).partial_fit(X)
    assert whole.report_.stream["evictions"] > 0
    for size in (7, 60, 119, 211):
        again = make(forgetting=forgetting)
        for start in range(0, len(X), size):
            again.partial_fit(X[start : start + size])
        assert_same_stream(again, whole, X)


@pytest.mark.numeric
@pytest.mark.parametrize("cut", [50, 130, 333])
def test_a_saved_stream_goes_on_as_if_it_had_not_been(cut, tmp_path):
    X, _ = clusters()
    mercer.save(make().partial_fit(X[:cut]), tmp_path / "stream.mercer")
    again = mercer.load(tmp_path / "stream.mercer")
    assert again.n_seen_ == cut
    assert_same_stream(again.partial_fit(X[cut:]), make().partial_fit(X), X)


@pytest.mark.numeric
def test_any_number_of_threads_is_the_same_stream():
    X, _ = many_clusters(30_000, 90, n_features=8, random_state=0, dtype=np.float32)
    one, two = (StreamingKernelKMeans(90, n_jobs=n, random_state=0) for n in (1, 3))
    assert_same_stream(one.partial_fit(X), two.partial_fit(X), X)


@pytest.mark.numeric
def test_pieces_and_powers_of_two_have_the_same_labels():
    X, _ = clusters(n=2000)
    model = make().fit(X)
    labels = model.predict(X)
    assert np.array_equal(model.labels_, labels)
    pieces = [model.predict(X[at : at + 77]) for at in range(0, len(X), 77)]
    assert np.array_equal(np.concatenate(pieces), labels)
    distances = model.transform(X)
    assert np.array_equal(distances.argmin(axis=1), labels)
    assert model.inertia_ == pytest.approx(float((distances.min(axis=1) ** 2).sum()))
    for factor in (2.0**40, 2.0**-70):
        assert np.array_equal(make().fit(factor * X).labels_, labels)


def test_the_reservoir_is_a_uniform_sample():
    """Each tenth of the stream has a tenth of the reservoir, whatever came last."""
    X = np.arange(40_000.0)[:, None] + np.random.default_rng(0).random((40_000, 1))
    model = make(4, initial_size=500, max_size=2000, batch_size=500).partial_fit(X)
    held = np.bincount((model.buffer_[:, 0] // 4000).astype(int), minlength=10)
    assert len(model.buffer_) == 2000
    assert np.abs(held - 200).max() < 5 * np.sqrt(200)
    forgetful = make(4, initial_size=500, max_size=2000, batch_size=500, forgetting=0.2)
    assert np.median(forgetful.partial_fit(X).buffer_) > 36_000


def test_forgetting_follows_clusters_and_the_report_says_that_they_moved():
    rng = np.random.default_rng(0)
    start, step = rng.normal(size=(6, 4)) * 8, rng.normal(size=(6, 4)) * 8
    models = {f: make(forgetting=f) for f in (0.0, 0.2)}
    for moment in np.linspace(0, 1, 60):
        y = rng.integers(0, 6, 60)
        X = (start + moment * step)[y] + rng.normal(size=(60, 4))
        for model in models.values():
            model.partial_fit(X)
    scores = {f: normalized_mutual_info_score(y, m.predict(X)) for f, m in models.items()}
    assert scores[0.2] > 0.95
    near = {
        f: np.linalg.norm(X[:, None] - m.buffer_, axis=2).min(axis=1) for f, m in models.items()
    }
    assert np.median(near[0.2]) < np.median(near[0.0])
    model = models[0.2]
    assert model.report_.stream["unexplained"] < 0.6
    model.partial_fit(X + 50.0)
    assert model.report_.stream["unexplained"] > 0.4
    assert {"births", "deaths"} <= set(model.report_.stream)
    assert "unexplained" in str(model.report_)


def test_there_are_no_eigenvectors():
    model = make().partial_fit(clusters()[0])
    for name in ("eigenvalues_", "leverage_", "factor_"):
        with pytest.raises(AttributeError, match="algorithm='eigen'"):
            getattr(model, name)
    assert len(model.buffer_labels_) == len(model.buffer_) == 150


@pytest.mark.parametrize("kernel", ["cosine", "laplacian", "polynomial", RBF(0.05)], ids=str)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_other_kernels_and_sparse_rows_have_features(kernel, is_sparse, tmp_path):
    X, y = clusters(n=900, d=8)
    rows = sp.csr_array(X) if is_sparse else X
    model = make(kernel=kernel).partial_fit(rows)
    has_features = is_sparse or not isinstance(kernel, RBF)
    assert (model.stream_.factor is not None) == has_features
    labels = model.predict(rows)
    assert adjusted_rand_score(y, labels) > 0.8
    mercer.save(model, tmp_path / "m.mercer")
    assert np.array_equal(mercer.load(tmp_path / "m.mercer").predict(rows), labels)


def test_text_beside_numbers_is_streamed():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    words = (rng.random((600, 30)) < 0.05 + 0.5 * (np.arange(30) // 10 == y[:, None])) * 1.0
    X = {"text": sp.csr_array(words), "image": rng.normal(size=(600, 2)) + 3 * y[:, None]}
    kernel = 0.5 * Cosine(columns="text") + 0.5 * RBF(columns="image")
    model = make(3, kernel=kernel)
    for start in range(0, 600, 90):
        model.partial_fit({name: part[start : start + 90] for name, part in X.items()})
    assert adjusted_rand_score(y, model.predict(X)) > 0.9
    one_block = make(3, kernel=RBF(0.3, columns="image")).partial_fit(X)
    assert one_block.stream_.factor is None
    assert adjusted_rand_score(y, one_block.predict(X)) > 0.7


def test_weights_count():
    X, y = clusters()
    weights = (np.arange(500) % 3).astype(float)
    model = make().partial_fit(X, sample_weight=weights)
    assert model.cluster_weights_.sum() == pytest.approx(weights[:480].sum())  # 20 are queued
    assert adjusted_rand_score(y, model.predict(X)) > 0.9


@pytest.mark.parametrize("value", [1e13, 1e20])
def test_huge_rows_of_single_precision_leave_means_finite(value):
    X, _ = clusters(dtype=np.float32)
    huge = X.copy()
    huge[300] = value
    model = make().partial_fit(X[:200]).partial_fit(huge)
    assert np.isfinite(model.stream_.centers).all()
    assert len(model.predict(X)) == len(X)


@pytest.mark.parametrize(
    "batch",
    [lambda X: np.where(X > 8, np.nan, X), lambda X: X[:, :3], lambda X: sp.csr_array(X)],
)
def test_a_hostile_batch_leaves_the_model_as_it_was(batch):
    X, _ = clusters()
    model = make().partial_fit(X[:333])
    before = dict(vars(model))
    with pytest.raises(ValueError):
        model.partial_fit(batch(X))
    assert vars(model) == before
    assert_same_stream(model.partial_fit(X[333:]), make().partial_fit(X), X)


def test_few_rows_have_a_provisional_model():
    X, _ = clusters()
    model = make()
    with pytest.warns(MercerWarning, match="5 rows so far"):
        model.partial_fit(X[:5])
    model.partial_fit(X[5:40])
    assert model.stream_.is_provisional
    assert set(model.predict(X[:40])) <= set(range(6))
    assert_same_stream(model.partial_fit(X[40:]), make().partial_fit(X), X)


@pytest.mark.parametrize("change", ["counts", "centers", "weights", "limit", "format", "factor"])
def test_states_that_do_not_belong_together_are_refused(change, tmp_path):
    model = make().partial_fit(clusters()[0])
    state = model.stream_
    other = make(kernel="cosine").partial_fit(clusters(d=3)[0]).stream_
    damaged = {
        "counts": -state.counts,
        "centers": state.centers[:, 1:],
        "weights": state.weights[1:],
        "limit": float("nan"),
        "format": RowFormat(np.dtype(float), np.zeros(3)),
        "factor": other.factor,
    }
    model.stream_ = replace(state, **{change: damaged[change]})
    mercer.save(model, tmp_path / "stream.mercer")
    with pytest.raises(ModelFileError):
        mercer.load(tmp_path / "stream.mercer")


def test_a_reservoir_that_does_not_fit_is_refused_with_one_that_would():
    X, _ = many_clusters(3000, 200, n_features=8, random_state=0)
    with pytest.raises(BudgetError, match=r"lower max_size to about"):
        StreamingKernelKMeans(200, initial_size=1000, max_memory="3MB").partial_fit(X)


def test_defaults_for_ten_thousand_clusters_fit_into_a_few_gigabytes():
    from mercer.rows.distinct import EXACT_ROWS
    from mercer.stream.buffer import Reservoir

    initial, most = StreamingKernelKMeans(10_000)._reservoir_sizes()
    assert initial == EXACT_ROWS  # of more, a start would use a sample only
    assert most == 600_000
    assert Reservoir(most, 10_000).memory(most, 64, 4) < 2.5e9


def test_snapshots_resume(tmp_path, caplog):
    """A run that stopped in the middle goes on to the labels of one that did not."""
    caplog.set_level("INFO", logger="mercer.cli.stream")
    X, _ = clusters(n=600)
    batches = [X[at : at + 50] for at in range(0, 600, 50)]

    def run(name, some, resume):
        return stream_rows(
            iter(some),
            make(),
            labels=tmp_path / f"{name}.csv",
            snapshot=tmp_path / f"{name}.mercer",
            every=2,
            resume=resume,
        )

    whole = run("whole", batches, False)
    run("cut", batches[:7], False)
    assert_same_stream(run("cut", batches, True), whole, X)
    assert (tmp_path / "cut.csv").read_text() == (tmp_path / "whole.csv").read_text()
    lines = [record.message for record in caplog.records]
    assert any("600 rows seen" in line and "unexplained" in line for line in lines)
