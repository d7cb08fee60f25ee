"""Streams: any split is the same stream, snapshots go on, hostile batches leave no trace."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_circles
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import mercer
from marking import seeds
from mercer import RBF, Cosine, HistogramIntersection, MercerWarning, StreamingKernelKMeans
from mercer.datasets import many_clusters
from mercer.exceptions import ModelFileError
from mercer.rows.format import RowFormat
from waiting import wait_until

SIZES = {"initial_size": 120, "max_size": 150, "batch_size": 60}


def clusters(seed=0, n=500, k=6, d=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(k, d))[y] * 8 + rng.normal(size=(n, d))
    return X.astype(dtype), y


def make(n_clusters=6, **parameters):
    return StreamingKernelKMeans(n_clusters, **{"random_state": 0, **SIZES, **parameters})


def fed(model, X, cuts):
    for piece in np.split(X, cuts):
        if len(piece):
            model.partial_fit(piece)
    return model


def assert_same_stream(one, two, X):
    a, b = one.stream_, two.stream_
    for name in ("values", "vectors", "clusters", "born", "cluster_weights"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in ("centers", "counts"):
        assert np.array_equal(getattr(a.means, name, None), getattr(b.means, name, None)), name
    assert np.array_equal(one.buffer_, two.buffer_)
    assert one.report_.stream == two.report_.stream
    assert (one.n_seen_, one.n_queued_) == (two.n_seen_, two.n_queued_)
    assert np.array_equal(one.predict(X), two.predict(X))


@pytest.mark.numeric
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sampling", ["leverage", "ridge", "uniform"])
def test_any_split_into_calls_is_the_same_stream(seed, sampling):
    X, y = clusters(seed)
    parameters = {"sampling": sampling, "random_state": seed}
    whole = make(**parameters).partial_fit(X)
    assert whole.report_.stream["additions"] > 0
    rng = np.random.default_rng(seed)
    for cuts in (np.arange(60, 500, 60), np.sort(rng.integers(130, 500, 7))):
        assert_same_stream(fed(make(**parameters), X, cuts), whole, X)
    assert_same_stream(make(**parameters, n_jobs=2).partial_fit(X), whole, X)
    assert normalized_mutual_info_score(y, whole.predict(X)) > 0.9


@seeds(2, quick=1)
def test_a_buffer_of_leverage_keeps_rare_clusters(seed):
    """Ties of a full buffer are made anew before clusters are, or most of the gain is lost."""
    X, y = many_clusters(20_000, 100, sizes="zipf", separation=1.0, random_state=seed)
    sizes = {"initial_size": 500, "max_size": 500, "batch_size": 500}
    scores = {}
    for sampling in ("leverage", "uniform"):
        model = make(100, sampling=sampling, random_state=seed, **sizes).partial_fit(X)
        scores[sampling] = normalized_mutual_info_score(y, model.predict(X))
    assert scores["leverage"] > scores["uniform"] + 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_few_rows_of_each_cluster_are_heard_as_a_whole(seed):
    """There are ten of a cluster in the buffer, of which few are tied to a new row."""
    X, y = many_clusters(12_000, 60, separation=0.7, random_state=seed)
    sizes = {"initial_size": 300, "max_size": 600, "batch_size": 600}
    model = make(60, random_state=seed, **sizes).partial_fit(X)
    assert model.stream_.by_whole
    model.stream_ = replace(model.stream_, means=None)  # those of all rows are better than both
    heard = normalized_mutual_info_score(y, model.predict(X))
    model.stream_ = replace(model.stream_, by_whole=False)
    assert heard > normalized_mutual_info_score(y, model.predict(X)) + 0.015


def test_clusters_of_any_shape_are_labelled_by_ties():
    X, y = make_circles(3000, noise=0.03, factor=0.5, random_state=0)
    model = StreamingKernelKMeans(2, random_state=0).partial_fit(X)
    assert not model.stream_.by_whole
    assert normalized_mutual_info_score(y, model.predict(X)) == 1.0


@pytest.mark.parametrize(("k", "first"), [(2, 1000), (5, 2000), (10, 4000), (80, 4000)])
def test_the_first_buffer_has_four_hundred_rows_of_each_cluster(k, first):
    assert StreamingKernelKMeans(k)._buffer_sizes() == (first, 2.5 * first)
    assert StreamingKernelKMeans(k, max_size=1500)._buffer_sizes() == (min(first, 1500), 1500)


@pytest.mark.numeric
def test_rows_one_by_one_are_the_same_stream():
    X, _ = clusters(n=260)
    with pytest.warns(MercerWarning, match="rows so far are queued"):
        slow = make().partial_fit(X[:1])
    slow.partial_fit(X[1:6])
    for row in X[6:]:
        slow.partial_fit(row[None])
    assert_same_stream(slow, make().partial_fit(X), X)


@pytest.mark.numeric
@pytest.mark.parametrize("cut", [3, 50, 119, 130, 200, 333])
def test_a_saved_stream_goes_on_as_if_it_had_not_been(cut, tmp_path):
    X, _ = clusters()
    whole = make().partial_fit(X)
    with np.errstate(all="raise"):
        first = make()
        if cut < 6:
            with pytest.warns(MercerWarning):
                first.partial_fit(X[:cut])
        else:
            first.partial_fit(X[:cut])
    mercer.save(first, tmp_path / "stream.model")
    again = mercer.load(tmp_path / "stream.model")
    assert again.n_seen_ == cut
    assert_same_stream(again.partial_fit(X[cut:]), whole, X)


def test_a_snapshot_that_was_cut_short_is_refused(tmp_path):
    X, _ = clusters()
    path = tmp_path / "stream.model"
    mercer.save(make().partial_fit(X), path)
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ModelFileError):
            mercer.load(path)


@pytest.mark.parametrize(
    "change",
    [
        *("clusters", "values", "thresholds", "weights", "key"),
        *("centers", "counts", "seen", "factor", "means", "kernel", "format"),
    ],
)
def test_streams_that_do_not_belong_together_are_refused(change, tmp_path):
    X, _ = clusters()
    model = make().partial_fit(X)
    state = model.stream_
    means = state.means
    assert means is not None
    other = make().partial_fit(clusters(seed=1, d=3)[0]).stream_.means
    damaged = {
        "centers": replace(means, centers=means.centers[:, 1:]),
        "counts": replace(means, counts=-means.counts),
        "seen": replace(means, seen=float("nan")),
        "factor": other,  # of rows with fewer columns
        "means": means.renumber(np.arange(3)),  # of fewer clusters
        "kernel": replace(means, factor=replace(means.factor, kernel=RBF(3.0))),
        "format": replace(means, factor=replace(means.factor, format=RowFormat(np.dtype(float)))),
    }
    if change == "key":
        model.key_ = -1
    elif change in damaged:
        model.stream_ = replace(state, means=damaged[change])
    elif change in ("thresholds", "weights"):
        graph = replace(state.graph, **{change: getattr(state.graph, change)[1:]})
        model.stream_ = replace(state, graph=graph)
    elif change == "clusters":
        model.stream_ = replace(state, clusters=state.clusters + 99)
    else:
        model.stream_ = replace(state, values=state.values[1:])
    mercer.save(model, tmp_path / "stream.model")
    with pytest.raises(ModelFileError):
        mercer.load(tmp_path / "stream.model")


def test_the_buffer_never_exceeds_its_size():
    X, _ = clusters(n=2000)
    model = make(forgetting=0.2)
    for start in range(0, 2000, 37):
        model.partial_fit(X[start : start + 37])
        assert len(model.buffer_) <= 150
        assert len(model.leverage_) == len(model.buffer_labels_) == len(model.buffer_)
    told = model.report_.stream
    assert told["evictions"] == told["additions"] + 120 - len(model.buffer_) > 0
    assert "evictions" in str(model.report_)


def test_labels_come_from_n_clusters_rows_on():
    X, _ = clusters()
    model = make()
    with pytest.warns(MercerWarning, match=r"5 rows so far .* n_clusters=6"):
        model.partial_fit(X[:5])
    with pytest.raises(NotFittedError, match="5 rows so far"):
        model.predict(X)
    model.partial_fit(X[5:6])
    assert set(model.predict(X[:6])) == set(range(6))
    assert "provisional model" in model.report_.notes[0]
    model.partial_fit(X[6:100])
    assert model.n_queued_ == model.n_seen_ == 100
    model.partial_fit(X[100:150])
    assert (model.n_queued_, model.n_seen_) == (30, 150)


@pytest.mark.parametrize(
    ("batch", "error", "words"),
    [
        (lambda X: np.where(X > 8, np.nan, X), ValueError, "NaN at row"),
        (lambda X: X[:, :3], ValueError, "3 features"),
        (lambda X: X[:0], ValueError, "0 sample"),
        (lambda X: X * 1e300, ValueError, "overflow"),
        (lambda X: sp.csr_array(X), ValueError, "same format"),
        (lambda X: X.astype(str), ValueError, "numeric"),
        (lambda X: X[:, 0], ValueError, "2D"),
    ],
)
@pytest.mark.parametrize("seen", [50, 333])
def test_a_hostile_batch_leaves_the_model_as_it_was(batch, error, words, seen):
    X, _ = clusters()
    model = make().partial_fit(X[:seen])
    before = dict(vars(model))
    with pytest.raises(error, match=words):
        model.partial_fit(batch(X))
    assert vars(model) == before
    assert_same_stream(model.partial_fit(X[seen:]), make().partial_fit(X), X)


def test_an_interrupted_batch_leaves_the_model_as_it_was(monkeypatch):
    X, _ = clusters()
    model = make().partial_fit(X[:200])
    before = dict(vars(model))

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mercer.stream.state.absorb", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[200:])
    assert vars(model) == before


def test_batches_of_another_float_type_are_taken():
    X, y = clusters(dtype=np.float32)
    model = make().partial_fit(X[:200]).partial_fit(X[200:].astype(np.float64))
    assert adjusted_rand_score(y, model.predict(X)) > 0.9
    huge = X.copy()
    huge[7] = 1e20  # its squares leave float32
    assert len(make().partial_fit(X[:200]).partial_fit(huge).predict(X)) == len(X)


def test_batches_are_copied():
    X, _ = clusters()
    model, mine = make(), X.copy()
    model.partial_fit(mine[:100])
    mine[:] = 0.0
    assert_same_stream(model.partial_fit(X[100:]), make().partial_fit(X), X)


@pytest.mark.numeric
def test_equal_rows_are_one_row_of_more_weight():
    X, y = clusters()
    model = make().partial_fit(X[:180])
    n_rows = len(model.buffer_)
    model.partial_fit(np.repeat(X[:1], 600, axis=0))
    assert len(model.buffer_) == n_rows
    assert model.stream_.graph.weights.max() > 500
    assert adjusted_rand_score(y, model.predict(X)) > 0.9
    weighted = make().partial_fit(X, sample_weight=np.arange(500) % 3)
    assert adjusted_rand_score(y, weighted.predict(X)) > 0.8


def test_moving_clusters_are_followed_with_forgetting():
    """Six clusters that drift by ten times their width: a model that forgets stays with them."""
    rng = np.random.default_rng(0)
    start = rng.normal(size=(6, 4)) * 8
    step = rng.normal(size=(6, 4))
    step *= 10.0 / np.linalg.norm(step, axis=1, keepdims=True)
    models = {forgetting: make(forgetting=forgetting) for forgetting in (0.0, 0.2)}
    for moment in np.linspace(0, 1, 60):
        y = rng.integers(0, 6, 60)
        X = (start + moment * step)[y] + rng.normal(size=(60, 4))
        for model in models.values():
            model.partial_fit(X)
    last = np.linspace(0, 1, 60)[-1]
    y = rng.integers(0, 6, 600)
    X = (start + last * step)[y] + rng.normal(size=(600, 4))
    scores = {f: normalized_mutual_info_score(y, m.predict(X)) for f, m in models.items()}
    assert scores[0.2] > 0.95
    near = {
        f: np.linalg.norm(X[:, None] - m.buffer_, axis=2).min(axis=1) for f, m in models.items()
    }
    assert np.median(near[0.2]) < np.median(near[0.0])


def test_text_beside_numbers_is_streamed():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    words = sp.csr_array(
        (rng.random((400, 30)) < 0.05 + 0.5 * (np.arange(30) // 10 == y[:, None])) * 1.0
    )
    numbers = rng.normal(size=(400, 2)) + 1e6 + 3 * y[:, None]
    kernel = 0.5 * Cosine(columns="text") + 0.5 * RBF(columns="image")
    model = make(3, kernel=kernel)
    for start in range(0, 400, 80):
        part = slice(start, start + 80)
        model.partial_fit({"text": words[part], "image": numbers[part]})
    X = {"text": words, "image": numbers}
    assert adjusted_rand_score(y, model.predict(X)) > 0.9
    with pytest.raises(ValueError, match="same format"):
        model.partial_fit({"text": words[:, :20], "image": np.c_[numbers, np.zeros((400, 10))]})


def test_spatial_pyramids_are_streamed():
    """A spatial pyramid kernel is a histogram intersection of weighted levels [lazebnik2006]."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 400)
    fine = rng.dirichlet(np.full(64, 0.3), 4)[y] + 0.02 * rng.random((400, 64))
    coarse = fine.reshape(400, 16, 4).sum(axis=2)
    pyramid = np.hstack([0.5 * fine, 0.25 * coarse])
    model = make(4, kernel=HistogramIntersection())
    for start in range(0, 400, 50):
        model.partial_fit(pyramid[start : start + 50])
    assert adjusted_rand_score(y, model.predict(pyramid)) > 0.95


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"initial_size": 5}, "initial_size=5"),
        ({"max_size": 100}, "max_size=100"),
        ({"sampling": "best"}, "sampling"),
        ({"forgetting": 1.0}, "forgetting"),
        ({"kernel": "precomputed"}, "square"),
        ({"n_neighbors": 1}, "n_neighbors"),
        ({"max_memory": "1MB", "max_size": 10**6}, "max_memory"),
    ],
)
def test_wrong_parameters_are_refused_with_words(parameters, words):
    X, _ = clusters()
    for verb in ("fit", "partial_fit"):
        with pytest.raises((ValueError, MemoryError), match=words):
            getattr(make(**parameters), verb)(X)


