"""Rows of a source as transformers leave them: scaled block by block, never as a whole."""

from __future__ import annotations

from copy import copy
from dataclasses import field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from mercer._run.frozen import frozen
from mercer._run.types import IdArray
from mercer.rows.arrays import working_dtype
from mercer.rows.rows import Rows
from mercer.rows.source import Source, reading, rest


@frozen
class TransformedSource:
    """Reads rows and hands them to a fitted transformer of scikit-learn, or several in a pipeline.

    Names of columns are kept where there are as many columns after it as before.
    They are compared with those of the fit by the estimator, not by the transformer.
    """

    source: Source
    transformer: Any  # with `transform`
    n_features: int = field(init=False)
    dtype: np.dtype[Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "transformer", _without_names(self.transformer))
        one = self.transformer.transform(self.source.read(0, 1))
        object.__setattr__(self, "n_features", int(one.shape[1]))
        object.__setattr__(self, "dtype", working_dtype(one.dtype))

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    @property
    def in_memory(self) -> bool:
        return self.source.in_memory

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        names = self.source.feature_names
        return names if names is not None and len(names) == self.n_features else None

    @property
    def path(self) -> Any:
        return getattr(self.source, "path", None)

    def reading(self, n_rows: int) -> int:
        """Bytes held while so many rows are read: as they were, and transformed."""
        return reading(self.source, n_rows) + 2 * n_rows * self.n_features * self.dtype.itemsize

    def rest(self) -> None:
        """Release the buffers of the source."""
        rest(self.source)

    def read(self, start: int, stop: int) -> Rows:
        return self._transformed(self.source.read(start, stop))

    def take(self, ids: IdArray) -> Rows:
        return self._transformed(self.source.take(ids))

    def _transformed(self, rows: Rows) -> Rows:
        if rows.shape[0] == 0:
            return np.empty((0, self.n_features), self.dtype)
        found = self.transformer.transform(rows)
        if sp.issparse(found):
            found = sp.csr_array(found, dtype=self.dtype)
            found.sort_indices()
            return found
        return np.ascontiguousarray(found, dtype=self.dtype)


def _without_names(transformer: Any) -> Any:
    """The same transformer for arrays, which have no names."""
    if isinstance(transformer, Pipeline):
        return Pipeline([(name, _without_names(step)) for name, step in transformer.steps])
    plain = copy(transformer)
    vars(plain).pop("feature_names_in_", None)
    return plain
