"""Leading eigenpairs of a random walk by shift and invert, where its graph is narrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from mercer._run.types import FloatArray

NARROW = 1e10  # (width of the graph)³ operations of its triangular factor, a few seconds
SHIFT = 1e-7  # beyond the largest eigenvalue


def is_narrow(A: Any) -> bool:
    """Whether a triangular factor is cheap: so in few dimensions, where gaps are smallest.

    The last separator of a nested dissection is about as large as the graph is wide, and dense:
    its cube is most of the work. (100,000 rows in the plane: width 1,000, a second.)
    """
    entries = sp.csr_array(A).sorted_indices()
    order = sp.csgraph.reverse_cuthill_mckee(entries, symmetric_mode=True)
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    rows, columns = entries.tocoo().coords
    return int(np.abs(place[rows] - place[columns]).max()) ** 3 < NARROW


def inverted_eigenpairs(
    A: Any, known: FloatArray, k: int, tol: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The k largest eigenvalues λ of A beside the known eigenvectors (columns) of eigenvalue 1.

    They come from those of (σ - A)⁻¹, 1/(σ - λ), whose gaps are far wider.
    """
    n, sigma = A.shape[0], 1.0 + SHIFT
    factor = splu(
        sp.csc_array(sp.eye_array(n) * sigma - A),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def solve(v: FloatArray) -> FloatArray:
        v = v.reshape(n)
        x = factor.solve(v - known @ (known.T @ v))
        return x - known @ (known.T @ x)

    inverse = LinearOperator((n, n), matvec=solve, dtype=np.float64)
    thetas, vectors = eigsh(inverse, k, which="LA", v0=rng.standard_normal(n), tol=tol)
    return sigma - 1.0 / thetas, vectors
