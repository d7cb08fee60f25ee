"""Rules that choose γ from the data, at any scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from mercer._run.types import FloatArray
from mercer.kernels.base import Kernel
from mercer.rows.rows import Rows, cast, take

STEPS = (
    1 / 16,
    1 / 4,
    1.0,
    4.0,
    16.0,
)  # of γ: each doubles the reach of an RBF

if TYPE_CHECKING:
    from mercer.kernels.exponential import Exponential


Rule: TypeAlias = Literal["auto", "median", "scale"]

SAMPLE = 1000
PAIRS = 300  # rows whose pairs give the mean similarity
BLOCK = 64  # rows whose distances to all others are held at once
NEIGHBOR = 7  # of a full sample; fewer rows, proportionally nearer
FAR = 4.0  # mean distances: the kernel is nearly linear on most rows, and k-means nearly plain


def check_rule(rule: str) -> None:
    """Refuse a string that is not the name of a rule."""
    known = ("auto", "median", "scale")
    if rule not in known:
        raise ValueError(f"gamma={rule!r} is not understood; pass a number or one of {known}")


def scaled_gamma(gamma: float, exponent: int) -> float:
    """γ · 2^exponent, kept within what a float64 can hold."""
    limits = np.finfo(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return float(np.clip(np.ldexp(gamma, exponent), limits.tiny, limits.max))


def choose_gamma(
    kernel: Exponential,
    X: Rows,
    weights: FloatArray,
    *,
    rule: str,
    rng: np.random.Generator,
    least_mean: float = 0.0,
) -> float:
    """γ for distinct rows X by one of the rules.

    ``"auto"``: 1/(2(2s)²) with s the median distance to the 7th nearest row in a seeded sample of
    1,000 (of n < 1,000 rows: the max(1, round(7n/1000))-th), so the kernel reaches e⁻¹ at √8·s and
    follows the density of the sample, whatever the scale and number of rows. For kernels of a
    distance that is not squared (Laplacian) the same reach is used: γ = 1/(√8·s). It is widened
    where the mean of k over pairs of rows would stay below `least_mean`.
    ``"median"``: one over the median of D over pairs. ``"scale"``: 1/(d·variance), scikit-learn's.
    """
    check_rule(rule)
    rules = {"auto": _neighbor_gamma, "median": _median_gamma, "scale": _scale_gamma}
    n = min(X.shape[0], SAMPLE)
    if n < X.shape[0]:
        ids = np.sort(rng.choice(X.shape[0], n, replace=False))
        X, weights = take(X, ids), weights[ids]
    X = cast(X, np.float64)
    gamma = rules[rule](kernel, X, weights)
    if rule == "auto" and least_mean > 0:
        gamma = _widened(kernel, X, weights, gamma, least_mean)
    return gamma if np.isfinite(gamma) and gamma > 0 else 1.0  # one distinct row: any γ is right


def other_gammas(D: FloatArray, weights: FloatArray, gamma: float) -> dict[str, float]:
    """Bandwidths to compare γ with, by name: "median", "far", and "between" the median and γ.

    `D` holds the kernel's distances between some rows; "far" is one over four mean distances.
    Each follows the scale of D exactly, as γ does.
    """
    upper = np.triu_indices(len(D), 1)
    distances, pair_weights = D[upper], weights[upper[0]] * weights[upper[1]]
    middle = _weighted_median(distances, pair_weights) if len(distances) else 0.0
    if middle <= 0 or not np.isfinite(middle):  # most rows agree: there is no scale to compare with
        return {}
    median = 1.0 / middle
    between = median * float(np.sqrt(gamma / median))
    far = 1.0 / (FAR * float(np.average(distances, weights=pair_weights)))
    return {"median": median, "far": far, "between": between}


def _neighbor_gamma(kernel: Exponential, X: Rows, weights: FloatArray) -> float:
    n = X.shape[0]
    if n == 1:
        return 1.0
    rank = min(max(1, round(NEIGHBOR * n / SAMPLE)), n - 1)
    nearest, least = np.empty(n), np.inf  # to the neighbour of this rank; to any that differs
    for start in range(0, n, BLOCK):
        few = np.arange(start, min(start + BLOCK, n))
        D = kernel.distances(take(X, few), X)
        D[few - start, few] = 0.0  # the row itself is its 0th neighbour
        least = min(least, float(D[D > 0].min(initial=np.inf)))
        D.partition(rank, axis=1)
        nearest[few] = D[:, rank]
    root = np.sqrt if kernel.power == 2 else np.positive
    s = _weighted_median(root(nearest), weights)
    if s <= 0:  # distinct rows whose columns in this kernel agree: the nearest that differ
        s = float(root(least))
    return 1.0 / (8.0 * s**2) if kernel.power == 2 else 1.0 / (np.sqrt(8.0) * s)


def _widened(
    kernel: Exponential, X: Rows, weights: FloatArray, gamma: float, least_mean: float
) -> float:
    """The largest γ, up to this one, whose mean similarity reaches `least_mean` (by bisection)."""
    n = min(X.shape[0], PAIRS)
    few = take(X, np.arange(n))
    D = kernel.distances(few, few)
    pair_weights = np.outer(weights[:n], weights[:n])
    np.fill_diagonal(pair_weights, 0.0)  # a row's similarity to itself is always 1
    pair_weights /= max(pair_weights.sum(), np.finfo(float).tiny)

    def mean(log_gamma: float) -> float:
        return float((pair_weights * np.exp(-np.exp(log_gamma) * D)).sum())

    low, high = np.log(gamma) - 40.0, np.log(gamma)
    if n == 1 or mean(high) >= least_mean:
        return gamma
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) >= least_mean else (low, middle)
    return float(np.exp(low))


def _median_gamma(kernel: Exponential, X: Rows, weights: FloatArray) -> float:
    D, n = kernel.distances(X, X), X.shape[0]
    if n == 1:
        return 1.0
    pairs = np.concatenate([D[i, i + 1 :] for i in range(n)])
    del D
    pair_weights = np.concatenate([weights[i] * weights[i + 1 :] for i in range(n)])
    return _inverse(_weighted_median(pairs, pair_weights))


def _scale_gamma(kernel: Exponential, X: Rows, weights: FloatArray) -> float:
    rows = kernel.select(X)
    dense = rows.toarray() if sp.issparse(rows) else rows
    mean = np.average(dense, axis=0, weights=weights)
    variance = np.average((dense - mean.mean()) ** 2, axis=0, weights=weights).mean()
    return _inverse(float(dense.shape[1] * variance))


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """The mean of the lower and upper weighted medians, so that weight 2 is the value twice."""
    order = np.argsort(values)
    total = weights[order]
    np.cumsum(total, out=total)
    half = total[-1] / 2
    lower = values[order[np.searchsorted(total, half * (1 - 1e-12))]]
    upper = values[order[min(np.searchsorted(total, half * (1 + 1e-12)), len(values) - 1)]]
    return float(lower + upper) / 2


def _inverse(value: float) -> float:
    return 1.0 / value if value > 0 else 1.0


def around(kernel: Kernel | None) -> tuple[float, ...]:
    """γ of the kernel and wider and narrower ones, ascending; () for a kernel without one."""
    gamma = None if kernel is None else kernel.gamma
    return tuple(gamma * step for step in STEPS) if isinstance(gamma, float) else ()


def describe_bandwidth(kernel: Kernel, least_mean: float) -> str:
    """How the bandwidths of a kernel come about, in words."""
    widened = f", mean similarity at least {least_mean:.2g}" if least_mean else ""
    rules = {
        "auto": f"gamma by the neighbour rule (7th nearest of 1,000 rows{widened})",
        "median": "gamma by the median distance",
        "scale": "gamma by the variance",
    }
    gammas = [part.gamma for part in kernel.parts()]
    words = [rules.get(g, str(g)) if isinstance(g, str) else "gamma as given" for g in gammas if g]
    return ", ".join(dict.fromkeys(words)) or "no bandwidth"
