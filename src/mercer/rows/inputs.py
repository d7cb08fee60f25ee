"""Whatever users pass as X becomes a source, or one clear error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.printable import PrintableErrors
from mercer._run.types import IdArray
from mercer.rows.arrays import ArraySource, BlockSource, CSRSource
from mercer.rows.dasks import DaskSource, is_dask
from mercer.rows.frames import check_objects, frame_array, is_frame
from mercer.rows.source import Source
from mercer.rows.zarrs import ZarrSource

UNREAD = (
    (
        "polars",
        "LazyFrame",
        "pass X.collect(), or for more rows than memory holds X.sink_parquet(path) and the path",
    ),
    (
        "pyarrow.dataset",
        "Dataset",
        "pass the path of its folder of Parquet files, or X.to_table() if memory holds it",
    ),
    (
        "networkx",
        "Graph",
        "pass its matrix, networkx.to_scipy_sparse_array(X), with kernel='precomputed' in "
        "SpectralClustering",
    ),
)


def as_source(X: Any, *, columns: Sequence[str] | None = None) -> Source:
    """Rows of X, wherever they are.

    Parameters
    ----------
    X : array-like, numpy memmap, scipy sparse, pandas/polars/pyarrow frame, path to a ``.npy``,
        ``.parquet`` or ``.csv`` file, to a folder of Parquet files or a zarr array, a zarr array
        itself, a Dask array or DataFrame, a list (or any re-iterable) of batches, or *column
        blocks*: a dict or tuple of the former with the same rows.
    columns : names to read from a file with named columns; all of them by default.

    Returns
    -------
    source : has `n_rows`, `n_features`, `dtype` and ``read(start, stop)``; every estimator takes it
        in place of X.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import as_source
    >>> source = as_source([np.zeros((3, 2)), np.ones((2, 2))])  # batches
    >>> source.n_rows, source.n_features
    (5, 2)
    >>> source.read(2, 4)
    array([[0., 0.],
           [1., 1.]])
    """
    if is_dask(X):  # before anything is asked of it: a Delayed says yes to every name
        return DaskSource(X)
    if isinstance(X, Source):
        return X
    if isinstance(X, str | os.PathLike):
        from mercer.rows.files import open_file

        return open_file(os.fspath(X), columns)
    _refuse_unread(X)
    if columns is not None:
        raise ValueError("columns= selects from files with named columns; select from X itself")
    if sp.issparse(X):
        return CSRSource(_checked_csr(X))
    if _is_zarr_array(X):
        return ZarrSource(X)
    if isinstance(X, Mapping):
        return _blocks(tuple(map(str, X)), list(X.values()))
    if isinstance(X, tuple) and X and all(_is_table(block) for block in X):
        return _blocks(tuple(f"block{i}" for i in range(len(X))), list(X))
    if _is_batches(X):
        from mercer.rows.batches import BatchSource

        return BatchSource(X)
    return _array_source(X)


def _refuse_unread(X: Any) -> None:
    """Say what to pass instead of objects that only seem to be rows."""
    for module, name, advice in UNREAD:
        kind = getattr(sys.modules.get(module), name, None)  # who has one has imported it
        if kind is not None and isinstance(X, kind):
            raise TypeError(f"X is a {module}.{name}, which is not read as it is; {advice}")


def _is_table(X: Any) -> bool:
    """Is this two-dimensional by itself: an array, sparse matrix, frame, path or source?"""
    if isinstance(X, str | os.PathLike | Source) or is_dask(X):
        return True
    return len(getattr(X, "shape", ())) == 2


def _is_zarr_array(X: Any) -> bool:
    """Asked without importing zarr: whoever has such an array has imported it."""
    zarr = sys.modules.get("zarr")
    return zarr is not None and isinstance(X, zarr.Array)


def _is_batches(X: Any) -> bool:
    if isinstance(X, Iterator):
        raise TypeError(
            f"X is a {type(X).__name__}, which can be read only once, and clustering needs "
            "several passes; pass a list of batches, or an object whose __iter__ starts anew"
        )
    if isinstance(X, list):
        return bool(X) and all(_is_table(batch) for batch in X)
    has_array = hasattr(X, "__array__") or hasattr(X, "__dataframe__") or hasattr(X, "columns")
    return isinstance(X, Iterable) and not isinstance(X, Sequence) and not has_array


def _blocks(names: tuple[str, ...], parts: list[Any]) -> BlockSource:
    if not parts:
        raise ValueError("X has no column blocks; pass at least one")
    sources = tuple(as_source(part) for part in parts)
    lengths = {name: source.n_rows for name, source in zip(names, sources, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"column blocks must have the same rows, but their lengths are {lengths}")
    return BlockSource(names, sources)


@PrintableErrors()
def _array_source(X: Any) -> Source:
    from sklearn.utils import check_array

    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            "X is a masked array, whose mask would be ignored; fill it (X.filled(value)) "
            "or drop the masked rows"
        )
    names = _feature_names(X)
    if _is_sparse_frame(X):
        return CSRSource(_checked_csr(X.sparse.to_coo()), names)
    if is_frame(X):
        X = X.to_numpy() if _is_array_of_numbers(X) else frame_array(X, "X")
    if isinstance(X, list | tuple):
        X = _array_of_list(X)
    kind = getattr(getattr(X, "dtype", None), "kind", "f")
    if kind in "mMSUV":
        raise ValueError(
            f"X has dtype {X.dtype}, which is not numeric; "
            "convert dates, text and categories to numbers first"
        )
    if kind == "O" and X.ndim == 2:
        check_objects(X)
    array = check_array(X, dtype="numeric", ensure_all_finite=False, input_name="X")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"X has dtype {array.dtype}, which is not numeric; convert it to numbers")
    return ArraySource(array, names)


def _is_sparse_frame(X: Any) -> bool:
    """Is this a pandas frame of sparse columns, whose gaps are zeros?"""
    is_sparse = hasattr(X, "sparse") and hasattr(X, "iloc")
    return is_sparse and all(getattr(dtype, "fill_value", 1) == 0 for dtype in X.dtypes)


def _is_array_of_numbers(frame: Any) -> bool:
    """Is this a pandas frame of one of numpy's types of numbers, which need not be copied?"""
    dtypes = set(frame.dtypes) if hasattr(frame, "iloc") and frame.columns.is_unique else set()
    return len(dtypes) == 1 and all(isinstance(d, np.dtype) and d.kind in "fiub" for d in dtypes)


