"""Exemplars and profiles of clusters."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import mercer
from estimators import ESTIMATORS
from lying import opened, sealed
from mercer import KernelKMeans, ModelFileError, SpectralClustering, StreamingKernelKMeans
from mercer.cli.app import app
from mercer.datasets import blobs, rings
from mercer.partitions.explanation import central_rows, column_effects

pytestmark = pytest.mark.filterwarnings("ignore::mercer.MercerWarning")

every_clusterer = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())


def table(seed=0, n=300):
    """Three groups that differ in one column each, and a column that tells nothing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 4)) * 0.3
    X[np.arange(n), y] += 6.0
    return pd.DataFrame(X, columns=["red", "green", "blue", "nothing"]), y


@every_clusterer
def test_profiles_name_what_distinguishes_a_cluster(make, tmp_path):
    X, y = table()
    model = make(3).fit(X)
    profiles = model.profiles()
    names = [profile.columns[0].name for profile in profiles]
    assert sorted(names) == ["blue", "green", "red"]
    for profile, rows in zip(profiles, model.exemplars_, strict=True):
        first = profile.columns[0]
        assert first.effect > 3
        assert first.mean > 5
        assert (model.labels_[rows] == profile.cluster).all()
        assert set(X.columns[y[rows]]) == {first.name}
        assert profile.weight == model.cluster_weights_[profile.cluster]
    model.save(tmp_path / "a.mercer")
    loaded = mercer.load(tmp_path / "a.mercer")
    assert loaded.profiles() == profiles
    assert np.array_equal(loaded.exemplars_, model.exemplars_)


def test_permuted_rows_have_the_same_exemplars():
    X, _ = rings(900, random_state=0)
    order = np.random.default_rng(0).permutation(len(X))
    first, second = (SpectralClustering(3, random_state=0).fit(rows) for rows in (X, X[order]))
    same = [set(rows) for rows in first.exemplars_]
    assert sorted(map(sorted, same)) == sorted(sorted(order[rows]) for rows in second.exemplars_)


def test_exemplars_are_not_outliers():
    X, _ = blobs(500, n_clusters=3, random_state=0)
    model = SpectralClustering(3, random_state=0).fit(np.r_[X, [[80.0, 80.0]]])
    assert model.outlier_scores_[model.exemplars_].max() < 1.5


def test_sparse_profiles_are_the_top_terms():
    rng = np.random.default_rng(0)
    rates = np.full((3, 30), 0.05)
    rates[np.arange(30) % 3, np.arange(30)] = 3.0
    y = np.arange(240) % 3
    X = sp.csr_array(rng.poisson(rates[y]).astype(float))
    model = KernelKMeans(3, kernel="cosine", random_state=0).fit(X)
    for profile in model.profiles():
        terms = {int(c.name.removeprefix("column ")) % 3 for c in profile.columns}
        assert len(terms) == 1
        assert all(c.effect > 0 for c in profile.columns)


def test_very_wide_sparse_tables_cost_what_they_hold():
    rows = np.arange(300)
    X = sp.csr_array((np.ones(300), (rows, 2**29 + rows % 3)), (300, 2**30))
    effects = column_effects(X, rows % 3, 3, np.ones(300), 8)
    assert effects.shape == (3, 3, 4)
    assert effects[:, 0, 0].tolist() == [2**29, 2**29 + 1, 2**29 + 2]


def test_effects_by_hand():
    X, labels = np.array([[0.0, 1.0], [2.0, 1.0], [10.0, 1.0], [12.0, 1.0]]), np.array([0, 0, 1, 1])
    effects = column_effects(X, labels, 2, np.ones(4), 2)
    assert effects[0, 0].tolist() == [0.0, -10.0, 1.0, 11.0]  # column, effect, mean, others
    assert effects[1, 0].tolist() == [0.0, 10.0, 11.0, 1.0]
    assert effects[:, 1, 0].tolist() == [-1.0, -1.0]  # a constant column distinguishes nobody
    twice = column_effects(np.repeat(X, 2, axis=0), np.repeat(labels, 2), 2, np.ones(8), 2)
    assert np.array_equal(column_effects(X, labels, 2, np.full(4, 2.0), 2), twice)


def test_central_rows_by_hand():
    space, labels = np.array([[0.0], [1.0], [1.2], [9.0], [5.0]]), np.array([0, 0, 0, 0, 1])
    assert central_rows(space, labels, 0, 2).tolist() == [2, 1]
    assert central_rows(space, labels, 1, 2).tolist() == [4]
    assert central_rows(space, labels, 2, 2).tolist() == []
    scores = np.array([1.0, 1.0, 5.0, 5.0, 1.0])
    assert central_rows(space, labels, 0, 2, scores=scores).tolist() == [1, 0]


def test_rows_of_other_tables_are_described_by_profiles_of_them():
    X, _ = table()
    stream = StreamingKernelKMeans(3, initial_size=100, random_state=0).partial_fit(X)
    with pytest.raises(AttributeError, match=r"profiles\(X\)"):
        _ = stream.exemplars_
    with pytest.raises(AttributeError, match=r"profiles\(X\)"):
        stream.profiles()
    assert {p.columns[0].name for p in stream.profiles(X)} == {"red", "green", "blue"}


@pytest.mark.parametrize(("place", "value"), [(0, 0.5), (0, -2.0), (3, 4.0), (3, 1.5), (4, np.nan)])
def test_files_that_lie_about_rows_and_columns_are_refused(place, value, tmp_path):
    KernelKMeans(3, random_state=0).fit(table()[0]).save(tmp_path / "a.mercer")
    manifest, arrays = opened((tmp_path / "a.mercer").read_bytes())
    arrays["explained_.table"][0, place] = value
    (tmp_path / "b.mercer").write_bytes(sealed(manifest, arrays))
    with pytest.raises(ModelFileError):
        mercer.load(tmp_path / "b.mercer")


def test_the_command_line_explains_at_80_columns(tmp_path):
    X, _ = table()
    KernelKMeans(3, random_state=0).fit(X).save(tmp_path / "a.mercer")
    shown = CliRunner().invoke(app, ["explain", str(tmp_path / "a.mercer")])
    assert shown.exit_code == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "exemplars: rows" in shown.stdout
    assert "red +" in shown.stdout
    outcome = CliRunner().invoke(app, ["explain", str(tmp_path / "a.mercer"), "--json"])
    found = json.loads(outcome.stdout)
    assert len(found["profiles"]) == len(found["exemplars"]) == 3
    assert found["report"]["n_rows"] == 300
