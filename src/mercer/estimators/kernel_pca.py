"""Kernel principal component analysis of data of any size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray, RandomState
from mercer.embeddings.angles import angle_note
from mercer.embeddings.kpca import PrincipalMap, principal_map
from mercer.estimators.base import Transformer
from mercer.estimators.needs import Work, component_memory
from mercer.estimators.preimage import PreImage, fit_preimage
from mercer.estimators.preparation import prepare_problem
from mercer.factors.base import Approximation
from mercer.factors.names import as_dense_approximation, kernel_for
from mercer.factors.problem import Problem, fit_factor
from mercer.kernels.base import Kernel
from mercer.kernels.registry import is_precomputed
from mercer.linalg.products import row_products
from mercer.rows.rows import BlockRows, Rows, cast, part
from mercer.rows.source import Source, spans

DEFAULT_RANK = 256


class KernelPCA(Transformer):
    """Principal components in the kernel's space, for data of any size.

    Scores equal those of scikit-learn's KernelPCA up to sign and the error of the approximation:
    the kernel is centred, and the squared scores of a component sum to λ over the training rows.
    The eigenproblem is that of a factor, K ≈ F Fᵀ, or (``approximation="quantized"``) of blocks of
    close rows: O(n·rank) kernel values instead of O(n²), and memory within `max_memory`. Up to
    100,000 distinct rows are fitted, for more a seeded sample. The scores of a row do not depend on
    the other rows passed with it, nor on the number of threads.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components; None is all that the factor has.
    kernel : str, kernel object or callable, default="rbf"
        A name ("rbf", "laplacian", "chi2", "cosine", "polynomial", "histogram_intersection",
        "precomputed"), a kernel object such as ``RBF(0.5)``, or a function of (X, Y).
    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of a kernel given by name.
    approximation : str or approximation object, default="cholesky"
        "cholesky" (least error for a rank), "nystrom", "fourier", "binning", "quantized" (least
        time), "exact", or an object such as ``Quantized(radius=7.2)``.
    rank : int, default=256
        Number of pivots, features or representatives of a named approximation.
    eigen_solver : {"auto", "dense", "arpack", "lobpcg", "primme"}, default="auto"
        Solver of the small eigenproblem.
    fit_inverse_transform : bool, default=False
        Fit `inverse_transform` too (dense rows only): ridge regression of rows on an RBF kernel of
        their scores.
    alpha : float, default=1.0
        Regularisation of that regression.
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
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the centred kernel matrix of all rows, largest first.
    explained_variance_ratio_ : array of shape (n_components,)
        Share of the trace of that matrix that each component explains.
    components_ : array of shape (rank, n_components)
        Directions in the space of F.
    offset_ : array of shape (n_components,)
        Scores of the mean, subtracted from all scores.
    factor_ : Factor
        The factor.
    kernel_ : Kernel
        The kernel, with the bandwidth that was used.
    report_ : Report
        The fit report.

    Examples
    --------
    >>> from mercer.datasets import ring_and_core
    >>> from mercer.estimators import KernelPCA
    >>> X, y = ring_and_core(1000, random_state=0)
    >>> scores = KernelPCA(n_components=2, random_state=0).fit_transform(X)
    >>> scores.shape
    (1000, 2)
    """

    _fitted_fields: ClassVar[dict[str, Any]] = Transformer._fitted_fields | {
        "components_": "(r, c) float, finite",
        "offset_": "(c,) float, finite",
        "eigenvalues_": "(c,) float, finite",
        "explained_variance_ratio_": "(c,) float, finite",
        "preimage_": PreImage | None,
    }
    _parameter_constraints = {  # noqa: RUF012
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "kernel": "no_validation",
        "gamma": "no_validation",
        "approximation": "no_validation",
        "rank": [Interval(Integral, 1, None, closed="left")],
        "eigen_solver": [StrOptions({"auto", "dense", "arpack", "lobpcg", "primme"})],
        "fit_inverse_transform": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "max_memory": "no_validation",
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "rbf",
        gamma: Any = "auto",
        approximation: Any = "cholesky",
        rank: int = DEFAULT_RANK,
        eigen_solver: str = "auto",
        fit_inverse_transform: bool = False,
        alpha: float = 1.0,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.approximation = approximation
        self.rank = rank
        self.eigen_solver = eigen_solver
        self.fit_inverse_transform = fit_inverse_transform
        self.alpha = alpha
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Find the components of rows like those of X (anything `mercer.as_source` takes)."""
        self._fit(X, sample_weight)
        return self

    def _fit(self, X: Any, sample_weight: Any) -> Problem:
        self._validate_params()
        rng, threads, record = as_generator(self.random_state), n_threads(self.n_jobs), Recorder()
        approximation, kernel = self._parts()
        solver: Any = self.eigen_solver
        with self._running():
            problem = prepare_problem(self, X, sample_weight, rng=rng, record=record, kernel=kernel)
            with record.stage("factor"):
                factor = fit_factor(approximation, problem, rng=rng, threads=threads)
                factor = factor.principal_form(problem.sample, rng=rng, threads=threads)
            with record.stage("components"):
                assert problem.kernel is not None
                found = principal_map(
                    factor,
                    problem.kernel,
                    problem.sample,
                    self.n_components,
                    solver=solver,
                    rng=rng,
                )
            preimage = None
            if self.fit_inverse_transform:
                with record.stage("pre-image"):
                    preimage = self._preimage(factor, found, problem, rng=rng)
        self._remember_fit(problem, approximation, factor, found, preimage, record)
        return problem

    def transform(self, X: Any) -> FloatArray:
        """Scores of any rows, seen or new: (n, k) float64."""
        source = self._checked(X)
        make = partial(_raw_score_function, self.factor_, self.components_, self.offset_)
        return self._transformed(source, make, np.float64)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> FloatArray:
        """`fit`, then `transform`, to the last bit; rows that the fit still holds are not read."""
        problem = self._fit(X, sample_weight)
        sample, source = problem.sample, problem.source
        if sample.inverse is None or sample.format.dtype != np.float64:
            del problem, sample  # what is held goes before more is made
            return self.transform(X)
        scores = self._room(source, np.float64, problem.budget)
        with single_threaded_blas():
            score = _score_function(self.factor_, self.components_, self.offset_)
            of_sample = [score(part(sample.rows, *span)) for span in spans(len(sample))]
        np.take(np.concatenate(of_sample), sample.inverse, axis=0, out=scores)
        return scores

    def inverse_transform(self, X: Any) -> FloatArray:
        """Rows whose scores are near these: (n, n_features), by regression."""
        check_is_fitted(self)
        if self.preimage_ is None:
            raise ValueError(
                "inverse_transform was not learnt: use KernelPCA(fit_inverse_transform=True)"
            )
        Z = check_array(X, dtype=np.float64)
        if Z.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {Z.shape[1]} columns, but this KernelPCA has {self._n_features_out} "
                "components"
            )
        with single_threaded_blas():
            rows: FloatArray = self.preimage_.rows(Z)
        return rows

    def _planned_work(self, source: Source, sample_rows: int) -> Work:
        return Work(self._parts()[0], sample_rows, solving=component_memory)

    def _parts(self) -> tuple[Approximation, Kernel]:
        approximation = as_dense_approximation(
            self.approximation, self.rank, default_rank=DEFAULT_RANK
        )
        return approximation, kernel_for(approximation, self.kernel, self.gamma)

    def _preimage(
        self, factor: Any, found: PrincipalMap, problem: Problem, *, rng: np.random.Generator
    ) -> PreImage:
        sample = problem.sample
        is_table = not isinstance(sample.rows, BlockRows) and not sp.issparse(sample.rows)
        if not is_table or is_precomputed(self.kernel):
            raise ValueError(
                "fit_inverse_transform=True needs X as one dense table: sparse rows, column blocks "
                "and precomputed kernels have no rows to go back to"
            )
        score = _score_function(factor, found.vectors, found.offset)
        Z = np.concatenate(
            [score(cast(part(sample.rows, *span), np.float64)) for span in spans(len(sample))]
        )
        preimage = fit_preimage(Z, sample.rows, sample.weights, alpha=self.alpha, rng=rng)
        mean = sample.format.undo(preimage.mean)
        coefficients = preimage.coefficients * 2.0**sample.format.exponent
        return PreImage(preimage.gamma, preimage.centers, coefficients, mean)

    def _remember_fit(
        self,
        problem: Problem,
        approximation: Any,
        factor: Any,
        found: PrincipalMap,
        preimage: PreImage | None,
        record: Recorder,
    ) -> None:
        """All fitted state, at once and last."""
        weights, given, unit = problem.sample.weights, problem.weights, problem.weight_unit
        whole = float(problem.source.n_rows if given is None else given.sum())
        shares = found.values / found.total if found.total > 0 else np.zeros(len(found.values))
        _note_components(self.n_components, factor, found, float(weights.sum()), shares, record)
        self._remember(
            problem,
            approximation,
            factor,
            record,
            estimator=f"KernelPCA(n_components={self.n_components!r})",
            eigenvalues=tuple(map(float, found.values * unit)),
            residuals=tuple(map(float, found.residuals * unit)),
            solver=found.solver,
            fitted={
                "components_": np.ascontiguousarray(found.vectors),
                "offset_": found.offset,
                "eigenvalues_": found.values * (whole / float(weights.sum())) * unit,
                "explained_variance_ratio_": np.minimum(shares, 1.0),
                "preimage_": preimage,
            },
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.fit_inverse_transform
        return tags


def _raw_score_function(
    factor: Any, components: FloatArray, offset: FloatArray
) -> Callable[[Rows], FloatArray]:
    """Raw rows → scores."""
    score = _score_function(factor, components, offset)
    return lambda rows: score(factor.format.apply(rows, np.float64))


def _score_function(
    factor: Any, components: FloatArray, offset: FloatArray
) -> Callable[[Rows], FloatArray]:
    """Rows in the factor's format → scores, by products of one shape: a row's bits are its own."""
    features, folded = factor.features(np.float64), factor.mix @ components
    return lambda rows: row_products(features(rows), folded) - offset


def _note_components(
    asked: int | None,
    factor: Any,
    found: PrincipalMap,
    weight: float,
    shares: FloatArray,
    record: Recorder,
) -> None:
    """How much the components explain, how sure they are, and what is missing."""
    k = len(found.values)
    if asked is not None and k < asked:
        record.warn(
            f"n_components={asked}, but the centred kernel of these rows has {k} by a factor of "
            f"rank {factor.rank}; raise rank, or ask for fewer"
        )
    record.note(f"{k} components explain {100 * min(shares.sum(), 1.0):.1f} % of the kernel")
    for note in factor.notes():
        record.note(note)
    error = factor.error_norm(weight, is_normalized=False)
    if error is not None:
        angle_note(error, float(found.values[-1]) - found.next_value, k, record)
