"""What a page shows of the data: a sample of rows with their coordinates, labels and values.

A `View` is gathered once from a fitted model and its rows; everything after it is a pure function.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import leaves_list, linkage
from sklearn import config_context
from sklearn.utils.validation import check_is_fitted

from mercer._run.types import FloatArray, IdArray
from mercer.report.peer import Peer, compare_with_kmeans
from mercer.rows.checks import check_features, checked_source
from mercer.rows.rows import BlockRows, Rows
from mercer.rows.source import Source

if TYPE_CHECKING:
    from mercer.selection.result import Selection


SAMPLE_ROWS = 5000  # of a page
VALUES = 6  # columns whose values are shown for a row
PROFILE = 12  # columns of a cluster's profile
PROTOTYPES = 3  # rows that represent a cluster
MOST_GROUPS = 60  # clusters with a profile and prototypes of their own
FEW = 4  # clusters: a circle shows so many and more better than two directions
RIDGE = 1e-3  # of the mean square of the means: similar clusters stay close
MOST_WIDE = 2000  # columns that are made dense for a projection


@dataclass(frozen=True, slots=True)
class Map:
    """The sampled rows as points of a plane."""

    name: str
    axes: tuple[str, str]
    xy: FloatArray  # (n, 2)
    is_flipped: bool = False  # whether y runs downwards


@dataclass(frozen=True, slots=True)
class Group:
    """One cluster in the sample."""

    number: int
    weight: float  # over all rows of the fit
    n_sampled: int
    prototypes: tuple[int, ...]  # positions in the sample, nearest to the mean of the cluster first
    profile: tuple[float, ...]  # mean of each profiled column, in standard deviations
    means: tuple[float, ...]  # the same in the column's own unit


@dataclass(frozen=True, slots=True)
class Picture:
    """A segmentation as a PNG."""

    caption: str
    png: bytes
    shape: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Levels:
    """The last levels of a tree of regions: pairs of regions merged until one is left."""

    png: bytes  # the image
    shape: tuple[int, int]
    n_segments: int  # of the level shown first
    runs: IdArray  # (2 · runs,) a region and its number of pixels, line after line; -1 outside
    pairs: IdArray  # (n - 1, 2) the second becomes part of the first
    strengths: FloatArray  # (n - 1,) of the contour between them
    sizes: IdArray  # (n,) pixels of each region
    colors: IdArray  # (n, 3) mean colours, 0 to 255


@dataclass(frozen=True, slots=True)
class View:
    """A sample of the rows, and what the model found in them."""

    title: str
    n_rows: int
    seed: int
    rows: IdArray  # (n,) their numbers, ascending
    labels: IdArray  # (n,)
    maps: tuple[Map, ...]
    weights: tuple[float, ...]  # of all clusters, over all rows of the fit
    value_names: tuple[str, ...]
    values: FloatArray  # (n, ≤ VALUES) of the columns that differ most between clusters
    groups: tuple[Group, ...] = ()
    profile_names: tuple[str, ...] = ()
    peer: Peer | None = None
    selection: Selection | None = None
    pictures: tuple[Picture, ...] = ()
    levels: Levels | None = None
    noun: str = "cluster"
    first: int = 0  # the number of the first cluster


@singledispatch
def gather(model: Any, X: Any, *, title: str = "", seed: int = 0, rows: int = SAMPLE_ROWS) -> View:
    """A sample of the rows of X as a fitted model sees them.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of Mercer; a model of something other than rows registers its own
        function, as `Segmenter` does (then X is its image).
    X : array, path or source
        The rows, anything `mercer.as_source` takes.
    title : str, default=""
        What the page calls the data.
    seed : int, default=0
        Of the draw of rows.
    rows : int, default=5000
        How many rows are read at most.

    Returns
    -------
    View
        The rows with their labels and coordinates.
    """
    check_is_fitted(model)
    source = checked_source(X)
    check_features(model, source)
    ids = draw(source.n_rows, rows, np.random.default_rng(seed))
    taken = source.take(ids)
    named, weights = _named(taken, source), tuple(model.report_.cluster_weights)
    labels = model.predict(named) if weights else np.zeros(len(ids), np.intp)
    with config_context(transform_output="default"):
        Z = np.asarray(model.transform(named), np.float64)
    return describe(
        taken,
        ids,
        labels,
        _maps(Z, taken, labels, source),
        weights,
        space=Z,
        names=column_names(source),
        n_rows=source.n_rows,
        title=title,
        seed=seed,
        peer=compare_with_kmeans(taken, labels, seed=seed) if len(weights) > 1 else None,
        selection=model._automatic_choice(),
    )


def describe(
    taken: Rows,
    ids: IdArray,
    labels: IdArray,
    maps: tuple[Map, ...],
    weights: tuple[float, ...],
    *,
    space: Any,
    names: tuple[str, ...],
    n_rows: int,
    title: str,
    seed: int,
    **more: Any,
) -> View:
    """A view of rows with known labels; prototypes are nearest to the means in `space`."""
    table = _table(taken)
    profiled = _distinctive_columns(table, labels, PROFILE)
    shown = profiled[:VALUES]
    groups = tuple(
        _group(number, weight, table, space, labels, profiled)
        for number, weight in enumerate(weights[:MOST_GROUPS])
    )
    return View(
        title=title,
        n_rows=n_rows,
        seed=seed,
        rows=ids,
        labels=labels,
        maps=maps,
        weights=weights,
        value_names=tuple(names[j] for j in shown),
        values=_dense(table[:, shown]),
        groups=groups,
        profile_names=tuple(names[j] for j in profiled),
        **more,
    )


def draw(n_rows: int, most: int, rng: np.random.Generator) -> IdArray:
    """Row numbers, ascending: all, or a sample of at most `most`."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, most, replace=False)).astype(np.intp)


