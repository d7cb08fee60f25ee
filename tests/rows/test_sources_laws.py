"""Folders, zarr and Dask: each equals the array it came from, for any cut, and fits like it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from marking import slow_beyond
from mercer import KernelKMeans, KernelPCA, KernelSpectralClustering, SpectralClustering, as_source
from mercer.datasets import blobs
from mercer.io.labels import read_labels
from mercer.rows.arrays import working_dtype
from mercer.rows.distinct import EXACT_ROWS
from mercer.rows.folders import _natural
from mercer.rows.source import TILE, Source, spans
from source_kinds import KINDS, NAMED, folder, zarr_array

SEEDS = range(5)
SLOW_KINDS = {"zarr in S3"}  # tests/rows/test_urls.py has a few, quick ones


def numbers(n_rows: int = 57, dtype: Any = "f8", n_features: int = 3) -> np.ndarray:
    X = np.random.default_rng(0).normal(scale=50, size=(n_rows, n_features)).astype(dtype)
    X.flags.writeable = False
    return X


@pytest.fixture(params=slow_beyond(KINDS, set(KINDS) - SLOW_KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_equals_its_array(kind: str, tmp_path: Path) -> None:
    X = numbers()
    source = as_source(KINDS[kind](tmp_path, X))
    assert isinstance(source, Source)
    assert (source.n_rows, source.n_features) == X.shape
    assert not source.in_memory
    names = NAMED.get(kind)
    expected = None if names is None else tuple(names.format(j) for j in range(3))
    assert source.feature_names == expected
    np.testing.assert_array_equal(source.read(0, len(X)), X)
    assert source.read(5, 5).shape == (0, 3)
    assert source.take(np.empty(0, np.intp)).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
def test_types_of_numbers(kind: str, dtype: str, tmp_path: Path) -> None:
    if kind == "dask unknown" and dtype in ("i4", "u1"):
        pytest.skip("its gaps are marked by NaN, which integers do not have")
    X = numbers(dtype=dtype)
    source = as_source(KINDS[kind](tmp_path, X))
    assert source.dtype == source.read(3, 9).dtype == working_dtype(dtype)
    np.testing.assert_array_equal(source.read(3, 50), X[3:50])


@pytest.mark.parametrize("block_rows", [1, 13, 57])
def test_any_cut_gives_the_same_rows(kind: str, block_rows: int, tmp_path: Path) -> None:
    X = numbers()
    source = as_source(KINDS[kind](tmp_path, X))
    pieces = [source.read(*span) for span in spans(len(X), block_rows)]
    np.testing.assert_array_equal(np.concatenate(pieces), X)
    for start, stop in ((40, 50), (3, 30), (56, 57), (0, 1)):  # and jumping about
        np.testing.assert_array_equal(source.read(start, stop), X[start:stop])


@pytest.mark.parametrize("seed", SEEDS)
def test_take_is_fancy_indexing(kind: str, seed: int, tmp_path: Path) -> None:
    X, rng = numbers(), np.random.default_rng(seed)
    source = as_source(KINDS[kind](tmp_path, X))
    ids = np.sort(rng.choice(len(X), rng.integers(1, len(X) + 1), replace=False))
    np.testing.assert_array_equal(source.take(ids), X[ids])


def test_pickle_is_identity_even_in_the_middle(kind: str, tmp_path: Path) -> None:
    X = numbers()
    source = as_source(KINDS[kind](tmp_path, X))
    source.read(0, 11)
    copy = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(copy.read(8, 40), X[8:40])
    np.testing.assert_array_equal(source.read(11, 57), X[11:])
    assert copy.feature_names == source.feature_names


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_predict_writes_labels_of_every_kind(kind: str, tmp_path: Path) -> None:
    X, _ = blobs(60, random_state=0)
    X = np.column_stack([X, X[:, 0]])
    model = KernelKMeans(3, random_state=0).fit(X)
    given = KINDS[kind](tmp_path, X)
    labels = model.predict(given)
    np.testing.assert_array_equal(labels, model.labels_)
    for name in ("a.npy", "a.parquet", "a.csv", "a.zarr"):
        out = model.predict(given, out=tmp_path / name)
        np.testing.assert_array_equal(read_labels(out), labels)


def test_labels_are_absent_and_the_error_names_predict(kind: str, tmp_path: Path) -> None:
    X, _ = blobs(60, random_state=0)
    X = np.column_stack([X, X[:, 0]])
    given = KINDS[kind](tmp_path, X)
    model = KernelKMeans(3, random_state=0).fit(given)
    with pytest.raises(AttributeError, match=r"predict\(X, out="):
        _ = model.labels_
    in_memory = KernelKMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(given), in_memory.labels_)


ESTIMATORS = {
    "kernel k-means": KernelKMeans(3, rank=20, random_state=0),
    "spectral": SpectralClustering(3, rank=60, random_state=0),
    "spectral cholesky": SpectralClustering(3, approximation="cholesky", gamma=0.1, random_state=0),
    "ksc": KernelSpectralClustering(3, rank=20, random_state=0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("rows_each", [501, 20_000])
def test_fits_are_bit_equal_for_any_cut(name: str, rows_each: int, tmp_path: Path) -> None:
    da = pytest.importorskip("dask.array")
    X, _ = blobs(2 * TILE + 100, random_state=0)
    X = X.astype(np.float32)
    expected = clone(ESTIMATORS[name]).fit(X).labels_
    given = [
        folder(tmp_path, X, rows_each=rows_each, n_files=2),
        zarr_array(tmp_path, X, chunks=(rows_each, 1)),
        da.from_array(X, chunks=(rows_each, 2)),
    ]
    for X_given in given:
        model = clone(ESTIMATORS[name]).fit(X_given)
        np.testing.assert_array_equal(model.predict(X_given), expected)


def test_fits_on_samples_are_bit_equal(tmp_path: Path) -> None:
    da = pytest.importorskip("dask.array")
    X, _ = blobs(EXACT_ROWS + 20_000, random_state=0)
    X = X.astype(np.float32)
    model = KernelKMeans(3, rank=10, max_iter=2, random_state=0)
    expected = clone(model).fit(X)
    given = [
        folder(tmp_path, X, rows_each=7000, n_files=2),
        zarr_array(tmp_path, X, chunks=(30_000, 2)),
        da.from_array(X, chunks=(50_000, 2)),
    ]
    for X_given in given:
        fitted = clone(model).fit(X_given)
        np.testing.assert_array_equal(fitted.cluster_centers_, expected.cluster_centers_)
        np.testing.assert_array_equal(fitted.predict(X_given), expected.labels_)


@pytest.mark.parametrize("kind", ["folder", "zarr", "dask frame"])
def test_transforms_are_bit_equal(kind: str, tmp_path: Path) -> None:
    X = numbers()
    expected = KernelPCA(2, random_state=0).fit_transform(X)
    given = KINDS[kind](tmp_path, X)
    scores = KernelPCA(2, random_state=0).fit(given).transform(given)
    np.testing.assert_array_equal(scores, expected)


def test_reading_on_decodes_each_block_once(kind: str, tmp_path: Path, monkeypatch: Any) -> None:
    source: Any = as_source(KINDS[kind](tmp_path, numbers()))
    blocks, starts = type(source).blocks, []

    def counted(self: Any, start: int) -> Any:
        starts.append(start)
        return blocks(self, start)

    monkeypatch.setattr(type(source), "blocks", counted)
    for span in spans(57, 5):
        source.read(*span)
    assert starts == [0]


def test_take_touches_only_what_it_needs(tmp_path: Path) -> None:
    path = zarr_array(tmp_path, numbers(TILE * 4), chunks=(TILE, 3))
    source = as_source(path)
    (path / "c" / "2" / "0").write_bytes(b"damaged")
    ids = np.array([5, TILE + 1, 3 * TILE + 2])
    np.testing.assert_array_equal(source.take(ids), numbers(TILE * 4)[ids])
    with pytest.raises(ValueError, match="the chunks of the rows 16384 to 24576 were written"):
        source.take(np.array([2 * TILE + 3]))


def test_a_partition_is_computed_once_in_a_pass() -> None:
    da = pytest.importorskip("dask.array")
    calls: list[int] = []

    def seen(block: np.ndarray) -> np.ndarray:
        calls.append(len(block))
        return block

    X = numbers(100)
    array = da.from_array(X, chunks=(25, 3)).map_blocks(seen, meta=np.empty((0, 0)))
    source = as_source(array)
    assert calls == []  # known lengths: nothing is computed on opening
    for span in spans(100, 7):
        source.read(*span)
    assert calls == [25] * 4


def test_equal_collections_of_dask_have_one_identity() -> None:
    da = pytest.importorskip("dask.array")
    one, same, other = (
        as_source(da.from_array(X, chunks=(10, 3)) + 1).identity  # type: ignore[attr-defined]
        for X in (numbers(), numbers(), numbers() + 1)
    )
    assert one == same != other


@pytest.mark.slow
def test_processes_read_for_themselves(tmp_path: Path) -> None:
    da = pytest.importorskip("dask.array")
    X, _ = blobs(2 * TILE + 100, random_state=0)
    model = KernelKMeans(3, rank=20, random_state=0)
    expected = clone(model).fit(X).labels_
    lazy = da.from_array(X, chunks=(5000, 2)).map_blocks(lambda block: block + 0.0)
    with mercer.on(mercer.Processes(2)):
        for given in (folder(tmp_path, X), zarr_array(tmp_path, X, chunks=(3000, 2)), lazy):
            fitted = clone(model).fit(given)
            np.testing.assert_array_equal(fitted.predict(given), expected)


def test_columns_of_a_folder(tmp_path: Path) -> None:
    path = folder(tmp_path, numbers())
    source = as_source(path, columns=["x2", "x0"])
    assert source.feature_names == ("x2", "x0")
    np.testing.assert_array_equal(source.read(0, 57), numbers()[:, [2, 0]])


def test_natural_order() -> None:
    names = ["part-10.parquet", "part-9.parquet", "part-9b.parquet", "a.parquet", "part-1.parquet"]
    expected = ["a.parquet", "part-1.parquet", "part-9.parquet", "part-9b.parquet"]
    assert sorted(names, key=_natural) == [*expected, "part-10.parquet"]


def test_names_of_one_number_have_an_order_too(tmp_path: Path) -> None:
    from mercer.rows.folders import parquet_files

    names = ["part-01.parquet", "part-1.parquet", "part-1\u00b23.parquet", "part-2.parquet"]
    for name in reversed(names):
        (tmp_path / name).touch()
    assert [path.name for path in parquet_files(tmp_path)] == names
