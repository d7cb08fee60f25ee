"""The whole kernel matrix, for data small enough to hold it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mercer._run.records import Record
from mercer._run.threads import single_threaded_blas
from mercer.factors.base import Approximation, as_sample
from mercer.factors.cholesky import IncompleteCholesky
from mercer.factors.dense import PivotFactor, pivot_factor
from mercer.kernels.base import Kernel
from mercer.rows.rows import cast


class Exact(Approximation):
    """K = F Fᵀ without approximation: O(n³) time, O(n²) memory.

    Parameters
    ----------
    method : {"eigen", "cholesky"}, default="eigen"
        "eigen" takes F = U Λ^½ from K = U Λ Uᵀ (eq. 2 of [chen2020]), leaving out eigenvalues of
        rounding size; "cholesky" takes the complete pivoted Cholesky factor.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Exact
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> F = Exact().fit(RBF(0.5), X, rng=np.random.default_rng(0)).rows(X)
    >>> bool(np.abs(F @ F.T - RBF(0.5)(X)).max() < 1e-7)
    True
    """

    growth = 3.0

    @classmethod
    def of_rank(cls, rank: Any, *, is_default: bool) -> Exact:
        if not is_default:
            raise ValueError(f"approximation='exact' has no rank (rank={rank} was given)")
        return cls()

    def __init__(self, method: Literal["eigen", "cholesky"] = "eigen") -> None:
        self.method = method

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (PivotFactor,)

    def fit(
        self, kernel: Kernel, X: Any, *, rng: np.random.Generator, threads: int = 1
    ) -> PivotFactor:
        """Decompose the kernel matrix of these rows."""
        sample = as_sample(kernel, X)
        n = len(sample)
        if self.method == "cholesky":
            complete = IncompleteCholesky(rank=n, pivots="greedy")
            return complete.fit(kernel, sample, rng=rng, threads=threads)
        if self.method != "eigen":
            raise ValueError(f"method={self.method!r} is unknown; choose 'eigen' or 'cholesky'")
        rows = cast(sample.rows, np.float64)
        with single_threaded_blas():
            K = kernel.matrix(rows, rows)
            values, vectors = np.linalg.eigh((K + K.T) / 2)
        types = (K.dtype, sample.format.dtype)  # a float32 matrix, or F wanted in float32
        rounding = max(n * np.finfo(np.float64).eps, *(np.finfo(t).eps for t in types))
        kept = values > rounding * values[-1]
        values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
        roots = np.sqrt(values)
        return pivot_factor(
            kernel,
            sample,
            np.arange(n),
            vectors / roots,
            trace_error=0.0,
            training_rows=(vectors * roots).astype(sample.format.dtype),
        )

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        return 4 * 8 * n_rows**2

    def width(self, n_rows: int) -> int:
        return n_rows
