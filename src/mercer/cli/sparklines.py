"""Numbers as a line of bars, for terminals."""

from __future__ import annotations

import sys
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
PLAIN = "_.:-=+*#"  # where the terminal cannot show bars


def sparkline(values: Sequence[float], most: int = 60) -> str:
    """One bar for each of the first values, as high as the value, from 0 to the largest."""
    bars = _bars()
    largest = max((value for value in values if value > 0), default=0.0)
    if largest == 0.0:
        return bars[0] * min(len(values), most)
    places = (int(max(value, 0.0) / largest * (len(bars) - 1) + 0.5) for value in values[:most])
    return "".join(bars[place] for place in places)


def bar(share: float, width: int = 10) -> str:
    """A horizontal bar of this share of a width."""
    full = _bars()[-1]
    return (full * max(round(share * width), 1)).ljust(width)


def _bars() -> str:
    """Bars that standard output can encode."""
    try:
        BARS.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BARS
