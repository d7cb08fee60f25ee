"""Lanczos with a look at its residuals at every few steps: no product more than labels need.

ARPACK knows its residuals only when its basis is full; for operators whose products are the cost,
and whose leading vectors appear after two or three products each, that is a third too many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer.linalg.eigenpairs import dense_eigenpairs

LOOK_EVERY = 2  # steps
KEPT = 0.7  # what keeps less of itself in projection is projected again: errors must not grow
NOTHING = 1e-13  # length of a new direction that is only rounding


@frozen
class RitzPairs:
    """Largest Ritz values with vectors (n, k) and residuals, after a number of products."""

    values: FloatArray
    vectors: FloatArray
    residuals: FloatArray
    n_products: int


def lanczos(
    apply: Callable[[FloatArray], FloatArray],
    n: int,
    k: int,
    *,
    is_enough: Callable[[FloatArray, FloatArray, int], bool],
    most_products: int,
    rng: np.random.Generator,
    known: FloatArray | None = None,
) -> RitzPairs:
    """The k largest eigenpairs of a symmetric operator beside the known eigenvectors (rows).

    `is_enough` sees values, residuals and the number of products, and says when to stop. The basis
    is orthogonalised in full and, when it is long, restarted from its best vectors (thick restart).
    """
    known = np.empty((0, n)) if known is None else known
    k = min(k, n - len(known))
    longest = min(n - len(known), max(2 * k + 20, 3 * k))
    basis = np.empty((longest + 1, n))
    H = np.zeros((longest, longest))
    basis[0] = _new_direction(known, basis[:0], rng)
    length = n_products = 0
    while True:
        w = apply(basis[length])
        n_products += 1
        h, size, before = np.zeros(length + 1), np.linalg.norm(w), np.inf
        while NOTHING < size < KEPT * before:
            before = float(size)
            w, more = _beside(w, known, basis[: length + 1])
            h += more
            size = np.linalg.norm(w)
        H[length, : length + 1] = H[: length + 1, length] = h
        length += 1
        is_over = n_products >= most_products
        if is_over or length == longest or (length > k and (length - k) % LOOK_EVERY == 0):
            values, S = dense_eigenpairs(H[:length, :length])
            k_now = min(k, length)
            residuals = size * np.abs(S[-1, :k_now])
            is_whole = length == n - len(known)
            if is_over or is_whole or is_enough(values[:k_now], residuals, n_products):
                vectors = (S[:, :k_now].T @ basis[:length]).T
                return RitzPairs(values[:k_now], vectors, residuals, n_products)
        if length == longest:
            kept = k + (longest - k) // 3
            basis[:kept] = S[:, :kept].T @ basis[:length]
            H[:] = 0.0
            H[np.arange(kept), np.arange(kept)] = values[:kept]
            length = kept
        if size > NOTHING:
            basis[length] = w / size
        else:  # the basis is closed: what lies beside it begins anew
            basis[length] = _new_direction(known, basis[:length], rng)


def _beside(w: FloatArray, known: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """w without its share in the rows of both, and the share in the basis."""
    if len(known):
        w = w - (known @ w) @ known
    h = basis @ w
    return w - h @ basis, h


def _new_direction(known: FloatArray, basis: FloatArray, rng: np.random.Generator) -> FloatArray:
    w: FloatArray = rng.standard_normal((known.shape[1],))
    for _ in range(2):
        w = _beside(w, known, basis)[0]
        w = w / np.linalg.norm(w)
    return w
