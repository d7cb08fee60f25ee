"""Shared settings: hypothesis profiles, read-only data, one thread of BLAS is Mercer's business.

The profile ``short`` is the default; ``long`` (MERCER_PROFILE=long, which ``scripts/test --all``
sets) tries a thousand examples where a test leaves the number to the profile.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from counting import write_counts

COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [hypothesis.HealthCheck.function_scoped_fixture],
}
hypothesis.settings.register_profile("short", max_examples=25, **COMMON)
hypothesis.settings.register_profile("long", max_examples=1000, **COMMON)
hypothesis.settings.load_profile(os.environ.get("MERCER_PROFILE", "short"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    write_counts()
