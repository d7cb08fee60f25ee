"""Shared settings: hypothesis profiles, read-only data, one thread of BLAS is Mercer's business."""

from __future__ import annotations

import sys
from pathlib import Path

import hypothesis

sys.path.insert(0, str(Path(__file__).parent))

hypothesis.settings.register_profile("suite", max_examples=25, deadline=None, print_blob=True)
hypothesis.settings.load_profile("suite")
