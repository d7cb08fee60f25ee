"""Model files: what is loaded predicts what was saved, and no file does harm or lies."""

from __future__ import annotations

import hashlib
import json
import os
import random
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from mercer import (
    RBF,
    BudgetError,
    Chi2,
    Cosine,
    Exact,
    HistogramIntersection,
    IncompleteCholesky,
    KernelFeatures,
    KernelKMeans,
    Laplacian,
    ModelFileError,
    Nystrom,
    Polynomial,
    RandomFourier,
    SpectralClustering,
)
from mercer._run import atomic
from mercer.datasets import blobs, ring_and_core, rings
from mercer.factors.landmarks import Landmarks
from mercer.io import load, save
from mercer.kernels import FunctionKernel
from mercer.kernels.registry import NAMES

SEEDS = range(10)


def rows(seed: int = 0, n_rows: int = 120, n_features: int = 3, dtype: Any = "f8") -> np.ndarray:
    """Three groups of rows with values ≥ 0, in which every kernel finds something."""
    X, _ = blobs(n_rows, n_features=n_features, n_clusters=3, random_state=seed)
    X = (X - X.min(axis=0) + 0.5).astype(dtype)
    X.flags.writeable = False
    return X


def blocks(seed: int = 0) -> dict[str, Any]:
    X = rows(seed, n_features=6)
    return {"image": X[:, :3], "text": sp.csr_array(np.where(X[:, 3:] > 2, X[:, 3:], 0))}


def ring_of_neighbors(n: int = 60) -> sp.csr_array:
    return sp.csr_array(sum(sp.eye_array(n, k=k) for k in (-n + 1, -1, 0, 1, n - 1)))


def fit(X: Any, **parameters: Any) -> KernelKMeans:
    if "approximation" not in parameters:
        parameters["rank"] = 12
    return KernelKMeans(**{"n_clusters": 3, "random_state": 0, **parameters}).fit(X)


def saved_and_loaded(model: Any, folder: Path) -> Any:
    save(model, folder / "a.model")
    return load(folder / "a.model")


def assert_same(loaded: KernelKMeans, model: KernelKMeans, X: Any) -> None:
    assert type(loaded) is type(model)
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    assert loaded.transform(X).tobytes() == model.transform(X).tobytes()
    assert loaded.score(X) == model.score(X)


KERNELS: list[Any] = [
    *(name for name in NAMES if name != "precomputed"),
    RBF("median"),
    RBF(0.3, columns=slice(1, None)),
    RBF(np.float32(0.3), columns=[0, 2]),
    Laplacian(columns=[0, 1]),
    RBF(columns=np.array([2, 0])),
    RBF(columns=range(2)),
    0.5 * RBF(columns=[0]) + 2 * Cosine(columns=slice(1, 3)),
    Laplacian(0.2) * Polynomial(2, columns=[True, False, True]) * Chi2(columns=[1]),
    RBF() + RBF(0.01) * (Cosine() + HistogramIntersection()),
]


# Laws


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_loading_gives_back_what_was_saved(kernel: Any, tmp_path: Path) -> None:
    X = rows()
    model = fit(X, kernel=kernel)
    assert_same(saved_and_loaded(model, tmp_path), model, X)


@pytest.mark.filterwarnings("ignore:.*rows are farther from every pivot")  # of other blobs
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_loading_gives_back_what_was_saved_for_any_seed_and_type(
    seed: int, dtype: str, tmp_path: Path
) -> None:
    X = rows(seed, dtype=dtype)
    model = fit(X, random_state=seed)
    loaded = saved_and_loaded(model, tmp_path)
    assert_same(loaded, model, X)
    assert_same(loaded, model, rows(seed + 100, dtype=dtype))
    assert loaded.transform(X).dtype == dtype


@pytest.mark.parametrize(
    "approximation",
    [
        "exact",
        Exact("cholesky"),
        IncompleteCholesky(5, pivots="greedy", block=1),
        IncompleteCholesky(np.int64(9), tol=1e-3),
        Nystrom(12),
        Nystrom(12, sampling="kmeans", cutoff=1e-6),
        Nystrom(12, sampling="leverage"),
        RandomFourier(200),
        RandomFourier(201, orthogonal=True),
    ],
    ids=str,
)
def test_loading_gives_back_every_approximation(approximation: Any, tmp_path: Path) -> None:
    X = rows()
    model = fit(X, approximation=approximation)
    loaded = saved_and_loaded(model, tmp_path)
    assert_same(loaded, model, X)
    assert repr(loaded.factor_) == repr(model.factor_)
    assert loaded.factor_.mix.flags.c_contiguous == model.factor_.mix.flags.c_contiguous


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kernel", ["rbf", "cosine", "laplacian"])
def test_loading_gives_back_models_of_sparse_rows(kernel: str, dtype: str, tmp_path: Path) -> None:
    dense = rows(n_features=50, dtype=dtype)
    X = sp.csr_array(np.where(dense > 2, dense, 0))
    model = fit(X, kernel=kernel)
    loaded = saved_and_loaded(model, tmp_path)
    assert_same(loaded, model, X)
    assert_same(loaded, model, X.toarray())


@pytest.mark.parametrize("seed", SEEDS)
def test_loading_gives_back_models_of_column_blocks(seed: int, tmp_path: Path) -> None:
    X = blocks(seed)
    model = fit(X, kernel=0.5 * RBF(columns="image") + Cosine(columns=1))
    assert_same(saved_and_loaded(model, tmp_path), model, X)


FEATURES: dict[str, tuple[Any, dict[str, Any]]] = {
    "cholesky": (rows(), {}),
    "single": (rows(dtype="f4"), {"kernel": "laplacian"}),
    "nystrom": (rows(), {"approximation": "nystrom", "kernel": RBF() * Cosine(columns=[0, 1])}),
    "fourier": (rows(n_features=40), {"approximation": "fourier"}),
    "fourier of columns": (rows(), {"approximation": "fourier", "kernel": RBF(columns=[2, 0])}),
    "fourier of a slice": (
        rows(),
        {"approximation": "fourier", "kernel": Laplacian(columns=slice(1, None))},
    ),
    "fourier of a mask": (
        rows(dtype="f4"),
        {"approximation": "fourier", "kernel": RBF(columns=[True, False, True])},
    ),
    "sparse fourier": (sp.csr_array(rows()), {"approximation": "fourier"}),
    "fourier of a block": (blocks(), {"approximation": "fourier", "kernel": RBF(columns="image")}),
    "precomputed": (RBF(0.05)(rows()), {"kernel": "precomputed"}),
}


