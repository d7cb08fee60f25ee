"""Shared settings: hypothesis profiles, read-only data, one thread of BLAS is Mercer's business.

The profile ``short`` is the default; ``long`` (MERCER_PROFILE=long, which ``scripts/test --all``
sets) tries a thousand examples where a test leaves the number to the profile; ``few`` is for
``scripts/coverage``, which asks what is run and not what comes out.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import hypothesis
import pytest

from counting import write_counts

# Several processes share the cores: threads of scikit-learn that wait for each other must not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

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
hypothesis.settings.register_profile("few", max_examples=3, derandomize=True, **COMMON)
hypothesis.settings.load_profile(os.environ.get("MERCER_PROFILE", "short"))


SECONDS = float(os.environ.get("MERCER_TEST_SECONDS", "0"))  # per test; 0: no end
CASES = int(os.environ.get("MERCER_TEST_CASES", "0"))  # of the parameters of a test; 0: all


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of each parametrized test only so many cases, evenly spread: enough to see its lines run."""
    if not CASES:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {id(item) for of in cases.values() for item in spread(of, CASES)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def spread(of: list[pytest.Item], n: int) -> list[pytest.Item]:
    """At most n of them, the first and the last among these."""
    return of if len(of) <= n else [of[i * (len(of) - 1) // max(n - 1, 1)] for i in range(n)]


def too_slow(_: int, frame: FrameType | None) -> None:
    """End the test, but not in the middle of coverage's bookkeeping, whose lock would stay."""
    while frame is not None:
        if Path(frame.f_code.co_filename).parent.name == "coverage":
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        frame = frame.f_back
        if frame is not None and frame.f_code.co_name == "pytest_pyfunc_call":
            break  # above is the program that measures
    pytest.skip(f"took more than {SECONDS:g} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Cut short what plain Python is too slow for: `scripts/coverage` counts the lines it ran."""
    if not SECONDS:
        return (yield)
    signal.signal(signal.SIGALRM, too_slow)  # by the clock: it may wait for another process
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    write_counts()


@pytest.fixture(autouse=True)
def _no_lock_is_left() -> None:
    """A signal inside logging may leave its lock taken, for which other threads wait for ever."""
    for handler in logging.getLogger().handlers:
        lock = handler.lock
        while lock is not None and lock._is_owned():  # type: ignore[attr-defined]
            lock.release()
