"""Checks of a path before anything is imported to read it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from mercer._run.printable import PrintableErrors


@PrintableErrors()
def demand_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a path at which there is nothing."""
    check_links(path)
    found = Path(path)
    if not found.exists():
        raise FileNotFoundError(f"there is no file {found}; check the path")
    return found


@PrintableErrors()
def check_links(path: str | os.PathLike[str]) -> None:
    """Refuse symbolic links that lead in a circle; the file need not exist."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(
                errno.ELOOP,
                "this is a symbolic link that leads back to itself; name the file itself, or "
                "repair the link",
                os.fspath(path),
            ) from None
