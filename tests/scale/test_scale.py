"""Engines and checkpoints: wherever the rows are worked on, and whoever dies, the same labels."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import mercer
from estimators import ESTIMATORS
from marking import slow_beyond
from mercer import KernelFeatures, KernelKMeans, KernelPCA, SpectralClustering
from mercer._run.progress import listening
from mercer.exceptions import EngineError, MercerWarning
from mercer.rows import as_source
from mercer.rows.batches import BatchSource
from mercer.scale import Processes, local_cluster
from mercer.scale.parcels import pack, pack_shared, travels
from mercer.scale.tasks import KEEP_MEMORY
from waiting import HANG, wait_until

N = 20_000  # three tiles, the last one cut


@pytest.fixture(scope="module")
def processes() -> Iterator[Any]:
    with mercer.on(Processes(2)) as engine:
        pass  # the context of a fixture is not that of a test
    engine.start()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    pytest.importorskip("distributed")
    with local_cluster(2) as client:
        yield client


@pytest.fixture(params=["processes", "dask"])
def engine(request: pytest.FixtureRequest) -> Any:
    """An engine of two worker processes, for `on`."""
    return request.getfixturevalue("processes" if request.param == "processes" else "client")


@contextmanager
def on(engine: Any) -> Iterator[None]:
    """`mercer.on` that leaves our processes running."""
    from mercer._run.engine import running

    if isinstance(engine, Processes):
        with running(engine):
            yield
    else:
        with mercer.on(engine):
            yield


@pytest.fixture(scope="module")
def rows() -> Any:
    """Three blobs of 400 different rows, many times over: real passes, and little to decide."""
    rng = np.random.default_rng(0)
    blobs = [rng.normal(center, 0.5, (400, 3)) for center in (-4.0, 0.0, 4.0)]
    X = np.concatenate(blobs)[rng.integers(0, 1200, N)]
    X.setflags(write=False)
    return X


@pytest.fixture(scope="module")
def npy(rows: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scale") / "rows.npy"
    np.save(path, rows)
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two groups of tiles, so that sums have a shape, and full sweeps (more than 100,000 rows)."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(270_000, 2)).astype(np.float32)
    X += 3 * rng.integers(0, 3, len(X), dtype=np.int32)[:, None].astype(np.float32)
    path = tmp_path_factory.mktemp("scale") / "many.npy"
    np.save(path, X)
    return X, path, rng.random(len(X))


# ---- the same bits everywhere

FEW = [name for name in ESTIMATORS if "-" not in name]  # one of each class


@pytest.mark.parametrize("name", slow_beyond(ESTIMATORS, quick=FEW))
def test_labels_are_the_same_on_every_engine(name: str, engine: Any, rows: Any, npy: Path) -> None:
    here = ESTIMATORS[name]().fit(npy)
    with on(engine):
        there = ESTIMATORS[name]().fit(npy)
        of_file, of_array = there.predict(npy), there.predict(rows)
    assert_array_equal(there.cluster_weights_, here.cluster_weights_)
    assert_array_equal(of_file, here.predict(npy))
    assert_array_equal(of_array, of_file)


@pytest.mark.parametrize("in_memory", [True, False])
def test_full_sweeps_have_the_same_bits(engine: Any, many: Any, in_memory: bool) -> None:
    X, path, weights = many
    data = X if in_memory else path
    model = KernelKMeans(3, rank=16, random_state=0)
    here = model.fit(data, sample_weight=weights).cluster_centers_
    labels = model.predict(data)
    with on(engine):
        there = KernelKMeans(3, rank=16, random_state=0).fit(data, sample_weight=weights)
    assert there.report_.n_full_sweeps > 0
    assert_array_equal(there.cluster_centers_, here)
    assert_array_equal(there.predict(data), labels)
    if in_memory:
        assert_array_equal(there.labels_, labels)


@pytest.mark.parametrize("make", [KernelFeatures, KernelPCA])
def test_transformers_give_the_same_numbers(engine: Any, rows: Any, npy: Path, make: Any) -> None:
    model = make(rank=20, random_state=0).fit(npy)
    here = model.transform(npy)
    with on(engine):
        assert_array_equal(make(rank=20, random_state=0).fit(npy).transform(npy), here)
        assert_array_equal(model.transform(rows), here)


def test_everything_else_a_model_says(engine: Any, rows: Any) -> None:
    kmeans = KernelKMeans(3, rank=20, random_state=0).fit(rows)
    spectral = SpectralClustering(3, random_state=0).fit(rows)
    codes = mercer.KernelSpectralClustering(3, random_state=0).fit(rows)

    def told() -> list[Any]:
        path = spectral.labels_path(rows, [2, 3])
        return [
            kmeans.transform(rows),
            kmeans.score(rows),
            spectral.transform(rows),
            path[2],
            path[3],
            codes.transform(rows),
            codes.memberships(rows),
            codes.score(rows),
        ]

    here = told()
    with on(engine):
        for a, b in zip(told(), here, strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize("budget", ["60MB", "500MB"])
def test_any_chunking(engine: Any, rows: Any, tmp_path: Path, budget: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({f"x{j}": rows[:, j] for j in range(rows.shape[1])})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=3001)
    batches = [rows[:5], rows[5:5], rows[5:9000], rows[9000:]]
    here = KernelKMeans(3, rank=20, random_state=0).fit(rows)
    with on(engine):
        for data in (tmp_path / "rows.parquet", batches):
            model = KernelKMeans(3, rank=20, max_memory=budget, random_state=0).fit(data)
            assert_array_equal(model.predict(data), here.labels_)


def test_dask_collections_stay_on_their_cluster(
    client: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    da = pytest.importorskip("dask.array")
    from mercer.rows.dasks import DaskSource

    def compute_here(*arguments: Any) -> None:
        raise AssertionError("a partition came to the client")

    X = da.from_array(rows, chunks=(3001, 3))
    here = KernelKMeans(3, rank=20, random_state=0).fit(rows).labels_
    for data in (X, X.persist()):
        model = KernelKMeans(3, rank=20, random_state=0).fit(data)  # its client is the default one
        with monkeypatch.context() as patched:
            patched.setattr(DaskSource, "_compute", compute_here)
            assert_array_equal(model.predict(data), here)
            with on(client):
                assert_array_equal(model.predict(data), here)


def test_sparse_rows_and_column_blocks(engine: Any, rows: Any) -> None:
    sparse = sp.csr_array(np.where(np.abs(rows) > 1, rows, 0.0))
    blocks = {"a": sparse, "b": rows}
    kernel = mercer.RBF(0.1, columns="a") + mercer.RBF(0.1, columns="b")
    for X, parameters in ((sparse, {}), (blocks, {"kernel": kernel})):
        here = KernelKMeans(3, rank=20, random_state=0, **parameters).fit(X).labels_
        with on(engine):
            there = KernelKMeans(3, rank=20, random_state=0, **parameters).fit(X).labels_
        assert_array_equal(there, here)


def test_a_function_of_the_script_as_kernel(engine: Any, rows: Any) -> None:
    kernel = lambda X, Y: np.exp(-0.1 * ((X[:, None] - Y[None]) ** 2).sum(axis=2))
    model = KernelKMeans(3, kernel=kernel, rank=10, random_state=0)
    here = model.fit_predict(rows)
    with on(engine):
        assert_array_equal(model.fit_predict(rows), here)


@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")  # of candidates that are wrong
def test_tuning_gives_the_same_scores(engine: Any, rows: Any) -> None:
    from mercer.selection import search

    arguments: Any = {"n_clusters": [2, 3], "gamma": [0.05, 0.5], "criterion": "bas"}
    models = (
        mercer.KernelSpectralClustering(rank=20, random_state=0),
        KernelKMeans(rank=20, random_state=0),
    )
    for model in models:
        here = search(model, rows[:3000], **arguments)
        with on(engine):
            there = search(model, rows[:3000], **arguments)
        assert_array_equal(there.scores, here.scores)


def test_a_bad_row_is_named_as_in_the_loop(engine: Any, rows: Any, tmp_path: Path) -> None:
    X = rows.copy()
    X[[9000, 19_000], 1] = np.nan
    np.save(tmp_path / "bad.npy", X)
    with on(engine):
        for data in (X, tmp_path / "bad.npy"):
            with pytest.raises(ValueError, match="NaN at row 9000, column 1"):
                KernelKMeans(3, random_state=0).fit(data)


def test_other_pools_work_too(rows: Any) -> None:
    model = KernelKMeans(3, rank=20, random_state=0)
    here = model.fit_predict(rows)
    with ThreadPoolExecutor(2) as pool, mercer.on(pool):
        assert_array_equal(model.fit_predict(rows), here)
    with mercer.on("loop"):
        assert_array_equal(model.fit_predict(rows), here)


@pytest.mark.parametrize("nonsense", ["threads", None, 2, object()])
def test_what_is_no_engine_is_refused(nonsense: Any) -> None:
    with pytest.raises(TypeError, match=r"mercer\.on cannot run on"), mercer.on(nonsense):
        pass
    with pytest.raises(ValueError, match="n_workers"):
        Processes(0)


def test_processes_serve_one_block_at_a_time(processes: Any) -> None:
    with pytest.raises(EngineError, match="is running already"), mercer.on(processes):
        pass
    assert list(processes.jobs(abs, [-1, 2])) == [1, 2]


# ---- what travels


class OddError(Exception):
    """Pickled with one argument, opened with two."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")


