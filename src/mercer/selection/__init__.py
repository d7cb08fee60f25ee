"""Which bandwidth, how many clusters."""

from __future__ import annotations

from mercer.selection.compare import search
from mercer.selection.result import Selection

__all__ = ["Selection", "search"]
