"""Text that may hold names from outside, fit for a terminal: control characters as codes."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType


def printable(text: str, *, keep: str = "\n") -> str:
    r"""The same text, with ``\x1b`` for ESC and the like for what is not to be seen.

    Names of files and columns, and texts in model files, may hold what moves a cursor, colours a
    screen or turns the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in keep else _code(sign) for sign in text)


class PrintableErrors(ContextDecorator):
    """Errors leave with printable messages; for the doors through which files are opened."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception) and error.args and isinstance(error.args[0], str):
            error.args = (printable(error.args[0]), *error.args[1:])


def _code(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
