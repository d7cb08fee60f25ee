"""Leading eigenvectors of a random walk on a graph given by its edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from mercer._run.types import FloatArray
from mercer.linalg.eigen import DEFLATED_ROWS, Solver, leading_eigenpairs

TOL = 1e-8
MAX_ITER = 3000


@dataclass(frozen=True, slots=True)
class Walk:
    """P = D⁻¹ W diag(w): its leading eigenvectors φ, and what each row weighs under it."""

    values: FloatArray  # (m,) largest first
    vectors: FloatArray  # (n, m) φ: constant on unconnected parts, up to scale
    weights: FloatArray  # (n,) w·d
    residuals: FloatArray  # (m,)
    solver: str
    n_alone: int  # rows without any edge


def leading_walk(
    W: Any, weights: FloatArray, m: int, *, solver: Solver, rng: np.random.Generator
) -> Walk:
    """m leading eigenvectors of the graph W (symmetric, not negative, dense or sparse).

    The vectors of eigenvalue 1 are known: the indicators of the connected parts, heaviest first.
    """
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
