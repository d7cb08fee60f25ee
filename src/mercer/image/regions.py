"""Connected regions of a label image, and what becomes of the small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.lazy import LazyModule
from mercer._run.types import IdArray

_jit = LazyModule("mercer.image._regions_jit")


def connected_regions(labels: NDArray[Any], *, outside: int, connectivity: int = 1) -> IdArray:
    """Numbers 0, 1, … of connected pixels of one label, in scan order; -1 outside.

    connectivity : 1 joins neighbours by an edge, 2 by a corner too.
    """
    parts, _ = _components(labels, outside, connectivity)
    return parts.astype(np.intp)


def merge_small_regions(
    labels: NDArray[Any], min_size: int, *, outside: int, connectivity: int = 1
) -> NDArray[Any]:
    """Regions of fewer than `min_size` pixels take the label of a neighbour.

    Smallest first, each joins the region it shares the longest border with. A region without
    neighbours (alone in a mask) stays, whatever its size.
    """
    if min_size <= 1:
        return labels.copy()
    parts, n_parts = _components(labels, outside, connectivity)
    sizes, label_of = np.empty(n_parts, np.int64), np.empty(n_parts, labels.dtype)
    _jit.component_sizes(parts, labels, sizes, label_of)
    small = np.flatnonzero(sizes < min_size)
    if not len(small):
        return labels.copy()
    first, neighbors, lengths = _borders(parts, sizes, min_size)
    parent = np.arange(n_parts)
    order = small[np.argsort(sizes[small], kind="stable")]
    _jit.merge_small(order, sizes, min_size, first, neighbors, lengths, parent)
    _jit.take_roots(parent)
    label_of = label_of[parent]
    out = np.empty_like(labels)
    _jit.relabel(parts, label_of, outside, out)
    return out


def _components(
    labels: NDArray[Any], outside: int, connectivity: int
) -> tuple[NDArray[np.int32], int]:
    if connectivity not in (1, 2):
        raise ValueError(f"connectivity={connectivity} is neither 1 (edges) nor 2 (corners too)")
    parts = np.empty(labels.shape, np.int32)
    parent = np.empty(labels.size + 1, np.int32)
    return parts, _jit.components(labels, outside, connectivity - 1, parent, parts)


def _borders(
    parts: NDArray[np.int32], sizes: NDArray[np.int64], least: int
) -> tuple[IdArray, IdArray, IdArray]:
    """Of each small part: its neighbours and the lengths of the borders with them, as CSR."""
    pairs = np.empty((4 * int(sizes[sizes < least].sum()), 2), np.int32)
    n = _jit.borders_of_small(parts, sizes, least, pairs)
    keys = pairs[:n, 0].astype(np.int64) * len(sizes) + pairs[:n, 1]
    keys, lengths = np.unique(keys, return_counts=True)
    owners, neighbors = np.divmod(keys, len(sizes))
    first = np.searchsorted(owners, np.arange(len(sizes) + 1))
    return first.astype(np.intp), neighbors.astype(np.intp), lengths.astype(np.intp)