def test_more_rows_than_are_held_are_streamed_from_a_file(tmp_path):
    from mercer.rows.distinct import EXACT_ROWS

    n = EXACT_ROWS + 5000
    rng = np.random.default_rng(0)
    y = np.sort(rng.integers(0, 5, n))  # the worst order: cluster after cluster
    centers = 10.0 * np.vstack([np.zeros(3), np.eye(3), np.ones(3)])
    X = (centers[y] + rng.normal(size=(n, 3))).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    sizes = {"initial_size": 200, "max_size": 300, "batch_size": 20_000}
    model = make(5, **sizes).fit(tmp_path / "rows.npy")
    labels = model.predict(tmp_path / "rows.npy")
    assert adjusted_rand_score(y, labels) > 0.95
    assert model.n_seen_ == n
    assert np.array_equal(np.bincount(labels, minlength=5), model.cluster_weights_)
    with pytest.raises(AttributeError, match="predict"):
        _ = model.labels_
    assert np.array_equal(make(5, **sizes).fit(X).labels_, labels)


# The command line


RUN = "from mercer.cli import main; main()"
OPTIONS = ["-k", "6", "--initial-size", "120", "--max-size", "150", "--batch-size", "60"]
OPTIONS += ["--seed", "0", "--quiet"]


def command(*arguments, **more):
    line = [sys.executable, "-c", RUN, "stream", *map(str, arguments), *OPTIONS]
    return subprocess.run(line, capture_output=True, check=False, **more)


