"""Names for the arrays that cross borders."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IdArray: TypeAlias = NDArray[np.intp]
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
