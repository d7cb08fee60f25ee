"""Coordinates from random bins: eigenvectors of Z Zᵀ, by products that only ever see bin numbers.

A row's coordinates are sums over its bins, one per grid, of vectors that belong to bins: for rows
of the fit and new rows alike (the right singular vectors of the scaled Z, paper 003, eq. 7).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mercer._run.lazy import LazyModule
from mercer._run.types import FloatArray
from mercer.linalg.eigen import SMALL, Eigenpairs, Solver, leading_eigenpairs
from mercer.linalg.lanczos import RitzPairs, lanczos

_jit = LazyModule("mercer.factors._binning_jit")

TOL = 1e-4  # of the singular vectors of the scaled Z, as in the paper ...
GAP_SHARE = 0.01  # ... and residuals above this share of the last gap are worth some more products
LEAST_TOL = 1e-8
LEAST_VALUE = 1e-10  # eigenvalues below are rounding
LOOKS = 8  # products that show whether an eigenvector was overlooked
ITERATIONS = 50  # of the other solvers


def settled_eigenpairs(
    A: Any,
    m: int,
    *,
    solver: Solver,
    rng: np.random.Generator,
    tol: float = TOL,
    known: FloatArray | None = None,
) -> Eigenpairs:
    """Leading eigenpairs, none forgotten, to a tolerance that follows the last gap.

    `known`: eigenvectors (rows) of the largest eigenvalue, 1. The number of products is bounded:
    what was reached is returned with its residuals.
    """
    n = A.shape[0]
    if solver == "auto" and n > SMALL and m <= n // 3:
        return _by_lanczos(A, m, tol, rng, np.empty((0, n)) if known is None else known[:m])
    pairs = leading_eigenpairs(A, m, solver=solver, tol=tol, max_iter=ITERATIONS, rng=rng)
    if pairs.solver.startswith("dense"):
        return pairs
    pairs = _completed(A, pairs, tol, rng)
    finer = _wanted(pairs.values)
    if pairs.residuals.max() <= finer:
        return pairs
    better = leading_eigenpairs(A, m, solver=solver, tol=finer / 2, max_iter=ITERATIONS, rng=rng)
    return _completed(A, better, finer, rng) if len(better.values) == len(pairs.values) else pairs


def _wanted(values: FloatArray) -> float:
    """Residuals that tell the last value from the one before: labels depend on this gap."""
    return max(GAP_SHARE * float(values[-2] - values[-1]), LEAST_TOL) if len(values) > 1 else 1.0


def _by_lanczos(
    A: Any, m: int, tol: float, rng: np.random.Generator, known: FloatArray
) -> Eigenpairs:
    ones, signs = np.ones(len(known)), np.sign(known.sum(axis=1, keepdims=True))
    pairs = Eigenpairs(ones, (signs * known).T, np.zeros(len(known)), "lanczos")
    if len(known) == m:
        return pairs
    n_more = m - len(known)

    def is_enough(values: FloatArray, residuals: FloatArray, n_products: int) -> bool:
        if len(values) < n_more or not _within(tol, values, residuals):
            return False
        return residuals.max() <= _wanted(values) or n_products >= 10 * m + 100

    found = lanczos(
        A.matvec,
        A.shape[0],
        n_more,
        is_enough=is_enough,
        most_products=20 * m + 100,
        rng=rng,
        known=known,
    )
    return _completed(A, _joined(pairs, found, m), tol, rng)


def _within(tol: float, values: FloatArray, residuals: FloatArray) -> bool:
    """‖Z v - σ u‖ ≤ tol·‖Z‖ for singular vectors, where λ = σ² and the residual of λ is σ times."""
    largest = max(float(values[0]), np.finfo(float).tiny)
    return bool(np.all(residuals <= tol * np.sqrt(largest * np.maximum(values, tol * largest))))


def _joined(pairs: Eigenpairs, more: RitzPairs, m: int) -> Eigenpairs:
    """The m largest of both, signs settled."""
    top = more.vectors[np.abs(more.vectors).argmax(axis=0), np.arange(len(more.values))]
    values = np.concatenate([pairs.values, more.values])
    vectors = np.concatenate([pairs.vectors, more.vectors * np.where(top < 0, -1.0, 1.0)], axis=1)
    # what is new is orthogonal to the others, and sees of A only what is beside them
    new = np.sqrt(more.residuals**2 + np.sum(pairs.residuals**2))
    residuals = np.concatenate([pairs.residuals, new])
    order = np.argsort(-values, kind="stable")[:m]
    return Eigenpairs(values[order], vectors[:, order], residuals[order], pairs.solver)


def _completed(A: Any, pairs: Eigenpairs, tol: float, rng: np.random.Generator) -> Eigenpairs:
    """With eigenpairs that were overlooked.

    A Krylov space of one start holds one vector for each eigenvalue, so it may overlook copies, and
    near copies. What is left beside the vectors found is looked at until its largest eigenvalue is
    below all of theirs.
    """
    n, m = A.shape[0], len(pairs.values)
    for _ in range(m if n > m else 0):
        known = np.ascontiguousarray(pairs.vectors.T)
        beside = partial(lanczos, A.matvec, n, 1, rng=rng, known=known)
        look = beside(is_enough=lambda *_: False, most_products=LOOKS)
        if look.values[0] <= pairs.values[-1] + tol * pairs.values[0]:
            break
        missed = beside(
            is_enough=lambda values, residuals, _: _within(tol, values, residuals),
            most_products=ITERATIONS + LOOKS,
        )
        pairs = _joined(pairs, missed, m)
    return pairs
