"""``with mercer.on(...)``: which engine runs the passes inside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from typing import Any

from mercer._run.engine import running
from mercer.scale.local import local_cluster
from mercer.scale.processes import PoolEngine, Processes

ENGINES = ("loop", "processes", "dask")


@contextmanager
def on(engine: Any) -> Iterator[Any]:
    """Run every pass over rows inside the block on other processes; labels stay the same.

    Parameters
    ----------
    engine : a Dask client (`distributed.Client`); `mercer.Processes(4)`; a pool of
        `concurrent.futures` on this machine; or a name: "processes", "dask" (a cluster of this
        machine that ends with the block), "loop" (this process, as without `on`).

    What is in memory is sent to the workers once; files are read by the workers themselves, which
    must see them under the same path.

    Examples
    --------
    >>> import mercer
    >>> from mercer.datasets import rings
    >>> X, y = rings(20_000, random_state=0)
    >>> model = mercer.SpectralClustering(n_clusters=3, random_state=0)
    >>> with mercer.on(mercer.Processes(2)):
    ...     labels = model.fit_predict(X)
    >>> bool((labels == model.fit_predict(X)).all())
    True
    """
    with ExitStack() as stack:
        chosen = stack.enter_context(_engine(engine))
        stack.enter_context(running(chosen))
        yield chosen


@contextmanager
def _engine(engine: Any) -> Iterator[Any]:
    """The engine that was meant; what is started here is stopped here."""
    if engine == "loop":
        yield None
    elif engine == "processes":
        with _engine(Processes()) as processes:
            yield processes
    elif engine == "dask":
        with local_cluster() as client, _engine(client) as futures:
            yield futures
    elif isinstance(engine, Processes):
        engine.start()
        try:
            yield engine
        finally:
            engine.close()
    elif isinstance(engine, Executor):
        pool = PoolEngine(engine)
        try:
            yield pool
        finally:
            pool.close()
    elif _is_client(engine):
        from mercer.scale.futures import DaskEngine

        futures = DaskEngine(engine)
        try:
            yield futures
        finally:
            futures.close()
    else:
        raise TypeError(
            f"mercer.on cannot run on {engine!r}; pass a Dask client, mercer.Processes(n), a pool "
            f"of concurrent.futures, or one of {', '.join(map(repr, ENGINES))}"
        )


def _is_client(engine: Any) -> bool:
    distributed = sys.modules.get("distributed")  # whoever has a client has imported it
    return distributed is not None and isinstance(engine, distributed.Client)
