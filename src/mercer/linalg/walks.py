"""Leading eigenvectors of a random walk on a graph given by its ties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from mercer._run.types import FloatArray
from mercer.linalg.eigen import Solver, leading_eigenpairs
from mercer.linalg.eigenpairs import Eigenpairs, checked_pairs

DENSE_ROWS = 1000  # up to here a dense solver is quick, and the most reliable
TOL = 1e-8
MAX_ITER = 3000
NARROW = 1e10  # (width of the graph)³ operations of its triangular factor, a few seconds
SHIFT = 1e-7  # beyond the largest eigenvalue


@dataclass(frozen=True, slots=True)
class Walk:
    """P = D⁻¹ W diag(w): its leading eigenvectors φ, and what each row weighs under it."""

    values: FloatArray  # (m,) largest first
    vectors: FloatArray  # (n, m) φ: constant on parts that nothing ties together, up to scale
    weights: FloatArray  # (n,) w·d
    residuals: FloatArray  # (m,)
    solver: str
    n_alone: int  # rows without any tie


def leading_walk(
    W: Any, weights: FloatArray, m: int, *, solver: Solver, rng: np.random.Generator
) -> Walk:
    """m leading eigenvectors of the graph W (symmetric, not negative, dense or sparse).

    The vectors of eigenvalue 1 are known: the indicators of the connected parts. They are put in
    as they are, heaviest part first, and taken out of the matrix, which spares an iterative solver
    eigenvalues that are equal, and which it cannot tell apart.
    """
    degrees = np.asarray(W @ weights, np.float64).ravel()
    tied = degrees > 0
    mass = weights * degrees
    scale = np.sqrt(np.divide(weights, degrees, out=np.zeros_like(mass), where=tied))
    parts = _part_vectors(W, tied, mass, m)
    if (rest := min(m, int(tied.sum())) - parts.shape[1]) > 0:
        pairs = _rest(W, scale, parts, rest, solver=solver, rng=rng)
        values = np.r_[np.ones(parts.shape[1]), pairs.values]
        vectors = np.hstack([parts, pairs.vectors])
        residuals = np.r_[np.zeros(parts.shape[1]), pairs.residuals]
        name = pairs.solver
    else:
        values, vectors, name = np.ones(parts.shape[1]), parts, "connected parts"
        residuals = np.zeros(len(values))
    back = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=tied)
    return Walk(values, back[:, None] * vectors, mass, residuals, name, int((~tied).sum()))


def _rest(
    W: Any,
    scale: FloatArray,
    parts: FloatArray,
    m: int,
    *,
    solver: Solver,
    rng: np.random.Generator,
) -> Eigenpairs:
    """Leading eigenpairs of diag(scale) W diag(scale) beside the known ones."""
    A = _deflated(W, scale, parts)
    if sp.issparse(W) and len(scale) > DENSE_ROWS and solver == "auto" and _is_narrow(W):
        M = sp.diags_array(scale) @ W @ sp.diags_array(scale)
        values, vectors = _inverted(M, parts, m, rng)
        return checked_pairs(A, values, vectors, "arpack (shift-invert)")
    return leading_eigenpairs(A, m, solver=solver, tol=TOL, max_iter=MAX_ITER, rng=rng)


def _is_narrow(W: Any) -> bool:
    """Whether a triangular factor is cheap: so in few dimensions, where gaps are smallest.

    The last separator of a nested dissection is about as large as the graph is wide, and dense:
    its cube is most of the work. (100,000 rows in the plane: width 1,000, a second.)
    """
    order = sp.csgraph.reverse_cuthill_mckee(sp.csr_array(W), symmetric_mode=True)
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    ends = sp.coo_array(W)
    width = int(np.abs(place[ends.coords[0]] - place[ends.coords[1]]).max())
    return width**3 < NARROW


def _inverted(
    M: Any, parts: FloatArray, m: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Largest eigenvalues λ of M from those of (σ - M)⁻¹, 1/(σ - λ): their gaps are far wider."""
    n = M.shape[0]
    sigma = 1.0 + SHIFT
    factor = splu(
        sp.csc_array(sp.eye_array(n) * sigma - M),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def solve(v: FloatArray) -> FloatArray:
        v = v.reshape(n)
        x = factor.solve(v - parts @ (parts.T @ v))
        return x - parts @ (parts.T @ x)

    inverse = LinearOperator((n, n), matvec=solve, dtype=np.float64)
    thetas, vectors = eigsh(inverse, m, which="LA", v0=rng.standard_normal(n), tol=TOL)
    return sigma - 1.0 / thetas, vectors


def _part_vectors(W: Any, tied: Any, mass: FloatArray, m: int) -> FloatArray:
    """√mass on each connected part, of length 1: eigenvectors of eigenvalue 1, heaviest first."""
    if not sp.issparse(W) and bool((W[0] > 0).all()):  # a star ties everything
        return np.sqrt(mass / mass.sum())[:, None]
    ties = sp.csr_array(W)  # of a dense matrix scipy would take ties below 1e-8 for none
    n_parts, part = sp.csgraph.connected_components(ties, directed=False)
    heavy = np.bincount(part, weights=mass, minlength=n_parts)
    order = np.argsort(-heavy, kind="stable")[:m]
    order = order[heavy[order] > 0]
    vectors = np.zeros((len(mass), len(order)))
    for place, number in enumerate(order):
        rows = tied & (part == number)
        vectors[rows, place] = np.sqrt(mass[rows] / heavy[number])
    return vectors


def _deflated(W: Any, scale: FloatArray, parts: FloatArray) -> Any:
    """diag(scale) W diag(scale) without its eigenvectors `parts`, whose eigenvalues become -1."""
    n = len(scale)
    if n <= DENSE_ROWS:
        dense = W.toarray() if sp.issparse(W) else W
        return scale[:, None] * dense * scale - 2 * parts @ parts.T
    M = sp.diags_array(scale) @ W @ sp.diags_array(scale) if sp.issparse(W) else W

    def product(V: FloatArray) -> FloatArray:
        V = V.reshape(n, -1)
        inner = M @ V if sp.issparse(W) else scale[:, None] * (W @ (scale[:, None] * V))
        return inner - 2 * parts @ (parts.T @ V)

    return LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
