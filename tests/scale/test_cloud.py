"""Rows and labels in a store: workers are killed, the server fails, labels are the same, once."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import EngineError, KernelKMeans
from mercer.datasets import blobs
from mercer.io import read_labels
from mercer.rows.source import TILE
from mercer.scale import local_cluster
from mercer.scale.order import Futures, LostWorkerError, results_in_order
from source_kinds import folder

s3 = pytest.importorskip("s3_server")
pytest.importorskip("s3fs")
pytest.importorskip("moto")
pytest.importorskip("distributed")

N_KILLS = 20
FAULTS = ("500", "503", "slow", "cut")


@contextmanager
def killing(client: Any, n_kills: int, seed: int) -> Any:
    """A thread that kills workers, one after another, at random moments; how many it killed."""
    rng, over, killed = random.Random(seed), threading.Event(), []

    def kill() -> None:
        while len(killed) < n_kills and not over.wait(rng.uniform(0.2, 1.5)):
            if len(client.nthreads()) < 2:  # the scheduler gives up on rows that kill all workers
                continue
            with suppress(OSError, IndexError):  # one that has just ended, or is starting
                pids = client.run(os.getpid, on_error="ignore")
                os.kill(rng.choice(list(pids.values())), signal.SIGKILL)
                killed.append(1)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.fixture
def faulty_server() -> Any:
    """The server, which does what it is asked to again when the test is over."""
    yield s3.server()
    s3.server().faults.clear()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:workers have ended")
def test_kills_and_faults_leave_the_same_labels_once(tmp_path: Path, faulty_server: Any) -> None:
    X, _ = blobs(40 * TILE, random_state=0)
    place = s3.put(folder(tmp_path, X.astype(np.float32), rows_each=50_000, n_files=4))
    model = KernelKMeans(3, rank=20, random_state=0).fit(place)
    expected = model.predict(place)
    n_killed, seeds = 0, count()
    while n_killed < N_KILLS:
        seed = next(seeds)
        faulty_server.faults.extend(random.Random(seed).choices(FAULTS, k=4))
        out = s3.new_url("labels/")
        # a new cluster: a nanny whose worker is killed while it starts gives up
        with local_cluster(2) as client, mercer.on(client), killing(client, 4, seed) as killed:
            again = KernelKMeans(3, rank=20, random_state=0).fit(place)
            for _ in range(3):
                again.predict(place, out=out)
        n_killed += len(killed)
        np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
        np.testing.assert_array_equal(read_labels(out), expected)
        names = {name.rpartition("/")[2] for name in s3.files().find(out)}
        parts = {name for name in names if name.startswith("part-")}
        assert names - parts == {"_SUCCESS", "_commit.json"}


def test_workers_read_and_write_a_store(tmp_path: Path) -> None:
    X, _ = blobs(3 * TILE, random_state=0)
    place, out = s3.put(folder(tmp_path, X, rows_each=10_000, n_files=2)), s3.new_url("labels/")
    model = KernelKMeans(3, rank=10, random_state=0)
    expected = model.fit(X).labels_
    with mercer.on(mercer.Processes(2)):
        model.fit(place).predict(place, out=out)
    np.testing.assert_array_equal(read_labels(out), expected)
    work = model.report_.work
    assert work["tasks"] > 0
    assert work["bytes read"] == 2 * X.nbytes  # the check and the labels


def test_plans_count_bytes_over_the_network(tmp_path: Path) -> None:
    X, _ = blobs(5000, random_state=0)
    np.save(tmp_path / "rows.npy", X)
    model, place = KernelKMeans(3, rank=10, random_state=0), s3.put(tmp_path / "rows.npy")
    plan, here = model.plan(place), model.plan(tmp_path / "rows.npy")
    size = (tmp_path / "rows.npy").stat().st_size
    assert plan.network_bytes == tuple(size * n for n in plan.n_passes)
    assert "network" in str(plan)
    assert here.network_bytes == (0, 0)
    assert "network" not in str(here)


def test_engine_errors_name_the_rows() -> None:
    def wait(future: Any) -> Any:
        raise LostWorkerError("a worker process ended abruptly")

    futures = Futures(lambda call: call, wait, lambda _: True, lambda: None, lambda _: None)
    with pytest.raises(EngineError, match=r"on the rows 8,192 to 16,384 \(a worker process ended"):
        list(results_in_order(futures, [(TILE, 2 * TILE)], 1))


def test_killed_workers_are_named() -> None:
    from distributed.scheduler import KilledWorker

    from mercer.scale.futures import _killed

    class Worker:
        address = "tcp://10.0.0.7:4000"

    key = "full_sweeps-8192-16384-0123456789abcdef"
    words = _killed(KilledWorker(key, Worker(), 3))
    assert "full sweeps, rows 8,192 to 16,384; the last worker was tcp://10.0.0.7:4000" in words
