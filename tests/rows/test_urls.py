"""Rows at URLs: what a file gives, its URL gives; faults that pass cost time and nothing else."""

from __future__ import annotations

import gzip
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import KernelKMeans, MissingExtraError, as_source, load
from mercer._run import url as urls
from mercer._run.url import Url, located
from mercer.datasets import blobs
from mercer.io import read_labels
from mercer.rows.places import check_apart
from mercer.rows.source import TILE
from source_kinds import folder, zarr_array

s3 = pytest.importorskip("s3_server")
pytest.importorskip("s3fs")
pytest.importorskip("moto")


@pytest.fixture(autouse=True)
def _quick_and_clean(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(urls, "FIRST_WAIT", 0.01)
    s3.server().faults.clear()
    yield
    s3.server().faults.clear()


def rows(n_rows: int = 57) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=50, size=(n_rows, 3))


def npy(path: Path, X: np.ndarray) -> Path:
    np.save(path / "rows.npy", X)
    return path / "rows.npy"


def fortran(path: Path, X: np.ndarray) -> Path:
    return npy(path, np.asfortranarray(X))


def parquet(path: Path, X: np.ndarray) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
    pq.write_table(table, path / "rows.parquet", row_group_size=20_000)
    return path / "rows.parquet"


def csv(path: Path, X: np.ndarray) -> Path:
    np.savetxt(path / "rows.csv", X, fmt="%.17g", delimiter=",")
    return path / "rows.csv"


def txt(path: Path, X: np.ndarray) -> Path:
    np.savetxt(path / "rows.txt", X, fmt="%.17g")
    return path / "rows.txt"


def zipped(path: Path, X: np.ndarray) -> Path:
    (path / "rows.csv.gz").write_bytes(gzip.compress(csv(path, X).read_bytes()))
    return path / "rows.csv.gz"


