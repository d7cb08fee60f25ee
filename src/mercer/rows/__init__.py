"""Rows of X, wherever they are, as row blocks."""

from __future__ import annotations

from mercer.rows.inputs import as_source
from mercer.rows.source import TILE, Source, spans
from mercer.rows.zarrs import ZarrSource

__all__ = ["TILE", "Source", "ZarrSource", "as_source", "spans"]
