"""Where the work of a verb runs (this process, processes, a Dask cluster) and its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import typer

ENGINES = ("loop", "processes", "dask")


@contextmanager
def engine_running(
    engine: str, *, scheduler: str | None, workers: int | None, checkpoint: Path | None = None
) -> Iterator[None]:
    """Inside, passes over rows run on the engine; whatever this starts, it also stops."""
    if scheduler is not None and engine != "dask":
        raise typer.BadParameter("--scheduler is the address of a Dask cluster: use --engine dask")
    if workers is not None and (engine == "loop" or scheduler is not None):
        raise typer.BadParameter(
            "--workers is the number of processes to start: use --engine processes or dask, and no "
            "--scheduler (threads of this process: --jobs)"
        )
    with ExitStack() as stack:
        if engine == "processes":
            from mercer.scale import Processes, on

            stack.enter_context(on(Processes(workers)))
        elif engine == "dask":
            from mercer.scale import connected, local_cluster, on

            client = local_cluster(workers) if scheduler is None else connected(scheduler)
            stack.enter_context(on(stack.enter_context(client)))
        if checkpoint is not None:
            from mercer.scale import checkpoint as keeping

            stack.enter_context(keeping(checkpoint))
        yield
