"""Are the buffer, the eigenpairs and the queue of a stream in a model file sound?"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.factors.dense import PivotFactor
from mercer.factors.mutual import NeighborKernel
from mercer.io.check_models import check_features
from mercer.io.check_rows import (
    check_columns,
    check_format_fits,
    check_kernel,
    is_array,
    is_double,
    is_table,
)
from mercer.io.damage import demand
from mercer.kernels.base import Kernel
from mercer.rows.format import RowFormat
from mercer.rows.rows import BlockRows, Rows
from mercer.stream.queue import Queue
from mercer.stream.running_means import StreamMeans
from mercer.stream.state import Stream

SYMMETRIC = 1e-9  # more than rounding


def check_neighbor_kernel(graph: NeighborKernel) -> None:
    """Every row of the buffer has a threshold, a degree, a weight and a row of the matrix."""
    demand(_is_rows(graph.rows), "the buffer's rows are no table of numbers")
    demand(isinstance(graph.format, RowFormat), "the buffer has no format for its rows")
    check_format_fits(graph.format, graph.rows)
    check_kernel(graph.kernel, graph.rows)
    size = graph.rows.shape[0]
    for name in ("weights", "thresholds", "degrees", "masses"):
        found = getattr(graph, name)
        demand(is_double(found, 1) and len(found) == size, f"the buffer's {name} do not match it")
    demand(bool((graph.degrees > 0).all()), "a degree of the buffer is not positive")
    demand(bool((graph.weights > 0).all()), "a weight of the buffer is not positive")
    demand(bool((graph.masses > 0).all()), "a mass of the buffer is not positive")
    K = graph.matrix
    sound = sp.issparse(K) and K.shape == (size, size) and is_double(K.data, 1)
    demand(sound, "the buffer's matrix does not match it")
    uneven = abs(K - K.T).max()
    demand(bool(uneven <= SYMMETRIC * max(1.0, abs(K).max())), "its matrix is not symmetric")
    p, offset = graph.n_neighbors, graph.offset
    demand(type(p) is int and p > 0, "the number of neighbours is no number")
    demand(isinstance(offset, float) and 0 <= offset < np.inf, "the degrees' offset is no number")
    demand(isinstance(graph.is_normalized, bool), "whether the kernel is normalised is not said")


def check_stream(state: Stream) -> None:
    """The eigenpairs and clusters belong to the buffer."""
    demand(isinstance(state.graph, NeighborKernel), "the stream has no buffer")
    size, k = len(state.graph), len(state.cluster_weights)
    values, vectors = state.values, state.vectors
    demand(is_double(values, 1) and 0 < len(values) <= size, "its eigenvalues are no numbers")
    sound = is_double(vectors, 2) and vectors.shape == (size, len(values))
    demand(sound, "the eigenvectors do not match the buffer")
    weights = state.cluster_weights
    demand(is_double(weights, 1) and 0 < k <= size, "its clusters have no weights")
    demand(bool((weights >= 0).all()), "a cluster's weight is negative")
    for name in ("clusters", "born"):
        found = getattr(state, name)
        demand(is_array(found, 1, "i") and len(found) == size, f"its {name} do not match")
    inside = state.clusters.min() >= 0 and state.clusters.max() < k
    demand(bool(inside), "a row of the buffer is in a cluster that is not there")
    for field in fields(Stream):
        value = getattr(state, field.name)
        if field.type == "int":
            demand(type(value) is int and value >= 0, f"the stream's {field.name} is no count")
        if field.type == "bool":
            demand(isinstance(value, bool), f"the stream's {field.name} is not said")
    means = state.means
    if means is not None:
        demand(isinstance(means, StreamMeans) and len(means.counts) == k, "a cluster has no mean")
        check_pivots(means.factor, state.graph)
    drift = state.drift
    demand(isinstance(drift, float) and 0 <= drift < np.inf, "its drift is no number")
    unit = state.weight_unit
    is_unit = isinstance(unit, float) and 0 < unit < np.inf and np.frexp(unit)[0] == 0.5
    demand(is_unit, "the unit of its weights is no power of two")


def check_pivots(factor: PivotFactor, graph: NeighborKernel) -> None:
    """The means are of rows like those of the buffer, by the same kernel."""
    n_columns = factor.pivots.shape[1]
    demand(n_columns == graph.rows.shape[1], "the means are not of the buffer's columns")
    is_same = type(factor.pivots) is type(graph.rows) and repr(factor.kernel) == repr(graph.kernel)
    demand(is_same, "the means are not of the buffer's kind of rows or kernel")
    demand(_is_same_format(factor.format, graph.format), "the means see rows in another format")


def _is_same_format(one: RowFormat, two: RowFormat) -> bool:
    units = one.exponent, two.exponent
    if len(one.blocks) != len(two.blocks) or one.dtype != two.dtype or len(set(units)) > 1:
        return False
    pairs = zip(one.blocks, two.blocks, strict=True)
    is_shifted = one.shift is not None, two.shift is not None
    is_same = is_shifted[0] == is_shifted[1] and np.array_equal(one.shift, two.shift)  # type: ignore[arg-type]
    return is_same and all(_is_same_format(*pair) for pair in pairs)


def check_stream_means(means: StreamMeans) -> None:
    """Each centre has as many coordinates as the pivots give, and a count."""
    factor, centers, counts = means.factor, means.centers, means.counts
    demand(isinstance(factor, PivotFactor), "the stream's means have no pivots")
    sound = is_double(centers, 2) and centers.shape[1] == factor.rank
    demand(sound, "the stream's means do not match their pivots")
    demand(is_double(counts, 1) and len(counts) == len(centers), "the means have no counts")
    demand(bool((counts >= 0).all()), "the count of a mean is negative")
    demand(isinstance(means.seen, float) and 0 < means.seen < np.inf, "what pivots see is not said")


def check_queue(queue: Queue) -> None:
    """Rows and as many weights."""
    pieces, weights = queue.pieces, queue.weights
    demand(
        isinstance(pieces, tuple) and isinstance(weights, tuple) and len(pieces) == len(weights),
        "the queue's rows and weights do not match",
    )
    for rows, counted in zip(pieces, weights, strict=True):
        demand(_is_rows(rows), "the queue holds no rows")
        sound = is_double(counted, 1) and len(counted) == rows.shape[0]
        demand(sound and bool((counted >= 0).all()), "the queue's weights do not match its rows")


def check_streaming(model: Any) -> None:
    """The buffer and the queue have the columns that rows will have."""
    check_features(model)
    check_columns(model.kernel_, model.n_features_in_)
    state, tables = model.stream_, list(model.queue_.pieces)
    demand(0 <= model.key_ < 2**63, "the stream's key is no number")
    if state is not None:
        demand(isinstance(state.graph.kernel, Kernel), "the stream has no kernel")
        tables.append(state.graph.rows)
        demand(
            np.array_equal(model.cluster_weights_, state.user_weights()),
            "the weights of the clusters are not those of the stream",
        )
    for rows in tables:
        n_columns = rows.shape[1]
        demand(
            n_columns == model.n_features_in_,
            f"its rows have {n_columns} columns, but n_features_in_ is {model.n_features_in_}",
        )


def _is_rows(rows: Rows) -> bool:
    return isinstance(rows, BlockRows) or is_table(rows)
