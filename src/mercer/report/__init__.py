"""What a person looks at after a fit."""

from __future__ import annotations

from mercer.report.report import Recorder, Report, Stage

__all__ = ["Recorder", "Report", "Stage"]
