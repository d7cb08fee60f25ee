"""What can be said about a path before anything is imported to read it."""

from __future__ import annotations

import os
from pathlib import Path

from mercer._printable import PrintableErrors

__all__ = ["demand_path"]


@PrintableErrors()
def demand_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a path at which there is nothing."""
    found = Path(path)
    if not found.exists():
        raise FileNotFoundError(f"there is no file {found}; check the path")
    return found
