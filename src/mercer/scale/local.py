"""A Dask cluster on this machine, without settings that slow it down."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mercer._run.extras import require
from mercer.exceptions import EngineError

CONNECT_SECONDS = 10
SLOW = "MALLOC_TRIM_THRESHOLD_"  # returns freed memory at once: up to 40 % more time


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


@contextmanager
def _fast_settings() -> Iterator[None]:
    """Workers that start inside do not get the variable, and do not profile themselves.

    ``dask.config.set`` cannot remove a variable, only set it.
    """
    import dask.config

    variables = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    had = variables.pop(SLOW, None)
    try:
        with dask.config.set({"distributed.worker.profile.enabled": False}):
            yield
    finally:
        if had is not None:
            variables[SLOW] = had


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
