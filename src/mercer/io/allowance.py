"""Memory and objects that one file may use, charged before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass

from mercer._run.budget import Budget
from mercer.io.damage import demand

MOST_OBJECTS = 10_000  # in one file: kernels, records, tables, arrays (one costs up to 0.3 ms)
MOST_DEPTH = 100  # of trees within trees; Python's own limit depends on who calls


@dataclass(slots=True)
class Allowance:
    """The budget of one file, and what is used of it so far."""

    budget: Budget
    held: int = 0  # bytes
    n_objects: int = 0

    @property
    def left(self) -> int:
        """Bytes that may still be used."""
        return max(self.budget.n_bytes - self.held, 0)

    def hold(self, n_bytes: int) -> None:
        """Charge bytes that stay."""
        self.borrow(n_bytes)
        self.held += n_bytes

    def borrow(self, n_bytes: int) -> None:
        """Check that temporary bytes fit beside what is held."""
        self.budget.demand(self.held + n_bytes, what="loading this file", advice="raise max_memory")

    def count(self, n_objects: int = 1) -> None:
        """Charge objects: each takes time, however small it is."""
        self.n_objects += n_objects
        demand(
            self.n_objects <= MOST_OBJECTS,
            f"it describes more than {MOST_OBJECTS:,} objects, which no model file does",
        )
