"""Shared settings: hypothesis profiles, read-only data, one thread of BLAS is Mercer's business.

The profile ``short`` is the default; ``long`` (MERCER_PROFILE=long, which ``scripts/test --all``
sets) tries a thousand examples where a test leaves the number to the profile.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from counting import write_counts

COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [
        hypothesis.HealthCheck.function_scoped_fixture,
        hypothesis.HealthCheck.too_slow,  # the machine's fault, not the test's
    ],
}
hypothesis.settings.register_profile("short", max_examples=25, **COMMON)
hypothesis.settings.register_profile("long", max_examples=1000, **COMMON)
hypothesis.settings.load_profile(os.environ.get("MERCER_PROFILE", "short"))


SECONDS = float(os.environ.get("MERCER_TEST_SECONDS", "0"))  # of CPU per test; 0: no end


def too_slow(*_: Any) -> None:
    pytest.skip(f"took more than {SECONDS:g} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Cut short what plain Python is too slow for: `scripts/coverage` counts the lines it ran."""
    if not SECONDS:
        return (yield)
    signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    write_counts()