@pytest.fixture
def in_pieces(monkeypatch):
    monkeypatch.setattr("mercer.cli.stream.BATCH_ROWS", 50)


def streamed(pieces, tmp_path, **more):
    from mercer.cli.stream import stream_rows

    paths = {"labels": tmp_path / "labels.csv", "snapshot": tmp_path / "stream.model"}
    return stream_rows(pieces, make(), **{**paths, "every": 2, "resume": False, **more})


def test_labels_go_out_as_rows_come_in(in_pieces, tmp_path):
    from mercer.cli.stream import batches_of
    from mercer.io import read_labels

    X, _ = clusters()
    np.save(tmp_path / "a.npy", X[:230])
    np.savetxt(tmp_path / "b.csv", X[230:], delimiter=",", header="a,b,c,d", comments="")
    expected, model = [], make()
    for piece in (*np.split(X[:230], range(50, 230, 50)), *np.split(X[230:], range(50, 270, 50))):
        expected.append(model.partial_fit(piece).predict(piece))
    pieces = batches_of([tmp_path / "a.npy", tmp_path / "b.csv"], "csv")
    streamed(pieces, tmp_path)
    assert np.array_equal(read_labels(tmp_path / "labels.csv"), np.concatenate(expected))
    assert_same_stream(mercer.load(tmp_path / "stream.model"), model, X)


