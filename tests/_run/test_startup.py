"""The first call in a new environment: how much is compiled, and that less of it changes no bit."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from benchmarks.startup import run_child
from mercer._run.jit import jit
from mercer._run.lazy import FEW_VALUES
from mercer.factors import search
from mercer.linalg import _jit as linalg_loops
from mercer.linalg.lloyd import nearest_center, nearest_two_centers
from mercer.rows import _jit as row_loops
from mercer.rows import distinct, summary
from mercer.rows.format import RowFormat

# (functions of ours, functions of numba's own) that a first call may compile. A function costs .05
# to .5 s; one of numba's that sorts, broadcasts or formats an error brings dozens with it.
MOST = {
    "spectral": (6, 2),
    "kmeans": (6, 4),
    "ksc": (7, 4),
    "stream": (8, 6),
    "segment": (7, 6),
}


@pytest.mark.parametrize(
    "name", [n if n == "spectral" else pytest.param(n, marks=pytest.mark.slow) for n in MOST]
)
def test_a_first_call_compiles_few_functions(name: str, tmp_path: Path) -> None:
    compiled = run_child(name, str(tmp_path))["compiled"]
    ours = {c["function"] for c in compiled if c["function"].startswith("mercer.")}
    theirs = [c["function"] for c in compiled if not c["function"].startswith("mercer.")]
    most_ours, most_theirs = MOST[name]
    assert len(ours) <= most_ours, sorted(ours)
    assert len(theirs) <= most_theirs, sorted(theirs)
    again = run_child(name, str(tmp_path))["compiled"]
    assert not again, "compiled again, although it was kept"


def test_compiling_leaves_the_garbage_collector_as_it_was() -> None:
    @jit
    def twice(x: float) -> float:
        return x + x

    assert gc.isenabled()
    assert twice(1.5) == 3.0
    assert gc.isenabled()
    gc.disable()
    try:
        assert twice(2) == 4
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (300, 2), (5, 40)])
def test_few_rows_have_the_bits_of_many(dtype: type, shape: tuple[int, int]) -> None:
    """Numpy serves few values, loops serve many: nobody can tell from the result."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=shape) * rng.choice([1e-3, 1.0, 1e6], size=shape)).astype(dtype)
    X[0, 0] = -0.0
    assert X.size <= FEW_VALUES

    bits_type = np.uint32 if dtype == np.float32 else np.uint64
    minus_zero = bits_type(1 << (8 * X.itemsize - 1))
    hashes = np.empty(len(X), np.uint64)
    row_loops.hash_dense(X.view(bits_type), minus_zero, np.uint64(77), hashes)
    assert np.array_equal(distinct.row_hashes(X, seed=77), hashes)

    found = summary.check_rows(X, 0, summary.Columns(None))
    low, high = np.full(shape[1], np.inf), np.full(shape[1], -np.inf)
    assert row_loops.column_range(X, low, high) == -1
    assert np.array_equal(found.low, low)
    assert np.array_equal(found.high, high)

    shift = rng.normal(size=shape[1])
    out = np.empty_like(X)
    row_loops.move_columns(X, shift, 2.0**-3, out)
    moved = RowFormat(X.dtype, shift=shift, exponent=3)._move(X, np.empty_like(X))
    assert np.array_equal(moved, out)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_row_that_is_not_finite_is_named(bad: float) -> None:
    X = np.zeros((50, 3))
    X[31, 1] = X[40, 0] = bad
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    assert summary._range_of_few(X, low, high) == row_loops.column_range(X, low, high) == 31


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_nearest_centres_of_few_rows_are_those_of_many(dtype: type, k: int) -> None:
    scores = np.random.default_rng(0).integers(0, 4, (60, k)).astype(dtype)  # with ties
    labels, best, second = np.empty(60, np.intp), np.empty(60), np.empty(60)
    linalg_loops.nearest(scores, labels, best)
    for found, wanted in zip(nearest_center(scores), (labels, best), strict=True):
        assert np.array_equal(found, wanted)
        assert found.dtype == wanted.dtype
    linalg_loops.nearest_two(scores, labels, best, second)
    for found, wanted in zip(nearest_two_centers(scores), (labels, best, second), strict=True):
        assert np.array_equal(found, wanted)
        assert found.dtype == wanted.dtype


@pytest.mark.numeric
@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_rows_find_the_neighbours_that_a_grid_and_products_find(
    d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(d)
    L, Z = rng.normal(size=(400, d)), rng.normal(size=(700, d))
    L[50:60] = L[0]  # ties
    m = 6
    plain = search.make_search(L, Z, m)
    assert plain.grid is None
    wanted = plain.nearest(Z, m)
    monkeypatch.setattr(search, "FEW_PAIRS", 0)
    by_grid = search.make_search(L, Z, m)
    assert by_grid.grid is not None
    for other in (by_grid, search.Search(L)):
        idx, dist = other.nearest(Z, m)
        assert np.array_equal(idx, wanted[0])
        assert np.array_equal(dist, wanted[1])


def test_lists_of_cells_grow_where_they_must_and_are_sorted() -> None:
    """All landmarks in one place: every cell lists them all, more than there is room for."""
    rng = np.random.default_rng(0)
    L = 1e-3 * rng.normal(size=(500, 2)) + 50.0
    low, step, sides = np.zeros(2), np.ones(2), np.array([8, 8, 1])
    none = np.zeros(1, np.int64), np.zeros(1, np.int32)
    ptr, items = search.cell_candidates(low, step, sides, L, 3, *none, 0, sides)
    assert np.array_equal(np.diff(ptr), np.full(64, 500))
    for cell in range(64):
        center = np.array([cell // 8 + 0.5, cell % 8 + 0.5])
        distances = ((L[items[ptr[cell] : ptr[cell + 1]]] - center) ** 2).sum(axis=1)
        assert (np.diff(distances) >= -1e-9 * distances[0]).all()
