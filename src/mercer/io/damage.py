"""The error of a file that is not what it should be, and the one way to raise it."""

from __future__ import annotations

from mercer.exceptions import ModelFileError

ADVICE = "copy the file again, or save the model again"
LONGEST_REASON = 200  # characters


def damaged(problem: str, advice: str = ADVICE) -> ModelFileError:
    """The error for a file that is not what it should be, in one sentence."""
    return ModelFileError(f"{problem}; {advice}")


def demand(holds: bool, problem: str, advice: str = ADVICE) -> None:
    """Refuse the file unless the condition holds."""
    if not holds:
        raise damaged(problem, advice)


def reason(error: BaseException) -> str:
    """What another error says, in one line that is not too long."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= LONGEST_REASON else f"{words[:LONGEST_REASON]}…"
