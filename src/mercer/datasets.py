"""Shapes to cluster: seeded generators of labelled points, from a hundred rows to 10⁷.

Each is a pure function ``shape(n, ..., random_state=..., dtype=...) -> (X, y)``: X of shape
(n, n_features), y of ids 0, 1, ... The clusters have equal shares of the rows, give or take one,
and the rows come in random order. The float32 points are the float64 points, rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mercer._run.random import as_generator
from mercer._run.types import FloatArray, IdArray, RandomState

__all__ = [
    "blobs",
    "circles_and_gaussians",
    "directions",
    "gaussian_pair",
    "many_clusters",
    "moons",
    "parabolas",
    "ring_and_core",
    "rings",
    "spirals",
    "zigzag",
]


GENERATED_ROWS = 100_000  # of many columns, made at once


def rings(
    n: int,
    *,
    radii: Sequence[float] = (1.0, 2.0, 3.0),
    noise: float = 0.1,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """Concentric rings, one cluster per radius: x = r·(cos φ, sin φ) + noise·ε.

    Parameters
    ----------
    n : int
        Number of rows.
    radii : sequence of float, default=(1.0, 2.0, 3.0)
        The radius of each ring; y numbers them in this order.
    noise : float, default=0.1
        Standard deviation of the Gaussian ε added to each coordinate.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.

    Examples
    --------
    >>> X, y = rings(6, radii=(1, 5), noise=0, random_state=0)
    >>> np.hypot(*X.T).round(6)[y == 1]
    array([5., 5., 5.])
    """
    centres = np.zeros((len(radii), 2))
    return _rings_at(centres, radii, np.full(len(radii), noise), n, random_state, dtype)


def ring_and_core(
    n: int = 1000,
    *,
    radius: float = 3.0,
    noise: float = 0.1,
    spread: float = 0.3,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """A Gaussian core (y = 0) in the middle of a ring (y = 1), like "Ring" of [chen2020].

    Kernel k-means separates them with an RBF of gamma 1/8 to 1/2; k-means cuts the ring in two.

    Parameters
    ----------
    n : int, default=1000
        Number of rows.
    radius : float, default=3.0
        Of the ring.
    noise : float, default=0.1
        Standard deviation of the ring's noise.
    spread : float, default=0.3
        Standard deviation of the core.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.
    """
    return _rings_at(np.zeros((2, 2)), (0.0, radius), (spread, noise), n, random_state, dtype)


def circles_and_gaussians(
    n: int,
    *,
    radii: Sequence[float] = (1.0, 2.0, 3.0),
    n_gaussians: int = 8,
    noise: float = 0.1,
    spread: float = 0.5,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """Concentric circles with Gaussian clouds around them; 11 clusters by default.

    The circles come first in y. The clouds are evenly spaced on a circle of twice the largest
    radius.

    Parameters
    ----------
    n : int
        Number of rows.
    radii : sequence of float, default=(1.0, 2.0, 3.0)
        The radius of each circle.
    n_gaussians : int, default=8
        Number of clouds.
    noise : float, default=0.1
        Standard deviation of the circles' noise.
    spread : float, default=0.5
        Standard deviation of each cloud.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.
    """
    angles = np.arange(n_gaussians) * (2 * np.pi / max(n_gaussians, 1))
    around = 2.0 * max(radii, default=1.0) * _directions(angles)
    return _rings_at(
        centres=np.concatenate((np.zeros((len(radii), 2)), around)),
        radii=(*radii, *[0.0] * n_gaussians),
        scales=[noise] * len(radii) + [spread] * n_gaussians,
        n=n,
        random_state=random_state,
        dtype=dtype,
    )


def spirals(
    n: int,
    arms: int = 2,
    *,
    turns: float = 1.5,
    inner: float = 0.1,
    noise: float = 0.0225,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """Intertwined spirals within the unit disk, one cluster per arm.

    Arm a is r·(cos φ, sin φ) with r = inner + (1 - inner)·t, φ = 2π(turns·t + a/arms) and t
    uniform in [0, 1]. Neighbouring arms are (1 - inner)/(turns·arms) apart: more arms need less
    noise.

    Parameters
    ----------
    n : int
        Number of rows.
    arms : int, default=2
        Number of spirals.
    turns : float, default=1.5
        How often each winds around the centre.
    inner : float, default=0.1
        The radius at which they start.
    noise : float, default=0.0225
        Standard deviation of the noise.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.
    """
    rng = as_generator(random_state)
    y = _equal_shares(n, arms, rng)
    t = rng.random(n)
    X = _directions(2 * np.pi * (turns * t + y / arms))
    X *= (inner + (1.0 - inner) * t)[:, None]
    return _scattered(X, noise, rng, dtype), y


def parabolas(
    n: int = 1000,
    *,
    noise: float = 0.1,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """Two parabolas that reach into each other, like "Parabolic" of [chen2020].

    (t, 0.3 t²) opens upwards and (t + 1, 2.9 - 0.3 t²) downwards, t uniform in [-2, 2]. Kernel
    k-means separates them with an RBF of gamma 1 to 2.

    Parameters
    ----------
    n : int, default=1000
        Number of rows.
    noise : float, default=0.1
        Standard deviation of the noise.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.
    """
    rng = as_generator(random_state)
    y = _equal_shares(n, 2, rng)
    t = rng.uniform(-2.0, 2.0, n)
    bend = 0.3 * t**2
    X = np.column_stack((t + y, np.where(y == 0, bend, 2.9 - bend)))
    return _scattered(X, noise, rng, dtype), y


def zigzag(
    n: int = 1000,
    *,
    noise: float = 0.1,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """Two parallel zigzag lines, one above the other, like "Zigzag" of [chen2020].

    Each has three strokes between -1 and 1 while it advances by 6; the lines are 2.7
    apart. Kernel k-means separates them with an RBF of gamma 1/2; k-means cuts across both.

    Parameters
    ----------
    n : int, default=1000
        Number of rows.
    noise : float, default=0.1
        Standard deviation of the noise.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.
    """
    rng = as_generator(random_state)
    y = _equal_shares(n, 2, rng)
    t = rng.uniform(0.0, 6.0, n)
    height = np.abs(t % 4.0 - 2.0) - 1.0
    return _scattered(np.column_stack((t, height + 2.7 * y)), noise, rng, dtype), y


def moons(
    n: int,
    *,
    noise: float = 0.05,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """Two half circles that reach into each other; `sklearn.datasets.make_moons`.

    Parameters
    ----------
    n : int
        Number of rows.
    noise : float, default=0.05
        Standard deviation of the noise.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.
    """
    from sklearn.datasets import make_moons

    return _from_sklearn(make_moons, n, 2, random_state, dtype, noise=noise)


def blobs(
    n: int,
    *,
    n_clusters: int = 3,
    n_features: int = 2,
    spread: float = 1.0,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """Round Gaussian clouds with centres in [-10, 10]^n_features; `sklearn.datasets.make_blobs`.

    In few dimensions centres may fall close together, and the clouds then overlap.

    Parameters
    ----------
    n : int
        Number of rows.
    n_clusters : int, default=3
        Number of clouds.
    n_features : int, default=2
        Number of columns.
    spread : float, default=1.0
        Standard deviation of each cloud.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.
    """
    from sklearn.datasets import make_blobs

    options = {"centers": n_clusters, "n_features": n_features, "cluster_std": spread}
    return _from_sklearn(make_blobs, n, n_clusters, random_state, dtype, **options)


def gaussian_pair(
    n: int = 2048,
    n_features: int = 2,
    *,
    spread: float = 1.0,
    shape: Literal["normal", "hub"] = "normal",
    separation: float = 3.25,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """Two Gaussians, the second `spread` times as wide: x = y·c + s_y·ε with s = (1, spread).

    The centres are ``separation·max(1, spread)`` apart, on the diagonal, so that no column shows
    more of it than another. The clusters overlap a little, and means of many rows find them: with
    the default separation, k-means has an ARI of .76 to .92 for 1 to 128 columns, spreads of 1, 3
    and 8, both shapes and 2,048 rows. Neighbour graphs have a harder time: nearest rows carry
    mostly noise in many columns, and the outermost rows of a hub look like clusters of their own.

    Parameters
    ----------
    n : int, default=2048
        Number of rows, half of them in each cluster.
    n_features : int, default=2
        Number of columns.
    spread : float, default=1.0
        Standard deviation of the second cluster, in each column; that of the first is 1.
    shape : {"normal", "hub"}, default="normal"
        ``"normal"``: ε is standard normal, so that in many columns all rows are about equally far
        from their centre. ``"hub"``: the distance from the centre is Gaussian and the direction
        uniform, with the same variance in each column: a dense middle and rows far out.
    separation : float, default=3.25
        Distance of the centres, in units of the larger standard deviation.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.

    Examples
    --------
    >>> X, y = gaussian_pair(2048, 16, spread=3.0, random_state=0)
    >>> [f"{X[y == cluster].std(axis=0).mean():.1f}" for cluster in (0, 1)]
    ['1.0', '3.0']
    """
    if shape not in ("normal", "hub"):
        raise ValueError(f"shape={shape!r} must be 'normal' or 'hub'")
    rng = as_generator(random_state)
    y = _equal_shares(n, 2, rng)
    centre = separation * max(1.0, spread) / np.sqrt(n_features)
    X = np.repeat(centre * y[:, None], n_features, axis=1)
    scale = np.array((1.0, spread))[y, None]
    if shape == "normal":
        return _scattered(X, scale, rng, dtype), y
    rays = rng.standard_normal((n, n_features))
    rays *= np.sqrt(n_features) / np.linalg.norm(rays, axis=1, keepdims=True)
    return _scattered(X, scale, rng, dtype, along=rays), y


def many_clusters(
    n: int,
    n_clusters: int = 100,
    *,
    n_features: int = 64,
    sizes: Literal["equal", "zipf"] = "equal",
    shape: Literal["convex", "curved"] = "convex",
    separation: float = 0.6,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[FloatArray, IdArray]:
    """Hundreds to thousands of clusters: x = m_y + ε, means m ~ N(0, separation²), ε ~ N(0, 1).

    Parameters
    ----------
    n : int
        Number of rows.
    n_clusters : int, default=100
        Number of clusters; with ``sizes="zipf"`` small ones may have no rows.
    n_features : int, default=64
        Number of columns.
    sizes : {"equal", "zipf"}, default="equal"
        Equal shares of the rows, or a share proportional to 1/i for cluster i.
    shape : {"convex", "curved"}, default="convex"
        Gaussian clusters, or three quarters of a circle around the mean, in a plane of the
        cluster's own and with a radius of four times the noise around it.
    separation : float, default=0.6
        Standard deviation of the means, in units of the noise.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float64
        The floating type of X.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.

    Examples
    --------
    >>> X, y = many_clusters(1000, 50, n_features=8, sizes="zipf", random_state=0)
    >>> X.shape, bool((y == 0).sum() > 5 * (y == 20).sum())
    ((1000, 8), True)
    """
    dtype, rng = _float_dtype(dtype), as_generator(random_state)
    if sizes not in ("equal", "zipf") or shape not in ("convex", "curved"):
        raise ValueError(
            f"sizes={sizes!r} must be 'equal' or 'zipf', and shape={shape!r} 'convex' or 'curved'"
        )
    y = _shares_of(sizes, n, n_clusters, rng)
    means = separation * rng.standard_normal((n_clusters, n_features))
    planes = rng.standard_normal((n_clusters, 2, n_features))
    planes /= np.linalg.norm(planes, axis=2, keepdims=True)
    X = np.empty((n, n_features), dtype)
    for start in range(0, n, GENERATED_ROWS):
        rows = y[start : start + GENERATED_ROWS]
        points = means[rows] + rng.standard_normal((len(rows), n_features))
        if shape == "curved":
            along = _directions(1.5 * np.pi * rng.random(len(rows)))
            points += 4.0 * np.einsum("ij,ijk->ik", along, planes[rows])
        X[start : start + len(rows)] = points
    return X, y


def directions(
    n: int,
    n_clusters: int = 200,
    *,
    n_features: int = 768,
    sizes: Literal["equal", "zipf"] = "zipf",
    spread: float = 1.5,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float32,
) -> tuple[FloatArray, IdArray]:
    """Overlapping directions on the unit sphere, like embeddings: x = (m_y + spread·ε) / ‖·‖.

    m and ε are Gaussian with variance ∝ 1/j in column j and E‖m‖² = E‖ε‖² = 1, so that a few dozen
    of the columns hold most of the variance, as in embeddings of text and images. With the defaults
    the mean cosine of a row to its direction is .56, and the nearest direction is the right one for
    92 % of the rows (NMI .90).

    Parameters
    ----------
    n : int
        Number of rows.
    n_clusters : int, default=200
        Number of directions; with ``sizes="zipf"`` small ones may have no rows.
    n_features : int, default=768
        Number of columns.
    sizes : {"equal", "zipf"}, default="zipf"
        Equal shares of the rows, or a share proportional to 1/i for direction i.
    spread : float, default=1.5
        Length of the noise, in units of the directions'.
    random_state : int, RandomState, Generator or None, default=None
        The seed, or a source of randomness; None gives other points each time.
    dtype : dtype, default=float32
        The floating type of X, which is made in blocks of 100,000 rows.

    Returns
    -------
    X : array of shape (n, n_features)
        The rows.
    y : array of shape (n,)
        The cluster of each row.

    Examples
    --------
    >>> X, y = directions(1000, 20, n_features=64, random_state=0)
    >>> X.shape, X.dtype, bool(np.allclose(np.linalg.norm(X, axis=1), 1.0, atol=1e-6))
    ((1000, 64), dtype('float32'), True)
    """
    dtype, rng = _float_dtype(dtype), as_generator(random_state)
    if sizes not in ("equal", "zipf"):
        raise ValueError(f"sizes={sizes!r} must be 'equal' or 'zipf'")
    y = _shares_of(sizes, n, n_clusters, rng)
    scales = 1.0 / np.sqrt(np.arange(1, n_features + 1))
    scales /= np.linalg.norm(scales)
    means = scales * rng.standard_normal((n_clusters, n_features))
    X = np.empty((n, n_features), dtype)
    for start in range(0, n, GENERATED_ROWS):
        rows = y[start : start + GENERATED_ROWS]
        points = rng.standard_normal((len(rows), n_features))
        points *= spread * scales
        points += means[rows]
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        X[start : start + len(rows)] = points
    return X, y


def _rings_at(
    centres: FloatArray,
    radii: Sequence[float],
    scales: ArrayLike,
    n: int,
    random_state: RandomState,
    dtype: DTypeLike,
) -> tuple[FloatArray, IdArray]:
    """Rings with a centre, a radius and a noise each; a Gaussian is a ring of radius zero."""
    rng = as_generator(random_state)
    y = _equal_shares(n, len(radii), rng)
    X = _directions(rng.uniform(0.0, 2 * np.pi, n))
    X *= np.asarray(radii, dtype=np.float64)[y, None]
    X += centres[y]
    return _scattered(X, np.asarray(scales, dtype=np.float64)[y, None], rng, dtype), y


def _from_sklearn(
    make: Callable[..., Any],
    n: int,
    n_clusters: int,
    random_state: RandomState,
    dtype: DTypeLike,
    **options: float,
) -> tuple[FloatArray, IdArray]:
    """A generator of scikit-learn, seeded by ours: it knows RandomState but no Generator."""
    _check_shares(n, n_clusters)
    seed = int(as_generator(random_state).integers(2**32))
    X, y = make(n, random_state=seed, **options)
    return X.astype(_float_dtype(dtype), copy=False), y.astype(np.intp, copy=False)


def _check_shares(n: int, n_clusters: int) -> None:
    """Refuse fewer rows than clusters."""
    if n_clusters < 1:
        raise ValueError(f"n_clusters={n_clusters} must be 1 or more")
    if n < n_clusters:
        raise ValueError(f"n={n} rows cannot fill {n_clusters} clusters; raise n")


def _shares_of(sizes: str, n: int, n_clusters: int, rng: np.random.Generator) -> IdArray:
    """Cluster ids in random order: equal shares, or shares proportional to 1/i."""
    if sizes == "equal":
        return _equal_shares(n, n_clusters, rng)
    shares = 1.0 / np.arange(1, n_clusters + 1)
    return rng.choice(n_clusters, n, p=shares / shares.sum())


def _equal_shares(n: int, n_clusters: int, rng: np.random.Generator) -> IdArray:
    """Cluster ids in random order, each as often as any other, give or take one."""
    _check_shares(n, n_clusters)
    y = np.arange(n, dtype=np.intp) % n_clusters
    rng.shuffle(y)
    return y


def _directions(angles: FloatArray) -> FloatArray:
    """Unit vectors (cos φ, sin φ)."""
    return np.column_stack((np.cos(angles), np.sin(angles)))


def _scattered(
    X: FloatArray,
    scale: float | FloatArray,
    rng: np.random.Generator,
    dtype: DTypeLike,
    *,
    along: FloatArray | None = None,
) -> FloatArray:
    """X moved by Gaussian noise of the given standard deviation, each row along its ray if rays
    are given (X is overwritten)."""
    if np.any(np.asarray(scale) < 0):
        raise ValueError(
            f"the standard deviation {np.min(scale)} is negative; pass noise and spread ≥ 0"
        )
    if along is None:
        X += scale * rng.standard_normal(X.shape)
    else:
        X += scale * rng.standard_normal((len(X), 1)) * along
    return X.astype(_float_dtype(dtype), copy=False)


def _float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype, if it is a floating one."""
    wanted = np.dtype(dtype)
    if wanted.kind != "f":
        raise ValueError(f"dtype={wanted} is not a floating type; pass float64 or float32")
    return wanted