def test_threads_label_rows_while_the_next_ones_are_absorbed(in_pieces, tmp_path, monkeypatch):
    from mercer.cli.stream import batches_of, stream_rows

    X, _ = clusters()
    np.save(tmp_path / "rows.npy", X)
    predict, threads = StreamingKernelKMeans.predict, []

    def observed(model, rows):
        threads.append(threading.current_thread() is threading.main_thread())
        return predict(model, rows)

    monkeypatch.setattr(StreamingKernelKMeans, "predict", observed)
    written = {}
    for n_jobs in (1, 2):
        labels, snapshot = tmp_path / f"{n_jobs}.csv", tmp_path / f"{n_jobs}.model"
        pieces, model = batches_of([tmp_path / "rows.npy"], "csv"), make(n_jobs=n_jobs)
        stream_rows(pieces, model, labels=labels, snapshot=snapshot, every=3, resume=False)
        assert set(threads) == {n_jobs == 1}
        threads.clear()
        written[n_jobs] = labels.read_bytes()
    assert written[1] == written[2]


def test_an_error_of_the_labelling_thread_ends_the_stream(in_pieces, tmp_path, monkeypatch):
    from mercer.cli.stream import batches_of, stream_rows

    X, _ = clusters()
    np.save(tmp_path / "rows.npy", X)

    def fail(model, rows):
        raise OSError("no space left")

    monkeypatch.setattr(StreamingKernelKMeans, "predict", fail)
    pieces, paths = batches_of([tmp_path / "rows.npy"], "csv"), {"snapshot": None, "every": 3}
    with pytest.raises(OSError, match="no space"):
        stream_rows(pieces, make(n_jobs=2), labels=tmp_path / "a.csv", resume=False, **paths)


