"""Rows that the kernel does not see: `predict` counts them and warns once; labels stay."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from typer.testing import CliRunner

import mercer
from estimators import ESTIMATORS
from mercer import RBF, MercerWarning, Processes, SpectralClustering
from mercer.cli.app import app
from mercer.rows.source import TILE

SIGHTED = {  # a row's nearest landmark, bins or reference row tell its cluster, however far it is
    "SpectralClustering",
    "SpectralClustering-ensemble",
    "SpectralClustering-neighbors",
    "SpectralClustering-binning",
    "KernelKMeans-binning",
}
VARIANTS = {
    "KernelKMeans-nystrom": lambda: ESTIMATORS["KernelKMeans"](approximation="nystrom"),
    "KernelKMeans-laplacian": lambda: ESTIMATORS["KernelKMeans"](kernel="laplacian", gamma=3.0),
    "KernelKMeans-scaled": lambda: ESTIMATORS["KernelKMeans"](kernel=1e6 * RBF(0.1)),
    "SpectralClustering-nystrom": lambda: SpectralClustering(
        3, approximation="nystrom", random_state=0
    ),
    "SpectralClustering-exact": lambda: SpectralClustering(
        3, approximation="exact", random_state=0
    ),
    "KernelSpectralClustering-ams": lambda: ESTIMATORS["KernelSpectralClustering"](encoding="ams"),
    "KernelSpectralClustering-blf": lambda: ESTIMATORS["KernelSpectralClustering"](encoding="blf"),
    "StreamingKernelKMeans-means": lambda: ESTIMATORS["StreamingKernelKMeans"](
        30, initial_size=100
    ),
    "StreamingKernelKMeans-unnormalized": lambda: ESTIMATORS["StreamingKernelKMeans"](
        normalize=False
    ),
}
BLIND = {name: make for name, make in ESTIMATORS.items() if name not in SIGHTED} | VARIANTS
FAR = np.eye(4)[:3] * 300.0
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def blobs(n: int = 300) -> np.ndarray:
    return make_blobs(n, 4, centers=3, random_state=0)[0]


def fitted(make: Any, X: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # of thirty clusters in three blobs
        return make().fit(X)


def told(model: Any, X: Any, **options: Any) -> tuple[list[str], Any]:
    """What `predict` warns of, and its labels."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MercerWarning)
        labels = model.predict(X, **options)
    return [str(w.message) for w in caught if issubclass(w.category, MercerWarning)], labels


@pytest.mark.parametrize("make", BLIND.values(), ids=BLIND.keys())
def test_rows_that_no_pivot_sees_are_counted_in_one_warning(make, tmp_path):
    X = blobs()
    model = fitted(make, X)
    assert told(model, X)[0] == []
    (words,), labels = told(model, FAR)
    assert words.startswith("3 of 3 rows are farther from every pivot than the kernel reaches")
    assert "gamma" in words
    assert len(set(labels)) == 1
    mixed = np.concatenate([X[:50], FAR, X[50:]])
    (words,), labels = told(model, mixed)
    assert words.startswith("3 of 303 rows")
    assert np.array_equal(np.delete(labels, [50, 51, 52]), model.predict(X))
    (words,), path = told(model, mixed, out=tmp_path / "labels.npy")
    assert words.startswith("3 of 303 rows")
    assert np.array_equal(np.load(path), labels)
    model.save(tmp_path / "a.model")
    assert told(mercer.load(tmp_path / "a.model"), mixed)[0] == [words]


@pytest.mark.parametrize("name", sorted(SIGHTED))
def test_where_every_row_has_a_place_nothing_is_said(name):
    assert told(fitted(ESTIMATORS[name], blobs()), FAR)[0] == []


@pytest.mark.parametrize(
    ("name", "params"),
    [("KernelKMeans", {}), ("KernelSpectralClustering", {"encoding": "ams"})],
)
def test_a_row_that_rounding_hides_beside_the_centres_is_not_seen(name, params):
    X = blobs()
    model = fitted(lambda: ESTIMATORS[name](gamma=0.01, **params), X)
    far = X[:1] + np.array([[100.0, 0, 0, 0]])  # similarities near 1e-40
    assert told(model, far)[0][0].startswith("1 of 1 rows")


def test_counts_of_tiles_threads_and_engines_are_added_up():
    X = blobs()
    model = fitted(ESTIMATORS["KernelKMeans"], X)
    many = np.tile(X, (2 * TILE // len(X) + 40, 1))
    many[::1000] = FAR[0]
    count = f"{len(many[::1000])} of {len(many):,} rows"
    expected, labels = told(model, many)
    assert expected[0].startswith(count)
    model.set_params(n_jobs=2)
    assert told(model, many)[0] == expected
    for engine in (Processes(2), ThreadPoolExecutor(2)):
        with mercer.on(engine):
            words, there = told(model, many)
        assert words == expected
        assert np.array_equal(there, labels)


def test_one_cluster_is_right_for_every_row():
    with pytest.warns(MercerWarning, match="n_clusters=1"):
        model = ESTIMATORS["KernelKMeans"](1).fit(blobs())
    assert told(model, FAR)[0] == []


def test_the_origin_of_feature_space_is_seen_and_words_never_met_are_not():
    rng = np.random.default_rng(0)
    words = np.zeros((150, 12))
    words[:, :9] = rng.random((150, 9)) * (np.arange(9) // 3 == np.arange(150)[:, None] % 3)
    for make in (np.asarray, sp.csr_array):
        model = fitted(lambda: ESTIMATORS["KernelKMeans"](kernel="cosine"), make(words))
        assert told(model, make(np.zeros((2, 12))))[0] == []
        new = np.zeros((2, 12))
        new[:, 10] = 1.0
        assert told(model, make(new))[0][0].startswith("2 of 2 rows")


def test_a_sum_of_kernels_sees_what_one_of_them_sees():
    X = blobs()
    kernel = 0.5 * RBF(0.1, columns=slice(0, 2)) + 0.5 * RBF(0.1, columns=slice(2, 4))
    model = fitted(lambda: ESTIMATORS["KernelKMeans"](kernel=kernel), X)
    half = X[:2].copy()
    half[:, :2] = 300.0
    assert told(model, half)[0] == []
    half[1] = 300.0
    assert told(model, half)[0][0].startswith("1 of 2 rows")


@pytest.mark.parametrize("approximation", ["landmarks", "cholesky"])
def test_items_without_affinities_are_not_seen(approximation):
    X = blobs()
    K = RBF(0.1)(X)
    kernel = {"kernel": "precomputed", "approximation": approximation, "random_state": 0}
    model = SpectralClustering(3, **kernel).fit(K)
    assert told(model, K)[0] == []
    K[[3, 5]] = 0.0
    assert told(model, K)[0][0].startswith("2 of 300 rows")
    if approximation == "landmarks":
        assert told(model, sp.csr_array(K))[0][0].startswith("2 of 300 rows")


def test_the_command_line_says_it_on_standard_error(tmp_path):
    X = blobs()
    fitted(ESTIMATORS["KernelKMeans"], X).save(tmp_path / "a.model")
    np.save(tmp_path / "rows.npy", np.concatenate([X, FAR]))
    arguments = ["predict", tmp_path / "a.model", tmp_path / "rows.npy"]
    arguments += ["--out", tmp_path / "labels.npy"]
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    assert "3 of 303 rows" in done.stderr
    assert len(np.load(tmp_path / "labels.npy")) == 303
