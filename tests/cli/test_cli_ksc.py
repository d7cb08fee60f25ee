"""Pivots, memberships and texts on the command line are those of the API."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

import mercer
from mercer import IncompleteCholesky, KernelSpectralClustering, SpectralClustering
from mercer.cli.app import app
from mercer.cli.sparklines import sparkline
from mercer.datasets import blobs, rings


@pytest.fixture
def file(tmp_path):
    X, _ = blobs(600, n_clusters=3, random_state=0)
    np.save(tmp_path / "rows.npy", X)
    return tmp_path / "rows.npy", X


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def clean(text):
    """Without the frames and line breaks of a box."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize("pivots", ["greedy", "random", None])
@pytest.mark.parametrize("tol", [0.05, None])
def test_pivots_of_ksc_are_those_of_the_api(file, tmp_path, pivots, tol):
    path, X = file
    model = tmp_path / "m.mercer"
    options = [] if pivots is None else ["--pivots", pivots]
    options += [] if tol is None else ["--pivot-tol", tol]
    result = run(
        "cluster", path, "--method", "ksc", "-k", 3, "--rank", 40, "--seed", 0,
        "--model", model, "--out", tmp_path / "labels.npy", *options,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    cholesky = IncompleteCholesky(40, pivots=pivots or "spread", tol=tol or 0.0)
    expected = KernelSpectralClustering(3, approximation=cholesky, random_state=0).fit(X)
    loaded = mercer.load(model)
    np.testing.assert_array_equal(loaded.pivots_, expected.pivots_)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected.labels_)
    if tol is not None:
        assert len(loaded.pivots_) < 40


def test_pivots_need_the_cholesky_factor(file):
    for method, approximation in (("spectral", "auto"), ("ksc", "nystrom")):
        options = ["--approximation", approximation, "--method", method]
        result = run("cluster", file[0], "-k", 3, *options, "--pivots", "greedy")
        assert result.exit_code == 2
        words = f"--pivots needs --approximation cholesky, not {approximation}"
        assert words in clean(result.output)


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
@pytest.mark.parametrize("method", ["ksc", "spectral"])
def test_memberships_are_those_of_the_api(file, tmp_path, method, suffix):
    path, X = file
    out, again = tmp_path / f"m{suffix}", tmp_path / f"again{suffix}"
    options = ["-k", 3, "--seed", 0, "--method", method, "--model", tmp_path / "m.mercer"]
    result = run("cluster", path, *options, "--memberships", out)
    assert result.exit_code == 0, result.output
    make = KernelSpectralClustering if method == "ksc" else SpectralClustering
    expected = make(3, random_state=0).fit(X).memberships(X)
    read = np.load if suffix == ".npy" else lambda p: np.loadtxt(p, delimiter=",", skiprows=1)
    np.testing.assert_array_equal(read(out), expected)
    labels = ("--out", tmp_path / "labels.npy", "--memberships", again)
    result = run("predict", tmp_path / "m.mercer", path, *labels)
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(read(again), expected, rtol=1e-9, atol=1e-12)


def test_memberships_that_cannot_be_written_are_refused_before_the_work(file, tmp_path):
    path, _ = file
    result = run("cluster", path, "-k", 3, "--memberships", tmp_path / "m.xls")
    assert result.exit_code == 1
    assert "use one of .npy, .csv" in result.output
    options = ("--method", "kernel-kmeans", "--memberships", tmp_path / "m.npy")
    result = run("cluster", path, "-k", 3, *options)
    assert result.exit_code == 1
    assert "use --method spectral or ksc" in result.output
    assert not (tmp_path / "m.npy").exists()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_page_shows_a_column_of_texts(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    pytest.importorskip("bokeh")
    pd = pytest.importorskip("pandas")
    X, _ = blobs(300, n_clusters=3, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    path, model, page = tmp_path / f"rows{suffix}", tmp_path / "m.mercer", tmp_path / "page.html"
    frame = frame.assign(title=[f"title number {i}" for i in range(300)])
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    options = ("-k", 3, "--seed", 0, "--columns", "a,b", "--model", model)
    assert run("cluster", path, *options).exit_code == 0
    result = run("report", model, path, "--text-column", "title", "--out", page)
    assert result.exit_code == 0, result.output
    assert "title number 299" in page.read_text(encoding="utf-8")
    result = run("report", model, path, "--text-column", "name", "--out", page)
    assert result.exit_code == 1
    assert "has no column 'name'" in result.output


@pytest.mark.parametrize("suffix", [".txt", ".libsvm"])
def test_lines_of_text_are_clustered_like_arrays(file, tmp_path, suffix):
    from sklearn.datasets import dump_svmlight_file

    X = np.abs(file[1]).round(3)
    path = tmp_path / f"rows{suffix}"
    if suffix == ".txt":
        np.savetxt(path, X, fmt="%.3f")
    else:
        dump_svmlight_file(X, np.zeros(len(X)), str(path), zero_based=False)
    result = run("cluster", path, "-k", 3, "--seed", 0, "--out", tmp_path / "labels.npy")
    assert result.exit_code == 0, result.output
    labels = np.load(tmp_path / "labels.npy")
    np.testing.assert_array_equal(
        labels, SpectralClustering(3, random_state=0).fit(path).predict(path)
    )


def test_the_table_of_a_search_fits_eighty_columns(tmp_path):
    X, _ = rings(600, random_state=0)
    np.save(tmp_path / "rows.npy", X)
    options = ("--clusters", "2:21", "--gamma", "0.5:50:3", "--seed", 0)
    result = run("tune", tmp_path / "rows.npy", *options)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    for k in range(2, 22):
        assert f"K={k} " in result.stdout
    assert result.stdout.count("*") == 2  # the legend and the choice


def test_an_explanation_has_sparklines_and_fits_eighty_columns(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(9), np.arange(40, 130, 10))
    centers = np.repeat(60.0 * rng.normal(size=(3, 5)), 3, axis=0) + 6.0 * rng.normal(size=(9, 5))
    X = centers[labels] + rng.normal(size=(len(labels), 5))
    model = SpectralClustering(9, random_state=0).fit(X)
    model.save(tmp_path / "m.mercer")
    result = run("explain", tmp_path / "m.mercer")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert f"sizes         {sparkline(model.report_.cluster_weights)}" in result.stdout
    assert "Layers" in result.stdout
    assert " | " in result.stdout


def test_sparklines():
    assert sparkline([0.0, 0.5, 1.0]) in ("▁▅█", "_=#")
    assert len(sparkline([0.0, 0.0])) == 2
    assert len(sparkline(range(100), most=7)) == 7
