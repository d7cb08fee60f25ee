"""Other libraries' files, arrays and conventions: joblib, skops, array API, pandas, routing."""

from __future__ import annotations

import io
from typing import Any

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    KernelFeatures,
    KernelKMeans,
    KernelPCA,
    KernelSpectralClustering,
    SpectralClustering,
    StreamingKernelKMeans,
)
from mercer.datasets import rings

X = rings(300, random_state=0)[0]
CLUSTERERS = (
    SpectralClustering,
    KernelKMeans,
    KernelSpectralClustering,
    StreamingKernelKMeans,
)
EVERY = (*CLUSTERERS, KernelPCA, KernelFeatures)


def made(kind: Any) -> Any:
    if kind is KernelFeatures:
        return kind(rank=8, random_state=0)
    return kind(3 if kind in CLUSTERERS else 2, random_state=0)


def applied(model: Any, rows: Any) -> Any:
    return getattr(model, "predict" if hasattr(model, "predict") else "transform")(rows)


@pytest.mark.parametrize("kind", EVERY)
def test_joblib_gives_back_what_it_was_given(kind: Any) -> None:
    model = made(kind).fit(X)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    assert np.array_equal(applied(joblib.load(file), X), applied(model, X))


@pytest.mark.parametrize("kind", EVERY)
def test_skops_gives_back_what_it_was_given(kind: Any) -> None:
    """Only types of Mercer, numpy and scipy have to be trusted."""
    skops = pytest.importorskip("skops.io")
    model = made(kind).fit(X)
    data = skops.dumps(model)
    unknown = skops.get_untrusted_types(data=data)
    assert {name.partition(".")[0] for name in unknown} <= {"mercer", "numpy", "scipy"}
    assert np.array_equal(applied(skops.loads(data, trusted=unknown), X), applied(model, X))


@pytest.mark.parametrize("kind", EVERY)
def test_arrays_of_the_array_api_are_converted(kind: Any) -> None:
    strict = pytest.importorskip("array_api_strict")
    model, wanted = made(kind).fit(strict.asarray(X)), made(kind).fit(X)
    assert np.array_equal(applied(model, strict.asarray(X)), applied(wanted, X))
    assert isinstance(applied(model, strict.asarray(X)), np.ndarray)


def test_weights_may_be_of_the_array_api() -> None:
    strict = pytest.importorskip("array_api_strict")
    weights = np.arange(1.0, 301.0)
    given = made(KernelKMeans).fit(X, sample_weight=strict.asarray(weights))
    assert np.array_equal(given.labels_, made(KernelKMeans).fit(X, sample_weight=weights).labels_)


@pytest.mark.parametrize("kind", EVERY)
def test_tensors_on_the_cpu_are_converted(kind: Any) -> None:
    torch = pytest.importorskip("torch")
    model, wanted = made(kind).fit(torch.from_numpy(X)), made(kind).fit(X)
    assert np.array_equal(applied(model, torch.from_numpy(X)), applied(wanted, X))


@pytest.mark.parametrize("kind", EVERY)
def test_frames_come_out_where_they_are_wanted(kind: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"], index=np.arange(300) + 7)
    out = made(kind).set_output(transform="pandas").fit(frame).transform(frame)
    assert isinstance(out, pandas.DataFrame)
    assert list(out.index) == list(frame.index)


def test_weights_are_routed_through_a_pipeline() -> None:
    weights = np.where(np.arange(300) % 2, 1.0, 3.0)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            made(KernelKMeans).set_fit_request(sample_weight=True),
        ).fit(X, sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    wanted = made(KernelKMeans).fit(scaled, sample_weight=weights)
    assert np.array_equal(pipeline[-1].labels_, wanted.labels_)


@pytest.mark.parametrize("dtype", ["string", "str", "object"])
def test_names_of_columns_may_be_any_kind_of_text(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=pandas.Index(["a", "b"], dtype=dtype))
    model = made(KernelKMeans).fit(frame)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert np.array_equal(model.labels_, made(KernelKMeans).fit(X).labels_)


def test_text_is_refused_in_one_sentence() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"]).assign(c="x")
    with pytest.raises(ValueError, match="'c' of X to numbers: it holds text"):
        made(KernelKMeans).fit(frame)
    if hasattr(np.dtypes, "StringDType"):
        text = np.full((50, 2), "1.5", dtype=np.dtypes.StringDType())
        with pytest.raises(ValueError, match="not numeric; real numbers are wanted"):
            made(KernelKMeans).fit(text)
