"""``with mercer.checkpoint(folder)``: passes that were completed once are not run again.

A pass is known by its data, its function with all parameters in it, and its stage: so a fit that
was cut short finds the passes it had completed, and any other fit finds none of them. Each result
is one file, in the form of model files: arrays and JSON, with checksums and no pickle.
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from mercer import __version__
from mercer._checkpoint import keeping
from mercer._memory import Budget
from mercer._paths import check_links
from mercer._printable import PrintableErrors
from mercer._warn import warn
from mercer.exceptions import ModelFileError
from mercer.io.archive import opened, read_arrays, read_manifest, write_archive
from mercer.io.atomic import replacing
from mercer.io.damage import demand
from mercer.scale.parcels import pack

__all__ = ["Folder", "checkpoint"]

FORMAT = "mercer-pass"
SEED_FILE = "seed.json"


@contextmanager
def checkpoint(folder: str | os.PathLike[str]) -> Iterator[Folder]:
    """Keep the result of every pass over the rows that fits inside the block complete.

    A fit that was cut short (a crash, a lost cluster, Ctrl-C) and is run again with the same data,
    parameters and folder takes up after its last complete pass, and ends with the same labels.
    With ``random_state=None`` the first fit draws a seed that the folder keeps. What was kept for
    other data or parameters does no harm; delete the folder when it is no longer needed.

    Parameters
    ----------
    folder : path of the folder; it is made where there is none

    Examples
    --------
    >>> import tempfile
    >>> import mercer
    >>> from mercer.datasets import rings
    >>> X, y = rings(5000, random_state=0)
    >>> with mercer.checkpoint(tempfile.mkdtemp()) as kept:
    ...     model = mercer.KernelKMeans(3, random_state=0).fit(X)
    >>> kept.n_computed > 0
    True
    """
    store = Folder(folder)
    with keeping(store):
        yield store


class Folder:
    """Results of passes, one file each."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder)
        _check_folder(self.path)
        self.n_reused = 0  # passes whose results were found
        self.n_computed = 0
        self._known: tuple[Any, str] = (None, "")  # the last source in memory and its fingerprint

    def remembered(self, stage: str, source: Any, inputs: Any, compute: Callable[[], Any]) -> Any:
        """The result of a pass: a tuple of arrays, numbers and words."""
        key = _hash((__version__, stage, self._fingerprint(source), inputs))
        path = self.path / f"{stage.replace(' ', '-')}-{key}.pass"
        found = _read(path)
        if found is not None:
            self.n_reused += 1
            return found
        result = compute()
        self.n_computed += 1
        try:
            _write(path, result)
        except OSError as error:  # the fit itself can go on
            warn(
                f"the checkpoint {path} could not be written ({error}); make room, or this pass "
                "will have to be run again"
            )
        return result

    def seed(self) -> list[int]:
        """Entropy for fits without a random_state; drawn once for the folder."""
        path = self.path / SEED_FILE
        if not path.exists():
            with replacing(path) as temporary:
                temporary.write_text(json.dumps([secrets.randbits(32) for _ in range(4)]))
        try:
            words = [int(word) for word in json.loads(path.read_text())]
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{path} does not hold a seed any more ({error}); delete the folder"
            ) from error
        return words

    def _fingerprint(self, source: Any) -> str:
        """What tells these data from others: values in memory, or files with sizes and times."""
        if self._known[0] is not source:
            identity = getattr(source, "identity", source)
            self._known = source, _hash((identity, _files(source)))
        return self._known[1]


def _hash(value: Any) -> str:
    """What tells a value from others; functions without a name of their own count by their code."""
    try:
        return str(joblib.hash(value, hash_name="sha1"))
    except (pickle.PicklingError, AttributeError, TypeError):  # a lambda, an open file, ...
        return str(joblib.hash(pack(value).body, hash_name="sha1"))


def _files(source: Any) -> list[tuple[str, int, int]]:
    """Path, size and time of change of each file behind a source."""
    if hasattr(source, "sources"):  # column blocks
        return [entry for part in source.sources for entry in _files(part)]
    path = getattr(source, "path", None)
    if path is None:
        return []
    root = Path(path)
    paths = sorted(p for p in root.rglob("*") if p.is_file()) if root.is_dir() else [root]
    return [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]


def _write(path: Path, result: tuple[Any, ...]) -> None:
    arrays = {f"part{i}": part for i, part in enumerate(result) if isinstance(part, np.ndarray)}
    values = [None if isinstance(part, np.ndarray) else part for part in result]
    write_archive(path, {"format": FORMAT, "values": values}, arrays)


def _read(path: Path) -> tuple[Any, ...] | None:
    """The result that a file holds; None, and a word about it, where it holds none any more."""
    if not path.exists():
        return None
    try:
        with opened(path) as archive:
            manifest = read_manifest(archive)
            demand(manifest.get("format") == FORMAT, "it is not a pass of a checkpoint")
            arrays = read_arrays(archive, manifest.get("arrays"), Budget.of(None))
            values: Any = manifest.get("values")
            demand(isinstance(values, list), "it lists no values")
            return tuple(arrays.get(f"part{i}", value) for i, value in enumerate(values))
    except ModelFileError as error:
        warn(f"a checkpoint is damaged, and its pass will be run again: {error}")
        return None


@PrintableErrors()
def _check_folder(path: Path) -> None:
    """Make the folder, or say early why it cannot be used."""
    check_links(path)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"the checkpoint {path} is a file; pass the path of a folder")
    path.mkdir(parents=True, exist_ok=True)
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(f"the checkpoint folder {path} is not writable; choose another one")
