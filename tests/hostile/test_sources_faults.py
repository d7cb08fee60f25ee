"""Folders, zarr and Dask that are damaged, changed or something else: one clear error each."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer import KernelKMeans, as_source
from mercer.io.labels import read_labels, write_labels
from mercer.rows import ZarrSource
from mercer.rows.dasks import DaskSource
from source_kinds import disguise, folder, zarr_array, zarr_shards, zarr_version_2


def numbers(n_rows: int = 57, dtype: Any = "f8") -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n_rows, 3)).astype(dtype)


def write_table(path: Path, **columns: Any) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path)


# Folders


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    return folder(tmp_path, numbers())


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x0": [1.0], "x1": [1.0]}, "number of columns: 2, not 3"),
        ({"x0": [1.0], "x1": [1.0], "y": [1.0]}, "column names"),
        ({"x1": [1.0], "x0": [1.0], "x2": [1.0]}, "column names"),
        ({f"x{j}": np.ones(1, "f4") for j in range(3)}, "number type: float32, not float64"),
        ({"x0": [1.0], "x1": ["a"], "x2": [1.0]}, "holds values of type string, not numbers"),
    ],
)
def test_files_must_be_alike(columns: Any, words: str, parts: Path) -> None:
    write_table(parts / "part-99.parquet", **columns)
    with pytest.raises(ValueError, match=rf"part-99\.parquet.*{words}"):
        as_source(parts)


def test_missing_values_in_a_folder(parts: Path) -> None:
    write_table(parts / "part-99.parquet", x0=[1.0, None], x1=[1.0, 2.0], x2=[1.0, 2.0])
    source = as_source(parts)
    with pytest.raises(ValueError, match=r"'x0' of .*part-99\.parquet holds a missing .* row 1"):
        source.read(0, 59)


def test_a_truncated_file_in_a_folder(parts: Path) -> None:
    path = parts / "part-7.parquet"
    os.truncate(path, path.stat().st_size - 5)
    with pytest.raises(ValueError, match=r"part-7\.parquet cannot be read as Parquet.*write it"):
        as_source(parts)


def test_a_file_of_a_folder_changes(parts: Path) -> None:
    source = as_source(parts)
    os.utime(parts / "part-5.parquet", ns=(0, 0))
    np.testing.assert_array_equal(source.read(0, 3), numbers()[:3])
    with pytest.raises(ValueError, match=r"part-5\.parquet changed: .* open it again"):
        source.read(0, 57)
    (parts / "part-5.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"part-5\.parquet"):
        source.read(0, 57)


def test_other_things_in_a_folder(parts: Path) -> None:
    (parts / "notes.txt").touch()
    (parts / "year=2020").mkdir()
    with pytest.raises(ValueError, match=r"2 other entries.*notes\.txt, year=2020/"):
        as_source(parts)


def test_folders_without_rows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"is a directory without Parquet files"):
        as_source(tmp_path)
    write_table(tmp_path / "a.parquet", x=np.empty(0))
    with pytest.raises(ValueError, match=r"have no rows"):
        as_source(tmp_path)


# Zarr


def test_a_missing_chunk_is_refused(tmp_path: Path) -> None:
    path = zarr_array(tmp_path, numbers(), chunks=(9, 3))
    source = as_source(path)
    (path / "c" / "3" / "0").unlink()
    with pytest.raises(ValueError, match=r"1 chunk.* missing \(c/3/0\).*write_empty_chunks"):
        as_source(path)
    with pytest.raises(ValueError, match=r"1 chunk.* missing \(c/3/0\)"):
        source.read(0, 57)
    filled = ZarrSource(path, missing="fill").read(0, 57)
    np.testing.assert_array_equal(filled[27:36], 0)
    np.testing.assert_array_equal(filled[36:], numbers()[36:])


def test_missing_chunks_of_other_stores_are_refused() -> None:
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(zarr.storage.MemoryStore(), shape=(9, 2), chunks=(3, 2), dtype="f8")
    array[:3] = 1
    with pytest.raises(ValueError, match=r"2 chunk\(s\) .* missing"):
        as_source(array)
    assert ZarrSource(array, missing="fill").read(0, 9).sum() == 6


def test_a_damaged_chunk(tmp_path: Path) -> None:
    path = zarr_array(tmp_path, numbers())
    (path / "c" / "0" / "0").write_bytes(b"not zstd")
    with pytest.raises(ValueError, match=r"rows\.zarr cannot be read as zarr.*write it again"):
        as_source(path).read(0, 10)


def test_a_chunk_is_written_between_passes(tmp_path: Path) -> None:
    path = zarr_array(tmp_path, numbers())
    source = as_source(path)
    source.read(0, 57)
    os.utime(path / "c" / "0" / "0")
    with pytest.raises(ValueError, match=r"changed: the chunks of the rows 0 to 57"):
        source.read(0, 57)


@pytest.mark.parametrize("make", [zarr_array, zarr_version_2, zarr_shards, folder])
@pytest.mark.parametrize("in_place", [True, False], ids=["written", "replaced"])
def test_every_file_of_a_folder_is_looked_at(make: Any, in_place: bool, tmp_path: Path) -> None:
    """Even if its size and time of writing are as they were."""
    path = make(tmp_path, numbers())
    names = [p for p in path.rglob("*") if p.is_file() and p.stat().st_size]
    for file in names:
        source = as_source(path)
        np.testing.assert_array_equal(source.read(0, 57), numbers())
        before = file.read_bytes()
        disguise(file, in_place=in_place)
        if file.name not in (".zattrs", "part-3-empty.parquet"):  # which hold no rows
            with pytest.raises(ValueError, match=r"changed: .* open it again"):
                source.read(0, 57)
        file.write_bytes(before)


def test_an_array_grows_between_passes(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    path = zarr_array(tmp_path, numbers())
    source = as_source(path)
    zarr.open_array(path, mode="r+").append(numbers())
    with pytest.raises(ValueError, match="changed"):
        source.read(0, 10)


def test_groups_name_their_arrays(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("rows", shape=(4, 2), dtype="f8")[:] = 1
    group.create_group("deep").create_array("more", shape=(3,), dtype="i4")
    with pytest.raises(ValueError, match=r"group of 2 zarr.*rows \(4, 2\).*pass the path of one"):
        as_source(tmp_path / "g.zarr")
    assert as_source(tmp_path / "g.zarr" / "rows").n_rows == 4


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((4,), "f8", "1-d"),
        ((4, 2, 2), "f8", "3-d"),
        ((4, 2), "c16", "complex"),
        ((0, 2), "f8", "no rows"),
    ],
)
def test_other_zarr_arrays(shape: Any, dtype: str, words: str, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", shape=shape, chunks=(2, *shape[1:]), dtype=dtype)
    with pytest.raises(ValueError, match=words):
        as_source(tmp_path / "a.zarr")


def test_no_zarr(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    (tmp_path / "a.zarr").mkdir()
    with pytest.raises(ValueError, match="is not a zarr array"):
        as_source(tmp_path / "a.zarr")
    with pytest.raises(FileNotFoundError):
        as_source(tmp_path / "none.zarr")
    with pytest.raises(ValueError, match="no named columns"):
        as_source(zarr_array(tmp_path, numbers()), columns=["a"])
    with pytest.raises(ValueError, match="missing='zeros'"):
        ZarrSource(tmp_path, missing="zeros")  # type: ignore[arg-type]


# Dask


def test_other_collections() -> None:
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="arrays and DataFrames are read"):
        as_source(dask.delayed(np.ones)((3, 3)))
    for array, words in (
        (da.ones(5), "X is a 1-d array"),
        (da.ones((5, 2), dtype="c16"), "real numbers are wanted"),
        (da.ones((5, 0)), "no columns"),
        (da.ones((0, 2)), "no rows"),
        (da.ones((2, 4))[:, da.ones(4) > 0], "unknown number of columns"),
    ):
        with pytest.raises(ValueError, match=words):
            as_source(array)


def test_words_in_a_dask_frame() -> None:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), npartitions=1)
    with pytest.raises(ValueError, match=r"column 'b' of X .* real numbers are wanted"):
        as_source(frame)


def test_partitions_that_change_or_lie() -> None:
    da = pytest.importorskip("dask.array")
    blocks = [np.ones((3, 2)), np.ones((4, 2)), np.ones((3, 2), "f4")]
    turn = iter((1, 1, 0, 2))

    def next_block(_: Any) -> np.ndarray:
        return blocks[next(turn)]

    array = da.map_blocks(next_block, da.ones((4, 2), chunks=(4, 2)), meta=np.empty((0, 0)))
    source = as_source(array)
    assert source.read(0, 4).shape == (4, 2)
    assert source.read(0, 4).shape == (4, 2)
    with pytest.raises(ValueError, match=r"partition 0 had 4 rows at first and 3 now"):
        source.read(0, 4)
    with pytest.raises(ValueError, match=r"partition 0 .* number type: float32, not float64"):
        source.read(0, 4)


def test_missing_values_of_dask_are_named() -> None:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan, 3.0], "b": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match=r"NaN at row 2, column 0 \('a'\)"):
        KernelKMeans(2).fit(dd.from_pandas(frame, npartitions=2))


@pytest.fixture
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(processes=False, **options) as client:
        yield client


def where(block: np.ndarray) -> np.ndarray:
    """Rows that tell whether a worker made them."""
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return np.zeros_like(block)
    return np.ones_like(block)


@pytest.mark.filterwarnings("ignore")
def test_an_active_client_computes_the_partitions(client: Any) -> None:
    da = pytest.importorskip("dask.array")
    array = da.zeros((20, 2), chunks=(5, 2)).map_blocks(where, meta=np.empty((0, 0)))
    source = as_source(array)
    assert source.read(0, 20).all()
    marked = array[array[:, 0] > 0]  # rows that a worker made: counted there, all are
    assert as_source(marked).n_rows == 20
    persisted = as_source((da.ones((20, 2), chunks=(5, 2)) * 3).persist())
    assert isinstance(persisted, DaskSource)
    assert persisted.has_futures
    np.testing.assert_array_equal(persisted.read(3, 17), 3)
    in_worker = client.submit(lambda source: source.read(2, 8).sum(), source).result()
    assert in_worker == 12
    assert client.submit(lambda source: source.read(2, 8).sum(), persisted).result() == 36
    copy = pickle.loads(pickle.dumps(source))
    assert copy.read(0, 20).all()


# Labels


def test_a_folder_that_is_no_array_is_not_replaced(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    precious = tmp_path / "a.zarr"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="not a zarr array"):
        write_labels(precious, [(0, np.arange(3))], 3)
    zarr.open_group(tmp_path / "g.zarr", mode="w")
    with pytest.raises(FileExistsError, match="not a zarr array"):
        write_labels(tmp_path / "g.zarr", [(0, np.arange(3))], 3)
    (tmp_path / "f.zarr").touch()
    with pytest.raises(FileExistsError, match="is a file"):
        write_labels(tmp_path / "f.zarr", [(0, np.arange(3))], 3)
    assert (precious / "thesis.tex").exists()


def test_labels_in_zarr_are_replaced_as_a_whole(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    path = tmp_path / "a.zarr"

    def interrupted() -> Iterator[Any]:
        yield 0, np.arange(5)
        raise KeyboardInterrupt

    write_labels(path, [(0, np.arange(3))], 3)
    with pytest.raises(KeyboardInterrupt):
        write_labels(path, interrupted(), 10)
    assert read_labels(path).tolist() == [0, 1, 2]
    write_labels(path, [(0, np.zeros(4, int))], 4)
    assert read_labels(path).tolist() == [0, 0, 0, 0]
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_damaged_labels_in_zarr(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    path = write_labels(tmp_path / "a.zarr", [(0, np.zeros(4, int))], 4)
    (path / "c" / "0").unlink()
    with pytest.raises(ValueError, match=r"does not hold labels \(1 of its chunks are missing"):
        read_labels(path)
    shutil.rmtree(path)
    with pytest.raises(FileNotFoundError, match="no file"):
        read_labels(path)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on file sizes")
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("zarr")
    program = """
        import resource, sys
        import numpy as np
        from mercer.io.labels import FORMATS, write_labels
        labels = np.random.default_rng(0).integers(0, 10**15, 100_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        for suffix in FORMATS:
            try:
                write_labels(sys.argv[1] + suffix, [(0, labels)], len(labels))
            except OSError as error:
                print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.count("no room on the disk for the labels") == 4, done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_a_read_only_folder_is_refused_before_the_work(
    suffix: str, tmp_path: Path, monkeypatch: Any
) -> None:
    if suffix == ".zarr":
        pytest.importorskip("zarr")

    def tiles() -> Iterator[Any]:
        pytest.fail("a tile was computed for nothing")
        yield

    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with pytest.raises(PermissionError, match="is not writable; choose another"):
        write_labels(tmp_path / f"a{suffix}", tiles(), 3)


# Copies


@pytest.mark.parametrize("kind", [folder, zarr_array, zarr_shards])
def test_another_machine_may_have_a_copy_of_its_own(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inodes and times of change are a machine's own; lengths and times of writing are copied."""
    path = Path(kind(tmp_path, numbers()))
    source = as_source(path)
    shutil.copytree(path, tmp_path / "copy")
    shutil.rmtree(path)
    (tmp_path / "copy").rename(path)
    with pytest.raises(ValueError, match="changed"):
        source.read(0, 57)
    monkeypatch.setattr("platform.node", lambda: "another")
    np.testing.assert_array_equal(source.read(0, 57), numbers())
