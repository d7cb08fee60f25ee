"""What Mercer raises and warns with, beside the built-in ValueError and TypeError."""

from __future__ import annotations

__all__ = ["BudgetError", "EngineError", "MercerWarning", "MissingExtraError", "ModelFileError"]


class MercerWarning(UserWarning):
    """The result stands, but something about it should be known."""


class BudgetError(MemoryError, ValueError):
    """The request cannot be met within ``max_memory``; raised before the work begins."""


class EngineError(RuntimeError):
    """The processes or the cluster that `mercer.on` named cannot go on."""


class ModelFileError(ValueError):
    """A model file is damaged, foreign, or newer than this version of Mercer."""


class MissingExtraError(ImportError):
    """An optional package is needed and not installed."""
