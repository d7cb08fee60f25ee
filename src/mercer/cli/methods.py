"""The methods of `mercer cluster`: a name and the estimator behind it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer

from mercer.cli.derive import domain_of
from mercer.cli.signatures import parameters_of
from mercer.cli.vocabulary import option_of

METHODS = {  # a new method is a new line
    "spectral": "mercer.estimators:SpectralClustering",
    "kernel-kmeans": "mercer.estimators:KernelKMeans",
    "ksc": "mercer.estimators:KernelSpectralClustering",
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


def _takes(method: str, name: str, value: Any) -> bool:
    """Whether a method has such a parameter and it may have such a value."""
    parameter = parameters_of(METHODS[method]).get(name)
    return parameter is not None and value in domain_of(parameter)
