"""Fitted models in one file: `save` and `load`.

The file is a zip of ``manifest.json`` and of arrays in ``.npy`` format. It holds what `predict` and
`transform` need and the report, but no labels and no code: loading makes objects from a fixed table
of classes and never unpickles. The manifest::

    format, version     "mercer-model", 1
    mercer              the version of Mercer that wrote it
    class, parameters   the estimator and what its constructor takes
    fitted              the learnt attributes; arrays by the name of their member
    report              what `report_` tells
    notes               what the program that wrote it wants to find again
    arrays              for each array: sha256, shape, dtype
    seal                "sha256": the zip's comment is the SHA-256 of the manifest

docs/model-format.md is the specification.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._run.atomic import check_writable
from mercer._run.budget import Budget, free_memory
from mercer.estimators.preimage import PreImage
from mercer.io.allowance import Allowance
from mercer.io.archive import opened, read_arrays, read_manifest, write_archive
from mercer.io.check_codes import check_kernel_spectral
from mercer.io.check_models import FACTORS, check_factor_model, check_kernel_kmeans
from mercer.io.check_pca import check_kernel_pca
from mercer.io.check_spectral import FACTORS_AND_GRAPHS, check_spectral_clustering
from mercer.io.check_stream import check_streaming
from mercer.io.damage import damaged, demand, reason
from mercer.io.trees import Json, Packer, Unpacker
from mercer.kernels.base import Kernel
from mercer.partitions.codebooks import Codebook
from mercer.partitions.ensemble import Consensus
from mercer.report import Report
from mercer.selection.result import Selection
from mercer.stream.queue import Queue
from mercer.stream.state import Stream

FORMAT, VERSION = "mercer-model", 1


@dataclass(frozen=True, slots=True)
class Saved:
    """How one class of estimator is kept."""

    module: str  # where it is
    check: Callable[[Any], None] = check_factor_model  # raises if a loaded one is not sound
    fitted: dict[str, Any] = field(default_factory=dict)  # further attributes, other types

    def kinds(self) -> dict[str, Any]:
        """The attributes there must be, and their types; None takes one of BASE away."""
        return {name: kind for name, kind in {**BASE, **self.fitted}.items() if kind is not None}


# The estimators that can be saved. All have BASE and may have OPTIONAL; a new one is a new line.
ESTIMATORS: dict[str, Saved] = {
    "KernelFeatures": Saved("mercer.estimators"),
    "KernelKMeans": Saved(
        "mercer.estimators",
        check_kernel_kmeans,
        {
            "cluster_centers_": np.ndarray,
            "cluster_weights_": np.ndarray,
            "inertia_": float,
            "n_iter_": int,
        },
    ),
    "KernelSpectralClustering": Saved(
        "mercer.estimators",
        check_kernel_spectral,
        {
            "eigenvalues_": np.ndarray,
            "coefficients_": np.ndarray,
            "degree_coefficients_": np.ndarray,
            "bias_": np.ndarray,
            "codebook_": Codebook,
            "cluster_weights_": np.ndarray,
            "n_clusters_": int,
            "n_iter_": int,
            "selection_": (Selection, type(None)),
        },
    ),
    "KernelPCA": Saved(
        "mercer.estimators",
        check_kernel_pca,
        {
            "components_": np.ndarray,
            "offset_": np.ndarray,
            "eigenvalues_": np.ndarray,
            "explained_variance_ratio_": np.ndarray,
            "preimage_": (PreImage, type(None)),
        },
    ),
    "SpectralClustering": Saved(
        "mercer.estimators",
        check_spectral_clustering,
        {
            "factor_": FACTORS_AND_GRAPHS,
            "eigenvalues_": np.ndarray,
            "consensus_": (Consensus, type(None)),
            "vectors_": (np.ndarray, type(None)),
            "directions_": (np.ndarray, type(None)),
            "cluster_weights_": np.ndarray,
            "n_clusters_": int,
            "n_clusters_ranking_": list,
            "n_iter_": int,
        },
    ),
    "StreamingKernelKMeans": Saved(
        "mercer.stream",
        check_streaming,
        {
            "factor_": None,  # is in stream_
            "stream_": (Stream, type(None)),
            "queue_": Queue,
            "key_": int,
            "cluster_weights_": np.ndarray,
        },
    ),
}
BASE = {"kernel_": Kernel, "factor_": tuple(FACTORS), "n_features_in_": int}
OPTIONAL = {"feature_names_in_": np.ndarray, "pivots_": np.ndarray}


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file, which `load` reads.

    The file appears when it is whole; until then an older one under this name stays. Models with a
    function as their kernel cannot be saved: a file holds no code. Of `random_state` only None and
    numbers are kept, of fitted attributes not `labels_`.

    Parameters
    ----------
    estimator : a fitted estimator of Mercer.
    path : path of the file; what is there is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from mercer import KernelKMeans
    >>> from mercer.datasets import ring_and_core
    >>> X, y = ring_and_core(1000, random_state=0)
    >>> model = KernelKMeans(n_clusters=2, random_state=0).fit(X)
    >>> path = os.path.join(tempfile.mkdtemp(), "rings.model")
    >>> save(model, path)
    >>> bool((load(path).predict(X) == model.labels_).all())
    True
    """
    write_model(estimator, path, {})


