"""Progress of long work, reported to a listener; silent by default."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

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


@contextmanager
def telling_only(stage: str) -> Iterator[Callable[[int], None]]:
    """Inside, only this stage of unknown length is told, by the function that is given."""
    listener = _listener.get()

    def tell_done(done: int) -> None:
        if listener is not None:
            listener(stage, done, 0)

    tell_done(0)
    with listening(lambda stage, done, total: None):
        yield tell_done


def shown(verbose: object) -> Listener | None:
    """What shows progress where `verbose` asks for it: a bar in notebooks, lines elsewhere."""
    if not verbose:
        return None
    return (NotebookBar.if_possible() if is_notebook() else None) or LineWriter()


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


class NotebookBar:
    """A listener that shows the current stage as a bar of tqdm."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make
        self.stage = ""
        self.bar: Any = None

    @classmethod
    def if_possible(cls) -> NotebookBar | None:
        try:
            from tqdm import tqdm
        except ImportError:
            return None
        return cls(tqdm)

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self.bar is None or stage != self.stage or done < self.bar.n:
            if self.bar is not None:
                self.bar.close()
            self.bar = self.make(desc=stage, total=total or None, unit=" rows", leave=False)
        self.stage = stage
        self.bar.total = total or None
        self.bar.update(done - self.bar.n)


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
