"""What a person looks at after a fit."""

from __future__ import annotations

from mercer.report.report import Recorder, Report, Stage
from mercer.report.trust import Evidence, Trust

__all__ = ["Evidence", "Recorder", "Report", "Stage", "Trust"]
