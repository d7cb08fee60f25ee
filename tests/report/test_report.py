"""What `report_` tells: figures that hold, texts in which nothing can hide, files old and new."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from estimators import ESTIMATORS
from mercer import RBF, Cosine, KernelFeatures, KernelKMeans, SpectralClustering
from mercer._run.tally import Tally, kernel_values
from mercer.datasets import blobs, rings
from mercer.partitions.quality import measure
from mercer.report import Report, gather
from mercer.report.facts import number
from mercer.report.palette import DARK, LIGHT


@pytest.fixture(scope="module")
def X():
    return blobs(600, n_clusters=3, n_features=4, spread=0.5, random_state=0)[0]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_clusterer_tells_how_good_its_clusters_are(name, X):
    report = ESTIMATORS[name]().fit(X).report_
    assert report.quality.n_rows == 600
    assert 0.5 < report.quality.separation <= 1.0
    assert len(report.quality.cluster_separation) == 3
    assert report.stability == pytest.approx(1.0, abs=0.02)
    assert report.data.n_sampled == 600
    np.testing.assert_allclose([c.low for c in report.data.columns], X.min(axis=0))
    np.testing.assert_allclose([c.high for c in report.data.columns], X.max(axis=0))
    np.testing.assert_allclose([c.mean for c in report.data.columns], X.mean(axis=0))
    np.testing.assert_allclose([c.spread for c in report.data.columns], X.std(axis=0))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_report_goes_through_json_and_back(name, X):
    report = ESTIMATORS[name]().fit(X).report_
    assert Report.from_dict(json.loads(report.to_json())) == report


def test_reports_of_older_files_are_read(X):
    report = SpectralClustering(3, random_state=0).fit(X).report_
    old = json.loads(report.to_json())
    for name in ("gap", "data", "quality", "trust"):
        del old[name]
    for stage in old["stages"]:
        del stage["kernel_evaluations"]
    read = Report.from_dict(old)
    assert read.quality is None
    assert read.stability is None
    assert read.kernel_evaluations == 0
    assert read.eigenvalues == report.eigenvalues
    assert "separation" not in read.to_markdown().split("## Clusters")[0]
    assert "<table" in read._repr_html_()


def test_clear_clusters_score_higher_than_none():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    labels = np.repeat(np.arange(3), 200)
    clear = measure(centers[labels] + rng.normal(size=(600, 2)), labels, 3)
    cloud = rng.normal(size=(600, 2))
    vague = measure(cloud, (cloud[:, 0] > 0).astype(int) + 2 * (cloud[:, 1] > 0), 4)
    assert clear.separation > 0.8 > vague.separation


def test_separation_by_hand():
    Z = np.array([[0.0], [2.0], [10.0], [12.0]])
    quality = measure(Z, np.array([0, 0, 1, 1]), 2)
    # centres 1 and 11; a = 1, b = 11 or 9: 1 - 1/11 and 1 - 1/9
    assert quality.separation == pytest.approx(1 - (1 / 11 + 1 / 9) / 2)
    assert quality.cluster_separation == pytest.approx((quality.separation, quality.separation))


def test_one_cluster_and_missing_ones_have_no_figures():
    one = measure(np.zeros((5, 2)), np.zeros(5, np.intp), 1)
    assert one.separation is None
    some = measure(np.array([[0.0], [1.0], [9.0]]), np.array([0, 0, 2]), 3)
    assert some.cluster_separation[1] is None


def test_figures_do_not_touch_the_draws_of_the_fit(X):
    first = KernelKMeans(3, random_state=0).fit(X)
    rng = np.random.default_rng(0)
    second = KernelKMeans(3, random_state=rng).fit(X)
    np.testing.assert_array_equal(first.labels_, second.labels_)


def test_kernel_values_are_counted_by_matrix(X):
    before = kernel_values.total
    RBF(0.5).matrix(X[:7], X[:5])
    assert kernel_values.total - before == 35
    (0.5 * RBF(0.5) + 0.5 * Cosine()).matrix(X[:3], X[:2])
    assert kernel_values.total - before == 35 + 2 * 6  # each kernel of the sum


def test_threads_count_together():
    from concurrent.futures import ThreadPoolExecutor

    tally = Tally()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tally.add, [1] * 2000))
    assert tally.total == 2000


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
def test_stages_tell_kernel_values_for_any_number_of_threads():
    X = rings(20_000, random_state=0)[0]
    counts = [
        KernelKMeans(3, rank=16, random_state=0, n_jobs=n_jobs).fit(X).report_.kernel_evaluations
        for n_jobs in (1, 2)
    ]
    assert counts[0] == counts[1] >= 16 * 20_000


def test_numbers_have_as_many_digits_as_a_reader_needs():
    values = (0.0, 12.0, 0.084710686, 123.456, 333120.4, 3_160_000.7, 2e-9, None)
    assert " ".join(map(number, values)) == "0 12 0.08471 123.5 333,120 3,160,001 2e-09 –"


def test_sparse_rows_tell_how_full_they_are():
    X = sp.random(300, 40, density=0.1, random_state=0, format="csr")
    X.data += 0.1
    report = KernelFeatures(rank=8, random_state=0).fit(X).report_
    assert report.data.density == pytest.approx(0.1, abs=0.01)
    assert len(report.data.columns) == 20
    assert report.quality is None


def test_markdown_has_tables_in_which_names_stay_text():
    pd = pytest.importorskip("pandas")
    X = blobs(200, n_features=2, random_state=0)[0]
    table = pd.DataFrame(X, columns=["a|b\nc", "<b>*bold*</b>"])
    text = SpectralClustering(3, random_state=0).fit(table).report_.to_markdown()
    assert r"| a\|b c |" in text
    assert r"&lt;b&gt;\*bold\*&lt;/b&gt;" in text
    for title in ("# SpectralClustering", "## Clusters", "## Columns", "## Stages"):
        assert f"\n{title}" in f"\n{text}"
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in lines)


def test_the_card_of_a_notebook_is_escaped():
    X = blobs(100, random_state=0)[0]
    from dataclasses import replace

    report = replace(SpectralClustering(3, random_state=0).fit(X).report_, kernel="<script>x")
    assert "<script>" not in report._repr_html_()
    assert "&lt;script&gt;x" in report._repr_html_()


def test_colours_differ_for_everyone():
    """OKLab distances as seen with normal sight and with three deficiencies (Machado 2009)."""
    for palette in (LIGHT, DARK):
        assert len(set(palette)) == 12
        assert least_distance(palette[:8]) > 0.095
        assert least_distance(palette) > 0.055


SIGHTS = (
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
              [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
              [-0.011820, 0.042940, 0.968881]]),
    np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
              [0.004733, 0.691367, 0.303900]]),
)  # fmt: skip


def least_distance(palette) -> float:
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in palette])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_cones = np.array([[0.4122214708, 0.5363325363, 0.0514459929],
                         [0.2119034982, 0.6806995451, 0.1073969566],
                         [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
    to_lab = np.array([[0.2104542553, 0.7936177850, -0.0040720468],
                       [1.9779984951, -2.4285922050, 0.4505937099],
                       [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip
    least = np.inf
    for sight in SIGHTS:
        seen = np.cbrt(np.clip(linear @ sight.T, 0, 1) @ to_cones.T) @ to_lab.T
        distances = np.linalg.norm(seen[:, None] - seen, axis=2)
        least = min(least, distances[~np.eye(len(palette), dtype=bool)].min())
    return float(least)


def test_a_view_is_a_sample_with_labels_that_predict_gives():
    X = rings(8000, random_state=0)[0]
    model = SpectralClustering(3, random_state=0).fit(X)
    view = gather(model, X, seed=1)
    assert len(view.rows) == 5000
    np.testing.assert_array_equal(view.labels, model.labels_[view.rows])
    np.testing.assert_array_equal(view.maps[0].xy, X[view.rows])
    np.testing.assert_array_equal(gather(model, X, seed=1).rows, view.rows)
    assert [m.name for m in view.maps] == ["Data", "Embedding"]
    for group in view.groups:
        assert {int(view.labels[p]) for p in group.exemplars} == {group.number}


def test_many_clear_clusters_lie_apart_in_the_plane():
    X = blobs(1500, n_clusters=15, n_features=8, random_state=0)[0]
    view = gather(SpectralClustering(15, random_state=0).fit(X), X)
    embedding = next(shown for shown in view.maps if shown.name == "Embedding")
    middles = np.stack([embedding.xy[view.labels == c].mean(axis=0) for c in range(15)])
    spread = max(embedding.xy[view.labels == c].std(axis=0).max() for c in range(15))
    distances = np.linalg.norm(middles[:, None] - middles, axis=2) + 9 * np.eye(15)
    assert distances.min() > max(0.2, 4 * spread)


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda X: (SpectralClustering(3, random_state=0), sp.csr_array(np.abs(X))),
        lambda X: (SpectralClustering(3, random_state=0), X.astype(np.float32)),
        lambda X: (KernelFeatures(rank=8, random_state=0), X),
        lambda X: (
            KernelKMeans(3, kernel=RBF(0.01, columns="a") * RBF(0.01, columns="b"), random_state=0),
            {"a": X[:, :2], "b": X[:, 2:]},
        ),
        lambda X: (SpectralClustering(3, kernel="precomputed", random_state=0), RBF(0.05)(X)),
        lambda X: (KernelKMeans(3, random_state=0), X[:, :1]),
    ],
    ids=["sparse", "float32", "transformer", "blocks", "precomputed", "one column"],
)
def test_a_page_of_any_rows(make, X):
    pytest.importorskip("bokeh", reason="the report page needs Bokeh")
    from mercer.report import report_page

    model, rows = make(X)
    text = report_page(model.fit(rows), rows, title="any")
    assert "<h1" in text
    data = text.split('id="data">')[1].split("</script>")[0]
    assert json.loads(data, parse_constant=pytest.fail)["charts"]
