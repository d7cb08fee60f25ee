"""Text that may hold foreign names, made safe for a terminal: control characters as codes."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType


def printable(text: str, *, keep: str = "\n") -> str:
    r"""The same text, with ``\x1b`` for ESC and the like for other characters that are invisible.

    Names of files and columns, and texts in model files, may hold characters that move the cursor,
    colour the screen or reverse the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in keep else _code(sign) for sign in text)


class PrintableErrors(ContextDecorator):
    """Errors that leave have printable messages; used wherever files are opened."""

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
