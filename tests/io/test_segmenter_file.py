"""Segmenters in model files: any image gets the labels it got, and no file is trusted."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from lying import opened, sealed
from mercer import BudgetError, ModelFileError
from mercer.cli.work import load_model
from mercer.image import Segmenter, landscape

IMAGE = landscape(40, 60, random_state=0)[0]
OTHER = landscape(30, 50, random_state=1)[0]
CASES: dict[str, dict[str, Any]] = {
    "contours": {},
    "level": {"n_segments": "auto", "scale": 0.4},
    "quantized": {"method": "quantized"},
    "auto": {"n_segments": "auto", "method": "quantized"},
    "histogram": {"features": "histogram", "n_colors": 4, "dither": True},
    "landmarks": {"method": "landmarks"},
    "ksc": {"method": "ksc"},
    "connected": {"method": "quantized", "connected": True, "min_size": 0, "start_label": 5},
}


@cache
def fitted(case: str) -> Segmenter:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Segmenter(**{"n_segments": 3, "random_state": 0, **CASES[case]}).fit(IMAGE)


@pytest.mark.parametrize("case", CASES)
def test_loading_gives_back_what_was_saved(case: str, tmp_path: Path) -> None:
    model = fitted(case)
    model.save(tmp_path / "a.mercer")
    loaded = mercer.load(tmp_path / "a.mercer")
    assert repr(loaded) == repr(model)
    assert loaded.report_ == model.report_
    assert loaded.n_segments_ == model.n_segments_
    assert set(vars(loaded)) == set(vars(model)) - {"labels_", "levels_"}
    for image in (IMAGE, OTHER):
        assert loaded.predict(image).tobytes() == model.predict(image).tobytes()
    mercer.save(loaded, tmp_path / "b.mercer")
    assert (tmp_path / "b.mercer").read_bytes() == (tmp_path / "a.mercer").read_bytes()


def test_features_of_the_caller(tmp_path: Path) -> None:
    features = np.asarray(IMAGE, np.float32)
    model = Segmenter(3, features=features, random_state=0).fit(IMAGE)
    model.save(tmp_path / "a.mercer")
    loaded, given = mercer.load(tmp_path / "a.mercer"), np.asarray(OTHER, np.float32)
    assert (loaded.predict(OTHER, features=given) == model.predict(OTHER, features=given)).all()


def test_many_channels_keep_their_axes(tmp_path: Path) -> None:
    seven = np.dstack([IMAGE, IMAGE[::-1], IMAGE[:, :, 0]])
    model = Segmenter(3).fit(seven)
    model.save(tmp_path / "a.mercer")
    assert (mercer.load(tmp_path / "a.mercer").predict(seven) == model.labels_).all()


def altered(case: str, change: Any, folder: Path) -> Path:
    fitted(case).save(folder / "a.mercer")
    manifest, arrays = opened((folder / "a.mercer").read_bytes())
    change(manifest["fitted"], arrays)
    (folder / "a.mercer").write_bytes(sealed(manifest, arrays))
    return folder / "a.mercer"


def inner(fit: dict[str, Any]) -> dict[str, Any]:
    return fit["model_"]["fields"]["estimator"]["estimator"]


CHANGES: dict[str, tuple[str, Any]] = {
    "histograms of other bins": (
        "contours",
        lambda f, a: a.update(
            {"model_.looks.histograms": a["model_.looks.histograms"][:, 1:].copy()}
        ),
    ),
    "looks of fewer": (
        "contours",
        lambda f, a: a.update(
            {name: a[name][:-1].copy() for name in a if name.startswith("model_.looks.")}
        ),
    ),
    "looks negative": ("contours", lambda f, a: a["model_.looks.histograms"].fill(-1.0)),
    "no segments wanted": (
        "contours",
        lambda f, a: f["model_"]["fields"]["rule"]["fields"].update(n_segments=0),
    ),
    "planes of seven channels": (
        "contours",
        lambda f, a: f["features_"]["fields"].update(n_channels=7),
    ),
    "segments beyond": ("quantized", lambda f, a: a["model_.segment_of"].fill(3)),
    "segments negative": ("quantized", lambda f, a: a["model_.segment_of"].fill(-1)),
    "points infinite": ("quantized", lambda f, a: a["model_.centers.points"].fill(np.inf)),
    "points of other features": (
        "quantized",
        lambda f, a: a.update({"model_.centers.points": a["model_.centers.points"][:, 1:].copy()}),
    ),
    "an order": (
        "quantized",
        lambda f, a: f["model_"]["fields"]["centers"]["fields"].update(order=None),
    ),
    "other channels": ("quantized", lambda f, a: f["features_"]["fields"].update(n_channels=4)),
    "other number": ("quantized", lambda f, a: f.update(n_segments_=4)),
    "features gone": ("quantized", lambda f, a: f.update(features_=None)),
    "model a feature": ("quantized", lambda f, a: f.update(model_=f["features_"])),
    "even window": ("histogram", lambda f, a: f["features_"]["fields"].update(window=4)),
    "estimator unknown": ("landmarks", lambda f, a: inner(f).update({"class": "Popen"})),
    "estimator a list": (
        "landmarks",
        lambda f, a: f["model_"]["fields"]["estimator"].update(estimator=[]),
    ),
    "estimator of other rows": (
        "landmarks",
        lambda f, a: inner(f)["fitted"].update(n_features_in_=4),
    ),
    "estimator no clusterer": ("ksc", lambda f, a: inner(f).update({"class": "KernelFeatures"})),
    "weights of fewer": (
        "ksc",
        lambda f, a: a.update({"model_.weights": a["model_.weights"][:-1].copy()}),
    ),
}


@pytest.mark.parametrize(("case", "change"), CHANGES.values(), ids=CHANGES.keys())
def test_files_that_make_no_sense_are_refused(case: str, change: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"a\.mercer"):
        mercer.load(altered(case, change, tmp_path))


def test_many_centers_are_not_rebuilt_beyond_the_memory(tmp_path: Path) -> None:
    def many(fit: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["model_.centers.points"] = np.random.default_rng(0).random((20_000, 5))
        arrays["model_.segment_of"] = np.zeros(20_000, np.int64)

    with pytest.raises(BudgetError, match="max_memory"):
        mercer.load(altered("quantized", many, tmp_path), max_memory="100MB")


def test_a_segmenter_must_be_fitted(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        Segmenter().save(tmp_path / "a.mercer")


def test_the_command_line_says_that_it_labels_images(tmp_path: Path) -> None:
    fitted("quantized").save(tmp_path / "a.mercer")
    with pytest.raises(ValueError, match="labels images instead of rows"):
        load_model(tmp_path / "a.mercer", max_memory=None, n_jobs=None)
