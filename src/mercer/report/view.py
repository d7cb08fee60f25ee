"""What a page shows of the data: a sample of rows with their coordinates, labels and values.

A `View` is gathered once from a fitted model and its rows; everything after it is a pure function.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray
from mercer.embeddings.layout import principal_axes
from mercer.partitions.explanation import (
    COLUMNS,
    EXEMPLARS,
    ColumnEffect,
    Explanation,
    central_rows,
    column_effects,
    distinctive_columns,
)
from mercer.partitions.outliers import noise_cut
from mercer.report.peer import Peer, compare_with_kmeans
from mercer.rows.checks import check_features, checked_source
from mercer.rows.rows import BlockRows, Rows
from mercer.rows.sample import draw_rows
from mercer.rows.source import Source

if TYPE_CHECKING:
    from mercer.selection.result import Selection


SAMPLE_ROWS = 5000  # of a page
VALUES = 6  # columns whose values are shown for a row
PROFILE = 12  # columns of a cluster's profile
MOST_GROUPS = 60  # clusters with a profile and exemplars of their own
MOST_WIDE = 2000  # columns that are made dense for a projection
LONGEST_TEXT = 300  # characters of a row's text
EMBEDDING = "Embedding"


@frozen
class Map:
    """The sampled rows as points of a plane."""

    name: str
    axes: tuple[str, str]  # empty where coordinates mean nothing by themselves
    xy: FloatArray  # (n, 2)
    is_flipped: bool = False  # whether y runs downwards


@frozen
class Group:
    """One cluster in the sample."""

    number: int
    weight: float  # over all rows of the fit
    n_sampled: int
    exemplars: tuple[int, ...]  # positions in the sample, nearest to the mean of the cluster first
    profile: tuple[float, ...]  # mean of each profiled column, in standard deviations
    means: tuple[float, ...]  # the same in the column's own unit
    effects: tuple[ColumnEffect, ...] = ()  # the columns that distinguish it most


@frozen
class Layer:
    """A coarser partition of the clusters."""

    parents: tuple[int, ...]  # the cluster of the layer that each cluster belongs to
    evidence: float

    @property
    def n_clusters(self) -> int:
        return max(self.parents, default=-1) + 1

    def members(self) -> list[list[int]]:
        """The clusters of each cluster of the layer."""
        found: list[list[int]] = [[] for _ in range(self.n_clusters)]
        for cluster, parent in enumerate(self.parents):
            found[parent].append(cluster)
        return found


@frozen
class Picture:
    """A segmentation as a PNG."""

    caption: str
    png: bytes
    shape: tuple[int, int]


@frozen
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


@frozen
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
    layers: tuple[Layer, ...] = ()  # coarse to fine
    scores: FloatArray | None = None  # (n,) outlier scores; None: unknown
    outliers: tuple[int, ...] = ()  # positions in the sample, most outlying first
    texts: tuple[str, ...] = ()  # of the rows, where they are given
    is_of_fit: bool = True  # whether the rows are those of the fit, as far as can be told


@singledispatch
def gather(
    model: Any,
    X: Any,
    *,
    title: str = "",
    seed: int = 0,
    rows: int = SAMPLE_ROWS,
    texts: Sequence[str] | None = None,
) -> View:
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
        How many rows are shown at most.
    texts : sequence of str or None, default=None
        A text for each row of X, which the page shows with the row.

    Returns
    -------
    View
        The rows with their labels and coordinates.
    """
    check_is_fitted(model)
    source = checked_source(X)
    check_features(model, source)
    ids = draw_rows(source.n_rows, rows, np.random.default_rng(seed))
    taken = source.take(ids)
    named, n_clusters = _named(taken, source), len(model.report_.cluster_weights)
    labels = _all_labels(model).predict(named) if n_clusters else np.zeros(len(ids), np.intp)
    with config_context(transform_output="default"):
        Z = np.asarray(model.transform(named), np.float64)
    is_of_fit = _is_fitted_on(model, source, taken)
    scores, outliers = _outliers(model, named)
    return describe(
        taken,
        ids,
        labels,
        _maps(model, Z, taken, source, seed),
        _sizes(model, source, labels, is_of_fit=is_of_fit),
        space=Z,
        names=column_names(source),
        n_rows=source.n_rows,
        title=title,
        seed=seed,
        peer=compare_with_kmeans(taken, labels, seed=seed) if n_clusters > 1 else None,
        selection=model._automatic_choice(),
        layers=_layers(model),
        scores=scores,
        outliers=outliers,
        texts=_texts(texts, source.n_rows, ids),
        is_of_fit=is_of_fit,
    )


def _is_fitted_on(model: Any, source: Source, taken: Rows) -> bool:
    """Whether these may be the rows of the fit: as many, and within the ranges of its columns."""
    report = model.report_
    if source.n_rows != report.n_rows:
        return False
    if report.data is None or isinstance(taken, BlockRows):
        return True
    columns = report.data.columns
    shown = _dense(taken[:, : len(columns)])
    low, high = (np.array([getattr(c, end) for c in columns]) for end in ("low", "high"))
    return bool(((shown >= low) & (shown <= high)).all())