@pytest.mark.parametrize("stop", [1, 2, 3, 7, 8])
def test_a_stopped_stream_resumes_to_the_same_labels(stop, in_pieces, tmp_path):
    X, _ = clusters()
    np.save(tmp_path / "rows.npy", X)
    from mercer.cli.stream import batches_of

    def rows():
        return batches_of([tmp_path / "rows.npy"], "csv")

    whole = tmp_path / "whole"
    whole.mkdir()
    streamed(rows(), whole)

    def cut_short():
        for number, piece in enumerate(rows()):
            if number == stop:
                raise KeyboardInterrupt
            yield piece

    with pytest.raises(KeyboardInterrupt):
        streamed(cut_short(), tmp_path)
    with (tmp_path / "labels.csv").open("ab") as file:
        file.write(b"5\n3")  # labels that no snapshot knows of, the last cut in two
    streamed(rows(), tmp_path, resume=True)
    assert (tmp_path / "labels.csv").read_bytes() == (whole / "labels.csv").read_bytes()
    models = [mercer.load(folder / "stream.model") for folder in (tmp_path, whole)]
    assert_same_stream(*models, X)


def test_standard_input_in_three_formats():
    pa = pytest.importorskip("pyarrow")
    from mercer.cli.stream import READERS

    X, _ = clusters(n=2300)
    table = pa.table({name: X[:, i] for i, name in enumerate("abcd")})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=700)
    arrays = io.BytesIO()
    for part in (X[:1200], X[1200:]):
        np.lib.format.write_array(arrays, part)
    text = "\n".join(["a,b,c,d", *(",".join(map(repr, row)) for row in X.tolist())])
    inputs = {"arrow": sink.getvalue().to_pybytes(), "csv": text.encode()}
    inputs["npy"] = arrays.getvalue()

    def read(name, data):
        return np.concatenate(list(READERS[name](io.BufferedReader(io.BytesIO(data)))))

    for name, data in inputs.items():
        assert np.array_equal(read(name, data), X), name
    for name, cut in (("arrow", 300), ("npy", 50)):
        with pytest.raises(ValueError, match=r"cut short|npy format"):
            read(name, inputs[name][:-cut])
    with pytest.raises(ValueError, match="numbers separated by commas"):
        read("csv", b"1,2\n3,x\n")


