"""What users pass as X becomes a source, or one clear error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.printable import PrintableErrors
from mercer.rows.arrays import ArraySource, BlockSource, CSRSource
from mercer.rows.dasks import DaskSource, is_dask
from mercer.rows.demands import checked_csr, demand_numbers, refuse_mask
from mercer.rows.frames import check_objects, frame_array, frame_names, is_frame
from mercer.rows.source import Source
from mercer.rows.zarrs import ZarrSource

UNSUPPORTED = {  # what to pass instead of objects that only seem to be rows
    ("polars", "LazyFrame"): "pass X.collect(), or for more rows than memory holds "
    "X.sink_parquet(path) and the path",
    ("pyarrow.dataset", "Dataset"): "pass the path of its folder of Parquet files, or X.to_table() "
    "if memory holds it",
    ("networkx", "Graph"): "pass its matrix, networkx.to_scipy_sparse_array(X), with "
    "kernel='precomputed' in SpectralClustering",
}


def as_source(X: Any, *, columns: Sequence[str] | None = None) -> Source:
    """A source of the rows of X, wherever they are.

    Parameters
    ----------
    X : array-like, scipy sparse, data frame, path, zarr or Dask collection, batches or Source
        A numpy array or memmap; a sparse matrix; a frame of pandas, polars or pyarrow, or one of
        pyarrow's tensors and arrays of lists of fixed length; the path of
        a ``.npy``, ``.parquet``, ``.csv``, ``.txt`` (separated by spaces) or ``.libsvm`` file, of a
        folder of Parquet files or of a zarr array;
        an open zarr array; a Dask array or DataFrame; a list (or another re-iterable) of batches;
        or *column blocks*: a dict or tuple of the former with the same rows.
    columns : sequence of str or None, default=None
        Names of the columns to read from a file that has them; None for all.

    Returns
    -------
    source : Source
        It has `n_rows`, `n_features`, `dtype` and ``read(start, stop)``, and every estimator takes
        it in place of X.

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
    if is_dask(X):  # first: a Dask Delayed has every attribute that it is asked for
        return DaskSource(X)
    if isinstance(X, Source):
        return X
    if isinstance(X, str | os.PathLike):
        from mercer.rows.file_types import open_file

        return open_file(X, columns)
    _refuse_unsupported(X)
    X = _arrow_rows(X)
    if columns is not None:
        raise ValueError("columns= selects from files with named columns; select from X itself")
    if sp.issparse(X):
        return CSRSource(_csr(X))
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


def _refuse_unsupported(X: Any) -> None:
    for (module, name), advice in UNSUPPORTED.items():
        kind = getattr(sys.modules.get(module), name, None)  # who has one has imported it
        if kind is not None and isinstance(X, kind):
            raise TypeError(f"X is a {module}.{name}, which cannot be read as it is; {advice}")


def _arrow_rows(X: Any) -> Any:
    """Arrow's tensors and arrays of lists as a numpy array, where X is one; else X itself."""
    arrow = sys.modules.get("pyarrow")  # who has one has imported it
    if arrow is None:
        return X
    if isinstance(X, arrow.ChunkedArray):
        X = X.combine_chunks()
    if isinstance(X, arrow.Tensor):
        return X.to_numpy()
    X = getattr(X, "storage", X) if isinstance(X, arrow.ExtensionArray) else X
    if not isinstance(X, arrow.FixedSizeListArray):
        return X
    if X.null_count:
        row = int(X.is_null().to_numpy(zero_copy_only=False).argmax())
        raise ValueError(f"row {row} of X is missing; fill it, or drop it")
    return X.flatten().to_numpy(zero_copy_only=False).reshape(len(X), -1)


def _is_table(X: Any) -> bool:
    """Whether X is two-dimensional by itself: an array, sparse matrix, frame, path or source."""
    if isinstance(X, str | os.PathLike | Source) or is_dask(X):
        return True
    return len(getattr(X, "shape", ())) == 2


def _is_zarr_array(X: Any) -> bool:
    """Whether X is an open zarr array; whoever has one has imported zarr."""
    zarr = sys.modules.get("zarr")
    return zarr is not None and isinstance(X, zarr.Array)


def _is_batches(X: Any) -> bool:
    if isinstance(X, Iterator):
        raise TypeError(
            f"X is a {type(X).__name__}, which can be read only once, and clustering needs "
            "several passes; pass a list of batches, or an object whose __iter__ starts again"
        )
    if isinstance(X, list):
        if X and all(isinstance(item, str) for item in X):
            raise ValueError(
                f"X is a list of {len(X):,} texts, and rows of numbers are wanted: turn documents "
                "into numbers first, e.g. with sklearn.feature_extraction.text.TfidfVectorizer or "
                "a sentence encoder; several files of rows are read from one folder, X='folder/'"
            )
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

    refuse_mask(X, "X")
    names = _feature_names(X)
    if _is_sparse_frame(X):
        return CSRSource(_csr(X.sparse.to_coo()), names)
    if is_frame(X):
        X = X.to_numpy() if _is_array_of_numbers(X) else frame_array(X, "X")
    if isinstance(X, list | tuple):
        X = _array_of_list(X)
    kind = getattr(getattr(X, "dtype", None), "kind", "f")
    if kind in "mMSUV":
        demand_numbers(X.dtype, "X")
    if kind == "O" and X.ndim == 2:
        check_objects(X)
    array = check_array(X, dtype="numeric", ensure_all_finite=False, input_name="X")
    demand_numbers(array.dtype, "X")
    return ArraySource(array, names)


def _is_sparse_frame(X: Any) -> bool:
    """Whether X is a pandas frame of sparse columns, whose gaps are zeros."""
    is_sparse = hasattr(X, "sparse") and hasattr(X, "iloc")
    return is_sparse and all(getattr(dtype, "fill_value", 1) == 0 for dtype in X.dtypes)


def _is_array_of_numbers(frame: Any) -> bool:
    """Whether a pandas frame has one of numpy's types of numbers, and so need not be copied."""
    dtypes = set(frame.dtypes) if hasattr(frame, "iloc") and frame.columns.is_unique else set()
    return len(dtypes) == 1 and all(isinstance(d, np.dtype) and d.kind in "fiub" for d in dtypes)


def _array_of_list(rows: Any) -> Any:
    """Rows in a list as an array; of objects where numpy would make text of all of them."""
    try:
        array = np.asarray(rows)
    except ValueError:  # of several lengths: scikit-learn has a message for these
        return rows
    return np.asarray(rows, dtype=object) if array.dtype.kind in "US" else array


def _feature_names(X: Any) -> tuple[str, ...] | None:
    """Column names of a frame, as scikit-learn keeps them: all strings or none."""
    names = frame_names(X)
    if names is None:
        return None
    kinds = {type(name) for name in names}
    if len(kinds) > 1 and str in kinds:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {sorted(kind.__qualname__ for kind in kinds)} as feature name / column "
            "name types; convert them all to strings"
        )
    return tuple(map(str, names)) if kinds == {str} else None


def _csr(X: Any) -> sp.csr_array:
    """Any sparse matrix of numbers as a checked CSR."""
    if X.ndim != 2:
        raise ValueError(f"X is sparse with {X.ndim} dimension(s); reshape it to two")
    if X.shape[0] == 0 or X.shape[1] == 0:
        what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
        raise ValueError(
            f"Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required."
        )
    if np.iscomplexobj(X):
        raise ValueError(f"Complex data not supported; X has dtype {X.dtype}")
    demand_numbers(X.dtype, "X")
    return checked_csr(X.tocoo() if X.format == "dok" else X, "X")
