"""The report page in a real browser: it works, it is alone, it reads well, nothing gets in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from browser import Seen, chromium
from mercer import KernelSpectralClustering, SpectralClustering
from mercer.datasets import blobs, rings
from mercer.report import gather, page, report_page
from mercer.trust.grade import Evidence, Trust

pytest.importorskip("bokeh", reason="the report page needs Bokeh")

EVIL = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'><svg onload=alert(3)>",
    "{{ 7*7 }} @v1 $index ${alert(4)}",
    "]]>--><!-- & \u2028 \\u003c",
]


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def fitted():
    X, _ = rings(3000, random_state=0)
    model = KernelSpectralClustering("auto", random_state=0).fit(X)
    return model, X


@pytest.fixture(scope="module")
def rings_page(fitted, tmp_path_factory):
    model, X = fitted
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_page(model, X, title="rings.npy"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def table_top(browser, rings_page):
    """The page of the rings on a desk, opened once."""
    seen = Seen(browser)
    seen.open(rings_page)
    yield seen
    seen.close()


@pytest.fixture
def desk(table_top):
    """The same page, as it was when it opened; afterwards, nothing went wrong."""
    shown = table_top.page
    shown.mouse.move(5, 5)
    if shown.locator("#all").is_visible():
        shown.locator("#all").click()
    shown.select_option("#map", "0")
    shown.select_option("#paint", "cluster")
    shown.evaluate(
        """() => {
          document.getElementById("rows-details").open = false;
          const models = [...Bokeh.documents[0].roots()[0].references()];
          models.find((m) => m.name === "rows").selected.indices = [];
        }"""
    )
    yield shown
    table_top.check()


@pytest.fixture
def opened(browser):
    """Opens a page; afterwards, that nothing went wrong is part of every test."""
    seen = []

    def open_page(path, **options):
        seen.append(Seen(browser, **options))
        return seen[-1].open(path)

    yield open_page
    for one in seen:
        one.check()
        one.close()


def place_of(shown, row):
    """Where on the screen a sampled row is drawn."""
    shown.locator("#scatter-chart").scroll_into_view_if_needed()
    chart = shown.locator("#scatter-chart").bounding_box()
    inside = shown.evaluate(
        """(i) => {
          const plot = Bokeh.documents[0].roots()[0];
          const view = [...Bokeh.index][0] ?? Object.values(Bokeh.index)[0];
          const rows = [...plot.references()].find((m) => m.name === "rows");
          const [x] = view.frame.x_scale.v_compute([rows.data.x[i]]);
          const [y] = view.frame.y_scale.v_compute([rows.data.y[i]]);
          return [x, y];
        }""",
        row,
    )
    return chart["x"] + inside[0], chart["y"] + inside[1]


def state(shown):
    """What the chart shows: filter, colours, marks."""
    return shown.evaluate(
        """() => {
          const models = [...Bokeh.documents[0].roots()[0].references()];
          const named = (name) => models.find((m) => m.name === name);
          const filter = named("shown").booleans;
          return {
            rows: named("rows").data.row.length,
            clusters: Array.from(named("rows").data.cluster),
            shown: filter === null ? null : Array.from(filter),
            colors: [...new Set(named("rows").data.color)],
            marks: Array.from(named("marks").data.text),
            x: Array.from(named("rows").data.x).slice(0, 5),
          };
        }"""
    )


def test_pointing_at_a_row_shows_it(desk):
    tip = desk.locator("#tip")
    assert tip.is_hidden()
    desk.mouse.move(*place_of(desk, 7))
    tip.wait_for(state="visible")
    assert "cluster" in tip.locator("strong").inner_text()
    hit = int(tip.locator("strong").inner_text().split(",")[0].removeprefix("Row "))
    near = np.hypot(*np.subtract(place_of(desk, hit), place_of(desk, 7)))
    assert near < 8  # a row under the pointer, if not this one then one on top of it
    assert set(tip.locator("dt").all_inner_texts()) == {"column 0", "column 1"}
    desk.mouse.move(5, 5)
    tip.wait_for(state="hidden")


def test_pressing_a_cluster_shows_its_rows_alone(desk):
    shown = desk
    before = state(shown)
    assert before["shown"] is None
    assert before["rows"] == 3000
    button = shown.locator("[data-cluster='1']")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    after = state(shown)
    assert after["shown"] == [c == 1 for c in before["clusters"]]
    assert after["marks"] == ["1"]
    assert "1,000 rows shown: 1,000 of cluster 1" in shown.locator("#status").inner_text()
    shown.locator("#all").click()
    assert state(shown)["shown"] is None


def test_all_is_done_by_keyboard(desk):
    shown = desk
    shown.locator("[data-cluster='2']").focus()
    shown.keyboard.press("Enter")
    assert sum(state(shown)["shown"]) == 1000
    shown.keyboard.press("Space")
    assert state(shown)["shown"] is None
    shown.locator("summary", has_text="Show as a table").focus()
    shown.keyboard.press("Enter")
    shown.locator("#rows-table tbody tr").nth(5).wait_for()
    assert shown.locator("#rows-table tbody tr").count() == 200
    assert "first 200 of 3,000" in shown.locator("#rows-table caption").inner_text()


def test_selected_rows_are_counted_and_listed(desk):
    shown = desk
    shown.evaluate(
        """() => {
          const models = [...Bokeh.documents[0].roots()[0].references()];
          models.find((m) => m.name === "rows").selected.indices = [3, 4, 5];
        }"""
    )
    shown.locator("#rows-details summary").click()
    shown.locator("#rows-table tbody tr").nth(2).wait_for()
    assert "3 rows selected" in shown.locator("#status").inner_text()
    rows = shown.locator("#rows-table tbody th").all_inner_texts()
    assert rows == ["3", "4", "5"]


def test_another_map_and_the_colours_of_kmeans(desk):
    shown = desk
    before = state(shown)
    shown.select_option("#map", label="Embedding")
    assert state(shown)["x"] != before["x"]
    shown.select_option("#paint", "peer")
    assert shown.locator("#peer-title").inner_text() == "Comparison with k-means"
    shown.locator("[data-cluster='0']").click()
    by_kmeans = sum(state(shown)["shown"])
    assert by_kmeans != 1000  # k-means cuts rings into pieces of a cake


def test_search_profiles_and_stages_are_there(desk):
    shown = desk
    titles = shown.locator("h2").all_inner_texts()
    for title in (
        "The rows",
        "Clusters",
        "What distinguishes each cluster",
        "Spectrum",
        "Comparison with k-means",
    ):
        assert title in titles
    assert "Tuning" in titles
    assert shown.locator(".heat.best").count() == 1
    assert "Kernel values" in shown.locator("#fit-title ~ div table thead").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_themes(opened, rings_page, scheme):
    shown = opened(rings_page, color_scheme=scheme)
    assert lightness(shown) < 0.1 if scheme == "dark" else lightness(shown) > 0.8
    assert least_contrast(shown) >= 4.5
    shown.locator("#theme").click()
    assert lightness(shown) > 0.8 if scheme == "dark" else lightness(shown) < 0.1
    assert least_contrast(shown) >= 4.5


def test_a_phone_needs_no_sideways_scrolling(opened, rings_page):
    shown = opened(rings_page, viewport={"width": 360, "height": 740}, has_touch=True)
    width = shown.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1] == 360
    small = shown.evaluate(
        """[...document.querySelectorAll("button, select, summary")]
             .map((e) => e.getBoundingClientRect().height).filter((h) => h && h < 24).length"""
    )
    assert small == 0  # fingers hit them


def test_landmarks_headings_and_labels(desk):
    shown = desk
    for landmark in ("header", "main", "footer"):
        assert shown.locator(landmark).count() == 1
    assert shown.locator("h1").count() == 1
    assert shown.evaluate("document.documentElement.lang") == "en"
    unnamed = shown.evaluate(
        """[...document.querySelectorAll("section")].filter((s) =>
             !document.getElementById(s.getAttribute("aria-labelledby"))).length"""
    )
    assert unnamed == 0
    loose = shown.evaluate(
        """[...document.querySelectorAll("select, button, [tabindex], [role=img]")]
             .filter((e) => !document.querySelector(".bk-root")?.contains(e))
             .filter((e) => !e.closest("label") && !e.textContent.trim()
                            && !e.getAttribute("aria-label")).length"""
    )
    assert loose == 0


def test_names_of_the_user_stay_text(opened, tmp_path):
    pd = pytest.importorskip("pandas")
    X, _ = blobs(400, n_clusters=3, n_features=len(EVIL), random_state=0)
    table = pd.DataFrame(X, columns=EVIL)
    model = SpectralClustering(3, random_state=0).fit(table)
    view = gather(model, table, title=EVIL[0])
    report = replace(model.report_, kernel=EVIL[1], warnings=(EVIL[2],), notes=(EVIL[3],))
    path = tmp_path / "evil.html"
    path.write_text(page(report, view), encoding="utf-8")
    shown = opened(path)
    assert shown.locator("h1").inner_text() == EVIL[0]
    assert shown.locator("img, svg[onload]").count() == 0
    assert EVIL[2] in shown.locator(".callout").inner_text()
    shown.mouse.move(*place_of(shown, 3))
    shown.locator("#tip").wait_for(state="visible")
    assert "<img src=x onerror=alert(2)>" in shown.locator("#tip").inner_text()
    shown.locator("#rows-details summary").click()
    shown.locator("#rows-table thead th").first.wait_for()  # the rows are drawn when asked for
    heads = shown.locator("#rows-table thead th").all_inner_texts()
    assert set(heads) >= {EVIL[0], EVIL[1]}


def test_a_script_that_got_in_would_not_run(opened, browser, rings_page, tmp_path):
    """The page's policy allows its own two scripts only."""
    path = tmp_path / "pierced.html"
    text = rings_page.read_text(encoding="utf-8")
    path.write_text(text.replace("</main>", "<script>window.pierced = 1</script></main>", 1))
    seen = Seen(browser)
    shown = seen.open(path)
    assert shown.evaluate("window.pierced") is None
    assert any("Content Security Policy" in complaint for complaint in seen.complaints)
    seen.close()


