"""Sources on disk and in batches: each equals the array it came from, or says what is wrong."""

from __future__ import annotations

import gzip
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.rows import as_source, npy, stamp, tables
from mercer.rows.arrays import working_dtype
from mercer.rows.batches import BatchSource
from mercer.rows.file_types import open_file
from mercer.rows.npy import NpySource
from mercer.rows.source import TILE, Source
from mercer.rows.tables import CsvSource, ParquetSource
from source_kinds import disguise

SEEDS = range(10)
DTYPES = ["f2", "f4", "f8", ">f4", ">f8", "i1", "u2", "i8", ">i4", "?"]


def numbers(seed: int, n_rows: int = 57, n_features: int = 3, dtype: Any = "f8") -> np.ndarray:
    X = np.random.default_rng(seed).normal(scale=50, size=(n_rows, n_features)).astype(dtype)
    X.flags.writeable = False
    return X


def dense(rows: Any) -> np.ndarray:
    return rows.toarray() if sp.issparse(rows) else rows


def ascending(seed: int, n_rows: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n_rows, rng.integers(1, n_rows + 1), replace=False)).astype(np.intp)


def save_npy(path: Path, X: np.ndarray) -> Path:
    np.save(path / "rows.npy", X)
    return path / "rows.npy"


def save_fortran(path: Path, X: np.ndarray) -> Path:
    return save_npy(path, np.asfortranarray(X))


def save_parquet(path: Path, X: np.ndarray, rows_each: int = 10, **options: Any) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    native = X.astype(X.dtype.newbyteorder("="))
    table = pa.table({f"x{j}": pa.array(native[:, j]) for j in range(X.shape[1])})
    pq.write_table(table, path / "rows.parquet", row_group_size=rows_each, **options)
    return path / "rows.parquet"


def save_lists(path: Path, X: np.ndarray, rows_each: int = 10, size: int = -1) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    native = X.astype(X.dtype.newbyteorder("="))
    kind = pa.list_(pa.from_numpy_dtype(native.dtype), size)
    table = pa.table({"x": pa.array(list(native), kind)})
    pq.write_table(table, path / "rows.pq", row_group_size=rows_each)
    return path / "rows.pq"


def save_fixed_lists(path: Path, X: np.ndarray) -> Path:
    return save_lists(path, X, size=X.shape[1])


def csv_text(X: np.ndarray, separator: str = ",") -> str:
    lines = [[f"x{j}" for j in range(X.shape[1])], *([repr(float(v)) for v in row] for row in X)]
    return "".join(separator.join(line) + "\n" for line in lines)


def save_csv(path: Path, X: np.ndarray) -> Path:
    pytest.importorskip("pyarrow")
    (path / "rows.csv").write_text(csv_text(X))
    return path / "rows.csv"


def save_csv_gz(path: Path, X: np.ndarray) -> Path:
    pytest.importorskip("pyarrow")
    with gzip.open(path / "rows.csv.gz", "wt") as file:
        file.write(csv_text(X))
    return path / "rows.csv.gz"


def save_tsv(path: Path, X: np.ndarray) -> Path:
    pytest.importorskip("pyarrow")
    (path / "rows.tsv").write_text(csv_text(X, "\t"))
    return path / "rows.tsv"


BINARY = [save_npy, save_fortran, save_parquet, save_lists, save_fixed_lists]


def save_txt(path: Path, X: np.ndarray) -> Path:
    lines = [
        f"# row {i}\n\n {'  '.join(repr(float(v)) for v in row)}\t# ok\n" for i, row in enumerate(X)
    ]
    (path / "rows.txt").write_text("".join(lines))
    return path / "rows.txt"


def save_dat_gz(path: Path, X: np.ndarray) -> Path:
    with gzip.open(path / "rows.dat.gz", "wt") as file:
        file.write(csv_text(X, " "))
    return path / "rows.dat.gz"


TEXT = [save_csv, save_csv_gz, save_tsv, save_txt, save_dat_gz]


