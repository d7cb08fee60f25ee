"""Batches of rows from anything that can be iterated over again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer.rows.arrays import working_dtype
from mercer.rows.demands import checked_csr, demand_numbers, demand_table, refuse_mask
from mercer.rows.forward import ForwardSource, Layout
from mercer.rows.frames import frame_array, frame_names
from mercer.rows.rows import Rows


@frozen(eq=False, slots=False)
class BatchSource(ForwardSource):
    """Batches of rows from anything that can be iterated over again and again.

    The first pass counts and checks; each later one checks that nothing changed.

    Parameters
    ----------
    batches : iterable of 2-d arrays, scipy CSR or data frames
        Every ``iter(batches)`` must give the same rows in the same order: a list, or an object
        whose ``__iter__`` opens its files again, but not a generator. All batches have the same
        columns and are of one kind; empty ones are skipped.

    Examples
    --------
    >>> import numpy as np
    >>> source = BatchSource([np.zeros((2, 3)), np.ones((4, 3))])
    >>> source.n_rows, source.read(1, 4)[:, 0]
    (6, array([0., 1., 1.]))
    """

    batches: Iterable[Any]

    def __post_init__(self) -> None:
        _check_iterable(self.batches)
        n_rows = 0
        for rows, layout in self._read_all():
            if not n_rows:
                self._set(layout=layout)
            n_rows += rows.shape[0]
        if not n_rows:
            raise ValueError("the batches hold no rows; pass at least one batch that is not empty")
        self._set(n_rows=n_rows, restarts=np.zeros(1, np.intp))

    def blocks(self, start: int) -> Iterator[Rows]:
        return (rows for rows, _ in self._read_all())

    def changed(self, found: str) -> str:
        return (
            f"the batches gave {self.n_rows} rows when they were counted and {found} now; every "
            "iteration must give the same rows: let __iter__ start from the beginning"
        )

    def _read_all(self) -> Iterator[tuple[Rows, Layout]]:
        """The batches that are not empty, each checked to be like the first."""
        wanted = getattr(self, "layout", None)
        for number, batch in enumerate(self.batches):
            if is_empty(batch):
                continue
            rows, found = read_batch(batch, f"batch {number}")
            wanted = wanted or found
            wanted.check_same(found, f"batch {number}", model="the first", all_of="batches")
            yield rows, found


def read_batch(batch: Any, what: str) -> tuple[Rows, Layout]:
    """A dense array, a CSR or a frame as rows in a floating type, and their layout."""
    names = frame_names(batch)
    if names is not None:
        demand_table((len(batch), len(names)), what, least_rows=0)
        X = frame_array(batch, what)
        names = names if all(isinstance(name, str) for name in names) else None
    else:
        X = _read_sparse(batch, what) if sp.issparse(batch) else _read_dense(batch, what)
    return X, Layout(X.shape[1], X.dtype, names, is_sparse=sp.issparse(X))


def _read_dense(batch: Any, what: str) -> Rows:
    refuse_mask(batch, what)
    X = np.asarray(batch)
    demand_table(X.shape, what)
    demand_numbers(X.dtype, what)
    return X.astype(working_dtype(X.dtype), copy=False)


def _read_sparse(batch: Any, what: str) -> Rows:
    if batch.format != "csr":
        raise ValueError(f"{what} is sparse in format {batch.format}; pass batch.tocsr()")
    demand_table(batch.shape, what)
    demand_numbers(batch.dtype, what)
    return checked_csr(batch, what).astype(working_dtype(batch.dtype), copy=False)


def is_empty(batch: Any) -> bool:
    """Whether a batch has no rows, whatever its kind and width."""
    shape = getattr(batch, "shape", None)
    if shape is None:
        return hasattr(batch, "__len__") and len(batch) == 0
    return len(shape) > 0 and shape[0] == 0


def _check_iterable(batches: Any) -> None:
    if isinstance(batches, Iterator):
        raise TypeError(
            f"batches is a {type(batches).__name__}, which can be read only once, and the rows are "
            "needed several times; pass a list, or an object whose __iter__ starts again"
        )
    if not isinstance(batches, Iterable):
        raise TypeError(
            f"batches is a {type(batches).__name__}; pass a list of 2-d arrays, or an object whose "
            "__iter__ gives them"
        )
