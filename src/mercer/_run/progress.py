"""Long work says how far it is, to whoever listens. Silent by default."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Listener: TypeAlias = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("mercer_progress", default=None)


def tell(stage: str, done: int, total: int) -> None:
    """Report progress of a stage; 0 of 0 announces one whose length is not known."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Inside, `listener(stage, done, total)` is called as work goes on (None keeps the outer)."""
    if listener is None:
        yield
        return
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class LineWriter:
    """A listener that writes lines to standard error, at most one a second for each stage."""

    def __init__(self) -> None:
        self.stage = ""
        self.last = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage == self.stage and now - self.last < 1.0:
            return
        self.stage, self.last = stage, now
        amount = f", {done:,} of {total:,} rows" if total else ""
        sys.stderr.write(f"mercer: {stage}{amount}\n")