def write(path: Path, name: str, text: str | bytes) -> Path:
    (path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return path / name


def write_table(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path / "rows.parquet", **options)
    return path / "rows.parquet"


class Anew:
    """Batches made again by each iteration, each time by calling a function."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def __iter__(self) -> Any:
        return iter(self.make())


# Laws


@pytest.mark.parametrize("save", BINARY + TEXT)
@pytest.mark.parametrize("seed", SEEDS)
def test_file_equals_its_array(save: Any, seed: int, tmp_path: Path) -> None:
    X = numbers(seed, n_rows=1 + 13 * seed, n_features=1 + seed % 4)
    source = open_file(save(tmp_path, X))
    assert isinstance(source, Source)
    assert (source.n_rows, source.n_features, source.in_memory) == (*X.shape, False)
    rows = source.read(0, len(X))
    assert rows.dtype == source.dtype == np.float64
    assert rows.flags.c_contiguous
    assert rows.flags.writeable
    np.testing.assert_array_equal(rows, X)


@pytest.mark.parametrize("save", BINARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_of_number_is_read(save: Any, dtype: str, tmp_path: Path) -> None:
    X = numbers(0, dtype=dtype)
    source = open_file(save(tmp_path, X))
    assert source.dtype == working_dtype(np.dtype(dtype).newbyteorder("="))
    np.testing.assert_array_equal(source.read(3, 40), X[3:40].astype(source.dtype))


@pytest.mark.parametrize("save", BINARY + TEXT)
@pytest.mark.parametrize("block_rows", [1, 4, 10, 13, 57, 100])
def test_any_cut_gives_the_same_rows(save: Any, block_rows: int, tmp_path: Path) -> None:
    X = numbers(1)
    source = open_file(save(tmp_path, X))
    for _ in range(2):
        blocks = [source.read(i, i + block_rows) for i in range(0, len(X), block_rows)]
        np.testing.assert_array_equal(np.concatenate(blocks), X)


@pytest.mark.parametrize("save", BINARY + TEXT)
@pytest.mark.parametrize("seed", SEEDS)
def test_reads_may_jump(save: Any, seed: int, tmp_path: Path) -> None:
    X, rng = numbers(seed), np.random.default_rng(seed)
    source = open_file(save(tmp_path, X))
    for start, stop in np.sort(rng.integers(0, len(X) + 1, size=(30, 2)), axis=1):
        np.testing.assert_array_equal(source.read(int(start), int(stop)), X[start:stop])


@pytest.mark.parametrize("save", BINARY + TEXT)
@pytest.mark.parametrize("seed", SEEDS)
def test_take_equals_read(save: Any, seed: int, tmp_path: Path) -> None:
    X, ids = numbers(seed), ascending(seed, 57)
    source = open_file(save(tmp_path, X))
    source.read(5, 25)
    taken = source.take(ids)
    assert taken.dtype == source.dtype
    np.testing.assert_array_equal(taken, X[ids])
    assert source.take(ids[:0]).shape == (0, 3)
    np.testing.assert_array_equal(source.read(25, 30), X[25:30])


@pytest.mark.parametrize("save", BINARY + TEXT)
def test_pickle_is_identity_even_in_the_middle(save: Any, tmp_path: Path) -> None:
    X = numbers(2)
    source = open_file(save(tmp_path, X))
    source.read(0, 20)
    twin = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(twin.read(20, 57), X[20:])
    np.testing.assert_array_equal(source.read(20, 57), X[20:])
    assert (twin.n_rows, twin.dtype, twin.feature_names) == (57, X.dtype, source.feature_names)


@pytest.mark.parametrize("save", BINARY + TEXT)
def test_threads_may_share_a_source(save: Any, tmp_path: Path) -> None:
    X = numbers(3)
    source = open_file(save(tmp_path, X))
    with ThreadPoolExecutor(4) as pool:
        blocks = list(pool.map(lambda i: source.read(i, i + 5), range(0, 57, 5)))
    np.testing.assert_array_equal(np.concatenate(blocks), X)


@pytest.mark.parametrize("rows_each", [1, 7, 57, 1000])
def test_row_groups_do_not_matter(rows_each: int, tmp_path: Path) -> None:
    X = numbers(4)
    source = ParquetSource(save_parquet(tmp_path, X, rows_each))
    np.testing.assert_array_equal(source.read(5, 50), X[5:50])
    np.testing.assert_array_equal(source.take(np.array([0, 6, 7, 56])), X[[0, 6, 7, 56]])


def test_row_groups_longer_than_a_tile(tmp_path: Path) -> None:
    X = numbers(5, n_rows=3 * TILE + 11, n_features=2, dtype="f4")
    source = ParquetSource(save_parquet(tmp_path, X, rows_each=2 * TILE + 5))
    for start in range(0, len(X), TILE):
        np.testing.assert_array_equal(source.read(start, start + TILE), X[start : start + TILE])
    ids = ascending(5, len(X))
    np.testing.assert_array_equal(source.take(ids), X[ids])


def test_large_row_groups_need_little_memory(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", minversion="23")  # older ones hold the group's pages
    X = numbers(5, n_rows=32 * TILE, n_features=8)
    source = ParquetSource(save_parquet(tmp_path, X, rows_each=len(X), use_dictionary=False))
    before = pa.total_allocated_bytes()
    source.read(TILE, 2 * TILE)
    assert pa.total_allocated_bytes() - before < X.nbytes / 4  # while the row group is open


def test_blocks_of_csv_text_do_not_matter(tmp_path: Path, monkeypatch: Any) -> None:
    X = numbers(6)
    monkeypatch.setattr(tables, "BLOCK", 200)
    source = CsvSource(save_csv(tmp_path, X))
    np.testing.assert_array_equal(source.read(5, 50), X[5:50])


@pytest.mark.parametrize("chunk", [1, 30, 100, 2**18])
@pytest.mark.parametrize("save", [save_npy, save_fortran])
def test_chunks_of_npy_do_not_matter(
    save: Any, chunk: int, tmp_path: Path, monkeypatch: Any
) -> None:
    X, ids = numbers(7), ascending(7, 57)
    monkeypatch.setattr(npy, "NEAR_BYTES", chunk)
    np.testing.assert_array_equal(NpySource(save(tmp_path, X)).take(ids), X[ids])


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_all_npy_versions(version: tuple[int, int], tmp_path: Path) -> None:
    X = numbers(8)
    with open(tmp_path / "rows.npy", "wb") as file:
        np.lib.format.write_array(file, X, version=version)
    np.testing.assert_array_equal(NpySource(tmp_path / "rows.npy").read(0, 57), X)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any),
    spans=st.lists(st.tuples(st.integers(0, 72), st.integers(0, 72)), max_size=6),
    is_sparse=st.booleans(),
    dtype=st.sampled_from(["f2", "f4", "f8", "i4", "?"]),
    seed=st.integers(0, 9),
)
def test_batches_equal_their_stack(
    sizes: list[int], spans: list[tuple[int, int]], is_sparse: bool, dtype: str, seed: int
) -> None:
    X = numbers(seed, sum(sizes), dtype="f4" if is_sparse and dtype == "f2" else dtype)
    pieces = np.split(X, np.cumsum(sizes)[:-1])
    source = BatchSource([sp.csr_array(piece) if is_sparse else piece for piece in pieces])
    assert (source.n_rows, source.n_features) == X.shape
    for start, stop in spans:
        rows = source.read(start, stop)
        assert rows.dtype == source.dtype == working_dtype(X.dtype)
        np.testing.assert_array_equal(dense(rows), X[start:stop])
    ids = ascending(seed, len(X))
    np.testing.assert_array_equal(dense(source.take(ids)), X[ids])
    twin = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(dense(twin.read(0, len(X))), X)


# Cases


def test_columns_are_chosen_and_ordered(tmp_path: Path) -> None:
    X = numbers(0)
    for save in (save_parquet, save_csv, save_dat_gz):
        source = open_file(save(tmp_path, X), columns=["x2", "x0"])
        assert source.feature_names == ("x2", "x0")
        np.testing.assert_array_equal(source.read(0, 57), X[:, [2, 0]])


def test_names_of_features(tmp_path: Path) -> None:
    X = numbers(0)
    assert open_file(save_npy(tmp_path, X)).feature_names is None
    assert open_file(save_csv(tmp_path, X)).feature_names == ("x0", "x1", "x2")
    assert open_file(save_dat_gz(tmp_path, X)).feature_names == ("x0", "x1", "x2")
    assert open_file(save_txt(tmp_path, X)).feature_names == ("f0", "f1", "f2")
    assert open_file(save_parquet(tmp_path, X)).feature_names == ("x0", "x1", "x2")
    assert open_file(save_lists(tmp_path, X)).feature_names == ("x_0", "x_1", "x_2")


def test_lists_and_numbers_together_if_asked_for(tmp_path: Path) -> None:
    path = write_table(tmp_path, {"id": [7, 8], "x": [[1.0, 2.0], [3.0, 4.0]], "word": ["a", "b"]})
    source = ParquetSource(path, columns=["x", "id"])
    assert source.feature_names == ("x_0", "x_1", "id")
    np.testing.assert_array_equal(source.read(0, 2), [[1, 2, 7], [3, 4, 8]])


def test_decimals_are_numbers(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    path = write_table(tmp_path, {"x": pa.array([1, 2], pa.decimal128(5, 2))})
    np.testing.assert_array_equal(ParquetSource(path).read(0, 2), [[1.0], [2.0]])


def test_one_wide_column_makes_all_wide(tmp_path: Path) -> None:
    x = np.array([1.0, 2.0], "f4")
    assert ParquetSource(write_table(tmp_path, {"a": x, "b": x})).dtype == np.float32
    assert ParquetSource(write_table(tmp_path, {"a": x, "b": [1, 2]})).dtype == np.float64


def test_other_columns_and_row_groups_are_not_touched(tmp_path: Path) -> None:
    X = numbers(0, n_rows=40)
    path = save_parquet(
        tmp_path, X, compression="none", use_dictionary=False, write_page_checksum=True
    )
    damage(path, X[25, 1])
    source = ParquetSource(path)
    np.testing.assert_array_equal(source.read(0, 20), X[:20])
    np.testing.assert_array_equal(source.take(np.array([3, 33])), X[[3, 33]])
    np.testing.assert_array_equal(ParquetSource(path, ["x0"]).read(0, 40), X[:, :1])
    with pytest.raises(ValueError, match=r"rows\.parquet cannot be read as Parquet: .*write it"):
        source.read(20, 30)
    np.testing.assert_array_equal(source.read(30, 40), X[30:])


def test_take_starts_once_in_each_row_group_it_needs(tmp_path: Path, monkeypatch: Any) -> None:
    source, starts, blocks = open_file(save_parquet(tmp_path, numbers(0))), [], ParquetSource.blocks

    def counted(self: ParquetSource, start: int) -> Any:
        starts.append(start)
        return blocks(self, start)

    monkeypatch.setattr(ParquetSource, "blocks", counted)
    source.take(np.array([3, 4, 9, 31, 38, 50]))
    assert starts == [0, 30, 50]


def damage(path: Path, number: float) -> None:
    """Change one byte of a number in a file."""
    data, pattern = bytearray(path.read_bytes()), np.float64(number).tobytes()
    place = data.find(pattern)
    assert place > 0
    data[place] ^= 1
    path.write_bytes(data)


def test_csv_without_header_gets_names(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    source = CsvSource(write(tmp_path, "rows.csv", "1,2.5\n3,-4e2"))
    assert source.feature_names == ("f0", "f1")
    np.testing.assert_array_equal(source.read(0, 2), [[1, 2.5], [3, -400]])


def test_csv_header_that_pandas_writes_for_unnamed_columns(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    source = CsvSource(write(tmp_path, "rows.csv", "0,1,2\n4,5,6\n"))
    assert (source.n_rows, source.feature_names) == (1, ("0", "1", "2"))


def test_csv_marks_blank_lines_and_line_ends_are_ignored(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    source = CsvSource(write(tmp_path, "rows.csv", '\ufeffa,"b, c"\r\n1,2\r\n\r\n3,4\r\n'))
    assert source.feature_names == ("a", "b, c")
    np.testing.assert_array_equal(source.read(0, 2), [[1, 2], [3, 4]])


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    path = save_npy(tmp_path, numbers(0))
    assert open_file(path.rename(tmp_path / "ROWS.NPY")).n_rows == 57


def test_sources_do_not_depend_on_the_folder(tmp_path: Path, monkeypatch: Any) -> None:
    X = numbers(0)
    save_npy(tmp_path, X)
    monkeypatch.chdir(tmp_path)
    source = open_file("rows.npy")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(source.read(0, 57), X)


def test_batches_of_frames() -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    columns = {"a": [1.5, 2.5], "b": [True, False], "c": [3, 4]}
    frames = [pd.DataFrame(columns), pl.DataFrame(columns)]
    frames += [pa.table(columns), pa.record_batch(columns), pd.DataFrame()]
    source = BatchSource(frames)
    assert source.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(
        source.read(0, 8), np.array(list(columns.values())).T.tolist() * 4
    )


def test_batches_of_unnamed_frames_have_no_names() -> None:
    pd = pytest.importorskip("pandas")
    X = numbers(0)
    source = BatchSource([pd.DataFrame(X), pd.DataFrame(X)])
    assert source.feature_names is None
    np.testing.assert_array_equal(source.read(57, 114), X)


def test_one_buffer_for_all_batches() -> None:
    X, buffer = numbers(0, n_rows=40), np.empty((10, 3))

    def fill() -> Any:
        for i in range(0, 40, 10):
            buffer[:] = X[i : i + 10]
            yield buffer

    source = BatchSource(Anew(fill))
    first, second = source.read(0, 25), source.read(25, 40)
    np.testing.assert_array_equal(np.concatenate([first, second]), X)
    ids = ascending(0, 40)
    np.testing.assert_array_equal(source.take(ids), X[ids])


def test_reading_on_does_not_start_again() -> None:
    starts: list[int] = []

    def make() -> Any:
        starts.append(1)
        return [numbers(0), numbers(1)]

    source = BatchSource(Anew(make))
    for i in range(0, 114, 10):
        source.read(i, i + 10)
    assert len(starts) == 2  # the count and one pass
    source.read(0, 10)
    source.take(np.arange(5, 90))
    source.read(90, 100)
    assert len(starts) == 3


def test_rows_of_sparse_batches_are_sorted_and_the_batch_is_untouched() -> None:
    indices = np.array([2, 0, 0])
    batch = sp.csr_array((np.array([1.0, 2.0, 3.0]), indices, np.array([0, 3])), shape=(1, 3))
    rows = BatchSource([batch]).read(0, 1)
    assert rows.indices.tolist() == [0, 2]
    assert rows.data.tolist() == [5, 1]
    assert indices.tolist() == [2, 0, 0]


def test_a_failed_pass_does_not_spoil_the_next() -> None:
    fail = threading.Event()

    def make() -> Any:
        yield numbers(0)
        if fail.is_set():
            raise OSError("the line is down")
        yield numbers(1)

    source = BatchSource(Anew(make))
    fail.set()
    with pytest.raises(OSError, match="the line is down"):
        source.read(50, 70)
    fail.clear()
    np.testing.assert_array_equal(source.read(57, 114), numbers(1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_its_own_place(tmp_path: Path, monkeypatch: Any) -> None:
    X = numbers(0)
    monkeypatch.setattr(tables, "BLOCK", 200)
    source = CsvSource(save_csv(tmp_path, X))
    source.read(0, 5)
    place = source.cursor._blocks
    monkeypatch.setattr(os, "getpid", lambda: -1)
    np.testing.assert_array_equal(source.read(5, 15), X[5:15])
    assert source.cursor._blocks is not place


# Errors


@pytest.mark.parametrize("name", ["a.npy", "a.parquet", "a.csv", "a.tsv", "a.txt", "a.svm"])
class TestAnyFile:
    def test_missing(self, name: str, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"no file .*check the path"):
            open_file(tmp_path / name)

    def test_directory(self, name: str, tmp_path: Path) -> None:
        (tmp_path / name).mkdir()
        with pytest.raises(ValueError, match="is a directory"):
            open_file(tmp_path / name)

    def test_empty(self, name: str, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"is empty \(0 bytes\); write it again"):
            open_file(write(tmp_path, name, ""))


@pytest.mark.parametrize("save", BINARY + TEXT)
class TestChangedFile:
    def test_shorter(self, save: Any, tmp_path: Path) -> None:
        path = save(tmp_path, numbers(0))
        source = open_file(path)
        os.truncate(path, path.stat().st_size - 9)
        with pytest.raises(ValueError, match=r"changed: it has .* bytes and had .* open it again"):
            source.read(0, 10)

    def test_longer(self, save: Any, tmp_path: Path) -> None:
        path = save(tmp_path, numbers(0))
        source = open_file(path)
        with open(path, "ab") as file:
            file.write(b"1,2,3\n")
        with pytest.raises(ValueError, match=r"changed: it has .* bytes and had .* open it again"):
            source.take(np.array([3]))

    def test_written_to(self, save: Any, tmp_path: Path) -> None:
        path = save(tmp_path, numbers(0))
        source = open_file(path)
        os.utime(path, ns=(0, 0))
        with pytest.raises(ValueError, match=r"changed: it was written to after .* open it again"):
            source.read(0, 10)

    def test_another_file_of_equal_size_and_time(self, save: Any, tmp_path: Path) -> None:
        path = save(tmp_path, numbers(0))
        source = open_file(path)
        disguise(path, in_place=False)
        with pytest.raises(ValueError, match=r"changed: another file took its place .* open it"):
            source.read(0, 10)

    def test_written_to_at_an_equal_time(self, save: Any, tmp_path: Path) -> None:
        path = save(tmp_path, numbers(0))
        source = open_file(path)
        disguise(path, in_place=True)
        with pytest.raises(ValueError, match=r"changed: its content or its attributes .* open it"):
            source.read(0, 10)

    def test_removed(self, save: Any, tmp_path: Path) -> None:
        path = save(tmp_path, numbers(0))
        source = open_file(path)
        path.unlink()
        with pytest.raises(FileNotFoundError, match="no file"):
            source.read(0, 10)


@pytest.mark.parametrize("name", ["a.doc", "a.npz", "a", "a.gz"])
def test_unknown_suffix(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"suffix .*\.npy, \.parquet, \.pq, \.csv, \.csv\.gz, \.tsv"
    ):
        open_file(write(tmp_path, name, "x"))


def test_columns_of_npy(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no named columns.*columns=\['a'\].*leave columns out"):
        open_file(save_npy(tmp_path, numbers(0)), columns=["a"])


@pytest.mark.parametrize("data", [b"PK\x03\x04 a zip file", b"\x93NUM", b"\x93NUMPY\x01\x00\xff"])
def test_not_npy(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"not a readable npy file .*numpy\.save"):
        NpySource(write(tmp_path, "a.npy", data))


def test_npy_of_the_future(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"npy version \(9, 0\); versions 1 to 3"):
        NpySource(write(tmp_path, "a.npy", b"\x93NUMPY\x09\x00" + bytes(100)))


def test_truncated_npy(tmp_path: Path) -> None:
    path = save_npy(tmp_path, numbers(0))
    os.truncate(path, path.stat().st_size - 10)
    with pytest.raises(ValueError, match=r"truncated: its header promises 1368 bytes.* 1358 were"):
        NpySource(path)


def test_npy_cut_during_a_read(tmp_path: Path, monkeypatch: Any) -> None:
    path = save_npy(tmp_path, numbers(0))
    source = NpySource(path)
    monkeypatch.setattr(stamp.FileStamp, "check", lambda *_: os.truncate(path, 500))
    with pytest.raises(ValueError, match="bytes early: it was truncated while it was being read"):
        source.read(0, 57)


def test_two_arrays_in_one_npy(tmp_path: Path) -> None:
    with open(tmp_path / "a.npy", "wb") as file:
        np.save(file, numbers(0))
        np.save(file, numbers(1))
    with pytest.raises(ValueError, match="one array per file"):
        NpySource(tmp_path / "a.npy")


def test_npy_that_promises_the_moon(tmp_path: Path) -> None:
    with open(tmp_path / "a.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**15, 10**6)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(ValueError, match="truncated"):
        NpySource(tmp_path / "a.npy")


@pytest.mark.parametrize("dtype", ["O", "U3", "S3", "M8[s]", "m8[s]", "c16", [("a", "f8")]])
def test_npy_without_numbers(dtype: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 2), dtype), allow_pickle=True)
    with pytest.raises(ValueError, match=r"holds values of type .*real numbers are wanted"):
        NpySource(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((4,), r"1-d array .*reshape\(-1, 1\)"),
        ((), "0-d array .*reshape"),
        ((2, 3, 4), r"3-d array .*reshape\(len\(X\), -1\)"),
        ((4, 0), "has no columns .*at least one"),
        ((0, 4), "has no rows .*at least one"),
    ],
)
def test_npy_of_another_shape(shape: tuple[int, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        NpySource(save_npy(tmp_path, np.zeros(shape)))


class TestColumns:
    @pytest.fixture(params=[save_parquet, save_csv, save_dat_gz])
    def path(self, request: Any, tmp_path: Path) -> Path:
        return request.param(tmp_path, numbers(0))

    def test_unknown(self, path: Path) -> None:
        with pytest.raises(ValueError, match="no column 'y'; it has 'x0', 'x1', 'x2'"):
            open_file(path, columns=["x0", "y"])

    def test_one_string(self, path: Path) -> None:
        with pytest.raises(TypeError, match=r"one string; pass a list of names: \['x0'\]"):
            open_file(path, columns="x0")

    @pytest.mark.parametrize("columns", [[], ["x0", "x0"]])
    def test_none_or_twice(self, path: Path, columns: list[str]) -> None:
        with pytest.raises(ValueError, match="at least one column, and each once"):
            open_file(path, columns=columns)


def test_words_in_parquet(tmp_path: Path) -> None:
    path = write_table(tmp_path, {"x": [1.0, 2.0], "name": ["a", "b"]})
    with pytest.raises(
        ValueError, match=r"column 'name' .*type string, not numbers; pass columns="
    ):
        ParquetSource(path)
    assert ParquetSource(path, ["x"]).feature_names == ("x",)


def test_lists_beside_numbers(tmp_path: Path) -> None:
    path = write_table(tmp_path, {"id": [1, 2], "x": [[1.0], [2.0]]})
    with pytest.raises(ValueError, match=r"column 'x' .*lists .*columns=\['x'\]"):
        ParquetSource(path)


def test_lists_of_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"column 'x' .*not numbers"):
        ParquetSource(write_table(tmp_path, {"x": [["a"], ["b"]]}))


def test_lists_of_different_lengths(tmp_path: Path) -> None:
    path = write_table(tmp_path, {"x": [[1.0, 2.0], [3.0, 4.0], [5.0]]}, row_group_size=2)
    source = ParquetSource(path)
    with pytest.raises(ValueError, match=r"column 'x' .*a list of 1 numbers .*has 2.* in row 2"):
        source.read(0, 3)


@pytest.mark.parametrize("first", [[], None])
def test_empty_lists(first: Any, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    path = write_table(tmp_path, {"x": pa.array([first, [1.0]], pa.list_(pa.float64()))})
    with pytest.raises(ValueError, match=r"first list in column 'x' .*empty or missing"):
        ParquetSource(path)


def test_missing_number_in_parquet(tmp_path: Path) -> None:
    columns = {"x": [1.0, 2.0, 3.0, 4.0, 5.0], "y": [1, 2, 3, None, 5]}
    source = ParquetSource(write_table(tmp_path, columns, row_group_size=2))
    with pytest.raises(ValueError, match=r"column 'y' .*missing value in row 3 .*fill it"):
        source.read(0, 5)
    with pytest.raises(ValueError, match=r"column 'y' .*missing value in row 3 "):
        source.take(np.array([2]))
    np.testing.assert_array_equal(source.read(4, 5), [[5, 5]])


@pytest.mark.parametrize("size", [-1, 2])
def test_missing_number_in_a_list(size: int, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    lists = pa.array([[1.0, 2.0], [3.0, None], None], pa.list_(pa.float64(), size))
    words = r"column 'x' .*missing value in row 2|Expected all lists to be of size=2"  # Arrow < 25
    with pytest.raises(ValueError, match=words):
        ParquetSource(write_table(tmp_path, {"x": lists})).read(0, 3)
    with pytest.raises(ValueError, match=r"column 'x' .*missing value in its list in row 1"):
        ParquetSource(write_table(tmp_path, {"x": lists[:2]})).read(0, 2)


@pytest.mark.parametrize("keep", [3, 100, -1, -20])
def test_truncated_parquet(keep: int, tmp_path: Path) -> None:
    path = save_parquet(tmp_path, numbers(0))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"cannot be read as Parquet: .*damaged or incomplete"):
        ParquetSource(path)


def test_not_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        ParquetSource(write(tmp_path, "a.parquet", "x,y\n1,2\n" * 20))


def test_parquet_without_rows_or_columns(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="has no rows"):
        ParquetSource(write_table(tmp_path, {"x": pa.array([], pa.float64())}))
    with pytest.raises(ValueError, match="has no columns"):
        ParquetSource(write_table(tmp_path, {}))


def test_index_of_pandas(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=[7, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv")
    for name in ("a.parquet", "a.csv"):
        with pytest.raises(ValueError, match=r"as pandas writes for an index; .*index=False"):
            open_file(tmp_path / name)
        assert open_file(tmp_path / name, columns=["x"]).n_features == 1


def csv_error(path: Path, text: str, words: str, name: str = "a.csv") -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=words):
        CsvSource(write(path, name, text))


def test_words_in_csv(tmp_path: Path) -> None:
    csv_error(
        tmp_path,
        "x,name\n1,2\n3,it's\n",
        r"column 'name' .*holds \"it's\" in line 3, where a number is wanted; .*pass columns=",
    )
    source = CsvSource(tmp_path / "a.csv", ["x"])
    np.testing.assert_array_equal(source.read(0, 2), [[1], [3]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_of_text_are_told_at_once(tmp_path: Path, suffix: str) -> None:
    """With the columns of numbers, which can be pasted: not one column in each attempt."""
    pa = pytest.importorskip("pyarrow")
    columns = {"id": ["C1", "C2"], "age": [31, 54], "day": ["d", "e"], "spend": [1.5, 2.5]}
    file, table = tmp_path / f"rows{suffix}", pa.table(columns)
    if suffix == ".csv":
        from pyarrow.csv import write_csv as write_table
    else:
        from pyarrow.parquet import write_table
    write_table(table, file)
    with pytest.raises(ValueError, match=r"column 'id' .*of numbers: 'age', 'spend'"):
        open_file(file)
    assert open_file(file, columns=["age", "spend"]).n_features == 2


def test_documents_are_told_from_rows() -> None:
    with pytest.raises(ValueError, match=r"list of 2 texts.*TfidfVectorizer"):
        as_source(["the crew saw the moon", "judge and jury"])


def test_words_far_into_csv(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tables, "BLOCK", 50)
    csv_error(tmp_path, "x,y\n" + "1,2\n" * 100 + "3,oops\n", "column 'y' .*'oops' in line 102")


@pytest.mark.parametrize("gap", ["", "NA", "nan", "null"])
def test_missing_number_in_csv(gap: str, tmp_path: Path) -> None:
    csv_error(tmp_path, f"x,y\n1,2\n3,{gap}\n", "column 'y' .*missing value in row 1 ")


def test_ragged_csv(tmp_path: Path) -> None:
    csv_error(tmp_path, "x,y\n1,2\n3\n", "cannot be read as CSV: .*Row #3: Expected 2 columns")


def test_csv_without_rows(tmp_path: Path) -> None:
    csv_error(tmp_path, "x,y\n", "has no rows")
    csv_error(tmp_path, "\n\n", r"cannot be read as CSV: .*Empty CSV file")


def test_csv_with_two_columns_of_one_name(tmp_path: Path) -> None:
    csv_error(tmp_path, "x,x\n1,2\n", "2 columns named 'x'; rename them")


def test_csv_with_other_separators(tmp_path: Path) -> None:
    csv_error(tmp_path, "x;y\n1;2\n", "seems to be separated by ';': a .csv file needs commas")
    csv_error(tmp_path, "x\ty\n1\t2\n", r"separated by '\\t': .* a .tsv file tabs")


def test_csv_with_a_line_too_long(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tables, "BLOCK", 20)
    csv_error(tmp_path, "x,y\n" + "1" * 90 + ",2\n", "a line is longer than 20 bytes")


def test_csv_in_another_alphabet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="cannot be read as CSV: 'utf-8' codec"):
        CsvSource(write(tmp_path, "a.csv", "größe,y\n1,2\n".encode("latin1")))


def test_truncated_gzip(tmp_path: Path) -> None:
    path = save_csv_gz(tmp_path, numbers(0))
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(ValueError, match=r"cannot be read as CSV: .*damaged or incomplete"):
        CsvSource(path)


def test_csv_with_other_rows_in_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another machine, whose copies of a file have inodes of their own."""
    pytest.importorskip("pyarrow")
    path = write(tmp_path, "a.csv", "x\n1\n2\n3\n")
    source, before = CsvSource(path), path.stat()
    path.write_text("x\n1\n222\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    monkeypatch.setattr("platform.node", lambda: "another")
    with pytest.raises(ValueError, match="had 3 rows when it was opened and 2 rows now"):
        source.read(0, 3)


@pytest.mark.parametrize(
    "once", [lambda X: iter([X]), lambda X: (x for x in [X]), lambda X: map(len, [X])]
)
def test_batches_that_can_be_read_once(once: Any) -> None:
    with pytest.raises(TypeError, match=r"only once.*pass a list, or an object whose __iter__"):
        BatchSource(once(numbers(0)))


def test_batches_that_are_none() -> None:
    with pytest.raises(TypeError, match="batches is a int; pass a list"):
        BatchSource(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("batches", [[], [[]], [np.empty((0, 3))]])
def test_batches_without_rows(batches: Any) -> None:
    with pytest.raises(ValueError, match="the batches hold no rows"):
        BatchSource(batches)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (np.zeros((2, 4)), "number of columns: 4, not 3"),
        (np.zeros((2, 3), "f4"), "number type: float32, not float64"),
        (sp.csr_array((2, 3)), "kind: sparse, not dense"),
    ],
)
def test_batches_that_differ(second: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"batch 2 differs from the first in its {words}"):
        BatchSource([np.ones((5, 3)), np.empty((0, 3)), second])


def test_frames_with_other_columns() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    with pytest.raises(
        ValueError, match=r"batch 1 .* column names: \('b', 'a'\), not \('a', 'b'\)"
    ):
        BatchSource([frame, frame[["b", "a"]]])
    with pytest.raises(ValueError, match=r"column 'b' of batch 0 .*real numbers are wanted"):
        BatchSource([frame.assign(b="word")])
    with pytest.raises(ValueError, match="batch 0 has two columns of one name"):
        BatchSource([frame[["a", "a"]]])


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (np.zeros(3), r"batch 1 is a 1-d array .*reshape\(-1, 1\)"),
        (None, "batch 1 is a 0-d array"),
        (np.zeros((2, 0)), "batch 1 has no columns"),
        (np.array([["a"]]), "batch 1 holds values of type <U1, which is not numeric; real numbers"),
        (np.zeros((2, 3), complex), "batch 1 holds values of type complex128"),
        (sp.csc_array((2, 3)), r"batch 1 is sparse in format csc; pass batch\.tocsr"),
    ],
)
def test_batches_of_other_things(batch: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BatchSource([np.ones((5, 3)), batch])


def test_masked_batches() -> None:
    with pytest.raises(TypeError, match=r"batch 0 is a masked array.*fill"):
        BatchSource([np.ma.masked_array(np.zeros((2, 3)), mask=True)])


def test_damaged_sparse_batches() -> None:
    batch = sp.csr_array(np.eye(3))
    batch.indices[1] = 99
    with pytest.raises(ValueError, match="batch 0 is a corrupt sparse CSR"):
        BatchSource([batch])


@pytest.mark.parametrize(("second", "words"), [(4, "4 rows"), (6, "more than 5 rows")])
def test_batches_of_another_length_next_time(second: int, words: str) -> None:
    lengths = iter([5, second])
    source = BatchSource(Anew(lambda: [np.ones((next(lengths), 2))]))
    with pytest.raises(ValueError, match=f"gave 5 rows when they were counted and {words} now"):
        source.read(0, 5)


def test_batches_of_another_width_next_time() -> None:
    widths = iter([2, 3])
    source = BatchSource(Anew(lambda: [np.ones((5, next(widths)))]))
    with pytest.raises(ValueError, match="batch 0 differs from the first in its number of columns"):
        source.take(np.array([1]))


@pytest.mark.parametrize("where", ["name", "cell"])
def test_long_names_and_cells_do_not_fill_the_message(where: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    name, cell = ("x" * 5000, "word") if where == "name" else ("x", "\0" * 5000)
    path = tmp_path / "a.csv"
    path.write_text(f"{name}\n1\n{cell}\n")
    with pytest.raises(ValueError, match=r"a\.csv.* where a number is wanted") as caught:
        CsvSource(path)
    assert len(str(caught.value)) < 1000 + len(str(path))
