"""What happened in a fit: stages, rank, error, bandwidth and why, and what to be careful about."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from mercer._memory import human_bytes
from mercer._progress import tell
from mercer.exceptions import MercerWarning

__all__ = ["Recorder", "Report", "Stage"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a fit."""

    name: str
    seconds: float  # by the clock
    cpu_seconds: float  # of all threads
    peak_memory: int  # bytes the process had held at most when the stage ended


@dataclass(frozen=True, slots=True)
class Report:
    """The story of one fit, in numbers and words."""

    estimator: str
    n_rows: int
    n_features: int
    n_distinct: int  # distinct rows that chose pivots and centres
    dtype: str
    kernel: str
    bandwidth: str  # how gamma came about
    approximation: str
    rank: int
    trace_error: float | None
    cluster_weights: tuple[float, ...]
    stages: tuple[Stage, ...]
    inertia: float | None = None
    n_iter: int = 0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    explained: float | None = None  # share of Σ‖f‖² that the centres explain
    n_full_sweeps: int = 0  # over all rows, where a sample chose the centres
    eigenvalues: tuple[float, ...] = ()
    residuals: tuple[float, ...] = ()  # ‖A v - λ v‖ of each
    solver: str = ""
    stream: dict[str, float] = field(default_factory=dict)  # additions, evictions, drift …

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        """The report a model file holds."""
        names = ("cluster_weights", "notes", "warnings", "eigenvalues", "residuals")
        lists = {name: tuple(values.get(name, ())) for name in names}
        stages = tuple(Stage(**stage) for stage in values["stages"])
        return cls(**{**values, **lists, "stages": stages})

    def __str__(self) -> str:
        sizes = ", ".join(f"{weight:g}" for weight in self.cluster_weights[:12])
        more = ", …" if len(self.cluster_weights) > 12 else ""
        error = "unknown" if self.trace_error is None else f"{self.trace_error:.3g} of the trace"
        lines = [
            f"{self.estimator}: {self.n_rows:,} rows × {self.n_features:,} columns, {self.dtype}",
            f"  kernel         {self.kernel}; {self.bandwidth}",
            f"  approximation  {self.approximation}: rank {self.rank}, error {error}",
        ]
        if self.cluster_weights:
            count = len(self.cluster_weights)
            lines.append(f"  clusters       {count} of weight {sizes}{more}")
        if self.inertia is not None:
            lines.append(f"  inertia        {self.inertia:.6g} after {self.n_iter} sweeps")
        if self.explained is not None:
            lines[-1] += f"; the centres explain {100 * self.explained:.0f} % of the kernel"
        if self.eigenvalues:
            values = ", ".join(f"{value:.4f}" for value in self.eigenvalues[:8])
            lines.append(f"  eigenvalues    {values}{', …' if len(self.eigenvalues) > 8 else ''}")
        if self.stream:
            words = ", ".join(f"{value:,.4g} {name}" for name, value in self.stream.items())
            lines.append(f"  stream         {words}")
        lines += [
            f"  {stage.name:<14} {stage.seconds:8.3f} s  (cpu {stage.cpu_seconds:.3f} s, "
            f"peak {human_bytes(stage.peak_memory)})"
            for stage in self.stages
        ]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


@dataclass(slots=True)
class Recorder:
    """Collects what a report tells while a fit goes on."""

    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is inside."""
        tell(name, 0, 0)
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.stages.append(
            Stage(name, time.perf_counter() - wall, time.process_time() - cpu, peak_memory())
        )

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def raise_warnings(self, stacklevel: int) -> None:
        """Tell the caller once, at the end, in one warning each."""
        for text in self.warnings:
            warnings.warn(text, MercerWarning, stacklevel=stacklevel + 1)


def peak_memory() -> int:
    """The most bytes this process has held, or 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
