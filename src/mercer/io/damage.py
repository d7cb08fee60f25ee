"""The error of a file that is not what it should be, and the ways to raise it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mercer.exceptions import BudgetError, MissingExtraError, ModelFileError

ADVICE = "copy the file again, or save the model again"
LONGEST_REASON = 200  # characters


def damaged(problem: str, advice: str = ADVICE) -> ModelFileError:
    """The error for a file that is not what it should be, in one sentence."""
    return ModelFileError(f"{problem}; {advice}")


def demand(holds: bool, problem: str, advice: str = ADVICE) -> None:
    """Refuse the file unless the condition holds."""
    if not holds:
        raise damaged(problem, advice)


@contextmanager
def sound(problem: str = "") -> Iterator[None]:
    """Inside, any error means that the file is damaged."""
    try:
        yield
    except (BudgetError, MemoryError, MissingExtraError, ModelFileError, RecursionError):
        raise
    except Exception as error:
        raise damaged(f"{problem} ({reason(error)})" if problem else reason(error)) from error


def reason(error: BaseException) -> str:
    """The message of another error, in one line that is not too long."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= LONGEST_REASON else f"{words[:LONGEST_REASON]}…"
