"""Files of labels: what is read is what was written, and a file is whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer import KernelKMeans
from mercer._run.atomic import check_writable, replacing
from mercer.datasets import ring_and_core
from mercer.io import labels as label_files
from mercer.io import read_labels, write_labels
from mercer.rows.source import TILE

SUFFIXES = [".npy", ".csv", ".parquet"]


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == ".parquet":
        pytest.importorskip("pyarrow")
    return tmp_path / f"labels{request.param}"


def cut(labels: np.ndarray, *cuts: int) -> Iterator[tuple[int, np.ndarray]]:
    """The labels in pieces: (first row, labels)."""
    starts = [0, *sorted(cuts)]
    yield from zip(starts, np.split(labels, starts[1:]), strict=True)


# Laws


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    labels=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
)
def test_any_labels_in_any_pieces_come_back(path: Path, labels: list[int], cuts: list[int]) -> None:
    written = np.array(labels, np.int64)
    pieces = cut(written, *(min(c, len(labels)) for c in cuts))
    assert write_labels(path, pieces, len(labels)) == path
    read = read_labels(path)
    assert read.dtype == np.intp
    assert read.tolist() == labels


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", ">i8", "i8"])
def test_integers_of_any_type_come_back(path: Path, dtype: str) -> None:
    labels = np.arange(100).astype(dtype)
    write_labels(path, cut(labels, 30), 100)
    assert read_labels(path).tolist() == list(range(100))


def test_more_rows_than_a_row_group_come_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_files, "GROUP_ROWS", 250)
    labels = np.random.default_rng(0).integers(0, 8, 1001)
    write_labels(path, cut(labels, *range(100, 1001, 100)), 1001)
    assert read_labels(path).tolist() == labels.tolist()


def test_all_formats_hold_the_same_bytes_whatever_the_pieces(path: Path) -> None:
    labels = np.arange(500) % 7
    write_labels(path, cut(labels), 500)
    whole = path.read_bytes()
    write_labels(path, cut(labels, 1, 20, 20, 499), 500)
    assert path.read_bytes() == whole


def test_predict_writes_what_it_returns(path: Path) -> None:
    X, _ = ring_and_core(TILE + 100, random_state=0)
    model = KernelKMeans(2, rank=20, random_state=0).fit(X[:500])
    assert model.predict(X, out=path) == path
    assert read_labels(path).tolist() == model.predict(X).tolist()


def test_other_programs_can_read_them(tmp_path: Path) -> None:
    labels = np.array([2, 0, 1])
    assert np.load(write_labels(tmp_path / "a.npy", cut(labels, 1), 3)).tolist() == [2, 0, 1]
    assert write_labels(tmp_path / "a.csv", cut(labels, 1), 3).read_text() == "label\n2\n0\n1\n"
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(write_labels(tmp_path / "a.parquet", cut(labels, 1), 3))
    assert table.to_pydict() == {"label": [2, 0, 1]}


def test_capital_suffixes_and_text_paths_are_understood(tmp_path: Path) -> None:
    write_labels(str(tmp_path / "A.NPY"), cut(np.arange(3)), 3)
    assert read_labels(str(tmp_path / "A.NPY")).tolist() == [0, 1, 2]


# Refusals


def untouched() -> Iterator[Any]:
    """Tiles that nobody may ask for."""
    pytest.fail("a tile was computed for nothing")
    yield


@pytest.mark.parametrize("name", ["labels", "labels.txt", "labels.npz", ".npy"])
def test_unknown_suffixes_are_refused_before_the_work(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.npy, \.parquet, \.csv"):
        write_labels(tmp_path / name, untouched(), 3)
    with pytest.raises(ValueError, match=r"\.npy, \.parquet, \.csv"):
        read_labels(tmp_path / name)


def test_bad_places_are_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(IsADirectoryError, match="directory"):
        write_labels(tmp_path / "folder.npy", untouched(), 3)
    with pytest.raises(FileNotFoundError, match="no folder"):
        write_labels(tmp_path / "none" / "a.npy", untouched(), 3)


WRONG: dict[str, list[tuple[int, Any]]] = {
    "too few": [(0, np.arange(5))],
    "none": [],
    "too many": [(0, np.arange(5)), (5, np.arange(6))],
    "a gap": [(0, np.arange(4)), (5, np.arange(5))],
    "twice": [(0, np.arange(5)), (0, np.arange(5))],
    "backwards": [(5, np.arange(5)), (0, np.arange(5))],
    "floats": [(0, np.arange(10.0))],
    "a matrix": [(0, np.arange(10)[:, None])],
}


@pytest.mark.parametrize("tiles", WRONG.values(), ids=WRONG.keys())
def test_labels_that_are_not_one_per_row_leave_nothing_behind(path: Path, tiles: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="label"):
        write_labels(path, tiles, 10)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError])
def test_an_interrupted_write_leaves_the_old_file(path: Path, error: type[BaseException]) -> None:
    def tiles() -> Iterator[Any]:
        yield 0, np.arange(5)
        raise error

    write_labels(path, cut(np.arange(3)), 3)
    before = path.read_bytes()
    with pytest.raises(error):
        write_labels(path, tiles(), 10)
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == before


def test_every_cut_of_a_file_is_noticed_but_between_lines(path: Path) -> None:
    write_labels(path, cut(np.arange(1000, 1100)), 100)
    data = path.read_bytes()
    for length in range(0, len(data), 1 if path.suffix == ".npy" else 13):
        if path.suffix == ".csv" and length > 5:
            break  # text has no end mark: a cut in it is a shorter file
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"labels|empty"):
            read_labels(path)


def test_a_flipped_bit_in_parquet_is_noticed(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    labels = np.random.default_rng(0).integers(0, 10**15, 500)
    path = write_labels(tmp_path / "a.parquet", cut(labels), 500)
    data, rng = path.read_bytes(), np.random.default_rng(0)
    for bit in rng.integers(0, 8 * len(data), 100):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            read = read_labels(path)
        except ValueError:
            continue
        assert read.tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"cluster\n1\n"),
        ("a.csv", b"label,other\n1,2\n"),
        ("a.csv", b"label\n1,2\n"),
        ("a.csv", b"label\n1.5\n"),
        ("a.csv", b"label\n1\n\n2\n"),
        ("a.csv", b"label\n99999999999999999999\n"),
        ("a.csv", b"label\n\xff\n"),
        ("a.npy", b"not npy"),
        ("a.npy", b"\x93NUMPY\x09\x00junk"),
        ("a.parquet", b"PAR1 not parquet"),
    ],
)
def test_files_that_hold_no_labels_are_refused(name: str, content: bytes, tmp_path: Path) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="does not hold labels"):
        read_labels(tmp_path / name)


@pytest.mark.parametrize(
    "array",
    [np.zeros(3), np.zeros((3, 1), int), np.array(3), np.array([None, 1])],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_other_arrays_are_refused(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(ValueError, match="does not hold labels"):
        read_labels(tmp_path / "a.npy")


def test_other_tables_are_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for columns in ({"x": [1]}, {"label": [1.5]}, {"label": [1, None]}, {"label": [1], "y": [2]}):
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        with pytest.raises(ValueError, match="does not hold labels"):
            read_labels(tmp_path / "a.parquet")


def test_a_size_declared_by_a_header_is_not_believed(tmp_path: Path) -> None:
    path = write_labels(tmp_path / "a.npy", cut(np.arange(3)), 3)
    honest = path.read_bytes()
    for shape in (b"(9999999999999,), }", b"(-1,), }           ", b"((((((((((((((((((("):
        path.write_bytes(honest.replace(b"(3,), }            ", shape))
        assert len(honest) == path.stat().st_size
        with pytest.raises(ValueError, match="does not hold labels"):
            read_labels(path)


def test_missing_files_are_missing(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        read_labels(path)


# Replacing a file as a whole


def test_nothing_is_seen_before_the_end(tmp_path: Path) -> None:
    target = tmp_path / "a"
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
        assert temporary.parent == tmp_path
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as first, replacing(tmp_path / "a") as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "a").read_text() == "first"


def test_long_and_odd_names_are_no_trouble(tmp_path: Path) -> None:
    for name in ("ü" * 120, "a" * 255, "with space", "-", ".hidden"):
        with replacing(tmp_path / name) as temporary:
            temporary.write_text(name)
        assert (tmp_path / name).read_text() == name


def test_a_path_without_folder_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_writable("a.npy") == Path(os.path.realpath(tmp_path)) / "a.npy"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(ValueError, match="pipe"):
        write_labels(tmp_path / "pipe.npy", untouched(), 3)


@pytest.mark.parametrize("name", ["ArrowNotImplementedError", "ArrowKeyError", "ArrowTypeError"])
def test_every_error_of_arrow_says_that_the_file_cannot_be_read(name, tmp_path, monkeypatch):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = write_labels(tmp_path / "labels.parquet", [(0, np.array([0, 1]))], 2)

    def fail(*args, **options):
        raise getattr(pa, name)("Integers with more than 64 bits not implemented")

    monkeypatch.setattr(pq, "ParquetFile", fail)
    with pytest.raises(ValueError, match="more than 64 bits"):
        read_labels(path)
