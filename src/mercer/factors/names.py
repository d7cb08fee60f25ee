"""From what users write as `approximation` and `rank` to an approximation object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from mercer.factors.base import Approximation
from mercer.factors.binning import RandomBinning
from mercer.factors.cholesky import IncompleteCholesky
from mercer.factors.exact import Exact
from mercer.factors.fourier import RandomFourier
from mercer.factors.nystrom import Nystrom
from mercer.factors.quantized import Quantized

NAMES: dict[str, Callable[..., Any]] = {
    "binning": RandomBinning,
    "cholesky": IncompleteCholesky,
    "exact": Exact,
    "fourier": RandomFourier,
    "nystrom": Nystrom,
    "quantized": Quantized,
}


def as_approximation(approximation: Any, rank: int, *, default_rank: int) -> Approximation:
    """An approximation of the user's own (a copy), or one by name with this rank."""
    if isinstance(approximation, str):
        if approximation not in NAMES:
            raise ValueError(
                f"approximation={approximation!r} is unknown; choose one of {sorted(NAMES)}"
            )
        if approximation == "exact":
            if rank != default_rank:
                raise ValueError(f"approximation='exact' has no rank (rank={rank} was given)")
            return Exact()
        made: Approximation = NAMES[approximation](rank=rank)
        return made
    if not (hasattr(approximation, "fit") and hasattr(approximation, "get_params")):
        raise TypeError(
            f"approximation={approximation!r} is a {type(approximation).__name__}; pass a name out "
            f"of {sorted(NAMES)} or an object such as IncompleteCholesky(rank=100)"
        )
    if rank != default_rank:
        raise ValueError(
            f"rank={rank} is given beside an approximation object; put it into the object, "
            f"e.g. {type(approximation).__name__}(rank={rank})"
        )
    copy: Approximation = clone(approximation)
    return copy