def _array_of_list(rows: Any) -> Any:
    """Rows in a list as an array; of objects where numpy would make text of all of them."""
    try:
        array = np.asarray(rows)
    except ValueError:  # of several lengths: left to scikit-learn's words
        return rows
    return np.asarray(rows, dtype=object) if array.dtype.kind in "US" else array


def _feature_names(X: Any) -> tuple[str, ...] | None:
    """Column names of a frame, as scikit-learn keeps them: all strings or none."""
    names = getattr(X, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(X, "columns", None)
    if names is None or callable(names):
        return None
    kinds = {type(name) for name in names}
    if len(kinds) > 1 and str in kinds:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {sorted(kind.__qualname__ for kind in kinds)} as feature name / column "
            "name types; convert them all to strings"
        )
    return tuple(map(str, names)) if kinds == {str} else None


def _checked_csr(X: Any) -> sp.csr_array:
    """CSR with indices checked once (corrupt ones crash compiled code), sorted and summed."""
    if X.ndim != 2:
        raise ValueError(f"X is sparse with {X.ndim} dimension(s); reshape it to two")
    if X.shape[0] == 0 or X.shape[1] == 0:
        what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
        raise ValueError(
            f"Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required."
        )
    if np.iscomplexobj(X):
        raise ValueError(f"Complex data not supported; X has dtype {X.dtype}")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X has dtype {X.dtype}, which is not numeric; convert it to numbers")
    if X.format == "dok":
        X = X.tocoo()
    _check_indices(X)
    csr = sp.csr_array(X)
    _check_indices(csr)  # what other formats held
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _check_indices(X: Any) -> None:
    """Refuse positions outside the matrix: compiled code would read and write there."""
    sound = True
    if X.format == "coo":
        sound = all(
            len(places) == len(X.data) and _within(places, length)
            for places, length in zip(X.coords, X.shape, strict=True)
        )
    elif X.format in ("csr", "csc", "bsr"):
        rows, columns = X.blocksize if X.format == "bsr" else (1, 1)
        n_major, n_minor = X.shape[0] // rows, X.shape[1] // columns
        if X.format == "csc":
            n_major, n_minor = n_minor, n_major
        pointers, indices = X.indptr, X.indices
        sound = (
            len(pointers) == n_major + 1
            and pointers[0] == 0
            and pointers[-1] <= min(len(indices), len(X.data))
            and bool((np.diff(pointers) >= 0).all())
            and _within(indices, n_minor)
        )
    if not sound:
        raise ValueError(
            f"X is a corrupt sparse {X.format.upper()}: its indices or indptr point outside its "
            f"shape {X.shape}; build it again"
        )


def _within(places: IdArray, length: int) -> bool:
    return len(places) == 0 or bool(places.min() >= 0 and places.max() < length)
