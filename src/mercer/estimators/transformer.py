"""What transformers of rows by a factor share: rows of any source in, numbers in order out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._run.budget import Budget
from mercer._run.progress import LineWriter, listening
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray
from mercer.estimators.problem import check_features, checked_source
from mercer.factors.problem import Problem, raw_kernel
from mercer.partitions.assignment import tiles_of
from mercer.report import Report
from mercer.rows.rows import Rows
from mercer.rows.source import TILE, Source

if TYPE_CHECKING:
    from mercer.estimators.needs import Work
    from mercer.plan.plan import Plan


class FactorTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer whose fitted state is a factor and what to do with its rows."""

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

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        """Which passes a fit makes, for `plan`."""
        raise NotImplementedError(f"{type(self).__name__} tells no plan")

    def _checked(self, X: Any) -> Source:
        """X as a source with the columns of the fit."""
        check_is_fitted(self)
        source = checked_source(X)
        check_features(self, source)
        return source

    def _transformed(
        self, source: Source, make: Callable[[], Callable[[Rows], FloatArray]], dtype: Any
    ) -> FloatArray:
        """A function of raw rows, tile by tile; values are checked on the way.

        `make` gives it, and can be sent to other processes: a method of a frozen value.
        """
        budget = Budget.of(self.max_memory)
        out = self._room(source, dtype, budget)
        with listening(LineWriter() if self.verbose else None), single_threaded_blas():
            tiles = tiles_of(
                source,
                make,
                kernel=self.kernel_,
                block_rows=budget.block_rows(source.n_features * source.dtype.itemsize, TILE),
                threads=n_threads(self.n_jobs),
                stage="transform",
                row_bytes=out.shape[1] * out.dtype.itemsize,
            )
            for start, tile in tiles:
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

    def _install(
        self,
        problem: Problem,
        approximation: Any,
        factor: Any,
        record: Recorder,
        *,
        learnt: dict[str, Any] | None = None,
        **told: Any,
    ) -> None:
        """Fitted state, at once and last; `learnt`, `told`: what only this one has and reports."""
        source, kernel = problem.source, raw_kernel(factor)
        common: dict[str, Any] = {
            "estimator": type(self).__name__,
            "n_rows": source.n_rows,
            "n_features": source.n_features,
            "n_distinct": len(problem.sample),
            "dtype": str(problem.sample.format.dtype),
            "kernel": repr(kernel),
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
        report = Report(**common | told)
        record.raise_warnings()
        fitted: dict[str, Any] = {
            "n_features_in_": source.n_features,
            "kernel_": kernel,
            "factor_": factor.forget_training(),
            "report_": report,
            **(learnt or {}),
        }
        if source.feature_names is not None:
            fitted["feature_names_in_"] = np.asarray(source.feature_names, dtype=object)
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = kept | fitted  # one step: no interrupt comes between

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
