"""Calls in, results out in the same order; lost workers cost time and nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mercer._run.frozen import frozen
from mercer._run.tally import WORK
from mercer._run.warn import warn
from mercer.exceptions import EngineError

RETRIES = 3  # in a row without a result
MANY = 3 * RETRIES  # losses in one pass that deserve a warning, though results come in between
CAUSE = (
    "most often they ran out of memory: give workers more of it, use fewer of them, or lower "
    "max_memory, rank or the number of threads per worker"
)
_DONE: Any = object()


class LostWorkerError(Exception):
    """A worker went away with its task; the same call may be tried again."""


@frozen
class Futures:
    """How one kind of engine submits, waits, recovers and cancels."""

    submit: Callable[[Any], Any]  # call → future
    wait: Callable[[Any], Any]  # future → result; LostWorkerError where it may be tried again
    is_lost: Callable[[Any], bool]  # whether it ended without a result or an error of its own
    recover: Callable[[], None]  # after a loss, before calls are submitted again
    cancel: Callable[[list[Any]], None]


@dataclass(slots=True)
class Sent:
    call: Any
    future: Any


def results_in_order(futures: Futures, calls: Iterable[Any], window: int) -> Iterator[Any]:
    """The results of the calls; at most `window` of them are under way."""
    calls, waiting, losses, all_losses = iter(calls), deque[Sent](), 0, 0
    try:
        while True:
            while len(waiting) < window and (call := next(calls, _DONE)) is not _DONE:
                waiting.append(Sent(call, futures.submit(call)))
                WORK["tasks"].add(1)
            if not waiting:
                return
            try:
                result = futures.wait(waiting[0].future)
            except LostWorkerError as error:
                losses, all_losses = losses + 1, all_losses + 1
                WORK["workers lost"].add(1)
                if losses > RETRIES:
                    raise EngineError(_lost_words(error, waiting[0].call)) from error
                if all_losses == MANY:
                    warn_of_losses(all_losses)
                futures.recover()
                for sent in waiting:
                    if futures.is_lost(sent.future):
                        sent.future = futures.submit(sent.call)
                        WORK["tasks sent again"].add(1)
            else:
                waiting.popleft()
                losses = 0
                yield result
    finally:
        futures.cancel([sent.future for sent in waiting])


def _lost_words(error: Exception, call: Any) -> str:
    return f"workers ended {RETRIES + 1} times in a row on {block_words(call)} ({error}); {CAUSE}"


def block_words(call: Any) -> str:
    """Which rows a call is about, if its last arguments are the first row and the end."""
    numbers = call[-2:] if isinstance(call, tuple) else ()
    is_span = len(numbers) == 2 and all(isinstance(number, int) for number in numbers)
    return f"the rows {numbers[0]:,} to {numbers[1]:,}" if is_span else "the same work"


def warn_of_losses(count: int) -> None:
    """The work goes on, but every worker that ends costs time."""
    warn(f"workers have ended {count} times so far, and the work goes on without them; {CAUSE}")