def fail(item: Any) -> Any:
    raise OddError("no luck", str(item))


class NotForWorkers:
    """Travels, but cannot be opened anywhere but here."""

    def __init__(self) -> None:
        self.home = os.getpid()

    def __reduce__(self) -> Any:
        return open_at_home, (self.home,)

    def __call__(self, item: Any) -> Any:
        return item

    def __iter__(self) -> Iterator[Any]:
        return iter([np.eye(3)] * 4)


def open_at_home(home: int) -> NotForWorkers:
    if os.getpid() != home:
        raise LookupError("there is no such thing here")
    return NotForWorkers()


def test_what_workers_cannot_open_is_an_error_of_the_task(engine: Any) -> None:
    model = KernelKMeans(2, random_state=0)
    with mercer.on(engine) if not isinstance(engine, Processes) else nullcontext(engine) as there:
        with pytest.raises(RuntimeError, match="no luck: 1"):
            list(there.jobs(fail, [1]))
        with pytest.raises(LookupError, match="no such thing"):
            list(there.jobs(NotForWorkers(), [1]))
        with pytest.raises(LookupError, match="no such thing"):
            list(there.jobs(abs, [NotForWorkers()]))
        with on(engine), pytest.raises(LookupError, match="no such thing"):
            model.fit(BatchSource(NotForWorkers()))
        assert list(there.jobs(abs, [-1, 2])) == [1, 2]


