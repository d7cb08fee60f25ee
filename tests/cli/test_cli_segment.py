"""`mercer segment`: pictures and labels of the API, many files, bad ones among them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mercer.cli.app import app
from mercer.image import Segmenter, draw_overlay, landscape, read_image, write_image

pytest.importorskip("skimage")


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"photo{number}.png" for number in range(3)]
    for number, file in enumerate(files):
        write_image(file, landscape(40, 60, random_state=number)[0])
    return files


@pytest.mark.parametrize("overlay", ["boundaries", "average", "labels"])
def test_one_image_gives_the_labels_and_picture_of_the_api(
    overlay: Any, photos: list[Path], tmp_path: Path
) -> None:
    out, labels = tmp_path / "out.png", tmp_path / "labels.png"
    result = run(
        *("segment", photos[0], "-k", 4, "--seed", 0, "--overlay", overlay),
        *("-o", out, "--labels", labels),
    )
    assert result.exit_code == 0, result.output
    assert "4 segments" in result.stdout
    image, _ = read_image(photos[0])
    wanted = Segmenter(4, random_state=0).fit(image).labels_
    np.testing.assert_array_equal(read_image(labels)[0], wanted)
    np.testing.assert_array_equal(read_image(out)[0], draw_overlay(image, wanted, overlay))


def test_options_reach_the_segmenter(photos: list[Path], tmp_path: Path) -> None:
    labels = tmp_path / "labels.npy"
    flags = "-k 3 --features labxy --radius 40 --gamma 0.001 --min-size 5 --connected --seed 1"
    assert run("segment", photos[0], *flags.split(), "--labels", labels).exit_code == 0
    wanted = Segmenter(
        *(3,), features="labxy", radius=40, gamma=0.001, min_size=5, connected=True, random_state=1
    ).fit(read_image(photos[0])[0])
    np.testing.assert_array_equal(np.load(labels), wanted.labels_)


def test_many_images_go_on_after_a_bad_one(photos: list[Path], tmp_path: Path) -> None:
    bad, cut = tmp_path / "bad.png", tmp_path / "cut.png"
    bad.write_text("no picture")
    cut.write_bytes(photos[0].read_bytes()[:300])
    folder = tmp_path / "made"
    given = [photos[0], bad, photos[1], cut, tmp_path, photos[2]]
    result = run("segment", *given, "-k", 3, "--seed", 0, "-o", folder)
    assert result.exit_code == 1
    assert {path.name for path in folder.iterdir()} == {file.name for file in photos}
    for file in (bad, cut, tmp_path):
        assert any(line.startswith(f"error: {file}") for line in result.stderr.splitlines())
    assert "3 of 6 images failed" in result.stderr
    assert "3 of 6 images" in result.stderr or "segment" in result.stderr


def test_a_folder_is_its_images(photos: list[Path], tmp_path: Path) -> None:
    folder, empty, out = tmp_path / "album", tmp_path / "empty", tmp_path / "labels"
    folder.mkdir()
    empty.mkdir()
    for photo in photos[:2]:
        photo.rename(folder / photo.name)
    (folder / "notes.txt").write_text("no image")
    result = run("segment", folder, "-k", 3, "--labels", out)
    assert result.exit_code == 0, result.output
    assert {file.stem for file in out.iterdir()} == {photo.stem for photo in photos[:2]}
    result = run("segment", empty, "-k", 3, "--labels", out)
    assert result.exit_code == 1
    assert "there are no images in" in result.output


def test_json_tells_each_image(photos: list[Path], tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_text("no")
    result = run(
        *("segment", photos[0], tmp_path / "bad.png", "-k", 2, "-o", tmp_path / "o"),
        *("--json", "--quiet"),
    )
    good, bad = json.loads(result.stdout)["images"]
    assert good["n_segments"] == 2
    assert Path(good["picture"]).exists()
    assert "bad.png" in bad["error"]
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{0}",), "nothing would be written"),
        (("{0}", "{1}", "-o", "{folder}/one.png"), "name a folder"),
        (("{0}", "-o", "{0}"), "over an image that is read"),
        (("{0}", "-o", "{folder}/x.png", "--labels", "{folder}/x.png"), "twice"),
        (("{0}", "-k", "99999", "-o", "{folder}/x.png"), "exceeds the 2,400 pixels"),
        (("{0}", "--radius", "0.01", "-o", "{folder}/x.png", "-k", "3", "--min-size", "0"), None),
        (("{folder}/none.png", "-o", "{folder}/x.png"), "there is no file"),
        (("{0}", "-o", "{folder}/x.unknown"), "suffix"),
        (("{0}", "--method", "ksc", "--radius", "3", "-o", "{folder}/x.png"), "quantized"),
    ],
)
def test_wrong_requests(
    arguments: tuple[str, ...], words: str | None, photos: list[Path], tmp_path: Path
) -> None:
    filled = [text.format(*photos, folder=tmp_path) for text in arguments]
    result = run("segment", *filled)
    if words is None:  # as many representatives as pixels: slow, but within the limit
        assert result.exit_code == 0, result.output
        return
    assert result.exit_code == 1
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert read_image(photos[0])[0].shape == (40, 60, 3)


def test_wrong_words_are_errors_of_usage(photos: list[Path]) -> None:
    for flags in (("--overlay", "stars"), ("--method", "magic"), ("-k", "0"), ("--features", "x")):
        assert run("segment", photos[0], "-o", "x.png", *flags).exit_code == 2


def test_a_page_with_the_levels(photos: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    page = tmp_path / "levels.html"
    result = run("segment", photos[0], "--report", page)
    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    found = re.search(r'id="levels-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    levels = json.loads(found.group(1))
    assert sum(levels["runs"][1::2]) == sum(levels["sizes"]) == 40 * 60
    assert len(levels["pairs"]) == len(levels["strengths"]) == len(levels["sizes"]) - 1
    assert 'type="range" id="level"' in text
    folder = tmp_path / "pages"
    assert run("segment", *photos, "--report", folder, "--quiet").exit_code == 0
    assert {path.name for path in folder.iterdir()} == {f"photo{n}.html" for n in range(3)}
    old = tmp_path / "old.html"
    assert run("segment", photos[0], "--method", "quantized", "--report", old).exit_code == 0
    assert "levels-data" not in old.read_text(encoding="utf-8")


def test_one_model_labels_many_images(photos: list[Path], tmp_path: Path) -> None:
    model, folder = tmp_path / "s.mercer", tmp_path / "labels"
    segmenter = Segmenter(4, random_state=0).fit(read_image(photos[0])[0])
    segmenter.save(model)
    result = run("segment", *photos, "--model", model, "--labels", folder)
    assert result.exit_code == 0, result.output
    for photo in photos:
        wanted = segmenter.predict(read_image(photo)[0])
        np.testing.assert_array_equal(read_image(folder / photo.name)[0], wanted)
    for extra, words in ((("-k", 3), "pass no others"), (("--report", "x.html"), "--report")):
        refused = run("segment", *photos, "--model", model, "--labels", folder, *extra)
        assert refused.exit_code == 1
        assert words in " ".join(refused.stderr.split())
