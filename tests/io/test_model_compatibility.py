"""Model files of earlier versions load, and say what they said then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer import load
from mercer.io.classes import ESTIMATORS

FOLDER = Path(__file__).parents[1] / "models"
EXPECTED: dict[str, list[Any]] = json.loads((FOLDER / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_old_file_says_what_it_said(name: str) -> None:
    model, X = load(FOLDER / f"{name}.mercer"), np.load(FOLDER / "rows.npy")
    if hasattr(model, "predict"):
        assert model.predict(X).tolist() == EXPECTED[name]
    else:
        np.testing.assert_allclose(model.transform(X), EXPECTED[name], rtol=1e-6, atol=1e-9)


def test_every_kind_of_estimator_has_an_old_file() -> None:
    kinds = {type(load(path)).__name__ for path in FOLDER.glob("*.mercer")}
    assert kinds == {*ESTIMATORS, "Pipeline"}, "run tests/models/make.py"
    assert {path.stem for path in FOLDER.glob("*.mercer")} == set(EXPECTED)


def test_old_files_are_small() -> None:
    assert all(path.stat().st_size < 20_000 for path in FOLDER.glob("*.mercer"))