def write_model(estimator: Any, path: str | os.PathLike[str], notes: dict[str, Json]) -> None:
    """`save`, with notes that `read_model` gives back."""
    saved = _saved(estimator)
    check_is_fitted(estimator)
    estimator._validate_params()
    check_writable(path)
    packer = Packer()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "mercer": import_module("mercer").__version__,
        "class": type(estimator).__name__,
        "parameters": packer.parameters(estimator, "parameters"),
        "fitted": _pack_fitted(estimator, saved, packer),
        "report": _pack_report(estimator),
    }
    if notes:
        manifest["notes"] = notes
    write_archive(path, manifest, packer.arrays)


def load(path: str | os.PathLike[str], *, max_memory: int | float | str | None = None) -> Any:
    """The estimator that `save` wrote: it predicts what it did, to the last bit.

    Safe with files from anywhere: nothing in them is run, sizes are checked before anything is
    read, and a file that is damaged, foreign or of a newer format raises `ModelFileError`.

    Parameters
    ----------
    path : path of the file.
    max_memory : bytes or words like "500MB" that loading may take (else `BudgetError`); None is
        what is free.

    Examples
    --------
    >>> import tempfile
    >>> from mercer import SpectralClustering, load
    >>> from mercer.datasets import rings
    >>> X, y = rings(1000, random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "rings.mercer")
    >>> SpectralClustering(n_clusters=3, random_state=0).fit(X).save(path)
    >>> load(path).predict(X).shape
    (1000,)
    """
    return read_model(path, max_memory=max_memory)[0]


def read_model(
    path: str | os.PathLike[str], *, max_memory: int | float | str | None = None
) -> tuple[Any, dict[str, Json]]:
    """`load`, and the notes that `write_model` was given."""
    budget = Budget(free_memory()) if max_memory is None else Budget.of(max_memory)
    allowance = Allowance(budget)
    with opened(path) as archive:
        manifest = read_manifest(archive, allowance)
        _check_format(manifest)
        arrays = read_arrays(archive, manifest.get("arrays"), allowance)
        unpacker = Unpacker(arrays, allowance)
        try:
            estimator = _estimator(manifest, unpacker)
        except RecursionError as error:
            raise damaged("its manifest is nested too deeply") from error
    notes = manifest.get("notes")
    return estimator, notes if isinstance(notes, dict) else {}


def _saved(estimator: Any) -> Saved:
    """The table's line for this estimator, if it is exactly of that class."""
    name = type(estimator).__name__
    saved = ESTIMATORS.get(name)
    if saved is None or type(estimator) is not _class_of(name, saved):
        raise TypeError(
            f"a {type(estimator).__module__}.{name} cannot be saved, as its code would not be in "
            f"the file; what can be saved are Mercer's own {', '.join(sorted(ESTIMATORS))}"
        )
    return saved


