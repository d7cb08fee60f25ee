"""How many kernel values were computed in this process: counted in one place, by any thread."""

from __future__ import annotations

import threading


class Tally:
    """A number that threads add to, matrix by matrix: the lock costs nothing beside a matrix."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = 0

    def add(self, count: int) -> None:
        with self._lock:
            self._total += count

    @property
    def total(self) -> int:
        return self._total


kernel_values = Tally()  # of the process, like its processor time; stages record differences
