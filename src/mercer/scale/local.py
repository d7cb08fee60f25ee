"""A Dask cluster of this machine's own, without what slows it down."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mercer._run.extras import require

SLOW = "MALLOC_TRIM_THRESHOLD_"  # returns freed memory at once: up to 40 % more time


@contextmanager
def local_cluster(n_workers: int | None = None) -> Iterator[Any]:
    """A Dask client of worker processes on this machine, which end with the block."""
    distributed = require("distributed", "dask", "a Dask cluster")
    with (
        _without_ballast(),
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
def _without_ballast() -> Iterator[None]:
    """Workers that start inside do not get the variable; ``dask.config.set`` cannot take it out.

    Nor do they look up a hundred times a second what they are doing.
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
