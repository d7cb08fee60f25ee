"""Checkpoints that somebody else wrote: never another result, never an error of numpy."""

from __future__ import annotations

import os
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import mercer
from lying import Arrays, opened, sealed
from mercer import RBF, KernelKMeans, MercerWarning, SpectralClustering, StreamingKernelKMeans
from mercer.datasets import blobs
from mercer.rows import distinct
from mercer.rows.batches import BatchSource

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def table(seed: int = 0) -> np.ndarray:
    return blobs(400, n_features=3, n_clusters=3, random_state=seed)[0]


def sparse(seed: int = 0) -> sp.csr_array:
    X = np.abs(table(seed))
    return sp.csr_array(np.where(X > 1, X, 0.0))


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample chooses centres, so that every kind of pass is made."""
    monkeypatch.setattr(distinct, "EXACT_ROWS", 200)
    monkeypatch.setattr(distinct, "SAMPLE_ROWS", 200)


def kmeans(**parameters: Any) -> KernelKMeans:
    return KernelKMeans(3, rank=8, random_state=0, **parameters)


# Fits whose passes are kept, and the sources they read. One line for each kind of pass and rows.
FITS: dict[str, tuple[Callable[[], Any], Callable[[int, Path], Any]]] = {
    "kernel k-means": (kmeans, lambda seed, folder: _file(seed, folder)),
    "sparse rows": (kmeans, lambda seed, folder: [sparse(seed)]),
    "column blocks": (
        lambda: kmeans(kernel=RBF(0.1, columns="a") + RBF(0.1, columns="b")),
        lambda seed, folder: {"a": BatchSource([sparse(seed)]), "b": BatchSource([table(seed)])},
    ),
    "spectral": (
        lambda: SpectralClustering(3, random_state=0),
        lambda seed, folder: _file(seed, folder),
    ),
    "stream": (
        lambda: StreamingKernelKMeans(
            3, initial_size=100, batch_size=50, max_size=120, random_state=0
        ),
        lambda seed, folder: _file(seed, folder),
    ),
}


def _file(seed: int, folder: Path) -> Path:
    path = folder / f"rows{seed}.npy"
    if not path.exists():
        np.save(path, table(seed))
    return path


def fitted(name: str, folder: Path, *, seed: int = 0, data: Path) -> tuple[Any, Any]:
    """What a fit with a checkpoint knows of its clusters, and the store."""
    make, rows = FITS[name]
    with mercer.checkpoint(folder) as kept:
        model = make().fit(rows(seed, data))
    return model.cluster_weights_, kept


# Forgeries: bytes of the right file, and those of another fit's → bytes that are put in its place


def _resealed(change: Callable[[dict[str, Any], Arrays], Any]) -> Callable[[bytes, bytes], bytes]:
    def forge(data: bytes, other: bytes) -> bytes:
        manifest, arrays = opened(data)
        change(manifest, arrays)
        return sealed(manifest, arrays)

    return forge


def _every_array(change: Callable[[np.ndarray], Any]) -> Callable[[bytes, bytes], bytes]:
    def change_all(manifest: dict[str, Any], arrays: Arrays) -> None:
        for name, array in arrays.items():
            arrays[name] = np.asarray(change(array), order="C")

    return _resealed(change_all)


def _filled(value: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: np.full_like(array, value if array.dtype.kind == "f" else -1)


def _other_type(array: np.ndarray) -> np.ndarray:
    return array.astype({"f": np.int64, "i": np.float64}[array.dtype.kind])


def _flipped(where: float) -> Callable[[bytes, bytes], bytes]:
    def forge(data: bytes, other: bytes) -> bytes:
        place = int(where * (len(data) - 1))
        return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]

    return forge


def _cut(where: float) -> Callable[[bytes, bytes], bytes]:
    return lambda data, other: data[: int(where * len(data))]


FORGERIES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "empty": lambda data, other: b"",
    "a pickle": lambda data, other: pickle.dumps((np.zeros(3), np.zeros(3))),
    "text": lambda data, other: b"hello",
    "of another problem": lambda data, other: other,
    **{
        f"cut at {part}": lambda data, other, p=part: data[: int(p * len(data))]
        for part in (0.3, 0.9)
    },
    **{f"flipped at {part}": _flipped(part) for part in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)},
    "fewer rows": _every_array(lambda a: a[:-1]),
    "more rows": _every_array(lambda a: np.concatenate([a, a])),
    "one more side": _every_array(lambda a: a[None]),
    "flat": _every_array(lambda a: np.r_[a.ravel(), a.ravel()]),
    "no rows": _every_array(lambda a: a[:0]),
    "single": _every_array(lambda a: a.astype(np.float32)),
    "other types": _every_array(_other_type),
    "NaN": _every_array(_filled(np.nan)),
    "infinite": _every_array(_filled(np.inf)),
    "negative": _every_array(_filled(-1e9)),
    "no arrays": _resealed(lambda manifest, arrays: arrays.clear()),
    "one value more": _resealed(lambda m, arrays: m["values"].append(1.0)),
    "one value less": _resealed(lambda m, arrays: m["values"].pop()),
    "no values": _resealed(lambda m, arrays: m.update(values=None)),
    "words": _resealed(lambda m, arrays: (arrays.clear(), m.update(values=["a"] * 3))),
    "values of NaN": _resealed(lambda m, arrays: m.update(values=[np.nan] * len(m["values"]))),
    "another stage": _resealed(lambda m, arrays: m.update(stage="labels ")),
    "another pass": _resealed(lambda m, arrays: m.update({"pass": "0" * 40})),
    "another version": _resealed(lambda m, arrays: m.update(mercer="0.0")),
    "a model": _resealed(lambda m, arrays: m.update(format="mercer-model")),
}


def forged(folder: Path, other: Path) -> Iterator[tuple[str, Path, bytes]]:
    """Every forgery of every pass; what changes nothing that counts is left out."""
    for path in sorted(folder.glob("*.pass")):
        stage = path.name.rpartition("-")[0]
        data, theirs = path.read_bytes(), next(other.glob(f"{stage}-*.pass")).read_bytes()
        for name, forge in FORGERIES.items():
            wrong = forge(data, theirs)
            if not wrong or wrong[:2] != b"PK" or _content(wrong) != _content(data):
                yield f"{name}, {stage}", path, wrong


def _content(data: bytes) -> Any:
    """What a file says, to tell forgeries that say the same: None where it cannot be read."""
    try:
        manifest, arrays = opened(data)
    except Exception:
        return None
    manifest.pop("arrays")
    return manifest, {name: (a.shape, a.dtype, a.tobytes()) for name, a in arrays.items()}


QUICK = ("column blocks",)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FITS]
)
def test_no_forged_checkpoint_gives_another_result(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    here, first = fitted(name, folder, data=tmp_path)
    fitted(name, tmp_path / "other", seed=1, data=tmp_path)
    sound = {path: path.read_bytes() for path in folder.glob("*.pass")}
    n_forged = 0
    for what, path, data in forged(folder, tmp_path / "other"):
        path.write_bytes(data)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found, kept = fitted(name, folder, data=tmp_path)
        told = [str(w.message) for w in caught if "run again" in str(w.message)]
        assert_array_equal(found, here, err_msg=what)
        assert (kept.n_computed, len(told)) == (1, 1), what
        assert kept.n_reused == first.n_computed - 1, what
        assert str(path) in told[0], what
        assert all(issubclass(w.category, MercerWarning) for w in caught), what
        assert _content(path.read_bytes()) == _content(sound[path]), what  # it is repaired
        path.write_bytes(sound[path])
        n_forged += 1
    assert n_forged > 20 * len(sound)


def test_checkpoints_that_change_places_are_noticed(tmp_path: Path) -> None:
    """Two passes of one fit, each under the other's name."""
    folder = tmp_path / "kept"
    here, _ = fitted("kernel k-means", folder, data=tmp_path)
    one, two = sorted(folder.glob("*.pass"))[:2]
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    with pytest.warns(MercerWarning, match="of another pass"):
        found, kept = fitted("kernel k-means", folder, data=tmp_path)
    assert_array_equal(found, here)
    assert kept.n_computed == 2


