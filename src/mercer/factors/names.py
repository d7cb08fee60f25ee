"""The table of approximations by name: a new one is one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from mercer.factors.auto import AutoGraph
from mercer.factors.base import Approximation
from mercer.factors.binning import RandomBinning
from mercer.factors.cholesky import IncompleteCholesky
from mercer.factors.exact import Exact
from mercer.factors.fourier import RandomFourier
from mercer.factors.landmarks import Landmarks
from mercer.factors.neighbors import Neighbors
from mercer.factors.nystrom import Nystrom
from mercer.factors.quantized import Quantized
from mercer.kernels.base import Kernel
from mercer.kernels.registry import as_kernel
from mercer.kernels.unit_rows import UnitRows

NAMES: dict[str, type[Approximation]] = {
    "auto": AutoGraph,
    "binning": RandomBinning,
    "cholesky": IncompleteCholesky,
    "exact": Exact,
    "fourier": RandomFourier,
    "landmarks": Landmarks,
    "neighbors": Neighbors,
    "nystrom": Nystrom,
    "quantized": Quantized,
}


def as_approximation(
    approximation: Any,
    rank: Any,
    *,
    default_rank: Any,
    is_given: bool = False,
    suits: Callable[[type[Approximation]], bool] = lambda kind: True,
) -> Approximation:
    """A copy of the user's own approximation, or the one of this name and rank.

    `is_given`: X is a matrix of affinities instead of rows. `suits`: which approximations errors
    offer, because the caller can use them.
    """
    names = sorted(name for name, kind in NAMES.items() if suits(kind))
    by_name = isinstance(approximation, str)
    if by_name:
        if approximation not in NAMES:
            raise ValueError(f"approximation={approximation!r} is unknown; choose one of {names}")
        made = NAMES[approximation].of_rank(rank, is_default=rank == default_rank)
    elif not isinstance(approximation, Approximation):
        raise TypeError(
            f"approximation={approximation!r} is of type {type(approximation).__name__}; pass one "
            f"of the names {names}, an object such as IncompleteCholesky(rank=100), or an object "
            "of a subclass of mercer.factors.Approximation"
        )
    elif rank != default_rank:
        kind = type(approximation).__name__
        has_rank = "rank" in approximation.get_params(deep=False)
        example = f", e.g. {kind}(rank={rank})" if has_rank else f": {kind} has no rank"
        raise ValueError(
            f"rank={rank} is given together with an approximation object; put it into the object"
            f"{example}"
        )
    else:
        made = clone(approximation)
    return made.for_given_matrix(by_name=by_name) if is_given else made


def as_dense_approximation(approximation: Any, rank: Any, *, default_rank: Any) -> Approximation:
    """The same for methods that need features of rows: graphs have none."""
    made = as_approximation(
        approximation, rank, default_rank=default_rank, suits=lambda kind: kind.has_dense_form
    )
    if not made.has_dense_form:
        dense = sorted(name for name, kind in NAMES.items() if kind.has_dense_form)
        raise ValueError(
            f"{type(made).__name__} makes a graph, and this method needs features of rows; choose "
            f"one of {dense}, or use SpectralClustering"
        )
    return made


def kernel_for(approximation: Approximation, kernel: Any, gamma: Any) -> Kernel:
    """What the user wrote as kernel, None being the approximation's own, if both agree.

    The cosine is the approximation's own kernel of rows of unit length, where it has to be.
    """
    own = approximation.default_kernel
    resolved = as_kernel(own if kernel is None else kernel, gamma)
    if resolved.is_cosine and not approximation.takes_cosine:
        resolved = UnitRows(as_kernel(own))
    approximation.check(resolved.of_unit_rows())
    return resolved