def _class_of(name: str, saved: Saved) -> type[Any]:
    cls: type[Any] = getattr(import_module(saved.module), name)
    return cls


def _pack_fitted(estimator: Any, saved: Saved, packer: Packer) -> dict[str, Json]:
    """The learnt attributes as trees; the factor refers to the kernel where they share it."""
    optional = (name for name in OPTIONAL if name in vars(estimator))
    fitted: dict[str, Json] = {}
    for name in dict.fromkeys((*saved.kinds(), *optional)):
        fitted[name] = packer.pack(getattr(estimator, name), name)
        packer.kernel = estimator.kernel_
    return fitted


def _pack_report(estimator: Any) -> Json:
    report = vars(estimator).get("report_")
    return None if report is None else report.to_dict()


def _check_format(manifest: dict[str, Json]) -> None:
    """This is our format, in a version that can be read."""
    name, version = manifest.get("format"), manifest.get("version")
    demand(name == FORMAT, f"its manifest says format {reprlib.repr(name)}, not {FORMAT!r}")
    if type(version) is not int or version < 1:
        raise damaged(f"its manifest says version {reprlib.repr(version)}, not a number")
    if version > VERSION:
        writer = reprlib.repr(manifest.get("mercer"))
        raise damaged(
            f"it has format version {version}, written by Mercer {writer}, and this Mercer reads "
            f"versions up to {VERSION}",
            "upgrade Mercer",
        )


def _estimator(manifest: dict[str, Json], unpacker: Unpacker) -> Any:
    """The estimator that a manifest describes, sound or not at all."""
    name = manifest.get("class")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise damaged(
            f"it holds a {reprlib.repr(name)}, and this version of Mercer knows "
            f"{', '.join(sorted(ESTIMATORS))}",
            "load it with the version that saved it, or a newer one",
        )
    saved = ESTIMATORS[name]
    cls = _class_of(name, saved)
    estimator = cls(**unpacker.parameters(manifest.get("parameters"), cls))
    _check_parameters(estimator)
    fitted = _unpack_fitted(manifest.get("fitted"), saved, unpacker)
    vars(estimator).update(fitted, **_unpack_report(manifest.get("report")))
    saved.check(estimator)
    return estimator


def _check_parameters(estimator: Any) -> None:
    """The estimator's own checks, and the one that `predict` would make."""
    try:
        estimator._validate_params()
        Budget.of(estimator.max_memory)
    except Exception as error:
        raise damaged(f"its parameters are not valid ({reason(error)})") from error


def _unpack_fitted(tree: Json, saved: Saved, unpacker: Unpacker) -> dict[str, Any]:
    """The learnt attributes, each of the type it should have."""
    demand(isinstance(tree, dict), "its manifest has no fitted attributes")
    wanted = saved.kinds()
    kinds = {**wanted, **OPTIONAL}
    missing, unknown = sorted(set(wanted) - set(tree)), sorted(set(tree) - set(kinds))
    demand(not missing, f"the fitted attributes {missing} are not there")
    demand(not unknown, f"the fitted attributes {reprlib.repr(unknown)} are not known")
    fitted: dict[str, Any] = {}
    for name in (name for name in kinds if name in tree):
        value = fitted[name] = unpacker.unpack(tree[name])
        sound = isinstance(value, kinds[name]) and not isinstance(value, bool)
        demand(sound, f"{name} is a {type(value).__name__}")
        unpacker.kernel = fitted["kernel_"]
    return fitted


def _unpack_report(tree: Json) -> dict[str, Report]:
    """The report, if there is one; it must be able to speak."""
    if tree is None:
        return {}
    try:
        report = Report.from_dict(tree)
        str(report)
    except Exception as error:
        raise damaged(f"its report cannot be read ({reason(error)})") from error
    return {"report_": report}
