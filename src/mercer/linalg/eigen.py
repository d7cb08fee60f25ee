"""One door to the eigensolvers: the largest eigenvalues of a symmetric matrix, and how sure."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mercer._run.extras import require
from mercer._run.types import FloatArray
from mercer.linalg.complete import ITERATIONS, complete_by_lanczos, complete_by_solver
from mercer.linalg.eigenpairs import Eigenpairs, checked_pairs

Solver = Literal["auto", "dense", "arpack", "lobpcg", "primme"]

MOST = 0.4  # of the eigenpairs: to find more one by one is dearer than to find all at once
SMALL = 400  # up to here a dense solver in float64 is the cheapest
RESCUE = 100  # iterations for vectors that ARPACK did not find
DENSE_ROWS = 3000  # a sparse matrix of this size may be made dense when an iteration fails
POLISH = 3  # subspace iterations in float64 after a float32 decomposition ...
POLISHED = 0.01  # ... which must leave residuals this small beside the last gap, that matters most


def leading_eigenpairs(
    A: Any,
    k: int,
    *,
    solver: Solver = "auto",
    tol: float = 1e-6,
    max_iter: int = 1000,
    known: FloatArray | None = None,
    complete: bool = False,
    rng: np.random.Generator,
) -> Eigenpairs:
    """The k largest eigenvalues of a symmetric matrix (dense, sparse, or a linear operator).

    "auto" takes a dense solver for dense matrices (in float32, then polished in float64, for a few
    pairs of large ones) and ARPACK otherwise. Iterations are bounded: what was reached is returned
    with its residuals.

    `complete` (for operators whose products are the cost) searches for overlooked copies of
    eigenvalues, tightens `tol` to the last gap, and takes Lanczos in place of ARPACK; there,
    `known` are eigenvectors (rows) of the largest eigenvalue, 1, which need not be computed.
    """
    n = A.shape[0]
    if not complete:
        return _solve(A, k, solver, tol, max_iter, rng)
    if solver == "auto" and n > SMALL and k <= n // 3:
        return complete_by_lanczos(A, k, tol, rng, np.empty((0, n)) if known is None else known[:k])
    return complete_by_solver(
        A, lambda wanted: _solve(A, k, solver, wanted, ITERATIONS, rng), tol, rng
    )


def _solve(
    A: Any, k: int, solver: Solver, tol: float, max_iter: int, rng: np.random.Generator
) -> Eigenpairs:
    n = A.shape[0]
    k = min(k, n)
    dense = isinstance(A, np.ndarray)
    if solver == "auto":
        solver = "dense" if dense or n <= SMALL or k > n // 3 else "arpack"
    if solver == "dense":
        matrix = A if dense else A.toarray() if sp.issparse(A) else A @ np.eye(n)
        return _dense(matrix, k)
    start = rng.standard_normal((n, k))
    solvers = {"arpack": _arpack, "lobpcg": _lobpcg, "primme": _primme}
    if solver not in solvers:
        raise ValueError(f"eigen_solver={solver!r} is unknown; choose {['dense', *solvers]}")
    values, vectors = solvers[solver](A, k, start, tol, max_iter)
    if len(values) < k and n <= DENSE_ROWS:
        return _dense(A.toarray() if sp.issparse(A) else A @ np.eye(n), k)
    if len(values) < k:  # what did converge, and the best that can be said of the others
        start[:, : len(values)] = vectors
        values, vectors = _lobpcg(A, k, start, tol, RESCUE)
        solver += ", then lobpcg"  # type: ignore[assignment]
    return checked_pairs(A, values, vectors, solver)


def _dense(A: FloatArray, k: int) -> Eigenpairs:
    if len(A) <= SMALL or k > MOST * len(A):
        return checked_pairs(A, *_largest(A, k), "dense")
    _, vectors = _largest(A.astype(np.float32), k)
    vectors = vectors.astype(np.float64)
    for _ in range(POLISH):
        vectors, _ = np.linalg.qr(A @ vectors)
        small, rotation = np.linalg.eigh(vectors.T @ (A @ vectors))
        vectors = vectors @ rotation
    polished = checked_pairs(A, small, vectors, "dense (float32, polished)")
    last_gap = float(polished.values[-2] - polished.values[-1]) if k > 1 else 1.0
    if polished.residuals.max() <= POLISHED * last_gap:
        return polished
    return checked_pairs(A, *_largest(A, k), "dense")


def _largest(A: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """The k largest by LAPACK, which finds fewer for some matrices near multiples of identity."""
    n = len(A)
    if k <= MOST * n:
        values, vectors = scipy.linalg.eigh(A, subset_by_index=[n - k, n - 1], check_finite=False)
        if len(values) == k:
            return values, vectors
    values, vectors = np.linalg.eigh(A)  # all of them, by divide and conquer
    return values[-k:], vectors[:, -k:]


def _arpack(A: Any, k: int, start: FloatArray, tol: float, max_iter: int) -> Any:
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    try:
        return eigsh(A, k, which="LA", v0=start[:, 0], tol=tol, maxiter=max_iter)
    except ArpackNoConvergence as stopped:
        return stopped.eigenvalues, stopped.eigenvectors


def _lobpcg(A: Any, k: int, start: FloatArray, tol: float, max_iter: int) -> Any:
    import warnings

    from scipy.sparse.linalg import lobpcg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # residuals are reported by us
        return lobpcg(A, start, tol=tol, maxiter=max_iter, largest=True)


def _primme(A: Any, k: int, start: FloatArray, tol: float, max_iter: int) -> Any:
    primme = require("primme", "primme", "eigen_solver='primme'")
    return primme.eigsh(A, k, which="LA", v0=start, tol=tol, maxiter=max_iter * k)
