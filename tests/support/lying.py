"""Model files that are sealed and lie: every checksum is right, what is declared is not.

Each lie is a small file that declares much, or that makes a reader repeat itself. Whoever writes a
file can write its checksums, so only bounds on what is declared help.
"""

from __future__ import annotations

import hashlib
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzzing import model_files
from mercer import (
    RBF,
    Cosine,
    HistogramIntersection,
    KernelFeatures,
    KernelKMeans,
    SpectralClustering,
    StreamingKernelKMeans,
)
from mercer.io.allowance import MOST_OBJECTS

Arrays = dict[str, np.ndarray]
Lie = Callable[[dict[str, Any], Arrays], Any]  # changes a manifest and its arrays; None: no place

MANY = 300_000  # parts, names: what a manifest of a few MB holds
WIDTH = 40  # columns of the sparse tables below
LONG = 10**5  # rows: what a file of a few MB holds


# Sound files, taken apart and sealed again


def opened(data: bytes) -> tuple[dict[str, Any], Arrays]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        names = manifest["arrays"]
        return manifest, {name: np.load(BytesIO(archive.read(f"{name}.npy"))) for name in names}


def sealed(manifest: dict[str, Any], arrays: Arrays) -> bytes:
    """The file that says this, with every checksum as it should be."""
    members = {name: _npy(array) for name, array in arrays.items()}
    entries = {
        name: {
            "sha256": hashlib.sha256(members[name]).hexdigest(),
            "shape": list(array.shape),
            "dtype": array.dtype.name,
        }
        for name, array in arrays.items()
    }
    text = json.dumps({**manifest, "arrays": entries, "seal": "sha256"}).encode()
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)
        archive.writestr(zipfile.ZipInfo("manifest.json"), text)
        archive.comment = f"sha256 {hashlib.sha256(text).hexdigest()}".encode()
    return buffer.getvalue()


def _npy(array: np.ndarray) -> bytes:
    buffer = BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def sound_names() -> list[str]:
    """The kept files of every estimator, and models of sparse rows and of combined kernels."""
    return [*model_files(), *SPARSE]


@cache
def sound_file(name: str) -> bytes:
    kept = model_files()
    return kept[name] if name in kept else _saved(SPARSE[name](), _rows(name))


def _rows(name: str) -> Any:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((120, WIDTH)) < 0.2, rng.random((120, WIDTH)) + 0.1, 0.0)
    dense[:, 0] += np.arange(120) % 3
    X = sp.csr_array(dense)
    return {"a": X, "b": dense[:, :3]} if name.startswith("blocks") else X


def _kmeans(kernel: Any) -> Callable[[], Any]:
    return lambda: KernelKMeans(3, kernel=kernel, rank=8, random_state=0)


SPARSE: dict[str, Callable[[], Any]] = {
    "sparse-rbf.mercer": _kmeans(RBF(0.5)),
    "sparse-cosine.mercer": _kmeans(Cosine()),
    "sparse-overlap.mercer": _kmeans(HistogramIntersection()),
    "sparse-columns.mercer": _kmeans(RBF(0.5, columns=[0, 3, 5])),
    "sparse-steps.mercer": _kmeans(RBF(0.5, columns=slice(0, None, 2))),
    "sparse-range.mercer": _kmeans(RBF(0.5, columns=range(0, WIDTH, 3))),
    "sparse-sum.mercer": _kmeans(0.5 * RBF(0.5) + Cosine(columns=[0, 1, 2]) * RBF(0.1)),
    "sparse-binning.mercer": lambda: SpectralClustering(3, approximation="binning", random_state=0),
    "sparse-landmarks.mercer": lambda: SpectralClustering(3, random_state=0),
    "sparse-fourier.mercer": lambda: KernelFeatures(
        approximation="fourier", rank=8, random_state=0
    ),
    "sparse-stream.mercer": lambda: StreamingKernelKMeans(
        3, initial_size=60, batch_size=30, max_size=60, random_state=0
    ),
    "blocks.mercer": _kmeans(RBF(0.5, columns="a") + RBF(0.5, columns="b")),
}


def _saved(model: Any, X: Any) -> bytes:
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "a.mercer"
        model.fit(X).save(path)
        return path.read_bytes()


# Where a manifest can lie


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every entry of a tree: what holds it, and the key or number under which it does."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places(tree[key])


def _every(tree: Any, is_one: Callable[[Any, Any], bool], new: Callable[[Any], Any]) -> bool:
    """Put something else wherever a condition on (key, value) holds; was it anywhere?"""
    found = [(at, key) for at, key in places(tree) if is_one(key, at[key])]
    for at, key in found:
        at[key] = new(at[key])
    return bool(found)


