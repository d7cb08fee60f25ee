"""One door to the eigensolvers: the largest eigenvalues of a symmetric matrix, and how sure."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mercer._run.extras import require
from mercer._run.types import FloatArray
from mercer.linalg.chebyshev import chebyshev, filtered_eigenpairs, lower_bound, ritz_pairs
from mercer.linalg.complete import ITERATIONS, complete_by_lanczos, complete_by_solver
from mercer.linalg.eigenpairs import Eigenpairs, checked_pairs, dense_eigenpairs
from mercer.linalg.shift_invert import inverted_eigenpairs, is_narrow

Solver = Literal["auto", "dense", "arpack", "lobpcg", "primme", "inverted"]
Pairs = tuple[FloatArray, FloatArray]  # values and vectors

MOST = 0.4  # of the eigenpairs: to find more one by one is slower than to find all at once
SMALL = 400  # up to here a dense solver in float64 is the cheapest
MANY = 64  # pairs of a sparse matrix: from here on a filtered block is cheaper than ARPACK
FILTER_PAIRS = 20  # of a sparse matrix of FILTER_ROWS rows or more: from here on, a filtered block
FILTER_ROWS = 20_000  # is half as expensive as ARPACK's vectors one by one,
FILTER_TOL = 5e-4  # to this relative error, in float32
RESCUE = 100  # iterations for vectors that ARPACK did not find
DENSE_ROWS = 3000  # a sparse matrix of this size may be made dense when an iteration fails,
FEW = 20  # pairs that shift and invert finds sooner than a dense solver, of SMALL rows and more
DEFLATED_ROWS = 1000  # and of this size when eigenvectors are known: quick, and the most reliable
POLISH = 3  # subspace iterations in float64 after a float32 decomposition ...
POLISHED = 0.01  # ... which must leave residuals this small beside the last gap, that matters most
SUBSPACE = 8  # double steps in float32 from the eigenvectors of a similar dense matrix
FILTERED = 0.5  # of the way from the smallest eigenvalue to the last that is kept


def leading_eigenpairs(
    A: Any,
    k: int,
    *,
    solver: Solver = "auto",
    tol: float = 1e-6,
    max_iter: int = 1000,
    known: FloatArray | None = None,
    start: Pairs | None = None,
    complete: bool = False,
    rng: np.random.Generator,
) -> Eigenpairs:
    """The k largest eigenvalues of a symmetric matrix, with vectors and residuals.

    Iterations are bounded: what was reached is returned with its residuals. More than k pairs are
    returned where more are `known`, or where a dense matrix has a `start` of more.

    Parameters
    ----------
    A : ndarray, sparse array or LinearOperator of shape (n, n)
    k : int
    solver : "auto", "dense", "arpack", "lobpcg", "primme" or "inverted", default="auto"
        "auto" takes a dense solver for dense matrices (in float32, then polished in float64, for a
        few pairs of large ones), a Chebyshev filter for many pairs of a sparse one, and ARPACK
        otherwise. "inverted": a few pairs of a small sparse matrix beside `known` ones by shift and
        invert, which is quick and may overlook copies of an eigenvalue; else like "auto".
    tol : float, default=1e-6
    max_iter : int, default=1000
        Of ARPACK, LOBPCG and PRIMME.
    known : ndarray of shape (c, n), default=None
        Eigenvectors (rows) of the largest eigenvalue, which is 1. They are returned first, and
        only the others are computed: by shift and invert where A is a narrow sparse graph.
    start : values and vectors of a similar matrix, default=None
        Iterate from there. Rows of A that the vectors do not have yet come last.
    complete : bool, default=False
        For operators whose products are the cost: take Lanczos, tighten `tol` to the last gap, and
        search for copies of eigenvalues that were overlooked.
    rng : numpy.random.Generator
    """
    n = A.shape[0]
    if complete and solver == "auto" and n > SMALL and k <= n // 3:
        return complete_by_lanczos(A, k, tol, rng, np.empty((0, n)) if known is None else known[:k])
    if complete:
        return complete_by_solver(
            A, lambda wanted: _solve(A, k, solver, wanted, ITERATIONS, rng), tol, rng
        )
    if known is not None:
        return _beside_known(A, k, known.T, solver, tol, max_iter, rng)
    if start is not None and isinstance(A, np.ndarray):
        return _by_subspace(A, start[1])
    if solver == "auto" and sp.issparse(A) and k >= MANY:
        found = filtered_eigenpairs(A, k, start, tol=10 * tol, rng=rng)
        if found is not None:
            return found
    return _solve(A, k, solver, tol, max_iter, rng)


def polish_eigenpairs(A: Any, values: FloatArray, vectors: FloatArray, *, degree: int) -> Pairs:
    """The Ritz pairs after a filter of the vectors: what truncation has lost comes back.

    A filter that ended at the last eigenvalue would take it for the first of the unwanted ones.
    """
    low = lower_bound(A)
    high = low + FILTERED * (float(values[-1]) - low)
    return ritz_pairs(A, chebyshev(A, vectors, degree, low, high, dtype=np.float32))


def _solve(
    A: Any, k: int, solver: Solver, tol: float, max_iter: int, rng: np.random.Generator
) -> Eigenpairs:
    """By one of the solvers that a user may name."""
    n = A.shape[0]
    k = min(k, n)
    if solver == "auto":
        is_dense = isinstance(A, np.ndarray) or n <= SMALL or k > n // 3
        solver = "dense" if is_dense else "arpack"
    if solver == "dense":
        return _dense(_as_dense(A), k)
    start = rng.standard_normal((n, k))
    solvers = {"arpack": _arpack, "lobpcg": _lobpcg, "primme": _primme}
    if solver not in solvers:
        raise ValueError(f"eigen_solver={solver!r} is unknown; choose {['dense', *solvers]}")
    values, vectors = solvers[solver](A, k, start, tol, max_iter)
    if len(values) < k and n <= DENSE_ROWS:
        return _dense(_as_dense(A), k)
    if len(values) < k:  # start from those that did converge
        start[:, : len(values)] = vectors
        values, vectors = _lobpcg(A, k, start, tol, RESCUE)
        solver += ", then lobpcg"  # type: ignore[assignment]
    return checked_pairs(A, values, vectors, solver)


def _beside_known(
    A: Any,
    k: int,
    known: FloatArray,
    solver: Solver,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> Eigenpairs:
    """The known eigenvectors (columns), and others of A with the eigenvalues of these made -1.

    An iterative solver is spared equal eigenvalues, which it cannot separate.
    """
    c = known.shape[1]
    if k <= c:
        return Eigenpairs(np.ones(c), known, np.zeros(c), "")
    is_small = A.shape[0] <= DEFLATED_ROWS
    is_inverted = is_small and solver == "inverted" and A.shape[0] > SMALL and k <= FEW
    solver = "auto" if solver == "inverted" else solver
    deflated = _deflate(A, known)
    is_inverted |= sp.issparse(A) and not is_small and solver == "auto" and is_narrow(A)
    if is_inverted:
        found = inverted_eigenpairs(A, known, k - c, tol, rng)
        pairs = checked_pairs(deflated, *found, "arpack (shift-invert)")
    elif filtered := _filtered(A, k, solver, rng):
        return filtered
    else:
        pairs = _solve(deflated, k - c, solver, tol, max_iter, rng)
    return Eigenpairs(
        np.r_[np.ones(c), pairs.values],
        np.hstack([known, pairs.vectors]),
        np.r_[np.zeros(c), pairs.residuals],
        pairs.solver,
    )


def _filtered(A: Any, k: int, solver: Solver, rng: np.random.Generator) -> Eigenpairs | None:
    """Many pairs of a large sparse matrix, to a few digits; None where that is not worth it."""
    is_large = sp.issparse(A) and A.shape[0] >= FILTER_ROWS and k >= FILTER_PAIRS
    if solver != "auto" or not is_large:
        return None
    return filtered_eigenpairs(A, k, tol=FILTER_TOL, rng=rng)


def _deflate(A: Any, known: FloatArray) -> Any:
    """A - 2 U Uᵀ: known eigenvectors U of eigenvalue 1 get the eigenvalue -1."""
    from scipy.sparse.linalg import LinearOperator

    n = A.shape[0]
    if n <= DEFLATED_ROWS:
        return _as_dense(A) - 2 * known @ known.T

    def product(V: FloatArray) -> FloatArray:
        V = V.reshape(n, -1)
        return A @ V - 2 * known @ (known.T @ V)

    return LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)


def _by_subspace(A: FloatArray, start: FloatArray) -> Eigenpairs:
    """As many pairs as the start has, by subspace iteration, in float32 but for the last step."""
    V, A_single = np.linalg.qr(start)[0], A.astype(np.float32)
    for _ in range(SUBSPACE):
        V = np.linalg.qr(A_single @ (A_single @ V.astype(np.float32)))[0].astype(np.float64)
    V = np.linalg.qr(A @ V)[0]
    AV = A @ V
    values, rotation = dense_eigenpairs(V.T @ AV)
    vectors = V @ rotation
    residuals = np.linalg.norm(AV @ rotation - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals, "subspace iteration")


def _as_dense(A: Any) -> FloatArray:
    if isinstance(A, np.ndarray):
        return A
    dense: FloatArray = A.toarray() if sp.issparse(A) else A @ np.eye(A.shape[0])
    return dense


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


def _largest(A: FloatArray, k: int) -> Pairs:
    """The k largest by LAPACK, which finds fewer, or fails, where many eigenvalues are equal."""
    n = len(A)
    if k <= MOST * n:
        with suppress(np.linalg.LinAlgError):
            some = scipy.linalg.eigh(A, subset_by_index=[n - k, n - 1], check_finite=False)
            if len(some[0]) == k:
                return some
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
