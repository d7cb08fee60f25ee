"""Labels in parts: written by whoever finds them, each row exactly once, whole or refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import KernelKMeans
from mercer.datasets import blobs
from mercer.io import label_parts, read_labels, write_labels
from mercer.rows.source import TILE

pq = pytest.importorskip("pyarrow.parquet")
X, _ = blobs(5 * TILE + 100, random_state=0)
X.flags.writeable = False


@pytest.fixture(scope="module")
def model() -> Any:
    return KernelKMeans(3, rank=10, random_state=0).fit(X[:2000])


@pytest.fixture(scope="module")
def labels(model: Any) -> np.ndarray:
    return model.predict(X)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercer.rows.sweep.PART_ROWS", 2 * TILE)


@pytest.fixture(params=["folder", "URL"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return f"{tmp_path}/labels/"
    import s3_server

    return s3_server.new_url("labels/")


@pytest.mark.usefixtures("small_parts")
def test_parts_give_labels_back_in_order(model: Any, labels: np.ndarray, out: str) -> None:
    assert model.predict(X, out=out) == out
    np.testing.assert_array_equal(read_labels(out), labels)
    model.predict(X[:100], out=out)  # fewer parts than before
    np.testing.assert_array_equal(read_labels(out), labels[:100])


@pytest.mark.usefixtures("small_parts")
def test_what_a_folder_holds(model: Any, labels: np.ndarray, tmp_path: Path) -> None:
    model.predict(X, out=f"{tmp_path}/labels/")
    folder = tmp_path / "labels"
    names = [f"part-{number:05d}.parquet" for number in range(3)]
    assert sorted(os.listdir(folder)) == ["_SUCCESS", "_commit.json", *names]
    table = pq.read_table(folder)  # other programs skip names with _
    assert [str(kind) for kind in table.schema.types] == ["int64", "int16"]
    np.testing.assert_array_equal(table["row"], np.arange(len(X)))
    np.testing.assert_array_equal(table["label"], labels)
    listed = json.loads((folder / "_commit.json").read_text())
    assert [part["first_row"] for part in listed["parts"]] == [0, 2 * TILE, 4 * TILE]
    assert (folder / names[0]).stat().st_size < 2 * TILE * 2  # row numbers cost nearly nothing


def test_fits_write_parts(labels: np.ndarray, tmp_path: Path) -> None:
    fresh = KernelKMeans(3, rank=10, random_state=0)
    np.save(tmp_path / "rows.npy", X)
    for given in (X, tmp_path / "rows.npy"):
        fresh.fit_predict(given, out=f"{tmp_path}/labels/")
        np.testing.assert_array_equal(read_labels(tmp_path / "labels"), fresh.predict(X))


def test_labels_from_elsewhere(tmp_path: Path) -> None:
    found = np.arange(100) - 1
    write_labels(f"{tmp_path}/labels/", [(0, found[:30]), (30, found[30:])], 100)
    np.testing.assert_array_equal(read_labels(f"{tmp_path}/labels/"), found)


@pytest.mark.parametrize("engine", ["processes", pytest.param("dask", marks=pytest.mark.slow)])
def test_workers_write(engine: str, model: Any, labels: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    kept: list[Any] = []
    with mercer.on(mercer.Processes(2) if engine == "processes" else engine) as running:
        rows = running.rows

        def seen(*given: Any) -> Any:
            for result in rows(*given):
                kept.append(result)
                yield result

        running.rows = seen
        model.predict(tmp_path / "rows.npy", out=f"{tmp_path}/labels/")
    np.testing.assert_array_equal(read_labels(tmp_path / "labels"), labels)
    assert all(isinstance(part, label_parts.Part) for part in kept)  # no labels came back
    assert len(os.listdir(tmp_path / "labels")) == len(kept) + 2


class Twice(label_parts.PartWriter):
    """A worker that is lost after it wrote: the scheduler runs its task again."""

    def __call__(self, first_row: int, tiles: Any) -> Any:
        super().__call__(first_row, tiles)
        return super().__call__(first_row, tiles)


def test_rows_are_there_once_though_tasks_ran_twice(
    model: Any, labels: np.ndarray, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_parts, "PartWriter", Twice)
    model.predict(X, out=out)
    np.testing.assert_array_equal(read_labels(out), labels)
    assert label_parts._names(label_parts.place_of(out) / "_temporary") == []


@pytest.mark.usefixtures("small_parts")
def test_an_older_result_stays_until_all_parts_are_there(
    model: Any, labels: np.ndarray, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.predict(X[:500], out=out)

    def fail(self: Any, first_row: int, tiles: Any) -> Any:
        raise OSError("the worker's disk is full")

    monkeypatch.setattr(label_parts.PartWriter, "__call__", fail)
    with pytest.raises(OSError, match="disk is full"):
        model.predict(X, out=out)
    np.testing.assert_array_equal(read_labels(out), labels[:500])


@pytest.mark.parametrize("n_moves", [0, 1, 2])
@pytest.mark.usefixtures("small_parts")
def test_a_folder_without_success_is_refused_and_written_again(
    n_moves: int, model: Any, labels: np.ndarray, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.predict(X[:500], out=out)
    move, left = label_parts._move, iter(range(n_moves))

    def killed(old: Any, new: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        move(old, new)

    with monkeypatch.context() as patched:
        patched.setattr(label_parts, "_move", killed)
        with pytest.raises(KeyboardInterrupt):
            model.predict(X, out=out)
    with pytest.raises(ValueError, match="_SUCCESS"):
        read_labels(out)
    model.predict(X, out=out)
    np.testing.assert_array_equal(read_labels(out), labels)


def test_damage_is_refused(model: Any, tmp_path: Path) -> None:
    model.predict(X[:500], out=f"{tmp_path}/labels/")
    part = tmp_path / "labels" / "part-00000.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:-20])
    with pytest.raises(ValueError, match="does not hold labels"):
        read_labels(tmp_path / "labels")
    part.unlink()
    with pytest.raises(FileNotFoundError):
        read_labels(tmp_path / "labels")
    with pytest.raises(FileNotFoundError, match="no folder of labels"):
        read_labels(f"{tmp_path}/none/")


def test_other_files_are_never_replaced(model: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "part-0.parquet").write_text("precious")
    with pytest.raises(FileExistsError, match="other files than labels"):
        model.predict(X[:500], out=f"{tmp_path}/mine/")
    (tmp_path / "file").write_text("precious")
    with pytest.raises(NotADirectoryError, match="is a file"):
        model.predict(X[:500], out=f"{tmp_path}/file/")
    with pytest.raises(FileNotFoundError, match="no folder"):
        model.predict(X[:500], out=f"{tmp_path}/none/labels/")


def test_many_clusters_take_more_bytes(tmp_path: Path) -> None:
    writer = label_parts.PartWriter
    for n_labels, dtype in ((2**15 - 1, "int16"), (2**15, "int32")):
        made: list[Any] = []

        def parts(one: Any, made: Any = made) -> Any:
            made.append(one.dtype)
            assert isinstance(one, writer)
            return [one(0, [(0, (np.zeros(3, int), 0))])]

        label_parts.write_parts(f"{tmp_path}/labels/", n_labels, 3, parts)
        assert made == [dtype]
