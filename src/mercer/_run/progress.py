"""Progress of long work, reported to a listener; silent by default."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TypeAlias

from mercer._run.setting import setting

Listener: TypeAlias = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("mercer_progress", default=None)


def tell(stage: str, done: int, total: int) -> None:
    """Report progress of a stage; 0 of 0 announces one whose length is not known."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)


def listening(listener: Listener | None) -> AbstractContextManager[None]:
    """Inside, `listener(stage, done, total)` is called as work goes on (None keeps the outer)."""
    return setting(_listener, listener or _listener.get())


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
