"""`mercer tune` and `mercer cluster --method ksc` are the API."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

pytest.importorskip("typer")
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from mercer import KernelKMeans, KernelSpectralClustering, MercerWarning, SpectralClustering
from mercer.cli.app import app
from mercer.cli.tune import read_gammas, read_sizes
from mercer.datasets import rings
from mercer.selection import search


@pytest.fixture
def file(tmp_path):
    X, _ = rings(900, random_state=0)
    np.save(tmp_path / "rows.npy", X)
    return tmp_path / "rows.npy", X


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_tune_writes_the_table_of_the_api(file, tmp_path):
    pytest.importorskip("matplotlib")
    path, X = file
    out, plot = tmp_path / "tune.json", tmp_path / "tune.png"
    options = ("--clusters", "2:4", "--gamma", "4:64:3", "--seed", 0, "--criterion", "bas")
    result = run("tune", path, *options, "--out", out, "--plot", plot, "--jobs", 2)
    assert result.exit_code == 0, result.output
    assert "best: 3 clusters" in result.output
    estimator = KernelSpectralClustering(random_state=0)
    found = search(estimator, X, n_clusters=range(2, 5), gamma=np.geomspace(4, 64, 3))
    assert json.loads(out.read_text()) == found.to_dict()
    assert plot.stat().st_size > 1000
    as_json = run("tune", path, *options, "--json", "--quiet")
    assert json.loads(as_json.stdout)["best"] == found.to_dict()["best"]


def test_tune_scales_columns_and_leaves_ids_out(file, tmp_path):
    _, X = file
    table, scaled, out = tmp_path / "rows.csv", tmp_path / "scaled.npy", tmp_path / "tune.json"
    rows = [f"r{i},{a!r},{1000 * b!r}" for i, (a, b) in enumerate(X.tolist())]
    table.write_text("\n".join(["id,a,b", *rows]) + "\n")
    np.save(scaled, StandardScaler().fit_transform(X * [1, 1000]))
    options = ("--clusters", "3", "--gamma", "1,4", "--seed", 0, "--out", out)
    assert run("tune", scaled, *options).exit_code == 0
    wanted = json.loads(out.read_text())
    result = run("tune", table, "--id-column", "id", "--scaler", "standard", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text()) == wanted


@pytest.mark.parametrize(
    ("method", "approximation", "make"),
    [
        ("spectral", "binning", SpectralClustering),
        ("kernel-kmeans", "nystrom", KernelKMeans),
        ("ksc", "nystrom", KernelSpectralClustering),
    ],
)
def test_tune_with_an_approximation_is_the_api(file, tmp_path, method, approximation, make):
    path, X = file
    out = tmp_path / "tune.json"
    options = ("--method", method, "--approximation", approximation, "--seed", 0)
    options += ("--clusters", "3", "--gamma", "1,4,16", "--out", out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # of the edge of the range
        result = run("tune", path, *options)
        estimator = make(approximation=approximation, random_state=0)
        found = search(estimator, X, n_clusters=[3], gamma=[1, 4, 16])
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text()) == found.to_dict()


def test_an_approximation_that_tune_cannot_use_is_an_error(file):
    result = run("tune", file[0], "--approximation", "binning")
    assert result.exit_code != 0
    assert "dense factor" in result.output
    assert run("tune", file[0], "--approximation", "guess").exit_code == 2


def test_cluster_by_ksc_is_the_api(file, tmp_path):
    path, X = file
    options = ("--method", "ksc", "-k", "auto", "--encoding", "ams", "--train-size", 0.9)
    result = run("cluster", path, *options, "--seed", 0, "--out", tmp_path / "labels.npy")
    assert result.exit_code == 0, result.output
    expected = KernelSpectralClustering("auto", encoding="ams", train_size=0.9, random_state=0)
    assert np.array_equal(np.load(tmp_path / "labels.npy"), expected.fit(X).labels_)


@pytest.mark.parametrize(
    "options",
    [
        ("--clusters", "1:3"),
        ("--clusters", "5:2"),
        ("--clusters", "many"),
        ("--gamma", "0:1:5"),
        ("--gamma", "1:2"),
        ("--criterion", "gap"),
        ("--train-size", "1.5"),
    ],
)
def test_wrong_options_of_tune_are_errors_of_usage(file, options):
    assert run("tune", file[0], *options).exit_code == 2


def test_one_file_cannot_be_input_and_output(file):
    result = run("tune", file[0], "--out", file[0])
    assert result.exit_code == 1
    assert "named twice" in result.output


def test_ranges_and_lists():
    assert read_sizes("2:5") == [2, 3, 4, 5]
    assert read_sizes("3,7") == [3, 7]
    assert read_gammas("0.01:1:3") == pytest.approx([0.01, 0.1, 1])
    assert read_gammas("2,1") == [2, 1]


def test_a_best_score_at_the_edge_of_the_grid_is_told():
    X, _ = rings(600, random_state=0)
    with pytest.warns(MercerWarning, match="edge of the 3 bandwidths"):
        search(
            KernelSpectralClustering(random_state=0),
            X,
            n_clusters=[2, 3],
            gamma=[1e-3, 2e-3, 4e-3],
        )


@pytest.mark.parametrize("kind", [SpectralClustering, KernelKMeans])
def test_a_precomputed_matrix_cannot_be_split(kind):
    with pytest.raises(ValueError, match="on part of the rows"):
        search(kind(kernel="precomputed"), np.eye(200), n_clusters=[2, 3])
