"""What a fit records on its way: stages with their times, notes and warnings."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mercer._run.budget import give_back
from mercer._run.frozen import frozen
from mercer._run.progress import tell
from mercer._run.tally import kernel_values, work_so_far
from mercer._run.warn import warn

log = logging.getLogger(__name__)


@frozen
class Stage:
    """One step of a fit.

    Attributes
    ----------
    name : str
        Name of the step.
    seconds, cpu_seconds : float
        Wall-clock time, and CPU time of all threads.
    peak_memory : int
        Peak memory of the process in bytes when the step ended.
    kernel_evaluations : int
        Number of kernel values k(x, y) computed as matrices.
    """

    name: str
    seconds: float
    cpu_seconds: float
    peak_memory: int
    kernel_evaluations: int = 0


@dataclass(slots=True)
class Recorder:
    """Collects what the fit report holds while a fit goes on."""

    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    gives_back: bool = False  # freed memory after each stage: worth its time for many rows
    before: dict[str, int] = field(default_factory=work_so_far)

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
                round(time.perf_counter() - wall, 5),
                round(time.process_time() - cpu, 5),
                peak_memory(),
                kernel_values.total - before,
            )
        )
        done = self.stages[-1]
        log.info("%s: %.3f s, %.3f s of CPU time", name, done.seconds, done.cpu_seconds)

    def work(self) -> dict[str, int]:
        """What was read from files and done by workers since this record began, if anything."""
        spent = {name: total - self.before[name] for name, total in work_so_far().items()}
        return {name: count for name, count in spent.items() if count}

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def raise_warnings(self) -> None:
        """Warn the caller at the end, once for each."""
        for text in self.warnings:
            warn(text)


def joined(earlier: Iterable[Stage], later: Iterable[Stage]) -> tuple[Stage, ...]:
    """The stages of several calls; those of one name are added up."""
    found: dict[str, Stage] = {}
    for stage in (*earlier, *later):
        so_far = found.get(stage.name, Stage(stage.name, 0.0, 0.0, 0))
        found[stage.name] = Stage(
            stage.name,
            round(so_far.seconds + stage.seconds, 5),
            round(so_far.cpu_seconds + stage.cpu_seconds, 5),
            max(so_far.peak_memory, stage.peak_memory),
            so_far.kernel_evaluations + stage.kernel_evaluations,
        )
    return tuple(found.values())


def peak_memory() -> int:
    """The most bytes this process has held, or 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
