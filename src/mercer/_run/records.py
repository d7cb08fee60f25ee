"""Records: frozen values that a model file may hold, whose fields specify themselves.

    pivots: Rows = stored("(m, d) rows")
    mix: FloatArray = stored("(m, r) float64, finite")
    n_neighbors: int = stored("int, in [1, m]")
    training_rows: FloatArray | None = unstored()

A specification is a type (a record, a kernel; ``A | None`` as well; as text "module:A or None"
where an import would be a cycle), or text: a kind, and conditions after commas. The kinds are

* ``(m, r) float64``: an array; also float (32 or 64 bits), float32, int (any width), int32, int64,
  and text (an array of strings). A letter is a size of 1 or more that is the same throughout the
  record (``m?``: 0 or more); also ``k-1``, ``R+1``, a number, and ``*`` for any size;
* ``(m, d) table``, ``(m, d) rows``: finite numbers, dense or CSR; rows may come in column blocks;
* ``(s, s) csr``: a sparse matrix of float64;
* ``int``, ``int k`` (k is this number), ``float``, ``bool``, ``text``, ``dtype``, ``list``,
  ``tuple``, ``one of a | b``, and ``tuple of`` any of these.

The conditions are ``finite``, ``>= 0``, ``> 0``, ``in [0, n)`` (ends are numbers or letters),
``sorted`` and ``symmetric``; ``or None`` at the end allows None. What one sentence cannot say is
in the record's own `check`.
"""

from __future__ import annotations

import operator
import re
import reprlib
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

LARGEST_INT = 2**63
SYMMETRIC = 1e-9  # relative: more than rounding
REFERENCE = re.compile(r"([\w.]+):(\w+)( or None)?")
COMMA = re.compile(r",\s*(?![^()\[\]]*[)\]])")  # outside of brackets
KIND = re.compile(r"(?:\((?P<shape>[^)]*)\) )?(?P<kind>\w+)(?: (?P<letter>\w))?")
SIZE = re.compile(r"(?P<letter>[A-Za-z])(?P<offset>[+-]\d+)?(?P<empty>\?)?")
INTERVAL = re.compile(r"in ([\[(])(.+), (.+)([\])])")
COMPARISON = re.compile(r"(>=|<=|>|<) (.+)")
COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
TABLES = ("table", "rows")
SCALARS: dict[str, Callable[[Any], bool]] = {
    "int": lambda value: type(value) is int and abs(value) < LARGEST_INT,
    "float": lambda value: type(value) is float,
    "bool": lambda value: type(value) is bool,
    "text": lambda value: isinstance(value, str),
    "dtype": lambda value: isinstance(value, np.dtype) and value.kind == "f",
    "list": lambda value: isinstance(value, list),
    "tuple": lambda value: isinstance(value, tuple),
}
ARRAYS: dict[str, Callable[[Any], bool]] = {
    "float": lambda dtype: dtype.kind == "f",
    "int": lambda dtype: dtype.kind == "i",
    "text": lambda dtype: dtype.kind == "O",
}


class Allowance(Protocol):
    """Memory that loading a file may use."""

    @property
    def left(self) -> int: ...
    def hold(self, n_bytes: int) -> None: ...
    def borrow(self, n_bytes: int) -> None: ...


class Record:
    """The base of values that a model file may hold."""

    __slots__ = ()

    stored_as: ClassVar[Any] = None  # the record that stands for this one in a file, if another
    is_table = False  # rows in column blocks

    def sizes(self) -> dict[str, int]:
        """Sizes by letter, for the specifications of fields that stand beside this record."""
        return {}

    def check(self) -> None:
        """Refuse (ValueError) what the specifications of single fields cannot express."""

    def stored_form(self) -> Record:
        """What is written to a file."""
        return self

    def rebuild(self, allowance: Allowance) -> Any:
        """The value that a checked record from a file stands for."""
        return self


def stored(specification: Any, default: Any = MISSING) -> Any:
    """A field that is written to model files, and what it must be."""
    return field(default=default, metadata={"stored": specification})


def unstored() -> Any:
    """A field that serves the fit only."""
    return field(default=None, repr=False, compare=False, metadata={"stored": None})


def stored_fields(record: type[Any]) -> dict[str, Any]:
    """The specifications of the stored fields."""
    found = {item.name: item.metadata["stored"] for item in fields(record)}
    return {name: specification for name, specification in found.items() if specification}


def resolve(specification: Any) -> Any:
    """The type, if it is given as text; any other specification as it is."""
    found = REFERENCE.fullmatch(specification) if isinstance(specification, str) else None
    if found is None:
        return specification
    module, name, is_optional = found.groups()
    kind = getattr(import_module(module), name)
    return kind | None if is_optional else kind


def expect(holds: Any, problem: str) -> None:
    """Refuse a record unless the condition holds."""
    if not holds:
        raise ValueError(problem)


def check_record(record: Record) -> None:
    """Refuse (ValueError) a record whose fields are not as specified."""
    name, sizes = type(record).__name__, dict[str, int]()
    for key, specification in stored_fields(type(record)).items():
        check_value(getattr(record, key), specification, sizes, f"{name}.{key}")
    record.check()