def wide(n_columns: int) -> Lie:
    """Sparse tables of very many columns, of which no more numbers are stored."""

    def lie(manifest: dict[str, Any], arrays: Arrays) -> Any:
        fitted, more = manifest["fitted"], n_columns - WIDTH
        is_table = lambda key, value: key == "csr" and value[1] == WIDTH
        if not _every(fitted, is_table, lambda shape: [shape[0], n_columns]):
            return None
        fitted["n_features_in_"] += more
        is_width = lambda key, value: key == "widths" and value["tuple"]
        _every(fitted, is_width, lambda w: {"tuple": [w["tuple"][0] + more, *w["tuple"][1:]]})
        return True

    return lie


def wide_range(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """The same, and a kernel that looks at all of them but the first."""
    ranged = lambda ends: [1, 2**30, 1]
    return wide(2**30)(manifest, arrays) and (
        _every(manifest["fitted"], lambda key, _: key == "range", ranged) or None
    )


def large_numbers(number: int) -> Lie:
    def lie(manifest: dict[str, Any], arrays: Arrays) -> Any:
        is_count = lambda key, value: type(value) is int and value > 0 and key != "n_features_in_"
        return _every(manifest["fitted"], is_count, lambda value: number) or None

    return lie


def long_arrays(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """All that has as many rows as the longest two-dimensional array has very many of them."""
    sizes = [len(array) for array in arrays.values() if array.ndim == 2 and len(array) > 3]
    if not sizes:
        return None
    n = max(sizes)
    for name, array in arrays.items():
        times = tuple(-(-LONG // n) if side == n else 1 for side in array.shape)
        if array.ndim < 2 or times[0] * times[-1] * array.nbytes < 5 * 10**7:
            arrays[name] = np.tile(array, times)
    return True


def many_neighbors(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """Long arrays, in which each row has as many neighbours as there are rows."""
    counts = ("n_neighbors", "grid_neighbors")
    if not long_arrays(manifest, arrays):
        return None
    n = max(len(array) for array in arrays.values())
    found = _every(manifest["fitted"], lambda key, _: key in counts, lambda value: n)
    return found or None


def colliding_keys(shift: int) -> Lie:
    """Hashes of bins that all want one slot."""

    def lie(manifest: dict[str, Any], arrays: Arrays) -> Any:
        names = [name for name in arrays if name.endswith("bins.keys")]
        for name in names:
            arrays[name] = np.arange(LONG, dtype=np.int64) << shift
            starts = arrays[name.replace("keys", "starts")]
            starts[1:] = LONG
        for name in arrays:
            if arrays[name].dtype == np.float32 and arrays[name].ndim == 2 and names:
                arrays[name] = np.ones((LONG, arrays[name].shape[1]), np.float32)
        return bool(names) or None

    return lie


def many_parts(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """Every kernel is a sum of very many."""
    simple = {"class": "RBF", "params": {"gamma": 1.0}}
    total = {"class": "Sum", "params": {"kernels": [simple] * (MANY // 2)}}
    manifest["parameters"]["kernel"] = total
    manifest["fitted"]["kernel_"] = total
    return True


def most_parts(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """As many kernels as are allowed, wherever one stands."""
    simple = {"class": "RBF", "params": {"gamma": 1.0}}
    total = {"class": "Sum", "params": {"kernels": [simple] * (MOST_OBJECTS // 3 - 100)}}
    manifest["parameters"]["kernel"] = total
    manifest["fitted"]["kernel_"] = total
    is_kernel = lambda key, value: key == "kernel" and isinstance(value, dict)
    _every(manifest["fitted"], is_kernel, lambda value: {"same": "kernel_"})
    return True


def many_parts_elsewhere(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """Very many objects where no kernel stands."""
    manifest["fitted"]["n_iter_"] = [{"class": "RBF", "params": {}}] * MANY
    return True


def repeated_lists(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """Every list of numbers or names in the manifest is very long."""

    def is_list(key: Any, value: Any) -> bool:
        is_flat = isinstance(value, list) and value and key not in ("csr", "range")
        return is_flat and not any(isinstance(item, list | dict) for item in value)

    return _every(manifest["fitted"], is_list, lambda value: (value * 20_000)[:20_000]) or None


def one_array_many_times(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """A large array named 20,000 times."""
    arrays["large"] = np.ones((10**5, 4))
    named = [{"array": "large"}] * 20_000
    weights = [{"array": "weights"}] * 20_000
    arrays["weights"] = np.ones(10**5)
    pieces = {"pieces": {"tuple": named}, "weights": {"tuple": weights}}
    queue = {"class": "Queue", "fields": pieces}
    manifest["fitted"]["queue_" if "queue_" in manifest["fitted"] else "factor_"] = queue
    return True


def many_small_tables(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """A small sparse table, 50,000 times over."""
    arrays |= {"d": np.ones(1), "i": np.zeros(1, np.int32), "p": np.array([0, 1], np.int32)}
    parts = {part: {"array": name} for part, name in (("data", "d"), ("indices", "i"))}
    table = {"csr": [1, 4], **parts, "indptr": {"array": "p"}}
    manifest["fitted"]["kernel_"] = {"tuple": [table] * 50_000}
    return True


def many_members(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """Very many arrays of nothing."""
    arrays |= {f"a{i}": np.zeros(0) for i in range(40_000)}
    return True


def empty_objects(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """Nothing, five million times: small in a file, large in memory."""
    manifest["more"] = [[]] * 5_000_000
    return True


def deep(depth: int) -> Lie:
    def lie(manifest: dict[str, Any], arrays: Arrays) -> Any:
        tree: Any = {"class": "RBF", "params": {"gamma": 1.0}}
        for _ in range(depth):
            tree = {"class": "Scaled", "params": {"factor": 1.0, "kernel": tree}}
        manifest["parameters"]["kernel"] = tree
        return True

    return lie


def long_report(manifest: dict[str, Any], arrays: Arrays) -> Any:
    is_list = lambda key, value: isinstance(value, list) and value
    if not isinstance(manifest["report"], dict):
        return None
    return _every(manifest["report"], is_list, lambda value: (value * MANY)[:MANY]) or None


def many_steps(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """A pipeline of very many steps."""
    manifest["steps"] = [{**manifest["steps"][-1], "name": f"s{i}"} for i in range(20_000)]
    return True


def steps_within_steps(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """A ColumnTransformer of ColumnTransformers, many times."""
    (outer, *others) = manifest["steps"]
    for _ in range(60):
        outer = {**outer, "parts": [{**part, "part": outer} for part in outer["parts"][:1]]}
    manifest["steps"] = [outer, *others]
    return True


def wide_steps(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """Steps that say they take very many columns."""
    for step in manifest["steps"]:
        step["n_features"] = 2**50
    return True


def many_categories(manifest: dict[str, Any], arrays: Arrays) -> Any:
    """An encoder of many columns, one of which has very many categories."""
    arrays["long"], arrays["short"] = np.arange(3 * 10**5), np.arange(2)
    columns = [{"array": "long"}, *([{"array": "short"}] * 5000)]
    params = {"dtype": {"dtype": "float64"}, "feature_name_combiner": "concat"}
    encoder = {"name": "e", "class": "OneHotEncoder", "n_features": len(columns)}
    manifest["steps"] = [{**encoder, "params": params, "categories": columns}]
    return True


LIES: dict[str, Lie] = {
    "very many steps": many_steps,
    "steps within steps": steps_within_steps,
    "steps of 2⁵⁰ columns": wide_steps,
    "very many categories": many_categories,
    "2³⁰ columns": wide(2**30),
    "2⁶⁰ columns": wide(2**60),
    "a range of 2³⁰ columns": wide_range,
    "numbers of 2³¹": large_numbers(2**31),
    "numbers of 2⁶⁰": large_numbers(2**60),
    "long arrays": long_arrays,
    "as many neighbours as rows": many_neighbors,
    "keys that collide": colliding_keys(32),
    "keys in one run": colliding_keys(0),
    "a sum of very many kernels": many_parts,
    "as many kernels as are allowed": most_parts,
    "very many objects": many_parts_elsewhere,
    "long lists": repeated_lists,
    "one array named many times": one_array_many_times,
    "very many small tables": many_small_tables,
    "very many members": many_members,
    "very many empty lists": empty_objects,
    "deep": deep(100),
    "deeper": deep(250),
    "a long report": long_report,
}

ABOUT_STEPS = (many_steps, steps_within_steps, wide_steps, many_categories)  # of pipelines

# Lies that need nothing of the model: one file is enough to try them.
ANYWHERE = frozenset(
    lie
    for lie, change in LIES.items()
    if change
    in (
        many_parts,
        many_parts_elsewhere,
        many_small_tables,
        many_members,
        empty_objects,
        long_report,
    )
    or lie.startswith("deep")
)


def lying(name: str, lie: str) -> bytes | None:
    """A sound file with one lie in it, sealed again; None where it has no place for the lie."""
    manifest, arrays = opened(sound_file(name))
    is_pipeline, about_steps = manifest["class"] == "Pipeline", LIES[lie] in ABOUT_STEPS
    if about_steps and not is_pipeline:
        return None
    liar = manifest["last"]["estimator"] if is_pipeline and not about_steps else manifest
    if LIES[lie](liar, arrays) is None:
        return None
    return sealed(manifest, arrays)
