"""Tasks as futures of a Dask cluster: a few long ones, with small results."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dask.config
from distributed import Client, KilledWorker
from distributed.comm import CommClosedError

from mercer._run.tally import WORK
from mercer._run.warn import warn
from mercer.exceptions import EngineError
from mercer.scale.order import (
    CAUSE,
    MANY,
    RETRIES,
    Futures,
    LostWorkerError,
    results_in_order,
    warn_of_losses,
)
from mercer.scale.parcels import Parcel, pack, travels
from mercer.scale.tasks import RowBlock, run_job, run_rows

LOOK_SECONDS = 2.0  # between checks that scheduler and workers are still there
PATIENCE_SECONDS = 30.0  # without any worker, before a warning
WINDOW = 3  # tasks under way for each thread of the cluster
GRAPH_WARNING = {"distributed.admin.large-graph-warning-threshold": "1GB"}


@dataclass(slots=True)
class Attendance:
    """Which workers are there, and how many have ended."""

    present: set[str] = field(default_factory=set)  # addresses at the last look
    n_most: int = 0  # at once
    n_ended: int = 0
    has_warned: bool = False  # the user knows that many ended

    def look(self, workers: set[str]) -> None:
        n_gone = len(self.present - workers)
        self.n_ended += n_gone
        WORK["workers lost"].add(n_gone)
        self.n_most = max(self.n_most, len(workers))
        self.present = workers


class DaskEngine:
    """Tasks on a Dask cluster.

    Files are read by the workers. Rows in memory are sent to them once and stay; should their
    worker go, they are sent again. What tasks need beside rows is itself the result of a task, so
    that the scheduler can make it again.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._sent: dict[Any, Any] = {}  # (what, first row, last) → a future of rows on a worker
        self._whose: tuple[Any, ...] = ()  # the source, numbers and spans they belong to
        self._workers = Attendance()

    @property
    def n_workers(self) -> int:
        with self._readable_errors():
            return max(sum(self.client.nthreads().values()), 1)

    def rows(
        self, task: Any, source: Any, along: Any, spans: Iterable[tuple[int, int]]
    ) -> Iterator[Any]:
        """The task on each span of rows."""
        spans = list(spans)
        with self._readable_errors():
            held = self._hold(pack(task))
            reads_itself = travels(source)
            own = self._hold(pack(source)) if reads_itself else None
            self._forget_others(source, along, spans)

            def submit(span: tuple[int, int]) -> Any:
                rows = own if reads_itself else self._send("rows", source.read, span)
                cut = None if along is None else self._send("along", _cut(along), span)
                name = f"{getattr(task, 'stage', 'rows')}-{span[0]}-{span[1]}".replace(" ", "_")
                return self._submit(name, run_rows, held, rows, cut, *span)

            yield from self._in_order(submit, spans)

    def jobs(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """A function of each item."""
        with self._readable_errors():
            held = self._hold(pack(function))
            yield from self._in_order(
                lambda item: self._submit("mercer-job", run_job, held, pack(item)), items
            )

    def close(self) -> None:
        """Release rows that workers hold; the cluster stays its owner's."""
        self._sent.clear()
        self._whose = ()

    def _in_order(self, submit: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        futures = Futures(submit, self._wait, _is_lost, self._demand_scheduler, self._cancel)
        return results_in_order(futures, items, WINDOW * self.n_workers)

    def _submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        key = f"{name}-{secrets.token_hex(8)}"  # dashboards show what stands before the numbers
        return self.client.submit(function, *arguments, key=key, pure=False)

    def _hold(self, parcel: Parcel) -> Any:
        """A parcel on the cluster, as a task that can be run again wherever it is needed."""
        with dask.config.set(GRAPH_WARNING):
            return self.client.submit(_same, parcel, key=f"mercer-parcel-{parcel.key}")

    def _send(self, what: str, read: Callable[[int, int], Any], span: tuple[int, int]) -> Any:
        """Rows (or their numbers) on a worker; sent if they are not there, or no longer."""
        future = self._sent.get((what, *span))
        if future is None or _is_lost(future):
            future = self._sent[(what, *span)] = self._scatter(RowBlock(span[0], read(*span)))
        return future

    def _scatter(self, block: RowBlock) -> Any:
        """Send rows to some worker; if that one dies on receiving them, to another."""
        for _ in range(RETRIES):
            try:
                return self.client.scatter(block, hash=False)
            except (OSError, CancelledError):  # CommClosedError is one
                self._demand_scheduler()
                time.sleep(LOOK_SECONDS)  # until the scheduler has noticed
        return self.client.scatter(block, hash=False)

    def _forget_others(self, source: Any, along: Any, spans: list[tuple[int, int]]) -> None:
        """Workers hold the rows of one source in one cut."""
        whose = (source, along, spans)
        if len(self._whose) != len(whose) or not (
            self._whose[0] is source and self._whose[1] is along and self._whose[2] == spans
        ):
            self.close()
            self._whose = whose

    def _wait(self, future: Any) -> Any:
        """The result, while checking that scheduler and workers are still there."""
        alone_since: float | None = None
        n_before = self._workers.n_ended
        while True:
            try:
                return future.result(timeout=LOOK_SECONDS)
            except KilledWorker as error:
                raise EngineError(_killed(error)) from error
            except (CancelledError, CommClosedError, TimeoutError) as error:
                if future.status == "error":  # the task's own; or it came just after the timeout
                    return future.result()
                self._demand_scheduler()
                if not isinstance(error, TimeoutError):
                    raise LostWorkerError("a worker went away with its rows") from error
                workers = set(self.client.nthreads())
                self._count_losses(workers, n_before)
                alone_since = self._look_for_workers(workers, alone_since)

    def _count_losses(self, workers: set[str], n_before: int) -> None:
        """Refuse to wait for a result while all workers end, are restarted and end again.

        The scheduler blames a task only for workers that ran it; those that end beside it (of the
        memory that modules and other tasks take) would be restarted for ever.
        """
        self._workers.look(workers)
        n_ended, patience = self._workers.n_ended - n_before, RETRIES * self._workers.n_most
        if n_ended > max(patience, RETRIES):
            raise EngineError(
                f"{n_ended} Dask workers ended while one result was waited for, and it did not "
                f"come; {CAUSE}"
            )
        if self._workers.n_ended > max(patience, MANY) and not self._workers.has_warned:
            self._workers.has_warned = True
            warn_of_losses(self._workers.n_ended)

    def _look_for_workers(self, workers: set[str], alone_since: float | None) -> float | None:
        """Warn, once, where there has been no worker for long; one may still come."""
        now = time.monotonic()
        if workers:
            return None
        if alone_since is None:
            return now
        if now - alone_since < PATIENCE_SECONDS:
            return alone_since
        warn(
            "the Dask cluster has had no workers for "
            f"{PATIENCE_SECONDS:.0f} s; waiting for one (Ctrl-C stops this)"
        )
        return float("inf")

    def _demand_scheduler(self) -> None:
        if self.client.status != "running":
            raise _gone(f"the client is {self.client.status}")

    def _cancel(self, futures: list[Any]) -> None:
        if futures and self.client.status == "running":
            self.client.cancel(futures)

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Errors of the network as an EngineError that says what to do."""
        self._demand_scheduler()
        try:
            yield
        except (CommClosedError, CancelledError) as error:
            self._demand_scheduler()
            raise _gone(str(error)) from error  # the client itself does not know it yet


def _gone(found: str) -> EngineError:
    return EngineError(
        f"the Dask scheduler is gone or cannot be reached any more ({found}): start the cluster "
        "again; inside mercer.checkpoint(folder) the passes that were complete are not run again"
    )


def _same(parcel: Parcel) -> Parcel:
    return parcel


def _cut(along: Any) -> Callable[[int, int], Any]:
    return lambda start, stop: along[start:stop]


def _is_lost(future: Any) -> bool:
    return future.status in ("cancelled", "lost")


def _killed(error: KilledWorker) -> str:
    last = getattr(error.last_worker, "address", "unknown")
    return (
        f"{error.allowed_failures + 1} Dask workers died while they worked on the same rows "
        f"(task {_task_words(str(error.task))}; the last worker was {last}); {CAUSE}"
    )


def _task_words(key: str) -> str:
    """A task by its stage and rows, as its key names them."""
    stage, *numbers = key.rsplit("-", 3)
    if len(numbers) < 3 or not all(number.isdecimal() for number in numbers[:2]):
        return key
    return f"{stage.replace('_', ' ')}, rows {int(numbers[0]):,} to {int(numbers[1]):,}"
