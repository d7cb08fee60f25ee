"""The grade of a fit: evidence by hand, good fits left alone, failures called out."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import mercer
from estimators import ESTIMATORS
from mercer import KernelKMeans, MercerWarning, SpectralClustering
from mercer.datasets import rings
from mercer.partitions.evidence import agreement, chance_cut, cut_share, loose_share, nearest_edges
from mercer.report import Evidence, Report, Trust
from mercer.trust.grade import Measurements, judge

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())


def line(n=40):
    """Points of two segments, and minus their squared distances."""
    x = np.r_[np.arange(n / 2), 1000 + np.arange(n / 2)]
    return -((x[:, None] - x) ** 2)


def two_halves(n=40):
    return np.repeat([0, 1], n // 2)


def test_nearest_edges_are_those_of_a_sort():
    rng = np.random.default_rng(0)
    alike = rng.normal(size=(50, 50))
    for row, found in enumerate(nearest_edges(alike, 5)):
        order = [j for j in np.argsort(-alike[row]) if j != row]
        assert set(found) == set(order[:5])


def test_borders_between_segments_cut_nothing_and_random_labels_cut_as_chance_would():
    edges = nearest_edges(line(400), 3)
    assert cut_share(edges, two_halves(400)) == 0.0
    labels = np.random.default_rng(0).integers(0, 4, 400)
    assert cut_share(edges, labels) == pytest.approx(1.0, abs=0.1)
    assert cut_share(edges, np.zeros(400, int)) == 0.0


def test_cells_around_random_rows_cut_little_but_not_nothing():
    alike = line(400)
    edges = nearest_edges(alike, 3)
    assert 0.0 < chance_cut(alike, edges, 8, rng=np.random.default_rng(0)) < 0.2


def test_a_cluster_of_two_segments_is_half_loose():
    edges = nearest_edges(line(), 3)
    assert loose_share(edges, two_halves()) == 0.0
    assert loose_share(edges, np.zeros(40, int)) == 0.5


def test_agreement_of_halves():
    fixed = two_halves()
    assert agreement(lambda ids, rng: fixed, 40) == 1.0
    assert abs(agreement(lambda ids, rng: rng.integers(0, 2, 40), 40)) < 0.2


def test_the_worst_evidence_is_the_grade_and_says_what_to_change():
    trust = judge(Measurements(3, stability=0.9, n_halved=2000, borders=0.9, pieces=0.0))
    assert trust.grade == "poor"
    assert [e.grade for e in trust.evidence if e.name == "borders"] == ["poor"]
    assert len(trust.worst()) == 1
    assert "try fewer" in trust.worst()[0]
    assert judge(Measurements(3, stability=0.9, borders=0.1, pieces=0.0)).grade == "good"
    assert judge(Measurements(3, stability=0.4, n_halved=2000)).grade == "poor"
    clear = Measurements(3, stability=0.4, n_halved=2000, borders=0.1, pieces=0.0)
    assert judge(clear).grade == "fair"
    assert judge(Measurements(3, stability=0.4, n_halved=200)).grade == "fair"  # few rows: lenient


@every_estimator
def test_far_blobs_are_good_and_nothing_is_said(make):
    X, _ = make_blobs(600, 3, centers=np.eye(3) * 20, random_state=0)
    trust = make(3).fit(X).report_.trust
    assert {e.name for e in trust.evidence if e.grade == "poor"} == set()
    main = {e.name: e.grade for e in trust.evidence}
    assert main["resampling"] == main["borders"] == main["pieces"] == "good"


@every_estimator
def test_clusters_of_noise_are_called_out(make):
    X = np.random.default_rng(0).normal(size=(1500, 10))
    with pytest.warns(MercerWarning):
        model = make(6).fit(X)
    assert model.report_.trust.grade == "poor"


@pytest.mark.parametrize("name", ["SpectralClustering-cholesky", "KernelKMeans"])
def test_gamma_1_on_blobs_in_100_dimensions_is_called_out(name):
    X, _ = make_blobs(600, 100, centers=5, random_state=0)
    with pytest.warns(MercerWarning):
        model = ESTIMATORS[name](5, gamma=1.0).fit(X)
    assert model.report_.trust.grade == "poor"


@pytest.mark.parametrize("k", [2, 24])
def test_far_too_few_or_too_many_clusters_are_called_out(k):
    X, _ = make_blobs(2000, 10, centers=6, cluster_std=2.0, random_state=2)
    with pytest.warns(MercerWarning):
        model = KernelKMeans(k, random_state=0).fit(X)
    assert model.report_.trust.grade == "poor"


def test_the_diagnosis_draws_nothing_and_changes_no_label(monkeypatch):
    X, _ = make_blobs(500, 4, centers=4, cluster_std=3.0, random_state=0)
    for name, make in ESTIMATORS.items():
        model = make(4).fit(X)
        module = __import__(type(model).__module__, fromlist=["diagnose"])
        with monkeypatch.context() as patch:
            patch.setattr(module, "diagnose", lambda fit, problem, record: None)
            blind = make(4).fit(X)
        assert np.array_equal(model.labels_, blind.labels_), name
        assert make(4).fit(X).report_.trust == model.report_.trust


def test_trust_is_of_the_rows_not_of_their_order_or_threads():
    X, _ = make_blobs(500, 4, centers=4, cluster_std=3.0, random_state=0)
    order = np.random.default_rng(0).permutation(500)
    trust = SpectralClustering(4, random_state=0).fit(X).report_.trust
    assert SpectralClustering(4, random_state=0, n_jobs=2).fit(X).report_.trust == trust
    assert SpectralClustering(4, random_state=0).fit(X[order]).report_.trust.grade == trust.grade


def test_files_are_graded_like_arrays(tmp_path):
    X, _ = rings(2000, random_state=0)
    np.save(tmp_path / "rings.npy", X)
    for model in (SpectralClustering(3, random_state=0), KernelKMeans(3, random_state=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = model.fit(X).report_.trust
            two = model.fit(tmp_path / "rings.npy").report_.trust
        assert one.grade == two.grade
        assert [e.value for e in one.evidence] == pytest.approx([e.value for e in two.evidence])


def test_one_cluster_has_no_grade():
    with pytest.warns(MercerWarning, match="n_clusters=1"):
        assert KernelKMeans(1).fit(rings(200, random_state=0)[0]).report_.trust is None


def test_trust_is_spoken_saved_and_read_back(tmp_path):
    X, _ = rings(800, random_state=0)
    model = SpectralClustering(3, random_state=0).fit(X)
    assert f"trust          {model.report_.trust.grade}" in str(model.report_)
    model.save(tmp_path / "model.mercer")
    assert mercer.load(tmp_path / "model.mercer").report_.trust == model.report_.trust
    told = json.loads(model.report_.to_json())
    assert Report.from_dict(told).trust == model.report_.trust
    told.pop("trust")
    assert Report.from_dict(told).trust is None  # files of before
    later = {"grade": "good", "evidence": [], "reasons": [], "colour": "blue"}
    assert Trust.from_dict(later) == Trust("good", (), ())
    assert (
        Evidence("gap", 0.5, "good", "")
        in Trust.from_dict(
            later
            | {"evidence": [{"name": "gap", "value": 0.5, "grade": "good", "meaning": "", "x": 1}]}
        ).evidence
    )
