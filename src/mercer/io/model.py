"""Fitted models in one file: `save` and `load`.

The file is a zip of ``manifest.json`` and of arrays in ``.npy`` format. It holds what `predict` and
`transform` need and the report, but no labels and no code: loading makes objects of fixed
tables of classes and never unpickles. The manifest::

    format, version     "mercer-model", 1
    mercer              the version of Mercer that wrote it
    class, parameters   the estimator and what its constructor takes
    fitted              the fitted attributes; arrays by the name of their member
    report              the fit report
    notes               for the program that wrote the file
    arrays              for each array: sha256, shape, dtype
    seal                "sha256": the zip's comment is the SHA-256 of the manifest

docs/model-format.md is the specification.
"""

from __future__ import annotations

import os
import reprlib
from functools import partial
from importlib import import_module
from typing import Any

from mercer._run.atomic import check_writable
from mercer._run.budget import Budget, free_memory
from mercer.io.allowance import Allowance
from mercer.io.archive import opened, read_arrays, read_manifest, write_archive
from mercer.io.classes import ESTIMATORS, estimator_class
from mercer.io.damage import damaged, demand
from mercer.io.packing import Json, Packer
from mercer.io.pipelines import pack_pipeline, unpack_pipeline
from mercer.io.unpacking import Unpacker

FORMAT, VERSION = "mercer-model", 1


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file, which `load` reads.

    The file is written under a temporary name and renamed when it is complete, so an older file of
    this name is replaced as a whole or not at all. Models whose kernel is a function cannot be
    saved: a file holds no code. Neither `labels_` nor the state of a random generator is kept.

    Parameters
    ----------
    estimator : estimator, Segmenter or Pipeline
        A fitted estimator of Mercer, or a fitted scikit-learn Pipeline that ends in one, whose
        other steps are SimpleImputer, StandardScaler, RobustScaler, MinMaxScaler, Normalizer, PCA,
        TruncatedSVD, TfidfTransformer, OneHotEncoder, or a ColumnTransformer of these.
    path : str or path
        The file or the URL to write.

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
    is_pipeline = type(estimator).__module__ == "sklearn.pipeline" and hasattr(estimator, "steps")
    last = estimator.steps[-1][1] if is_pipeline else estimator
    name = type(last).__name__
    if estimator_class(name) is not type(last):
        raise TypeError(
            f"a {type(last).__module__}.{name} cannot be saved, as its code would not be in "
            f"the file; what can be saved are Mercer's own {', '.join(sorted(ESTIMATORS))}, and "
            "pipelines of scikit-learn that end in one of them"
        )
    last._validate_params()
    check_writable(path)
    packer = Packer()
    tree = pack_pipeline(packer, estimator) if is_pipeline else packer.estimator(estimator)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "mercer": import_module("mercer").__version__,
        **tree,
    }
    if notes:
        manifest["notes"] = notes
    write_archive(path, manifest, packer.arrays)


def load(path: str | os.PathLike[str], *, max_memory: int | float | str | None = None) -> Any:
    """Read an estimator that `save` wrote; its predictions are the same, bit for bit.

    Safe with files from anywhere: nothing in them is run, sizes are checked before anything is
    read, and a file that is damaged, foreign or of a newer format raises `ModelFileError`.

    Parameters
    ----------
    path : str or path
        The file or the URL to read.
    max_memory : int, float, str or None, default=None
        Bytes, or text such as "500MB", that loading may use (else `BudgetError`); None is the free
        memory.

    Returns
    -------
    estimator, Segmenter or Pipeline
        The fitted estimator.

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
            is_pipeline = manifest.get("class") == "Pipeline"
            read = partial(unpack_pipeline, unpacker) if is_pipeline else unpacker.estimator
            estimator = read(manifest)
        except RecursionError as error:
            raise damaged("its manifest is nested too deeply") from error
    notes = manifest.get("notes")
    return estimator, notes if isinstance(notes, dict) else {}


def _check_format(manifest: dict[str, Json]) -> None:
    """Refuse other formats, and versions that this one cannot read."""
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
