"""Plans: passes and memory agree with what a fit then does, minutes roughly; refusals in words."""

from __future__ import annotations

import json
import time
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import mercer
from mercer import (
    RBF,
    BudgetError,
    KernelFeatures,
    KernelKMeans,
    KernelPCA,
    KernelSpectralClustering,
    SpectralClustering,
)
from mercer._run.engine import running
from mercer.datasets import blobs
from mercer.rows.arrays import ArraySource
from mercer.rows.distinct import EXACT_ROWS
from mercer.rows.source import TILE
from source_kinds import KINDS


@dataclass(frozen=True)
class Counted:
    """Rows that are not in memory, and how many of them were read in order."""

    source: ArraySource
    reads: list[int] = field(default_factory=list)
    in_memory: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    n_rows = property(lambda self: self.source.n_rows)
    n_features = property(lambda self: self.source.n_features)
    dtype = property(lambda self: self.source.dtype)
    feature_names = property(lambda self: self.source.feature_names)

    def read(self, start: int, stop: int) -> Any:
        self.reads.append(min(stop, self.n_rows) - start)
        return self.source.read(start, stop)

    def take(self, ids: Any) -> Any:
        return self.source.take(ids)


def counted(n_rows: int, **more: Any) -> Counted:
    X, _ = blobs(n_rows, random_state=0)
    return Counted(ArraySource(X.astype(np.float32)), **more)


