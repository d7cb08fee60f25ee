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
from mercer._run.progress import listening, shown
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray, IdArray, RandomState
from mercer._run.url import is_folder_path
from mercer._run.warn import warn
from mercer.embeddings.layout import EmbeddingMap, lay_out
from mercer.estimators.preparation import sampled_rows
from mercer.factors.base import CountedLabels, Surroundings, check_whole
from mercer.factors.dense import DenseFactor
from mercer.factors.problem import Problem
from mercer.kernels.base import Kernel
from mercer.kernels.registry import is_precomputed
from mercer.partitions.assignment import parts_of, tiles_of
from mercer.partitions.explanation import Explanation, Profile, explain, explained_rows
from mercer.partitions.label_store import keeping_labels, store_for
from mercer.partitions.outliers import (
    NOISE,
    NoiseLabels,
    OutlierModel,
    Scorer,
    fit_outliers,
    look_at_sample,
)
from mercer.partitions.quality import SAMPLE_ROWS, Quality, measure
from mercer.rows.checks import check_features, checked_source
from mercer.rows.inputs import as_source
from mercer.rows.places import check_apart, paths_of
from mercer.rows.rows import BlockRows, Rows, n_bytes, take
from mercer.rows.sample import RowSample, draw_rows, evenly
from mercer.rows.source import TILE, Source

if TYPE_CHECKING:
    from mercer.estimators.needs import Work


SAMPLE_BYTES = 2**24  # of rows of the fit that are kept, for a map
PROFILED_ROWS = 10_000  # at most, of rows that are given

UNMAPPED = (
    "embedding_map(n) draws from a sample of the rows of `fit`, which this model does not hold (it "
    "was loaded from a file, or is a stream): pass the rows, embedding_map(n, X)"
)
UNEXPLAINED = (
    "exemplars_ and profiles() describe a sample of the rows of `fit`, and this model has none (a "
    "stream, column blocks, a precomputed kernel, or a file of an earlier version): use profiles(X)"
)


