"""Warnings point at the line of the user's that called Mercer."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators import ESTIMATORS
from mercer import KernelPCA, MercerWarning
from mercer._run.warn import warn
from mercer.image import Segmenter

X = np.random.default_rng(0).normal(size=(60, 2))
CALLS = {
    "fit": lambda model: model.fit(X),
    "fit_predict": lambda model: model.fit_predict(X),
    "pipeline": lambda model: make_pipeline(StandardScaler(), model).fit_predict(X),
}


def places(function, *arguments, category=MercerWarning) -> set[str]:
    """The files that the warnings of a call point at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments)
    return {warning.filename for warning in caught if issubclass(warning.category, category)}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("call", CALLS)
def test_a_fit_warns_about_the_line_that_called_it(name: str, call: str) -> None:
    assert places(CALLS[call], ESTIMATORS[name](n_clusters=1)) == {__file__}


def test_predict_warns_about_the_line_that_called_it() -> None:
    import pandas as pd

    model = ESTIMATORS["KernelKMeans"]().fit(pd.DataFrame(X, columns=["a", "b"]))
    assert places(model.predict, X, category=UserWarning) == {__file__}


def test_transformers_and_segmenters_too() -> None:
    assert places(KernelPCA(50, rank=60).fit_transform, np.round(X[:, :1])) == {__file__}
    picture = np.random.default_rng(0).integers(0, 255, (12, 12, 3), np.uint8)
    assert places(Segmenter(n_segments=1).fit, picture) == {__file__}


def test_a_warning_from_a_thread_has_a_place() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert places(lambda: pool.submit(warn, "said").result())


def test_control_characters_of_names_do_not_reach_the_terminal() -> None:
    with pytest.warns(MercerWarning, match=r"^a\\x1b\[31mname$"):
        warn("a\x1b[31mname")
