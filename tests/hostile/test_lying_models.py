"""A sealed file that lies loads within its memory and a few seconds, or is one clear error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from counting import count
from fuzzing import MB, Reader
from lying import ANYWHERE, LIES, lying, opened, sealed, sound_file, sound_names
from marking import slow_beyond
from mercer import RBF, KernelKMeans, ModelFileError, load
from mercer.factors.binning import MOST_RUN, longest_run
from mercer.io.allowance import MOST_DEPTH, MOST_OBJECTS
from mercer.kernels.algebra import Sum
from mercer.kernels.base import column_index, sparse_columns

MEMORY = 50 * MB + 50 * MB  # what the reader allows, and a constant
SECONDS = 5.0  # of the processor

FEW = (  # one for each structure that a lie can be about
    "kernel-kmeans-binning.mercer",
    "pipeline.mercer",
    "spectral-neighbors.mercer",
    "streaming-means.mercer",
    "sparse-rbf.mercer",
    "sparse-range.mercer",
)


@pytest.fixture(scope="module")
def reader(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reader]:
    """It loads a sound file of each kind first, so that what it compiles counts for nobody."""
    folder, sound = tmp_path_factory.mktemp("sound"), []
    for name in sound_names():
        if name in FEW or request.config.getoption("markexpr") != "not slow":
            (folder / name).write_bytes(sound_file(name))
            sound.append(("loaded", str(folder / name)))
    reader = Reader(sound)
    yield reader
    reader.close()


def check(name: str, lie: str, reader: Reader, path: Path) -> None:
    data = lying(name, lie)
    if data is None:
        return
    path.write_bytes(data)
    outcome = reader.read("loaded", str(path))
    told = f"{name}, {lie}: {outcome}"
    assert outcome.memory <= MEMORY, told
    assert outcome.seconds <= SECONDS, told
    if outcome.error:
        assert {"ModelFileError", "BudgetError"} & set(outcome.error), told
        assert path.name in outcome.words
    count("model files that lie", lie)


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")
@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_takes_what_it_may(lie: str, reader: Reader, tmp_path: Path) -> None:
    for name in FEW[:1] if lie in ANYWHERE else FEW:
        check(name, lie, reader, tmp_path / "a.mercer")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")
@pytest.mark.parametrize("lie", LIES)
def test_every_file_that_lies_takes_what_it_may(lie: str, reader: Reader, tmp_path: Path) -> None:
    for name in sound_names():
        check(name, lie, reader, tmp_path / "a.mercer")


def test_columns_that_are_declared_take_no_memory(tmp_path: Path) -> None:
    """A model of hashed text may have 2³⁰ columns, and sees rows as it would with fewer."""
    X = sp.csr_array(np.where(np.random.default_rng(0).random((90, 30)) < 0.3, 1.0, 0.0))
    wide = sp.csr_array((X.data, X.indices, X.indptr), shape=(90, 2**30))
    model = KernelKMeans(3, kernel=RBF(0.1), rank=12, random_state=0).fit(X)
    model.save(tmp_path / "a.mercer")
    manifest, arrays = opened((tmp_path / "a.mercer").read_bytes())
    manifest["fitted"]["n_features_in_"] = 2**30
    manifest["fitted"]["factor_"]["fields"]["pivots"]["csr"][1] = 2**30
    (tmp_path / "b.mercer").write_bytes(sealed(manifest, arrays))
    loaded = load(tmp_path / "b.mercer", max_memory="10MB")
    assert loaded.factor_.rows(wide).tobytes() == model.factor_.rows(X).tobytes()


@pytest.mark.parametrize(
    "columns",
    [
        slice(1, None, 3),
        slice(None, None, -1),
        slice(7, 2, -2),
        slice(3, 3),
        range(2, 9, 3),
        range(9, 1, -2),
        range(4, -1, -1),
        range(-3, 0),
        range(-2, 2),
        [5, 0, 5, 2],
        [-1, 3],
        [False, True] * 5,
    ],
    ids=str,
)
def test_sparse_columns_are_those_of_the_dense_rows(columns: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((20, 10)) < 0.4, rng.random((20, 10)), 0.0)
    index = column_index(columns, 10)
    selected = sparse_columns(sp.csr_array(X), index)
    wanted = X[:, list(columns) if isinstance(columns, range) else columns]
    np.testing.assert_array_equal(selected.toarray(), wanted)
    np.testing.assert_array_equal(X[:, index], wanted)


def test_the_longest_run_is_that_of_the_table() -> None:
    """Against the table itself, filled key by key."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, spread = int(rng.integers(1, 60)), int(rng.integers(1, 200))
        keys = np.unique(rng.integers(0, spread, n).astype(np.uint64) + np.uint64(spread // 2))
        size = 1 << max(2 * len(keys) - 1, 1).bit_length()
        taken = np.zeros(size, bool)
        for key in keys:
            place = int(key) % size
            while taken[place]:
                place = (place + 1) % size
            taken[place] = True
        begin = int(np.flatnonzero(~taken)[0])
        runs = "".join("x" if slot else " " for slot in np.roll(taken, -begin)).split()
        assert longest_run(keys) == max(map(len, runs))


def test_honest_hashes_make_short_runs() -> None:
    keys = np.random.default_rng(0).integers(0, 2**63, 2**19).astype(np.uint64)
    assert longest_run(keys) < MOST_RUN / 4


def test_what_cannot_be_loaded_is_not_saved(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model, deep = KernelKMeans(2, rank=5, random_state=0).fit(X), RBF(0.5)
    for _ in range(MOST_DEPTH):
        deep = 1.0 * deep
    for kernel in (deep, Sum([RBF(0.5)] * MOST_OBJECTS)):
        model.kernel = kernel
        with pytest.raises(ValueError, match="simpler kernel"):
            model.save(tmp_path / "a.mercer")
    assert list(tmp_path.iterdir()) == []


def test_fortran_order_is_turned(tmp_path: Path) -> None:
    """Loops are compiled for C order: an array in Fortran order would compile them again."""
    manifest, arrays = opened(sound_file("spectral.mercer"))
    turned = {name: np.asfortranarray(array) for name, array in arrays.items()}
    (tmp_path / "a.mercer").write_bytes(sealed(manifest, turned))
    (tmp_path / "b.mercer").write_bytes(sealed(manifest, arrays))
    one, two = load(tmp_path / "a.mercer"), load(tmp_path / "b.mercer")
    assert one.factor_.search.landmarks.flags.c_contiguous
    assert one.vectors_.flags.c_contiguous
    X = np.random.default_rng(0).normal(size=(50, one.n_features_in_))
    assert one.predict(X).tobytes() == two.predict(X).tobytes()


@pytest.mark.parametrize("shape", slow_beyond([(4, 1), (4, 2), (1, 4), (4,)], quick=[(4, 1), (4,)]))
def test_feature_names_are_one_row_of_text(shape: tuple[int, ...], tmp_path: Path) -> None:
    manifest, arrays = opened(sound_file("kernel-kmeans.mercer"))
    d = manifest["fitted"]["n_features_in_"]
    arrays["names"] = np.ones([d if n == 4 else n for n in shape])
    manifest["fitted"]["feature_names_in_"] = {"array": "names"}
    (tmp_path / "a.mercer").write_bytes(sealed(manifest, arrays))
    with pytest.raises(ModelFileError, match="feature_names_in_"):
        load(tmp_path / "a.mercer")
