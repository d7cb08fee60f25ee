"""Leading eigenvectors of a random walk on a graph given by its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer.linalg.eigen import DEFLATED_ROWS, Solver, leading_eigenpairs

TOL = 1e-6
MAX_ITER = 3000
MOST_PARTS = 3000  # of which a dense matrix of edges is made


@frozen
class Walk:
    """P = D⁻¹ W diag(w): its leading eigenvectors φ, and what each row weighs under it."""

    values: FloatArray  # (m,) largest first
    vectors: FloatArray  # (n, m) φ: constant on unconnected parts, up to scale
    weights: FloatArray  # (n,) w·d
    residuals: FloatArray  # (m,)
    solver: str
    n_alone: int  # rows without any edge
    n_parts: int = 1  # of several rows, that only bridges connect


def leading_walk(
    W: Any,
    weights: FloatArray,
    m: int,
    *,
    bridges: sp.csr_array | None = None,
    solver: Solver,
    rng: np.random.Generator,
) -> Walk:
    """m leading eigenvectors of the graph W (symmetric, not negative, dense or sparse).

    The vectors of eigenvalue 1 are known: the indicators of the connected parts, heaviest first.
    `bridges` are few and weak edges that connect these parts. With them, eigenvalues near 1 differ
    by less than an iteration can see, so the eigenvectors without them are found first.
    """
    if bridges is not None and bridges.nnz:
        return _bridged_walk(W, bridges, weights, m, solver=solver, rng=rng)
    degrees = np.asarray(W @ weights, np.float64).ravel()
    connected = degrees > 0
    mass = weights * degrees
    scale = np.sqrt(np.divide(weights, degrees, out=np.zeros_like(mass), where=connected))
    parts = _part_vectors(W, connected, mass, m)
    pairs = leading_eigenpairs(
        _normalize(W, scale),
        min(m, int(connected.sum())),
        known=parts.T,
        solver=solver,
        tol=TOL,
        max_iter=MAX_ITER,
        rng=rng,
    )
    back = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=connected)
    return Walk(
        pairs.values,
        back[:, None] * pairs.vectors,
        mass,
        pairs.residuals,
        pairs.solver or "connected parts",
        int((~connected).sum()),
    )


def _bridged_walk(
    W: sp.csr_array,
    bridges: sp.csr_array,
    weights: FloatArray,
    m: int,
    *,
    solver: Solver,
    rng: np.random.Generator,
) -> Walk:
    """The walk on W + bridges in the space of leading eigenvectors of W (Rayleigh and Ritz).

    It is off by the square of what the bridges weigh beside the degrees. Where W has m parts or
    more, that space is the functions that are constant on each of them.
    """
    n_parts, part = sp.csgraph.connected_components(W, directed=False)
    whole = sp.csr_array(W + bridges)
    mass = weights * (whole @ weights)
    weighted = sp.diags_array(weights) @ whole @ sp.diags_array(weights)
    if n_parts >= m:
        indicators = sp.csr_array((np.ones(len(part)), (np.arange(len(part)), part)))
        products = sp.csr_array(indicators.T @ weighted @ indicators)
        scale = 1.0 / np.sqrt(indicators.T @ mass)
        quotient: Any = sp.diags_array(scale) @ products @ sp.diags_array(scale)
        quotient = quotient.toarray() if n_parts <= MOST_PARTS else sp.csr_array(quotient)
        pairs = leading_eigenpairs(quotient, m, tol=TOL, max_iter=MAX_ITER, rng=rng)
        values, residuals, solver_used = pairs.values, pairs.residuals, pairs.solver
        vectors = (scale[:, None] * pairs.vectors)[part]
    else:
        walk = leading_walk(W, weights, m, solver=solver, rng=rng)
        residuals, solver_used = walk.residuals, walk.solver
        gram = walk.vectors.T @ (mass[:, None] * walk.vectors)
        values, mix = scipy.linalg.eigh(walk.vectors.T @ (weighted @ walk.vectors), gram)
        values, vectors = values[::-1], walk.vectors @ mix[:, ::-1]
    n_large = int((np.bincount(part) > 1).sum())
    return Walk(values, vectors, mass, residuals, solver_used, 0, n_large)


def _normalize(W: Any, scale: FloatArray) -> Any:
    """diag(scale) W diag(scale), as products where a copy of W would be large."""
    n = len(scale)
    if sp.issparse(W):
        return sp.diags_array(scale) @ W @ sp.diags_array(scale)
    if n <= DEFLATED_ROWS:
        return scale[:, None] * W * scale

    def product(V: FloatArray) -> FloatArray:
        V = V.reshape(n, -1)
        return scale[:, None] * (W @ (scale[:, None] * V))

    return LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)


def _part_vectors(W: Any, connected: Any, mass: FloatArray, m: int) -> FloatArray:
    """√mass on each connected part, of length 1: eigenvectors of eigenvalue 1, heaviest first."""
    if not sp.issparse(W) and bool((W[0] > 0).all()):  # the first row is connected to all
        return np.sqrt(mass / mass.sum())[:, None]
    edges = sp.csr_array(W)  # of a dense matrix scipy would take edges below 1e-8 for none
    n_parts, part = sp.csgraph.connected_components(edges, directed=False)
    heavy = np.bincount(part, weights=mass, minlength=n_parts)
    order = np.argsort(-heavy, kind="stable")[:m]
    order = order[heavy[order] > 0]
    vectors = np.zeros((len(mass), len(order)))
    for place, number in enumerate(order):
        rows = connected & (part == number)
        vectors[rows, place] = np.sqrt(mass[rows] / heavy[number])
    return vectors
