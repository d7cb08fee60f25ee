"""Pipelines of scikit-learn's plain transformers in model files."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from typer.testing import CliRunner

import mercer
from lying import opened, sealed
from mercer import KernelFeatures, KernelKMeans, ModelFileError, SpectralClustering
from mercer.cli.app import app
from mercer.datasets import blobs

pytestmark = pytest.mark.filterwarnings("ignore::mercer.MercerWarning")


def dense(seed=0, n=200):
    X, _ = blobs(n, n_clusters=3, n_features=5, random_state=seed)
    return X * np.array([1.0, 10.0, 0.1, 3.0, 100.0])


def gaps():
    X = dense()
    X[::7, 0] = X[3::11, 2] = np.nan
    return X


def counts(seed=0):
    rng = np.random.default_rng(seed)
    rates = np.repeat(rng.gamma(0.3, 2.0, (3, 40)), 60, axis=0)
    return sp.csr_array(rng.poisson(rates + 0.02).astype(float))


def frame(seed=0):
    X = dense(seed)
    kind = np.array(["red", "green", "blue"])[
        np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.6]))
    ]
    size = np.arange(len(X)) % 3
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": kind, "size": size, "c": X[:, 2]})


def columns(**params):
    parts = [
        ("numbers", StandardScaler(), ["a", "b"]),
        ("words", OneHotEncoder(), ["kind", "size"]),
    ]
    return ColumnTransformer(parts, **params)


PIPELINES = {
    "standard": ([StandardScaler()], dense),
    "no mean": ([StandardScaler(with_mean=False)], counts),
    "robust": ([RobustScaler(quantile_range=(10.0, 90.0))], dense),
    "robust, sparse": ([RobustScaler(with_centering=False)], counts),
    "gaps": ([SimpleImputer(), StandardScaler()], gaps),
    "gaps, median": ([SimpleImputer(strategy="median"), RobustScaler()], gaps),
    "gaps, frequent": ([SimpleImputer(strategy="most_frequent")], gaps),
    "gaps, constant": ([SimpleImputer(strategy="constant", fill_value=2.5)], gaps),
    "gaps, float32": ([SimpleImputer()], lambda: gaps().astype(np.float32)),
    "gaps in columns": (
        [ColumnTransformer([("a", SimpleImputer(), [0, 2]), ("b", "passthrough", [3, 4])])],
        gaps,
    ),
    "range": ([MinMaxScaler((0, 2), clip=True)], dense),
    "unit": ([Normalizer(norm="l1")], dense),
    "pca": ([StandardScaler(), PCA(3, whiten=True, random_state=0)], dense),
    "pca by share": ([PCA(0.99)], dense),
    "text": ([TfidfTransformer(), TruncatedSVD(6, random_state=0), Normalizer()], counts),
    "tfidf": ([TfidfTransformer(sublinear_tf=True)], counts),
    "columns": ([columns(remainder="passthrough")], frame),
    "columns, dropped": ([columns(transformer_weights={"numbers": 2.0})], frame),
    "columns by number": (
        [
            ColumnTransformer(
                [
                    ("a", RobustScaler(), [0, 2]),
                    ("b", "passthrough", slice(3, 5)),
                    ("c", "drop", [1]),
                ],
            ),
            MinMaxScaler(),
        ],
        dense,
    ),
    "words": ([OneHotEncoder(drop="first", handle_unknown="ignore")], lambda: frame()[["kind"]]),
    "float32": ([StandardScaler()], lambda: dense().astype(np.float32)),
    "names": ([StandardScaler()], lambda: frame()[["a", "b", "c"]]),
}

every_pipeline = pytest.mark.parametrize(("steps", "rows"), PIPELINES.values(), ids=PIPELINES)


def fitted(steps, X):
    from sklearn.base import clone

    last = KernelKMeans(3, rank=20, noise=0.05, random_state=0)
    return make_pipeline(*map(clone, steps), last).fit(X)


@every_pipeline
def test_loading_gives_back_the_pipeline(steps, rows, tmp_path):
    X = rows()
    model = fitted(steps, X)
    mercer.save(model, tmp_path / "a.mercer")
    loaded = mercer.load(tmp_path / "a.mercer")
    assert type(loaded) is Pipeline
    assert [name for name, _ in loaded.steps] == [name for name, _ in model.steps]
    assert [type(step) for _, step in loaded.steps] == [type(step) for _, step in model.steps]
    assert np.array_equal(loaded.predict(X), model.predict(X))
    before, after = (some[:-1].transform(X) for some in (model, loaded))
    assert before.dtype == after.dtype
    assert (abs(before - after)).max() == 0
    assert np.array_equal(loaded[-1].outlier_scores(after), model[-1].outlier_scores(before))
    mercer.save(loaded, tmp_path / "b.mercer")
    assert np.array_equal(mercer.load(tmp_path / "b.mercer").predict(X), model.predict(X))


def test_a_pipeline_may_end_in_a_transformer(tmp_path):
    X = dense()
    model = make_pipeline(StandardScaler(), KernelFeatures(rank=10, random_state=0)).fit(X)
    mercer.save(model, tmp_path / "a.mercer")
    assert np.array_equal(mercer.load(tmp_path / "a.mercer").transform(X), model.transform(X))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (PolynomialFeatures(2), "PolynomialFeatures cannot be saved"),
        (FunctionTransformer(np.abs), "FunctionTransformer cannot be saved"),
        (OneHotEncoder(max_categories=2, handle_unknown="ignore"), "infrequent"),
        (SimpleImputer(missing_values=3), "only a SimpleImputer of numbers"),
        (SimpleImputer(add_indicator=True), "only a SimpleImputer of numbers"),
    ],
)
def test_other_steps_are_refused(step, words, tmp_path):
    model = make_pipeline(step, KernelKMeans(2, random_state=0)).fit(np.arange(40.0)[:, None] % 7)
    with pytest.raises(TypeError, match=words):
        mercer.save(model, tmp_path / "a.mercer")
    assert not (tmp_path / "a.mercer").exists()


def test_the_last_step_must_be_ours(tmp_path):
    from sklearn.cluster import KMeans

    model = make_pipeline(StandardScaler(), KMeans(2)).fit(dense())
    with pytest.raises(TypeError, match="pipelines of scikit-learn that end in one of them"):
        mercer.save(model, tmp_path / "a.mercer")


def _lie(tree, what):
    step = tree["steps"][0]
    if what == "class":
        step["class"] = "FunctionTransformer"
    elif what == "builtin":
        step["class"] = "eval"
    elif what == "missing":
        del step["fitted"]["scale_"]
    elif what == "unknown":
        step["fitted"]["transform"] = 3
    elif what == "param":
        step["params"]["func"] = "os.system"
    elif what == "width":
        step["n_features"] = 10**15
    elif what == "nested":
        tree["steps"] = [{**step, "class": "ColumnTransformer", "parts": [step] * 200}]
    elif what == "steps":
        tree["steps"] = {"a": 1}
    elif what == "last":
        tree["last"] = {"name": "x", "estimator": {"class": "Pipeline"}}
    elif what == "names":
        tree["steps"] = [step, step]
    elif what == "value":
        step["fitted"]["scale_"] = {"array": "last.cluster_centers_"}


@pytest.mark.parametrize(
    "what",
    [
        *("class", "builtin", "missing", "unknown", "param", "width", "nested", "steps", "last"),
        *("names", "value"),
    ],
)
def test_lies_are_refused(what, tmp_path):
    mercer.save(fitted([StandardScaler()], dense()), tmp_path / "a.mercer")
    manifest, arrays = opened((tmp_path / "a.mercer").read_bytes())
    _lie(manifest, what)
    (tmp_path / "b.mercer").write_bytes(sealed(manifest, arrays))
    with pytest.raises(ModelFileError):
        mercer.load(tmp_path / "b.mercer")


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, -1.0])
def test_scales_that_are_none_are_refused(bad, tmp_path):
    mercer.save(fitted([StandardScaler()], dense()), tmp_path / "a.mercer")
    manifest, arrays = opened((tmp_path / "a.mercer").read_bytes())
    arrays["steps.0.scale_"][2] = bad
    (tmp_path / "b.mercer").write_bytes(sealed(manifest, arrays))
    with pytest.raises(ModelFileError, match="scale_"):
        mercer.load(tmp_path / "b.mercer")


@pytest.mark.parametrize("scaler", ["standard", "robust", "unit"])
def test_the_scaler_of_the_command_line_is_in_the_model(scaler, tmp_path):
    X, rows = dense(), tmp_path / "rows.npy"
    np.save(rows, X)
    options = ["cluster", rows, "-k", 3, "--random-state", 0, "--scaler", scaler]
    _run(*options, "--out", tmp_path / "labels.npy", "--model", tmp_path / "a.mercer")
    labels = np.load(tmp_path / "labels.npy")
    model = mercer.load(tmp_path / "a.mercer")
    assert type(model) is Pipeline
    assert np.array_equal(model.predict(X), labels)
    _run("predict", tmp_path / "a.mercer", rows, "--out", tmp_path / "again.npy")
    assert np.array_equal(np.load(tmp_path / "again.npy"), labels)
    scaled = model[:-1].transform(X)
    alone = SpectralClustering(3, random_state=0).fit(scaled)
    assert mercer.metrics.adjusted_rand(alone.labels_, labels) > 0.99


@pytest.mark.parametrize("scaler", ["standard", "robust", "unit"])
def test_the_first_step_knows_the_columns(scaler, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = dense()
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.iloc[:, ::-1].to_csv(tmp_path / "reversed.csv", index=False)
    options = ["cluster", tmp_path / "rows.csv", "-k", 3, "--random-state", 0, "--scaler", scaler]
    _run(*options, "--out", tmp_path / "labels.npy", "--model", tmp_path / "a.mercer")
    labels, model = np.load(tmp_path / "labels.npy"), mercer.load(tmp_path / "a.mercer")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(model.predict(frame), labels)
        _run("predict", tmp_path / "a.mercer", tmp_path / "rows.csv", "--out", tmp_path / "b.npy")
    assert np.array_equal(np.load(tmp_path / "b.npy"), labels)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame.iloc[:, ::-1])
    with pytest.raises(AssertionError, match="same order"):
        _run(
            "predict", tmp_path / "a.mercer", tmp_path / "reversed.csv", "--out", tmp_path / "c.npy"
        )
    names = {column.name for profile in model[-1].profiles() for column in profile.columns}
    assert names <= set(frame.columns)


def test_the_default_scales_nothing(tmp_path):
    np.save(tmp_path / "rows.npy", dense())
    _run("cluster", tmp_path / "rows.npy", "-k", 3, "--model", tmp_path / "a.mercer")
    assert type(mercer.load(tmp_path / "a.mercer")) is SpectralClustering


def _run(*arguments):
    outcome = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)
