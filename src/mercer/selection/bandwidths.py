"""Bandwidths to compare: a grid around a rule, and a kernel with another γ."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from mercer.kernels.base import Kernel

__all__ = ["around", "with_gamma"]

STEPS = (
    1 / 16,
    1 / 4,
    1.0,
    4.0,
    16.0,
)  # of γ: each doubles the reach of an RBF


def around(kernel: Kernel | None) -> tuple[float, ...]:
    """γ of the kernel and wider and narrower ones, ascending; () for a kernel without one."""
    gamma = getattr(kernel, "gamma", None)
    return tuple(float(gamma) * step for step in STEPS) if isinstance(gamma, float) else ()


def with_gamma(kernel: Kernel, gamma: float) -> Kernel:
    """A copy with this bandwidth."""
    if "gamma" not in kernel.get_params():
        raise ValueError(
            f"{kernel!r} has no gamma to search over; use one kernel such as RBF, Laplacian or "
            "Chi2, or search over n_clusters alone"
        )
    copy: Any = clone(kernel).set_params(gamma=float(gamma))
    return copy