def _sizes(model: Any, source: Source, labels: IdArray, *, is_of_fit: bool) -> tuple[float, ...]:
    """Weights of the clusters in the fit, or how many of other rows each has: all are labelled."""
    fitted = tuple(map(float, model.report_.cluster_weights))
    if is_of_fit or not fitted:
        return fitted
    counts = np.zeros(len(fitted))
    if len(labels) == source.n_rows:
        tiles: Any = [(0, (labels, 0))]
    else:
        tiles, _ = model._work(source, model._labeller, stage="predict")
    for _, (found, _) in tiles:
        counts += np.bincount(found, minlength=len(counts))
    return tuple(counts.tolist())


def _outliers(model: Any, named: Any) -> tuple[FloatArray | None, tuple[int, ...]]:
    """Outlier scores, and the places of rows far above what is usual, or above the noise's cut."""
    known = vars(model).get("outliers_")
    if known is None:
        return None, ()
    scores = np.asarray(model.outlier_scores(named), np.float64)
    cut = noise_cut(scores, np.ones(len(scores)), "auto") if known.cut is None else known.cut
    order = np.argsort(-scores, kind="stable")
    return scores, tuple(int(place) for place in order[scores[order] > cut])


def _layers(model: Any) -> tuple[Layer, ...]:
    """Those of the model; the finest are the clusters themselves."""
    known = vars(model)
    pairs = zip(known.get("layers_", ()), known.get("layer_evidence_", ()), strict=True)
    return tuple(Layer(tuple(map(int, row)), float(evidence)) for row, evidence in pairs)


def _texts(texts: Sequence[str] | None, n_rows: int, ids: IdArray) -> tuple[str, ...]:
    """Those of the sampled rows, shortened."""
    if texts is None:
        return ()
    if len(texts) != n_rows:
        raise ValueError(f"texts has {len(texts):,} entries for {n_rows:,} rows; give one for each")
    shown = (str(texts[int(row)]) for row in ids)
    return tuple(t if len(t) <= LONGEST_TEXT else f"{t[: LONGEST_TEXT - 1]}…" for t in shown)


def _all_labels(model: Any) -> Any:
    """The model without noise: a page shows every row in its cluster, as the sizes count them."""
    copied = copy(model)
    copied.noise = None
    return copied


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
    """A view of rows with known labels; exemplars are nearest to the means in `space`."""
    table = _table(taken)
    profiled = distinctive_columns(table, labels, PROFILE)
    shown = profiled[:VALUES]
    effects = _effects(table, labels, min(len(weights), MOST_GROUPS), names)
    groups = tuple(
        _group(number, weight, table, space, labels, profiled, more.get("scores"), own)
        for (number, weight), own in zip(enumerate(weights[:MOST_GROUPS]), effects, strict=True)
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


def column_names(source: Source) -> tuple[str, ...]:
    names = source.feature_names or (f"column {j}" for j in range(source.n_features))
    return tuple(str(name) for name in names)


def plane(Z: FloatArray, name: str, axis: str) -> Map:
    """Points by the two directions of largest variance; one or two columns stay as they are."""
    if Z.shape[1] < 2:
        second = np.zeros((len(Z), 1))
        return Map(name, (f"{axis} 1", ""), np.hstack([Z, second])[:, :2])
    if Z.shape[1] == 2:
        return Map(name, (f"{axis} 1", f"{axis} 2"), Z)
    axes = (f"first principal axis of the {axis}s", f"second principal axis of the {axis}s")
    return Map(name, axes, principal_axes(Z))


def _maps(model: Any, Z: FloatArray, taken: Rows, source: Source, seed: int) -> tuple[Map, ...]:
    """The neighbour graph in the plane, and the rows themselves where they are a table.

    Of transformers, what they made of the rows.
    """
    if isinstance(model, ClusterMixin):
        xy = model._laid_out(taken, np.random.default_rng(seed))
        maps = [Map(EMBEDDING, ("", ""), xy)]
    else:
        maps = [plane(Z, EMBEDDING, "coordinate")] if Z.shape[1] else []
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


def _effects(
    table: Any, labels: IdArray, n_clusters: int, names: tuple[str, ...]
) -> list[tuple[ColumnEffect, ...]]:
    """The columns that distinguish each of the first clusters."""
    if not n_clusters:
        return []
    found = column_effects(table, labels, n_clusters, np.ones(len(labels)), COLUMNS)
    nobody = np.full((n_clusters, EXEMPLARS), -1.0)
    explanation = Explanation(np.hstack([nobody, found.reshape(n_clusters, -1)]))
    return [profile.columns for profile in explanation.profiles(names, np.ones(n_clusters))]


def _group(
    number: int,
    weight: float,
    table: Any,
    space: Any,
    labels: IdArray,
    profiled: list[int],
    scores: FloatArray | None,
    effects: tuple[ColumnEffect, ...],
) -> Group:
    places = np.flatnonzero(labels == number)
    if not len(places):
        missing = (float("nan"),) * len(profiled)
        return Group(number, weight, 0, (), missing, missing)
    every = _dense(table[:, profiled])
    mean, spread = every.mean(axis=0), every.std(axis=0)
    own = every[places].mean(axis=0)
    z = np.divide(own - mean, spread, out=np.zeros_like(own), where=spread > 0)
    central = central_rows(space, labels, number, EXEMPLARS, scores=scores)
    exemplars, profile = tuple(int(p) for p in central), tuple(z.tolist())
    return Group(number, weight, len(places), exemplars, profile, tuple(own.tolist()), effects)


def _dense(table: Any) -> FloatArray:
    return np.asarray(table.toarray() if sp.issparse(table) else table, np.float64)
