"""Threads over tiles: BLAS keeps to one thread inside a tile, results come back in order."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Threads meant by `n_jobs`: None is 1 unless joblib's context says otherwise."""
    return max(int(joblib.effective_n_jobs(n_jobs)), 1)


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """``map`` by a few threads; results in the order of the items, few held at a time."""
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class SharedState:
    """State of the process that the first caller inside sets and the last one restores.

    Concurrent callers share one count. In a child of a fork nobody is inside.
    """

    def __init__(self, start: Callable[[], None], end: Callable[[], None]) -> None:
        self.start, self.end = start, end
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if self.inside == 0:
                self.start()
            self.inside += 1  # last: an interrupt before leaves the count right
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                if self.inside == 0:
                    self.end()


class _BlasLimit:
    """BLAS limited to one thread, which is a property of the process."""

    def __init__(self) -> None:
        self.controller: Any = None
        self.limiter: Any = None

    def start(self) -> None:
        if self.controller is None:
            import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)
            from threadpoolctl import ThreadpoolController

            self.controller = ThreadpoolController()
        _take_control()
        self.limiter = self.controller.limit(limits=1, user_api="blas")

    def end(self) -> None:
        _take_control()
        self.limiter.restore_original_limits()


def _take_control() -> None:
    """Let this thread set the limit: newer threadpoolctl obeys only the first one that ever did."""
    import threadpoolctl

    openblas: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(openblas, "clear_controlling_thread"):
        openblas.clear_controlling_thread(force=True)


_limit = _BlasLimit()
_limited_blas = SharedState(_limit.start, _limit.end)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Inside, a matrix product uses one thread: its bits do not depend on the core count.

    Similarities may underflow to 0, whatever numpy's error state of the caller; and Ctrl-C in a
    compiled loop, which numba turns into a SystemError, is raised as KeyboardInterrupt.
    """
    try:
        with _limited_blas(), np.errstate(under="ignore"):
            yield
    except SystemError as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        raise


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is among the causes of this error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None