def test_workers_of_our_own_keep_freed_memory(engine: Any) -> None:
    with mercer.on(engine) if not isinstance(engine, Processes) else nullcontext(engine) as there:
        assert list(there.jobs(os.getenv, list(KEEP_MEMORY))) == list(KEEP_MEMORY.values())


def test_rows_that_a_cluster_holds_are_not_for_other_processes(
    client: Any, processes: Any, rows: Any
) -> None:
    da = pytest.importorskip("dask.array")
    with on(processes), pytest.raises(EngineError, match="held by a cluster"):
        KernelKMeans(3, random_state=0).fit(da.from_array(rows, chunks=(5000, 3)).persist())


def test_parcels_share_large_arrays_and_nothing_stays(rows: Any) -> None:
    shared = pack_shared({"X": rows, "small": np.arange(3)})
    opened = shared.parcel.open()
    assert_array_equal(opened["X"], rows)
    assert not opened["X"].flags.writeable
    assert len(shared.parcel.body) < 10_000 < rows.nbytes
    assert_array_equal(pack(rows).open(), rows)
    shared.close()
    with pytest.raises(OSError):
        shared.parcel.open()


def test_sources_that_read_themselves_travel(rows: Any, npy: Path) -> None:
    assert travels(as_source(npy))
    assert not travels(as_source(rows))
    assert not travels(BatchSource([np.zeros((2**20, 3))]))
    with npy.open("rb") as file:
        assert not travels(BatchSource(WithFile(file)))


