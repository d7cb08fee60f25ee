"""A stranger's approximation: one file and one line in the table of names, and it can be saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lying import opened, sealed
from mercer import KernelFeatures, KernelKMeans, ModelFileError, SpectralClustering, load
from mercer._run.records import Record, expect, stored, unstored
from mercer._run.types import FloatArray
from mercer.datasets import blobs
from mercer.factors import names
from mercer.factors.base import Approximation, as_sample
from mercer.factors.dense import FeatureFactor
from mercer.kernels.base import Kernel
from mercer.rows.format import RowFormat
from mercer.rows.rows import Rows


@dataclass(frozen=True, slots=True)
class HatWidth(Record):
    """How far the hats reach: a record within a record."""

    width: float = stored("float, finite, > 0")


@dataclass(frozen=True, slots=True)
class HatFactor(FeatureFactor):
    """F = max(0, 1 - ‖x - t‖ / width) for a few rows t."""

    kernel: Kernel = stored(Kernel)
    format: RowFormat = stored(RowFormat)
    tops: FloatArray = stored("(r, d) float64, finite")
    hat: HatWidth = stored(HatWidth)
    trace_error: float | None = stored("float or None", None)
    training_rows: FloatArray | None = unstored()

    @property
    def rank(self) -> int:
        return len(self.tops)

    def check(self) -> None:
        expect(self.hat.width < 1e6, "the hats are too wide")

    def features(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        def hats(rows: Rows) -> FloatArray:
            distances = np.linalg.norm(rows[:, None] - self.tops, axis=2)
            return np.maximum(1 - distances / self.hat.width, 0.0).astype(dtype)

        return hats


class HatFunctions(Approximation):
    def __init__(self, rank: int = 20) -> None:
        self.rank = rank

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (HatFactor,)

    def fit(self, kernel: Any, X: Any, *, rng: np.random.Generator, threads: int = 1) -> HatFactor:
        sample = as_sample(kernel, X)
        tops = np.array(sample.rows[rng.choice(len(sample), self.rank)], np.float64)
        factor = HatFactor(kernel, sample.format, tops, HatWidth(10.0))
        rows = factor.features(sample.format.dtype)(sample.rows)
        return HatFactor(kernel, sample.format, tops, factor.hat, None, rows)

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        return 8 * n_rows * self.rank * n_features


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(names.NAMES, "hats", HatFunctions)


MODELS: dict[str, Any] = {
    "KernelKMeans": KernelKMeans(3, approximation="hats", rank=20, random_state=0),
    "SpectralClustering": SpectralClustering(3, approximation="hats", rank=20, random_state=0),
    "KernelFeatures": KernelFeatures(approximation=HatFunctions(7), random_state=0),
}
X, Y = blobs(300, n_features=2, n_clusters=3, random_state=0)


@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_new_approximation_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    model = MODELS[name].fit(X)
    model.save(tmp_path / "a.mercer")
    loaded = load(tmp_path / "a.mercer")
    assert type(loaded.factor_) is HatFactor
    assert loaded.factor_.training_rows is None
    assert repr(loaded) == repr(model)
    assert loaded.transform(X).tobytes() == model.transform(X).tobytes()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda m, arrays: arrays.update({"factor_.tops": np.full((20, 2), np.nan)}), "finite"),
        (lambda m, arrays: arrays.update({"factor_.tops": np.ones((19, 2))}), "cluster_centers_"),
        (lambda m, arrays: arrays.update({"factor_.tops": np.ones((20, 2), "f4")}), "tops"),
        (lambda m, arrays: hat(m).update(width=0.0), "HatWidth.width"),
        (lambda m, arrays: hat(m).update(width=1e9), "too wide"),
        (lambda m, arrays: hat(m).update(height=1.0), "fields of HatWidth"),
        (lambda m, arrays: hat(m).pop("width"), "HatWidth"),
        (lambda m, arrays: factor(m).update(training_rows=None), "fields of HatFactor"),
        (lambda m, arrays: factor(m).update(hat=None), "HatFactor.hat"),
    ],
)
def test_its_files_are_checked_by_its_fields(change: Any, match: str, tmp_path: Path) -> None:
    MODELS["KernelKMeans"].fit(X).save(tmp_path / "a.mercer")
    manifest, arrays = opened((tmp_path / "a.mercer").read_bytes())
    change(manifest, arrays)
    (tmp_path / "a.mercer").write_bytes(sealed(manifest, arrays))
    with pytest.raises(ModelFileError, match=match):
        load(tmp_path / "a.mercer")


def test_a_file_is_refused_where_the_approximation_is_not_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS["KernelKMeans"].fit(X)
    model.save(tmp_path / "a.mercer")
    monkeypatch.delitem(names.NAMES, "hats")
    with pytest.raises(ModelFileError, match="'HatFactor', which this version"):
        load(tmp_path / "a.mercer")
    with pytest.raises(TypeError, match="a HatFactor, which a model file does not hold"):
        model.save(tmp_path / "b.mercer")


def factor(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest["fitted"]["factor_"]["fields"]


def hat(manifest: dict[str, Any]) -> dict[str, Any]:
    return factor(manifest)["hat"]["fields"]
