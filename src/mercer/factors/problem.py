"""What a factor is made of: rows, weights, a sample, a kernel, a budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.budget import Budget
from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer.kernels.bandwidth import around
from mercer.kernels.base import Kernel
from mercer.rows.data_summary import DataSummary
from mercer.rows.rows import n_bytes
from mercer.rows.sample import Sample
from mercer.rows.source import Source


@frozen
class Problem:
    """What an estimator works on."""

    source: Source
    weights: FloatArray | None  # (n_rows,) float64, in units of `weight_unit`
    sample: Sample  # the rows that the factor and the clusters are fitted on
    kernel: Kernel | None  # resolved: its parameters are numbers, in the units of the sample's
    # format (None: the graph scales itself)
    bandwidth: str  # how they came about
    budget: Budget
    block_rows: int
    data: DataSummary | None = None  # what the rows look like
    weight_unit: float = 1.0  # a power of two: what a weight of 1 is in the user's units

    def with_gamma(self, gamma: float) -> Kernel:
        """The kernel with another bandwidth, which is given for raw rows."""
        assert self.kernel is not None
        exponent = self.sample.format.exponent
        return self.kernel.in_units(-exponent).with_gamma(gamma).in_units(exponent)

    def gammas_around(self) -> tuple[float, ...]:
        """The bandwidth, for raw rows, and wider and narrower ones; () for a kernel without."""
        assert self.kernel is not None
        return around(self.kernel.in_units(-self.sample.format.exponent))


def fit_factor(
    approximation: Any,
    problem: Problem,
    *,
    rng: np.random.Generator,
    threads: int,
    n_clusters: int = 1,
) -> Any:
    """A factor of the problem's kernel on its sample, if it fits into memory."""
    demand_factor(approximation, problem)
    return approximation.fit_problem(problem, rng=rng, threads=threads, n_clusters=n_clusters)


def demand_factor(approximation: Any, problem: Problem) -> None:
    """Refuse a factor that cannot fit, before the work, and say which rank would."""
    sample, n_features = problem.sample, problem.source.n_features
    n, itemsize = len(sample), sample.format.dtype.itemsize
    held = n_bytes(sample.rows)
    if approximation.makes_dense and sp.issparse(sample.rows):
        held += n * n_features * itemsize
    demand_rank(approximation, (n, n_features), itemsize, held, problem.budget)


def demand_rank(
    approximation: Any, shape: tuple[int, int], itemsize: int, held: int, budget: Budget
) -> None:
    """Refuse a factor of so many rows that does not fit beside what is held."""
    n, n_features = shape
    needed = approximation.memory(n, n_features, itemsize)
    advice = "raise max_memory"
    rank = approximation.fixed_rank()
    if rank is not None:
        share = (budget.n_bytes - held) / max(needed, 1)
        fitting = int(0.9 * min(rank, n) * share)
        advice += f", or lower the rank to about {fitting}" if fitting >= 1 else ""
    what = f"{approximation!r} on {n:,} rows"
    budget.demand(needed + held, what=what, advice=advice)
