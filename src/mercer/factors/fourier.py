"""Random Fourier features: a stationary kernel as the mean of random waves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored, unstored
from mercer._run.threads import in_order, single_threaded_blas
from mercer._run.types import FloatArray
from mercer.factors.base import Approximation, as_sample, check_whole
from mercer.factors.dense import FeatureFactor
from mercer.kernels.base import Kernel
from mercer.kernels.domain import check_columns, n_selected
from mercer.kernels.sums import CoordinateSums
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, cast, part, take
from mercer.rows.sample import Sample, evenly
from mercer.rows.source import TILE, spans

ERROR_ROWS = 500  # the kernel error is estimated on so many rows


class RandomFourier(Approximation):
    """K ≈ F Fᵀ with f(x) = √(2/rank) [cos ω·x, sin ω·x], ω drawn from the kernel's spectrum.

    k(x - y) is the mean of cos ω·(x - y) over the spectrum [rahimi2007]: normal of variance 2γ
    for RBF, Cauchy of scale γ for Laplacian. F does not depend on the data and costs no kernel
    values: O(n·rank·d) time. Its error falls as 1/√rank only, so pivots (IncompleteCholesky,
    Nystrom) need far fewer columns. Fourier features pay off where pivots are too expensive, e.g.
    for more than a few thousand columns.

    Parameters
    ----------
    rank : int, default=256
        Number of columns of F: rank/2 frequencies, each with a cosine and a sine. An odd rank adds
        a cosine of random phase, so that the mean of F Fᵀ is still K.
    orthogonal : bool, default=False
        Draw orthogonal directions, d at a time [yu2016]: still
        unbiased, smaller error where the rank is not far above d. For RBF only, whose spectrum has
        no preferred directions.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> factor = RandomFourier(rank=4000).fit(RBF(0.1), X, rng=np.random.default_rng(0))
    >>> F = factor.rows(X)
    >>> bool(np.abs(F @ F.T - RBF(0.1)(X)).max() < 0.1)
    True
    """

    takes_cosine = False

    def __init__(self, rank: int = 256, *, orthogonal: bool = False) -> None:
        self.rank = rank
        self.orthogonal = orthogonal

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (FourierFactor,)

    def fit(
        self, kernel: Kernel, X: Any, *, rng: np.random.Generator, threads: int = 1
    ) -> FourierFactor:
        """Draw waves for rows like those of X."""
        self.check(kernel)
        sample = as_sample(kernel, X)
        rows = kernel.select(sample.rows)
        n_waves = -(-self.rank // 2)
        shape = n_waves, rows.shape[1]
        waves = kernel.frequencies(shape, orthogonal=self.orthogonal, rng=rng)
        phases = np.zeros(n_waves)
        if self.rank % 2:
            phases[-1] = rng.uniform(0.0, 2 * np.pi)  # the wave that has no sine
        factor = FourierFactor(
            kernel,
            sample.format,
            sp.csr_array(waves) if sp.issparse(rows) else waves,
            phases,
            self.rank,
        )
        with single_threaded_blas():
            error = _kernel_error(factor, sample)
            F = _training_rows(factor, sample.rows, threads=threads)
        return replace(factor, kernel_error=error, training_rows=F)

    def enough_rows(self) -> int | None:
        """The waves do not look at the rows; those that tell the error are few."""
        return ERROR_ROWS

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        tiles = 2 * min(n_rows, TILE)
        return (n_rows + tiles) * self.rank * itemsize + 2 * 8 * n_features * (self.rank // 2 + 1)

    def width(self, n_rows: int) -> int:
        return int(self.rank)

    def check(self, kernel: Any) -> None:
        check_whole("rank", self.rank)
        if not kernel.has_spectrum:
            raise ValueError(
                f"RandomFourier cannot represent {type(kernel).__name__}: it draws frequencies "
                "from the Fourier transform of a kernel of x - y, which it knows for RBF and "
                "Laplacian; use one of these, or IncompleteCholesky or Nystrom, which take any "
                "kernel"
            )
        if self.orthogonal and not kernel.is_gaussian:
            raise ValueError(
                "orthogonal=True needs a spectrum without preferred directions; RBF has one, "
                f"{type(kernel).__name__} does not: use orthogonal=False"
            )


@frozen
class FourierFactor(FeatureFactor):
    """F = √(2/rank) [cos(ω·x + phase), sin ω·x].

    Each row of F has length 1 as k(x, x) has (nearly so for an odd rank), so the trace says
    nothing about the error: `trace_error` is None, and `kernel_error` is what it is judged by.
    """

    kernel: Kernel = stored(Kernel)
    format: RowFormat = stored(RowFormat)
    waves: Rows = stored("(w, c) table")  # ω in the columns the kernel looks at; CSR if these are
    phases: FloatArray = stored("(w,) float, finite")  # zero, but for the last of an odd rank
    rank: int = stored("int, >= 1")  # twice the waves, or one less
    kernel_error: float = stored("float", np.nan)  # ‖K - F Fᵀ‖ / ‖K‖, estimated on 500 rows
    training_rows: FloatArray | None = unstored()

    def check(self) -> None:
        n_waves = len(self.phases)
        expect(-(-self.rank // 2) == n_waves, f"rank={self.rank} does not match {n_waves} waves")

    def check_model(self, kernel: Kernel, n_features: int) -> None:
        """The waves have the columns that the kernel looks at."""
        for one in (kernel, self.kernel):
            check_columns(one, n_features)
        columns, shift = self.kernel.columns, self.format.shift
        if self.format.blocks:
            is_block = isinstance(columns, str) or columns in range(len(self.format.blocks))
            expect(is_block, "the kernel does not name the column block it looks at")
            return
        n_waved, n_seen = self.waves.shape[1], n_selected(columns, n_features)
        expect(n_waved == n_seen, f"waves have {n_waved} columns, the kernel looks at {n_seen}")
        is_shifted = shift is None or (len(shift) == n_features and not sp.issparse(self.waves))
        expect(is_shifted, "the shift of the row format does not match the columns of the rows")

    @property
    def trace_error(self) -> None:
        return None

    def features(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        products, phases = CoordinateSums(cast(self.waves, dtype), "product"), self.phases
        n_waves, scale = len(phases), np.sqrt(2.0 / self.rank)

        def cosines_and_sines(X: Rows) -> FloatArray:
            Z = products(self.kernel.select(X))
            Z += phases.astype(Z.dtype)
            F = np.empty((len(Z), self.rank), Z.dtype)
            np.cos(Z, out=F[:, :n_waves])
            np.sin(Z[:, : self.rank - n_waves], out=F[:, n_waves:])
            F *= Z.dtype.type(scale)
            return F

        return cosines_and_sines


def _kernel_error(factor: FourierFactor, sample: Sample) -> float:
    """‖K - F Fᵀ‖ / ‖K‖ (Frobenius, weighted) on up to 500 rows, evenly spaced."""
    few = evenly(len(sample), ERROR_ROWS)
    rows = cast(take(sample.rows, few), np.float64)
    F, K = factor.features(np.float64)(rows), factor.kernel.matrix(rows, rows)
    W = np.sqrt(np.outer(sample.weights[few], sample.weights[few]))
    return float(np.linalg.norm(W * (K - F @ F.T)) / np.linalg.norm(W * K))


def _training_rows(factor: FourierFactor, X: Rows, *, threads: int) -> FloatArray:
    features = factor.features(X.dtype)
    F = np.empty((X.shape[0], factor.rank), X.dtype)

    def fill(span: tuple[int, int]) -> None:
        F[slice(*span)] = features(part(X, *span))

    for _ in in_order(fill, spans(len(F)), threads):
        pass
    return F
