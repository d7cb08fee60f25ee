"""Waiting for what another process does: by a condition, never by a time that it should take."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG = 600.0  # seconds after which something hangs; no test waits as long on a machine that is busy


def wait_until(
    condition: Callable[[], object], *, within: float = HANG, every: float = 0.01
) -> bool:
    """Whether the condition came true in time."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True
