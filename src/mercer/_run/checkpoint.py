"""Where finished passes are kept, if `mercer.checkpoint` names a folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from mercer._run.setting import setting

Result = TypeVar("Result")
Fits: TypeAlias = Callable[[Any], bool]


class Store(Protocol):
    """Keeps the results of passes, and the seed of fits that were given none."""

    def recall(
        self, stage: str, source: Any, inputs: Any, compute: Callable[[], Result], fits: Fits
    ) -> Result:
        """The result of this pass over this source, computed only if it is not there yet."""
        ...

    def seed(self) -> list[int]:
        """Fresh entropy the first time, the same from then on."""
        ...


_store: ContextVar[Store | None] = ContextVar("mercer_checkpoint", default=None)


def current_store() -> Store | None:
    """The store of this context; None keeps nothing."""
    return _store.get()


def keeping(store: Store | None) -> AbstractContextManager[None]:
    """Inside, finished passes are kept in this store."""
    return setting(_store, store)


def recall(
    stage: str, source: Any, inputs: Any, compute: Callable[[], Result], fits: Fits
) -> Result:
    """What `compute` gives, or gave before to a fit with the same data and inputs.

    The result is a tuple of arrays and numbers. `fits` says whether what was kept can be one of
    this pass (its shapes, types and ranges): others may have written to the folder.
    """
    store = _store.get()
    return compute() if store is None else store.recall(stage, source, inputs, compute, fits)


def is_numbers(value: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> bool:
    """Whether this is an array of this shape and type, all finite."""
    is_array = isinstance(value, np.ndarray) and value.shape == shape and value.dtype == dtype
    return is_array and bool(np.isfinite(value).all())
