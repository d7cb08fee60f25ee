"""The same passes on other processes or on a Dask cluster; nothing above imports this."""

from __future__ import annotations

from mercer.scale.checkpoint_folder import checkpoint
from mercer.scale.context import on
from mercer.scale.local import connected, local_cluster
from mercer.scale.processes import Processes

__all__ = ["Processes", "checkpoint", "connected", "local_cluster", "on"]
