"""Two names that change places in one step, where the system can do that."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux
CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)  # old kernels, some file systems


def exchange(one: Path, two: Path) -> bool:
    """Let two files or folders change names at once; False if that cannot be done here.

    No other process sees a moment without either, and no kill leaves one.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):  # an old C library
        return False
    sys.audit("mercer.exchange", one, two)  # as every change of names by Python itself
    places = AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(two)
    if rename(*places, RENAME_EXCHANGE) == 0:
        return True
    error = ctypes.get_errno()
    if error in CANNOT:
        return False
    raise OSError(error, os.strerror(error), os.fspath(one), None, os.fspath(two))
