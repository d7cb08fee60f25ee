"""Leading eigenpairs of which none is overlooked, to a tolerance that follows the last gap."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mercer._run.types import FloatArray
from mercer.linalg.eigenpairs import Eigenpairs
from mercer.linalg.lanczos import RitzPairs, lanczos

GAP_SHARE = 0.01  # residuals above this share of the last gap are worth some more products
LEAST_TOL = 1e-8
LOOKS = 8  # products that show whether an eigenvector was overlooked
ITERATIONS = 50  # of other solvers than Lanczos


def complete_by_lanczos(
    A: Any, k: int, tol: float, rng: np.random.Generator, known: FloatArray
) -> Eigenpairs:
    """The known eigenvectors (rows, of eigenvalue 1) and the leading ones orthogonal to them."""
    ones, signs = np.ones(len(known)), np.sign(known.sum(axis=1, keepdims=True))
    pairs = Eigenpairs(ones, (signs * known).T, np.zeros(len(known)), "lanczos")
    if len(known) == k:
        return pairs
    n_more = k - len(known)

    def is_enough(values: FloatArray, residuals: FloatArray, n_products: int) -> bool:
        if len(values) < n_more or not _within(tol, values, residuals):
            return False
        return residuals.max() <= _wanted(values) or n_products >= 10 * k + 100

    found = lanczos(
        A.matvec,
        A.shape[0],
        n_more,
        is_enough=is_enough,
        most_products=20 * k + 100,
        rng=rng,
        known=known,
    )
    return _complete(A, _join(pairs, found, k), tol, rng)


def complete_by_solver(
    A: Any, solve: Callable[[float], Eigenpairs], tol: float, rng: np.random.Generator
) -> Eigenpairs:
    """What `solve` finds for a tolerance, asked again where the last gap needs a smaller one."""
    pairs = solve(tol)
    if pairs.solver.startswith("dense"):
        return pairs
    pairs = _complete(A, pairs, tol, rng)
    finer = _wanted(pairs.values)
    if pairs.residuals.max() <= finer:
        return pairs
    better = solve(finer / 2)
    return _complete(A, better, finer, rng) if len(better.values) == len(pairs.values) else pairs


def _wanted(values: FloatArray) -> float:
    """Residuals that separate the last value from the one before: labels depend on this gap."""
    return max(GAP_SHARE * float(values[-2] - values[-1]), LEAST_TOL) if len(values) > 1 else 1.0


def _within(tol: float, values: FloatArray, residuals: FloatArray) -> bool:
    """‖Z v - σ u‖ ≤ tol·‖Z‖ for singular vectors, where λ = σ² and the residual of λ is σ times."""
    largest = max(float(values[0]), np.finfo(float).tiny)
    return bool(np.all(residuals <= tol * np.sqrt(largest * np.maximum(values, tol * largest))))


def _join(pairs: Eigenpairs, more: RitzPairs, k: int) -> Eigenpairs:
    """The k largest of both, with the sign of each new vector fixed."""
    top = more.vectors[np.abs(more.vectors).argmax(axis=0), np.arange(len(more.values))]
    values = np.concatenate([pairs.values, more.values])
    vectors = np.concatenate([pairs.vectors, more.vectors * np.where(top < 0, -1.0, 1.0)], axis=1)
    # new vectors are orthogonal to the others, so their residuals do not include that part of A
    new = np.sqrt(more.residuals**2 + np.sum(pairs.residuals**2))
    residuals = np.concatenate([pairs.residuals, new])
    order = np.argsort(-values, kind="stable")[:k]
    return Eigenpairs(values[order], vectors[:, order], residuals[order], pairs.solver)


def _complete(A: Any, pairs: Eigenpairs, tol: float, rng: np.random.Generator) -> Eigenpairs:
    """Add eigenpairs that were overlooked.

    A Krylov space of one start holds one vector for each eigenvalue, so it may overlook copies, and
    near copies. The space orthogonal to the vectors found is searched until its largest eigenvalue
    is below all of theirs.
    """
    n, k = A.shape[0], len(pairs.values)
    for _ in range(k if n > k else 0):
        known = np.ascontiguousarray(pairs.vectors.T)
        search = partial(lanczos, A.matvec, n, 1, rng=rng, known=known)
        look = search(is_enough=lambda *_: False, most_products=LOOKS)
        if look.values[0] <= pairs.values[-1] + tol * pairs.values[0]:
            break
        missed = search(
            is_enough=lambda values, residuals, _: _within(tol, values, residuals),
            most_products=ITERATIONS + LOOKS,
        )
        pairs = _join(pairs, missed, k)
    return pairs
