"""A Dask cluster on this machine, without settings that slow it down."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from mercer._run.extras import require
from mercer.exceptions import EngineError
from mercer.scale.tasks import KEEP_MEMORY

CONNECT_SECONDS = 10
CALM = {  # what scheduler, nannies and workers do beside tasks that take a second
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",  # not 50 times a second
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "500ms",  # tasks keep to max_memory themselves
}


@contextmanager
def local_cluster(n_workers: int | None = None) -> Iterator[Any]:
    """A Dask client of worker processes on this machine, which end with the block.

    Parameters
    ----------
    n_workers : int or None, default=None
        Number of processes of one thread each; None lets Dask choose.

    Yields
    ------
    client : distributed.Client
    """
    distributed = require("distributed", "dask", "a Dask cluster")
    with (
        _fast_settings(),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _fast_settings() -> AbstractContextManager[Any]:
    """Inside, clusters that start leave the processors to the tasks: see `CALM`."""
    import dask.config

    variables = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    return dask.config.set(
        {**CALM, "distributed.nanny.pre-spawn-environ": {**variables, **KEEP_MEMORY}}
    )


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of a running scheduler, which is closed with the block."""
    distributed = require("distributed", "dask", "--engine dask")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`, "
            "or leave out --scheduler to use a local cluster"
        ) from error
    with client:
        yield client