def check_value(value: Any, specification: Any, sizes: dict[str, int], name: str) -> None:
    """Refuse a value that is not as specified; sizes that are new get their letter (INOUT)."""
    specification = resolve(specification)
    if not isinstance(specification, str):
        wanted = getattr(specification, "__name__", specification)
        expect(isinstance(value, specification), f"{name} is {_describe(value)}, not {wanted}")
        for letter, size in value.sizes().items() if isinstance(value, Record) else ():
            agrees = sizes.setdefault(letter, size) == size
            expect(agrees, f"{name} has size {letter} = {size}, not {sizes[letter]}")
        return
    collection, _, item = specification.partition(" of ")
    if item and collection in ("list", "tuple"):
        check_value(value, collection, sizes, name)
        for number, part in enumerate(value):
            check_value(part, item, sizes, f"{name}[{number}]")
        return
    text = specification.removesuffix(" or None").removesuffix(",")
    if value is not None or text == specification:
        _check_kind(value, text, sizes, name)


def _check_kind(value: Any, text: str, sizes: dict[str, int], name: str) -> None:
    kind, *conditions = COMMA.split(text)
    found = KIND.fullmatch(kind)
    letters = (found["shape"] or found["letter"] or "") if found else ""
    known = ", ".join(f"{letter} = {size}" for letter, size in sizes.items() if letter in letters)
    wanted = f"should be {kind}" + (" of finite numbers" if kind.endswith(TABLES) else "")
    wanted += f" with {known}" if known else ""
    expect(_is_kind(value, kind, sizes), f"{name} is {_describe(value)}, but {wanted}")
    for condition in conditions:
        holds = (
            _is_symmetric(value) if condition == "symmetric" else _holds(value, condition, sizes)
        )
        expect(holds, f"{name} should be {condition}, but is not")


def _is_kind(value: Any, text: str, sizes: dict[str, int]) -> bool:
    if text.startswith("one of "):
        return isinstance(value, str) and value in text.removeprefix("one of ").split(" | ")
    found = KIND.fullmatch(text)
    assert found is not None, f"the specification {text!r} is not understood"
    shape, kind, letter = found["shape"], found["kind"], found["letter"]
    if shape is not None:
        return _is_array(value, kind) and _fits(value.shape, shape, sizes)
    if not SCALARS[kind](value):
        return False
    return letter is None or sizes.setdefault(letter, value) == value


def _is_array(value: Any, kind: str) -> bool:
    if kind in TABLES:
        if isinstance(value, Record):
            return kind == "rows" and value.is_table
        data = value.data if sp.issparse(value) else value
        is_float = isinstance(data, np.ndarray) and data.dtype.kind == "f" and value.ndim == 2
        return is_float and min(value.shape) > 0 and bool(np.isfinite(data).all())
    if kind == "csr":
        return sp.issparse(value) and value.dtype == np.float64
    if not isinstance(value, np.ndarray):
        return False
    return ARRAYS[kind](value.dtype) if kind in ARRAYS else value.dtype == kind


def _fits(shape: tuple[int, ...], text: str, sizes: dict[str, int]) -> bool:
    wanted = [side.strip() for side in text.split(",") if side.strip()]
    pairs = zip(shape, wanted, strict=False)
    return len(shape) == len(wanted) and all(_fits_side(*pair, sizes) for pair in pairs)


def _fits_side(size: int, text: str, sizes: dict[str, int]) -> bool:
    if text == "*":
        return True
    found = SIZE.fullmatch(text)
    if found is None:
        return int(size) == int(text)
    base = int(size) - int(found["offset"] or 0)
    least = 0 if found["empty"] else 1
    return base >= least and sizes.setdefault(found["letter"], base) == base


def _holds(value: Any, condition: str, sizes: dict[str, int]) -> bool:
    """Whether all numbers satisfy a condition; ends are compared, as masks would take memory."""
    data = value.data if sp.issparse(value) else value
    if condition == "finite":
        return bool(np.isfinite(data).all())
    if condition == "sorted":
        return bool((data[1:] >= data[:-1]).all())
    if isinstance(data, np.ndarray) and not data.size:
        return True
    low, high = (data.min(), data.max()) if isinstance(data, np.ndarray) else (data, data)
    if interval := INTERVAL.fullmatch(condition):
        opening, least, most, closing = interval.groups()
        above, below = COMPARE[">=" if opening == "[" else ">"], "<=" if closing == "]" else "<"
        return bool(
            above(low, _number(least, sizes)) and COMPARE[below](high, _number(most, sizes))
        )
    comparison = COMPARISON.fullmatch(condition)
    assert comparison is not None, f"the condition {condition!r} is not understood"
    sign, bound = comparison.groups()
    return bool(COMPARE[sign](low if sign.startswith(">") else high, _number(bound, sizes)))


def _number(text: str, sizes: dict[str, int]) -> float:
    return sizes[text] if text in sizes else float(text)


def _is_symmetric(K: Any) -> bool:
    return bool(abs(K - K.T).max() <= SYMMETRIC * max(1.0, abs(K).max()))


def _describe(value: Any) -> str:
    """What a value is, in few words."""
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, str | int | float | None):
        return reprlib.repr(value)
    return f"a {type(value).__name__}"
