"""The passes that a plan names are the passes that are made: reads of a file, counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mercer
from estimators import ESTIMATORS, TRANSFORMERS
from marking import slow_beyond
from mercer import IncompleteCholesky, KernelKMeans, SpectralClustering
from mercer.cli.app import app
from mercer.datasets import blobs
from mercer.io.labels import FORMATS, read_labels
from mercer.partitions.label_store import keeping_labels
from mercer.rows.distinct import EXACT_ROWS
from mercer.rows.npy import NpySource

RARE: dict[str, Callable[..., Any]] = {
    "KernelKMeans-rare": lambda **params: KernelKMeans(
        3, approximation=IncompleteCholesky(32, rare=0.25), random_state=0, **params
    ),
}
ALL = ESTIMATORS | TRANSFORMERS | RARE
FEW, MANY = 1200, EXACT_ROWS + 20_000
QUICK = ("KernelKMeans", "KernelKMeans-rare", "SpectralClustering", "KernelSpectralClustering")


class Reads:
    """Rows of npy files that were read in order, and how often some were taken by numbers."""

    def __init__(self) -> None:
        self.in_order = self.by_number = 0

    def passes(self, n_rows: int) -> int:
        """Whole passes; rows that are taken from anywhere count as one, however many there are."""
        return self.in_order // n_rows + self.by_number


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    counted, read, take = Reads(), NpySource.read, NpySource.take

    def counting_read(self: NpySource, start: int, stop: int) -> Any:
        counted.in_order += min(stop, self.n_rows) - start
        return read(self, start, stop)

    def counting_take(self: NpySource, ids: Any) -> Any:
        counted.by_number += 1
        return take(self, ids)

    monkeypatch.setattr(NpySource, "read", counting_read)
    monkeypatch.setattr(NpySource, "take", counting_take)
    return counted


def rows_file(folder: Path, n_rows: int) -> Path:
    X, _ = blobs(n_rows, random_state=0)
    np.save(folder / "rows.npy", X.astype(np.float32))
    return folder / "rows.npy"


def passes_made(reads: Reads, n_rows: int, work: Callable[[], Any]) -> int:
    reads.in_order = reads.by_number = 0
    work()
    return reads.passes(n_rows)


@pytest.mark.parametrize("name", slow_beyond(ALL, quick=[*QUICK, *TRANSFORMERS]))
def test_planned_passes_are_made(name: str, tmp_path: Path, reads: Reads) -> None:
    path, model = rows_file(tmp_path, FEW), ALL[name]()
    least, most = model.plan(path).n_passes
    assert least == most == passes_made(reads, FEW, lambda: model.fit(path))
    if hasattr(model, "fit_predict"):
        out = tmp_path / "labels.npy"
        assert least == passes_made(reads, FEW, lambda: model.fit_predict(path, out=out))


@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")  # a low rank for many rows
@pytest.mark.parametrize("name", slow_beyond(ALL, quick=QUICK))
def test_planned_passes_are_made_beyond_the_sample(name: str, tmp_path: Path, reads: Reads) -> None:
    if "exact" in name or "neighbors" in name:
        pytest.skip("a graph of 100,000 rows with each other takes too long")
    path = rows_file(tmp_path, MANY)
    model = ALL[name]() if name in ("KernelKMeans-greedy", *RARE) else ALL[name](rank=32)
    planned = {p.stage: (p.least, p.most) for p in model.plan(path).passes}
    made = passes_made(reads, MANY, lambda: model.fit(path))
    sweeps = model.report_.n_full_sweeps
    least, most = planned.pop("full sweeps", (0, 0))
    assert least <= sweeps <= most
    assert made == sum(n for n, _ in planned.values()) + sweeps


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("method", ["spectral", "kernel-kmeans", "ksc"])
def test_the_command_labels_in_the_pass_that_counts(
    method: str, suffix: str, tmp_path: Path, reads: Reads
) -> None:
    if suffix != ".npy" and method != "kernel-kmeans":
        pytest.skip("a format is the business of the writer")
    pytest.importorskip({".zarr": "zarr", ".parquet": "pyarrow"}.get(suffix, "numpy"))
    path, out = rows_file(tmp_path, FEW), tmp_path / f"labels{suffix}"
    model = tmp_path / "m.mercer"
    options = ["-k", "3", "--method", method, "--seed", "0", "--quiet"]
    command = ["cluster", str(path), *options, "--out", str(out), "--model", str(model)]
    result: Any = None

    def run() -> None:
        nonlocal result
        result = CliRunner().invoke(app, command)

    made = passes_made(reads, FEW, run)
    assert result.exit_code == 0, result.output
    fitted = mercer.load(model)
    assert made == fitted.plan(path).n_passes[1] == 3
    np.testing.assert_array_equal(read_labels(out), fitted.predict(path))
    assert not [p for p in tmp_path.iterdir() if p.name.startswith((".", "tmp"))]


@pytest.mark.parametrize("make", [KernelKMeans, SpectralClustering])
def test_labels_of_the_counting_pass_are_those_of_predict(make: Any, tmp_path: Path) -> None:
    X, _ = blobs(30_000, random_state=1)
    weights = np.random.default_rng(0).random(len(X)) * np.where(X[:, 0] > 0, 5.0, 1.0)
    path, out = tmp_path / "rows.npy", tmp_path / "labels.npy"
    np.save(path, X)
    for jobs in (1, 2):
        model = make(4, rank=50, n_jobs=jobs, random_state=0, max_memory="100MB")
        assert model.fit_predict(path, sample_weight=weights, out=out) == out
        expected = model.predict(path)
        np.testing.assert_array_equal(read_labels(out), expected)
        labels = model.fit_predict(path, sample_weight=weights)
        np.testing.assert_array_equal(labels, expected)
        assert labels.dtype == np.intp
        assert not hasattr(model, "labels_")


def test_labels_of_the_counting_pass_by_other_processes(tmp_path: Path) -> None:
    path, out = rows_file(tmp_path, 30_000), tmp_path / "labels.csv"
    model = KernelKMeans(3, rank=16, random_state=0)
    with mercer.on(mercer.Processes(2)):
        model.fit_predict(path, out=out)
    np.testing.assert_array_equal(read_labels(out), model.predict(path))


def test_a_fit_that_fails_leaves_the_old_labels(tmp_path: Path) -> None:
    path, out = rows_file(tmp_path, FEW), tmp_path / "labels.npy"
    KernelKMeans(3, rank=16, random_state=0).fit_predict(path, out=out)
    before = out.read_bytes()
    np.save(path, np.full((10, 2), np.nan))
    with pytest.raises(ValueError, match="NaN"):
        KernelKMeans(3, rank=16).fit_predict(path, out=out)
    assert out.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.npy", "rows.npy"]


def test_rows_in_memory_can_be_labelled_to_a_file(tmp_path: Path) -> None:
    X, _ = blobs(500, random_state=0)
    model, out = KernelKMeans(3, rank=16, random_state=0), tmp_path / "labels.npy"
    model.fit_predict(X, out=out)
    np.testing.assert_array_equal(read_labels(out), model.labels_)


def test_a_fit_of_other_rows_leaves_the_labels_alone(tmp_path: Path) -> None:
    """Labels are kept of one source: what else is fitted meanwhile does not touch them."""
    source, other = NpySource(rows_file(tmp_path, FEW)), blobs(500, random_state=3)[0]
    model = KernelKMeans(3, rank=16, random_state=0)
    with keeping_labels(source) as store:
        model.fit(source)
        KernelKMeans(2, rank=16, random_state=0).fit([other])
    np.testing.assert_array_equal(store.all_labels(), model.predict(source))
