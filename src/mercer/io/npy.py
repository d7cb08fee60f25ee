"""The header of an npy file or member, read apart from its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

NOT_A_HEADER = (SyntaxError, TokenError, TypeError, RecursionError, MemoryError)  # of numpy


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the numbers."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_fortran: bool

    @property
    def n_bytes(self) -> int:
        """Of the numbers alone."""
        return prod(self.shape) * self.dtype.itemsize


def read_header(file: BinaryIO) -> Header:
    """The header at the start of a file, which is left where the numbers begin.

    Whatever cannot be read as one is a ValueError.
    """
    version = npy.read_magic(file)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"npy version {version} is not one of {sorted(readers)}")
    try:
        shape, is_fortran, dtype = readers[version](file)
    except NOT_A_HEADER as error:
        raise ValueError(f"its npy header makes no sense ({type(error).__name__})") from error
    return Header(shape, dtype, is_fortran)
