"""The one door to numba: every jitted loop of Mercer is made by `jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

__all__ = ["jit"]

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile on first call, keep on disk, release the GIL.

    Products may be contracted to fused multiply-adds; nothing else about the order of a sum or
    the meaning of NaN and infinity is given up. With NUMBA_DISABLE_JIT=1 the loops run as plain
    Python, as silent as compiled ones about numbers that wrap around or divide by zero.
    """
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)
    return numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")(function)
