"""Dask arrays and frames: the partitions are computed where Dask computes them, one at a time."""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.extras import require
from mercer._run.frozen import frozen
from mercer.exceptions import EngineError
from mercer.rows.arrays import working_dtype
from mercer.rows.batches import is_empty, read_batch
from mercer.rows.demands import demand_numbers, demand_table
from mercer.rows.forward import Cursor, ForwardSource, Layout
from mercer.rows.rows import Rows


@frozen(eq=False, slots=False)
class DaskSource(ForwardSource):
    """The rows of a Dask array or frame: a graph of tasks, and the key of each partition.

    Parameters
    ----------
    collection : dask.array.Array or dask.dataframe.DataFrame
        Of two dimensions; empty partitions are legal.

    Notes
    -----
    Nothing is loaded but the partition that is read. It is computed by the workers of the active
    ``distributed.Client`` if there is one; in a worker itself, and without a client, right here.
    Where Dask does not know how long the partitions are they are counted first, which computes
    each of them once.
    """

    collection: Any = field(repr=False)
    graph: dict[Any, Any] = field(init=False, repr=False)
    keys: tuple[Any, ...] = field(init=False, repr=False)  # of the partitions
    lengths: tuple[int, ...] = field(init=False, repr=False)  # of the partitions
    has_futures: bool = field(init=False, repr=False)  # persisted: only a cluster can compute

    def __post_init__(self) -> None:
        layout, lengths, collection = _describe(self.collection)
        graph, keys, has_futures = _plan(collection)
        self._set(
            collection=None,  # its graph is what travels
            graph=graph,
            keys=keys,
            layout=layout,
            has_futures=has_futures,
        )
        if lengths is None:
            lengths = self._count()
        n_rows = sum(lengths)
        if n_rows == 0:
            raise ValueError("the Dask collection has no rows; at least one is wanted")
        starts = np.cumsum([0, *lengths[:-1]], dtype=np.intp)
        self._set(lengths=lengths, n_rows=n_rows, restarts=starts)

    @property
    def client(self) -> Any:
        """The cluster that holds or computes the rows; None where that is this thread."""
        return None if _in_worker() else _client()

    @property
    def block_bytes(self) -> int:
        """What the longest partition takes in memory."""
        return max(self.lengths) * self.n_features * self.dtype.itemsize

    @property
    def identity(self) -> tuple[Any, ...]:
        """What identifies these rows: Dask names its results by what they are made of."""
        return self.keys, self.lengths, self.layout

    def blocks(self, start: int) -> Iterator[Rows]:
        for number in range(self.restart_of(start), len(self.keys)):
            if self.lengths[number]:
                yield self._partition(number)

    def changed(self, found: str) -> str:
        return f"the Dask collection had {self.n_rows} rows at first and {found} now"

    def _partition(self, number: int) -> Rows:
        what = f"partition {number}"
        rows, found = read_batch(self._compute(number), what)
        model = "what Dask says of it"
        self.layout.check_same(found, what, model=model, all_of="partitions of Dask")
        if rows.shape[0] != self.lengths[number]:
            raise ValueError(
                f"{what} had {self.lengths[number]} rows at first and {rows.shape[0]} now: its "
                "graph must give the same rows each time; persist() it, or save it"
            )
        return rows

    def _count(self) -> tuple[int, ...]:
        """The rows of each partition, counted where it is computed: only the numbers travel."""
        import dask
        from dask.delayed import Delayed

        count = dask.delayed(_n_rows)
        counts = [count(Delayed(key, self.graph)) for key in self.keys]
        how = {"scheduler": "synchronous"} if self.client is None else {}
        return tuple(dask.compute(*counts, **how))

    def _compute(self, number: int) -> Any:
        """One partition, computed by the cluster or by this thread."""
        from dask.local import get_sync
        from dask.optimization import cull

        key, is_worker = self.keys[number], _in_worker()
        client = self.client
        if self.has_futures and client is None and not is_worker:
            raise EngineError(
                "the rows of this Dask collection are held by a cluster (they were persisted), and "
                "there is no client of it here: use mercer.on(client), not other processes"
            )
        graph, _ = cull(self.graph, [key])
        if is_worker and self.has_futures:
            from distributed import worker_client

            with worker_client() as own:
                return own.get(graph, key)
        return get_sync(graph, key) if client is None else client.get(graph, key)

    def __reduce__(self) -> tuple[Any, ...]:
        """Graphs may hold functions that only cloudpickle can send to another process."""
        cloudpickle = require("cloudpickle", "dask", "sending Dask collections")
        facts = {name: value for name, value in vars(self).items() if name != "cursor"}
        return _restore, (cloudpickle.dumps(facts),)


