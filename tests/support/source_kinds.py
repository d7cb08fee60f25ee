"""Every kind of source beyond one file, made from an array: what the laws of sources run over."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def disguise(path: Path, *, in_place: bool) -> None:
    """Change the last byte of a file; its size and time of writing stay as they were."""
    before, data = path.stat(), bytearray(path.read_bytes())
    data[-1] ^= 1
    time.sleep(0.02)  # the system's own clock of changes moves in steps
    new = path if in_place else path.with_name(f"{path.name}.new")
    new.write_bytes(data)
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(new, path)


def cuts_of(n_rows: int, n_parts: int) -> list[tuple[int, int]]:
    """Uneven spans that cover the rows."""
    edges = np.linspace(0, 1, n_parts + 1) ** 1.3 * n_rows
    return list(zip(edges[:-1].astype(int), edges[1:].astype(int), strict=True))


def folder(path: Path, X: np.ndarray, *, rows_each: int = 7, n_files: int = 11) -> Path:
    """Files part-0 … part-10 of row groups, one of them without rows."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = path / "folder"
    path.mkdir()
    (path / "_SUCCESS").touch()

    def write(name: str, rows: np.ndarray) -> None:
        table = pa.table({f"x{j}": pa.array(rows[:, j].copy()) for j in range(X.shape[1])})
        pq.write_table(table, path / name, row_group_size=rows_each)

    for number, (start, stop) in enumerate(cuts_of(len(X), n_files)):
        write(f"part-{number}.parquet", X[start:stop])
    write("part-3-empty.parquet", X[:0])
    return path


def folder_of_lists(path: Path, X: np.ndarray) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = path / "lists"
    path.mkdir()
    kind = pa.list_(pa.from_numpy_dtype(X.dtype), X.shape[1])
    for number, (start, stop) in enumerate(cuts_of(len(X), 3)):
        table = pa.table({"x": pa.array(list(X[start:stop]), kind)})
        pq.write_table(table, path / f"{number}.pq", row_group_size=10)
    return path


def zarr_array(path: Path, X: np.ndarray, **options: Any) -> Path:
    zarr = pytest.importorskip("zarr")
    path = path / "rows.zarr"
    options = {"chunks": (9, 2), "config": {"write_empty_chunks": True}} | options
    array = zarr.create_array(path, shape=X.shape, dtype=X.dtype, **options)
    array[:] = X
    return path


def zarr_version_2(path: Path, X: np.ndarray) -> Path:
    return zarr_array(path, X, zarr_format=2)


def zarr_shards(path: Path, X: np.ndarray) -> Path:
    return zarr_array(path, X, chunks=(4, 3), shards=(20, 3))


def open_zarr(path: Path, X: np.ndarray) -> Any:
    zarr = pytest.importorskip("zarr")
    return zarr.open_array(zarr_array(path, X), mode="r")


def zarr_in_memory(path: Path, X: np.ndarray) -> Any:
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(
        zarr.storage.MemoryStore(), shape=X.shape, dtype=X.dtype, chunks=(9, 2)
    )
    array[:] = X
    return array


def dask_array(path: Path, X: np.ndarray) -> Any:
    da = pytest.importorskip("dask.array")
    return da.from_array(np.array(X), chunks=((10, 0, len(X) - 10), (2, X.shape[1] - 2)))


def dask_unknown(path: Path, X: np.ndarray) -> Any:
    """Chunks whose lengths only a computation tells; the first and the last are empty."""
    da = pytest.importorskip("dask.array")
    padded = np.vstack([np.full((9, X.shape[1]), np.nan), X, np.full((9, X.shape[1]), np.nan)])
    array = da.from_array(padded.astype(X.dtype), chunks=(9, X.shape[1]))
    return array[~da.isnan(array[:, 0])]


def dask_frame(path: Path, X: np.ndarray) -> Any:
    """A frame with an empty partition in the middle."""
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    names = [f"x{j}" for j in range(X.shape[1])]
    parts = [X[:20], X[:0], X[20:]]
    frames = [pd.DataFrame(np.array(part), columns=names) for part in parts]
    return dd.from_map(lambda number: frames[number], range(3), meta=frames[1])


def folder_in_s3(path: Path, X: np.ndarray) -> str:
    import s3_server

    s3_server.server()
    return s3_server.put(folder(path, X, rows_each=20, n_files=3))


def zarr_in_s3(path: Path, X: np.ndarray) -> str:
    import s3_server

    s3_server.server()
    return s3_server.put(zarr_array(path, X))


KINDS = {
    "folder": folder,
    "folder of lists": folder_of_lists,
    "zarr": zarr_array,
    "zarr 2": zarr_version_2,
    "zarr shards": zarr_shards,
    "open zarr": open_zarr,
    "zarr in memory": zarr_in_memory,
    "dask array": dask_array,
    "dask unknown": dask_unknown,
    "dask frame": dask_frame,
    "folder in S3": folder_in_s3,
    "zarr in S3": zarr_in_s3,
}
NAMED = {"folder": "x{}", "folder in S3": "x{}", "folder of lists": "x_{}", "dask frame": "x{}"}
