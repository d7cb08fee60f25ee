"""Progress on standard error: a bar on a terminal, lines in a log otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from math import ceil
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.table import Column
from rich.text import Text

from mercer._run.progress import listening

PATIENCE = 2.0  # seconds of work before the first line, if there is no terminal
WIDE = 70  # columns from which a bar fits beside the text


@contextmanager
def progress(*, quiet: bool = False, unit: str = "rows") -> Iterator[None]:
    """Inside, progress is shown on standard error, in rows or other units.

    If standard error is not a terminal, short work is silent and long work writes lines.
    """
    if quiet:
        yield
    elif sys.stderr.isatty():
        with rich_progress(Console(stderr=True), unit) as shown, listening(Bar(shown)):
            yield
    else:
        with listening(LogLines(unit=unit)):
            yield


class Bar:
    """A listener that shows the current stage as a bar with its rate and remaining time."""

    def __init__(self, shown: Progress) -> None:
        self.shown = shown
        self.stage = ""
        self.task: TaskID | None = None
        self.done = 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self.task is None or stage != self.stage or done < self.done:  # a new sweep
            if self.task is not None:
                self.shown.remove_task(self.task)
            self.task = self.shown.add_task(stage, total=total or None)
        self.stage, self.done = stage, done
        self.shown.update(self.task, completed=done, total=total or None)


class LogLines:
    """A listener that writes a line for each stage, and one every few seconds within it.

    Work that ends within `patience` seconds writes nothing.
    """

    def __init__(
        self, interval: float = 5.0, unit: str = "rows", patience: float | None = None
    ) -> None:
        self.interval = interval
        self.unit = unit
        self.patience = PATIENCE if patience is None else patience
        self.start = time.monotonic()
        self.stage = self.last_stage = ""
        self.done = 0
        self.sweep_start = self.last = self.start  # of this sweep; of the last line

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage != self.stage or done < self.done:
            self.sweep_start = now
        self.stage, self.done = stage, done
        is_due = stage != self.last_stage or now - self.last >= self.interval
        if not is_due or now - self.start < self.patience:
            return
        self.last_stage, self.last = stage, now
        whole = f" of {total:,}" if total else ""
        amount = f": {done:,}{whole} {self.unit}" if done else ""
        rest = pace(done, total, now - self.sweep_start, self.unit)
        sys.stderr.write(
            f"mercer [{now - self.start:7.1f} s] {stage}{amount}{rest and ', '}{rest}\n"
        )
        sys.stderr.flush()


def pace(done: int, total: int | None, elapsed: float, unit: str) -> str:
    """The rate, and the remaining time where the total is known, once they can be estimated."""
    if not done or elapsed <= 0:
        return ""
    rate = done / elapsed
    left = f", {timedelta(seconds=ceil(max(total - done, 0) / rate))} left" if total else ""
    return f"{rate:,.{0 if rate >= 10 else 1}f} {unit}/s{left}"


class PaceColumn(ProgressColumn):
    """The share of the stage that is done, its rate and the remaining time."""

    def __init__(self, unit: str = "rows", **options: Any) -> None:
        super().__init__(**options)
        self.unit = unit

    def render(self, task: Task) -> Text:
        words = pace(int(task.completed), int(task.total or 0), task.elapsed or 0.0, self.unit)
        done = f"{task.percentage:3.0f} %" if task.total else f"{int(task.completed):,} {self.unit}"
        return Text(
            f"{done}  " * bool(words) + words.replace(", ", "  "), no_wrap=True, overflow="ellipsis"
        )


def rich_progress(console: Console, unit: str = "rows") -> Progress:
    bar = [BarColumn(bar_width=20)] if console.width >= WIDE else []
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<11}"),
        *bar,
        PaceColumn(unit, table_column=Column(no_wrap=True)),
        console=console,
        transient=True,
    )
