"""``with mercer.checkpoint(folder)``: passes that were completed once are not run again.

A pass is identified by its data, its function with all parameters, and its stage: so a fit that was
interrupted finds the passes it had completed, and any other fit finds none of them. Each result is
one file in the format of model files: arrays and JSON, with checksums and no pickle. It names its
pass, and is used only if it is whole, belongs there and looks like a result of that pass. A
checksum does not say who wrote the file: see SECURITY.md.
"""

from __future__ import annotations

import hashlib
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
from mercer._run.atomic import replacing
from mercer._run.budget import Budget
from mercer._run.checkpoint import Fits, keeping
from mercer._run.paths import check_links
from mercer._run.printable import PrintableErrors
from mercer._run.url import Url, place_of
from mercer._run.warn import warn
from mercer.exceptions import BudgetError, ModelFileError
from mercer.io.allowance import Allowance
from mercer.io.archive import opened, read_arrays, read_manifest, write_archive
from mercer.io.damage import demand, reason
from mercer.rows.places import paths_of
from mercer.scale.parcels import pack

FORMAT, VERSION = "mercer-pass", 1
SEED_FILE, SEED_WORDS = "seed.json", 4
AGAIN = "the checkpoint will be computed again"


@contextmanager
def checkpoint(folder: str | os.PathLike[str]) -> Iterator[CheckpointFolder]:
    """Store the result of every complete pass over the rows, so that interrupted fits resume.

    A fit that was interrupted (a crash, a lost cluster, Ctrl-C) and is run again with the same
    data, parameters and folder resumes after its last complete pass, and ends with the same labels.
    With ``random_state=None`` the first fit draws a seed that the folder keeps. Results for
    other data or parameters are ignored; delete the folder when it is no longer needed.

    Parameters
    ----------
    folder : str or path
        Path of the folder, which is created if necessary, accessible to its owner only.
        Whoever can write there can change results: a folder of another user's that anyone may
        write to is refused, and files that others wrote into it are ignored with a warning.

    Yields
    ------
    CheckpointFolder
        The folder; ``n_computed`` and ``n_reused`` count passes.

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
    store = CheckpointFolder(folder)
    with keeping(store):
        yield store


class CheckpointFolder:
    """Results of passes, one file each."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if (url := Url.of(folder)) is not None:
            raise ValueError(
                f"the checkpoint {url} is at a URL; choose a folder of the machine that waits for "
                "the workers: only sums are kept there"
            )
        self.path = Path(folder)
        _check_folder(self.path)
        self.n_reused = 0  # passes whose results were found
        self.n_computed = 0
        self._known: tuple[Any, str] = (None, "")  # the last source in memory and its fingerprint

    def recall(
        self, stage: str, source: Any, inputs: Any, compute: Callable[[], Any], fits: Fits
    ) -> Any:
        """The result of a pass: a tuple of arrays, numbers and words."""
        key = _hash((__version__, stage, self._fingerprint(source), inputs))
        path = self.path / f"{stage.replace(' ', '-')}-{key}.pass"
        belongs = {"format": FORMAT, "version": VERSION, "mercer": __version__}
        belongs |= {"stage": stage, "pass": key}
        found = _read(path, belongs, fits)
        if found is not None:
            self.n_reused += 1
            return found
        result = compute()
        self.n_computed += 1
        try:
            _write(path, belongs, result)
        except OSError as error:  # the fit itself can go on
            warn(
                f"the checkpoint {path} could not be written ({error}); free some space, or this "
                "pass will have to be run again"
            )
        return result

    def seed(self) -> list[int]:
        """Entropy for fits without a random_state; drawn once for the folder."""
        path = self.path / SEED_FILE
        if not path.exists():
            words = [secrets.randbits(32) for _ in range(SEED_WORDS)]
            with replacing(path) as temporary:
                temporary.write_text(json.dumps({"seed": words, "sha256": _seal(words)}))
        try:
            document = json.loads(path.read_bytes())
            words = document["seed"]
            is_seed = len(words) == SEED_WORDS and document["sha256"] == _seal(words)
            if not (is_seed and _is_own(path)):
                raise ValueError("another user wrote it, or its SHA-256 differs")
            return [int(word) for word in words]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(
                f"{path} does not hold the seed of this checkpoint any more ({reason(error)}); "
                "delete the folder, and the fit starts again"
            ) from error

    def _fingerprint(self, source: Any) -> str:
        """What identifies these data: values in memory, or files with sizes and times."""
        if self._known[0] is not source:
            identity = getattr(source, "identity", source)
            self._known = source, _hash((identity, _files(source)))
        return self._known[1]


