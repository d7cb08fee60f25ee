"""The page of paper 004's images, from stored numbers."""

from __future__ import annotations

from typing import Any

from benchmarks.papers.paper_004_images import table


def page(found: dict[str, Any], name: str) -> str:
    return table(found)
