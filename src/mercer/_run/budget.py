"""The memory promise: one budget per fit, from which every block size follows."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path

from mercer._run.frozen import frozen
from mercer.exceptions import BudgetError

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
MOST = 2**62  # bytes that a system can address
BINARY = {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_bytes(amount: int | float | str) -> int:
    """Bytes from a number or from text such as "500MB" (10⁶) or "2GiB" (2³⁰)."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:[eE]\d+)?)\s*([A-Za-z]*)\s*", str(amount))
    factors = UNITS | BINARY
    if isinstance(amount, bool) or match is None or match[2].upper() not in factors:
        raise ValueError(
            f"max_memory={amount!r} is not an amount of memory; pass bytes, or text like '500MB'"
        )
    n_bytes = float(match[1]) * factors[match[2].upper()]
    if n_bytes < 1:
        raise ValueError(f"max_memory={amount!r} leaves no memory; pass a positive amount")
    if n_bytes > MOST:
        raise ValueError(
            f"max_memory={amount!r} is more than any machine has; pass bytes, or text like '500MB'"
        )
    return int(n_bytes)


def human_bytes(n_bytes: float) -> str:
    """Bytes with a decimal unit: 1.5 GB."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{int(n_bytes)} bytes"


def free_memory() -> int:
    """What this process could still allocate: the machine's and its container's limit."""
    limits = [_available_on_machine(), *_available_in_container()]
    return max(min(limits), 0)


@frozen
class Budget:
    """How many bytes Mercer itself may hold at once."""

    n_bytes: int

    @classmethod
    def of(cls, max_memory: int | float | str | None) -> Budget:
        """The user's amount, or half of what is free now."""
        return cls(free_memory() // 2 if max_memory is None else parse_bytes(max_memory))

    def allows(self, n_bytes: int) -> bool:
        return n_bytes <= self.n_bytes

    def demand(self, n_bytes: int, *, what: str, advice: str) -> None:
        """Refuse what cannot fit, before any work, with the estimate, the limit and advice."""
        if not self.allows(n_bytes):
            raise BudgetError(
                f"{what} needs about {human_bytes(n_bytes)} but max_memory allows "
                f"{human_bytes(self.n_bytes)}; {advice}"
            )

    def block_rows(self, bytes_per_row: int, tile: int) -> int:
        """Rows to read at once: whole tiles within an eighth of the budget, 32 tiles at most."""
        tiles = self.n_bytes // 8 // max(bytes_per_row * tile, 1)
        return tile * int(min(max(tiles, 1), 32))


def _available_on_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 10**9


def _available_in_container() -> list[int]:
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
        return [] if limit == "max" else [int(limit) - used]
    except (OSError, ValueError):
        return []


def give_back() -> None:
    """Return freed memory to the system, where the C library would keep it for later (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
