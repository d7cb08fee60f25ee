"""A data frame of pandas, polars or pyarrow becomes an array, by one rule for its columns.

Numbers, booleans and decimals are read, missing values are NaN. Text is refused even where it
spells numbers, as are dates, categories and everything else: the error names the columns.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from mercer.rows.arrays import working_dtype

MOST_NAMED = 5  # columns in a message
MISSING = ("NoneType", "NAType")  # types of None and pandas.NA
SIZES = ("int8", "int16", "int32", "int64", "float16", "float32", "float64")
TYPES = {name: name for size in SIZES for name in (size, f"u{size}") if name[:2] != "uf"} | {
    "halffloat": "float16",  # Arrow's names
    "float": "float32",
    "double": "float64",
    "bool": "bool",
    "boolean": "bool",
    "null": "float64",
}
WORDS = {  # what other columns hold, by the beginning of their type's name; the first that fits
    "struct": "records",
    "str": "text",
    "large_str": "text",
    "date": "dates",
    "timestamp": "dates",
    "timedelta": "durations",
    "time": "times of day",
    "duration": "durations",
    "categor": "categories",
    "enum": "categories",
    "dictionary": "categories",
    "list": "lists",
    "large_list": "lists",
    "fixed_size_list": "lists",
    "array": "lists",
    "binary": "bytes",
    "large_binary": "bytes",
    "complex": "complex numbers",
}
VALUES: dict[str, Any] = {  # and what Python objects are
    "text": str,
    "bytes": bytes,
    "dates": (datetime.date, np.datetime64),
    "times of day": datetime.time,
    "durations": (datetime.timedelta, np.timedelta64),
    "lists": (list, tuple, np.ndarray),
    "records": dict,
    "complex numbers": (complex, np.complexfloating),
}


def is_frame(X: Any) -> bool:
    """Whether X has columns with names, as pandas, polars and pyarrow have them."""
    return hasattr(X, "column_names") or (
        hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_columns"))
    )


def frame_names(X: Any) -> tuple[Any, ...] | None:
    """The names of a frame's columns, whatever they are; None for what is not a frame."""
    names = getattr(X, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None or callable(names) else tuple(names)


def frame_array(X: Any, what: str) -> np.ndarray[Any, np.dtype[Any]]:
    """The numbers in a frame's columns, (n, d), in the floating type that holds them all."""
    names = frame_names(X)
    if not names:
        return np.empty((len(X), 0))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{what} has two columns of one name, {twice!r}; rename or drop one")
    columns = [X[name] for name in names]
    kinds = dict(zip(names, map(_kind, columns), strict=True))
    _refuse({name: kind for name, kind in kinds.items() if isinstance(kind, str)}, what)
    dtypes: Any = kinds.values()
    rows = np.empty((len(X), len(columns)), working_dtype(np.result_type(*dtypes)))
    for j, column in enumerate(columns):
        rows[:, j] = _values(column)
    return rows


def check_objects(X: np.ndarray[Any, Any]) -> None:
    """Refuse text, dates and bytes in a 2-d array of Python objects, by the rule for columns."""
    kinds = {j: str(_kind_of_values(X[:, j])) for j in range(X.shape[1])}
    known = ("text", "dates", "bytes")
    _refuse({j: kind for j, kind in kinds.items() if kind.startswith(known)}, "X")


def _kind(column: Any) -> np.dtype[Any] | str:
    """The type of a column's numbers; or in words what else it holds."""
    dtype = column.dtype if hasattr(column, "dtype") else column.type
    if hasattr(dtype, "fill_value"):  # pandas' sparse columns
        dtype = dtype.subtype
    name = str(dtype).lower().removesuffix("[pyarrow]")
    if name == "object":
        return _kind_of_values(column)
    if isinstance(dtype, np.dtype) and dtype.kind in "fiub":  # of any byte order and width
        return dtype
    if name.startswith("decimal"):
        return np.dtype(np.float64)
    if name in TYPES:
        return np.dtype(TYPES[name])
    known = (words for start, words in WORDS.items() if name.startswith(start))
    return f"{next(known, 'values')} of type {dtype}"


def _kind_of_values(values: Iterable[Any]) -> np.dtype[Any] | str:
    """float64 for numbers and missing values; or in words what the first other value is."""
    for kind in dict.fromkeys(map(type, values)):
        is_number = issubclass(kind, Real | Decimal | np.bool_ | np.integer | np.floating)
        if not is_number and kind.__name__ not in MISSING:
            known = (words for words, of in VALUES.items() if issubclass(kind, of))
            return f"{next(known, 'values')} of type {kind.__name__}"
    return np.dtype(np.float64)


def _values(column: Any) -> np.ndarray[Any, Any]:
    """A column's numbers, NaN where they are missing."""
    if hasattr(column, "iloc"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.asarray(column)
    return values.astype(np.float64) if values.dtype == object else values


def _refuse(kinds: dict[Any, Any], what: str) -> None:
    """An error that names these columns and what they hold, if there are any."""
    if not kinds:
        return
    if len(kinds) == 1:
        ((name, words),) = kinds.items()
        subject, it = f"column {name!r} of {what} to numbers: it holds {words}", "it"
    else:
        named = [f"{name!r} ({words})" for name, words in list(kinds.items())[:MOST_NAMED]]
        named += ["…"] if len(kinds) > MOST_NAMED else []
        subject, it = f"columns {', '.join(named)} of {what} to numbers", "them"
    raise ValueError(
        f"could not convert {subject}, and real numbers are wanted; drop {it}, or encode {it} "
        "first (text and categories e.g. by sklearn.preprocessing.OneHotEncoder, dates as days)"
    )
