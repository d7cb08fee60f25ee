"""The one way to warn: about the line of the user's own code that called Mercer."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType

from mercer._run.printable import printable
from mercer.exceptions import MercerWarning

BETWEEN = ("mercer", "sklearn", "joblib", "contextlib")  # modules between that line and this one


def warn(text: str, category: type[Warning] = MercerWarning) -> None:
    """Warn once for each place in the user's code, however deep in Mercer this is called."""
    warnings.warn(printable(text), category, stacklevel=_stacklevel())


def _stacklevel() -> int:
    """How far out `warn` finds the first line that is neither Mercer's nor in between."""
    inside = tuple(filter(None, map(_place, BETWEEN)))
    frame: FrameType = sys._getframe(1)  # of `warn`, which is level 1
    level = 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame = frame.f_back
        level += 1
    return level


def _place(name: str) -> str | None:
    """The folder of a package, or the file of a module, if it is loaded."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return None
    is_package = os.path.basename(file).startswith("__init__.")
    return os.path.dirname(file) + os.sep if is_package else file