FILES = {
    "npy": npy,
    "fortran": fortran,
    "parquet": parquet,
    "csv": csv,
    "csv.gz": zipped,
    "txt": txt,
    "folder": lambda path, X: folder(path, X, rows_each=max(len(X) // 6, 7), n_files=3),
    "zarr": lambda path, X: zarr_array(path, X, chunks=(max(len(X) // 6, 9), 2)),
}


@pytest.fixture(params=FILES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_url_is_its_file(kind: str, tmp_path: Path) -> None:
    X = rows()
    file = FILES[kind](tmp_path, X)
    here, there = as_source(file), as_source(s3.put(file))
    np.testing.assert_array_equal(there.read(0, 57), here.read(0, 57))
    np.testing.assert_array_equal(there.read(0, 57), X)
    ids = np.array([2, 3, 17, 55])
    np.testing.assert_array_equal(there.take(ids), X[ids])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(there)).read(8, 40), X[8:40])
    assert (there.dtype, there.feature_names) == (here.dtype, here.feature_names)


def test_labels_are_bit_equal(kind: str, tmp_path: Path) -> None:
    X, _ = blobs(2 * TILE + 100, random_state=0)
    file = FILES[kind](tmp_path, X)
    model = KernelKMeans(3, rank=10, random_state=0)
    expected = clone(model).fit(file)
    place = s3.put(file)
    found = clone(model).fit(place)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    out = s3.new_url("labels.npy")
    found.predict(place, out=out)
    np.testing.assert_array_equal(read_labels(out), expected.predict(file))


@pytest.mark.parametrize("fault", ["500", "503", "slow", "cut"])
def test_faults_that_pass_cost_only_time(fault: str, kind: str, tmp_path: Path) -> None:
    source = as_source(s3.put(FILES[kind](tmp_path, rows())))
    s3.server().faults.append(fault)
    np.testing.assert_array_equal(source.read(0, 57), rows())
    assert not s3.server().faults


@pytest.mark.parametrize("fault", ["500", "403"])
def test_faults_are_not_called_damage(fault: str, kind: str, tmp_path: Path) -> None:
    source = as_source(s3.put(FILES[kind](tmp_path, rows())))
    s3.server().faults.extend([fault] * 500)
    with pytest.raises(OSError, match=r"could not be read") as caught:
        source.read(0, 57)
    assert isinstance(caught.value, PermissionError) == (fault == "403")


def test_faults_that_stay_end_in_one_error(tmp_path: Path) -> None:
    source = as_source(s3.put(npy(tmp_path, rows())))
    s3.server().faults.extend(["500"] * 50)
    with pytest.raises(OSError, match=r"could not be read in 6 attempts.*try again") as caught:
        source.read(0, 57)
    assert caught.value.__cause__ is None
    assert len(s3.server().faults) == 50 - urls.ATTEMPTS


def test_what_is_not_there_or_not_allowed_is_said_at_once(tmp_path: Path) -> None:
    source = as_source(s3.put(npy(tmp_path, rows())))
    s3.server().faults.append("403")
    with pytest.raises(PermissionError, match="access was denied"):
        source.read(0, 57)
    before = urls.retries.total
    for name in ("s3://no-such-bucket/rows.npy", "s3://rows/none.npy"):
        with pytest.raises(FileNotFoundError, match=r"check the bucket and the name"):
            as_source(name)
    with pytest.raises(ValueError, match="nosuch"):
        as_source("nosuch://a/b.npy")
    with pytest.raises(FileNotFoundError, match="no-such-bucket"):
        KernelKMeans(2).fit(rows()).predict(rows(), out="s3://no-such-bucket/labels.npy")
    assert urls.retries.total == before


def test_a_missing_file_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(MissingExtraError, match="gcsfs"):
        as_source("gs://bucket/rows.npy")


def test_what_changes_between_passes_is_an_error(kind: str, tmp_path: Path) -> None:
    place = s3.put(FILES[kind](tmp_path, rows()))
    source: Any = as_source(place)
    files = s3.files()
    name = next(n for n in files.find(place) if not n.endswith(("_SUCCESS", "zarr.json")))
    data = files.cat_file(name)
    files.pipe_file(name, bytes([*data[:-1], data[-1] ^ 1]))  # of the same length
    with pytest.raises(ValueError, match=r"changed: .*(replaced|written to)"):
        source.read(0, 57)


def test_stale_listings_are_not_believed(tmp_path: Path) -> None:
    place = s3.put(npy(tmp_path, rows()))
    s3.files().ls(place.rpartition("/")[0])  # fsspec keeps it
    source: Any = as_source(place)
    other = s3.files()
    other.dircache.clear()
    import boto3  # behind the back of fsspec

    client = boto3.client("s3")
    bucket, _, key = place.removeprefix("s3://").partition("/")
    changed = client.get_object(Bucket=bucket, Key=key)["Body"].read()[:-8] + bytes(8)
    client.put_object(Bucket=bucket, Key=key, Body=changed)
    with pytest.raises(ValueError, match="replaced after it was opened"):
        source.read(0, 57)


def test_few_requests(tmp_path: Path) -> None:
    source = as_source(s3.put(parquet(tmp_path, rows(40_000))))
    before = s3.server().n_gets
    source.read(0, 40_000)
    assert s3.server().n_gets - before <= 3  # a row group each, not a page of a column each


def test_footers_of_a_folder_are_read_once(tmp_path: Path) -> None:
    source = as_source(s3.put(FILES["folder"](tmp_path, rows(40_000))))
    expected = source.read(0, 40_000)  # the footers come with the first pass
    n_gets = []
    for _ in range(2):  # going back opens all files again, as each task of an engine does
        before = s3.server().n_gets
        np.testing.assert_array_equal(source.read(0, 40_000), expected)
        n_gets.append(s3.server().n_gets - before)
    groups = len(source.restarts)
    assert n_gets == [groups, groups]


def test_models_and_reports(tmp_path: Path) -> None:
    from mercer.cli.work import write_report

    X, _ = blobs(300, random_state=0)
    place, report = s3.new_url("model.mercer"), Url(s3.new_url("report.md"))
    model = KernelKMeans(3, random_state=0).fit(X)
    model.save(place)
    np.testing.assert_array_equal(load(place).predict(X), model.labels_)
    write_report(report, model, as_source(X), title="", seed=0)
    assert s3.files().cat_file(report.text).decode() == model.report_.to_markdown()
    with pytest.raises(FileNotFoundError, match="check the bucket"):
        load(s3.new_url("none.mercer"))


@pytest.mark.parametrize("name", ["labels.npy", "labels.parquet", "labels.csv"])
def test_fits_write_labels(name: str, tmp_path: Path) -> None:
    X, _ = blobs(300, random_state=0)
    model, out = KernelKMeans(3, random_state=0), s3.new_url(name)
    model.fit_predict(s3.put(npy(tmp_path, X)), out=out)
    np.testing.assert_array_equal(read_labels(out), model.fit(X).labels_)


def test_arrays_of_zarr_are_not_written_to_urls() -> None:
    with pytest.raises(ValueError, match="folder of parts"):
        KernelKMeans(2).fit(rows()).predict(rows(), out=s3.new_url("labels.zarr"))


def test_inputs_are_not_overwritten(tmp_path: Path) -> None:
    place = s3.put(npy(tmp_path, rows()))
    for out in (place, place + "/labels.npy"):
        with pytest.raises(ValueError, match=r"named twice|is inside"):
            check_apart([place], [out])
    check_apart([place, tmp_path / "a"], [place + ".labels.npy", tmp_path / "b"])


def test_checkpoints_know_rows_at_urls(tmp_path: Path) -> None:
    place = s3.put(npy(tmp_path, rows(500)))
    for n_reused in (False, True):
        with mercer.checkpoint(tmp_path / "kept") as kept:
            KernelKMeans(2, random_state=0).fit(place)
        assert bool(kept.n_reused) == n_reused
    with pytest.raises(ValueError, match="at a URL"), mercer.checkpoint("s3://rows/kept"):
        pass


def test_secrets_are_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = Url("https://me:word@host.example/a/rows.npy?X-Signature=word")
    assert f"{secret} {secret!r} {os.fspath(secret)} {secret.name}".count("word") == 0
    assert pickle.loads(pickle.dumps(secret)) == secret
    with caplog.at_level(logging.DEBUG, "mercer"):
        source = as_source(s3.put(npy(tmp_path, rows())))
        s3.server().faults.append("500")
        source.read(0, 57)
    assert "trying again" in caplog.text
    assert s3.SECRET not in caplog.text
    error = urls._words(OSError("GET 'https://me:word@h/a?sig=word' failed"))
    assert error == "GET 'https://h/a' failed"


def test_what_is_a_url(tmp_path: Path) -> None:
    assert Url.of("C:\\rows.npy") is Url.of("rows.npy") is Url.of(None) is Url.of(tmp_path) is None
    assert located(f"file://{tmp_path}/a.npy") == str(tmp_path / "a.npy")
    np.testing.assert_array_equal(as_source(f"file://{npy(tmp_path, rows())}").read(0, 57), rows())
    place = Url("s3://bucket/folder/") / "rows.npy"
    assert (place.text, place.name, place.suffix) == (
        "s3://bucket/folder/rows.npy",
        "rows.npy",
        ".npy",
    )


def test_other_stores(tmp_path: Path) -> None:
    import fsspec

    fsspec.filesystem("memory").pipe_file("/rows/rows.npy", npy(tmp_path, rows()).read_bytes())
    np.testing.assert_array_equal(as_source("memory://rows/rows.npy").read(0, 57), rows())


def test_reading_over_http(tmp_path: Path) -> None:
    place = s3.put(npy(tmp_path, rows()))
    s3.files().chmod(place, "public-read")
    source: Any = as_source(f"{s3.server().url}/{place.removeprefix('s3://')}")
    np.testing.assert_array_equal(source.read(3, 57), rows()[3:])


def test_importing_mercer_loads_no_fsspec(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, mercer; mercer.KernelKMeans(2).fit(np.eye(9)); "
        "assert not {'fsspec', 's3fs', 'aiohttp'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=300)
