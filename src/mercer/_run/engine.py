"""What runs the passes over rows: this process, unless `mercer.on` names an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol

from mercer._run.lazy import LazyModule
from mercer._run.setting import setting
from mercer._run.threads import in_order

_futures = LazyModule("mercer.scale.futures")  # needs Dask, which whoever has a client has


class RowTask(Protocol):
    """What is done to a block of rows; picklable, and made ready where it runs."""

    def ready(self) -> Callable[[Any, Any, int, int], Any]:
        """A function of (source, one number per row or None, first row, last row + 1)."""
        ...


class Engine(Protocol):
    """Runs tasks elsewhere; results come back in order, whatever happens to the workers."""

    @property
    def n_workers(self) -> int:
        """How many tasks run at the same time."""
        ...

    def rows(
        self, task: RowTask, source: Any, along: Any, spans: Iterable[tuple[int, int]]
    ) -> Iterator[Any]:
        """The task on each span of the source's rows."""
        ...

    def jobs(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """A picklable function of each item."""
        ...


_engine: ContextVar[Engine | None] = ContextVar("mercer_engine", default=None)


def current() -> Engine | None:
    """The engine of this context; None is the plain loop."""
    return _engine.get()


def current_for(source: Any) -> Engine | None:
    """The engine of this context; without one, rows of a Dask collection stay on its cluster."""
    engine, client = _engine.get(), getattr(source, "client", None)
    if engine is not None or client is None:
        return engine
    own: Engine = _futures.DaskEngine(client)
    return own


def running(engine: Engine | None) -> AbstractContextManager[None]:
    """Inside, passes over rows run on this engine."""
    return setting(_engine, engine)


def each(function: Callable[[Any], Any], items: Iterable[Any], threads: int) -> Iterator[Any]:
    """A picklable function of each item, in order: by threads here, or by the engine's workers."""
    engine = current()
    return in_order(function, items, threads) if engine is None else engine.jobs(function, items)
