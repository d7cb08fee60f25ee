"""Kernels by name: what users pass as `kernel` and `gamma` becomes a kernel object."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from mercer.kernels.algebra import Product, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.exponential import RBF, Chi2, Laplacian
from mercer.kernels.given import FunctionKernel, Precomputed
from mercer.kernels.inner_products import Cosine, HistogramIntersection, Polynomial
from mercer.kernels.unit_rows import UnitRows

NAMES: dict[str, type[Kernel]] = {
    "rbf": RBF,
    "laplacian": Laplacian,
    "chi2": Chi2,
    "cosine": Cosine,
    "polynomial": Polynomial,
    "histogram_intersection": HistogramIntersection,
    "precomputed": Precomputed,
}
COMBINATIONS: tuple[type[Kernel], ...] = (Sum, Product, Scaled, UnitRows)  # of other kernels


def as_kernel(kernel: Any, gamma: Any = "auto") -> Kernel:
    """A kernel object from what users pass.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name with this gamma, an object (a copy of it is returned), or a function of (X, Y).
    gamma : float or str, default="auto"
        The bandwidth of a named kernel; "auto" beside an object or a function.

    Returns
    -------
    kernel : Kernel
    """
    if isinstance(kernel, str):
        if kernel not in NAMES:
            raise ValueError(f"kernel={kernel!r} is unknown; choose one of {sorted(NAMES)}")
        named = NAMES[kernel]
        if "gamma" in named().get_params():
            return named().set_params(gamma=gamma)
        if gamma != "auto":
            raise ValueError(f"kernel={kernel!r} has no gamma (gamma={gamma!r} was given)")
        return named()
    if not isinstance(gamma, str) or gamma != "auto":
        raise ValueError(
            f"gamma={gamma!r} was given together with a kernel object; put it into the object, "
            f"e.g. RBF({gamma!r})"
        )
    if isinstance(kernel, Kernel):
        return clone(kernel)
    if callable(kernel):
        return FunctionKernel(kernel)
    raise TypeError(
        f"kernel={kernel!r} is a {type(kernel).__name__}; pass a name out of {sorted(NAMES)}, "
        "a kernel object such as RBF(0.5), or a function of (X, Y)"
    )


def is_precomputed(kernel: Any) -> bool:
    """Whether the `kernel` of an estimator says that X is a matrix of similarities."""
    return kernel.is_precomputed if isinstance(kernel, Kernel) else kernel == "precomputed"