@pytest.mark.parametrize("case", FEATURES.values(), ids=FEATURES.keys())
def test_loading_gives_back_features(case: tuple[Any, dict[str, Any]], tmp_path: Path) -> None:
    X, parameters = case
    model = KernelFeatures(rank=13, random_state=0, **parameters).fit(X)
    loaded = saved_and_loaded(model, tmp_path)
    assert type(loaded) is KernelFeatures
    assert loaded.transform(X).tobytes() == model.transform(X).tobytes()
    assert set(vars(loaded)) == set(vars(model))
    assert loaded.report_ == model.report_


def test_loading_gives_back_models_of_many_columns(tmp_path: Path) -> None:
    X = rows(n_features=70)
    model = fit(X)
    assert_same(saved_and_loaded(model, tmp_path), model, X)


@pytest.mark.parametrize("approximation", ["cholesky", "exact"])
def test_loading_gives_back_models_of_a_precomputed_kernel(
    approximation: str, tmp_path: Path
) -> None:
    K = RBF(0.05)(rows())
    model = fit(K, kernel="precomputed", approximation=approximation)
    assert_same(saved_and_loaded(model, tmp_path), model, K[:50])


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_init": 3, "max_iter": 50, "tol": 0.0, "n_jobs": 2},
        {"max_memory": "1GB", "random_state": 3, "gamma": 0.05},
        {"kernel": RBF("scale", columns=slice(None, 2)) + Cosine(), "n_clusters": 2},
        {"approximation": IncompleteCholesky(20, tol=1e-9)},
    ],
)
def test_parameters_come_back(parameters: dict[str, Any], tmp_path: Path) -> None:
    model = fit(rows(), **parameters)
    loaded = saved_and_loaded(model, tmp_path)
    assert repr(loaded) == repr(model)
    assert_same(clone(loaded).fit(rows()), model, rows())


def test_numpy_numbers_come_back_as_numbers(tmp_path: Path) -> None:
    parameters = {"random_state": np.int32(3), "gamma": np.float32(0.1), "verbose": np.False_}
    loaded = saved_and_loaded(fit(rows(), **parameters), tmp_path).get_params()
    for name, kind in (("random_state", int), ("gamma", float), ("verbose", bool)):
        assert type(loaded[name]) is kind
        assert loaded[name] == parameters[name]


@pytest.mark.parametrize(
    "columns", [(0, 1), ("a", "b"), [True, False], slice(1, None, 2), range(5, 0, -2), "text", 1]
)
def test_columns_come_back_as_they_were(columns: Any, tmp_path: Path) -> None:
    model = clone(fitted()).fit(rows()).set_params(kernel=RBF(columns=columns), random_state=None)
    back = saved_and_loaded(model, tmp_path).kernel.columns
    assert (back, type(back)) == (columns, type(columns))


def test_fitted_attributes_and_the_report_come_back_without_labels(tmp_path: Path) -> None:
    model = fit(rows())
    loaded = saved_and_loaded(model, tmp_path)
    assert set(vars(loaded)) == set(vars(model)) - {"labels_", "outlier_scores_", "row_sample_"}
    assert loaded.report_ == model.report_
    assert repr(loaded.kernel_) == repr(model.kernel_)
    assert repr(loaded.factor_.kernel) == repr(model.factor_.kernel)
    for name in ("inertia_", "n_iter_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    with pytest.raises(AttributeError, match="predict"):
        _ = loaded.labels_


def test_feature_names_come_back_and_are_checked(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rows(), columns=["größe", "b\n", "\u2028"])
    loaded = saved_and_loaded(fit(X, kernel=RBF(columns=["b\n", "größe"])), tmp_path)
    assert list(loaded.feature_names_in_) == list(X.columns)
    loaded.predict(X)
    with pytest.raises(ValueError, match="same order"):
        loaded.predict(X[X.columns[::-1]])


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path: Path) -> None:
    for i, model in enumerate([fit(rows()), fit(blocks(), kernel=RBF(columns="image"))]):
        save(model, tmp_path / f"{i}.first")
        save(load(tmp_path / f"{i}.first"), tmp_path / f"{i}.second")
        assert (tmp_path / f"{i}.first").read_bytes() == (tmp_path / f"{i}.second").read_bytes()


def test_saving_changes_nothing(tmp_path: Path) -> None:
    model = fit(rows(), random_state=np.random.RandomState(0))
    before = dict(vars(model))
    save(model, tmp_path / "a.model")
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 0.1, 5e-324, -0.0])
def test_any_float_comes_back(value: float, tmp_path: Path) -> None:
    model = clone(fitted()).fit(rows())
    model.inertia_ = value
    assert repr(saved_and_loaded(model, tmp_path).inertia_) == repr(value)


@pytest.mark.parametrize("stream", [np.random.RandomState, np.random.default_rng])
def test_a_random_stream_is_not_kept(stream: Callable[[int], Any], tmp_path: Path) -> None:
    loaded = saved_and_loaded(fit(rows(), random_state=stream(0)), tmp_path)
    assert loaded.random_state is None


def test_the_method_is_the_function(tmp_path: Path) -> None:
    fitted().save(str(tmp_path / "a.model"))
    assert_same(load(str(tmp_path / "a.model")), fitted(), rows())


# What cannot be saved


class Mine(KernelKMeans):
    pass


class MyKernel(RBF):
    pass


def dot(X: Any, Y: Any) -> Any:
    return np.asarray(X @ Y.T)


