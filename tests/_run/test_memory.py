"""Memory is a promise: a process grows by no more than the budget, or the fit is refused first."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from benchmarks.scale.memory import BUDGETS, ROWS, SOURCES, WARM_ROWS, estimators, measured, save
from mercer import BudgetError, KernelKMeans
from mercer._run.budget import Budget
from mercer.estimators.needs import demand_fit
from mercer.rows.arrays import ArraySource
from mercer.rows.inputs import as_source
from mercer.rows.source import TILE, reading

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
NEEDED = {"parquet": "pyarrow", "csv": "pyarrow", "zarr": "zarr"}


def assert_kept(found: list[dict[str, Any]]) -> None:
    for run in found:
        what = f"{run['estimator']}, {run['source']}, {run['budget']} MB"
        if "refused" in run:
            assert run["seconds"] < 60, what
            assert "raise max_memory" in run["refused"], what
        else:
            assert run["held"] <= run["budget"] * 1e6, f"{what}: held {run['held'] / 1e6:.1f}"


@pytest.mark.parametrize("source", SOURCES)
def test_a_fit_keeps_to_a_small_budget(source: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDED.get(source, "numpy"))
    warm, path = (save(tmp_path, source, n) for n in (101_000, 200_000))
    found = measured(warm, path, [50, 100], ["KernelKMeans rank 64"])
    assert_kept(found)
    assert "refused" not in found[1]


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", estimators("1GB"))
def test_every_fit_keeps_to_its_budget(name: str, source: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDED.get(source, "numpy"))
    n_rows = 200_000 if "Streaming" in name else ROWS
    warm, path = (save(tmp_path, source, n) for n in (WARM_ROWS, n_rows))
    assert_kept(measured(warm, path, BUDGETS, [name]))


@pytest.mark.parametrize("name", estimators("1GB"))
def test_what_cannot_fit_is_refused_before_the_first_pass(name: str) -> None:
    source = Counted(np.random.default_rng(0).random((150_000, 16), np.float32))
    with pytest.raises(BudgetError, match="raise max_memory"):
        estimators("10MB")[name].fit(source)
    assert source.n_read <= TILE


def test_rows_that_repeat_are_counted_once() -> None:
    X = np.random.default_rng(0).normal(size=(500, 3))[np.arange(20_000) % 500]
    model = KernelKMeans(3, approximation="exact", max_memory="100MB", random_state=0).fit(X)
    assert model.report_.n_distinct == 500
    with pytest.raises(BudgetError, match=r"Exact.* on 500 rows .* raise max_memory"):
        KernelKMeans(3, approximation="exact", max_memory="5MB").fit(X)


@pytest.mark.parametrize("name", estimators("1GB"))
def test_a_rank_that_is_advised_fits(name: str) -> None:
    source, estimator = Counted(np.zeros((150_000, 16), np.float32)), estimators("60MB")[name]
    try:
        demand_fit(estimator, source, Budget.of("60MB"))
    except BudgetError as error:
        _, _, rank = str(error).partition("lower the rank to about ")
        if rank and "rank" in estimator.get_params():
            smaller = clone(estimator).set_params(rank=int(rank))
            demand_fit(smaller, source, Budget.of("60MB"))


def test_blocks_get_what_the_rest_leaves() -> None:
    source = Counted(np.zeros((150_000, 64), np.float32))
    rows = [
        demand_fit(KernelKMeans(3, rank=64), source, Budget.of(f"{mb}MB"))[1]
        for mb in (95, 130, 400, 2000)
    ]
    assert rows == sorted(rows)
    assert rows[0] >= TILE
    assert rows[-1] == 32 * TILE
    for mb, n_rows in zip((95, 130, 400), rows, strict=False):
        needs, _ = demand_fit(KernelKMeans(3, rank=64), source, Budget.of(f"{mb}MB"))
        assert n_rows == TILE or needs.total(n_rows) <= mb * 10**6


def test_threads_and_weights_are_counted() -> None:
    source, budget = Counted(np.zeros((150_000, 16), np.float32)), Budget.of("2GB")
    one, _ = demand_fit(KernelKMeans(3), source, budget)
    four, _ = demand_fit(KernelKMeans(3, n_jobs=4), source, budget)
    weighted, _ = demand_fit(KernelKMeans(3), source, budget, has_weights=True)
    assert four.reading(TILE) > one.reading(TILE)
    assert four.choosing(TILE) > one.choosing(TILE)
    assert weighted.reading(TILE) == one.reading(TILE) + 8 * source.n_rows


@pytest.mark.parametrize("source", SOURCES)
def test_sources_tell_what_reading_takes(source: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDED.get(source, "numpy"))
    rows = as_source(save(tmp_path, source, 20_000))
    block = 10_000 * rows.n_features * rows.dtype.itemsize
    assert reading(rows, 10_000) >= block
    assert reading(rows, 20_000) - reading(rows, 10_000) == block


def test_rows_that_stand_in_memory_take_nothing_to_read() -> None:
    X = np.zeros((1000, 4))
    assert reading(as_source(X), 500) == 0
    assert reading(as_source(np.asfortranarray(X)), 500) == 500 * 4 * 8
    assert reading(as_source(X.astype(np.float16)), 500) == 500 * 4 * 4
    assert reading(as_source({"a": X, "b": X.astype(int)}), 500) == 16000


class Counted(ArraySource):
    """Rows as in a file, and how many were read."""

    n_read: int

    def __init__(self, X: np.ndarray) -> None:
        ArraySource.__init__(self, X, None, in_memory=False)
        object.__setattr__(self, "n_read", 0)

    def reading(self, n_rows: int) -> int:
        return n_rows * self.n_features * self.dtype.itemsize

    def read(self, start: int, stop: int) -> Any:
        object.__setattr__(self, "n_read", self.n_read + stop - start)
        return ArraySource.read(self, start, stop)

    def take(self, ids: Any) -> Any:
        object.__setattr__(self, "n_read", self.n_read + len(ids))
        return ArraySource.take(self, ids)
