"""The methods of `mercer cluster`: a name and the estimator behind it."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import typer

METHODS = {  # a new method is a new line
    "spectral": "mercer.estimators:SpectralClustering",
    "kernel-kmeans": "mercer.estimators:KernelKMeans",
    "ksc": "mercer.estimators:KernelSpectralClustering",
}
DEFAULT_METHOD = "spectral"
TUNE_METHOD = "ksc"  # the one that shares factors between candidates

OPTIONS = {"n_jobs": "--jobs", "random_state": "--seed"}  # where not spelt like the parameter
SPECTRAL_ONLY = {"n_clusters": "auto", "rank": "auto", "approximation": "landmarks"}


def make_estimator(method: str, parameters: dict[str, Any]) -> Any:
    """The method's estimator, unfitted; parameters that are None keep its own defaults."""
    estimator_class = _estimator_class(method)
    given = {name: value for name, value in parameters.items() if value is not None}
    for name, value in given.items():
        option = OPTIONS.get(name, "--" + name.replace("_", "-"))
        if name not in inspect.signature(estimator_class).parameters:
            raise typer.BadParameter(f"--method {method} has no {option}")
        if (method, name) == ("ksc", "n_clusters"):  # "auto" is a search
            continue
        if method != "spectral" and value == SPECTRAL_ONLY.get(name):
            raise typer.BadParameter(f"{option} {value} needs --method spectral, not {method}")
    return estimator_class(**given)


def _estimator_class(method: str) -> Any:
    module, _, name = METHODS[method].partition(":")
    return getattr(import_module(module), name)
