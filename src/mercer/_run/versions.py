"""What a report of a problem needs: versions, system, threads, where loops are kept."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "threadpoolctl", "joblib")
OPTIONAL = (
    *("typer", "rich", "pyarrow", "zarr", "pandas", "polars", "dask", "distributed"),
    *("matplotlib", "bokeh", "jinja2", "scikit-image", "pillow"),
)


def versions() -> dict[str, str]:
    """Names of parts of this installation and what they are."""
    import mercer

    about = {
        "mercer": mercer.__version__,
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "processors": str(os.cpu_count()),
    }
    about |= {name: _version(name) for name in NEEDED}
    about |= {name: _version(name) for name in OPTIONAL if _version(name) != "not installed"}
    about |= {f"threads of {name}": text for name, text in _thread_pools()}
    names = ("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME", "NUMBA_DISABLE_JIT", "OMP_NUM_THREADS")
    return about | {name: os.environ[name] for name in names if name in os.environ}


def show_versions() -> None:
    """Print versions, system and threads, to include in a bug report.

    Examples
    --------
    >>> import mercer
    >>> mercer.show_versions()  # doctest: +ELLIPSIS
    mercer: ...
    """
    lines = [f"{name}: {text}\n" for name, text in versions().items()]
    sys.stdout.write("".join(lines))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _thread_pools() -> list[tuple[str, str]]:
    from threadpoolctl import threadpool_info

    return [
        (str(pool["internal_api"]), f"{pool['num_threads']}, version {pool['version']}")
        for pool in threadpool_info()
    ]
