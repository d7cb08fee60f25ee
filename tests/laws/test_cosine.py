"""kernel="cosine" on every path: laws of the angle, for every estimator and approximation.

Where an approximation has a kernel of its own (a graph, bins, waves, blocks), that kernel compares
rows of unit length; elsewhere the kernel is the cosine itself. Either way, labels are a function of
the direction of a row.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import mercer
from marking import seeds, slow_beyond
from mercer import KernelKMeans, KernelSpectralClustering, SpectralClustering, StreamingKernelKMeans
from mercer.factors.names import NAMES
from mercer.kernels import RBF, Cosine, UnitRows

PATHS = {
    **{f"SpectralClustering-{name}": (SpectralClustering, name) for name in NAMES},
    **{
        f"KernelKMeans-{name}": (KernelKMeans, name)
        for name, kind in NAMES.items()
        if kind.has_dense_form
    },
    **{
        f"KernelSpectralClustering-{name}": (KernelSpectralClustering, name)
        for name, kind in NAMES.items()
        if not kind.is_sparse
    },
    "SpectralClustering-ensemble": (SpectralClustering, "landmarks", {"ensemble": 5}),
    "StreamingKernelKMeans": (StreamingKernelKMeans, None),
}
every_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
# Formats and kernels are those of SpectralClustering: the laws of rows need no more in every run.
rows_of_path = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=name, marks=pytest.mark.slow if name.startswith("Kernel") else ())
        for name, path in PATHS.items()
    ],
)
# The error of random waves can look like edges that are missing; the labels are right nonetheless.
by_waves = pytest.mark.filterwarnings("ignore:the graph falls into more than")
own_kernel = pytest.mark.parametrize(
    "name", sorted(name for name, kind in NAMES.items() if not kind.takes_cosine)
)


def make(path, n_clusters=3, **params):
    kind, name, *more = path
    given = {} if name is None else {"approximation": name}
    return kind(n_clusters, kernel="cosine", random_state=0, **given, **dict(*more), **params)


def directions(seed, n=300, d=6):
    """Three bundles of directions with lengths from 10⁻³ to 10³, and the bundle of each row."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    axes = np.eye(3, d) + 0.2
    X = axes[y] + 0.08 * rng.standard_normal((n, d))
    return X * 10.0 ** rng.uniform(-3, 3, (n, 1)), y


@every_path
@by_waves
@seeds(quick=1)
def test_directions_are_clustered_whatever_the_lengths(path, seed):
    X, y = directions(seed)
    model = make(path).fit(X)
    assert adjusted_rand_score(y, model.predict(X)) > 0.95
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@rows_of_path
@pytest.mark.parametrize("power", slow_beyond([-300, -7, 9, 300], quick=[-300, 9]))
def test_a_power_of_two_changes_no_label(path, power):
    X, _ = directions(0)
    np.testing.assert_array_equal(make(path).fit(X).labels_, make(path).fit(X * 2.0**power).labels_)


@rows_of_path
@by_waves
@seeds(quick=1)
def test_new_rows_are_labelled_by_direction(path, seed):
    X, _ = directions(seed)
    model, lengths = make(path).fit(X), 2.0 ** np.random.default_rng(1).integers(-60, 60, (300, 1))
    np.testing.assert_array_equal(model.predict(X * lengths), model.labels_)


@every_path
def test_weight_two_is_the_row_twice(path):
    X, _ = directions(2, n=200)
    weights = np.where(np.arange(200) < 60, 2.0, 1.0)
    weighted = make(path).fit(X, sample_weight=weights)
    twice = make(path).fit(np.concatenate([X, X[:60]]))
    assert adjusted_rand_score(weighted.predict(X), twice.predict(X)) == 1.0


@rows_of_path
def test_permuted_rows_give_the_same_partition(path):
    X, _ = directions(3)
    order = np.random.default_rng(0).permutation(len(X))
    labels, permuted = make(path).fit(X).labels_, make(path).fit(X[order]).labels_
    assert adjusted_rand_score(labels[order], permuted) == 1.0


