"""A stranger's factor and a stranger's estimator: one file each, a line in a table of names.

Everything that estimators, plan, trust, model files and the command line need to know of them is
here; no other file is touched.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import pytest
import test_estimator_laws
import test_factor_laws
from sklearn.utils._param_validation import Interval
from typer.testing import CliRunner

from mercer import KernelKMeans, SpectralClustering, load
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.records import Record, stored, unstored
from mercer._run.threads import n_threads
from mercer._run.types import FloatArray
from mercer.cli.app import app
from mercer.cli.methods import METHODS
from mercer.datasets import blobs, rings
from mercer.estimators.base import Clusterer
from mercer.estimators.needs import Sweep, Work, kmeans_memory
from mercer.estimators.preparation import prepare_problem
from mercer.factors.base import Approximation, as_sample, check_whole
from mercer.factors.dense import DenseFactor, LinearScores
from mercer.factors.names import NAMES, as_dense_approximation
from mercer.factors.problem import fit_factor
from mercer.io.classes import ESTIMATORS
from mercer.kernels.base import Kernel
from mercer.linalg.numbering import numbering
from mercer.metrics import adjusted_rand
from mercer.partitions.assignment import label_rows
from mercer.partitions.resampling import FitEvidence, by_centers, judges
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows, cast, part, take
from mercer.rows.sample import evenly
from mercer.rows.source import spans
from mercer.trust.diagnosis import diagnose

pytestmark = pytest.mark.filterwarnings("ignore::mercer.MercerWarning")

# A factor


@dataclass(frozen=True, slots=True)
class EvenFactor(DenseFactor):
    """F = k(X, pivots) @ mix, for pivots at even distances in the sample."""

    kernel: Kernel = stored(Kernel)
    format: RowFormat = stored(RowFormat)
    pivots: Rows = stored("(r, d) rows, finite")
    mix: FloatArray = stored("(r, q) float64, finite")
    trace_error: float | None = stored("float or None", None)
    training_rows: FloatArray | None = unstored()

    @property
    def rank(self) -> int:
        return int(self.mix.shape[1])

    def features(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        return self.kernel.against(cast(self.pivots, dtype))


class EvenPivots(Approximation):
    """Every n-th row is a pivot."""

    def __init__(self, rank: int = 256) -> None:
        self.rank = rank

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (EvenFactor,)

    def fit(self, kernel: Any, X: Any, *, rng: np.random.Generator, threads: int = 1) -> EvenFactor:
        check_whole("rank", self.rank)
        sample = as_sample(kernel, X)
        pivots = cast(take(sample.rows, evenly(len(sample), self.rank)), np.float64)
        values, vectors = np.linalg.eigh(kernel.matrix(pivots, pivots))
        kept = values > 4 * len(values) * np.finfo(sample.format.dtype).eps * values[-1]
        mix = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
        factor = EvenFactor(kernel, sample.format, pivots, mix)
        of_rows = factor.row_function(sample.format.dtype)
        F = np.concatenate([of_rows(part(sample.rows, *span)) for span in spans(len(sample))])
        return replace(factor, training_rows=F)

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        return 3 * n_rows * self.width(n_rows) * itemsize + 8 * self.rank**2


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NAMES, "even", EvenPivots)  # the one line


def laws_in(module: Any) -> dict[str, Any]:
    """The laws that a module tries on everything in a table."""
    return {
        name: law
        for name, law in vars(module).items()
        if name.startswith("test_") and "make" in inspect.signature(law).parameters
    }


LAWS, ESTIMATOR_LAWS = laws_in(test_factor_laws), laws_in(test_estimator_laws)

CASES = [
    (name, dtype)
    for name, law in LAWS.items()
    for dtype in (np.float64, np.float32)
    if dtype == np.float64 or "dtype" in inspect.signature(law).parameters
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_the_factor_obeys_the_laws(name, dtype, tmp_path):
    wanted = inspect.signature(LAWS[name]).parameters
    given = {"make": EvenPivots, "seed": 0, "dtype": dtype, "exponent": 7, "tmp_path": tmp_path}
    LAWS[name](**{key: given[key] for key in wanted})


@pytest.mark.parametrize("kind", [SpectralClustering, KernelKMeans])
def test_estimators_take_the_factor_by_name(kind, tmp_path):
    X, y = blobs(600, n_clusters=3, random_state=0)
    model = kind(3, approximation="even", rank=40, random_state=0).fit(X)
    assert adjusted_rand(y, model.labels_) > 0.9
    assert np.array_equal(model.predict(X), model.labels_)
    assert type(model.factor_) is EvenFactor
    assert "EvenPivots(rank=40)" in str(model.report_)
    assert model.report_.trust.grade in ("good", "fair", "poor")
    assert model.plan(X).memory > 0
    model.save(tmp_path / "even.mercer")
    assert np.array_equal(load(tmp_path / "even.mercer").predict(X), model.labels_)


@pytest.mark.parametrize("method", ["spectral", "kernel-kmeans"])
def test_the_command_line_takes_the_factor_by_name(method, tmp_path):
    X, y = blobs(600, n_clusters=3, random_state=0)
    labels = _clustered(tmp_path, X, "--method", method, "--approximation", "even", "--rank", "40")
    assert adjusted_rand(y, labels) > 0.9


# An estimator


class KernelCenters(Clusterer):
    """Clusters around rows of the sample at even distances in the kernel's space.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str, kernel object or callable, default="rbf"
        Kernel between rows.
    gamma : float or "auto", default="auto"
        Bandwidth of a kernel given by name.
    approximation : str or approximation object, default="cholesky"
        Approximation of the kernel matrix.
    rank : int, default=64
        Size of a named approximation.
    max_memory : int, str or None, default=None
        Memory that may be held.
    n_jobs : int or None, default=None
        Number of threads.
    verbose : int, default=0
        1 writes progress to standard error.
    random_state : int or None, default=None
        Seed of all draws.
    """

    _fitted_fields: ClassVar[dict[str, Any]] = Clusterer._fitted_fields | {
        "cluster_centers_": "(k, r) float, finite",
        "cluster_weights_": "(k,) float, finite",
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "kernel": "no_validation",
        "gamma": "no_validation",
        "approximation": "no_validation",
        "rank": [Interval(Integral, 1, None, closed="left")],
        "max_memory": "no_validation",
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: Any = "auto",
        approximation: Any = "cholesky",
        rank: int = 64,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.approximation = approximation
        self.rank = rank
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelCenters:
        self._validate_params()
        rng, threads, record = as_generator(self.random_state), n_threads(self.n_jobs), Recorder()
        approximation = self._approximation()
        with self._running():
            problem = prepare_problem(
                self,
                X,
                sample_weight,
                rng=rng,
                record=record,
                least_mean=0.5 / self.n_clusters,
                least_rows=self.n_clusters,
            )
            k = self._feasible_clusters(self.n_clusters, problem, record)
            with record.stage("factor"):
                factor = fit_factor(approximation, problem, rng=rng, threads=threads)
                factor = factor.dense(problem.sample, rng=rng, threads=threads)
            F, weights = factor.weighted_rows(problem.sample)
            centers = F[_far_apart(F, k)].astype(np.float64)
            some = judges(problem.sample)
            decide = LinearScores.of_centers(factor.forget_training(), centers).labels
            with record.stage("labels"):
                labels, totals = label_rows(decide, len(centers), problem, threads=threads)
            evidence = FitEvidence(
                totals,
                labels,
                decide(),
                by_centers(F[some], weights[some], len(centers)),
                problem.kernel,
            )
            trust = diagnose(evidence, problem, record)
        order = numbering(totals, centers)
        fitted = self._common_state(problem, order, labels, totals) | {
            "kernel_": factor.raw_kernel(),
            "factor_": factor.forget_training(),
            "cluster_centers_": centers[order],
        }
        return self._remember(fitted, problem, approximation, record, trust=trust)

    def _approximation(self) -> Approximation:
        return as_dense_approximation(self.approximation, self.rank, default_rank=64)

    def _scores(self) -> LinearScores:
        return LinearScores.of_centers(self.factor_, self.cluster_centers_)

    def _labeller(self) -> Any:
        return self._scores().counted_labels

    def _embedder(self) -> Any:
        return self._scores().distances

    def _planned_work(self, source: Any, sample_rows: int) -> Work:
        k = int(self.n_clusters)
        solving = partial(kmeans_memory, k)
        return Work(self._approximation(), sample_rows, (Sweep("labels"),), k, solving=solving)


def _make(n_clusters: int = 3, **parameters: Any) -> KernelCenters:
    return KernelCenters(n_clusters, **{"random_state": 0} | parameters)


def _far_apart(F: FloatArray, k: int) -> list[int]:
    """Rows that differ most: each the farthest from those before it."""
    chosen = [0]
    nearest = ((F - F[0]) ** 2).sum(axis=1)
    for _ in range(k - 1):
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, ((F - F[chosen[-1]]) ** 2).sum(axis=1))
    return chosen


@pytest.fixture
def _estimator_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{__name__}:KernelCenters"
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setitem(ESTIMATORS, "KernelCenters", place)  # model files
    monkeypatch.setitem(METHODS, "centers", place)  # the command line


@pytest.mark.parametrize("name", ESTIMATOR_LAWS)
def test_the_estimator_obeys_the_laws(name, monkeypatch):
    given = {"make": _make, "seed": 0, "dtype": np.float64, "monkeypatch": monkeypatch}
    ESTIMATOR_LAWS[name](
        **{key: given[key] for key in inspect.signature(ESTIMATOR_LAWS[name]).parameters}
    )


@pytest.mark.usefixtures("_estimator_registered")
def test_a_new_estimator_has_everything_that_others_have(tmp_path):
    X, y = blobs(600, n_clusters=3, random_state=0)
    model = KernelCenters(3, random_state=0).fit(X)
    assert model.factor_.rank <= 64
    assert adjusted_rand(y, model.labels_) > 0.9
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.array_equal(np.r_[model.predict(X[:7]), model.predict(X[7:])], model.labels_)
    assert model.report_.trust.grade in ("good", "fair", "poor")
    assert "KernelCenters(n_clusters=3)" in str(model.report_)
    assert model.plan(X).memory > 0
    np.save(tmp_path / "X.npy", X)
    filed = KernelCenters(3, random_state=0).fit(tmp_path / "X.npy")
    assert np.array_equal(filed.predict(X), model.labels_)
    model.save(tmp_path / "c.mercer")
    assert np.array_equal(load(tmp_path / "c.mercer").predict(X), model.labels_)
    by_even = KernelCenters(3, approximation="even", rank=40, random_state=0).fit(X)
    assert adjusted_rand(y, by_even.labels_) > 0.9


@pytest.mark.usefixtures("_estimator_registered")
def test_the_command_line_has_the_new_estimator(tmp_path):
    X, y = blobs(600, n_clusters=3, random_state=0)
    assert adjusted_rand(y, _clustered(tmp_path, X, "--method", "centers", "--rank", "64")) > 0.9


def test_a_factor_of_its_own_finds_rings():
    X, y = rings(1000, random_state=0)
    model = SpectralClustering(3, kernel="rbf", gamma=40.0, approximation="even", rank=400)
    assert adjusted_rand(y, model.set_params(random_state=0).fit(X).labels_) > 0.9


def _clustered(folder: Any, X: FloatArray, *options: str) -> Any:
    """Labels that the command line writes."""
    np.save(folder / "X.npy", X)
    out = str(folder / "labels.npy")
    words = ["cluster", str(folder / "X.npy"), "-k", "3", "--seed", "0", "--out", out, *options]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return np.load(out)
