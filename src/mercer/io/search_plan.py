"""The search for nearest landmarks as a file holds it: where its grid lies, not what it lists.

Loops without bounds checks follow the lists of a grid, so a file is not trusted with them: they are
made anew. The search is exact with any grid or none, so what it finds is the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray, IdArray
from mercer.factors.landmarks import GRID_ITEMS, GRID_RATIOS, Search
from mercer.io.allowance import Allowance
from mercer.io.check_rows import is_array
from mercer.io.damage import demand

_jit = LazyModule("mercer.factors._landmarks_jit")


MOST_CELLS = 200_000
MOST_STEPS = 2**30  # of sorting the nearest landmarks of a cell, one by one: about a second
ITEM_BYTES = 16  # for each item of a list, while lists grow
FARTHEST = 1e150  # coordinates beyond this have no finite square


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Landmarks, and the box and cells of the grid over them, if there is one."""

    landmarks: FloatArray  # (p, q) float64
    low: FloatArray | None = None  # (q,) the corner of the box
    step: FloatArray | None = None  # (q,) the sides of a cell
    shape: IdArray | None = None  # (3,) cells along each side, 1 where there is no feature
    grid_neighbors: int = 0  # the grid answers for so many

    @classmethod
    def of(cls, search: Search) -> SearchPlan:
        if search.grid is None:
            return cls(search.landmarks)
        return cls(search.landmarks, *search.grid[:3], search.grid_neighbors)

    def rebuilt(self, allowance: Allowance) -> Search:
        """The search, with lists that were made here, if that is worth the work and the memory."""
        if self.low is None or self.step is None or self.shape is None:
            return Search(self.landmarks)
        L, many = self.landmarks, self.shape.astype(np.int64)
        p, d = L.shape
        ratio = GRID_RATIOS[d]
        few = many.copy()
        few[:d] //= ratio
        none = np.zeros(1, np.int64), np.zeros(1, np.int32)
        m = self.grid_neighbors
        most = min(GRID_ITEMS, MOST_STEPS // m, allowance.left // ITEM_BYTES)
        if max(p * int(few.prod()), int(many.prod())) > most:
            return Search(L)
        coarse = _jit.cell_candidates(self.low, self.step * ratio, few, L, m, *none, 0, few)
        if len(coarse[1]) * ratio**d > most:
            return Search(L)
        fine = _jit.cell_candidates(self.low, self.step, many, L, m, *coarse, ratio, few)
        return Search(L, (self.low, self.step, many, *fine), m)


def check_search_plan(plan: SearchPlan) -> None:
    """Landmarks are finite points, and the grid has whole coarse cells of positive size."""
    L, step = plan.landmarks, plan.step
    is_points = is_array(L, 2) and L.dtype == np.float64 and min(L.shape) > 0
    demand(
        is_points and bool(L.min() > -FARTHEST and L.max() < FARTHEST),
        "the landmarks are no table of numbers",
    )
    if plan.low is None and step is None and plan.shape is None:
        return
    d = L.shape[1]
    demand(d in GRID_RATIOS, f"the landmarks have {d} columns, for which there is no grid")
    demand(_is_point(plan.low, d), "the corner of the landmarks' grid is no point")
    is_box = step is not None and _is_point(step, d) and bool((step > 0).all())
    demand(is_box, "the cells of the landmarks' grid have no size")
    _check_shape(plan.shape, d)
    m = plan.grid_neighbors
    demand(type(m) is int and 1 <= m <= len(L), "the grid answers for no number of landmarks")


def _is_point(value: Any, d: int) -> bool:
    is_row = is_array(value, 1) and value.dtype == np.float64 and len(value) == d
    return is_row and bool((np.abs(value) < FARTHEST).all())


def _check_shape(shape: Any, d: int) -> None:
    """Whole coarse cells along each feature, and not too many."""
    is_shape = is_array(shape, 1, "i") and len(shape) == 3
    sides = [int(n) for n in shape] if is_shape else [0, 0, 0]
    is_whole = all(n > 0 and n % GRID_RATIOS[d] == 0 for n in sides[:d])
    is_flat = all(n == 1 for n in sides[d:])
    demand(
        is_whole and is_flat and sides[0] * sides[1] * sides[2] <= MOST_CELLS,
        f"the landmarks' grid has the shape {sides}",
    )
