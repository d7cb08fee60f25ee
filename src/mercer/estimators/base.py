"""What all clusterers share: labels of any rows, files in and out, fitted state at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from mercer._run.budget import Budget
from mercer._run.progress import LineWriter, listening
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer._run.warn import warn
from mercer.estimators.problem import check_features, checked_source, sampled_rows
from mercer.factors.problem import Problem
from mercer.partitions.assignment import CountedLabels, tiles_of
from mercer.partitions.label_store import keeping_labels, store_for
from mercer.partitions.quality import Quality, measure
from mercer.report import Report
from mercer.rows.inputs import as_source
from mercer.rows.source import TILE, Source

if TYPE_CHECKING:
    from mercer.estimators.needs import Work
    from mercer.plan.plan import Plan


class Clusterer(ClusterMixin, BaseEstimator):
    """A clusterer whose fitted state can label any row by itself.

    Subclasses give `fit` and `_labeller`: what makes a function of raw rows that returns their
    labels and how many of them the kernel does not see, as a method of a frozen value, which can be
    sent to other processes.
    """

    def _labeller(self) -> Callable[[], Callable[[Any], CountedLabels]]:
        raise NotImplementedError

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        """Which passes a fit makes, for `plan`."""
        raise NotImplementedError(f"{type(self).__name__} tells no plan")

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, out: Any = None
    ) -> Any:
        """`fit`, and the label of each row: a fit finds them, so rows are read no more often.

        out : a path to write the labels to, as in `predict`; then the path is returned.
        """
        from mercer.io.labels import check_output, room_for, write_labels
        from mercer.rows.places import check_apart, paths_of

        source = as_source(X)
        if out is not None:
            check_output(out)
            check_apart(paths_of(source), [out])
        if source.in_memory:
            labels = self.fit(source, sample_weight=sample_weight).labels_
            return labels if out is None else write_labels(out, [(0, labels)], len(labels))
        if out is None:
            with keeping_labels(source) as store:
                self.fit(source, sample_weight=sample_weight)
            return store.all_labels()
        with room_for(out), keeping_labels(source, out) as store:
            self.fit(source, sample_weight=sample_weight)
            return write_labels(out, store.tiles(), source.n_rows)

    def predict(self, X: Any, *, out: Any = None) -> Any:
        """The cluster of each row, seen or new.

        out : a path (``.npy``, ``.parquet``, ``.csv`` or ``.zarr``) to write the labels to as they
            come, in the order of the rows; then the path is returned instead of the labels.
        """
        if out is not None:
            from mercer.io.labels import write_labels
            from mercer.rows.places import check_apart, paths_of

            X = as_source(X)
            check_apart(paths_of(X), [out])
        counted, n_rows = self._work(X, self._labeller, stage="predict")
        n_unseen = 0

        def tiles() -> Iterator[tuple[int, IdArray]]:
            nonlocal n_unseen
            for start, (tile, unseen) in counted:
                n_unseen += unseen
                yield start, tile

        if out is not None:
            labels: Any = write_labels(out, tiles(), n_rows)
        else:
            labels = np.empty(n_rows, np.intp)
            for start, tile in tiles():
                labels[start : start + len(tile)] = tile
        if n_unseen and len(self.cluster_weights_) > 1:
            warn(_unseen_words(n_unseen, n_rows))
        return labels

    def plan(self, X: Any) -> Plan:
        """What `fit` on these rows will take: passes, bytes, memory, minutes.

        A few of the rows are fitted to see how long it takes here. What cannot fit into
        `max_memory` is a BudgetError that says what would.
        """
        from mercer.plan.trial import plan_fit

        return plan_fit(self, X)

    def save(self, path: Any) -> None:
        """Write the model to one file; `mercer.load` reads it."""
        from mercer.io.model import save

        save(self, path)

    def _work(
        self, X: Any, maker: Callable[[], Callable[[], Any]], *, stage: str
    ) -> tuple[Iterator[tuple[int, Any]], int]:
        """(first row, result) of a function over tiles of rows, which are checked on the way.

        `maker` gives what makes the function.
        """
        check_is_fitted(self)
        source = checked_source(X)
        check_features(self, source)
        bytes_per_row = source.n_features * source.dtype.itemsize
        block_rows = Budget.of(self.max_memory).block_rows(bytes_per_row, TILE)
        n_columns = 1 if stage == "predict" else len(self.cluster_weights_)

        def tiles() -> Iterator[tuple[int, Any]]:
            with listening(LineWriter() if self.verbose else None), single_threaded_blas():
                yield from tiles_of(
                    source,
                    maker(),
                    kernel=self.kernel_,
                    block_rows=block_rows,
                    threads=n_threads(self.n_jobs),
                    stage=stage,
                    row_bytes=8 * n_columns,
                )

        return tiles(), source.n_rows

    def _feasible_clusters(self, asked: int, problem: Problem, record: Recorder) -> int:
        """As many clusters as asked, unless there are fewer distinct rows."""
        n_distinct = len(problem.sample)
        if asked == 1:
            record.warn("n_clusters=1 puts every row into one cluster")
        if n_distinct < asked:
            record.warn(
                f"X has {n_distinct} distinct rows (of positive weight) for n_clusters={asked}; "
                f"{n_distinct} clusters were made"
            )
        return int(min(asked, n_distinct))

    def _common_state(
        self, problem: Problem, order: IdArray, labels: IdArray | None, weights: FloatArray
    ) -> dict[str, Any]:
        """Fitted attributes that every clusterer has; `order` numbers the clusters."""
        source = problem.source
        if (store := store_for(source)) is not None:
            store.numbers = np.argsort(order)
        fitted: dict[str, Any] = {
            "n_features_in_": source.n_features,
            "cluster_weights_": weights[order] * problem.weight_unit,
        }
        if source.feature_names is not None:
            fitted["feature_names_in_"] = np.asarray(source.feature_names, dtype=object)
        if labels is not None:
            np.take(np.argsort(order), labels, out=labels, mode="clip")  # in place: 8 bytes a row
            fitted["labels_"] = labels
        return fitted

    def _report(
        self,
        problem: Problem,
        approximation: Any,
        factor: Any,
        weights: FloatArray,
        record: Recorder,
        **more: Any,
    ) -> Report:
        """The story of the fit; `more` is what only this estimator tells."""
        told: dict[str, Any] = {
            "estimator": f"{type(self).__name__}(n_clusters={self.n_clusters!r})",
            "n_rows": problem.source.n_rows,
            "n_features": problem.source.n_features,
            "n_distinct": len(problem.sample),
            "dtype": str(problem.sample.format.dtype),
            "bandwidth": problem.bandwidth,
            "approximation": repr(approximation),
            "rank": factor.rank,
            "trace_error": factor.trace_error,
            "cluster_weights": tuple(map(float, weights * problem.weight_unit)),
            "stages": tuple(record.stages),
            "notes": tuple(record.notes),
            "warnings": tuple(record.warnings),
            "data": problem.data,
        }
        return Report(**told | more)

    def _embedder(self) -> Callable[[], Callable[[Any], FloatArray]]:
        """What makes a function of raw rows: coordinates in which their clusters are decided."""
        raise NotImplementedError

    def _quality(self, fitted: dict[str, Any], problem: Problem) -> Quality:
        """Figures on a sample of the rows that chose, by the state that is to be installed."""
        model = copy(self)
        model.__dict__.update(fitted)
        rows = sampled_rows(problem)
        with single_threaded_blas():
            Z = np.asarray(model._embedder()()(rows), np.float64)
            Z = Z[:, np.isfinite(Z).all(axis=0)]  # a cluster without rows is infinitely far
            labels, _ = model._labeller()()(rows)
        return measure(Z, labels, len(fitted["cluster_weights_"]))

    def _install(self, fitted: dict[str, Any], problem: Problem | None) -> Any:
        """All fitted state, at once and last; what an earlier fit left goes."""
        if problem is not None:
            quality = self._quality(fitted, problem)
            fitted["report_"] = replace(fitted["report_"], quality=quality)
        kept = {n: v for n, v in vars(self).items() if not n.endswith("_") or n[0] == "_"}
        self.__dict__ = kept | fitted  # one step: no interrupt comes between
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "labels_" and self.__sklearn_is_fitted__():
            raise AttributeError(
                "labels_ is kept only for rows in memory, and this model was fitted on a file or "
                "stream, or was loaded: use predict(X), or predict(X, out='labels.npy')"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "n_features_in_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _unseen_words(n_unseen: int, n_rows: int) -> str:
    return (
        f"{n_unseen:,} of {n_rows:,} rows are farther from every pivot than the kernel reaches; "
        "their labels mean nothing: scale these rows as those of the fit were, or fit with rows "
        "like them or a wider kernel (a smaller gamma)"
    )
