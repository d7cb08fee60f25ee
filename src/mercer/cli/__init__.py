"""The command `mercer`: a verb per step, files in, files out."""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["main"]


def main() -> None:
    """Run the command line; the entry point `mercer`."""
    try:
        _app()(prog_name="mercer")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None


def _app() -> Callable[..., object]:
    """The typer app, or one sentence about the extra that brings typer."""
    try:
        from mercer.cli.app import app
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("typer", "rich", "click"):
            raise
        sys.stderr.write(
            f"error: the command line needs the package {package!r}, which is not installed; "
            "install it with: pip install 'mercer[cli]'\n"
        )
        raise SystemExit(1) from None
    return app
