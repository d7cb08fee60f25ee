"""The values that an option takes: numbers of an interval, words, or a flag."""

from __future__ import annotations

import math
from typing import Any

from mercer._run.frozen import frozen

LARGEST = 2**63 - 1  # of a whole number that is typed: arrays hold no larger one


@frozen
class Numbers:
    """An interval of whole or real numbers; None means no bound."""

    is_whole: bool
    low: float | None = None
    high: float | None = None
    closed: str = "both"  # "left", "right", "both" or "neither", as in scikit-learn

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, int):
            if abs(value) > LARGEST:
                return False
        elif isinstance(value, str) or self.is_whole or not math.isfinite(value):
            return False
        is_above = self.low is None or value > self.low or (self._has_low and value == self.low)
        return is_above and (
            self.high is None or value < self.high or (self._has_high and value == self.high)
        )

    def __str__(self) -> str:
        bounds = []
        if self.low is not None:
            bounds.append(f"{'of at least' if self._has_low else 'above'} {self.low}")
        if self.high is not None:
            bounds.append(f"{'at most' if self._has_high else 'below'} {self.high}")
        kind = "a whole number" if self.is_whole else "a number"
        return f"{kind} {' and '.join(bounds)}".strip()

    @property
    def _has_low(self) -> bool:
        return self.closed in ("left", "both")

    @property
    def _has_high(self) -> bool:
        return self.closed in ("right", "both")


@frozen
class Domain:
    """All values of an option; an empty domain means Python objects, which cannot be typed."""

    numbers: tuple[Numbers, ...] = ()
    words: tuple[str, ...] = ()
    is_flag: bool = False
    has_ranges: bool = False  # LEAST:MOST, two of the numbers

    def __bool__(self) -> bool:
        return bool(self.numbers or self.words or self.is_flag)

    def __or__(self, other: Domain) -> Domain:
        return Domain(
            tuple(dict.fromkeys(self.numbers + other.numbers)),
            tuple(dict.fromkeys(self.words + other.words)),
            self.is_flag or other.is_flag,
            self.has_ranges or other.has_ranges,
        )

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, bool):
            return self.is_flag
        if isinstance(value, tuple):
            is_pair = self.has_ranges and len(value) == 2 and value[0] <= value[1]
            return is_pair and all(each in self for each in value)
        return value in self.words or any(value in numbers for numbers in self.numbers)

    def __str__(self) -> str:
        words = [f"one of {', '.join(self.words)}"] if len(self.words) > 1 else list(self.words)
        ranges = ["a range LEAST:MOST"] if self.has_ranges else []
        return " or ".join([*map(str, self.numbers), *words, *ranges])

    def read(self, text: str) -> Any:
        """The value that a text stands for."""
        value: Any = text if text in self.words else _number(text)
        if self.has_ranges and isinstance(value, str) and ":" in value:
            value = tuple(map(_number, value.split(":")))
            is_known = all(isinstance(each, int) for each in value) and value in self
        else:
            is_known = value in self
        if not is_known:
            raise ValueError(f"{text!r} is not {self}")
        return value

    @property
    def choices(self) -> str:
        """The words, and that numbers are possible, as a list in a sentence."""
        *most, last = (["a number"] if self.numbers else []) + list(self.words)
        return f"{', '.join(most)} or {last}"

    @property
    def metavar(self) -> str:
        """What help shows in place of a value."""
        kinds = ["N" if numbers.is_whole else "NUMBER" for numbers in self.numbers]
        words = ["NAME" if len(self.words) > 1 else word for word in self.words]
        ranges = ["N:N"] if self.has_ranges else []
        return "|".join(dict.fromkeys(kinds + words + ranges))


class MemoryAmounts(Domain):
    """Amounts of memory, which stay as they are typed."""

    metavar = "AMOUNT"

    def __bool__(self) -> bool:
        return True

    def __or__(self, other: Domain) -> Domain:
        return self

    def __contains__(self, value: Any) -> bool:
        return True

    def read(self, text: str) -> str:
        """The text, if it is an amount."""
        from mercer._run.budget import parse_bytes

        parse_bytes(text)
        return text


def _number(text: str) -> int | float | str:
    """The number that is written, or the text if there is none."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
