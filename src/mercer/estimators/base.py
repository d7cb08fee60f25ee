"""What all estimators share: rows of any source, files in and out, fitted state at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from mercer._run.budget import Budget
from mercer._run.progress import LineWriter, listening
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray, IdArray
from mercer._run.warn import warn
from mercer.estimators.preparation import sampled_rows
from mercer.factors.base import CountedLabels
from mercer.factors.dense import DenseFactor
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.kernels.registry import is_precomputed
from mercer.partitions.assignment import tiles_of
from mercer.partitions.label_store import keeping_labels, store_for
from mercer.partitions.quality import Quality, measure
from mercer.rows.checks import check_features, checked_source
from mercer.rows.inputs import as_source
from mercer.rows.places import check_apart, paths_of
from mercer.rows.rows import Rows
from mercer.rows.source import TILE, Source

if TYPE_CHECKING:
    from mercer.estimators.needs import Work


class Estimator(BaseEstimator):
    """An estimator that plans, saves and runs functions over the rows of any source."""

    _reads_rows = True  # a Segmenter reads images

    # What model files hold of the fitted attributes, as `mercer._run.records` specifies; r: rows of
    # the vectors that the factor's labeller takes.
    _fitted_fields: ClassVar[dict[str, Any]] = {
        "kernel_": Kernel,
        "factor_": DenseFactor,
        "n_features_in_": "int d, in [1, 4e18]",
    }
    _optional_fields: ClassVar[dict[str, Any]] = {
        "feature_names_in_": "(d,) text",
        "pivots_": "(p?,) int",
    }
    _retired_parameters: ClassVar[dict[str, Any]] = {}  # of older files, and values that load

    def plan(self, X: Any) -> Any:
        """What `fit` on these rows will take: passes, bytes, memory, minutes.

        A few of the rows are fitted to see how long it takes here. If the fit does not fit into
        `max_memory`, a BudgetError suggests settings that would.

        Parameters
        ----------
        X : anything that `mercer.as_source` takes
            The rows.

        Returns
        -------
        Plan
        """
        from mercer.plan.trial import plan_fit

        return plan_fit(self, X)

    def save(self, path: Any) -> None:
        """Write the model to one file; `mercer.load` reads it.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        from mercer.io.model import save

        save(self, path)

    def _check_fitted(self) -> None:
        """Refuse (ValueError) fitted attributes from a file that do not belong together."""
        self.factor_.check_model(self.kernel_, self.n_features_in_)

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        """Which passes a fit makes, for `plan`."""
        raise NotImplementedError(f"{type(self).__name__} does not support plan()")

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Inside, progress is written if asked for, and BLAS has one thread."""
        with listening(LineWriter() if self.verbose else None), single_threaded_blas():
            yield

    def _checked(self, X: Any) -> Source:
        """X as a source with the columns of the fit."""
        check_is_fitted(self)
        source = checked_source(X)
        check_features(self, source)
        return source

    def _tiles(
        self, source: Source, make: Callable[[], Callable[[Rows], Any]], *, stage: str, bytes_: int
    ) -> Iterator[tuple[int, Any]]:
        """(first row, result) of a function over tiles of rows, which are checked on the way.

        `make` gives the function of raw rows, and can be sent to other processes. `bytes_` are
        those of a row's result.
        """
        bytes_per_row = source.n_features * source.dtype.itemsize
        with self._running():
            yield from tiles_of(
                source,
                make,
                kernel=self.kernel_,
                block_rows=Budget.of(self.max_memory).block_rows(bytes_per_row, TILE),
                threads=n_threads(self.n_jobs),
                stage=stage,
                row_bytes=bytes_,
            )

    def _report(
        self, problem: Problem, approximation: Any, factor: Any, record: Recorder, **more: Any
    ) -> Any:
        """The fit report; `more` is what only this estimator reports."""
        from mercer.report import Report

        fields: dict[str, Any] = {
            "estimator": type(self).__name__,
            "n_rows": problem.source.n_rows,
            "n_features": problem.source.n_features,
            "n_distinct": len(problem.sample),
            "dtype": str(problem.sample.format.dtype),
            "kernel": repr(factor.raw_kernel()),
            "bandwidth": problem.bandwidth,
            "approximation": repr(approximation),
            "rank": factor.rank,
            "trace_error": factor.trace_error,
            "cluster_weights": (),
            "stages": tuple(record.stages),
            "notes": tuple(record.notes),
            "warnings": tuple(record.warnings),
            "data": problem.data,
        }
        return Report(**fields | more)

    def _fitted_features(self, source: Source) -> dict[str, Any]:
        """Fitted attributes that tell the columns."""
        fitted: dict[str, Any] = {"n_features_in_": source.n_features}
        if source.feature_names is not None:
            fitted["feature_names_in_"] = np.asarray(source.feature_names, dtype=object)
        return fitted

    def _automatic_choice(self) -> Any:
        """The `Selection` behind an automatic bandwidth or number of clusters, or None."""
        return vars(self).get("selection_")

    def _install(self, fitted: dict[str, Any]) -> Any:
        """All fitted state, at once and last; what an earlier fit left goes."""
        kept = {n: v for n, v in vars(self).items() if not n.endswith("_") or n[0] == "_"}
        self.__dict__ = kept | fitted  # one step: no interrupt comes between
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "n_features_in_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """A transformer whose fitted state is a factor and what to do with its rows."""

    def _transformed(
        self, source: Source, make: Callable[[], Callable[[Rows], FloatArray]], dtype: Any
    ) -> FloatArray:
        """A function of raw rows, tile by tile."""
        out = self._room(source, dtype, Budget.of(self.max_memory))
        bytes_ = out.shape[1] * out.dtype.itemsize
        for start, tile in self._tiles(source, make, stage="transform", bytes_=bytes_):
            out[start : start + len(tile)] = tile
        return out

    def _room(self, source: Source, dtype: Any, budget: Budget) -> FloatArray:
        """An empty array for the result, if the budget has room for it."""
        shape = source.n_rows, self._n_features_out
        budget.demand(
            shape[0] * shape[1] * np.dtype(dtype).itemsize,
            what=f"the result, {shape[0]:,} rows × {shape[1]:,}",
            advice="raise max_memory, ask for fewer columns, or transform fewer rows at a time",
        )
        return np.empty(shape, dtype)

    def _remember(
        self,
        problem: Problem,
        approximation: Any,
        factor: Any,
        record: Recorder,
        *,
        fitted: dict[str, Any] | None = None,
        **reported: Any,
    ) -> None:
        """Fitted state and report; `fitted`, `reported`: what only this transformer has."""
        report = self._report(problem, approximation, factor, record, **reported)
        record.raise_warnings()
        self._install(
            self._fitted_features(problem.source)
            | {
                "kernel_": factor.raw_kernel(),
                "factor_": factor.forget_training(),
                "report_": report,
            }
            | (fitted or {})
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


class Clusterer(ClusterMixin, Estimator):
    """A clusterer whose fitted state can label any row by itself.

    Subclasses give `fit` and `_labeller`: what makes a function of raw rows that returns their
    labels and how many of them the kernel does not see, as a method of a frozen value, which can be
    sent to other processes.
    """

    _compares_at_once = False  # many bandwidths and numbers of clusters, without a fit for each

    def _default_criterion(self) -> str:
        """The criterion that `mercer.selection.search` judges this estimator's models by."""
        return "bas"

    def _labeller(self) -> Callable[[], Callable[[Any], CountedLabels]]:
        raise NotImplementedError

    def _cluster_distances(self, X: Any) -> FloatArray:
        """How far each row is from each cluster, in the space that decides: (n, k)."""
        raise NotImplementedError

    def _embedder(self) -> Callable[[], Callable[[Any], FloatArray]]:
        """What makes a function of raw rows: coordinates in which their clusters are decided."""
        raise NotImplementedError

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, out: Any = None
    ) -> Any:
        """`fit`, and the label of each row: a fit finds them, so rows are read no more often.

        Parameters
        ----------
        X : anything that `mercer.as_source` takes
            The rows.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), default=None
            Weights of the rows.
        out : str or path, default=None
            A file (``.npy``, ``.parquet``, ``.csv`` or ``.zarr``) to write the labels to.

        Returns
        -------
        array of shape (n_rows,), or `out` if it is given
        """
        from mercer.io.labels import check_output, room_for, write_labels

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

        Parameters
        ----------
        X : anything that `mercer.as_source` takes
            The rows.
        out : str or path, default=None
            A file (``.npy``, ``.parquet``, ``.csv`` or ``.zarr``) to write the labels to as they
            are found, in the order of the rows.

        Returns
        -------
        array of shape (n_rows,), or `out` if it is given
        """
        X = as_source(X) if out is not None else X
        if out is not None:
            check_apart(paths_of(X), [out])
        counted, n_rows = self._work(X, self._labeller, stage="predict")
        n_unseen = 0

        def tiles() -> Iterator[tuple[int, IdArray]]:
            nonlocal n_unseen
            for start, (tile, unseen) in counted:
                n_unseen += unseen
                yield start, tile

        if out is not None:
            from mercer.io.labels import write_labels

            labels: Any = write_labels(out, tiles(), n_rows)
        else:
            labels = np.empty(n_rows, np.intp)
            for start, tile in tiles():
                labels[start : start + len(tile)] = tile
        if n_unseen and len(self.cluster_weights_) > 1:
            warn(_unseen_words(n_unseen, n_rows))
        return labels

    def _work(
        self, X: Any, maker: Callable[[], Callable[[], Any]], *, stage: str
    ) -> tuple[Iterator[tuple[int, Any]], int]:
        """(first row, result) of a function over tiles of rows; `maker` gives what makes it."""
        source = self._checked(X)
        n_columns = 1 if stage == "predict" else len(self.cluster_weights_)
        return self._tiles(source, maker(), stage=stage, bytes_=8 * n_columns), source.n_rows

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
        if (store := store_for(problem.source)) is not None:
            store.numbers = np.argsort(order)
        fitted = self._fitted_features(problem.source)
        fitted["cluster_weights_"] = weights[order] * problem.weight_unit
        if labels is not None:
            np.take(np.argsort(order), labels, out=labels, mode="clip")  # in place: 8 bytes a row
            fitted["labels_"] = labels
        return fitted

    def _remember(
        self,
        fitted: dict[str, Any],
        problem: Problem,
        approximation: Any,
        record: Recorder,
        **reported: Any,
    ) -> Any:
        """Fitted state and report, with the separation of the clusters on a sample of rows."""
        weights = tuple(map(float, fitted["cluster_weights_"]))
        report = self._report(
            problem,
            approximation,
            fitted["factor_"],
            record,
            estimator=f"{type(self).__name__}(n_clusters={self.n_clusters!r})",
            cluster_weights=weights,
            **reported,
        )
        record.raise_warnings()
        return self._install(fitted | {"report_": report}, problem)

    def _install(self, fitted: dict[str, Any], problem: Problem | None = None) -> Any:
        """All fitted state; a problem adds the separation of its clusters to the report."""
        if problem is not None:
            quality = self._quality(fitted, problem)
            fitted["report_"] = replace(fitted["report_"], quality=quality)
        return super()._install(fitted)

    def _quality(self, fitted: dict[str, Any], problem: Problem) -> Quality:
        """Separation on rows of the sample, by the state that is to be installed."""
        model = copy(self)
        model.__dict__.update(fitted)
        rows = sampled_rows(problem)
        with single_threaded_blas():
            Z = np.asarray(model._embedder()()(rows), np.float64)
            Z = Z[:, np.isfinite(Z).all(axis=0)]  # a cluster without rows is infinitely far
            labels, _ = model._labeller()()(rows)
        return measure(Z, labels, len(fitted["cluster_weights_"]))

    def __getattr__(self, name: str) -> Any:
        if name == "labels_" and self.__sklearn_is_fitted__():
            raise AttributeError(
                "labels_ is kept only for rows in memory, and this model was fitted on a file or "
                "stream, or was loaded: use predict(X), or predict(X, out='labels.npy')"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _unseen_words(n_unseen: int, n_rows: int) -> str:
    return (
        f"{n_unseen:,} of {n_rows:,} rows are farther from every pivot than the kernel reaches; "
        "their labels mean nothing: scale these rows as those of the fit were, or fit with rows "
        "like them or a wider kernel (a smaller gamma)"
    )
