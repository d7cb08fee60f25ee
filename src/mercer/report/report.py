"""The fit report: stages, rank, error, bandwidth and why, quality, trust and warnings."""

from __future__ import annotations

import json
from dataclasses import asdict, field
from typing import Any

from mercer._run.frozen import frozen
from mercer._run.recorder import Stage
from mercer.partitions.quality import Quality
from mercer.rows.data_summary import DataSummary
from mercer.trust.grade import Trust


@frozen
class Report:
    """The fit report, kept by every estimator as ``report_``; ``print`` shows it.

    Attributes
    ----------
    estimator : str
        The estimator with its parameters.
    n_rows, n_features, n_distinct : int
        Rows and columns of X, and distinct rows of the sample.
    dtype : str
        The type of the numbers of X.
    kernel, bandwidth : str
        The kernel, and how its gamma was chosen.
    approximation : str
        The name of the approximation.
    rank : int
        Its pivots, landmarks, grids, features or representatives.
    trace_error : float or None
        trace(K - F Fᵀ) / trace(K); None for graphs.
    cluster_weights : tuple of float
        The total weight of each cluster, largest first.
    stages : tuple of Stage
        Time and memory of each step.
    inertia : float or None
        The k-means objective.
    n_iter, n_full_sweeps : int
        Sweeps of k-means, and those over all rows after the centres were found on a sample.
    notes, warnings : tuple of str
        What was decided, and what to be careful about.
    explained : float or None
        The share of Σ‖f‖² that the centres explain.
    eigenvalues, residuals : tuple of float
        The leading eigenvalues, and ‖A v - λ v‖ of each.
    solver : str
        The eigensolver that was used.
    gap : float or None
        (μ_{k+1} - μ_k) / μ_{k+1} with μ = 1 - λ, after the k-th eigenvalue.
    data : DataSummary or None
        Ranges, means and standard deviations of columns.
    quality : Quality or None
        How far the clusters stand apart.
    trust : Trust or None
        How reliable the clustering is, by evidence from a sample of its rows.
    stream : dict of str to float
        Additions, evictions, drift, … of a stream.
    work : dict of str to int
        Bytes of rows that were read from files, tasks of workers, tasks and requests that were
        sent again, and workers that were lost; only those that are not 0.
    """

    estimator: str
    n_rows: int
    n_features: int
    n_distinct: int
    dtype: str
    kernel: str
    bandwidth: str
    approximation: str
    rank: int
    trace_error: float | None
    cluster_weights: tuple[float, ...]
    stages: tuple[Stage, ...]
    inertia: float | None = None
    n_iter: int = 0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    explained: float | None = None
    n_full_sweeps: int = 0
    eigenvalues: tuple[float, ...] = ()
    residuals: tuple[float, ...] = ()
    solver: str = ""
    gap: float | None = None
    data: DataSummary | None = None
    quality: Quality | None = None
    trust: Trust | None = None
    stream: dict[str, float] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed in all stages."""
        return sum(stage.kernel_evaluations for stage in self.stages)

    @property
    def stability(self) -> float | None:
        """ARI of clusterings of two halves of a sample, if the evidence of trust includes it."""
        evidence = () if self.trust is None else self.trust.evidence
        return next((item.value for item in evidence if item.name == "resampling"), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, which `from_dict` reads."""
        return asdict(self)

    def to_record(self) -> dict[str, Any]:
        """The same, as short as model files hold it."""
        trust = None if self.trust is None else self.trust.to_record()
        return self.to_dict() | {"trust": trust}

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def to_markdown(self) -> str:
        """A Markdown document with tables."""
        from mercer.report.render import as_markdown

        return as_markdown(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from mercer.report.render import as_card

        return as_card(self)

    def __str__(self) -> str:
        from mercer.report.render import as_text

        return as_text(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        """The report of a model file; fields that older files lack have their defaults."""
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