def test_many_clusters_and_a_grade_of_trust(opened, tmp_path):
    X, _ = blobs(2000, n_clusters=20, n_features=8, random_state=0)
    model = SpectralClustering(20, random_state=0).fit(X)
    item = Evidence("resampling", 0.75, "fair", "two <i>halves</i>")
    trust = Trust("fair", ("one <b>reason</b>",), (item,))
    report = replace(model.report_, trust=trust)
    path = tmp_path / "many.html"
    path.write_text(page(report, gather(model, X)), encoding="utf-8")
    shown = opened(path)
    assert shown.locator("[data-cluster]").count() == 20
    assert len(state(shown)["colors"]) == 13  # twelve, and one for all others
    assert shown.locator(".trust").inner_text().split() == ["Trust", "Fair"]
    assert "one <b>reason</b>" in shown.locator(".reasons").first.inner_text()
    assert "two <i>halves</i>" in shown.locator("#trust-title ~ div table").inner_text()


def written(tmp_path, model, X, **options):
    path = tmp_path / "page.html"
    path.write_text(report_page(model, X, **options), encoding="utf-8")
    return path


def spots(n_clusters, rows_each, seed=0):
    """Gaussians far from each other, and a few rows between them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_clusters * rows_each) % n_clusters
    X = (8.0 * rng.normal(size=(n_clusters, 10)))[labels] + rng.normal(size=(len(labels), 10))
    X[:5] += 6.0 * rng.normal(size=(5, 10))
    return X


def places(shown):
    """Rows, marked rows and numbers as the chart has them."""
    return shown.evaluate(
        """() => {
          const models = [...Bokeh.documents[0].roots()[0].references()];
          const data = (name) => models.find((m) => m.name === name).data;
          const xy = (name) => ({ x: Array.from(data(name).x), y: Array.from(data(name).y) });
          const visible = models.filter((m) => /Axis$/.test(m.type)).map((m) => m.visible);
          return { rows: xy("rows"), cluster: Array.from(data("rows").cluster), axes: visible,
                   outliers: xy("outliers"), exemplars: xy("exemplars"), marks: xy("marks") };
        }"""
    )


def test_twenty_blobs_are_spots_with_exemplars_and_outliers(opened, tmp_path):
    X = spots(20, 60)
    model = SpectralClustering(20, random_state=0).fit(X)
    shown = opened(written(tmp_path, model, X))
    seen = places(shown)
    xy, labels = np.stack([seen["rows"]["x"], seen["rows"]["y"]], axis=1), np.array(seen["cluster"])
    middles = np.stack([np.median(xy[labels == c], axis=0) for c in range(20)])
    radius = np.median(np.hypot(*(xy - middles[labels]).T))
    gaps = np.hypot(*(middles[:, None] - middles).T) + 1e9 * np.eye(20)
    assert gaps.min() > 4 * radius
    from_middle = np.hypot(*(middles - xy.mean(axis=0)).T)
    assert from_middle.min() < 0.5 * from_middle.max()  # the plane is filled: not a ring
    assert np.ptp(xy[:, 0]) / np.sqrt(20) < 12 * radius  # and spots are not lost in it
    assert seen["axes"] == [False, False]  # its coordinates mean nothing
    assert len(seen["exemplars"]["x"]) == 60
    assert len(seen["marks"]["x"]) == 20
    assert 3 <= len(seen["outliers"]["x"]) < 60
    rows = shown.locator("#outliers-title ~ div tbody th").all_inner_texts()
    assert {int(row) for row in rows[:3]} <= set(range(5))
    shown.locator("#show-outliers").uncheck()
    shown.locator("#show-exemplars").uncheck()
    seen = places(shown)
    assert seen["outliers"]["x"] == seen["exemplars"]["x"] == []
    shown.select_option("#map", label="Data")
    assert places(shown)["axes"] == [True, True]


def test_trust_is_a_number_with_reasons(opened, rings_page, fitted):
    shown = opened(rings_page)
    trust = fitted[0].report_.trust
    assert f"{100 * trust.score:.0f} % likely to be right" in (
        shown.locator(".trust").inner_text().replace("\u00a0", " ")
    )
    section = shown.locator("section[aria-labelledby=trust-title]").inner_text()
    assert "estimated probability" in section
    for reason in trust.reasons:
        assert reason in section


def test_layers_colour_the_rows_and_are_listed(opened, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(900) % 9
    centers = np.repeat(60.0 * rng.normal(size=(3, 5)), 3, axis=0) + 6.0 * rng.normal(size=(9, 5))
    X = centers[labels] + rng.normal(size=(900, 5))
    model = SpectralClustering(9, random_state=0).fit(X)
    assert len(model.layers_)
    shown = opened(written(tmp_path, model, X))
    assert "Layers" in shown.locator("h2").all_inner_texts()
    assert shown.locator("#layers-title ~ div tbody tr").count() == len(model.layers_)
    shown.select_option("#paint", "layer0")
    assert len(state(shown)["colors"]) == model.layers_[0].max() + 1
    assert len(state(shown)["marks"]) == model.layers_[0].max() + 1
    shown.locator("[data-cluster='2']").click()  # the list stays that of clusters
    assert sum(state(shown)["shown"]) == 100


def test_texts_are_shown_with_their_rows(opened, tmp_path):
    X, _ = blobs(300, n_clusters=3, random_state=0)
    model = SpectralClustering(3, random_state=0).fit(X)
    texts = [f"document {row} <b>about</b> " + "words " * 200 * (row == 0) for row in range(300)]
    shown = opened(written(tmp_path, model, X, texts=texts))
    shown.select_option("#map", label="Embedding")
    shown.mouse.move(*place_of(shown, 7))
    tip = shown.locator("#tip")
    tip.wait_for(state="visible")
    row = int(tip.locator("strong").inner_text().split(",")[0].removeprefix("Row "))
    assert f"document {row} <b>about</b>" in tip.inner_text()
    assert "Outlier score" in tip.inner_text()
    exemplars = shown.locator("[aria-label='Exemplars of clusters'] tbody tr").all_inner_texts()
    assert all("document" in line for line in exemplars)
    shown.locator("#rows-details summary").click()
    assert len(shown.locator("#rows-table tbody td.num").nth(1).inner_text()) <= 300
    with pytest.raises(ValueError, match="texts has 2 entries for 300 rows"):
        report_page(model, X, texts=["one", "two"])


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
def test_one_cluster_has_a_page(opened, tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 4))
    model = SpectralClustering(1, random_state=0).fit(X)
    shown = opened(written(tmp_path, model, X))
    assert shown.locator("[data-cluster]").count() == 1
    assert state(shown)["marks"] == ["0"]


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
def test_a_thousand_clusters_have_a_page(opened, tmp_path):
    X = spots(1000, 21)
    model = SpectralClustering(1000, random_state=0).fit(X)
    path = written(tmp_path, model, X)
    assert path.stat().st_size < 3_500_000
    shown = opened(path)
    assert shown.locator("[data-cluster]").count() == 1000
    assert "1,000" in shown.locator(".tiles").inner_text()
    assert len(state(shown)["colors"]) == 12  # which repeat
    assert state(shown)["marks"] == []
    shown.locator("[data-cluster='700']").click()
    assert state(shown)["marks"] == ["700"]


def test_a_million_rows_have_a_page(opened, fitted, tmp_path):
    model, X = fitted
    shown = opened(written(tmp_path, model, np.resize(X, (1_000_000, 2))))
    assert "5,000 of 1,000,000 rows" in shown.locator("#sampled").inner_text()
    sizes = shown.locator("[data-cluster] .size").all_inner_texts()
    assert sum(int(size.replace(",", "")) for size in sizes) == 1_000_000
    assert state(shown)["rows"] == 5000


def test_marks_are_switched_by_keyboard(desk):
    box = desk.locator("#show-exemplars")
    box.focus()
    assert len(places(desk)["exemplars"]["x"]) == 9
    desk.keyboard.press("Space")
    assert places(desk)["exemplars"]["x"] == []
    desk.keyboard.press("Space")
    assert len(places(desk)["exemplars"]["x"]) == 9


def test_sizes_are_those_of_this_file(opened, tmp_path):
    X, _ = blobs(9000, n_clusters=3, random_state=0)
    model = SpectralClustering(3, random_state=0).fit(X)
    other = X[: len(X) * 2 // 3][model.labels_[: len(X) * 2 // 3] != 2]
    assert len(other) < 5000
    for rows in (other, np.concatenate([other, other])):  # all are on the page, or a sample is
        shown = opened(written(tmp_path, model, rows))
        sizes = np.bincount(model.predict(rows), minlength=3)
        texts = shown.locator("[data-cluster] .size").all_inner_texts()
        assert [int(text.replace(",", "")) for text in texts] == sizes.tolist()
        tile = shown.locator(".tile").first.inner_text()
        assert f"{len(rows):,}" in tile
        assert "fitted on 9,000 rows" in tile
    shifted = X + 1000.0  # as many rows as those of the fit, but others
    view = gather(model, shifted)
    assert not view.is_of_fit
    assert gather(model, X).is_of_fit


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_is_white_and_shows_everything(opened, rings_page, scheme):
    shown = opened(rings_page, color_scheme=scheme)
    shown.emulate_media(media="print")
    shown.wait_for_timeout(200)
    assert lightness(shown) > 0.95
    assert least_contrast(shown) >= 4.5
    hidden = shown.evaluate(
        """[...document.querySelectorAll(".scroll, .clusters")]
             .filter((e) => e.getClientRects().length && e.scrollHeight > e.clientHeight + 2
                            && getComputedStyle(e).overflowY !== "visible").length"""
    )
    assert hidden == 0
    assert shown.locator("#theme").is_hidden()
    assert shown.locator(".controls").first.is_hidden()
    assert len(shown.pdf(format="A4")) > 10_000


def test_columns_of_very_different_scales_are_said(opened, tmp_path):
    X, _ = blobs(300, n_clusters=3, random_state=0)
    model = SpectralClustering(3, random_state=0).fit(X * [1.0, 500.0])
    shown = opened(written(tmp_path, model, X * [1.0, 500.0]))
    data = shown.locator("section[aria-labelledby=data-title]").inner_text()
    assert "times that of" in data
    assert "--scaler standard" in data


def test_segments_come_with_pictures(opened, tmp_path):
    pytest.importorskip("skimage", reason="pictures of segments need scikit-image")
    from mercer.image import Segmenter, landscape

    image, _ = landscape(80, 120, random_state=0)
    segmenter = Segmenter(4, random_state=0).fit(image)
    path = tmp_path / "segments.html"
    path.write_text(report_page(segmenter, image, title="landscape.png"), encoding="utf-8")
    shown = opened(path)
    assert shown.locator("figure img").count() == 2
    assert shown.evaluate("document.querySelector('figure img').naturalWidth") == 120
    assert shown.locator("[data-cluster]").first.inner_text().startswith("Segment 1")


LUMINANCE = """
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1); context.fillStyle = color; context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
  };
  const luminance = (color) => {
    const [r, g, b] = rgba(color);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
"""


def lightness(shown) -> float:
    return shown.evaluate(
        f"""() => {{ {LUMINANCE}
          return luminance(getComputedStyle(document.body).backgroundColor);
        }}"""
    )


def least_contrast(shown) -> float:
    """The lowest contrast of any text with what is behind it."""
    return shown.evaluate(
        f"""() => {{ {LUMINANCE}
          const behind = (e) => {{
            for (; e; e = e.parentElement) {{
              const color = getComputedStyle(e).backgroundColor;
              if (rgba(color)[3] > 250) return luminance(color);
            }}
            return 1;
          }};
          let least = 21;
          for (const e of document.querySelectorAll("body *")) {{
            const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
            if (!own || /SCRIPT|STYLE/.test(e.tagName) || !e.getClientRects().length) continue;
            const [a, b] = [luminance(getComputedStyle(e).color), behind(e)];
            least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
          }}
          return least;
        }}"""
    )


def test_the_page_is_small_and_the_same_each_time(fitted):
    model, X = fitted
    view = gather(model, X, title="rings")
    text = page(model.report_, view)
    assert text == page(model.report_, view)
    assert len(text.encode()) < 2_500_000
    many = np.resize(X, (1_000_000, 2))
    text = page(model.report_, gather(model, many))
    assert "5,000 of 1,000,000 rows" in text
    assert len(text.encode()) < 3_000_000
