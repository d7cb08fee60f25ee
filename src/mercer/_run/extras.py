"""Optional packages: imported where they are used, with an error that names the extra."""

from __future__ import annotations

import importlib
from types import ModuleType

from mercer.exceptions import MissingExtraError


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say which extra of Mercer brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f"install it with: pip install 'mercer[{extra}]'"
        ) from error