def is_dask(X: Any) -> bool:
    """Whether X is a lazy collection of Dask, found out without importing it."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "__dask_keys__")


def _restore(facts: bytes) -> DaskSource:
    source = object.__new__(DaskSource)
    source._set(cursor=Cursor(), **pickle.loads(facts))
    return source


def _describe(collection: Any) -> tuple[Layout, tuple[int, ...] | None, Any]:
    """Layout, lengths of the partitions where they are known, and one partition per block."""
    kinds = {kind.__name__ for kind in type(collection).__mro__ if "dask" in kind.__module__}
    if "Array" in kinds:
        return _describe_array(collection)
    if "DataFrame" in kinds:
        return _describe_frame(collection)
    raise TypeError(
        f"X is a {type(collection).__module__}.{type(collection).__name__}; of Dask, arrays and "
        "DataFrames are read: make one of it"
    )


def _describe_array(array: Any) -> tuple[Layout, tuple[int, ...] | None, Any]:
    if array.ndim == 2 and math.isnan(array.shape[1]):
        raise ValueError(
            "X is a Dask array of an unknown number of columns; call X.compute_chunk_sizes() first"
        )
    demand_table(array.shape, "X")
    demand_numbers(array.dtype, "X")
    dtype, is_sparse = working_dtype(array.dtype), sp.issparse(array._meta)
    layout = Layout(int(array.shape[1]), dtype, is_sparse=is_sparse)
    if len(array.chunks[1]) > 1:
        array = array.rechunk({1: -1})
    lengths = array.chunks[0]
    is_known = not any(map(math.isnan, lengths))
    return layout, tuple(map(int, lengths)) if is_known else None, array


def _describe_frame(frame: Any) -> tuple[Layout, None, Any]:
    meta = frame._meta
    if not len(meta.columns):
        raise ValueError("X is a Dask DataFrame without columns; at least one is wanted")
    return read_batch(meta, "X")[1], None, frame


def _plan(collection: Any) -> tuple[dict[Any, Any], tuple[Any, ...], bool]:
    """The tasks, the key of each partition, and whether a cluster holds results among them."""
    dask = require("dask", "dask", "reading Dask collections")
    from dask.core import flatten

    graph = dict(collection.__dask_graph__())
    has_futures = any(map(_is_future, graph.values()))
    if not has_futures:  # optimizing would lose them
        (collection,) = dask.optimize(collection)
        graph = dict(collection.__dask_graph__())
    return graph, tuple(flatten(collection.__dask_keys__())), has_futures


def _n_rows(partition: Any) -> int:
    """The rows of a partition; what is not a table is refused when it is read."""
    return 0 if is_empty(partition) else int(partition.shape[0])


def _is_future(task: Any) -> bool:
    """Whether this is a result that a cluster holds."""
    value = getattr(task, "value", task)
    return type(value).__module__.startswith("distributed.") and type(value).__name__ == "Future"


def _in_worker() -> bool:
    """Whether this thread runs a task of a Dask worker."""
    if "distributed" not in sys.modules:
        return False
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True


def _client() -> Any:
    """The active client of a cluster, None if there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None
