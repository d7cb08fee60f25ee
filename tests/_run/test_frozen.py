"""`frozen` does what `dataclass(frozen=True, slots=True)` does."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import pytest

from mercer._run.frozen import frozen


def body(decorate, **options):
    """The same class, made by one of the two decorators."""

    @decorate(**options)
    class Row:
        number: int
        label: str = "none"
        weights: list = dataclasses.field(default_factory=list, repr=False, compare=False)
        total: float = dataclasses.field(init=False, default=0.0)

        def __post_init__(self):
            object.__setattr__(self, "total", float(sum(self.weights)))

    return Row


def standard(**options):
    return dataclasses.dataclass(**{"frozen": True, "slots": True, **options})


OPTIONS = [{}, {"eq": False}, {"slots": False}, {"kw_only": True}]
VALUES = [{"number": 1}, {"number": 1, "label": "a"}, {"number": 2, "weights": [1.0, 2.0]}]


@frozen
class Point:
    x: float
    y: float = 0.0


@frozen
class Named(Point):
    name: str = ""

    def __repr__(self):
        return f"<{self.name}>"


@frozen
class Equal:
    x: float

    def __eq__(self, other):
        return True


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_frozen_class_is_a_dataclass(options):
    ours, theirs = body(frozen, **options), body(standard, **options)
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert ours.__match_args__ == theirs.__match_args__
    assert hasattr(ours, "__slots__") is hasattr(theirs, "__slots__")
    assert (ours.__eq__ is object.__eq__) is (theirs.__eq__ is object.__eq__)
    assert (ours.__hash__ is object.__hash__) is (theirs.__hash__ is object.__hash__)
    for value in VALUES:
        one, other = ours(**value), theirs(**value)
        assert repr(one) == repr(other)
        assert dataclasses.asdict(one) == dataclasses.asdict(other)
        changed = {"label": "z"}
        assert repr(dataclasses.replace(one, **changed)) == repr(
            dataclasses.replace(other, **changed)
        )


@pytest.mark.parametrize("options", [{}, {"slots": False}, {"kw_only": True}], ids=str)
def test_equal_and_hash_as_in_a_dataclass(options):
    ours, theirs = body(frozen, **options), body(standard, **options)
    for a in VALUES:
        for b in VALUES:
            assert (ours(**a) == ours(**b)) is (theirs(**a) == theirs(**b))
            assert (hash(ours(**a)) == hash(ours(**b))) is (hash(theirs(**a)) == hash(theirs(**b)))
    assert ours(1) != theirs(1) if "kw_only" not in options else True


def test_nothing_can_be_set_or_deleted():
    point = Point(1.0)
    for name in ("x", "z"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=name):
            setattr(point, name, 2.0)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        del point.x
    assert point == Point(1.0, 0.0)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_and_copies(protocol):
    point = Named(1.0, name="a")
    assert pickle.loads(pickle.dumps(point, protocol)) == point
    assert copy.deepcopy(point) == copy.copy(point) == point


def test_fields_of_the_base_come_first():
    assert [one.name for one in dataclasses.fields(Named)] == ["x", "y", "name"]
    assert Named(1.0, 2.0, "a") == Named(x=1.0, y=2.0, name="a")
    assert Named(1.0) != Point(1.0)


def test_a_dataclass_may_be_derived():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Weighted(Named):
        weight: float = 1.0

    point = dataclasses.replace(Weighted(1.0, 2.0, "a"), weight=3.0)
    assert dataclasses.asdict(point) == {"x": 1.0, "y": 2.0, "name": "a", "weight": 3.0}
    with pytest.raises(dataclasses.FrozenInstanceError, match="'weight'"):
        point.weight = 2.0


def test_own_methods_stay():
    assert repr(Named(1.0, name="b")) == "<b>"
    assert Equal(1.0) == Equal(2.0)
    assert hash(Equal(1.0)) == hash(Equal(1.0))


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing .* 'x'"):
        Point()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1.0, z=2.0)