def test_labels_go_to_standard_output():
    X, _ = clusters(n=300)
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    done = command(input=text.encode())
    assert done.returncode == 0, done.stderr.decode()
    expected = make().partial_fit(X).predict(X)
    assert np.array_equal(np.array(done.stdout.split(), int), expected)


def test_too_short_an_input_is_told(tmp_path):
    with pytest.warns(MercerWarning), pytest.raises(ValueError, match="fewer than n_clusters=6"):
        streamed(iter([np.ones((2, 4))]), tmp_path)
    with pytest.raises(ValueError, match="no rows"):
        streamed(iter([]), tmp_path)


def size(path):
    return path.stat().st_size if path.exists() else 0


@pytest.mark.slow
def test_a_killed_stream_resumes_to_the_same_labels(tmp_path):
    X, _ = clusters(n=8000)
    np.save(tmp_path / "rows.npy", X)
    files = {run: (tmp_path / f"{run}.csv", tmp_path / f"{run}.model") for run in ("one", "two")}
    arguments = {
        run: [tmp_path / "rows.npy", "--out", out, "--model", model, "--every", 1, "--resume"]
        for run, (out, model) in files.items()
    }
    assert command(*arguments["one"]).returncode == 0
    line = [sys.executable, "-c", RUN, "stream", *map(str, arguments["two"]), *OPTIONS]
    for _ in range(3):
        process = subprocess.Popen(line, stderr=subprocess.DEVNULL)
        before = size(files["two"][0])
        assert wait_until(
            lambda child=process, n=before: (
                child.poll() is not None or size(files["two"][0]) > n + 4000
            )
        )
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert command(*arguments["two"]).returncode == 0
    assert files["one"][0].read_bytes() == files["two"][0].read_bytes()
    assert_same_stream(*(mercer.load(model) for _, model in files.values()), X)


def test_wrong_ways_to_resume_are_told(in_pieces, tmp_path):
    X, _ = clusters()

    def rows(n=500):
        return iter(np.split(X[:n], range(50, n, 50)))

    with pytest.raises(ValueError, match="--model"):
        streamed(rows(), tmp_path, snapshot=None, resume=True)
    streamed(rows(), tmp_path)
    with pytest.raises(ValueError, match="same input again"):
        streamed(rows(100), tmp_path, resume=True)
    (tmp_path / "labels.csv").write_text("label\n1\n")
    with pytest.raises(ValueError, match="1 labels"):
        streamed(rows(), tmp_path, resume=True)
    (tmp_path / "labels.csv").unlink()
    with pytest.raises(ValueError, match="not there"):
        streamed(rows(), tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"\.csv"):
        streamed(rows(), tmp_path, labels=tmp_path / "labels.npy")
    from mercer.cli.stream import stream_rows

    paths = {"labels": tmp_path / "labels.csv", "snapshot": tmp_path / "stream.model"}
    with pytest.raises(ValueError, match="other parameters"):
        stream_rows(rows(), make(5), every=2, resume=True, **paths)


def in_fifties(X):
    return iter(np.split(X, range(50, len(X), 50)))