def _hash(value: Any) -> str:
    """What identifies a value; functions without a name count by their code."""
    try:
        return str(joblib.hash(value, hash_name="sha1"))
    except (pickle.PicklingError, AttributeError, TypeError):  # a lambda, an open file, ...
        return str(joblib.hash(pack(value).body, hash_name="sha1"))


def _files(source: Any) -> list[tuple[str, int, int | str]]:
    """Path, size and time of change (at a URL: the version) of each file behind a source."""
    found: list[tuple[str, int, int | str]] = []
    for path in map(place_of, paths_of(source)):
        if isinstance(path, Url):
            tree = path.tree() or {"": path.status()}
            found += [(str(path / name), one.n_bytes, one.version) for name, one in tree.items()]
            continue
        files = sorted(filter(Path.is_file, path.rglob("*"))) if path.is_dir() else [path]
        found += [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return found


def _write(path: Path, belongs: dict[str, Any], result: tuple[Any, ...]) -> None:
    arrays = {f"part{i}": part for i, part in enumerate(result) if isinstance(part, np.ndarray)}
    values = [None if isinstance(part, np.ndarray) else part for part in result]
    if path.is_symlink():  # whoever put it there chose what would be overwritten
        path.unlink()
    write_archive(path, {**belongs, "values": values}, arrays)


def _read(path: Path, belongs: dict[str, Any], fits: Fits) -> tuple[Any, ...] | None:
    """The result that a file holds; None, and one warning, where it cannot be used."""
    if not os.path.lexists(path):
        return None
    try:
        with opened(path) as archive:
            demand(_is_own(path), "it is a link, or another user wrote it", AGAIN)
            allowance = Allowance(Budget.of(None))
            manifest = read_manifest(archive, allowance)
            for name, mine in {**belongs, "seal": "sha256"}.items():
                demand(manifest.get(name) == mine, f"it is of another pass ({name} differs)", AGAIN)
            arrays = read_arrays(archive, manifest.get("arrays"), allowance)
            values: Any = manifest.get("values")
            demand(isinstance(values, list), "it lists no values", AGAIN)
            places = {f"part{i}" for i, value in enumerate(values) if value is None}
            demand(set(arrays) <= places, "its arrays and values do not match", AGAIN)
            result = tuple(arrays.get(f"part{i}", value) for i, value in enumerate(values))
            _check_fits(fits, result)
            return result
    except (ModelFileError, BudgetError, OSError) as error:
        warn(f"a checkpoint is damaged, and its pass will be run again: {error}")
        return None


def _check_fits(fits: Fits, result: tuple[Any, ...]) -> None:
    """Refuse what cannot be a result of this pass; `fits` may fail in any way on damaged ones."""
    try:
        is_one = fits(result)
    except Exception as error:
        raise ModelFileError(
            f"it is not a result of this pass ({reason(error)}); {AGAIN}"
        ) from error
    demand(is_one, "its shapes, types or numbers are not those of this pass", AGAIN)


def _is_own(path: Path) -> bool:
    """Whether this user or the owner of the folder wrote the file; links do not count."""
    if path.is_symlink() or os.name != "posix":
        return not path.is_symlink()
    return path.stat().st_uid in (os.geteuid(), path.parent.stat().st_uid)


def _seal(words: Any) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


@PrintableErrors()
def _check_folder(path: Path) -> None:
    """Make the folder, or say early why it cannot be used."""
    check_links(path)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"the checkpoint {path} is a file; pass the path of a folder")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.stat()
    if os.name == "posix" and status.st_mode & 0o002 and status.st_uid != os.geteuid():
        raise PermissionError(
            f"anyone may write to the checkpoint folder {path}, which belongs to another user, and "
            "so change the results of the fit; choose a new folder, which will be yours alone"
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(f"the checkpoint folder {path} is not writable; choose another one")