@dataclass
class WithFile:
    file: Any

    def __iter__(self) -> Iterator[Any]:
        yield np.zeros((3, 2))


# ---- workers that die


@dataclass(frozen=True)
class Deadly:
    """Rows of a file; reading them kills the worker, once, while the trap is set."""

    path: Path
    trap: Path
    in_memory: bool = False

    n_rows = property(lambda self: as_source(self.path).n_rows)
    n_features = property(lambda self: as_source(self.path).n_features)
    dtype = property(lambda self: as_source(self.path).dtype)
    feature_names = property(lambda self: None)

    def read(self, start: int, stop: int) -> Any:
        spring(self.trap)
        return as_source(self.path).read(start, stop)

    def take(self, ids: Any) -> Any:
        spring(self.trap)
        return as_source(self.path).take(ids)


def spring(trap: Path) -> None:
    """Die, if the trap is set and this is a worker: its owner's number is in it."""
    try:
        owner = int(trap.read_text())
        if owner == os.getpid():
            return
        trap.unlink()
    except (FileNotFoundError, ValueError):
        return
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class DeadlyKernel:
    """An RBF that does the same, for rows in memory."""

    trap: Path

    def __call__(self, X: Any, Y: Any) -> Any:
        spring(self.trap)
        squares = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2 * X @ Y.T
        return np.exp(-0.2 * squares)


def set_trap(trap: Path, stage: str) -> Callable[[str, int, int], None]:
    """A listener that sets the trap when a stage begins."""
    seen: list[str] = []

    def listen(now: str, done: int, total: int) -> None:
        if now == stage and stage not in seen:
            seen.append(stage)
            trap.write_text(str(os.getpid()))

    return listen


SLOW = pytest.mark.slow  # processes start again, one kill after the other


@pytest.mark.parametrize(
    ("engine", "stage"),
    [
        ("dask", "full sweeps"),
        ("processes", "full sweeps"),
        pytest.param("dask", "labels", marks=SLOW),
        pytest.param("dask", "check", marks=SLOW),
        pytest.param("dask", "sample", marks=SLOW),
        pytest.param("processes", "check", marks=SLOW),
        pytest.param("processes", "sample", marks=SLOW),
        pytest.param("processes", "labels", marks=SLOW),
    ],
    indirect=["engine"],
)
def test_a_worker_killed_in_a_pass_over_a_file(
    stage: str, engine: Any, many: Any, tmp_path: Path
) -> None:
    _, path, _ = many
    here = KernelKMeans(3, rank=16, random_state=0).fit(path)
    trap = tmp_path / "trap"
    with on(engine), listening(set_trap(trap, stage)):
        there = KernelKMeans(3, rank=16, random_state=0).fit(Deadly(path, trap))
    assert not trap.exists()  # it was sprung
    assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    assert_array_equal(there.cluster_weights_, here.cluster_weights_)


@pytest.mark.parametrize(
    ("engine", "stage"),
    [
        ("dask", "full sweeps"),
        ("dask", "labels"),
        ("processes", "labels"),
        pytest.param("processes", "full sweeps", marks=SLOW),
    ],
    indirect=["engine"],
)
def test_a_worker_killed_with_rows_that_it_was_sent(
    stage: str, engine: Any, many: Any, tmp_path: Path
) -> None:
    X, _, weights = many
    trap = tmp_path / "trap"
    kernel = DeadlyKernel(trap)
    model = KernelKMeans(3, kernel=kernel, rank=8, random_state=0)
    here = model.fit(X, sample_weight=weights).labels_
    with on(engine), listening(set_trap(trap, stage)):
        there = model.fit(X, sample_weight=weights).labels_
    assert not trap.exists()
    assert_array_equal(there, here)


