"""A check of the kernel on a few rows before the work: is it a kernel, and is it degenerate?"""

from __future__ import annotations

import numpy as np

from mercer.kernels.base import Kernel
from mercer.rows.rows import Rows, cast, take
from mercer.rows.sample import evenly

SAMPLE = 200
SAME = 1e-6  # relative difference below which two similarities are the same
RESOLVED = (
    1e-3  # of the largest similarity: float32 that is off by more does not resolve these rows
)


def probe_kernel(kernel: Kernel, X: Rows) -> list[str]:
    """Raise ValueError if this is not a kernel; return warnings if it is degenerate on these rows.

    X are distinct rows; up to 200 of them, evenly spaced, are compared.
    """
    rows = cast(_few(X), np.float64)
    K = np.asarray(kernel.matrix(rows, rows), np.float64)
    _check_is_kernel(K, kernel)
    return _degenerate(K) if len(K) > 2 else []


def is_resolved(kernel: Kernel, X: Rows) -> bool:
    """Whether the type of X has enough digits: groups 10⁴ spreads apart are too far for float32.

    Squared distances by products lose what is small beside the squared lengths of the rows.
    """
    rows = _few(X)
    exact = np.asarray(kernel.matrix(cast(rows, np.float64)), np.float64)
    error = np.abs(kernel.matrix(rows) - exact).max(initial=0.0)
    return bool(error <= RESOLVED * np.abs(exact).max(initial=0.0))


def _few(X: Rows) -> Rows:
    return take(X, evenly(X.shape[0], SAMPLE))


def _check_is_kernel(K: np.ndarray, kernel: Kernel) -> None:
    name = repr(kernel)
    if not np.isfinite(K).all():
        raise ValueError(
            f"the kernel {name} gives NaN or infinity on these rows; check its parameters, "
            "or scale the columns of X"
        )
    largest = np.abs(K).max()
    if largest == 0:
        raise ValueError(
            f"the kernel {name} is zero between all rows of a sample, themselves included: "
            "there is nothing to cluster by; check its parameters and columns"
        )
    if np.abs(K - K.T).max() > 1e-5 * largest:
        raise ValueError(
            f"the kernel {name} is not symmetric: k(x, y) ≠ k(y, x); symmetrise it, "
            "e.g. (k(x, y) + k(y, x)) / 2"
        )
    if np.diagonal(K).min() < -1e-9 * largest:
        raise ValueError(
            f"the kernel {name} is not positive semi-definite: k(x, x) < 0; use another kernel"
        )
    lowest = float(np.linalg.eigvalsh(K)[0])
    if lowest < -1e-3 * max(np.trace(K) / len(K), largest):
        raise ValueError(
            f"the kernel {name} is not positive semi-definite (eigenvalue {lowest:.3g} on a "
            "sample): distances to cluster centres would be imaginary; use another kernel, or add "
            "a multiple of the identity"
        )


def _degenerate(K: np.ndarray) -> list[str]:
    diagonal = np.maximum(np.diagonal(K), 0.0)
    scale = np.sqrt(np.outer(diagonal, diagonal))
    off = ~np.eye(len(K), dtype=bool) & (scale > 0)
    if not off.any():
        return []
    alike = (K[off] / scale[off]).clip(-1, 1)
    if np.abs(alike).max() < SAME:
        return [
            "the kernel sees no two rows of a sample as alike (its matrix is nearly the "
            "identity), so clusters are arbitrary; use a smaller gamma, or gamma='auto'"
        ]
    if alike.min() > 1 - SAME:
        return [
            "the kernel sees all rows of a sample as the same (its matrix is nearly constant), "
            "so clusters rest on rounding; use a larger gamma, or gamma='auto'"
        ]
    return []