@pytest.mark.parametrize(
    "kernel",
    [dot, FunctionKernel(dot), RBF(0.1) + FunctionKernel(dot), MyKernel(0.1)],
    ids=["function", "kernel of a function", "sum with one", "own class"],
)
def test_code_is_not_saved(kernel: Any, tmp_path: Path) -> None:
    model = fit(rows(), kernel=kernel)
    with pytest.raises(TypeError, match=r"kernel.* is .*, a (function|FunctionKernel|MyKernel)"):
        save(model, tmp_path / "a.model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("model", [KMeans(), Mine(), RBF(), object()])
def test_only_estimators_of_mercer_are_saved(model: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="KernelKMeans"):
        save(model, tmp_path / "a.model")


def test_an_estimator_must_be_fitted(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        save(KernelKMeans(), tmp_path / "a.model")


def test_names_that_would_not_load_are_not_saved(tmp_path: Path) -> None:
    model = clone(fitted()).fit(rows())
    model.feature_names_in_ = np.array(["x" * 6_000_000] * 3, dtype=object)
    with pytest.raises(ValueError, match="shorter names"):
        save(model, tmp_path / "a.model")
    assert os.listdir(tmp_path) == []


# Where it is saved


def test_a_path_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(IsADirectoryError, match="directory"):
        save(fitted(), tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        save(fitted(), tmp_path / "nowhere" / "a.model")
    with pytest.raises(NotADirectoryError, match="is a file"):
        save(fitted(), tmp_path / "file" / "a.model")
    with pytest.raises(ValueError, match="device"):
        save(fitted(), os.devnull)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_read_only_folders_and_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.model").write_bytes(b"old")
    (tmp_path / "a.model").chmod(0o400)
    with pytest.raises(PermissionError, match="read-only"):
        save(fitted(), tmp_path / "a.model")
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="not writable"):
        save(fitted(), tmp_path / "b.model")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full"), MemoryError])
@pytest.mark.parametrize("step", ["write", "sync", "rename"])
def test_an_interrupted_save_leaves_the_old_file(
    step: str, error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    save(fitted(), tmp_path / "a.model")
    before = (tmp_path / "a.model").read_bytes()
    places = {
        "write": (zipfile.ZipFile, "writestr"),
        "sync": (atomic.os, "fsync"),
        "rename": (atomic.os, "replace"),
    }
    monkeypatch.setattr(*places[step], fail)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        save(fit(rows(1)), tmp_path / "a.model")
    assert os.listdir(tmp_path) == ["a.model"]
    assert (tmp_path / "a.model").read_bytes() == before


def test_a_file_keeps_its_permissions_and_a_link_its_target(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.model", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    save(fitted(), link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert_same(load(target), fitted(), rows())


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    save(fitted(), tmp_path / "a.model")
    assert (tmp_path / "a.model").stat().st_mode == (tmp_path / "usual").stat().st_mode


# Hostile files


@cache
def fitted() -> KernelKMeans:
    return fit(rows())


@cache
def file_bytes() -> bytes:
    return packed(fitted())


def packed(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "a.model")
        return (Path(folder) / "a.model").read_bytes()


def members(data: bytes | None = None) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(file_bytes() if data is None else data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(contents: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
        archive.comment = seal_of(contents.get("manifest.json", b""))
    return buffer.getvalue()


def seal_of(manifest: bytes) -> bytes:
    return (
        f"sha256 {hashlib.sha256(manifest).hexdigest()}".encode() if b'"seal"' in manifest else b""
    )


def manifest_of(contents: dict[str, bytes]) -> dict[str, Any]:
    return json.loads(contents["manifest.json"])


def with_manifest(change: Callable[[dict[str, Any]], Any], data: bytes | None = None) -> bytes:
    """The file with another manifest: its checksums are right, its word is not."""
    contents = members(data)
    manifest = manifest_of(contents)
    change(manifest)
    return zipped({**contents, "manifest.json": json.dumps(manifest).encode()})


def rehashed(contents: dict[str, bytes], **shapes: list[int]) -> bytes:
    """The file with other members, whose shapes and SHA-256 the manifest tells as they are."""
    manifest = manifest_of(contents)
    for name, entry in manifest["arrays"].items():
        entry["sha256"] = hashlib.sha256(contents[f"{name}.npy"]).hexdigest()
        entry["shape"] = shapes.get(name, entry["shape"])
    return zipped({**contents, "manifest.json": json.dumps(manifest).encode()})


def with_array(name: str, content: bytes, **shapes: list[int]) -> bytes:
    return rehashed({**members(), f"{name}.npy": content}, **shapes)


def npy_bytes(array: Any, *, allow_pickle: bool = False) -> bytes:
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def refuse(data: bytes, folder: Path, match: str = ".", **options: Any) -> None:
    """Loading raises ModelFileError: one line that names the file."""
    path = folder / "hostile.model"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 600 + len(str(path))


def refused_or_same(data: bytes, path: Path) -> bool:
    path.write_bytes(data)
    try:
        loaded = load(path)
    except ModelFileError:
        return True
    assert_same(loaded, fitted(), rows())
    return False


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    data = file_bytes()
    lengths = {*range(100), *range(0, len(data), 97), *range(len(data) - 100, len(data))}
    for length in sorted(lengths):
        refuse(data[:length], tmp_path)


def test_no_flipped_bit_gives_another_answer(tmp_path: Path) -> None:
    data, draw = file_bytes(), random.Random(0)
    bits = draw.sample(range(8 * len(data)), 400)
    tail = range(8 * (len(data) - 22), 8 * len(data))  # the end record, of which all else depends
    n_refused = 0
    for bit in [*bits, *tail]:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        n_refused += refused_or_same(bytes(flipped), tmp_path / "flipped.model")
    assert n_refused > 300


@pytest.mark.parametrize("seed", SEEDS)
def test_no_overwritten_stretch_gives_another_answer(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        data = bytearray(file_bytes())
        start, length = draw.randrange(len(data)), draw.randrange(1, 64)
        data[start : start + length] = draw.randbytes(len(data[start : start + length]))
        refused_or_same(bytes(data), tmp_path / "overwritten.model")


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "empty"),
        (b"\x80\x04\x95 a pickle", "begins with"),
        (b"PK\x03\x04 and no more", "cut short"),
        (npy_bytes(np.zeros(3)), "begins with"),
        (zipped({"word/document.xml": b"<xml/>"}), "without manifest.json"),
        (zipped({"manifest.json": b"{}"}), "format None"),
        (zipped({"manifest.json": b'{"format": "other"}'}), "format 'other'"),
        (zipped({"manifest.json": b"not json"}), "not JSON"),
        (zipped({"manifest.json": b"\xff\xfe\x00"}), "not JSON"),
        (zipped({"manifest.json": b"[]"}), "not a JSON object"),
        (zipped({"manifest.json": b"[" * 100_000}), "not JSON"),
        (zipped({"manifest.json": b"9" * 10_000}), "not JSON"),
        (zipped({"manifest.json": b" " * 16_000_001}), "manifest has 16 MB"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_foreign_files_are_refused(data: bytes, match: str, tmp_path: Path) -> None:
    refuse(data, tmp_path, match)


def test_paths_without_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        load(tmp_path / "none.model")
    with pytest.raises(ModelFileError, match="not a file"):
        load(tmp_path)


def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    newer = with_manifest(lambda m: m.update(version=2, mercer="9.9", arrays=None))
    refuse(newer, tmp_path, r"version 2, written by Mercer '9.9'.*upgrade Mercer")
    for version in (0, -1, "1", 1.0, True, None):
        refuse(with_manifest(lambda m, v=version: m.update(version=v)), tmp_path, "version")


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/evil.npy", "extra.npy", "a\\b.npy", "dir/"])
def test_unknown_members_are_refused(name: str, tmp_path: Path) -> None:
    refuse(zipped({**members(), name: npy_bytes(np.zeros(3))}), tmp_path, "unknown member")
    assert os.listdir(tmp_path) == ["hostile.model"]


@pytest.mark.parametrize("name", ["../evil", "/evil", "", "a b", "a" * 300, "a\nb"])
def test_odd_names_of_arrays_are_refused(name: str, tmp_path: Path) -> None:
    entry = {"shape": [3], "dtype": "float64", "sha256": "0" * 64}
    refuse(with_manifest(lambda m: m["arrays"].update({name: entry})), tmp_path, "name")


@pytest.mark.parametrize("name", sorted(set(members())))
def test_every_member_is_needed(name: str, tmp_path: Path) -> None:
    contents = members()
    del contents[name]
    refuse(zipped(contents), tmp_path, "lacks member|without manifest.json")


@pytest.mark.parametrize("value", ["approximate", None, ["exact"], {}])
def test_a_retired_parameter_loads_only_with_values_that_changed_nothing(
    value: Any, tmp_path: Path
) -> None:
    data = (Path(__file__).parents[1] / "models" / "streaming.mercer").read_bytes()
    assert manifest_of(members(data))["parameters"]["search"] == "exact"
    changed = with_manifest(lambda m: m["parameters"].update(search=value), data)
    refuse(changed, tmp_path, "search=.* is no longer supported")


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    buffer = BytesIO(file_bytes())
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("cluster_centers_.npy", b"other")
    refuse(buffer.getvalue(), tmp_path, "two members")


def resealed(data: bytes, comment: bytes) -> bytes:
    buffer = BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = comment
    return buffer.getvalue()


@pytest.mark.parametrize("comment", [b"", b"sha256", b"sha256 " + b"0" * 64, b"hello"])
def test_the_manifest_is_sealed(comment: bytes, tmp_path: Path) -> None:
    """The zip's CRC of 32 bits is right in each of these files; the SHA-256 is not there."""
    refuse(resealed(file_bytes(), comment), tmp_path, "manifest is not what was saved")


def test_a_manifest_without_its_seal_is_refused(tmp_path: Path) -> None:
    contents = members()
    text = contents["manifest.json"].replace(b'"seal": "sha256",', b" " * 17)
    unsealed = zipped({**contents, "manifest.json": text})
    refuse(resealed(unsealed, seal_of(contents["manifest.json"])), tmp_path, "manifest is not")
    (tmp_path / "old.model").write_bytes(unsealed)  # as files were before there was a seal
    assert_same(load(tmp_path / "old.model"), fitted(), rows())


def test_compressed_members_are_refused(tmp_path: Path) -> None:
    refuse(zipped(members(), zipfile.ZIP_DEFLATED), tmp_path, "compressed")


def test_members_that_share_bytes_are_refused(tmp_path: Path) -> None:
    """One member under many names would take more memory than the file has bytes."""
    content = npy_bytes(np.zeros(5000))
    contents = {**members(), "a0.npy": content, **{f"a{i}.npy": b"" for i in range(1, 4)}}
    manifest = manifest_of(contents)
    entry = {"shape": [5000], "dtype": "float64", "sha256": "0" * 64}
    manifest["arrays"].update({f"a{i}": entry for i in range(4)})
    buffer, text = BytesIO(), json.dumps(manifest).encode()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in {**contents, "manifest.json": text}.items():
            archive.writestr(name, data)
        archive.comment = seal_of(text)
        shared = archive.getinfo("a0.npy")
        for i in range(1, 4):
            info = archive.getinfo(f"a{i}.npy")
            info.header_offset, info.CRC = shared.header_offset, shared.CRC
            info.file_size = info.compress_size = shared.file_size
    refuse(buffer.getvalue(), tmp_path, "share bytes")


@pytest.mark.parametrize("shape", [[2**40, 12], [2**61, 2**61], [10**400], [3] * 100, [1] * 5])
def test_a_declared_size_is_not_believed(shape: list[int], tmp_path: Path) -> None:
    declare = lambda m: m["arrays"]["cluster_centers_"].update(shape=shape)
    refuse(with_manifest(declare), tmp_path, "cluster_centers_")


def test_a_size_declared_by_a_member_is_not_believed(tmp_path: Path) -> None:
    honest = members()["cluster_centers_.npy"]
    bomb = honest.replace(b"(3, 12), }         ", b"(99999999999, 12),}")
    assert len(bomb) == len(honest)
    refuse(with_array("cluster_centers_", bomb), tmp_path, r"shape \(99999999999, 12\)")


def test_memory_is_asked_for_before_it_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.model").write_bytes(file_bytes())
    with pytest.raises(BudgetError, match="max_memory"):
        load(tmp_path / "a.model", max_memory=1000)
    assert_same(load(tmp_path / "a.model", max_memory="10MB"), fitted(), rows())


class Boom:
    def __reduce__(self) -> Any:
        return pytest.fail, ("a pickle was run",)


def test_pickles_are_not_run(tmp_path: Path) -> None:
    n_bytes = len(members()["cluster_centers_.npy"])
    content = npy_bytes(np.array([[Boom()]], dtype=object), allow_pickle=True)
    content += b" " * (n_bytes - len(content))
    refuse(with_array("cluster_centers_", content), tmp_path, "object")


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 12), "f4"),
        np.zeros((3, 12), ">f4"),
        np.zeros((3, 12), "i8"),
        np.zeros((3, 12), "c8"),
        np.zeros((3, 12), "M8[s]"),
        np.zeros((12, 3)),
        np.zeros(36),
        np.zeros((3, 12), [("a", "f8")]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_members_must_be_what_the_manifest_says(array: np.ndarray, tmp_path: Path) -> None:
    refuse(with_array("cluster_centers_", npy_bytes(array)), tmp_path, "cluster_centers_")


def test_any_header_of_a_member_is_refused_or_predicts(tmp_path: Path) -> None:
    honest, draw = members()["factor_.mix.npy"], random.Random(0)
    for _ in range(300):
        content = bytearray(honest)
        content[draw.randrange(128)] = draw.randrange(256)
        (tmp_path / "a.model").write_bytes(with_array("factor_.mix", bytes(content)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # numpy's, about headers of Python 2
                loaded = load(tmp_path / "a.model")
        except ModelFileError:
            continue
        assert_same(loaded, fitted(), rows())


def test_big_endian_members_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.model"
    path.write_bytes(with_array("cluster_centers_", npy_bytes(fitted().cluster_centers_ * 1.0)))
    assert_same(load(path), fitted(), rows())
    big = fitted().cluster_centers_.astype(">f8")
    path.write_bytes(with_array("cluster_centers_", npy_bytes(big)))
    assert_same(load(path), fitted(), rows())


@pytest.mark.parametrize(
    "name",
    [
        "cluster_centers_",
        "cluster_weights_",
        "factor_.mix",
        "factor_.pivots",
        "factor_.format.shift",
    ],
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_arrays_must_be_finite(name: str, value: float, tmp_path: Path) -> None:
    array = np.load(BytesIO(members()[f"{name}.npy"]))
    array.flat[-1] = value
    refuse(with_array(name, npy_bytes(array)), tmp_path, f"{name.rpartition('.')[2]}.* finite")


@pytest.mark.parametrize(
    ("name", "shape", "match"),
    [
        ("cluster_centers_", (3, 11), r"\(3, 11\), but should be \(k, r\) float with r = 12"),
        ("cluster_centers_", (0, 12), "cluster_centers_"),
        ("cluster_centers_", (12,), "cluster_centers_"),
        ("cluster_weights_", (4,), "weights"),
        ("factor_.mix", (11, 12), r"mix .*\(11, 12\).* with m = 12"),
        ("factor_.mix", (12, 0), "mix"),
        ("factor_.pivots", (12, 4), "columns"),
        ("factor_.pivots", (11, 3), "pivot_ids .* with m = 11"),
        ("factor_.pivots", (12,), "pivots"),
        ("factor_.pivot_ids", (11,), "pivot_ids .* with m = 12"),
        ("factor_.format.shift", (2,), "shift"),
        ("factor_.format.shift", (1, 3), "shift"),
    ],
)
def test_shapes_must_belong_together(
    name: str, shape: tuple[int, ...], match: str, tmp_path: Path
) -> None:
    array = np.ones(shape, np.load(BytesIO(members()[f"{name}.npy"])).dtype)
    refuse(with_array(name, npy_bytes(array), **{name: list(shape)}), tmp_path, match)


Change = Callable[[dict[str, Any]], Any]
CHANGES: dict[str, Change] = {
    "class unknown": lambda m: m.update({"class": "SpectralKMeans"}),
    "class of another package": lambda m: m.update({"class": "subprocess.Popen"}),
    "class no text": lambda m: m.update({"class": ["KernelKMeans"]}),
    "kernel unknown": lambda m: m["fitted"]["kernel_"].update({"class": "FunctionKernel"}),
    "kernel of another sort": lambda m: m["fitted"]["kernel_"].update({"class": "Exact"}),
    "kernel parameter unknown": lambda m: m["fitted"]["kernel_"]["params"].update(power=2),
    "kernel parameter wrong": lambda m: m["fitted"]["kernel_"]["params"].update(gamma=-1),
    "kernel unresolved": lambda m: m["fitted"]["kernel_"]["params"].update(gamma="auto"),
    "kernel columns beyond": lambda m: m["fitted"]["kernel_"]["params"].update(columns=[3]),
    "kernel columns no numbers": lambda m: m["fitted"]["kernel_"]["params"].update(columns=[0.0]),
    "kernel columns too many": lambda m: m["fitted"]["kernel_"]["params"].update(
        columns={"range": [0, 10**15, 1]}
    ),
    "kernel of no kernels": lambda m: m["parameters"].update(
        kernel={"class": "Sum", "params": {"kernels": [1]}}
    ),
    "kernel columns a block": lambda m: m["fitted"]["kernel_"]["params"].update(columns="a"),
    "kernel gone": lambda m: m["fitted"].pop("kernel_"),
    "factor unknown": lambda m: m["fitted"]["factor_"].update({"class": "Report"}),
    "factor a kernel": lambda m: m["fitted"].update(factor_=m["fitted"]["kernel_"]),
    "factor without kernel": lambda m: m["fitted"]["factor_"]["fields"].pop("kernel"),
    "factor field unknown": lambda m: m["fitted"]["factor_"]["fields"].update(evil=1),
    "array unknown": lambda m: m["fitted"].update(cluster_centers_={"array": "nothing"}),
    "attribute unknown": lambda m: m["fitted"].update(predict=1),
    "attribute of a wrong type": lambda m: m["fitted"].update(n_iter_=1.5),
    "features negative": lambda m: m["fitted"].update(n_features_in_=-3),
    "features more": lambda m: m["fitted"].update(n_features_in_=4),
    "names too few": lambda m: m["fitted"].update(feature_names_in_={"names": ["a"]}),
    "names no text": lambda m: m["fitted"].update(feature_names_in_={"names": [1, 2, 3]}),
    "parameter unknown": lambda m: m["parameters"].update(evil=1),
    "parameter wrong": lambda m: m["parameters"].update(n_clusters=-1),
    "memory wrong": lambda m: m["parameters"].update(max_memory="much"),
    "report wrong": lambda m: m["report"].update(n_rows="many"),
    "report without rows": lambda m: m["report"].pop("n_rows"),
    "report a list": lambda m: m.update(report=[1]),
    "type unknown": lambda m: m["arrays"]["factor_.mix"].update(dtype="object"),
    "sha gone": lambda m: m["arrays"]["factor_.mix"].pop("sha256"),
    "sha wrong": lambda m: m["arrays"]["factor_.mix"].update(sha256="0" * 64),
    "nested": lambda m: m["parameters"].update(kernel=nested(400)),
}


def nested(depth: int) -> Any:
    tree: Any = {"class": "RBF", "params": {}}
    for _ in range(depth):
        tree = {"class": "Scaled", "params": {"factor": 1.0, "kernel": tree}}
    return tree


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_manifests_that_make_no_sense_are_refused(change: Change, tmp_path: Path) -> None:
    refuse(with_manifest(change), tmp_path)


def with_fields(model: Any, **fields: Any) -> bytes:
    """The file of a model with other fields of its factor."""
    contents = members(packed(model))
    manifest = manifest_of(contents)
    manifest["fitted"]["factor_"]["fields"].update(fields)
    return zipped({**contents, "manifest.json": json.dumps(manifest).encode()})


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"rank": 14}, "rank"),
        ({"rank": 10}, "rank"),
        ({"rank": 13.0}, "rank"),
        ({"rank": True}, "rank"),
        ({"phases": {"array": "factor_.waves"}}, "phases"),
        ({"waves": {"array": "factor_.phases"}}, "waves"),
        ({"waves": None}, "waves"),
        ({"format": None}, "format"),
        ({"kernel": None}, "kernel"),
        ({"kernel": {"class": "RBF", "params": {"columns": [0]}}}, "looks at 1"),
        ({"kernel": {"class": "RBF", "params": {"columns": "a"}}}, "looks at 0"),
        ({"kernel_error": "small"}, "kernel_error"),
    ],
    ids=str,
)
def test_waves_must_belong_together(fields: dict[str, Any], match: str, tmp_path: Path) -> None:
    model = KernelFeatures(approximation="fourier", rank=11, random_state=0).fit(rows())
    refuse(with_fields(model, **fields), tmp_path, match)


@pytest.mark.parametrize("column", [np.nan, np.inf, 1e300, 10**30, 5, -6, [0], None, "a"])
def test_columns_that_crash_scipy_are_refused(column: Any, tmp_path: Path) -> None:
    dense = rows(n_features=5)
    model = fit(sp.csr_array(np.where(dense > 2, dense, 0)), kernel=Cosine(columns=[0, 1]))
    contents = members(packed(model))
    manifest = manifest_of(contents)
    manifest["fitted"]["kernel_"]["params"]["columns"][1] = column
    contents["manifest.json"] = json.dumps(manifest).encode()
    refuse(zipped(contents), tmp_path, "columns")


def test_sparse_tables_with_indices_beyond_are_refused(tmp_path: Path) -> None:
    dense = rows(n_features=5)
    data = packed(fit(sp.csr_array(np.where(dense > 2, dense, 0)), kernel="cosine"))
    for name in ("indices", "indptr"):
        for value in (-1, 5, 10**6):
            contents = members(data)
            member = f"factor_.pivots.{name}.npy"
            array = np.load(BytesIO(contents[member]))
            array[-1] = value
            contents[member] = npy_bytes(array)
            refuse(rehashed(contents), tmp_path, "sparse matrix")


# Spectral models


def spectral(X: Any, **parameters: Any) -> SpectralClustering:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gaps that are not clear
        return SpectralClustering(**{"n_clusters": 3, "random_state": 0, **parameters}).fit(X)


def sparse_rows() -> Any:
    dense = rows(n_features=80)
    return sp.csr_array(np.where(dense > 8, dense, 0))


SPECTRAL: dict[str, tuple[Any, dict[str, Any]]] = {
    "plane": (rings(1500, random_state=0)[0], {}),
    "line": (rows(n_features=1), {}),
    "space": (rows(n_rows=1200), {"rank": 100}),
    "single": (rings(1500, random_state=0, dtype="f4")[0], {}),
    "ten columns": (rows(n_features=10), {"rank": 30}),
    "many columns": (rows(n_features=70), {"rank": 30}),
    "sparse": (sparse_rows(), {}),
    "few landmarks": (rows(), {"rank": 5}),
    "gamma": (rows(), {"kernel": RBF(0.1)}),
    "rank weights": (rows(), {"approximation": Landmarks(60, weights="rank", n_neighbors=20)}),
    "ensemble": (rings(1500, random_state=0)[0], {"ensemble": 5, "rank": 200}),
    "ensemble, single": (rows(n_features=10, dtype="f4"), {"ensemble": 2}),
    "auto": (rows(), {"n_clusters": "auto"}),
    "one cluster": (rows(), {"n_clusters": 1}),
    "one cluster of an ensemble": (rows(), {"n_clusters": 1, "ensemble": 3}),
    "cluster_qr": (rows(), {"assign_labels": "cluster_qr"}),
    "cholesky": (rows(dtype="f4"), {"approximation": "cholesky", "rank": 20}),
    "nystrom": (rows(), {"approximation": Nystrom(20), "kernel": Laplacian(columns=[0, 2])}),
    "fourier": (rows(), {"approximation": "fourier"}),
    "exact": (rows(), {"approximation": "exact"}),
    "precomputed": (RBF(0.05)(rows()), {"approximation": "exact", "kernel": "precomputed"}),
    "neighbors": (rows(n_features=10, dtype="f4"), {"approximation": "neighbors"}),
    "a graph": (RBF(0.05)(rows()), {"kernel": "precomputed"}),
    "a sparse graph": (ring_of_neighbors(), {"kernel": "precomputed"}),
    "blocks": (blocks(), {"approximation": "cholesky", "kernel": RBF(columns="image")}),
}


@pytest.mark.parametrize("case", SPECTRAL.values(), ids=SPECTRAL.keys())
def test_loading_gives_back_spectral_models(
    case: tuple[Any, dict[str, Any]], tmp_path: Path
) -> None:
    X, parameters = case
    model = spectral(X, **parameters)
    loaded = saved_and_loaded(model, tmp_path)
    assert loaded.predict(X).tobytes() == model.labels_.tobytes()
    assert loaded.transform(X).tobytes() == model.transform(X).tobytes()
    unstored = {"labels_", "outlier_scores_", "row_sample_", "graph_", "spectrum_", "seed_"}
    assert set(vars(loaded)) == set(vars(model)) - unstored
    assert repr(loaded) == repr(model)
    assert loaded.report_ == model.report_
    assert loaded.n_clusters_ranking_ == model.n_clusters_ranking_
    for name in ("eigenvalues_", "cluster_weights_"):
        assert getattr(loaded, name).tobytes() == getattr(model, name).tobytes()
    save(loaded, tmp_path / "second.model")
    assert (tmp_path / "second.model").read_bytes() == (tmp_path / "a.model").read_bytes()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ensemble", [None, 4])
def test_loading_gives_back_spectral_models_for_any_seed(
    seed: int, ensemble: int | None, tmp_path: Path
) -> None:
    X, _ = rings(1200, random_state=seed)
    model = spectral(X, random_state=seed, ensemble=ensemble, rank=150)
    loaded = saved_and_loaded(model, tmp_path)
    X_new = 3 * np.random.default_rng(seed).normal(size=(500, 2))  # in and out of the grid
    assert loaded.predict(X_new).tobytes() == model.predict(X_new).tobytes()
    assert loaded.transform(X_new).tobytes() == model.transform(X_new).tobytes()
    assert loaded.memberships(X_new).tobytes() == model.memberships(X_new).tobytes()


def test_a_grid_is_made_again_and_is_not_in_the_file() -> None:
    model = spectral(rings(1500, random_state=0)[0])
    arrays = manifest_of(members(packed(model)))["arrays"]
    named = {name.rpartition(".")[2] for name in arrays if name.startswith("factor_.search")}
    assert named == {"landmarks", "low", "step", "shape"}
    with tempfile.TemporaryDirectory() as folder:
        grid = saved_and_loaded(model, Path(folder)).factor_.search.grid
    for mine, theirs in zip(grid, model.factor_.search.grid, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_grid_with_endless_lists_is_not_made(tmp_path: Path) -> None:
    """A million landmarks in one point would be in the list of every cell."""
    contents, p = members(spectral_bytes()), 10**6
    contents["factor_.search.landmarks.npy"] = npy_bytes(np.zeros((p, 2)))
    contents["vectors_.npy"] = npy_bytes(np.ones((p, 3)))
    shapes = {"factor_.search.landmarks": [p, 2], "vectors_": [p, 3]}
    (tmp_path / "a.model").write_bytes(rehashed(contents, **shapes))
    assert load(tmp_path / "a.model").factor_.search.grid is None


@cache
def spectral_model(ensemble: int | None = None) -> SpectralClustering:
    """Landmarks that are found by a grid, which takes more rows otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercer.factors.search.FEW_PAIRS", 0)
        return spectral(rings(1500, random_state=0)[0], rank=60, ensemble=ensemble)


@cache
def spectral_bytes(ensemble: int | None = None) -> bytes:
    return packed(spectral_model(ensemble))


@pytest.mark.parametrize("ensemble", [None, 3])
def test_no_flipped_bit_gives_other_spectral_labels(ensemble: int | None, tmp_path: Path) -> None:
    model, data, draw = spectral_model(ensemble), spectral_bytes(ensemble), random.Random(0)
    X, _ = rings(300, random_state=1)
    labels, n_refused = model.predict(X), 0
    for bit in draw.sample(range(8 * len(data)), 200):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        (tmp_path / "flipped.model").write_bytes(bytes(flipped))
        try:
            loaded = load(tmp_path / "flipped.model")
        except ModelFileError:
            n_refused += 1
            continue
        assert loaded.predict(X).tobytes() == labels.tobytes()
    assert n_refused > 150


def changed(name: str, change: Callable[[np.ndarray], Any], ensemble: int | None) -> bytes:
    """The file with another array, whose shape and SHA-256 the manifest tells as they are."""
    contents = members(spectral_bytes(ensemble))
    array = np.load(BytesIO(contents[f"{name}.npy"]))
    array = np.asarray(change(array), order="C")
    contents[f"{name}.npy"] = npy_bytes(array)
    return rehashed(contents, **{name: list(array.shape)})


def put(place: Any, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The array with another value at one place."""

    def change(array: np.ndarray) -> np.ndarray:
        array[place] = value
        return array

    return change


GRAPH, BASES = "factor_.search", "consensus_.bases"


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("vectors_", lambda a: a[:-1], "vectors"),
        ("vectors_", lambda a: a[:, :-1], "directions"),
        ("vectors_", put((0, 0), np.nan), "vectors"),
        ("directions_", lambda a: a[:, :-1], "directions"),
        ("directions_", lambda a: a[:-1], "cluster_weights_ .* with k = 2"),
        ("directions_", lambda a: a[:0], "directions"),
        ("directions_", np.ravel, "directions"),
        ("cluster_weights_", lambda a: a[:-1], "cluster_weights_ .* with k = 3"),
        ("eigenvalues_", lambda a: a[None], "eigenvalues"),
        ("factor_.format.shift", lambda a: a[:-1], "shift"),
        (f"{GRAPH}.landmarks", lambda a: a[:-1], "vectors"),
        (f"{GRAPH}.landmarks", lambda a: a[:4], "vectors|neighbours|answers"),
        (f"{GRAPH}.landmarks", lambda a: a[:, :-1], "low .* with q = 1"),
        (f"{GRAPH}.landmarks", lambda a: np.hstack([a, a]), "low .* with q = 4"),
        (f"{GRAPH}.landmarks", lambda a: a[:0], "landmarks"),
        (f"{GRAPH}.landmarks", put((0, 0), np.inf), "landmarks"),
        (f"{GRAPH}.landmarks", put((0, 0), 1e200), "landmarks"),
        (f"{GRAPH}.low", lambda a: a[:-1], "low .* with q = 2"),
        (f"{GRAPH}.low", put(0, np.nan), "low should be in"),
        (f"{GRAPH}.step", lambda a: a[:-1], "step .* with q = 2"),
        (f"{GRAPH}.step", put(0, 0.0), "step should be > 0"),
        (f"{GRAPH}.step", put(0, -1.0), "step should be > 0"),
        (f"{GRAPH}.shape", lambda a: a[:-1], "shape"),
        (f"{GRAPH}.shape", put(0, 0), "shape"),
        (f"{GRAPH}.shape", put(0, -8), "shape"),
        (f"{GRAPH}.shape", put(0, 9), "shape"),
        (f"{GRAPH}.shape", put(2, 2), "shape"),
        (f"{GRAPH}.shape", put(0, 8 * 2**40), "shape"),
    ],
)
def test_landmark_graphs_must_belong_together(
    name: str, change: Callable[[np.ndarray], Any], match: str, tmp_path: Path
) -> None:
    refuse(changed(name, change, None), tmp_path, match)


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        (f"{BASES}.own", put((0, 0), -1), "base cluster"),
        (f"{BASES}.own", put((-1, -1), 10**6), "base cluster"),
        (f"{BASES}.own", lambda a: a[::-1], "base cluster"),
        (f"{BASES}.own", lambda a: a[:, :-1], "own .* with p = 60"),
        (f"{BASES}.own", lambda a: a[:-1], "offsets"),
        (f"{BASES}.own", lambda a: a[:0], "own"),
        (f"{BASES}.offsets", put(0, -1), "offsets"),
        (f"{BASES}.offsets", put(-1, 10**6), "offsets"),
        (f"{BASES}.offsets", put(1, 0), "offsets"),
        (f"{BASES}.offsets", lambda a: a[::-1], "offsets"),
        (f"{BASES}.offsets", lambda a: a[:-1], "offsets"),
        (f"{BASES}.scores", lambda a: a[:-1], "own .* with p = 59"),
        (f"{BASES}.scores", lambda a: a[:, :-1], "offsets"),
        (f"{BASES}.scores", put((0, 0), np.inf), "scores"),
        ("consensus_.vectors", lambda a: a[:-1], "vectors .* with t = 14"),
        ("consensus_.vectors", lambda a: a[:, :-1], "directions"),
        ("consensus_.directions", lambda a: a[:, :-1], "directions"),
        ("consensus_.directions", lambda a: a[:-1], "cluster_weights_ .* with k = 2"),
        ("consensus_.values", lambda a: a[None], "Consensus.values"),
        (f"{GRAPH}.landmarks", lambda a: a[:-1], "consensus_ has size r = 60, not 59"),
    ],
)
def test_a_consensus_must_belong_together(
    name: str, change: Callable[[np.ndarray], Any], match: str, tmp_path: Path
) -> None:
    refuse(changed(name, change, 3), tmp_path, match)


def fields_of(manifest: dict[str, Any], name: str = "factor_") -> dict[str, Any]:
    return manifest["fitted"][name]["fields"]


SPECTRAL_CHANGES: dict[str, Change] = {
    "no neighbours": lambda m: fields_of(m).update(n_neighbors=0),
    "too many neighbours": lambda m: fields_of(m).update(n_neighbors=61),
    "neighbours no number": lambda m: fields_of(m).update(n_neighbors=5.0),
    "gamma zero": lambda m: fields_of(m).update(gamma=0.0),
    "gamma infinite": lambda m: fields_of(m).update(gamma=np.inf),
    "gamma not a number": lambda m: fields_of(m).update(gamma=np.nan),
    "gamma another": lambda m: fields_of(m).update(gamma=2.0),
    "weighting unknown": lambda m: fields_of(m).update(weighting="none"),
    "projection of another shape": lambda m: fields_of(m).update(projection={"array": "vectors_"}),
    "landmarks gone": lambda m: fields_of(m).update(search=None),
    "format gone": lambda m: fields_of(m).update(format=None),
    "edges": lambda m: fields_of(m).update(training_edges=1),
    "corner gone": lambda m: fields_of(m)["search"]["fields"].update(low=None),
    "cells gone": lambda m: fields_of(m)["search"]["fields"].update(step=None),
    "shape gone": lambda m: fields_of(m)["search"]["fields"].update(shape=None),
    "grid for none": lambda m: fields_of(m)["search"]["fields"].update(grid_neighbors=0),
    "grid for more": lambda m: fields_of(m)["search"]["fields"].update(grid_neighbors=61),
    "a grid": lambda m: fields_of(m)["search"]["fields"].update(grid=None),
    "kernel another": lambda m: m["fitted"].update(kernel_={"class": "Cosine", "params": {}}),
    "vectors gone": lambda m: m["fitted"].update(vectors_=None),
    "directions gone": lambda m: m["fitted"].update(directions_=None),
    "ranking no pairs": lambda m: m["fitted"].update(n_clusters_ranking_=[1, 2]),
    "ranking of texts": lambda m: m["fitted"].update(n_clusters_ranking_=[{"tuple": ["2", 0.5]}]),
    "clusters more": lambda m: m["fitted"].update(n_clusters_=4),
    "features more": lambda m: m["fitted"].update(n_features_in_=3),
    "report wrong": lambda m: m["report"].update(eigenvalues=["one"]),
    "another estimator": lambda m: m.update({"class": "KernelFeatures"}),
}


@pytest.mark.parametrize("change", SPECTRAL_CHANGES.values(), ids=SPECTRAL_CHANGES.keys())
def test_spectral_manifests_that_make_no_sense_are_refused(change: Change, tmp_path: Path) -> None:
    refuse(with_manifest(change, spectral_bytes()), tmp_path)


ENSEMBLE_CHANGES: dict[str, Change] = {
    "bases gone": lambda m: fields_of(m, "consensus_").update(bases=None),
    "vectors gone": lambda m: fields_of(m, "consensus_").update(vectors=None),
    "sweeps no number": lambda m: fields_of(m, "consensus_").update(n_iter=None),
    "vectors twice": lambda m: m["fitted"].update(vectors_={"array": "consensus_.vectors"}),
    "consensus gone": lambda m: m["fitted"].update(consensus_=None),
    "consensus a graph": lambda m: m["fitted"].update(consensus_=m["fitted"]["factor_"]),
}


@pytest.mark.parametrize("change", ENSEMBLE_CHANGES.values(), ids=ENSEMBLE_CHANGES.keys())
def test_ensembles_that_make_no_sense_are_refused(change: Change, tmp_path: Path) -> None:
    refuse(with_manifest(change, spectral_bytes(3)), tmp_path)


def test_a_consensus_needs_landmarks(tmp_path: Path) -> None:
    """One that is sound by itself, beside a factor it does not belong to."""
    model = spectral(rows(), approximation="landmarks", ensemble=3)
    other = spectral(rows(), approximation="exact")
    model.kernel_, model.factor_ = other.kernel_, other.factor_
    refuse(packed(model), tmp_path, "not those of the landmarks")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
WORDS = ["class", "params", "fields", "array", "tuple", "slice", "csr", "same", "names", "dtype"]
TREES = st.recursive(
    SCALARS | st.sampled_from(["kernel_", "RBF", "Sum", "RowFormat", "float64", "factor_.mix"]),
    lambda tree: (
        st.lists(tree, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), tree, max_size=3)
    ),
    max_leaves=6,
)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every entry of a tree: what holds it, and the key or number under which it does."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    found = [(tree, key) for key in keys]
    for key in keys:
        if isinstance(tree[key], dict | list):
            found += places(tree[key])
    return found


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), tree=TREES, remove=st.booleans())
def test_any_manifest_is_refused_or_predicts(
    place: int, tree: Any, remove: bool, tmp_path: Path
) -> None:
    def change(manifest: dict[str, Any]) -> None:
        every = places(manifest)
        holder, key = every[place % len(every)]
        if remove:
            del holder[key]
        else:
            holder[key] = tree

    (tmp_path / "fuzzed.model").write_bytes(with_manifest(change))
    try:
        loaded = load(tmp_path / "fuzzed.model")
    except ModelFileError:
        return
    loaded.set_params(n_jobs=None, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = loaded.predict(rows())
    assert labels.shape == (120,)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.integers(0, 10**6),
    tree=TREES,
    remove=st.booleans(),
    ensemble=st.sampled_from([None, 3]),
)
def test_any_spectral_manifest_is_refused_or_predicts(
    place: int, tree: Any, remove: bool, ensemble: int | None, tmp_path: Path
) -> None:
    def change(manifest: dict[str, Any]) -> None:
        every = places(manifest)
        holder, key = every[place % len(every)]
        if remove:
            del holder[key]
        else:
            holder[key] = tree

    (tmp_path / "fuzzed.model").write_bytes(with_manifest(change, spectral_bytes(ensemble)))
    try:
        loaded = load(tmp_path / "fuzzed.model")
    except ModelFileError:
        return
    loaded.set_params(n_jobs=None, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = loaded.predict(rings(200, random_state=1)[0])
    assert labels.shape == (200,)
    assert labels.max() < loaded.n_clusters_


def test_a_model_of_rings_is_small(tmp_path: Path) -> None:
    """1,000 rows in, 12 pivots out: the file does not grow with the rows."""
    X, _ = ring_and_core(1000, random_state=0)
    save(KernelKMeans(2, rank=12, random_state=0).fit(X), tmp_path / "a.model")
    assert (tmp_path / "a.model").stat().st_size < 10_000


@pytest.mark.parametrize("approximation", ["cholesky", "binning"])
def test_formats_that_do_not_fit_the_column_blocks_are_refused(
    approximation: str, tmp_path: Path
) -> None:
    """Loops without bounds checks follow the widths that a file tells."""
    X = {"image": rows(n_features=5), "text": rows(n_features=1)}
    kernel = Laplacian(0.1, columns="image")
    model = SpectralClustering(2, kernel=kernel, approximation=approximation, random_state=0)
    model.fit(X).save(tmp_path / "a.model")
    sound = (tmp_path / "a.model").read_bytes()

    def swap_widths(manifest: dict[str, Any]) -> None:
        text = json.dumps(manifest["fitted"])
        assert '"widths": {"tuple": [5, 1]}' in text
        manifest["fitted"] = json.loads(text.replace('{"tuple": [5, 1]}', '{"tuple": [1, 5]}'))

    (tmp_path / "b.model").write_bytes(with_manifest(swap_widths, sound))
    with pytest.raises(ModelFileError):
        load(tmp_path / "b.model")
