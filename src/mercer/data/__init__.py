"""Rows of X, wherever they are, as row blocks."""

from __future__ import annotations

from mercer.data.inputs import as_source
from mercer.data.source import TILE, Source, spans
from mercer.data.zarrs import ZarrSource

__all__ = ["TILE", "Source", "ZarrSource", "as_source", "spans"]