def column_names(source: Source) -> tuple[str, ...]:
    names = source.feature_names or (f"column {j}" for j in range(source.n_features))
    return tuple(str(name) for name in names)


def star(Z: FloatArray, labels: IdArray, name: str, axis: str) -> Map:
    """Points by the linear map that puts the means of clusters on a circle, by least squares.

    Clusters equally far from each other, as in a good embedding, overlap in any two directions of
    largest variance: four clusters and more go on a circle, similar ones beside each other. Rows
    between two clusters stay between them.
    """
    found = np.unique(labels)
    if len(found) < FEW or Z.shape[1] < 3:
        return plane(Z, name, axis)
    centers = np.stack([Z[labels == c].mean(axis=0) for c in found])
    order = leaves_list(linkage(centers, "average", optimal_ordering=True))
    angles = 2.0 * np.pi * np.argsort(order) / len(found)
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    mean = centers.mean(axis=0)
    C = centers - mean
    gram = C.T @ C
    ridge = RIDGE * max(np.trace(gram) / len(gram), np.finfo(float).tiny)
    to_plane = np.linalg.solve(gram + ridge * np.eye(len(gram)), C.T @ corners)
    return Map(name, ("clusters on a circle, rows between them", ""), (Z - mean) @ to_plane)


def plane(Z: FloatArray, name: str, axis: str) -> Map:
    """Points by the two directions of largest variance; one or two columns stay as they are."""
    if Z.shape[1] < 2:
        second = np.zeros((len(Z), 1))
        return Map(name, (f"{axis} 1", ""), np.hstack([Z, second])[:, :2])
    if Z.shape[1] == 2:
        return Map(name, (f"{axis} 1", f"{axis} 2"), Z)
    centred = Z - Z.mean(axis=0)
    directions = np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), [0, 1]])
    axes = (f"first direction of the {axis}s", f"second direction of the {axis}s")
    return Map(name, axes, centred @ (directions * signs))


def _maps(Z: FloatArray, taken: Rows, labels: IdArray, source: Source) -> tuple[Map, ...]:
    """The embedding, and the rows themselves where they are a table."""
    maps = [star(Z, labels, "Embedding", "coordinate")] if Z.shape[1] else []
    if not isinstance(taken, BlockRows) and source.n_features <= MOST_WIDE:
        own = plane(_dense(taken), "Data", "column")
        names = column_names(source)
        if source.n_features <= 2:
            own = Map(own.name, (names[0], names[1] if len(names) > 1 else ""), own.xy)
            return own, *maps  # the familiar plane comes first
        maps.append(own)
    return tuple(maps)


def _named(taken: Rows, source: Source) -> Any:
    """The rows with the column names of their source."""
    if isinstance(taken, BlockRows):
        return dict(zip(taken.names, taken.parts, strict=True))
    if source.feature_names is None or sp.issparse(taken):
        return taken
    from mercer.rows.arrays import ArraySource

    return ArraySource(taken, source.feature_names)


def _table(taken: Rows) -> Any:
    """One table of all columns, dense or sparse."""
    if not isinstance(taken, BlockRows):
        return taken
    if any(sp.issparse(part) for part in taken.parts):
        return sp.hstack([sp.csr_array(part) for part in taken.parts], format="csr")
    return np.hstack(taken.parts)


def _distinctive_columns(table: Any, labels: IdArray, most: int) -> list[int]:
    """The columns whose means differ most between clusters, relative to their spread."""
    mean = np.asarray(table.mean(axis=0)).ravel()
    spread = _spread(table, mean)
    between = np.zeros(len(mean))
    for c in np.unique(labels):
        mine = table[labels == c]
        between += mine.shape[0] * (np.asarray(mine.mean(axis=0)).ravel() - mean) ** 2
    ratio = np.divide(between, spread**2, out=np.zeros_like(between), where=spread > 0)
    order = np.argsort(-ratio, kind="stable")
    return [int(j) for j in order[:most]]


def _spread(table: Any, mean: FloatArray) -> FloatArray:
    squares = table.multiply(table) if sp.issparse(table) else np.square(table, dtype=np.float64)
    second = np.asarray(squares.mean(axis=0)).ravel()
    return np.sqrt(np.maximum(second - mean**2, 0.0))


def _group(
    number: int, weight: float, table: Any, space: Any, labels: IdArray, profiled: list[int]
) -> Group:
    places = np.flatnonzero(labels == number)
    if not len(places):
        missing = (float("nan"),) * len(profiled)
        return Group(number, weight, 0, (), missing, missing)
    every = _dense(table[:, profiled])
    mean, spread = every.mean(axis=0), every.std(axis=0)
    own = every[places].mean(axis=0)
    z = np.divide(own - mean, spread, out=np.zeros_like(own), where=spread > 0)
    centre = np.asarray(space[places].mean(axis=0)).ravel()
    order = np.argsort(_squared_distances(space[places], centre), kind="stable")
    prototypes = tuple(int(p) for p in places[order[:PROTOTYPES]])
    return Group(number, weight, len(places), prototypes, tuple(z.tolist()), tuple(own.tolist()))


def _squared_distances(table: Any, centre: FloatArray) -> FloatArray:
    if sp.issparse(table):
        squares = np.asarray(table.multiply(table).sum(axis=1)).ravel()
        return squares - 2.0 * (table @ centre)
    return ((table - centre) ** 2).sum(axis=1)


def _dense(table: Any) -> FloatArray:
    return np.asarray(table.toarray() if sp.issparse(table) else table, np.float64)
