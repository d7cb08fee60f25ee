"""What a person looks at after a fit."""

from __future__ import annotations

from mercer.report.plan import Plan, PlannedPass
from mercer.report.report import Recorder, Report, Stage

__all__ = ["Plan", "PlannedPass", "Recorder", "Report", "Stage"]
