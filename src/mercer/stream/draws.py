"""What both kinds of streams need: draws that belong to a row, and the size of values."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mercer._run.types import FloatArray
from mercer.rows.rows import BlockRows, Rows


def row_draws(key: int, first_row: int, n_rows: int) -> FloatArray:
    """A uniform number for each row, at the row's number of a counter-based stream."""
    skipped = first_row % 4  # one step of the counter gives four numbers
    bits = np.random.Philox(key=key)
    bits.advance(first_row // 4)
    return np.random.Generator(bits).random(n_rows + skipped)[skipped:]


def largest_value(rows: Rows) -> float:
    """The largest absolute value."""
    blocks = rows.parts if isinstance(rows, BlockRows) else (rows,)
    values = [block.data if sp.issparse(block) else block for block in blocks]
    return max(float(np.abs(some).max(initial=0.0)) for some in values)


def smooth(before: float, now: float) -> float:
    """The share of some kind of rows in the latest batches: half of it is the last one's."""
    return 0.5 * before + 0.5 * now
