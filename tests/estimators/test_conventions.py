"""scikit-learn's conventions: frames in and out, names, pipelines, searches, joblib, verbosity."""

from __future__ import annotations

from importlib.resources import files

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators import ESTIMATORS
from mercer import KernelFeatures, KernelKMeans, KernelPCA, SpectralClustering
from mercer.datasets import blobs, ring_and_core, rings

pd = pytest.importorskip("pandas", reason="frames need pandas")

TRANSFORMERS = {
    "KernelFeatures": lambda: KernelFeatures(rank=8, random_state=0),
    "KernelPCA": lambda: KernelPCA(3, random_state=0),
    **{name: make for name, make in ESTIMATORS.items() if name.count("-") == 0},
}


@pytest.fixture(scope="module")
def frame():
    X, _ = blobs(150, n_clusters=3, n_features=3, random_state=0)
    return pd.DataFrame(X, columns=["height", "width", "depth"])


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_set_output_gives_frames_with_names(name, frame):
    model = TRANSFORMERS[name]().set_output(transform="pandas")
    out = model.fit(frame).transform(frame)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == list(model.get_feature_names_out())
    prefix = type(model).__name__.lower()
    assert all(column.startswith(prefix) for column in out.columns)
    assert list(out.index) == list(frame.index)
    plain = clone(TRANSFORMERS[name]()).fit(frame).transform(frame)
    np.testing.assert_array_equal(out.to_numpy(), plain)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_polars_frames_go_in_and_out(name, frame):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    rows = pl.DataFrame({column: frame[column].to_numpy() for column in frame})
    model = TRANSFORMERS[name]().set_output(transform="polars").fit(rows)
    assert isinstance(model.transform(rows), pl.DataFrame)
    assert list(model.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_names_are_kept_and_checked(name, frame):
    model = TRANSFORMERS[name]().fit(frame)
    assert list(model.feature_names_in_) == ["height", "width", "depth"]
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="same order"):
        model.transform(frame[["width", "height", "depth"]])
    with pytest.raises(ValueError, match=r"unseen at fit time[\s\S]*weight"):
        model.transform(frame.rename(columns={"width": "weight"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.transform(frame.to_numpy())


def test_a_pipeline_of_features_and_a_linear_model():
    X, y = ring_and_core(600, random_state=0)
    model = make_pipeline(
        StandardScaler(), KernelFeatures(rank=64, random_state=0), RidgeClassifier()
    )
    assert model.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.98
    names = model[:-1].get_feature_names_out()
    assert len(names) == 64


def test_a_pipeline_that_ends_in_a_clusterer():
    X, y = rings(900, random_state=0)
    model = make_pipeline(StandardScaler(), SpectralClustering(3, random_state=0))
    labels = model.fit_predict(X * [1.0, 100.0])
    assert adjusted_rand_score(y, labels) == 1.0
    np.testing.assert_array_equal(model.predict(X * [1.0, 100.0]), labels)


def test_a_grid_search_over_kernel_and_rank():
    X, y = ring_and_core(300, random_state=0)
    pipeline = make_pipeline(KernelFeatures(random_state=0), RidgeClassifier())
    grid = {"kernelfeatures__rank": [2, 32], "kernelfeatures__gamma": [0.01, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["kernelfeatures__rank"] == 32
    assert search.best_score_ > 0.95


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
def test_a_grid_search_over_clusters_scored_by_the_model_itself():
    """`score` is minus the inertia: more clusters score higher, as with scikit-learn's KMeans."""
    X, _ = blobs(240, n_clusters=3, random_state=0)
    model = KernelKMeans(gamma=0.1, random_state=0)  # "auto" depends on the number of clusters
    search = GridSearchCV(model, {"n_clusters": [2, 3]}, cv=3).fit(X)
    assert search.best_params_ == {"n_clusters": 3}


def test_a_grid_search_in_processes():
    X, y = ring_and_core(200, random_state=0)
    pipeline = make_pipeline(KernelFeatures(rank=16, random_state=0), RidgeClassifier())
    grid = {"kernelfeatures__gamma": [0.1, 1.0]}
    with joblib.parallel_config("threading", n_jobs=2):
        here = GridSearchCV(pipeline, grid, cv=3, n_jobs=2).fit(X, y)
    alone = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    np.testing.assert_array_equal(
        here.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("name", ["KernelKMeans", "SpectralClustering"])
def test_joblib_says_how_many_threads(name):
    X, _ = rings(20_000, random_state=0)
    alone = ESTIMATORS[name]().fit(X).labels_
    with joblib.parallel_config("threading", n_jobs=2):
        together = ESTIMATORS[name]().fit(X).labels_
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_verbose_writes_stages_to_standard_error_only(name, frame, capsys):
    TRANSFORMERS[name]().set_params(verbose=1).fit(frame)
    told = capsys.readouterr()
    assert told.out == ""
    assert "mercer: check" in told.err
    TRANSFORMERS[name]().fit(frame)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_models_are_pickled_by_joblib_and_cloned(name, frame, tmp_path):
    model = TRANSFORMERS[name]().fit(frame)
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    assert loaded.report_ == model.report_
    assert clone(model).get_params().keys() == model.get_params().keys()


def test_types_are_published():
    assert (files("mercer") / "py.typed").is_file()