SMALL: dict[str, Any] = {"random_state": 0, "max_memory": "300MB"}
ESTIMATORS = {
    "kernel k-means": KernelKMeans(3, rank=16, **SMALL),
    "spectral": SpectralClustering(3, rank=100, **SMALL),
    "spectral ensemble": SpectralClustering(3, rank=100, ensemble=3, **SMALL),
    "spectral binning": SpectralClustering(3, approximation="binning", rank=16, **SMALL),
    "spectral cholesky": SpectralClustering(3, approximation="cholesky", gamma=0.1, **SMALL),
    "spectral quantized": SpectralClustering(3, approximation="quantized", gamma=0.1, **SMALL),
    "ksc": KernelSpectralClustering(3, rank=32, gamma=0.1, **SMALL),
    "features": KernelFeatures(rank=32, **SMALL),
    "kpca": KernelPCA(2, rank=32, **SMALL),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("in_memory", [True, False])
def test_every_estimator_has_a_plan(name: str, in_memory: bool) -> None:
    plan = ESTIMATORS[name].plan(counted(3000, in_memory=in_memory))
    assert (plan.n_rows, plan.n_features, plan.dtype) == (3000, 2, "float32")
    assert plan.sample_rows == plan.block_rows == 3000
    assert plan.n_blocks == 1
    least, most = plan.seconds
    assert 0 < least <= most < 100
    assert 0 < plan.memory <= plan.max_memory == 300 * 10**6
    assert plan.bytes_read == tuple(8 * 3000 * n for n in plan.n_passes)
    told = json.loads(plan.to_json())
    assert told["n_passes"] == list(plan.n_passes)
    assert told["passes"][0]["stage"] == "check"
    for word in (plan.estimator, "passes", "memory", "expected", "first 1,000 rows"):
        assert word in str(plan)


@pytest.mark.parametrize("name", ["kernel k-means", "spectral", "ksc", "features", "kpca"])
def test_passes_agree_with_the_fit(name: str) -> None:
    source = counted(EXACT_ROWS + 20_000)
    plan = ESTIMATORS[name].plan(source)
    source.reads.clear()
    model = clone(ESTIMATORS[name]).fit(source)
    in_order = [p for p in plan.passes if p.stage != "sample"]
    n_read = sum(source.reads) // source.n_rows
    assert sum(p.least for p in in_order) <= n_read <= sum(p.most for p in in_order)
    sweeps = {p.stage: (p.least, p.most) for p in plan.passes}
    least, most = sweeps.get("full sweeps", (0, 0))
    assert least <= model.report_.n_full_sweeps <= most
    others = sum(p.most for p in in_order if p.stage != "full sweeps")
    assert n_read == others + model.report_.n_full_sweeps  # exactly, where it is defined
    n_blocks = sum(size > 1 for size in source.reads) / n_read
    assert n_blocks == plan.n_blocks


@pytest.mark.parametrize("name", ["kernel k-means", "spectral", "ksc", "features", "kpca"])
def test_memory_agrees_with_the_fit(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(60_000, 16)).astype(np.float32)
    source = Counted(ArraySource(X))
    estimator = clone(ESTIMATORS[name]).set_params(rank=64)
    plan = estimator.plan(source)
    tracemalloc.start()
    clone(estimator).fit(source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / 2 <= plan.memory <= 3 * peak, (peak / 1e6, plan.memory / 1e6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernel k-means", "spectral", "ksc"])
def test_time_agrees_with_the_fit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", time.process_time)  # the work of others is not ours
    X = np.random.default_rng(0).normal(size=(600_000, 16)).astype(np.float32)
    estimator = clone(ESTIMATORS[name]).set_params(rank=128)
    least, most = estimator.plan(Counted(ArraySource(X))).seconds
    started = time.perf_counter()
    estimator.fit(Counted(ArraySource(X)))
    taken = time.perf_counter() - started
    assert taken / 3 <= most
    assert least <= 3 * taken


def test_a_plan_counts_on_the_workers_and_leaves_checkpoints_alone(tmp_path: Path) -> None:
    class Four:
        n_workers = 4

    source, model = counted(3000), KernelKMeans(3, rank=16, random_state=0)
    with mercer.checkpoint(tmp_path / "kept"), running(Four()):  # type: ignore[arg-type]
        before = set(tmp_path.rglob("*"))
        plan = model.plan(source)
        assert set(tmp_path.rglob("*")) == before
    assert "4 process(es)" in plan.calibration


def test_a_plan_changes_nothing() -> None:
    model = KernelKMeans(3, rank=16, random_state=np.random.default_rng(0))
    before = model.random_state.bit_generator.state
    model.plan(counted(2000))
    assert not hasattr(model, "report_")
    assert model.random_state.bit_generator.state == before


def test_what_cannot_fit_is_refused_with_what_would() -> None:
    with pytest.raises(BudgetError, match=r"lower the rank to about \d+"):
        KernelKMeans(3, rank=2000, max_memory="20MB").plan(counted(50_000))
    with pytest.raises(BudgetError, match=r"raise max_memory"):
        SpectralClustering(3, approximation="exact", max_memory="20MB").plan(counted(50_000))
    with pytest.raises(BudgetError, match=r"to choose pivots from.*raise max_memory"):
        KernelKMeans(3, max_memory="100kB").plan(counted(50_000))


def test_partitions_that_cannot_fit_are_refused() -> None:
    da = pytest.importorskip("dask.array")
    X = da.zeros((10**7, 16), chunks=(10**7, 16))
    for verb in ("plan", "fit"):
        with pytest.raises(BudgetError, match=r"partition at a time, .* smaller chunks"):
            getattr(KernelKMeans(2, max_memory="400MB"), verb)(X)


def test_bad_parameters_and_rows_are_refused_as_by_fit() -> None:
    with pytest.raises(ValueError, match="n_clusters"):
        KernelKMeans(0).plan(counted(2000))
    with pytest.raises(ValueError, match="NaN"):
        KernelKMeans(2).plan(np.full((2000, 2), np.nan))


@pytest.mark.parametrize("kind", ["folder", "zarr", "dask frame"])
def test_plans_for_every_kind_of_source(kind: str, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    plan = KernelKMeans(2, rank=8).plan(KINDS[kind](tmp_path, X))
    assert plan.n_rows == 200
    assert plan.n_passes == (3, 3)


def test_plans_for_sparse_rows_blocks_names_and_given_kernels() -> None:
    pd = pytest.importorskip("pandas")
    X = np.abs(np.random.default_rng(0).normal(size=(1500, 3)))
    assert KernelKMeans(2, rank=8).plan(sp.csr_array(X)).n_rows == 1500
    blocks = {"a": X, "b": sp.csr_array(X)}
    assert KernelKMeans(2, rank=8, kernel=RBF(columns="a")).plan(blocks).n_features == 6
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert KernelKMeans(2, rank=8, kernel=RBF(columns=["c"])).plan(frame).n_rows == 1500
    K = np.exp(-((X[:, None, 0] - X[None, :, 0]) ** 2))
    assert KernelKMeans(2, rank=8, kernel="precomputed").plan(K).n_rows == 1500
    assert SpectralClustering(2, kernel="precomputed").plan(sp.csr_array(K)).n_rows == 1500


def test_blocks_are_whole_tiles() -> None:
    plan = KernelKMeans(2, rank=8, max_memory="20MB").plan(np.zeros((10 * TILE, 16), "f4") + 1.0)
    assert plan.block_rows % TILE == 0
    assert plan.n_blocks == -(-plan.n_rows // plan.block_rows) > 1
