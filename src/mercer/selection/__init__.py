"""Which bandwidth, how many clusters."""

from __future__ import annotations

from typing import Any

__all__ = ["Selection", "search"]

_HOMES = {"Selection": "mercer.selection.result", "search": "mercer.selection.compare"}


def __getattr__(name: str) -> Any:  # on first use: embeddings import criteria from here
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'mercer.selection' has no attribute {name!r}")
