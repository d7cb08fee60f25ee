"""Every command and estimator once, on so few rows that numba's loops may be plain Python.

Other tests look closer at each of them; this one says that the ways through all of them are open,
and lets `scripts/coverage` see them whole with the jit off.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

import mercer
from mercer import (
    RBF,
    KernelFeatures,
    KernelKMeans,
    KernelPCA,
    KernelSpectralClustering,
    Nystrom,
    SpectralClustering,
    StreamingKernelKMeans,
)
from mercer.cli.app import app
from mercer.metrics._jit import match
from mercer.rows import as_source
from mercer.rows.sweep import add_each, total
from mercer.scale.parcels import pack
from mercer.scale.tasks import RowBlock, run_job, run_rows
from mercer.selection import search

pytestmark = pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")

SMALL = {"initial_size": 30, "max_size": 36, "batch_size": 8}


def blobs(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[y] + 0.4 * rng.normal(size=(n, 2)), y


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X, _ = blobs()
    np.save("rows.npy", X)
    np.savetxt("rows.csv", X, delimiter=",", header="x,y", comments="")
    return tmp_path


def run(line: str) -> str:
    found = CliRunner().invoke(app, line.split(), prog_name="mercer")
    assert found.exit_code == 0, f"{line}\n{found.output}"
    return found.stdout


def agreement(path: Path) -> float:
    if path.suffix == ".npy":
        labels = np.load(path)
    else:
        labels = np.loadtxt(path, skiprows=1, delimiter=",", ndmin=2)[:, -1]
    return float(adjusted_rand_score(blobs()[1], labels))


@pytest.mark.parametrize("method", ["spectral", "kernel-kmeans", "ksc"])
def test_a_file_is_clustered_and_its_model_labels_others(method: str, folder: Path) -> None:
    rank = "--rank 8" if method != "spectral" else ""
    run(f"cluster rows.npy -k 3 --method {method} {rank} --out l.npy --model m.mercer --seed 0")
    run("predict m.mercer rows.csv --out p.csv")
    assert agreement(folder / "l.npy") == agreement(folder / "p.csv") == 1.0


def test_a_report_is_a_page_markdown_or_json(folder: Path) -> None:
    pytest.importorskip("bokeh")
    run("cluster rows.npy -k 3 --out l.npy --model m.mercer --seed 0 --report page.html --json")
    for name in ("again.html", "again.md", "again.json"):
        run(f"report m.mercer rows.npy --out {name}")
    assert "<html" in (folder / "page.html").read_text()
    run("cluster rows.npy -k 4 --out l.npy --seed 0 --report four.html")
    assert "near points are near rows" in (folder / "four.html").read_text()  # a map of the rows
    assert (folder / "again.md").read_text().startswith("#")
    assert json.loads((folder / "again.json").read_text())


def test_plans_and_searches(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    assert json.loads(run("plan rows.npy -k 3 --json"))["passes"]
    assert "memory" in run("plan rows.npy -k 3 --method kernel-kmeans --max-memory 1GB")
    run("tune rows.npy --clusters 2,3 --gamma 0.1,1 --seed 0 --out tune.json --plot tune.png")
    assert json.loads((folder / "tune.json").read_text())
    assert (folder / "tune.png").read_bytes()[:4] == b"\x89PNG"


def test_a_worker_process_gives_the_same_labels(folder: Path) -> None:
    command = "cluster rows.npy -k 3 --method kernel-kmeans --rank 8 --seed 0"
    run(f"{command} --out one.npy")
    run(f"{command} --out two.npy --engine processes --workers 1")
    assert np.array_equal(np.load("one.npy"), np.load("two.npy"))


def test_work_goes_on_from_a_checkpoint(folder: Path) -> None:
    command = "cluster rows.npy -k 3 --method kernel-kmeans --rank 8 --seed 0 --checkpoint kept"
    run(f"{command} --out one.npy")
    run(f"{command} --out two.npy")
    assert np.array_equal(np.load("one.npy"), np.load("two.npy"))


def test_a_stream_is_labelled_stopped_and_resumed(folder: Path) -> None:
    sizes = "--initial-size 30 --max-size 36 --batch-size 8"
    command = f"stream rows.npy rows.csv -k 3 {sizes} --seed 0 --model s.mercer --every 1"
    run(f"{command} --out s.csv")
    whole = (folder / "s.csv").read_text()
    assert len(whole.splitlines()) >= 120
    told = json.loads(run(f"{command} --out s.csv --resume --json"))
    assert told
    assert (folder / "s.csv").read_text() == whole


def test_a_picture_is_cut_up(folder: Path) -> None:
    pytest.importorskip("skimage")
    from mercer.image import Segmenter, landscape, write_image

    image = landscape(12, 16, random_state=0)[0]
    write_image(Path("photo.png"), image)
    run("segment photo.png -k 2 --out parts.png --seed 0")
    assert (folder / "parts.png").exists()
    for features in ("labxy", "histogram", image.astype(np.float64)):
        labels = Segmenter(2, features=features, random_state=0).fit(image).labels_
        assert labels.shape == (12, 16)
        assert len(np.unique(labels)) == 2


def test_the_demonstration(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    told = json.loads(run("demo --rows 100 --out shown --json"))
    assert told
    assert any((folder / "shown").iterdir())


ESTIMATORS = {
    "landmarks": partial(SpectralClustering, 3),
    "ensemble": partial(SpectralClustering, 3, ensemble=8),
    "number unknown": partial(SpectralClustering, "auto"),
    "binning": partial(SpectralClustering, 3, approximation="binning", rank=16),
    "cholesky": partial(SpectralClustering, 3, approximation="cholesky", rank=12),
    "neighbors": partial(SpectralClustering, 3, approximation="neighbors"),
    "kernel k-means": partial(KernelKMeans, 3, rank=8),
    "nystrom": partial(KernelKMeans, 3, approximation="nystrom", rank=12),
    "leverage": partial(KernelKMeans, 3, approximation=Nystrom(12, sampling="leverage")),
    "bins": partial(
        KernelKMeans, 3, kernel="laplacian", approximation="binning", rank=16, n_init=10
    ),
    "fourier": partial(KernelKMeans, 3, approximation="fourier", rank=64),
    "KSC": partial(KernelSpectralClustering, 3),
    "stream": partial(StreamingKernelKMeans, 3, **SMALL),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_clustering_is_found_told_and_kept(name: str, tmp_path: Path) -> None:
    X, y = blobs()
    model = ESTIMATORS[name](random_state=0)
    assert model.plan(X).passes
    model.fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.report_.trust.grade in ("good", "fair", "poor")
    assert model.report_.to_markdown()
    assert "<" in model._repr_html_()
    assert len(str(model.report_)) > 100
    model.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    others, _ = blobs(30, seed=1)
    assert np.array_equal(again.predict(others), model.predict(others))
    assert np.array_equal(again.transform(others), model.transform(others))


@pytest.mark.parametrize(
    "parameters",
    [
        {"sampling": "ridge"},
        {"sampling": "uniform"},
        {"centers": "projected"},
        {"normalize": False, "centers": "projected"},
        {"normalize": False},
        {"forgetting": 0.1},
    ],
)
def test_streams_of_every_kind(parameters: dict[str, Any], tmp_path: Path) -> None:
    X, y = blobs(120)
    model = StreamingKernelKMeans(3, **SMALL, **parameters, random_state=0)
    for start in range(0, 120, 25):
        model.partial_fit(X[start : start + 25], sample_weight=np.ones(len(X[start : start + 25])))
    assert adjusted_rand_score(y, model.predict(X)) > 0.9
    assert model.transform(X).shape[0] == 120
    assert model.score(X) <= 0
    model.save(tmp_path / "stream.mercer")
    assert np.array_equal(mercer.load(tmp_path / "stream.mercer").predict(X), model.predict(X))


def test_a_stream_from_a_file_has_no_labels_but_gives_them(folder: Path) -> None:
    model = StreamingKernelKMeans(3, **SMALL, random_state=0).fit("rows.npy")
    model.predict("rows.npy", out="labels.npy")
    assert agreement(folder / "labels.npy") == 1.0


def test_fuzzy_memberships_and_scores() -> None:
    X, y = blobs()
    model = KernelSpectralClustering(3, encoding="ams", random_state=0).fit(X)
    assert model.memberships(X).sum(axis=1) == pytest.approx(np.ones(60))
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert np.isfinite(model.score(X))


def test_features_components_and_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = blobs()
    for approximation in ("cholesky", "nystrom", "fourier"):
        F = KernelFeatures(approximation=approximation, rank=16, random_state=0).fit_transform(X)
        assert F.shape[0] == 60
    for most in (1000, 20):  # rows that the way back is anchored at
        monkeypatch.setattr("mercer.estimators.preimage.MOST_CENTERS", most)
        model = KernelPCA(2, fit_inverse_transform=True, random_state=0).fit(X)
        back = model.inverse_transform(model.transform(X))
        assert np.abs(back - X).mean() < 0.8 * np.abs(X - X.mean(axis=0)).mean()


def test_pictures_of_fits() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    from mercer.report import EmbeddingDisplay, SpectrumDisplay, TuningDisplay

    X, _ = blobs()
    model = SpectralClustering(3, random_state=0).fit(X)
    assert len(EmbeddingDisplay.from_estimator(model, X).ax_.collections) == 3
    assert "gap" in SpectrumDisplay.from_estimator(model).ax_.get_title()
    assert EmbeddingDisplay.from_estimator(model, X, of="Embedding").xy.shape == (60, 2)
    tuned = KernelSpectralClustering(3, random_state=0).fit(X)
    assert TuningDisplay.from_estimator(tuned).ax_.images
    plt.close("all")


def test_a_search_by_whole_fits() -> None:
    X, _ = blobs()
    for encoding in ("bas", "ams"):
        for estimator in (KernelKMeans(rank=8, random_state=0), SpectralClustering(random_state=0)):
            found = search(estimator, X, n_clusters=[2, 3], criterion=encoding)
            assert found.best.n_clusters in (2, 3)


def row_sums(rows: np.ndarray, start: int, along: Any) -> tuple[np.ndarray]:
    return (rows.sum(axis=0),)


class RowSums:
    def __call__(self) -> Any:
        return row_sums

    def fits(self, result: Any, source: Any, along: Any) -> bool:
        return True


give_row_sums = RowSums()


class OddError(Exception):
    """One that cannot travel: it holds what cannot be pickled."""

    def __init__(self, words: str, item: Any) -> None:
        super().__init__(words)
        self.held = (part for part in item)


def fail(item: Any) -> None:
    raise OddError("no", item)


def test_what_a_worker_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from mercer.rows.sweep import BlockTask

    X, _ = blobs()
    expected = total(as_source(X), give_row_sums, add_each, block_rows=8192, stage="sums")
    task = pack(BlockTask(give_row_sums, 8192, add_each))
    for environment in (None, "65536", str(2**28)):
        if environment is not None:  # as Dask's nanny sets it, as workers of our own have it
            monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", environment)
        ((found,),) = run_rows(task, RowBlock(0, X), None, 0, 60)
        assert np.array_equal(found, expected[0])
        assert run_job(pack(len), pack([1, 2])) == 2
    assert np.array_equal(RowBlock(10, X[10:])[12:14], X[12:14])
    with pytest.raises(RuntimeError, match="OddError: no"):
        run_job(pack(fail), pack("item"))


def test_a_matching_is_the_largest_where_greedy_ones_are_not() -> None:
    rng, n_gained = np.random.default_rng(0), 0
    for _ in range(20):
        graph = sp.csr_array(rng.random((12, 12)) < 0.15)
        left, right = np.empty(12, np.int64), np.empty(12, np.int64)
        first, neighbors = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
        n_pairs = match(first, neighbors, left, right)
        best = maximum_bipartite_matching(graph, perm_type="column")
        assert n_pairs == np.count_nonzero(best >= 0) == np.count_nonzero(left >= 0)
        for i in np.flatnonzero(left >= 0):
            assert right[left[i]] == i
            assert left[i] in graph.indices[graph.indptr[i] : graph.indptr[i + 1]]
        taken: set[int] = set()
        for i in range(12):
            free = [j for j in neighbors[first[i] : first[i + 1]] if j not in taken]
            taken.update(free[:1])
        n_gained += n_pairs - len(taken)
    assert n_gained > 0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_of_many_columns(form: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = form(5.0 * np.eye(3, 80)[y] + 0.1 * rng.random((60, 80)))
    labels = SpectralClustering(3, random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, labels) == 1.0


def test_a_kernel_of_ones_own() -> None:
    X, y = blobs()
    model = KernelKMeans(3, kernel=RBF(0.3) + 0.5 * RBF(0.05), rank=8, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
