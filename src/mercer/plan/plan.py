"""What a fit will cost: passes over the rows, bytes, blocks, memory, minutes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from mercer._run.budget import human_bytes
from mercer._run.frozen import frozen
from mercer._run.printable import printable


@frozen
class PlannedPass:
    """A pass over all rows (or over the sampled ones, wherever they are), once or a few times.

    Attributes
    ----------
    stage : str
        The stage of the fit.
    least, most : int
        How often it runs: some passes stop when nothing changes any more.
    n_bytes : int
        Bytes read each time, as numbers in memory: compressed files are smaller.
    seconds : float
        Expected time of each.
    """

    stage: str
    least: int
    most: int
    n_bytes: int
    seconds: float


@frozen
class Plan:
    """The expected cost of one fit; ``print`` shows it.

    Attributes
    ----------
    estimator, source, dtype : str
        The estimator, where the rows are, and the type of their numbers.
    n_rows, n_features : int
        Rows and columns of X.
    sample_rows : int
        Rows of the sample that pivots and centres are found on.
    block_rows, n_blocks : int
        Rows read at a time, and how many times.
    passes : tuple of PlannedPass
        Every pass over the rows.
    memory, max_memory : int
        Bytes that Mercer will hold at most, approximately, and bytes that it may hold.
    sample_seconds : float
        Expected time of the work on the sample.
    calibration : str
        What was measured to predict the times.
    stored_bytes : int
        What a pass reads over the network: the files at a URL as they are stored, else 0.
    """

    estimator: str
    source: str
    n_rows: int
    n_features: int
    dtype: str
    sample_rows: int
    block_rows: int
    n_blocks: int
    passes: tuple[PlannedPass, ...]
    memory: int
    max_memory: int
    sample_seconds: float
    calibration: str
    stored_bytes: int = 0

    @property
    def n_passes(self) -> tuple[int, int]:
        """How often all rows are read: at least, at most."""
        return sum(p.least for p in self.passes), sum(p.most for p in self.passes)

    @property
    def bytes_read(self) -> tuple[int, int]:
        """Bytes read, as numbers: at least, at most."""
        least = sum(p.least * p.n_bytes for p in self.passes)
        return least, sum(p.most * p.n_bytes for p in self.passes)

    @property
    def network_bytes(self) -> tuple[int, int]:
        """Bytes read over the network, by all workers together: at least, at most."""
        least, most = self.n_passes
        return least * self.stored_bytes, most * self.stored_bytes

    @property
    def seconds(self) -> tuple[float, float]:
        """Expected time: at least, at most."""
        least = sum(p.least * p.seconds for p in self.passes)
        most = sum(p.most * p.seconds for p in self.passes)
        return least + self.sample_seconds, most + self.sample_seconds

    @property
    def minutes(self) -> tuple[float, float]:
        """Expected time in minutes: at least, at most."""
        least, most = self.seconds
        return least / 60, most / 60

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the totals."""
        totals = ("n_passes", "bytes_read", "network_bytes", "seconds", "minutes")
        return asdict(self) | {name: list(getattr(self, name)) for name in totals}

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        passes = (
            f"    {p.stage:<14} {_join(p.least, p.most, str, '–'):>4} × "
            f"{human_bytes(p.n_bytes):>8}, {_time(p.seconds)}"
            for p in self.passes
        )
        network = _join(*self.network_bytes, human_bytes)
        lines = [
            f"{self.estimator}: {self.n_rows:,} rows × {self.n_features:,} columns, {self.dtype}",
            f"  source     {self.source}",
            f"  blocks     {self.n_blocks:,} of {self.block_rows:,} rows",
            f"  sample     {self.sample_rows:,} rows",
            f"  memory     {human_bytes(self.memory)} of {human_bytes(self.max_memory)}",
            f"  passes     {_join(*self.n_passes, str, '–')}",
            *passes,
            f"  read       {_join(*self.bytes_read, human_bytes)}",
            *([f"  network    {network}"] if self.stored_bytes else []),
            f"  expected   {_join(*self.seconds, _time)}, {_time(self.sample_seconds)} of it on "
            "the sample",
            f"  measured   {self.calibration}",
        ]
        return "\n".join(printable(line, keep="") for line in lines)


def _join(least: Any, most: Any, words: Callable[[Any], str], between: str = " to ") -> str:
    """A range in words; one value where both ends read the same."""
    low, high = words(least), words(most)
    return low if low == high else f"{low}{between}{high}"


def _time(seconds: float) -> str:
    if seconds < 1:
        return f"{max(seconds, 0.01):.2f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
