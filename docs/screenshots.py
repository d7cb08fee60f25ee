"""Makes the pictures of docs/report-page.md: real fits, a real browser.

    python docs/screenshots.py

needs ``mercer[all]``, Playwright and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

from mercer import KernelSpectralClustering, SpectralClustering
from mercer.datasets import rings, spirals
from mercer.image import SegmentationDisplay, Segmenter, landscape
from mercer.report import EmbeddingDisplay, SpectrumDisplay, TuningDisplay, write_page

IMAGES = Path(__file__).parent / "images"
DESK, PHONE = {"width": 1280, "height": 980}, {"width": 390, "height": 844}


def main() -> None:
    digits = load_digits(as_frame=True).data
    SpectralClustering(10, random_state=0).fit(digits)  # compiles; the next one is timed
    by_digits = SpectralClustering(10, random_state=0).fit(digits)
    many, _ = rings(100_000, random_state=0)
    by_search = KernelSpectralClustering("auto", random_state=0).fit(many)
    curls, _ = spirals(4000, random_state=0)
    by_graph = SpectralClustering(2, random_state=0).fit(curls)
    with tempfile.TemporaryDirectory() as folder:
        pages = {
            "report-desktop": (by_digits, digits, "Handwritten digits", DESK, "light"),
            "report-phone": (by_search, many, "rings.npy", PHONE, "light"),
            "report-dark": (by_graph, curls, "spirals.npy", DESK, "dark"),
        }
        with sync_playwright() as running:
            browser = running.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for name, (model, X, title, size, scheme) in pages.items():
                path = Path(folder) / f"{name}.html"
                write_page(path, model, X, title=title)
                shot = photograph(browser, path, viewport=size, color_scheme=scheme)
                keep(shot, IMAGES / f"{name}.png")
            browser.close()
    displays(by_digits, digits, by_search)


def photograph(browser: Any, path: Path, **options: Any) -> bytes:
    """The page with a row pointed at; on a phone, scrolled to the chart."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    if options["viewport"] == PHONE:
        page.locator("#map-title").scroll_into_view_if_needed()
        page.evaluate(
            """() => {
              const title = document.getElementById("map-title");
              scrollBy(0, title.getBoundingClientRect().top - 30);
            }"""
        )
    else:
        chart = page.locator("#scatter-chart").bounding_box()
        for step in range(12, 400):  # until a row is under the pointer
            page.mouse.move(chart["x"] + 100 + step, chart["y"] + chart["height"] / 2)
            if page.locator("#tip").is_visible():
                break
    page.wait_for_timeout(500)
    shot: bytes = page.screenshot()
    context.close()
    return shot


def displays(by_digits: Any, digits: Any, by_search: Any) -> None:
    """All four displays beside each other."""
    figure, panels = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    EmbeddingDisplay.from_estimator(by_digits, digits, ax=panels[0, 0])
    SpectrumDisplay.from_estimator(by_digits, ax=panels[0, 1])
    TuningDisplay.from_estimator(by_search, ax=panels[1, 0])
    image, _ = landscape(150, 225, random_state=0)
    segmenter = Segmenter(5, random_state=0).fit(image)
    SegmentationDisplay.from_estimator(segmenter, image, ax=panels[1, 1])
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    Image.open(buffer).convert("RGB").save(IMAGES / "displays.png", optimize=True)


def keep(png: bytes, path: Path) -> None:
    """A small file: 256 colours are enough for a page."""
    picture = Image.open(BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(path, optimize=True)


if __name__ == "__main__":
    main()
