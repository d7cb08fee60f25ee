"""Saved models inside other engines: Arrow in, Arrow out, loaded once in each process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from mercer._run.extras import require
from mercer._run.frozen import frozen
from mercer._run.url import Url, located
from mercer.io.model import load
from mercer.rows.frames import frame_array
from mercer.rows.stamp import Stamp, stamp_of

LABEL = "label"
MODELS = 4  # that a process keeps loaded
WHY_ARROW = ("io", "a batch predictor")


def batch_predictor(path: str | os.PathLike[str], *, keep: Sequence[str] = ()) -> BatchPredictor:
    """A saved model as a function of Arrow batches, for Spark, Ray and other engines.

    It can be pickled: what travels is the path, and each process loads the model once.

    Parameters
    ----------
    path : str or path
        The file or the URL of a model (or of a pipeline) that `save` wrote; every worker must be
        able to read it.
    keep : sequence of str, default=()
        Names of columns to put before the labels, e.g. those that identify rows; they are not
        used as features.

    Returns
    -------
    predictor : BatchPredictor
        A function of a ``pyarrow.Table`` or ``RecordBatch`` that returns the same kind, with the
        columns `keep` and "label" (int32); of an iterator of batches it makes an iterator.

    Notes
    -----
    Features are found by their names where the model knows any, else they are all columns that
    `keep` does not name, in their order. In Spark::

        frame.mapInArrow(mercer.batch_predictor(path, keep=["id"]), "id long, label int")

    and in Ray::

        rows.map_batches(mercer.batch_predictor(path, keep=["id"]), batch_format="pyarrow")

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> import mercer
    >>> from mercer.datasets import rings
    >>> X, y = rings(1000, random_state=0)
    >>> model = mercer.SpectralClustering(n_clusters=3, random_state=0).fit(X)
    >>> path = os.path.join(tempfile.mkdtemp(), "rings.mercer")
    >>> model.save(path)
    >>> batch = pa.table({"id": range(1000), "x": X[:, 0], "y": X[:, 1]})
    >>> found = mercer.batch_predictor(path, keep=["id"])(batch)
    >>> found.column_names, bool((found["label"].to_numpy() == model.labels_).all())
    (['id', 'label'], True)
    """
    place = located(path)
    return BatchPredictor(place, tuple(keep), stamp_of(place))


@frozen
class BatchPredictor:
    """What `batch_predictor` returns."""

    path: str | Url
    keep: tuple[str, ...]
    stamp: Stamp  # a model that is replaced is loaded again

    def __call__(self, batch: Any) -> Any:
        arrow = require("pyarrow", *WHY_ARROW)
        if isinstance(batch, arrow.Table):
            return self._label(arrow, batch)
        if isinstance(batch, arrow.RecordBatch):
            table = self._label(arrow, arrow.Table.from_batches([batch])).combine_chunks()
            columns = [column.combine_chunks() for column in table.columns]
            return arrow.RecordBatch.from_arrays(columns, schema=table.schema)
        if isinstance(batch, Iterator):
            return map(self, batch)
        raise TypeError(
            f"a batch predictor labels a pyarrow.Table or RecordBatch, or an iterator of them, "
            f"not a {type(batch).__name__}; in Ray pass batch_format='pyarrow'"
        )

    def _label(self, arrow: Any, table: Any) -> Any:
        labels = np.empty(0, np.intp)
        if table.num_rows:
            model = _loaded(self.path, self.stamp)
            labels = model.predict(self._rows(model, table))
        field = arrow.field(LABEL, arrow.int32(), nullable=False)
        column = arrow.array(labels.astype(np.int32))
        return table.select(list(self.keep)).append_column(field, column)

    def _rows(self, model: Any, table: Any) -> Any:
        """The features: those that the model knows by name, or all columns that are not kept."""
        known = getattr(model, "feature_names_in_", None)
        if known is not None:
            return table.select([str(name) for name in known])
        names = [name for name in table.column_names if name not in self.keep]
        return frame_array(table.select(names), "the batch")


@lru_cache(maxsize=MODELS)
def _loaded(path: str | Url, stamp: Stamp) -> Any:
    return load(path)