@rows_of_path
def test_predict_in_pieces_is_predict_at_once(path):
    X, _ = directions(4)
    model = make(path).fit(X)
    pieces = np.concatenate([model.predict(X[:1]), model.predict(X[1:37]), model.predict(X[37:])])
    np.testing.assert_array_equal(pieces, model.predict(X))


@every_path
def test_dense_and_sparse_rows_give_the_same_partition(path):
    X, y = directions(5)
    X[np.abs(X) < 0.1 * np.abs(X).max(axis=1, keepdims=True)] = 0.0
    dense, sparse = make(path).fit(X), make(path).fit(sp.csr_array(X))
    assert adjusted_rand_score(dense.labels_, sparse.labels_) > 0.98
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), sparse.labels_)
    assert adjusted_rand_score(sparse.labels_, y) > 0.95


@rows_of_path
def test_float32_is_near_float64(path):
    X, _ = directions(6)
    double, single = make(path).fit(X), make(path).fit(X.astype(np.float32))
    assert adjusted_rand_score(double.labels_, single.labels_) > 0.98


@rows_of_path
@pytest.mark.filterwarnings("ignore:1 rows have no positive degree")  # their cosines are zero
def test_rows_of_zeros_are_clustered_too(path):
    X, y = directions(7)
    X[:5] = 0.0
    model = make(path).fit(X)
    assert len(set(model.labels_[:5])) == 1
    assert adjusted_rand_score(y[5:], model.labels_[5:]) > 0.95


@rows_of_path
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_model_file_keeps_the_angle(path, form, tmp_path):
    X = form(directions(8)[0])
    model = make(path).fit(X)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert repr(again.kernel_) == repr(model.kernel_)


@own_kernel
def test_a_kernel_of_its_own_sees_unit_rows_and_the_report_says_so(name):
    X, _ = directions(9)
    model = make((SpectralClustering, name)).fit(X)
    assert isinstance(model.kernel_, UnitRows)
    assert any("scaled to unit length" in note for note in model.report_.notes)
    assert model.factor_.format.unit_length


@pytest.mark.parametrize("name", ["cholesky", "exact", "nystrom"])
def test_other_approximations_take_the_cosine_itself(name):
    model = make((KernelKMeans, name)).fit(directions(9)[0])
    assert isinstance(model.kernel_, Cosine)


def test_the_graph_of_unit_rows_is_that_of_rows_scaled_before():
    X, _ = directions(10)
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    angles = make((SpectralClustering, "landmarks")).fit(X)
    plain = SpectralClustering(3, approximation="landmarks", random_state=0).fit(U)
    assert adjusted_rand_score(angles.labels_, plain.labels_) == 1.0
    assert angles.kernel_.kernel.gamma == pytest.approx(plain.kernel_.gamma, rel=1e-6)


@pytest.mark.parametrize("name", ["landmarks", "cholesky"])
def test_a_kernel_object_of_unit_rows_is_taken(name):
    X, y = directions(11)
    model = SpectralClustering(
        3, kernel=UnitRows(RBF(4.0)), approximation=name, random_state=0
    ).fit(X)
    assert model.kernel_.kernel.gamma == pytest.approx(4.0)
    assert adjusted_rand_score(y, model.labels_) > 0.95


@rows_of_path
def test_rows_out_of_memory(path, tmp_path):
    X, y = directions(12)
    np.save(tmp_path / "rows.npy", X)
    model = make(path).fit(tmp_path / "rows.npy")
    assert adjusted_rand_score(y, model.predict(X)) > 0.95


def test_the_command_line_takes_the_cosine(tmp_path):
    from typer.testing import CliRunner

    from mercer.cli.app import app

    X, y = directions(13)
    np.save(tmp_path / "rows.npy", X)
    words = ["cluster", str(tmp_path / "rows.npy"), "--n-clusters", "3", "--kernel", "cosine"]
    words += ["--out", str(tmp_path / "labels.npy"), "--random-state", "0"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert adjusted_rand_score(y, np.load(tmp_path / "labels.npy")) > 0.95