@pytest.mark.parametrize("kind", ["folder", "nothing", "/dev/zero", "precious"])
def test_what_is_no_file_is_no_checkpoint(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    here, _ = fitted("kernel k-means", folder, data=tmp_path)
    path = sorted(folder.glob("*.pass"))[0]
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        (tmp_path / "precious").write_text("not to be overwritten")
        path.symlink_to(tmp_path / kind)  # an absolute path stays what it is
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        found, kept = fitted("kernel k-means", folder, data=tmp_path)
    assert_array_equal(found, here)
    assert kept.n_computed == 1
    assert kind == "folder" or (tmp_path / "precious").read_text() == "not to be overwritten"


SEEDS: dict[str, bytes] = {
    "empty": b"",
    "numbers": b"[1, 2, 3, 4]",
    "no checksum": b'{"seed": [1, 2, 3, 4]}',
    "another": b'{"seed": [1, 2, 3, 4], "sha256": "0"}',
    "text": b'{"seed": "abcd", "sha256": "0"}',
    "deep": b"[" * 100_000,
    "bytes": b"\xff\xfe",
}


@pytest.mark.parametrize("data", SEEDS.values(), ids=SEEDS.keys())
def test_a_seed_that_was_changed_is_one_clear_error(data: bytes, tmp_path: Path) -> None:
    with mercer.checkpoint(tmp_path / "kept"):
        KernelKMeans(3, rank=8).fit(_file(0, tmp_path))
    (tmp_path / "kept" / "seed.json").write_bytes(data)
    with mercer.checkpoint(tmp_path / "kept"), pytest.raises(ValueError, match="delete the folder"):
        KernelKMeans(3, rank=8).fit(_file(0, tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_new_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    with mercer.checkpoint(tmp_path / "kept"):
        pass
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_what_another_user_wrote_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    here, first = fitted("kernel k-means", folder, data=tmp_path)
    for path in folder.glob("*.pass"):
        os.chown(path, 12345, -1)
    with pytest.warns(MercerWarning, match="another user wrote it"):
        found, kept = fitted("kernel k-means", folder, data=tmp_path)
    assert_array_equal(found, here)
    assert kept.n_computed == first.n_computed
    os.chown(folder, 12345, -1)
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="anyone may write"):
        fitted("kernel k-means", folder, data=tmp_path)
    shutil.rmtree(folder)
