"""The grade of a fit: evidence by hand, good fits left alone, failures called out."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs
from sklearn.preprocessing import StandardScaler

import mercer
from estimators import ESTIMATORS
from mercer import KernelKMeans, MercerWarning, SpectralClustering
from mercer.datasets import rings
from mercer.metrics import adjusted_rand
from mercer.partitions.evidence import agreement, cut_share, loose_share
from mercer.partitions.examined import ExaminedRows
from mercer.report import Evidence, Report, Trust
from mercer.trust.grade import Measurements, judge
from mercer.trust.score import GOOD, POOR, TERMS, contributions, probability

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())


def line(n=40):
    """Points of two segments."""
    x = np.r_[np.arange(n / 2), 1000 + np.arange(n / 2)]
    return ExaminedRows(((x[:, None] - x) ** 2).astype(np.float32), np.ones(n))


def nearest_edges(rows, q):
    return rows.near[:, :q]


def two_halves(n=40):
    return np.repeat([0, 1], n // 2)


def test_near_rows_are_those_of_a_sort():
    x = np.random.default_rng(0).normal(size=(300, 3))
    squared = ((x[:, None] - x) ** 2).sum(axis=2).astype(np.float32)
    for row, found in enumerate(ExaminedRows(squared, np.ones(300)).near):
        order = [j for j in np.argsort(squared[row]) if j != row]
        assert list(found) == order[: len(found)]


def test_borders_between_segments_cut_nothing_and_random_labels_cut_as_chance_would():
    edges = nearest_edges(line(400), 3)
    assert cut_share(edges, two_halves(400)) == 0.0
    labels = np.random.default_rng(0).integers(0, 4, 400)
    assert cut_share(edges, labels) == pytest.approx(1.0, abs=0.1)
    assert cut_share(edges, np.zeros(400, int)) == 0.0


def test_cells_around_random_rows_cut_little_but_not_nothing():
    rows = line(400)
    assert 0.0 < rows.chance_share(rows.near[:, :3], 8) < 0.2


@pytest.mark.parametrize("n_features", [2, 10])
def test_walks_by_shift_and_invert_are_those_of_a_dense_solver(n_features):
    X = np.random.default_rng(0).normal(size=(600, n_features))
    squared = np.square(X[:, None] - X).sum(axis=2).astype(np.float32)
    rows = ExaminedRows(squared, np.ones(600))
    one, other = (rows.walk(10, 6, solver=solver) for solver in ("auto", "inverted"))
    assert one.solver != other.solver
    np.testing.assert_allclose(one.values, other.values, atol=1e-6)
    labels = [rows.spectral_labels(walk, 6) for walk in (one, other)]
    assert adjusted_rand(*labels) > 0.999


def test_a_cluster_of_two_segments_is_half_loose():
    edges = nearest_edges(line(), 3)
    assert loose_share(edges, two_halves()) == 0.0
    assert loose_share(edges, np.zeros(40, int)) == 0.5


def test_agreement_of_halves():
    fixed = two_halves()
    assert agreement(lambda ids, rng: fixed, 40, 0) == 1.0
    assert abs(agreement(lambda ids, rng: rng.integers(0, 2, 40), 40, 0)) < 0.2


def others(value):
    return dict.fromkeys(["linkage", "ward", "neighbors", "wide neighbors"], value)


def test_the_score_is_the_grade_and_reasons_are_ranked_by_what_they_cost():
    good = judge(Measurements(3, agreements=others(1.0), borders=0.05, stability=0.3))
    assert good.grade == "good"
    assert good.score >= GOOD
    assert good.reasons == ()
    assert str(good).endswith("% likely to be right: the ARI with Genie linkage is 1.00")
    poor = judge(Measurements(3, agreements=others(0.1) | {"ward": 0.7}, borders=0.9))
    assert poor.grade == "poor"
    assert poor.score < POOR
    assert "Ward's method" in poor.reasons[-1]
    assert len(poor.worst()) == 2
    assert str(poor).startswith(f"poor, {100 * poor.score:.0f} % likely to be right: ")


@pytest.mark.parametrize(
    ("borders", "words"),
    [(0.6, "60 % as often as random"), (1.17, "more often than random boundaries (by 17 %)")],
)
def test_cut_neighbours_are_compared_with_random_boundaries(borders, words):
    (reason,) = (r for r in judge(Measurements(3, borders=borders)).reasons if "split" in r)
    assert words in reason


def test_more_agreement_and_fewer_cut_neighbours_never_lower_the_score():
    for name, term in TERMS.items():
        low, high = (probability({name: value}) for value in (term.usual - 0.3, term.usual + 0.3))
        assert (low < high) == (name != "borders")
    assert probability({}) == pytest.approx(probability({n: t.usual for n, t in TERMS.items()}))
    assert contributions({"unknown": 3.0}) == {}


def test_an_empty_cluster_or_a_blind_kernel_is_poor_whatever_else_is_good():
    fine = {"agreements": others(1.0), "borders": 0.0}
    assert judge(Measurements(3, smallest=0.0, **fine)).grade == "poor"
    blind = judge(Measurements(3, similarities=(1e-9, 0.0, 0.0), **fine))
    assert blind.grade == "poor"
    assert "gamma" in blind.reasons[0]


def test_advice_fits_the_data():
    bad = {"agreements": others(0.2), "borders": 0.9}
    assert not any("scale" in reason for reason in judge(Measurements(2, **bad)).reasons)
    assert not any("fewer" in reason for reason in judge(Measurements(2, **bad)).reasons)
    uneven = judge(Measurements(2, spreads=100.0, **bad))
    assert any("scale the columns" in reason for reason in uneven.reasons)


def test_one_column_that_decides_is_at_most_fair():
    X = load_wine().data
    unscaled = SpectralClustering(3, random_state=0).fit(X).report_.trust
    assert unscaled.grade == "fair"
    assert any("scale the columns" in reason for reason in unscaled.reasons)
    scaled = SpectralClustering(3, random_state=0).fit(StandardScaler().fit_transform(X))
    assert scaled.report_.trust.grade == "good"


def test_a_fair_grade_has_a_reason():
    fair = judge(Measurements(30))
    assert fair.grade == "fair"
    assert fair.reasons


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


@pytest.mark.parametrize("d", [2, 8])
def test_a_few_rows_far_away_may_be_a_cluster(d):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(2000, d)), 12 + 0.3 * rng.normal(size=(5, d))])
    model = SpectralClustering(2, random_state=0).fit(X)
    assert np.bincount(model.labels_).tolist() == [2000, 5]
    assert model.report_.trust.grade == "good"


def test_stray_rows_are_not_taken_for_a_cluster():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(400, 2)), [[30, 0], [0, 40], [-50, 3]]])
    labels = np.r_[np.zeros(400, int), np.ones(3, int)]
    squared = np.square(X[:, None] - X).sum(axis=2).astype(np.float32)
    rows = ExaminedRows(squared, np.ones(403))
    assert not rows.set_apart(labels, 2).any()
    assert not rows.set_apart(np.r_[labels[:-1], 0], 2).any()  # too few to tell
    X[-3:] = [[30, 0], [30, 1], [31, 0]]
    close = ExaminedRows(np.square(X[:, None] - X).sum(axis=2).astype(np.float32), np.ones(403))
    assert close.set_apart(labels, 2).tolist() == [False, True]


def test_splitting_the_crowd_instead_of_the_few_rows_is_called_out():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(2000, 8)), 12 + 0.3 * rng.normal(size=(5, 8))])
    with pytest.warns(MercerWarning):
        model = KernelKMeans(2, random_state=0).fit(X)
    assert np.bincount(model.labels_).min() > 500
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
