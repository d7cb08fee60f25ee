"""Every factor that the common laws are tried on: each name that users can give, and variants.

An approximation that is added to the table of names (or exported beside it) is here by itself; a
line in VARIANTS tries another setting of it. A maker takes the rank, which those without a rank
of their own ignore.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import factors
from mercer.factors import (
    Approximation,
    Exact,
    IncompleteCholesky,
    Nystrom,
    Quantized,
    RandomFourier,
)
from mercer.factors.landmarks import Landmarks
from mercer.factors.names import NAMES
from mercer.kernels import RBF, Laplacian

GAMMA = 0.3
KERNELS = (RBF(GAMMA), Laplacian(GAMMA))  # the first that an approximation takes is used

Maker = Callable[[int], Any]


def _sized(kind: Callable[..., Any], rank: int) -> Any:
    has_rank = "rank" in inspect.signature(kind).parameters
    return kind(rank=rank) if has_rank else kind()


NAMED: dict[str, Maker] = {  # the settings that a name alone stands for
    name: partial(_sized, kind) for name, kind in sorted(NAMES.items())
}
GREEDY: dict[str, Maker] = {
    "cholesky-greedy": lambda rank: IncompleteCholesky(rank, pivots="greedy"),
    "cholesky-textbook": lambda rank: IncompleteCholesky(rank, pivots="greedy", block=1),
}
RANDOM: dict[str, Maker] = {
    "cholesky-random": NAMED["cholesky"],
    "cholesky-spread": lambda rank: IncompleteCholesky(rank, pivots="spread"),
    "nystrom-uniform": NAMED["nystrom"],
    "nystrom-kmeans": lambda rank: Nystrom(rank, sampling="kmeans"),
    "nystrom-leverage": lambda rank: Nystrom(rank, sampling="leverage"),
}
EXACT: dict[str, Maker] = {
    "exact-eigen": NAMED["exact"],
    "exact-cholesky": lambda rank: Exact("cholesky"),
}
WAVES: dict[str, Maker] = {
    "fourier": NAMED["fourier"],
    "fourier-orthogonal": lambda rank: RandomFourier(rank, orthogonal=True),
}
PROJECTIONS = GREEDY | RANDOM
VARIANTS: dict[str, Maker] = {
    "landmarks-rank-weights": lambda rank: Landmarks(rank, weights="rank"),
    "quantized-radius": lambda rank: Quantized(radius=1.0),
    "quantized-gradient": lambda rank: Quantized(rank=rank, refine="gradient"),
}


def _every() -> dict[str, Maker]:
    """Each setting once: names that a group spells out are not repeated."""
    spelt = PROJECTIONS | EXACT | WAVES
    alone = {name: make for name, make in NAMED.items() if make not in spelt.values()}
    return spelt | alone | VARIANTS


FACTORS = _every()


def exported() -> set[type]:
    """Approximations in `mercer.factors`."""
    members = (getattr(factors, name) for name in factors.__all__)
    return {
        member
        for member in members
        if isinstance(member, type)
        and issubclass(member, Approximation)
        and member is not Approximation
    }


@cache
def kernel_of(make: Maker) -> Any:
    """A kernel that the approximation can stand for."""
    for kernel in KERNELS:
        try:
            make(2).fit(kernel, np.arange(6.0)[:, None], rng=np.random.default_rng(0))
        except ValueError:
            continue
        return kernel
    raise AssertionError(f"{make(2)!r} takes none of {KERNELS}")


def fitted(
    make: Maker, X: Any, *, rank: int = 20, seed: int = 0, kernel: Any = None, threads: int = 1
) -> Any:
    """The factor of X itself, without an estimator."""
    kernel = kernel_of(make) if kernel is None else kernel
    return make(rank).fit(kernel, X, rng=np.random.default_rng(seed), threads=threads)


def cloud(seed: int, n: int = 120, d: int = 3, dtype: Any = np.float64) -> Any:
    """Normal rows off the origin, read-only."""
    X = np.random.default_rng(seed).normal(5.0, 1.0, size=(n, d)).astype(dtype)
    X.flags.writeable = False
    return X


def dense(F: Any) -> Any:
    return F.toarray() if sp.issparse(F) else F


def gram(F: Any) -> Any:
    F = dense(F).astype(np.float64)
    return F @ F.T
