"""Connected regions of a label image, and merging of small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.lazy import LazyModule
from mercer._run.types import IdArray

_jit = LazyModule("mercer.image._regions_jit")


def connected_regions(labels: NDArray[Any], *, outside: int, connectivity: int = 1) -> IdArray:
    """Number the connected regions of equal labels.

    Parameters
    ----------
    labels : array of int of shape (height, width)
        The labels.
    outside : int
        The label of pixels that belong to no region.
    connectivity : {1, 2}, default=1
        Pixels touch at edges (1), or at corners too (2).

    Returns
    -------
    ndarray of int of shape (height, width)
        0, 1, … in scan order; -1 outside.
    """
    parts, _ = _components(labels, outside, connectivity)
    return parts.astype(np.intp)


def merge_small_regions(
    labels: NDArray[Any], min_size: int, *, outside: int, connectivity: int = 1
) -> NDArray[Any]:
    """Give small regions the label of a neighbour.

    Smallest first, each joins the region with which it shares the longest boundary. A region
    without neighbours (alone in a mask) stays, whatever its size.

    Parameters
    ----------
    labels : array of int of shape (height, width)
        The labels.
    min_size : int
        Regions of fewer pixels are merged.
    outside : int
        The label of pixels that belong to no region.
    connectivity : {1, 2}, default=1
        Pixels touch at edges (1), or at corners too (2).

    Returns
    -------
    ndarray of shape (height, width)
        The new labels.
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
    """Neighbours of each small part and the lengths of the boundaries with them, as CSR."""
    pairs = np.empty((4 * int(sizes[sizes < least].sum()), 2), np.int32)
    n = _jit.borders_of_small(parts, sizes, least, pairs)
    keys = pairs[:n, 0].astype(np.int64) * len(sizes) + pairs[:n, 1]
    keys, lengths = np.unique(keys, return_counts=True)
    owners, neighbors = np.divmod(keys, len(sizes))
    first = np.searchsorted(owners, np.arange(len(sizes) + 1))
    return first.astype(np.intp), neighbors.astype(np.intp), lengths.astype(np.intp)
