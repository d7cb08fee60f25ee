"""Modules that load on first use, so that ``import mercer`` compiles nothing."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

FEW_VALUES = 2**13  # half a tile of two columns: numpy has done so few before a loop is loaded


class LazyModule(ModuleType):
    """Stands for a module until one of its attributes is asked for, which it then keeps."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__name__), name)
        self.__dict__[name] = value  # each tile asks: an import, even a second one, takes the GIL
        return value