def test_a_worker_killed_while_labels_are_written(engine: Any, npy: Path, tmp_path: Path) -> None:
    model = KernelKMeans(3, rank=16, random_state=0).fit(npy)
    trap = tmp_path / "trap"
    with on(engine), listening(set_trap(trap, "predict")):
        model.predict(Deadly(npy, trap), out=tmp_path / "labels.npy")
    assert not trap.exists()
    assert_array_equal(np.load(tmp_path / "labels.npy"), model.predict(npy))


def test_a_pool_of_the_user_that_breaks_says_so(npy: Path, tmp_path: Path) -> None:
    from joblib.externals.loky import ProcessPoolExecutor

    pool, trap = ProcessPoolExecutor(1), tmp_path / "trap"
    trap.write_text(str(os.getpid()))
    with mercer.on(pool), pytest.raises(EngineError, match="make a new one"):
        KernelKMeans(3, rank=16, random_state=0).fit(Deadly(npy, trap))
    pool.shutdown(kill_workers=True)


@dataclass(frozen=True)
class Hopeless(Deadly):
    """Kills every worker that reads."""

    def read(self, start: int, stop: int) -> Any:
        if int(self.trap.read_text()) != os.getpid():
            os.kill(os.getpid(), signal.SIGKILL)
        return as_source(self.path).read(start, stop)


