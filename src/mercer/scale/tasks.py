"""What runs on a worker, whoever started it."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from mercer._run.budget import give_back
from mercer._run.frozen import frozen
from mercer._run.threads import SharedState, single_threaded_blas
from mercer._run.types import FloatArray
from mercer.rows.rows import Rows, part
from mercer.scale.parcels import Parcel, pack

KEPT_TASKS = 4  # that stay ready to run
TRIM_VARIABLE = "MALLOC_TRIM_THRESHOLD_"
TRIM, MAP = -1, -3  # what mallopt calls the thresholds (malloc.h)
TRIM_BYTES, MAP_BYTES = 2**28, 2**25
USUAL_MAP_BYTES = 2**17
KEEP_MEMORY = {  # the environment of workers of our own: glibc reads it when they start
    TRIM_VARIABLE: str(TRIM_BYTES),
    "MALLOC_MMAP_THRESHOLD_": str(MAP_BYTES),
}


@frozen
class RowBlock:
    """Some consecutive rows (or numbers, one for each), by their numbers in the whole."""

    first: int
    rows: Rows

    def read(self, start: int, stop: int) -> Rows:
        return part(self.rows, start - self.first, stop - self.first)

    def __getitem__(self, span: slice) -> FloatArray:
        values: FloatArray = self.read(span.start, span.stop)
        return values


def run_rows(task: Parcel, source: Any, along: Any, start: int, stop: int) -> Any:
    """A task on a block of rows; a source in a parcel is opened here: its position is its own."""
    with _errors_that_travel(), single_threaded_blas(), _calm_allocator():
        function = _ready(task)
        return function(_opened(source), _opened(along), start, stop)


def run_job(function: Parcel, item: Any) -> Any:
    """A function of one item in a parcel: an error in opening it is an error of the task."""
    with _errors_that_travel(), single_threaded_blas(), _calm_allocator():
        return _ready(function)(_opened(item))


@contextmanager
def _errors_that_travel() -> Iterator[None]:
    """An error that cannot be pickled and opened again would end the pool that waits for it."""
    try:
        yield
    except Exception as error:
        if _travels(error):
            raise
        raise RuntimeError(f"{type(error).__name__}: {error}") from None


def _travels(error: Exception) -> bool:
    try:
        pack(error).open()
    except Exception:  # whatever its constructor makes of what it is given
        return False
    return True


def _opened(value: Any) -> Any:
    return value.open() if isinstance(value, Parcel) else value


class _ReadyTasks:
    """The last few tasks, made ready once for all blocks of rows."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tasks: OrderedDict[str, Callable[..., Any]] = OrderedDict()

    def get(self, task: Parcel) -> Callable[..., Any]:
        with self.lock:
            if task.key not in self.tasks:
                value = task.open()
                self.tasks[task.key] = value.ready() if hasattr(value, "ready") else value
                while len(self.tasks) > KEPT_TASKS:
                    self.tasks.popitem(last=False)
            self.tasks.move_to_end(task.key)
            return self.tasks[task.key]


def _calm_allocator() -> AbstractContextManager[None]:
    """Keep freed memory at hand while tasks run, where the environment asks to return it at once.

    Dask's nanny sets MALLOC_TRIM_THRESHOLD_ to 64 kB, and every array of a tile is then returned
    to the system and asked for again: a third of the time. After the last task the memory goes.
    """
    asked = os.environ.get(TRIM_VARIABLE, "") if sys.platform == "linux" else ""
    is_low = asked.isdigit() and int(asked) < TRIM_BYTES
    return _kept_memory() if is_low else nullcontext()


def _keep_memory() -> None:
    _set_thresholds(TRIM_BYTES, MAP_BYTES)


def _return_memory() -> None:
    _set_thresholds(int(os.environ[TRIM_VARIABLE]), USUAL_MAP_BYTES)
    give_back()


def _set_thresholds(trim: int, map_: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(TRIM, trim)
        mallopt(MAP, map_)


_ready = _ReadyTasks().get
_kept_memory = SharedState(_keep_memory, _return_memory)
