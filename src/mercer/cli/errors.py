"""Errors and warnings as one line each on standard error, and the exit code.

0 is success, 1 an error in the input or during the work, 2 a wrong command line, 130 Ctrl-C, 143
SIGTERM.
"""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from mercer.cli.vocabulary import in_options, say

INTERRUPTED = 130  # as shells count: 128 + SIGINT


@contextmanager
def readable_errors(*, debug: bool = False) -> Iterator[None]:
    """Errors become one line and exit code 1; with `debug` they are raised."""
    from mercer.exceptions import EngineError, MissingExtraError

    try:
        with readable_warnings():
            yield
    except KeyboardInterrupt as stop:
        say(f"interrupted; {str(stop) or 'no output was left half-written'}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (typer.BadParameter, typer.Exit, typer.Abort):  # handled by typer
        raise
    except Exception as error:
        if debug or getattr(error, "errno", None) == errno.EPIPE:
            raise
        expected = (ValueError, TypeError, OSError, MemoryError, EngineError, MissingExtraError)
        text = paragraph(error) if isinstance(error, expected) else unexpected(error)
        say(f"error: {text}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def readable_warnings() -> Iterator[None]:
    """Warnings meant for users appear as "warning: …" lines, without file names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = _show_warning
        yield


def paragraph(error: BaseException) -> str:
    """An error's message in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    words = " ".join(str(error).split())
    if isinstance(error, MemoryError) and not words:
        return "memory ran out; lower --max-memory, --rank or --jobs"
    return in_options(words) or type(error).__name__


def unexpected(error: BaseException) -> str:
    """An error that Mercer did not raise on purpose, in one line."""
    return (
        f"unexpected {type(error).__name__}: {paragraph(error)}; this is a bug in Mercer, please "
        "report it with the output of --debug"
    )


def _show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    say(f"warning: {in_options(' '.join(str(message).split()))}", err=True)
