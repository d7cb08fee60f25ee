"""Text files of one row per line: LIBSVM's sparse rows, and numbers separated by white space."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from mercer import KernelKMeans, SpectralClustering, as_source
from mercer.datasets import blobs
from mercer.rows import lines
from mercer.rows.source import Source, spans
from source_kinds import disguise


def sparse_rows(seed: int = 0, n_rows: int = 57, n_features: int = 9) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    X = rng.normal(scale=50, size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.3)
    X = X.round(3)  # scikit-learn writes 16 digits
    X[4] = 0.0  # a row of zeros
    X[0, 0] = X[1, -1] = 7.0  # so that the first and the last column are seen
    return sp.csr_array(X)


def save_libsvm(folder: Path, X: Any, name: str = "rows.libsvm", **options: Any) -> Path:
    path = folder / name
    dump_svmlight_file(X, np.arange(X.shape[0]) % 3, str(path), zero_based=False, **options)
    if name.endswith(".gz"):
        data = path.read_bytes()
        path.write_bytes(gzip.compress(data))
    return path


@pytest.mark.parametrize("name", ["rows.libsvm", "rows.svm", "rows.svmlight.gz"])
def test_libsvm_equals_its_matrix(name: str, tmp_path: Path) -> None:
    X = sparse_rows()
    source = as_source(save_libsvm(tmp_path, X, name))
    assert isinstance(source, Source)
    assert (source.n_rows, source.n_features, source.in_memory) == (57, 9, False)
    assert source.dtype == np.float64
    rows: Any = source.read(0, 57)
    assert sp.issparse(rows)
    np.testing.assert_array_equal(rows.toarray(), X.toarray())
    assert source.read(5, 5).shape == (0, 9)


@pytest.mark.parametrize("block", [1, 40, 500, 2**20])
@pytest.mark.parametrize("seed", range(3))
def test_any_cut_of_libsvm_gives_the_same_rows(
    block: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BLOCK", block)
    X = sparse_rows(seed)
    source: Any = as_source(save_libsvm(tmp_path, X))
    for block_rows in (1, 13, 57):
        tiles = [source.read(*span) for span in spans(57, block_rows)]
        np.testing.assert_array_equal(sp.vstack(tiles).toarray(), X.toarray())
    ids = np.sort(np.random.default_rng(seed).choice(57, 20, replace=False))
    np.testing.assert_array_equal(source.take(ids).toarray(), X.toarray()[ids])
    twin = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(twin.read(8, 40).toarray(), X.toarray()[8:40])


def test_indices_from_zero_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 0:5 2:1 # from zero\n\n-1 1:2\n")
    np.testing.assert_array_equal(as_source(path).read(0, 2).toarray(), [[5, 0, 1], [0, 2, 0]])
    path.write_text("1 1:5 3:1\n+1 qid:7 2:2")
    np.testing.assert_array_equal(as_source(path).read(0, 2).toarray(), [[5, 0, 1], [0, 2, 0]])


@pytest.mark.parametrize("make", [KernelKMeans, SpectralClustering])
def test_fits_of_libsvm_are_those_of_the_matrix(make: Any, tmp_path: Path) -> None:
    X, _ = blobs(300, n_clusters=3, n_features=6, random_state=0)
    X = sp.csr_array(np.where(X > 0, X, 0.0).round(3))
    path = save_libsvm(tmp_path, X)
    model = make(3, random_state=0).fit(path)
    np.testing.assert_array_equal(model.predict(path), make(3, random_state=0).fit(X).labels_)


@pytest.mark.parametrize("in_place", [True, False])
def test_a_changed_libsvm_file_is_noticed(in_place: bool, tmp_path: Path) -> None:
    path = save_libsvm(tmp_path, sparse_rows())
    source = as_source(path)
    disguise(path, in_place=in_place)
    with pytest.raises(ValueError, match=r"changed: .* open it again"):
        source.read(0, 10)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 1:2\n1 2:x\n", r"line 2 of .*'1 2:x', which is not LIBSVM's .*correct it"),
        ("1 1:2\n\n1 3:1 2:5\n", r"line 3 of .*ascending indices"),
        ("1,2,3\n", r"line 1 of .*not LIBSVM's"),
        ("1\n2\n", "has no values, only labels"),
        ("# nothing\n", "has no rows"),
    ],
)
def test_flaws_of_libsvm_are_named(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "rows.libsvm").write_text(text)
    with pytest.raises(ValueError, match=words):
        as_source(tmp_path / "rows.libsvm")


def test_libsvm_has_no_named_columns(tmp_path: Path) -> None:
    path = save_libsvm(tmp_path, sparse_rows())
    with pytest.raises(ValueError, match="has no named columns"):
        as_source(path, columns=["a"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 2\n3 4 5\n", "line 2 of .* has 3 values, and the first has 2; correct it"),
        ("a b\n1 2\n\n3 oops\n", "column 'b' of .*'oops' in line 4, where a number is wanted"),
        ("1,2\n3,4\n", r"seems to be separated by ',' .*suffix \.csv"),
        ("a b\n", "has no rows"),
        ("# only this\n", "has no rows"),
        ("a a\n1 2\n", "2 columns named 'a'"),
    ],
)
def test_flaws_of_text_are_named(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text(text)
    with pytest.raises(ValueError, match=words):
        as_source(tmp_path / "rows.txt")


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_what_numpy_writes_is_read(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BLOCK", block)
    X = np.random.default_rng(0).normal(size=(30, 4))
    np.savetxt(tmp_path / "rows.txt", X, header="made by numpy\nin two lines")
    source = as_source(tmp_path / "rows.txt")
    np.testing.assert_array_equal(source.read(0, 30), X)
    np.savetxt(tmp_path / "one.txt", X[:, 0])
    assert as_source(tmp_path / "one.txt").read(3, 5).shape == (2, 1)


def test_windows_line_ends_and_no_last_line_end(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_bytes(b"x y\r\n1 2\r\n3\t4")
    np.testing.assert_array_equal(as_source(tmp_path / "rows.txt").read(0, 2), [[1, 2], [3, 4]])


@pytest.mark.parametrize("name", ["rows.txt.gz", "rows.libsvm.gz"])
@pytest.mark.parametrize(
    "damage",
    [b"no gzip at all", gzip.compress(b"1 1:2\n" * 99, mtime=0)[:-12]],
    ids=["another format", "truncated"],
)
def test_damaged_gzip_is_an_error_that_says_so(name: str, damage: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(damage)
    with pytest.raises(ValueError, match="damaged"):
        as_source(tmp_path / name)
