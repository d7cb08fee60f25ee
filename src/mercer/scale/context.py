"""``with mercer.on(...)``: which engine runs the passes inside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
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
    engine : distributed.Client, Processes, concurrent.futures.Executor or str
        A Dask client; ``mercer.Processes(4)``; a pool of processes or threads on this machine; or
        "processes", "dask" (a local cluster that is closed at the end of the block) or "loop" (this
        process, as without `on`).

    Yields
    ------
    Engine
        The engine in use.

    Notes
    -----
    Rows in memory are sent to the workers once; files are read by the workers themselves, which
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
    with _engine(engine) as chosen, running(chosen):
        yield chosen


def _engine(engine: Any) -> AbstractContextManager[Any]:
    """The engine that is meant; what is started here is stopped at the end of the block."""
    if isinstance(engine, str) and engine in ENGINES:
        return {"loop": nullcontext, "processes": _own_processes, "dask": _own_cluster}[engine]()
    if isinstance(engine, Processes):
        engine.start()
        return closing(engine)
    if isinstance(engine, Executor):
        return closing(PoolEngine(engine))
    if _is_client(engine):
        from mercer.scale.futures import DaskEngine

        return closing(DaskEngine(engine))
    raise TypeError(
        f"mercer.on cannot run on {engine!r}; pass a Dask client, mercer.Processes(n), a pool "
        f"of concurrent.futures, or one of {', '.join(map(repr, ENGINES))}"
    )


def _own_processes() -> AbstractContextManager[Any]:
    return _engine(Processes())


@contextmanager
def _own_cluster() -> Iterator[Any]:
    with local_cluster() as client, _engine(client) as engine:
        yield engine


def _is_client(engine: Any) -> bool:
    distributed = sys.modules.get("distributed")  # whoever has a client has imported it
    return distributed is not None and isinstance(engine, distributed.Client)
