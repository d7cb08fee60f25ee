"""What happened in a fit: stages, rank, error, bandwidth and why, and what to be careful about."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from mercer._run.budget import human_bytes
from mercer._run.printable import printable
from mercer._run.recorder import Stage
from mercer.partitions.quality import Quality
from mercer.rows.data_summary import DataSummary
from mercer.trust.grade import Trust


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
    gap: float | None = None  # (μ_{k+1} - μ_k) / μ_{k+1} with μ = 1 - λ, after the k-th eigenvalue
    data: DataSummary | None = None
    quality: Quality | None = None
    trust: Trust | None = None  # of a clustering, by evidence from a sample of its rows
    stream: dict[str, float] = field(default_factory=dict)  # additions, evictions, drift …

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def to_markdown(self) -> str:
        """The report as a page of Markdown, with tables."""
        from mercer.report.markdown import markdown

        return markdown(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from mercer.report.card import card

        return card(self)

    @property
    def kernel_evaluations(self) -> int:
        """Of all stages."""
        return sum(stage.kernel_evaluations for stage in self.stages)

    @property
    def stability(self) -> float | None:
        """ARI of clusters made from two halves of a sample, where the evidence of trust has it."""
        evidence = () if self.trust is None else self.trust.evidence
        return next((item.value for item in evidence if item.name == "resampling"), None)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        """The report a model file holds; what older files do not tell stays unknown."""
        names = ("cluster_weights", "notes", "warnings", "eigenvalues", "residuals")
        lists = {name: tuple(values.get(name, ())) for name in names}
        stages = tuple(Stage(**stage) for stage in values["stages"])
        parts = {"data": DataSummary, "quality": Quality, "trust": Trust}
        read = {
            name: part.from_dict(values[name])  # type: ignore[attr-defined]
            for name, part in parts.items()
            if values.get(name) is not None
        }
        return cls(**{**values, **lists, **read, "stages": stages})

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
        if self.gap is not None:
            lines[-1] += f"; relative gap {self.gap:.2f} after the clusters' own"
        if self.quality is not None and self.quality.separation is not None:
            where = f"on {self.quality.n_rows:,} rows; 1 is best"
            lines.append(f"  separation     {self.quality.separation:.2f} ({where})")
        if self.trust is not None:
            lines.append(f"  trust          {self.trust}")
        if self.stream:
            words = ", ".join(f"{value:,.4g} {name}" for name, value in self.stream.items())
            lines.append(f"  stream         {words}")
        lines += [
            f"  {stage.name:<14} {stage.seconds:8.3f} s  (cpu {stage.cpu_seconds:.3f} s, "
            f"peak {human_bytes(stage.peak_memory)}{_values(stage)})"
            for stage in self.stages
        ]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(printable(line, keep="") for line in lines)


def _values(stage: Stage) -> str:
    count = stage.kernel_evaluations
    return f", {count:,} kernel values" if count else ""
