"""The command line on folders, zarr and plans: labels as by the API, errors in a paragraph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer")

from test_cli import assert_one_paragraph, run

from mercer import KernelKMeans, SpectralClustering
from mercer.datasets import blobs
from mercer.io.labels import read_labels
from source_kinds import folder, zarr_array


@pytest.fixture
def X() -> np.ndarray:
    return blobs(400, random_state=0)[0]


@pytest.mark.parametrize("make", [folder, zarr_array])
@pytest.mark.parametrize("suffix", [".parquet", ".zarr"])
def test_cluster_and_predict(make: Any, suffix: str, X: np.ndarray, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("zarr")
    path, out, model = make(tmp_path, X), tmp_path / f"labels{suffix}", tmp_path / "m.mercer"
    result = run("cluster", f"{path}/", "-k", 3, "--seed", 0, "--out", out, "--model", model)
    assert result.exit_code == 0, result.output
    expected = SpectralClustering(3, random_state=0).fit(X).labels_
    np.testing.assert_array_equal(read_labels(out), expected)
    again = tmp_path / f"again{suffix}"
    assert run("predict", model, path, "--out", again).exit_code == 0
    np.testing.assert_array_equal(read_labels(again), expected)


def test_outputs_inside_the_input_are_refused(X: np.ndarray, tmp_path: Path) -> None:
    path = folder(tmp_path, X)
    for name in ("--out", "--model"):
        result = run("cluster", path, "-k", 3, name, path / "new.parquet")
        assert_one_paragraph(result, "is inside", "choose another place")
    assert not (path / "new.parquet").exists()


def test_plan(X: np.ndarray, tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    np.save(file, X)
    options = ("-k", 3, "--method", "kernel-kmeans", "--rank", 20, "--max-memory", "200MB")
    shown = run("plan", file, *options)
    assert shown.exit_code == 0, shown.output
    for words in ("KernelKMeans: 400 rows × 2 columns, float64", "passes     3", "expected"):
        assert words in shown.output
    told = json.loads(run("plan", file, *options, "--json").stdout)
    plan = KernelKMeans(3, rank=20, max_memory="200MB").plan(X)
    assert told["n_passes"] == [3, 3]
    assert told["n_rows"] == plan.n_rows
    assert told["max_memory"] == plan.max_memory == 200 * 10**6
    assert told["minutes"][0] > 0


@pytest.mark.parametrize("method", ["spectral", "ksc"])
def test_plans_of_other_methods(method: str, X: np.ndarray, tmp_path: Path) -> None:
    result = run("plan", folder(tmp_path, X), "-k", 3, "--method", method, "--json")
    assert json.loads(result.stdout)["source"].startswith("ParquetFolder")


def test_a_plan_that_cannot_fit(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    np.save(file, np.random.default_rng(0).normal(size=(20_000, 4)))
    options = ("--method", "kernel-kmeans", "--rank", 2000, "--max-memory", "30MB")
    assert_one_paragraph(run("plan", file, *options), "needs about", "lower the rank to about")
    assert_one_paragraph(run("plan", tmp_path / "none.npy"), "there is no file")


def test_a_folder_of_labels(X: np.ndarray, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    file, model, out = tmp_path / "rows.npy", tmp_path / "m.mercer", f"{tmp_path}/labels/"
    np.save(file, X)
    for given in (
        ("cluster", file, "-k", 3, "--seed", 0, "--model", model),
        ("predict", model, file),
    ):
        result = run(*given, "--out", out)
        assert result.exit_code == 0, result.output
        expected = SpectralClustering(3, random_state=0).fit(X).labels_
        np.testing.assert_array_equal(read_labels(out), expected)
    result = run("predict", model, file, "--out", f"{tmp_path}/")
    assert_one_paragraph(result, "holds other files than labels")


def test_everything_at_urls(X: np.ndarray, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    s3 = pytest.importorskip("s3_server")
    np.save(tmp_path / "rows.npy", X)
    place, model = s3.put(tmp_path / "rows.npy"), s3.new_url("m.mercer")
    out, report = s3.new_url("labels/"), s3.new_url("report.json")
    fitted = run(
        *("cluster", place, "-k", 3, "--seed", 0),
        *("--model", model, "--out", out, "--report", report),
    )
    assert fitted.exit_code == 0, fitted.output
    expected = SpectralClustering(3, random_state=0).fit(X).labels_
    np.testing.assert_array_equal(read_labels(out), expected)
    assert json.loads(s3.files().cat_file(report))["n_rows"] == len(X)
    again = s3.new_url("labels.parquet")
    assert run("predict", model, place, "--out", again).exit_code == 0
    np.testing.assert_array_equal(read_labels(again), expected)
    result = run("predict", model, "s3://rows/none.npy", "--out", again)
    assert_one_paragraph(result, "there is no s3://rows/none.npy")
