"""What goes wrong, in one paragraph on standard error; the exit code tells the rest.

0 is success, 1 an error in the input or the work, 2 a wrong command line, 130 Ctrl-C, 143 SIGTERM.
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
    """Errors leave as a paragraph and exit code 1; with `debug` as they are."""
    from mercer.exceptions import EngineError, MissingExtraError

    try:
        with readable_warnings():
            yield
    except KeyboardInterrupt:
        say("interrupted; no output was left half-written", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (ValueError, TypeError, OSError, MemoryError, EngineError, MissingExtraError) as error:
        if debug or getattr(error, "errno", None) == errno.EPIPE:
            raise
        say(f"error: {paragraph(error)}", err=True)
        raise typer.Exit(1) from None
    except (typer.BadParameter, typer.Exit, typer.Abort):  # typer's own business
        raise
    except Exception as error:
        if debug:
            raise
        say(f"error: {unforeseen(error)}", err=True)
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


def unforeseen(error: BaseException) -> str:
    """An error that nobody meant to raise, in one line."""
    return (
        f"Mercer failed in a way that was not foreseen ({type(error).__name__}: "
        f"{paragraph(error)}); this is a fault of Mercer, please report it with what --debug shows"
    )


def _show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    say(f"warning: {in_options(' '.join(str(message).split()))}", err=True)
