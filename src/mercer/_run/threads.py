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


class _BlasLimit:
    """BLAS limited to one thread while at least one fit or predict is inside.

    The limit is a property of the process, not of a caller, so concurrent fits share one count:
    the first sets it, the last restores it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.controller: Any = None
        self.limiter: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                if self.controller is None:
                    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)
                    from threadpoolctl import ThreadpoolController

                    self.controller = ThreadpoolController()
                _take_control()
                self.limiter = self.controller.limit(limits=1, user_api="blas")
            self.inside += 1  # last: an interrupt before leaves the count right

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                _take_control()
                self.limiter.restore_original_limits()

    def forget(self) -> None:
        """In a child of a fork: whoever held the lock, or was inside, is not here."""
        self.lock = threading.Lock()
        self.inside = 0


def _take_control() -> None:
    """Let this thread set the limit: newer threadpoolctl heeds the first one that ever did."""
    import threadpoolctl

    openblas: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(openblas, "clear_controlling_thread"):
        openblas.clear_controlling_thread(force=True)


_blas_limit = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limit.forget)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Inside, a matrix product uses one thread: its bits do not depend on the core count.

    Similarities that underflow to 0 are what they should be, whatever the caller told numpy; and
    Ctrl-C in a compiled loop, which numba turns into a SystemError, leaves as what it is.
    """
    _blas_limit.enter()
    try:
        with np.errstate(under="ignore"):
            yield
    except SystemError as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        raise
    finally:
        _blas_limit.leave()


def _was_interrupted(error: BaseException | None) -> bool:
    """Is Ctrl-C among the causes of this error?"""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None
