"""What a fit would take, before it: passes, bytes, blocks, memory, minutes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from mercer._run.budget import human_bytes
from mercer._run.printable import printable


@dataclass(frozen=True, slots=True)
class PlannedPass:
    """Reading all rows (or the sampled ones, wherever they stand), once or a few times."""

    stage: str
    least: int  # times at least ...
    most: int  # ... and at most: some passes stop when nothing moves any more
    n_bytes: int  # read each time, as numbers: compressed files have fewer
    seconds: float  # each time


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of one fit, foretold."""

    estimator: str
    source: str
    n_rows: int
    n_features: int
    dtype: str
    sample_rows: int  # rows that choose pivots and centres
    block_rows: int  # rows read at a time
    n_blocks: int
    passes: tuple[PlannedPass, ...]
    memory: int  # bytes that Mercer will hold at most, about
    max_memory: int  # bytes it may
    sample_seconds: float  # of the work on the rows that choose
    calibration: str  # what was measured, in words

    @property
    def n_passes(self) -> tuple[int, int]:
        """Times that all rows are read: at least, at most."""
        return sum(p.least for p in self.passes), sum(p.most for p in self.passes)

    @property
    def bytes_read(self) -> tuple[int, int]:
        """Bytes read, as numbers: at least, at most."""
        least = sum(p.least * p.n_bytes for p in self.passes)
        return least, sum(p.most * p.n_bytes for p in self.passes)

    @property
    def seconds(self) -> tuple[float, float]:
        """Expected time: at least, at most."""
        least = sum(p.least * p.seconds for p in self.passes)
        most = sum(p.most * p.seconds for p in self.passes)
        return least + self.sample_seconds, most + self.sample_seconds

    @property
    def minutes(self) -> tuple[float, float]:
        least, most = self.seconds
        return least / 60, most / 60

    def to_dict(self) -> dict[str, Any]:
        totals = ("n_passes", "bytes_read", "seconds", "minutes")
        return asdict(self) | {name: list(getattr(self, name)) for name in totals}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        lines = [
            f"{self.estimator}: {self.n_rows:,} rows × {self.n_features:,} columns, {self.dtype}",
            f"  source     {self.source}",
            f"  blocks     {self.n_blocks:,} of {self.block_rows:,} rows; "
            f"{self.sample_rows:,} rows choose",
            f"  memory     {human_bytes(self.memory)} of {human_bytes(self.max_memory)}",
            f"  passes     {_range(*self.n_passes)}",
            *(
                f"    {p.stage:<14} {_range(p.least, p.most):>4} × "
                f"{human_bytes(p.n_bytes):>8}, {_time(p.seconds)}"
                for p in self.passes
            ),
            f"  read       {_span(*self.bytes_read, human_bytes)}",
            f"  expected   {_span(*self.seconds, _time)}, {_time(self.sample_seconds)} of it on "
            "the rows that choose",
            f"  measured   {self.calibration}",
        ]
        return "\n".join(printable(line, keep="") for line in lines)


def _range(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least}–{most}"


def _span(least: float, most: float, words: Any) -> str:
    low, high = words(least), words(most)
    return str(low) if low == high else f"{low} to {high}"


def _time(seconds: float) -> str:
    if seconds < 1:
        return f"{max(seconds, 0.01):.2f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
