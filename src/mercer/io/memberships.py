"""Memberships of rows in clusters as a file: a line or row for each row, a column per cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from mercer._run.atomic import check_writable, replacing
from mercer._run.types import FloatArray
from mercer._run.url import Place, Url


def write_memberships(
    path: str | os.PathLike[str], blocks: Iterable[FloatArray], n_rows: int, n_clusters: int
) -> Place:
    """Write blocks of consecutive rows to a ``.npy`` or ``.csv`` file, which appears complete.

    Parameters
    ----------
    path : str or path
        ``.npy`` holds a float64 array of shape (n_rows, n_clusters), ``.csv`` a table with the
        columns "cluster 0", "cluster 1", ….
    blocks : iterable of array of shape (n, n_clusters)
        Memberships, in the order of the rows.
    n_rows, n_clusters : int
        The number of rows in all, and of clusters.

    Returns
    -------
    Path
        The path.
    """
    place = Url.of(path) or Path(path)
    write = _writer(place)
    with replacing(place) as temporary, temporary.open("wb") as file:
        write(file, blocks, (n_rows, n_clusters))
    return place


def check_memberships_file(path: Place) -> None:
    """Refuse, before any work, a file that cannot be written."""
    _writer(path)
    check_writable(path)


def _writer(path: Place) -> Callable[..., None]:
    formats = {".npy": _write_npy, ".csv": _write_csv}
    if path.suffix.lower() not in formats:
        raise ValueError(
            f"{path} has no suffix of a file of memberships; use one of {', '.join(formats)}"
        )
    return formats[path.suffix.lower()]


def _write_npy(file: Any, blocks: Iterable[FloatArray], shape: tuple[int, int]) -> None:
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, header)
    for block in blocks:
        file.write(np.ascontiguousarray(block, dtype="<f8").tobytes())


def _write_csv(file: Any, blocks: Iterable[FloatArray], shape: tuple[int, int]) -> None:
    file.write((",".join(f"cluster {c}" for c in range(shape[1])) + "\n").encode())
    for block in blocks:
        np.savetxt(file, block, fmt="%.17g", delimiter=",")