class Estimator(BaseEstimator):
    """An estimator that plans, saves and runs functions over the rows of any source."""

    _reads_rows = True  # a Segmenter reads images
    _has_memberships = False  # whether rows belong to several clusters
    _usual_pivots = "random"  # of approximation="cholesky"

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
        if (explanation := vars(self).get("explained_")) is not None:
            explanation.check_columns(self.n_features_in_)

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        """Which passes a fit makes, for `plan`."""
        raise NotImplementedError(f"{type(self).__name__} does not support plan()")

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Inside, progress is written if asked for, and BLAS has one thread."""
        with listening(shown(self.verbose)), single_threaded_blas():
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
        how = self._reading(source)
        with self._running():
            yield from tiles_of(
                source, make, kernel=self.kernel_, stage=stage, row_bytes=bytes_, **how
            )

    def _reading(self, source: Source) -> dict[str, int]:
        """How many rows are read at once, and by how many threads they are worked on."""
        bytes_per_row = source.n_features * source.dtype.itemsize
        block_rows = Budget.of(self.max_memory).block_rows(bytes_per_row, TILE)
        return {"block_rows": block_rows, "threads": n_threads(self.n_jobs)}

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
            "work": record.work(),
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

    _optional_fields: ClassVar[dict[str, Any]] = Estimator._optional_fields | {
        "outliers_": OutlierModel,
        "explained_": Explanation,
    }
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
            A file (``.npy``, ``.parquet``, ``.csv`` or ``.zarr``) to write the labels to, or the
            URL of one; or, with a slash at its end, a folder of Parquet parts, which a pass of its
            own writes.

        Returns
        -------
        array of shape (n_rows,), or `out` if it is given
        """
        from mercer.io.labels import check_output, room_for, write_labels

        source = as_source(X)
        if out is not None:
            check_output(out)
            check_apart(paths_of(source), [out])
            if is_folder_path(out):
                return self.fit(source, sample_weight=sample_weight).predict(source, out=out)
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
            are found, in the order of the rows, or the URL of one. Or, with a slash at its end, a
            folder of Parquet parts with the columns "row" and "label": inside `mercer.on`, workers
            write the labels where they find them, each row exactly once.

        Returns
        -------
        array of shape (n_rows,), or `out` if it is given
        """
        from mercer.io.labels import write_labels

        X = as_source(X) if out is not None else X
        if out is not None:
            check_apart(paths_of(X), [out])
            if is_folder_path(out):
                return self._predict_parts(X, out)
        counted, n_rows = self._work(X, self._noise_labeller, stage="predict")
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
        self._warn_of_unseen(n_unseen, n_rows)
        return labels

    def _predict_parts(self, X: Any, out: Any) -> Any:
        """Labels in parts, written by whoever finds them."""
        from mercer.io.label_parts import write_parts

        source = self._checked(X)

        def parts(writer: Any) -> Iterator[Any]:
            labeller, how = self._noise_labeller(), self._reading(source)
            return parts_of(source, labeller, writer, kernel=self.kernel_, stage="predict", **how)

        with self._running():
            n_unseen = write_parts(out, len(self.cluster_weights_), source.n_rows, parts)
        self._warn_of_unseen(n_unseen, source.n_rows)
        return out

    def _warn_of_unseen(self, n_unseen: int, n_rows: int) -> None:
        if n_unseen and len(self.cluster_weights_) > 1:
            warn(_unseen_words(n_unseen, n_rows))

    def outlier_scores(self, X: Any) -> FloatArray:
        """How little each row, seen or new, belongs to its cluster.

        1 is a usual row inside a cluster. Scores grow with the distance to the rows of the fit,
        relative to what is usual in the cluster, and where what is around a row has other labels.

        Parameters
        ----------
        X : anything that `mercer.as_source` takes
            The rows.

        Returns
        -------
        array of shape (n_rows,)
        """
        tiles, n_rows = self._work(X, lambda: self._scorer().scores, stage="predict")
        scores = np.empty(n_rows)
        for start, tile in tiles:
            scores[start : start + len(tile)] = tile
        return scores

    def _scorer(self) -> Scorer:
        """What makes functions that score rows."""
        if (model := vars(self).get("outliers_")) is None:
            raise ValueError(
                "this model has no outlier scores: it was saved by an earlier version of "
                "Mercer; fit it again"
            )
        return Scorer(self._surroundings(model.mass), model)

    def _surroundings(self, mass: FloatArray | None) -> Callable[[], Callable[[Any], Surroundings]]:
        """What makes a function of raw rows: what lies around them."""
        raise NotImplementedError(f"{type(self).__name__} does not support outlier_scores()")

    def _noise_labeller(self) -> Callable[[], Callable[[Any], CountedLabels]]:
        """The same as `_labeller`, with -1 for noise where that was asked for."""
        is_asked = getattr(self, "noise", None) is not None
        return NoiseLabels(self._labeller(), self._scorer()) if is_asked else self._labeller()

    def _fit_outliers(
        self, look: Callable[[], Callable[[Any], Surroundings]], mass: Any, problem: Problem, k: int
    ) -> Scorer:
        """What is usual around rows of the sample, and how any rows are scored."""
        around, weights = look_at_sample(look(), problem)
        return Scorer(look, fit_outliers(around, weights, k, mass=mass, noise=self.noise))

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
        self,
        problem: Problem,
        order: IdArray,
        labels: IdArray | None,
        weights: FloatArray,
        *,
        outliers: OutlierModel | None = None,
        scores: FloatArray | None = None,
    ) -> dict[str, Any]:
        """Fitted attributes that every clusterer has; `order` numbers the clusters."""
        numbers = np.append(np.argsort(order), NOISE)
        if (store := store_for(problem.source)) is not None:
            store.numbers = numbers
        fitted = self._fitted_features(problem.source)
        fitted["cluster_weights_"] = weights[order] * problem.weight_unit
        if labels is not None:
            np.take(numbers, labels, out=labels, mode="clip")  # in place: 8 bytes a row
            fitted["labels_"] = labels
        if outliers is not None:
            fitted["outliers_"] = outliers.reordered(order)
        if labels is not None and outliers is not None and scores is not None:
            labels[outliers.is_noise(scores)] = NOISE
            fitted["outlier_scores_"] = scores
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
        note_noise(fitted, fitted.get("outliers_"), record)
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
            quality, explanation, rows = self._look_at(fitted, problem)
            fitted["report_"] = replace(fitted["report_"], quality=quality)
            if rows is not None:
                fitted["row_sample_"] = rows
            if explanation is not None:
                fitted["explained_"] = explanation
        return super()._install(fitted)

    def _look_at(
        self, fitted: dict[str, Any], problem: Problem
    ) -> tuple[Quality, Explanation | None, RowSample | None]:
        """Separation, exemplars and profiles of rows of the sample, by the state to be installed.

        Exemplars and profiles need a table of columns and outlier scores.
        """
        sample, k = problem.sample, len(fitted["cluster_weights_"])
        places, rows = sampled_rows(problem, explained_rows(k))
        model = copy(self)
        model.__dict__.update(fitted)
        with single_threaded_blas():
            Z = np.asarray(model._embedder()()(rows), np.float64)
            Z = Z[:, np.isfinite(Z).all(axis=0)]  # a cluster without rows is infinitely far
            labels, _ = model._labeller()()(rows)
        few, ids = places < SAMPLE_ROWS, sample.ids[places]
        quality = measure(Z[few], labels[few], k)
        kept = None if is_precomputed(self.kernel) else _row_sample(ids, rows)
        if isinstance(rows, BlockRows) or is_precomputed(self.kernel) or not hasattr(self, "noise"):
            return quality, None, kept
        if (scores := fitted.get("outlier_scores_")) is None:
            with single_threaded_blas():
                scores = model._scorer().scores()(rows)
        else:
            scores = scores[ids]
        weights = sample.weights[places]
        explanation = explain(rows, Z, labels, k, ids=ids, scores=scores, weights=weights)
        return quality, explanation, kept

    @property
    def exemplars_(self) -> IdArray:
        return self._explained().exemplars

    def profiles(self, X: Any = None) -> tuple[Profile, ...]:
        """What distinguishes each cluster: the columns in which its rows differ most from others.

        Effects are differences of means in standard deviations (Cohen's d). Of sparse tables, such
        as texts, they are the terms that are more frequent in the cluster.

        Parameters
        ----------
        X : anything that `mercer.as_source` takes, default=None
            The rows to describe: at most 10,000 of them are read. None is a sample of those of
            the fit.

        Returns
        -------
        tuple of Profile
        """
        names = vars(self).get("feature_names_in_", self._summarized_names())
        if X is None:
            found = self._explained()
        else:
            source = self._checked(X)
            ids = evenly(source.n_rows, PROFILED_ROWS)
            rows, k = source.take(ids), len(self.cluster_weights_)
            if isinstance(rows, BlockRows):
                raise ValueError("profiles need one table of columns, but X has column blocks")
            labels, names = self._labeller()()(rows)[0], source.feature_names
            space, ones = np.zeros((len(ids), 1)), np.ones(len(ids))
            found = explain(rows, space, labels, k, ids=ids, scores=ones, weights=ones)
        if names is None:
            names = [f"column {j}" for j in range(self.n_features_in_)]
        return found.profiles(list(names), self.cluster_weights_)

    def _summarized_names(self) -> list[str] | None:
        """The names of columns in the report, also where a step before this one knows them."""
        data = self.report_.data
        columns = () if data is None else data.columns
        return [c.name for c in columns] if len(columns) == self.n_features_in_ else None

    def embedding_map(
        self, n: int = 2000, X: Any = None, *, random_state: RandomState = 0
    ) -> EmbeddingMap:
        """Up to n rows as points of a plane, so that near rows are near each other.

        The graph between the rows and their 10 nearest neighbours, in the distances that the model
        sees, is laid out by gradient descent, as UMAP does it [mcinnes2018]: 0.4 s for 2,000 rows.
        Clusters that are separate in the data are separate spots; how far these are from each
        other means little.

        Parameters
        ----------
        n : int, default=2000
            The number of rows at most.
        X : anything that `mercer.as_source` takes, default=None
            The rows, of which n are drawn at random. None is a sample of those of the fit: 1,000
            to 10,000 rows, 30 for each cluster, of 16 MB at most (not in model files).
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draw and of the layout.

        Returns
        -------
        EmbeddingMap
            With the arrays `rows` (row numbers), `xy` (coordinates) and `labels`.

        Examples
        --------
        >>> from mercer import SpectralClustering
        >>> from mercer.datasets import blobs
        >>> X, y = blobs(500, random_state=0)
        >>> model = SpectralClustering(3, random_state=0).fit(X)
        >>> model.embedding_map(100).xy.shape
        (100, 2)
        """
        check_is_fitted(self)
        check_whole("n", n)
        rng = as_generator(random_state)
        if X is None:
            kept: RowSample | None = vars(self).get("row_sample_")
            if kept is None:
                raise ValueError(UNMAPPED)
            places = draw_rows(len(kept.ids), n, rng)
            ids, rows = kept.ids[places], take(kept.rows, places)
        else:
            source = self._checked(X)
            ids = draw_rows(source.n_rows, n, rng)
            rows = source.take(ids)
        labels, _ = self._noise_labeller()()(rows)
        return EmbeddingMap(ids, self._laid_out(rows, rng), labels)

    def _laid_out(self, rows: Rows, rng: np.random.Generator) -> FloatArray:
        """Raw rows as points of a plane."""
        with single_threaded_blas():
            factor = vars(self).get("factor_")
            space = None if factor is None else factor.row_space(rows)
            if space is None:
                space = self._embedder()()(rows)
        space = np.asarray(space, np.float64)
        return lay_out(space[:, np.isfinite(space).all(axis=0)], rng=rng)

    def _explained(self) -> Explanation:
        found: Explanation | None = vars(self).get("explained_")
        if found is None:
            raise AttributeError(UNEXPLAINED)
        return found

    def __getattr__(self, name: str) -> Any:
        verbs = {
            "labels_": "predict(X), or predict(X, out='labels.npy')",
            "outlier_scores_": "outlier_scores(X)",
        }
        if name in verbs and self.__sklearn_is_fitted__():
            raise AttributeError(
                f"{name} is kept only for rows in memory, and this model was fitted on a file or "
                f"stream, or was loaded: use {verbs[name]}"
            )
        if name == "exemplars_" and self.__sklearn_is_fitted__():
            raise AttributeError(UNEXPLAINED)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _row_sample(ids: IdArray, rows: Rows) -> RowSample:
    """As many of these rows as take little memory."""
    n_kept = max(SAMPLE_BYTES * len(ids) // max(n_bytes(rows), 1), 1)
    if n_kept >= len(ids):
        return RowSample(ids, rows)
    some = evenly(len(ids), n_kept)
    return RowSample(ids[some], take(rows, some))


def note_noise(fitted: dict[str, Any], outliers: OutlierModel | None, record: Recorder) -> None:
    """Say which rows were labelled -1, if that was asked for."""
    if outliers is None or outliers.cut is None:
        return
    who = "rows"
    if (labels := fitted.get("labels_")) is not None:
        n = int((labels == NOISE).sum())
        who = f"{n:,} of {len(labels):,} rows ({100 * n / len(labels):.2g} %)"
    record.note(f"{who} with an outlier score above {outliers.cut:.3g} are labelled -1 (noise)")


def _unseen_words(n_unseen: int, n_rows: int) -> str:
    return (
        f"{n_unseen:,} of {n_rows:,} rows are farther from every pivot than the kernel reaches; "
        "their labels mean nothing: scale these rows as those of the fit were, or fit with rows "
        "like them or a wider kernel (a smaller gamma)"
    )