@pytest.mark.slow
def test_rows_that_kill_every_worker_end_in_words(engine: Any, npy: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(str(os.getpid()))
    with on(engine), pytest.raises(EngineError, match="ran out of memory"):
        KernelKMeans(3, rank=16, random_state=0).fit(Hopeless(npy, trap))


@dataclass
class RestlessCluster:
    """A client whose workers end between two looks; a result comes after some of them."""

    size: int
    result_after: int = 10**9  # looks
    status: str = "running"
    looks: int = 0

    def nthreads(self) -> dict[str, int]:
        self.looks += 1
        return {f"tcp://worker-{self.looks}-{i}": 1 for i in range(self.size)}

    def result(self, timeout: float = 0.0) -> str:
        if self.looks < self.result_after:
            raise TimeoutError
        self.result_after = self.looks + 2
        return "done"


@pytest.mark.parametrize("size", [1, 2, 50])
def test_workers_that_end_beside_a_task_are_not_restarted_for_ever(size: int) -> None:
    """As with a nanny's limit below what the modules take: the scheduler never blames a task."""
    futures = pytest.importorskip("mercer.scale.futures")
    cluster = RestlessCluster(size)
    with pytest.raises(EngineError, match=r"^\d+ Dask workers ended .* ran out of memory"):
        futures.DaskEngine(cluster)._wait(cluster)
    assert cluster.looks == 5  # every one has been replaced three times and once more


def test_workers_that_end_while_results_come_are_told_once() -> None:
    futures = pytest.importorskip("mercer.scale.futures")
    cluster = RestlessCluster(2, result_after=2)
    engine = futures.DaskEngine(cluster)
    with pytest.warns(MercerWarning, match=r"workers have ended .* ran out of memory") as caught:
        results = [engine._wait(cluster) for _ in range(20)]
    assert results == ["done"] * 20
    assert len(caught) == 1


def test_lost_tasks_are_told_once_where_results_come_in_between() -> None:
    from mercer.scale.order import MANY, RETRIES, Futures, LostWorkerError, results_in_order

    left = dict.fromkeys(range(12), RETRIES)

    def wait(call: int) -> int:
        if left[call] > 0:
            left[call] -= 1
            raise LostWorkerError("gone")
        return call

    calls = Futures(lambda call: call, wait, lambda call: True, lambda: None, lambda waiting: None)
    with pytest.warns(MercerWarning, match=f"ended {MANY} times") as caught:
        assert list(results_in_order(calls, range(12), 3)) == list(range(12))
    assert len(caught) == 1
    left[0] = RETRIES + 1
    with pytest.raises(EngineError, match="ran out of memory"):
        list(results_in_order(calls, range(12), 3))


def test_ctrl_c_cancels_what_is_under_way(client: Any, many: Any) -> None:
    _, path, _ = many

    def press(stage: str, done: int, total: int) -> None:
        if stage == "full sweeps" and done:
            raise KeyboardInterrupt

    with on(client), listening(press), pytest.raises(KeyboardInterrupt):
        KernelKMeans(3, rank=16, random_state=0).fit(path)
    assert wait_until(lambda: not any(client.processing().values()), every=0.1)


SCHEDULER = """
import sys
from distributed.cli.dask_scheduler import main
main(["--port", "0", "--no-dashboard", "--scheduler-file", sys.argv[1]])
"""
WORKER = """
import sys
from distributed.cli.dask_worker import main
if __name__ == "__main__":
    main(["--scheduler-file", sys.argv[1], "--nthreads", "1", "--no-dashboard"])
"""


@pytest.mark.slow
def test_a_scheduler_that_dies_is_told_and_the_checkpoint_serves(many: Any, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    _, path, _ = many
    model = KernelKMeans(3, rank=16, random_state=0)
    here = model.fit(path).cluster_centers_
    with cluster_of_processes(tmp_path) as (scheduler, address):
        died: list[float] = []

        def kill(stage: str, done: int, total: int) -> None:
            if stage == "full sweeps" and not died:
                died.append(time.monotonic())
                scheduler.kill()

        client = distributed.Client(scheduler_file=address, timeout=60)
        try:
            with (
                mercer.on(client),
                mercer.checkpoint(tmp_path / "kept"),
                listening(kill),
                pytest.raises(EngineError, match="scheduler is gone"),
            ):
                model.fit(path)
            assert time.monotonic() - died[0] < 30
        finally:
            client.close(timeout=1)
    with mercer.checkpoint(tmp_path / "kept") as kept:
        model.fit(path)
    assert kept.n_reused >= 2  # the check and the sample
    assert_array_equal(model.cluster_centers_, here)


@contextmanager
def cluster_of_processes(folder: Path) -> Iterator[tuple[Any, str]]:
    """A scheduler and a worker as processes of their own, the first of which may be killed."""
    address, started = str(folder / "scheduler.json"), []
    for number, script in enumerate((SCHEDULER, WORKER)):
        (folder / f"{number}.py").write_text(script)
        command = [sys.executable, str(folder / f"{number}.py"), address]
        with open(folder / f"{number}.log", "wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log))
    try:
        yield started[0], address
    finally:
        for process in started[::-1]:
            process.terminate()
        for process in started[::-1]:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


# ---- checkpoints


def stop_at(stage: str) -> Callable[[str, int, int], None]:
    def listen(now: str, done: int, total: int) -> None:
        if now == stage and done == total:
            raise KeyboardInterrupt

    return listen


@pytest.mark.parametrize("seed", [0, None])
def test_a_fit_that_was_cut_short_takes_up_where_it_was(
    many: Any, tmp_path: Path, seed: int | None
) -> None:
    _, path, _ = many
    model = KernelKMeans(3, rank=16, random_state=seed)
    with mercer.checkpoint(tmp_path / "kept") as first:
        whole = KernelKMeans(3, rank=16, random_state=seed).fit(path)
    with mercer.checkpoint(tmp_path / "other"):
        seed_file = tmp_path / "kept" / "seed.json"
        if seed is None:
            (tmp_path / "other" / "seed.json").write_bytes(seed_file.read_bytes())
        with listening(stop_at("labels")), pytest.raises(KeyboardInterrupt):
            model.fit(path)
        assert not hasattr(model, "cluster_centers_")
    stages: list[str] = []
    with (
        mercer.checkpoint(tmp_path / "other") as again,
        listening(lambda stage, done, total: stages.append(stage) if total else None),
    ):
        model.fit(path)
    assert again.n_computed == 1  # the labels
    assert again.n_reused == first.n_computed - 1
    assert set(stages) == {"labels"}
    assert_array_equal(model.cluster_centers_, whole.cluster_centers_)
    assert_array_equal(model.cluster_weights_, whole.cluster_weights_)
    assert_array_equal(model.predict(path), whole.predict(path))


@pytest.mark.parametrize(
    "name",
    slow_beyond(
        ESTIMATORS, quick=("KernelKMeans", "SpectralClustering", "KernelSpectralClustering")
    ),
)
def test_every_estimator_resumes(name: str, npy: Path, tmp_path: Path) -> None:
    here = ESTIMATORS[name]().fit(npy)
    for is_first in (True, False):
        with mercer.checkpoint(tmp_path) as kept:
            model = ESTIMATORS[name]().fit(npy)
        assert (kept.n_computed > 0, kept.n_reused > 0) == (is_first, not is_first)
        assert_array_equal(model.predict(npy), here.predict(npy))


def test_rows_of_every_kind_are_kept(rows: Any, tmp_path: Path) -> None:
    sparse = sp.csr_array(np.where(np.abs(rows) > 1, rows, 0.0))
    kernel = mercer.RBF(0.1, columns="a") + mercer.RBF(0.1, columns="b")
    for X, parameters in (
        ([sparse], {}),
        ({"a": BatchSource([sparse]), "b": BatchSource([rows])}, {"kernel": kernel}),
    ):
        model = KernelKMeans(3, rank=20, random_state=0, **parameters)
        here = model.fit(X).cluster_centers_
        for _ in range(2):
            with mercer.checkpoint(tmp_path) as kept:
                assert_array_equal(model.fit(X).cluster_centers_, here)
        assert kept.n_computed == 0


def test_a_kernel_without_a_name_is_known_by_its_code(npy: Path, tmp_path: Path) -> None:
    for power, n_reused in ((1, 0), (1, 3), (2, 2)):
        kernel = lambda A, B, power=power: (1 + A @ B.T) ** power
        with mercer.checkpoint(tmp_path / "kept") as kept:
            KernelKMeans(3, rank=16, kernel=kernel, random_state=0).fit(npy)
        assert (kept.n_reused, kept.n_computed) == (n_reused, 3 - n_reused)


def test_other_data_and_parameters_find_nothing(rows: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    with mercer.checkpoint(tmp_path / "kept"):
        KernelKMeans(3, rank=20, random_state=0).fit(path)
    with mercer.checkpoint(tmp_path / "kept") as kept:
        KernelKMeans(3, rank=21, random_state=0).fit(path)
    assert (kept.n_reused, kept.n_computed) == (2, 1)  # the rows are the same
    np.save(path, rows[::-1])
    with mercer.checkpoint(tmp_path / "kept") as kept:
        KernelKMeans(3, rank=20, random_state=0).fit(path)
    assert kept.n_reused == 0
    with mercer.checkpoint(tmp_path / "kept") as kept:
        KernelKMeans(3, rank=20, random_state=0).fit(rows + 1)
        KernelKMeans(3, rank=20, random_state=0).fit(rows)
    assert kept.n_reused == 0


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "foreign"])
def test_a_damaged_checkpoint_is_computed_again(npy: Path, tmp_path: Path, damage: str) -> None:
    model = KernelKMeans(3, rank=20, random_state=0)
    with mercer.checkpoint(tmp_path):
        here = model.fit(npy).cluster_centers_
    for path in tmp_path.glob("*.pass"):
        data = path.read_bytes()
        wrong = {
            "cut": data[: len(data) // 2],
            "changed": data.replace(b"mercer-pass", b"mercer-pasS"),
            "empty": b"",
            "foreign": b"hello",
        }
        path.write_bytes(wrong[damage])
    with (
        mercer.checkpoint(tmp_path) as kept,
        pytest.warns(MercerWarning, match="damaged, and its pass will be run again"),
    ):
        assert_array_equal(model.fit(npy).cluster_centers_, here)
    assert kept.n_reused == 0
    with mercer.checkpoint(tmp_path) as kept:
        model.fit(npy)
    assert kept.n_computed == 0


def test_a_place_that_cannot_be_written_is_told_early(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file"), mercer.checkpoint(tmp_path / "file"):
        pass


def test_a_full_disk_does_not_end_the_fit(
    npy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mercer.scale.checkpoint_folder.write_archive", full)
    model = KernelKMeans(3, rank=20, random_state=0)
    with mercer.checkpoint(tmp_path), pytest.warns(MercerWarning, match="No space left"):
        model.fit(npy)
    assert list(tmp_path.iterdir()) == []


# ---- the surroundings


@pytest.mark.slow
def test_the_page_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    page = Path(__file__).parents[2] / "docs" / "scale.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    exec("\n".join(blocks), {"__name__": "page"})


def run_script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=HANG, check=False
    )


@pytest.mark.slow
def test_a_script_needs_no_guard_and_leaves_no_process(tmp_path: Path) -> None:
    ran = run_script(
        """
import numpy as np, mercer, psutil
X = np.random.default_rng(0).normal(size=(9000, 2))
with mercer.on(mercer.Processes(2)):
    labels = mercer.KernelKMeans(2, rank=8, random_state=0).fit_predict(X)
    assert psutil.Process().children()
alive = [p for p in psutil.Process().children(True) if "tracker" not in " ".join(p.cmdline())]
print(len(labels), alive)
""",
        tmp_path,
    )
    assert ran.stdout.split("\n")[0] == "9000 []", ran.stderr


@pytest.mark.parametrize("engine", ["processes", pytest.param("dask", marks=SLOW)])
def test_the_command_line_runs_on_engines(engine: str, npy: Path, tmp_path: Path) -> None:
    pytest.importorskip("typer")
    pytest.importorskip("distributed")
    from typer.testing import CliRunner

    from mercer.cli.app import app

    here, there, model = (tmp_path / name for name in ("a.npy", "b.npy", "m.mercer"))
    fit = ["cluster", str(npy), "-k", "3", "--seed", "0", "-q"]
    where = ["--engine", engine, "--workers", "1"]
    kept = ["--checkpoint", str(tmp_path / "kept")]
    for more in (["-o", str(here), "--model", str(model)], ["-o", str(there), *where, *kept]):
        ran = CliRunner().invoke(app, [*fit, *more])
        assert ran.exit_code == 0, ran.output
    assert_array_equal(np.load(there), np.load(here))
    for stage in ("check", "sample"):  # the last pass writes labels, and is not kept
        assert list((tmp_path / "kept").glob(f"{stage}-*.pass"))
    there.unlink()
    if engine == "processes":
        arguments = ["predict", str(model), str(npy), "-o", str(there), "-q", *where]
        assert CliRunner().invoke(app, arguments).exit_code == 0
        assert_array_equal(np.load(there), np.load(here))


def test_engines_that_cannot_be_are_refused(npy: Path) -> None:
    pytest.importorskip("typer")
    pytest.importorskip("distributed")
    from typer.testing import CliRunner

    from mercer.cli.app import app

    for arguments, word in (
        (["--engine", "threads"], "loop"),
        (["--scheduler", "tcp://127.0.0.1:9"], "--engine dask"),
        (["--workers", "2"], "--engine processes"),
    ):
        ran = CliRunner().invoke(app, ["cluster", str(npy), *arguments])
        assert ran.exit_code == 2, ran.output
        assert word in re.sub(r"[^\w-]+", " ", ran.output)


@pytest.mark.slow
def test_without_dask_all_else_works(tmp_path: Path) -> None:
    ran = run_script(
        """
import sys
sys.modules["dask"] = sys.modules["distributed"] = None
import numpy as np, mercer
X = np.random.default_rng(0).normal(size=(100, 2))
with mercer.on("loop"):
    mercer.KernelKMeans(2, random_state=0).fit(X)
try:
    with mercer.on("dask"):
        pass
except mercer.MissingExtraError as error:
    print(error)
""",
        tmp_path,
    )
    assert "mercer[dask]" in ran.stdout, ran.stderr
