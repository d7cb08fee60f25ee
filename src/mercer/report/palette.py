"""Colours of clusters, distinguishable with any colour vision, on light and dark backgrounds.

Chosen by a search for the largest least distance (OKLab) of any two as seen with normal sight and
with each of three deficiencies (Machado 2009): 0.10 for the first eight, 0.06 for all twelve.
"""

from __future__ import annotations

from collections.abc import Sequence

LIGHT = (
    *("#2d75e8", "#c8790f", "#4e6e46", "#a33f94", "#74b3ee", "#cbac12"),
    *("#850c09", "#350d80", "#609e67", "#b56188", "#854809", "#8773c8"),
)
DARK = (
    *("#92a4ec", "#e9a63d", "#15d2a8", "#d76aa5", "#b6e9e3", "#f2d64b"),
    *("#d6460d", "#a372f6", "#a8db90", "#d6c4f6", "#c59151", "#b9b0d5"),
)
LIGHT_REST, DARK_REST = "#9aa0a8", "#6b727c"  # all clusters after the twelve largest


def color_of(cluster: int, palette: Sequence[str] = LIGHT, rest: str = LIGHT_REST) -> str:
    return palette[cluster] if 0 <= cluster < len(palette) else rest
