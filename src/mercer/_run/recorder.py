"""What a fit records on its way: stages with their times, notes and warnings."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mercer._run.budget import give_back
from mercer._run.progress import tell
from mercer._run.tally import kernel_values
from mercer._run.warn import warn


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a fit."""

    name: str
    seconds: float  # by the clock
    cpu_seconds: float  # of all threads
    peak_memory: int  # bytes the process had held at most when the stage ended
    kernel_evaluations: int = 0  # values k(x, y) that the process computed as matrices meanwhile


@dataclass(slots=True)
class Recorder:
    """Collects what the fit report holds while a fit goes on."""

    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    gives_back: bool = False  # freed memory after each stage: worth its time for many rows

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is inside."""
        tell(name, 0, 0)
        wall, cpu, before = time.perf_counter(), time.process_time(), kernel_values.total
        yield
        if self.gives_back:
            give_back()  # freed memory that the C library keeps would add to what comes next
        self.stages.append(
            Stage(
                name,
                time.perf_counter() - wall,
                time.process_time() - cpu,
                peak_memory(),
                kernel_values.total - before,
            )
        )

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def raise_warnings(self) -> None:
        """Warn the caller at the end, once for each."""
        for text in self.warnings:
            warn(text)


def peak_memory() -> int:
    """The most bytes this process has held, or 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
