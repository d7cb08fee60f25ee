"""The rows of a factor as features: K ≈ F Fᵀ, for linear methods that know no kernels."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval

from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads
from mercer._run.types import FloatArray, RandomState
from mercer.estimators.base import Transformer
from mercer.estimators.needs import Work, dense_memory
from mercer.estimators.preparation import prepare_problem
from mercer.factors.base import Approximation
from mercer.factors.names import as_dense_approximation, kernel_for
from mercer.factors.problem import Problem, fit_factor
from mercer.kernels.base import Kernel
from mercer.rows.source import Source

DEFAULT_RANK = 256
LEAST_DRAW = 2000  # rows of the sample at least: the bandwidth looks at 1,000


class KernelFeatures(Transformer):
    """Features whose inner products are kernel values: f(x)·f(y) ≈ k(x, y).

    A linear method on these features approximates the kernel method at a cost linear in the number
    of rows. Replaces scikit-learn's Nystroem and RBFSampler: pivots drawn in proportion to the
    remaining error give a smaller error at the same rank, the bandwidth is chosen from the data,
    and rows can come from any source (`mercer.as_source`). Time O(n·rank²), memory within
    `max_memory`. The float64 features of a row do not depend on the other rows passed with it, nor
    on the number of threads. Random pivots are drawn from a sample of ten rows per pivot, and
    `trace_error` refers to these rows; greedy pivots, centres and leverage scores use all rows.

    Parameters
    ----------
    kernel : str, kernel object or callable, default="rbf"
        A name ("rbf", "laplacian", "chi2", "cosine", "polynomial", "histogram_intersection",
        "precomputed"), a kernel object such as ``RBF(0.5)``, or a function of (X, Y).
    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of a kernel given by name.
    approximation : str or approximation object, default="cholesky"
        "cholesky", "nystrom", "fourier", "binning", "quantized" or "exact", or an object such as
        ``Nystrom(100, sampling="kmeans")``.
    rank : int, default=256
        Number of features of an approximation given by name; fewer if the kernel has a lower rank.
    max_memory : int, str or None, default=None
        Memory limit in bytes, or as text such as "500MB"; None is half of the free memory.
    n_jobs : int or None, default=None
        Number of threads, -1 for all cores; None is 1.
    verbose : int, default=0
        Verbosity; 1 writes progress to standard error.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the random numbers.

    Attributes
    ----------
    factor_ : Factor
        The factor; ``factor_.trace_error`` is its relative error (for Fourier features
        ``factor_.kernel_error``).
    kernel_ : Kernel
        The kernel, with the bandwidth that was used.
    report_ : Report
        The fit report: stages, rank, error, bandwidth and warnings.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from mercer.datasets import ring_and_core
    >>> from mercer.estimators import KernelFeatures
    >>> X, y = ring_and_core(1000, random_state=0)
    >>> model = make_pipeline(KernelFeatures(rank=50, random_state=0), RidgeClassifier())
    >>> bool(model.fit(X, y).score(X, y) > 0.99)
    True
    """

    _parameter_constraints = {  # noqa: RUF012
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
        *,
        kernel: Any = "rbf",
        gamma: Any = "auto",
        approximation: Any = "cholesky",
        rank: int = DEFAULT_RANK,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.approximation = approximation
        self.rank = rank
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelFeatures:
        """Find the factor for rows like those of X (anything `mercer.as_source` takes)."""
        self._fit(X, sample_weight)
        return self

    def transform(self, X: Any) -> FloatArray:
        """F for any rows, seen or new: (n, rank), float32 for float32 rows, else float64."""
        return self._rows(self._checked(X))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> FloatArray:
        """`fit`, then `transform`; rows that the fit still holds are not computed again.

        Equal to `transform` but for rounding.
        """
        problem, F = self._fit(X, sample_weight)
        source, ids, budget = problem.source, problem.sample.ids, problem.budget
        if F is None or len(ids) < source.n_rows or not budget.allows(2 * F.nbytes):
            del problem, F  # what is held goes before more is made
            return self._rows(source)
        rows = self._room(source, source.dtype, budget)
        rows[ids] = F
        return rows

    def _fit(self, X: Any, sample_weight: Any) -> tuple[Problem, FloatArray | None]:
        """The problem, and F of its sample in the sample's order."""
        self._validate_params()
        approximation, kernel = self._parts()
        rng, record = as_generator(self.random_state), Recorder()
        with self._running():
            enough = approximation.enough_rows()
            most = None if enough is None else max(enough, LEAST_DRAW)
            problem = prepare_problem(
                self, X, sample_weight, rng=rng, record=record, kernel=kernel, most_rows=most
            )
            with record.stage("factor"):
                factor = fit_factor(approximation, problem, rng=rng, threads=n_threads(self.n_jobs))
                factor = factor.dense(problem.sample, rng=rng)
        self._remember(problem, approximation, factor, record)
        return problem, factor.training_rows

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        approximation, _ = self._parts()
        enough = approximation.enough_rows()
        most = sample_rows if enough is None else min(max(enough, LEAST_DRAW), sample_rows)
        return Work(approximation, most, solving=dense_memory, sample_rows=most)

    def _parts(self) -> tuple[Approximation, Kernel]:
        approximation = as_dense_approximation(
            self.approximation, self.rank, default_rank=DEFAULT_RANK
        )
        return approximation, kernel_for(approximation, self.kernel, self.gamma)

    def _rows(self, source: Source) -> FloatArray:
        return self._transformed(source, self.factor_.raw_row_function, source.dtype)

    @property
    def _n_features_out(self) -> int:
        return self.factor_.rank

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
