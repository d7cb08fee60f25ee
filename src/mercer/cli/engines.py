"""Where the work of a verb runs: here, on processes, on a Dask cluster; and what it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer

ENGINES = ("loop", "processes", "dask")
CONNECT_SECONDS = 10


@contextmanager
def engine_running(
    engine: str, *, scheduler: str | None, workers: int | None, checkpoint: Path | None = None
) -> Iterator[None]:
    """Inside, passes over rows run on the engine; what is started here is stopped here."""
    if scheduler is not None and engine != "dask":
        raise typer.BadParameter("--scheduler is the address of a Dask cluster: use --engine dask")
    if workers is not None and (engine == "loop" or scheduler is not None):
        raise typer.BadParameter(
            "--workers is how many processes are started: use --engine processes or dask, and no "
            "--scheduler (threads of this process: --jobs)"
        )
    with ExitStack() as stack:
        if engine == "processes":
            from mercer.scale import Processes, on

            stack.enter_context(on(Processes(workers)))
        elif engine == "dask":
            from mercer.scale import local_cluster, on

            client = local_cluster(workers) if scheduler is None else _connected(scheduler)
            stack.enter_context(on(stack.enter_context(client)))
        if checkpoint is not None:
            from mercer.scale import checkpoint as keeping

            stack.enter_context(keeping(checkpoint))
        yield


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A client of a scheduler that runs already."""
    from mercer._run.extras import require
    from mercer.exceptions import EngineError

    distributed = require("distributed", "dask", "--engine dask")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`, "
            "or leave out --scheduler for a cluster of this machine"
        ) from error
    with client:
        yield client
