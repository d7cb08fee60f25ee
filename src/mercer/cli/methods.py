"""The methods of `mercer cluster`: a name and the estimator behind it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer

from mercer.cli.derive import domain_of
from mercer.cli.signatures import parameters_of
from mercer.cli.vocabulary import option_of

METHODS = {  # a new method is a new line
    "spectral": "mercer.estimators.spectral_clustering:SpectralClustering",
    "kernel-kmeans": "mercer.estimators.kernel_kmeans:KernelKMeans",
    "ksc": "mercer.estimators.kernel_spectral_clustering:KernelSpectralClustering",
}
DEFAULT_METHOD = "spectral"
TUNE_METHOD = "ksc"  # the one that shares factors between candidates


def make_estimator(method: str, given: dict[str, Any]) -> Any:
    """The method's estimator, unfitted; parameters that are not given keep its own defaults."""
    for name, value in given.items():
        option = option_of(name)
        if name not in parameters_of(METHODS[method]):
            raise typer.BadParameter(f"--method {method} has no {option}")
        if not _takes(method, name, value):
            others = " or ".join(other for other in METHODS if _takes(other, name, value))
            raise typer.BadParameter(f"{option} {value} needs --method {others}, not {method}")
    module, _, class_name = METHODS[method].partition(":")
    return getattr(import_module(module), class_name)(**given)


def with_pivots(estimator: Any, *, pivots: str | None, pivot_tol: float | None) -> Any:
    """The same with these settings of its incomplete Cholesky factor, if any is given."""
    if pivots is None and pivot_tol is None:
        return estimator
    from mercer.factors.names import as_approximation

    known = parameters_of(f"{type(estimator).__module__}:{type(estimator).__name__}")
    default_rank = known["rank"].default
    made = as_approximation(estimator.approximation, estimator.rank, default_rank=default_rank)
    if not {"pivots", "tol"} <= made.get_params(deep=False).keys():
        option = "--pivots" if pivots is not None else "--pivot-tol"
        raise typer.BadParameter(
            f"{option} needs --approximation cholesky, not {estimator.approximation}"
        )
    made.set_params(pivots=pivots or estimator._usual_pivots, tol=pivot_tol or 0.0)
    return estimator.set_params(approximation=made, rank=default_rank)


def _takes(method: str, name: str, value: Any) -> bool:
    """Whether a method has such a parameter and it may have such a value."""
    parameter = parameters_of(METHODS[method]).get(name)
    return parameter is not None and value in domain_of(parameter)
