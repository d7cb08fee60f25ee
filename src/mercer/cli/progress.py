"""How far the work is: a bar on a terminal, lines in a log otherwise. All on standard error."""

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

from mercer._progress import listening

__all__ = ["Bar", "LogLines", "progress", "rich_progress"]


@contextmanager
def progress(*, quiet: bool = False, unit: str = "rows") -> Iterator[None]:
    """Inside, whoever watches standard error sees how far the work is, in rows or other units."""
    if quiet:
        yield
    elif sys.stderr.isatty():
        with rich_progress(Console(stderr=True), unit) as shown, listening(Bar(shown)):
            yield
    else:
        with listening(LogLines(unit=unit)):
            yield


class Bar:
    """A listener that shows the present stage as a bar with its rate and remaining time."""

    def __init__(self, shown: Progress) -> None:
        self.shown = shown
        self.stage = ""
        self.task: TaskID | None = None
        self.done = 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self.task is None or stage != self.stage or done < self.done:  # each sweep anew
            if self.task is not None:
                self.shown.remove_task(self.task)
            self.task = self.shown.add_task(stage, total=total or None)
        self.stage, self.done = stage, done
        self.shown.update(self.task, completed=done, total=total or None)


class LogLines:
    """A listener that writes a line for each stage, and one every few seconds within it."""

    def __init__(self, interval: float = 5.0, unit: str = "rows") -> None:
        self.interval = interval
        self.unit = unit
        self.start = time.monotonic()
        self.last = self.start
        self.stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage == self.stage and now - self.last < self.interval:
            return
        self.stage, self.last = stage, now
        amount = f": {done:,} of {total:,} {self.unit}" if done else ""
        sys.stderr.write(f"mercer [{now - self.start:7.1f} s] {stage}{amount}\n")
        sys.stderr.flush()


class PaceColumn(ProgressColumn):
    """How much of the stage is done, at which rate, and how long the rest will take."""

    def __init__(self, unit: str = "rows", **options: Any) -> None:
        super().__init__(**options)
        self.unit = unit

    def render(self, task: Task) -> Text:
        if task.total is None or not task.completed or not task.elapsed:
            return Text("")
        rate = task.completed / task.elapsed
        left = timedelta(seconds=ceil((task.total - task.completed) / rate))
        speed = f"{rate:,.{0 if rate >= 10 else 1}f} {self.unit}/s"
        pace = f"{task.percentage:3.0f} %  {speed}  {left} left"
        return Text(pace, no_wrap=True, overflow="ellipsis")


def rich_progress(console: Console, unit: str = "rows") -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<11}"),
        BarColumn(bar_width=20),
        PaceColumn(unit, table_column=Column(no_wrap=True)),
        console=console,
        transient=True,
    )
