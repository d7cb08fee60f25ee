"""Specifications of fields: what each accepts, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer._run.records import Record, check_record, check_value, stored, stored_fields, unstored

K = sp.csr_array(np.array([[2.0, 1.0], [1.0, 2.0]]))
TEXT = np.array(["a", "b"], dtype=object)

ACCEPTED: list[tuple[str, Any]] = [
    ("(m, r) float64", np.zeros((2, 3))),
    ("(m, m) float", np.zeros((2, 2), "f4")),
    ("(m, 3) int", np.zeros((2, 3), "i4")),
    ("(m, *) int64", np.zeros((2, 0), np.int64)),
    ("(m?,) float", np.zeros(0)),
    ("(k-1,) float", np.zeros(0)),
    ("(R+1,) int, sorted", np.array([0, 0, 4])),
    ("(m,) text", TEXT),
    ("(m,) float, in [0, 1)", np.array([0.0, 0.9])),
    ("(m,) float, in (0, 1]", np.array([0.1, 1.0])),
    ("(m?,) int, in [0, 0)", np.zeros(0, int)),
    ("(m, d) table", np.ones((2, 2))),
    ("(m, d) rows", K),
    ("(s, s) csr, finite, symmetric", K),
    ("int", 3),
    ("int k, >= 1", 3),
    ("float", np.nan),
    ("float, finite, > 0", 1e-300),
    ("float or None", None),
    ("(m,) float, finite, or None", None),
    ("bool", False),
    ("text", ""),
    ("one of gaussian | rank", "rank"),
    ("dtype", np.dtype("f4")),
    ("tuple", ()),
    ("tuple of int, >= 1", (1, 2)),
    ("tuple of float or None", (1.0, None)),
    ("tuple of (n, *) table", (np.ones((2, 1)), K)),
    ("list of tuple", [(1, 2.0)]),
]

REFUSED: list[tuple[str, Any]] = [
    ("(m, r) float64", np.zeros(3)),
    ("(m, r) float64", np.zeros((2, 3), "f4")),
    ("(m, r) float64", np.zeros((2, 0))),
    ("(m, r) float64", None),
    ("(m, r) float64", [[1.0]]),
    ("(m, m) float", np.zeros((2, 3))),
    ("(m, 3) int", np.zeros((2, 2), int)),
    ("(m,) int", np.zeros(2, "u8")),
    ("(m,) int", np.zeros(2)),
    ("(R+1,) int, sorted", np.array([0])),
    ("(R+1,) int, sorted", np.array([0, 2, 1])),
    ("(m,) text", np.zeros(2)),
    ("(m,) float, finite", np.array([0.0, np.inf])),
    ("(m,) float, >= 0", np.array([0.0, np.nan])),
    ("(m,) float, in [0, 1)", np.array([0.0, 1.0])),
    ("(m,) float, in (0, 1]", np.array([0.0, 1.0])),
    ("(m, d) table", np.full((2, 2), np.nan)),
    ("(m, d) table", np.ones((2, 2), int)),
    ("(m, d) rows", None),
    ("(s, s) csr, finite, symmetric", K.toarray()),
    ("(s, s) csr, finite, symmetric", sp.csr_array(np.triu(np.ones((2, 2))))),
    ("int", True),
    ("int", 1.0),
    ("int", 2**63),
    ("int k, >= 1", 0),
    ("float", 1),
    ("float, finite, > 0", 0.0),
    ("float, finite, > 0", np.nan),
    ("bool", 0),
    ("text", None),
    ("one of gaussian | rank", "gaussian | rank"),
    ("one of gaussian | rank", None),
    ("dtype", np.dtype("i4")),
    ("dtype", "float64"),
    ("tuple of int, >= 1", (1, 0)),
    ("tuple of int, >= 1", [1]),
    ("tuple of (n, *) table", (np.ones((2, 1)), np.ones((3, 1)))),
    ("list of tuple", [1]),
]


@pytest.mark.parametrize(("specification", "value"), ACCEPTED, ids=str)
def test_what_is_as_specified_is_accepted(specification: str, value: Any) -> None:
    check_value(value, specification, {}, "value")


@pytest.mark.parametrize(("specification", "value"), REFUSED, ids=str)
def test_what_is_not_as_specified_is_refused(specification: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"^value(\[1\]|\[0\])? (is|should be)"):
        check_value(value, specification, {}, "value")


def test_the_error_names_the_sizes() -> None:
    with pytest.raises(ValueError, match=r"of shape \(3, 2\), but should be .* with m = 4"):
        check_value(np.zeros((3, 2)), "(m, r) float", {"m": 4}, "mix")
    with pytest.raises(ValueError, match=r"ids should be in .0, n., but is not"):
        check_value(np.array([5]), "(m,) int, in [0, n)", {"n": 5}, "ids")


@dataclass(frozen=True, slots=True)
class Inner(Record):
    numbers: Any = stored("(m,) float")

    def sizes(self) -> dict[str, int]:
        return {"n": len(self.numbers)}


@dataclass(frozen=True, slots=True)
class Outer(Record):
    inner: Inner | None = stored(Inner | None)
    weights: Any = stored("(n,) float, >= 0")
    count: int = stored("int, in [1, n]", 1)
    training_rows: Any = unstored()

    def check(self) -> None:
        if self.count == 2:
            raise ValueError("two are never right")


def test_sizes_agree_within_a_record_and_with_the_records_in_it() -> None:
    inner = Inner(np.ones(3))
    check_record(Outer(inner, np.ones(3), 3))
    check_record(Outer(None, np.ones(2)))
    wrong = (
        Outer(inner, np.ones(2)),
        Outer(inner, np.ones(3), 4),
        Outer(inner, np.ones(3), 2),
        Outer(1, np.ones(3)),
    )
    for record, match in zip(wrong, ("weights", "count", "never", "inner is 1"), strict=True):
        with pytest.raises(ValueError, match=match):
            check_record(record)


def test_unstored_fields_are_left_out() -> None:
    assert list(stored_fields(Outer)) == ["inner", "weights", "count"]
    assert "training_rows" not in repr(Outer(None, np.ones(2), 1, np.ones(5)))


def test_every_field_must_say_whether_it_is_stored() -> None:
    @dataclass(frozen=True)
    class Silent(Record):
        number: int = 0

    with pytest.raises(KeyError, match="stored"):
        stored_fields(Silent)
