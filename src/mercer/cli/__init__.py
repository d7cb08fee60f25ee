"""The command `mercer`: one verb per step, files in, files out."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from types import FrameType

__all__ = ["main"]


def main() -> None:
    """Run the command line; the entry point `mercer`."""
    _escape_unprintable()
    _handle_signals()
    try:
        _app()(prog_name="mercer")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None
    except Terminated as end:
        sys.stderr.write("terminated; no output was left half-written\n")
        raise SystemExit(end.code) from None


class Terminated(SystemExit):
    """The system asked the process to end; partial files are removed on the way out."""


def _handle_signals() -> None:
    """SIGTERM and SIGHUP unwind the stack like Ctrl-C, unless they are ignored."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second one must not interrupt the clean-up
    raise Terminated(128 + number)


def _escape_unprintable() -> None:
    """Characters that the terminal cannot show are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _app() -> Callable[..., object]:
    """The typer app; without typer, one sentence about the extra to install."""
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
