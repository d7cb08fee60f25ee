"""Processes of this machine: ours, or a pool of the user's."""

from __future__ import annotations

import os
import signal
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import Any

from mercer.exceptions import EngineError
from mercer.scale.order import Futures, LostWorkerError, results_in_order
from mercer.scale.parcels import Parcel, SharedParcel, pack, pack_shared
from mercer.scale.tasks import KEEP_MEMORY, run_job, run_rows

KEPT_SOURCES = 2  # that stay in shared memory: the rows, and their weights
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
IDLE_SECONDS = 300.0  # after which a worker without work ends; it is started again when needed


class PoolEngine:
    """Tasks on a pool of `concurrent.futures` on this machine; rows in memory are shared once."""

    def __init__(self, pool: Executor) -> None:
        self.pool: Any = pool
        self._kept: OrderedDict[int, tuple[Any, SharedParcel]] = OrderedDict()

    @property
    def n_workers(self) -> int:
        return int(getattr(self.pool, "_max_workers", None) or os.cpu_count() or 1)

    def rows(
        self, task: Any, source: Any, along: Any, spans: Iterable[tuple[int, int]]
    ) -> Iterator[Any]:
        """The task on each span of rows."""
        held = (self._shared(source), self._shared(along))
        yield from self._run(run_rows, task, ((*held, *span) for span in spans))

    def jobs(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """A function of each item."""
        yield from self._run(run_job, function, ((pack(item),) for item in items))

    def _run(
        self, run: Callable[..., Any], task: Any, arguments: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        futures = Futures(self._submit, _wait, _is_lost, self._recover, _cancel)
        with closing(pack_shared(task)) as shared:
            calls = ((run, shared.parcel, *each) for each in arguments)
            yield from results_in_order(futures, calls, 2 * self.n_workers)

    def close(self) -> None:
        """Release shared memory; the pool stays its owner's."""
        while self._kept:
            self._kept.popitem()[1][1].close()

    def _shared(self, value: Any) -> Parcel | None:
        """A value that is used in several passes, shared in the first."""
        if value is None:
            return None
        if id(value) not in self._kept:
            self._kept[id(value)] = value, pack_shared(value)
            while len(self._kept) > KEPT_SOURCES:
                self._kept.popitem(last=False)[1][1].close()
        self._kept.move_to_end(id(value))
        return self._kept[id(value)][1].parcel

    def _submit(self, call: tuple[Any, ...]) -> Any:
        try:
            return self.pool.submit(*call)
        except BrokenProcessPool:  # a worker died since the last look: as good as a lost task
            self._recover()
            return self.pool.submit(*call)

    def _recover(self) -> None:
        raise EngineError(
            "a process of the pool passed to mercer.on has died, which ends such a pool; make a "
            "new one, or use mercer.on(Processes(n)), which starts new processes by itself"
        )


class Processes(PoolEngine):
    """Worker processes of this machine, for ``with mercer.on(Processes(4)):``.

    They are started when the block begins and stopped when it ends; one that dies is replaced.
    A script needs no ``if __name__ == "__main__":`` for them.

    Parameters
    ----------
    n_workers : int or None, default=None
        Number of processes; None is one for each processor that this process may use.

    Examples
    --------
    >>> from mercer import Processes
    >>> Processes(2).n_workers
    2
    """

    def __init__(self, n_workers: int | None = None) -> None:
        if n_workers is not None and (isinstance(n_workers, bool) or int(n_workers) < 1):
            raise ValueError(f"n_workers={n_workers!r} must be 1 or more, or None")
        super().__init__(None)  # type: ignore[arg-type]
        self._n_workers = len(_own_processors()) if n_workers is None else int(n_workers)

    @property
    def n_workers(self) -> int:
        return self._n_workers

    def start(self) -> None:
        if self.pool is not None:
            raise EngineError(f"{self!r} is running already in another block; make another one")
        self._start()

    def _start(self) -> None:
        from joblib.externals.loky import ProcessPoolExecutor  # never forks a threaded process

        self.pool = ProcessPoolExecutor(
            self._n_workers,
            timeout=IDLE_SECONDS,
            initializer=_begin,
            env=ONE_THREAD | KEEP_MEMORY,
        )

    def close(self) -> None:
        super().close()
        if self.pool is not None:
            self.pool.shutdown(wait=True, kill_workers=True)
            self.pool = None

    def _recover(self) -> None:
        self.pool.shutdown(wait=True, kill_workers=True)
        self._start()

    def __repr__(self) -> str:
        return f"Processes({self._n_workers})"


def _begin() -> None:
    """In a new worker: Ctrl-C is handled by the process that waits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _wait(future: Any) -> Any:
    try:
        return future.result()
    except (BrokenProcessPool, CancelledError) as error:
        raise LostWorkerError("a worker process ended abruptly") from error


def _is_lost(future: Any) -> bool:
    if not future.done():
        return True  # the pool that would have run it is gone
    return future.cancelled() or isinstance(future.exception(), BrokenProcessPool)


def _cancel(futures: list[Any]) -> None:
    for future in futures:
        future.cancel()


def _own_processors() -> Any:
    affinity = getattr(os, "sched_getaffinity", None)
    return range(os.cpu_count() or 1) if affinity is None else affinity(0)
