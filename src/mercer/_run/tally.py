"""What this process has done so far: counted in one place, by any thread."""

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


# Of the process, like its processor time; stages and fits record differences.
kernel_values = Tally()
WORK = {  # beyond this process, or beyond its memory
    "bytes read": Tally(),  # of rows in passes over files, as numbers
    "tasks": Tally(),  # sent to workers
    "tasks sent again": Tally(),
    "workers lost": Tally(),
    "requests sent again": Tally(),  # by this process, to a store
}


def work_so_far() -> dict[str, int]:
    """The totals of `WORK`."""
    return {name: tally.total for name, tally in WORK.items()}
