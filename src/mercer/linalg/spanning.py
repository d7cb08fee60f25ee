"""Edges that connect the parts of a graph between rows: a minimum spanning tree of the parts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mercer._run.types import FloatArray, IdArray
from mercer.rows.sample import evenly

MOST_COMPARED = 2048  # rows whose distances to each other are all computed
REPRESENTATIVES = 64  # rows of a part at most, where there are more rows than that


def spanning_edges(Z: FloatArray, W: sp.csr_array, idx: IdArray, dist: FloatArray) -> sp.csr_array:
    """The shortest edges that connect the parts of the graph W, each of weight 1.

    Borůvka's algorithm: each part is connected to the nearest other one, until one part is left.
    Of up to 2,048 rows all pairs are compared. Of more rows, the nearest rows `idx` of each row at
    squared distances `dist` (-1 for none), and then some representatives of each part.
    """
    n = len(Z)
    tree = sp.csr_array((n, n))
    n_parts, part = connected_components(W, directed=False)
    if n_parts > 1 and n > MOST_COMPARED:
        length = np.where(idx >= 0, dist, np.inf)
        tree, n_parts, part = _connect(tree, part, n_parts, np.arange(n), idx, length)
    if n_parts > 1:
        some = _representatives(part, n_parts)
        everyone = np.broadcast_to(some, (len(some), len(some)))
        tree, *_ = _connect(tree, part, n_parts, some, everyone, _distances(Z[some]))
    return tree


def _connect(
    tree: sp.csr_array,
    part: IdArray,
    n_parts: int,
    rows: IdArray,
    near: IdArray,
    length: FloatArray,
) -> tuple[sp.csr_array, int, IdArray]:
    """Connect parts by the shortest edges from `rows` to those `near` each, while there are any."""
    while n_parts > 1:
        outward = np.where(part[near] != part[rows, None], length, np.inf)
        place = outward.argmin(axis=1)
        least = outward[np.arange(len(rows)), place]
        order = np.lexsort((least, part[rows]))
        first = order[np.unique(part[rows][order], return_index=True)[1]]  # of each part
        first = first[np.isfinite(least[first])]
        if not len(first):
            break
        one, other = rows[first], near[first, place[first]]
        edges = sp.coo_array((np.ones(len(one)), (one, other)), shape=tree.shape).tocsr()
        tree = sp.csr_array(tree.maximum(edges.minimum(1.0)).maximum(edges.T.minimum(1.0)))
        pairs = sp.coo_array((np.ones(len(one)), (part[one], part[other])), shape=(n_parts,) * 2)
        n_parts, merged = connected_components(pairs, directed=False)
        part = merged[part]
    return tree, n_parts, part


def _representatives(part: IdArray, n_parts: int) -> IdArray:
    """Evenly spaced rows of each part, one at least; all rows where they are few."""
    if len(part) <= MOST_COMPARED:
        return np.arange(len(part))
    most = max(1, min(REPRESENTATIVES, MOST_COMPARED // n_parts))
    order = np.argsort(part, kind="stable")
    sizes = np.bincount(part, minlength=n_parts)
    starts = np.cumsum(sizes) - sizes
    chosen = [start + evenly(size, most) for start, size in zip(starts, sizes, strict=True)]
    return np.sort(order[np.concatenate(chosen)])


def _distances(Z: FloatArray) -> FloatArray:
    """Squared distances of all pairs."""
    norms = np.einsum("ij,ij->i", Z, Z)
    found: FloatArray = norms[:, None] + norms - 2.0 * (Z @ Z.T)
    return np.maximum(found, 0.0, out=found)
