"""The fit report in all its forms, and plots of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer._run.recorder import Recorder, Stage
from mercer.partitions.quality import Quality
from mercer.plan.plan import Plan, PlannedPass
from mercer.report.facts import Fact, list_facts
from mercer.report.report import Report
from mercer.rows.data_summary import Column, DataSummary
from mercer.trust.grade import Evidence, Trust

if TYPE_CHECKING:
    from mercer.report.pages import page, report_page, write_page
    from mercer.report.plot import EmbeddingDisplay, SpectrumDisplay, TuningDisplay
    from mercer.report.view import View, gather

__all__ = [
    "Column",
    "DataSummary",
    "EmbeddingDisplay",
    "Evidence",
    "Fact",
    "Plan",
    "PlannedPass",
    "Quality",
    "Recorder",
    "Report",
    "SpectrumDisplay",
    "Stage",
    "Trust",
    "TuningDisplay",
    "View",
    "gather",
    "list_facts",
    "page",
    "report_page",
    "write_page",
]

_HOMES = {  # loaded on first use: estimators need only the report
    "mercer.report.pages": ("page", "report_page", "write_page"),
    "mercer.report.plot": ("EmbeddingDisplay", "SpectrumDisplay", "TuningDisplay"),
    "mercer.report.view": ("View", "gather"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        from importlib import import_module

        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'mercer.report' has no attribute {name!r}")