def test_a_snapshot_goes_on_with_its_own_rows_and_labels_only(in_pieces, tmp_path):
    X, _ = clusters()
    streamed(in_fifties(X[:300]), tmp_path)
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    other = X.copy()
    other[7] = other[7] + 1e-9
    seeded = {"labels": tmp_path / "labels.csv", "snapshot": tmp_path / "stream.model"}
    from mercer.cli.stream import stream_rows

    lines = (tmp_path / "labels.csv").read_text().splitlines(keepends=True)
    wrong_labels = [*lines[:5], f"{1 - int(lines[5]) % 2}\n", *lines[6:]]
    for words, pieces, labels in (
        ("first 300 rows of the input are not those", in_fifties(other), lines),
        ("come in other batches", iter(np.split(X, [70, 200, 300])), lines),
        ("come in other batches", iter(np.split(X, range(60, 500, 60))), lines),
        ("not those that were written", in_fifties(X), wrong_labels),
        ("has 299 labels", in_fifties(X), lines[:-1]),
    ):
        (tmp_path / "labels.csv").write_text("".join(labels))
        with pytest.raises(ValueError, match=f"{words}.*run without --resume"):
            streamed(pieces, tmp_path, resume=True)
        assert (tmp_path / "labels.csv").read_text() == "".join(labels)
    for path, data in kept.items():
        path.write_bytes(data)
    with pytest.raises(ValueError, match=r"random_state 0, not 1.*run without --resume"):
        stream_rows(in_fifties(X), make(random_state=1), every=2, resume=True, **seeded)
    mercer.load(tmp_path / "stream.model").save(tmp_path / "saved.model")
    with pytest.raises(ValueError, match=r"is not a snapshot .*run without --resume"):
        streamed(in_fifties(X), tmp_path, snapshot=tmp_path / "saved.model", resume=True)
    assert {path: path.read_bytes() for path in kept} == kept


@pytest.mark.parametrize("ends", [[300], [320], [70, 75, 330]], ids=str)
def test_a_stream_goes_on_when_its_input_has_grown(ends, in_pieces, tmp_path):
    """Labels stay as they were when their rows came; a stop on the way changes nothing."""
    X, _ = clusters()
    for end in ends:
        streamed(in_fifties(X[:end]), tmp_path, resume=True)
    before = (tmp_path / "labels.csv").read_bytes()
    shutil.copytree(tmp_path, tmp_path / "stopped")
    streamed(in_fifties(X), tmp_path, resume=True)
    whole = (tmp_path / "labels.csv").read_bytes()
    assert whole.startswith(before)
    assert whole.count(b"\n") == len(X) + 1

    def cut_short():
        yield from list(in_fifties(X))[:-1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        streamed(cut_short(), tmp_path / "stopped", every=1, resume=True)
    streamed(in_fifties(X), tmp_path / "stopped", resume=True)
    assert (tmp_path / "stopped" / "labels.csv").read_bytes() == whole


def test_labels_that_went_to_standard_output_go_on_there(in_pieces, tmp_path, capsys):
    X, _ = clusters()
    streamed(in_fifties(X), tmp_path)
    whole = (tmp_path / "labels.csv").read_text().split()[1:]
    streamed(in_fifties(X[:300]), tmp_path, labels=None)
    with pytest.raises(ValueError, match=r"went to standard output.*run without --resume"):
        streamed(in_fifties(X), tmp_path, resume=True)
    streamed(in_fifties(X), tmp_path, labels=None, resume=True)
    assert capsys.readouterr().out.split() == whole


def test_an_input_without_a_model_leaves_old_results(in_pieces, tmp_path):
    X, _ = clusters()
    streamed(in_fifties(X), tmp_path)
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for rows, words in ((X[:2], "fewer than"), (np.full((50, 4), np.nan), "NaN")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that two rows are too few
            with pytest.raises(ValueError, match=words):
                streamed(iter([rows]), tmp_path)
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == kept


def test_a_stream_overwrites_nothing_that_it_reads(tmp_path):
    file, missing = tmp_path / "rows.csv", tmp_path / "missing.csv"
    file.write_text("1,2\n3,4\n")
    (tmp_path / "labels.csv").write_text("label\n7\n")
    for named in (("--out", file), ("--model", file)):
        done = command(file, *named)
        assert done.returncode == 1
        assert b"is named twice" in done.stderr
    assert file.read_text() == "1,2\n3,4\n"
    done = command(missing, "--out", tmp_path / "labels.csv")
    assert done.returncode == 1
    assert b"there is no file" in done.stderr
    assert (tmp_path / "labels.csv").read_text() == "label\n7\n"
