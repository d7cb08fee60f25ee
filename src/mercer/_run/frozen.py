"""`frozen`: a dataclass that cannot be changed, whose methods are shared instead of generated.

`dataclass(frozen=True, slots=True)` compiles six methods for each class, about a millisecond, and
an estimator needs more than a hundred of them. Here `repr`, `==`, `hash`, pickling and what refuses
an assignment are functions that all classes share, and `__init__` is generated when a class is
called for the first time. `dataclasses.fields`, `replace`, `asdict` and `inspect.signature` work as
for any dataclass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, make_dataclass
from reprlib import recursive_repr
from typing import Any, NoReturn, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(
    cls: Any = None, /, *, eq: bool = True, slots: bool = True, kw_only: bool = False
) -> Any:
    """The class as a dataclass whose instances are set once; with `eq`, equal if all fields are."""

    def decorate(cls: Any) -> Any:
        own = set(vars(cls))
        if vars(cls).get("__hash__") is None:  # what defining `__eq__` leaves
            own.discard("__hash__")
        is_derived = any(map(is_dataclass, cls.__mro__[1:]))  # then it must be frozen as its base
        options = {"frozen": is_derived, "slots": slots, "kw_only": kw_only}
        made: Any = dataclass(init=False, repr=False, eq=False, **options)(cls)
        made.__dataclass_params__.frozen = True  # for `dataclass(frozen=True)` of a class derived
        methods = SHARED | (PICKLED if slots else {}) | (COMPARED if eq else {})
        for name in methods.keys() - own:
            setattr(made, name, methods[name])
        if "__init__" not in own:
            made.__init__ = _FirstInit(made)
        return made

    return decorate if cls is None else decorate(cls)


class _FirstInit:
    """Stands for the `__init__` of a class until it is asked for, and then generates it."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def __get__(self, instance: Any, owner: type) -> Callable[..., None]:
        self.cls.__init__ = init = _generated_init(self.cls)
        return init.__get__(instance, owner)


def _generated_init(cls: Any) -> Any:
    """What `dataclass(frozen=True)` makes of the fields of this class."""
    copies = [
        (
            one.name,
            one.type,
            field(
                default=one.default,
                default_factory=one.default_factory,
                init=one.init,
                kw_only=one.kw_only,
            ),
        )
        for one in fields(cls)
    ]
    hooks = {"__post_init__": None} if hasattr(cls, "__post_init__") else {}
    made: Any = make_dataclass(
        cls.__name__, copies, namespace=hooks, repr=False, eq=False, frozen=True
    )
    made.__init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return made.__init__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_set(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, one.name) for one in fields(self) if one.compare)


def _eq(self: Any, other: Any) -> bool:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    hashed = (one.name for one in fields(self) if (one.compare if one.hash is None else one.hash))
    return hash(tuple(getattr(self, name) for name in hashed))


SHARED: dict[str, Any] = {
    "__repr__": _repr,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
}
PICKLED: dict[str, Any] = {"__getstate__": _state, "__setstate__": _restore}
COMPARED: dict[str, Any] = {"__eq__": _eq, "__hash__": _hash}
