"""Segmentation of images: laws of features, blocks, regions, segmenters; hostile pictures."""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mercer import RBF
from mercer._run.budget import Budget
from mercer.exceptions import BudgetError, MercerWarning
from mercer.factors.quantized import sequential_sample
from mercer.image import (
    Segmenter,
    connected_regions,
    draw_overlay,
    landscape,
    merge_small_regions,
    read_image,
    segment,
    segment_batch,
    write_image,
    write_labels_image,
)
from mercer.image.blocks import Centers, find_blocks
from mercer.image.colors import minimum_variance_palette, quantize
from mercer.image.features import ColorAndPlace, LabAndPlace, LocalHistograms
from mercer.image.pixels import as_pixels
from mercer.metrics import adjusted_rand
from reference import quantized_eigen

PIL = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def picture() -> tuple[np.ndarray, np.ndarray]:
    image, truth = landscape(90, 130, random_state=0)
    image.flags.writeable = False
    return image, truth


def same(a: np.ndarray, b: np.ndarray) -> float:
    return adjusted_rand(a.ravel(), b.ravel())


# Features -----------------------------------------------------------------------------------------


def test_color_and_place_run_from_0_to_255() -> None:
    image = np.zeros((3, 5, 3), np.uint8)
    image[2, 4] = 255
    F = ColorAndPlace.fit(as_pixels(image)).of(as_pixels(image)).reshape(3, 5, 5)
    np.testing.assert_array_equal(F[0, 0], [0, 0, 0, 0, 0])
    np.testing.assert_array_equal(F[2, 4], [255] * 5)
    np.testing.assert_allclose(F[0, :, 3], np.linspace(0, 255, 5))


@pytest.mark.parametrize("kind", [ColorAndPlace, LabAndPlace])
def test_features_do_not_depend_on_the_dtype(kind: Any, picture: Any) -> None:
    image = picture[0]
    wanted = kind.fit(as_pixels(image)).of(as_pixels(image))
    for other in (image.astype(np.uint16) * 257, image / 255.0, (image / 255).astype(np.float32)):
        pixels = as_pixels(other)
        np.testing.assert_allclose(kind.fit(pixels).of(pixels), wanted, atol=1e-3)


def test_gray_has_the_distances_of_its_rgb_copy(picture: Any) -> None:
    gray = picture[0][:, :, 0]
    one = ColorAndPlace.fit(as_pixels(gray)).of(as_pixels(gray))
    rgb = np.repeat(gray[:, :, None], 3, axis=2)
    three = ColorAndPlace.fit(as_pixels(rgb)).of(as_pixels(rgb))
    ids = np.random.default_rng(0).integers(len(one), size=(2, 200))
    distances = [np.linalg.norm(F[ids[0]] - F[ids[1]], axis=1) for F in (one, three)]
    np.testing.assert_allclose(*distances, rtol=1e-5)


@given(
    codes=arrays(
        np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(0, 3)
    ),
    window=st.sampled_from([1, 3, 5]),
)
def test_local_histograms_count_the_window(codes: np.ndarray, window: int) -> None:
    palette = np.arange(4.0)[:, None] * 80.0
    features = LocalHistograms(as_pixels(codes).color_range(), palette, window, False)
    image = (codes * 80).astype(np.uint8)
    H = features.of(as_pixels(image)).reshape(*codes.shape, 4)
    padded = np.pad(codes, window // 2, mode="edge")
    for y in range(codes.shape[0]):
        for x in range(codes.shape[1]):
            counts = np.bincount(padded[y : y + window, x : x + window].ravel(), minlength=4)
            np.testing.assert_allclose(H[y, x], counts / window**2, atol=1e-6)


def test_palette_of_few_colors_is_those_colors() -> None:
    colors = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 0], [40, 40, 250]], float)
    P = np.repeat(colors, [5, 3, 8, 1], axis=0)
    found = minimum_variance_palette(P, 8)
    assert {*map(tuple, found)} == {*map(tuple, colors)}


def test_palette_error_falls_with_colors_and_beats_uniform_levels(picture: Any) -> None:
    P = picture[0].reshape(-1, 3).astype(np.float64)
    errors = []
    for n_colors in (1, 2, 4, 8, 16):
        palette = minimum_variance_palette(P, n_colors)
        codes = quantize(P, picture[0].shape[:2], palette, dither=False).ravel()
        errors.append(((P - palette[codes]) ** 2).sum(axis=1).mean())
    assert all(a > b for a, b in pairwise(errors))
    uniform = 64 + 127.0 * (P >= 128)  # eight colours too
    assert errors[3] < ((P - uniform) ** 2).sum(axis=1).mean()


def test_dither_keeps_the_mean_color() -> None:
    image = np.full((64, 64, 1), 100.0)
    palette = np.array([[0.0], [255.0]])
    codes = quantize(image.reshape(-1, 1), (64, 64), palette, dither=True)
    assert palette[codes.ravel()].mean() == pytest.approx(100.0, abs=3.0)
    plain = quantize(image.reshape(-1, 1), (64, 64), palette, dither=False)
    assert palette[plain.ravel()].mean() == 0.0


# Blocks -------------------------------------------------------------------------------------------


def slow_sequential(F: np.ndarray, radius: float) -> list[int]:
    """Section 4.2, word by word: the rows that become centres."""
    chosen: list[int] = []
    for i, x in enumerate(F.astype(np.float64)):
        if all(((x - F[j].astype(np.float64)) ** 2).sum() > radius**2 for j in chosen):
            chosen.append(i)
    return chosen


def test_the_spectrum_is_that_of_the_block_matrix(picture: Any) -> None:
    image = picture[0]
    F = ColorAndPlace.fit(as_pixels(image)).of(as_pixels(image))
    inside = np.ones(len(F), bool)
    blocks = find_blocks(F, inside, image.shape[1], 50.0, budget=Budget.of(None)).quantization
    kernel = RBF(0.5 / 30.0**2)
    wanted = quantized_eigen(blocks, kernel, 5, normalization="divisive").values
    found = Segmenter(4, method="quantized", random_state=0).fit(image).report_.eigenvalues
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_trying_neighbors_first_finds_the_centers_of_the_slow_procedure(picture: Any) -> None:
    image = picture[0][::3, ::3]
    F = ColorAndPlace.fit(as_pixels(image)).of(as_pixels(image))
    ids, owner = sequential_sample(F, 40.0, width=image.shape[1])
    assert ids.tolist() == slow_sequential(F, 40.0)
    assert (np.linalg.norm(F - F[ids][owner], axis=1) <= 40.0 + 1e-3).all()


@given(seed=st.integers(0, 10**6), m=st.integers(1, 40), d=st.integers(1, 6))
def test_owners_are_the_nearest_centers(seed: int, m: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    F = (rng.integers(0, 6, (60, d)) * 10).astype(np.float32)  # ties abound
    points = (rng.integers(0, 6, (m, d)) * 10).astype(np.float64)
    inside = rng.random(60) < 0.9
    D = ((F[:, None].astype(np.float64) - points[None]) ** 2).sum(-1)
    wanted = np.where(inside, D.argmin(axis=1), -1)
    np.testing.assert_array_equal(Centers.of(points).owners(F, inside, 10, 1), wanted)


def test_blocks_hold_means_counts_and_variances(picture: Any) -> None:
    image = picture[0]
    F = ColorAndPlace.fit(as_pixels(image)).of(as_pixels(image))
    inside = np.random.default_rng(0).random(len(F)) < 0.8
    blocks = find_blocks(F, inside, image.shape[1], 50.0, budget=Budget.of(None))
    held = blocks.quantization
    assert held.weights.sum() == inside.sum()
    assert (blocks.owner[~inside] == -1).all()
    for j in range(len(held)):
        rows = F[blocks.owner == j].astype(np.float64)
        np.testing.assert_allclose(held.representatives[j], rows.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(held.variances[j], rows.var(axis=0), atol=1e-5)


# Regions ------------------------------------------------------------------------------------------


label_images = arrays(
    np.intp, st.tuples(st.integers(1, 10), st.integers(1, 10)), elements=st.integers(-1, 2)
)


@given(labels=label_images, connectivity=st.sampled_from([1, 2]))
def test_regions_are_those_of_scikit_image(labels: np.ndarray, connectivity: int) -> None:
    measure = pytest.importorskip("skimage.measure")
    wanted = measure.label(labels, background=-1, connectivity=connectivity)
    found = connected_regions(labels, outside=-1, connectivity=connectivity)
    np.testing.assert_array_equal(found + 1, wanted)


@given(labels=label_images, min_size=st.integers(0, 30))
def test_no_small_region_with_neighbors_is_left(labels: np.ndarray, min_size: int) -> None:
    merged = merge_small_regions(labels, min_size, outside=-1)
    np.testing.assert_array_equal(merged == -1, labels == -1)
    parts = connected_regions(merged, outside=-1)
    islands = connected_regions(np.where(labels == -1, -1, 0), outside=-1)
    for part in np.unique(parts[parts >= 0]):
        size, island = (parts == part).sum(), islands[parts == part][0]
        assert size >= min_size or size == (islands == island).sum()
    assert {*merged.ravel()} <= {*labels.ravel()}
    np.testing.assert_array_equal(merge_small_regions(merged, min_size, outside=-1), merged)


def test_a_speck_joins_its_longest_border() -> None:
    labels = np.array([[1, 1, 2, 2], [1, 3, 2, 2], [1, 1, 1, 2]])
    np.testing.assert_array_equal(
        merge_small_regions(labels, 2, outside=-1), np.where(labels == 3, 1, labels)
    )


# Segmenters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["contours", "quantized"])
def test_the_landscape_is_found(method: str, picture: Any) -> None:
    image, truth = picture
    labels = segment(image, 5, method=method, random_state=0)
    assert same(labels, truth) > 0.98
    assert labels.dtype == np.intp
    sizes = np.bincount(labels.ravel())[1:]
    assert (np.diff(sizes) <= 0).all()


@pytest.mark.parametrize("method", ["landmarks", "ksc"])
def test_other_methods_see_the_sky(method: str, picture: Any) -> None:
    image, truth = picture
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        segmenter = Segmenter(4, method=method, random_state=0).fit(image)
    assert same(segmenter.labels_, truth) > 0.5
    np.testing.assert_array_equal(segmenter.predict(image), segmenter.labels_)


@pytest.mark.parametrize("features", ["rgbxy", "labxy", "histogram"])
@pytest.mark.parametrize("threads", [1, 2])
def test_predict_of_the_fitted_image_gives_its_labels(
    features: str, threads: int, picture: Any
) -> None:
    image = np.tile(picture[0], (6, 6, 1))  # several tiles
    segmenter = Segmenter(4, features=features, n_jobs=threads, random_state=0).fit(image)
    np.testing.assert_array_equal(segmenter.predict(image), segmenter.labels_)
    one = segment(image, 4, features=features, random_state=0)
    np.testing.assert_array_equal(one, segmenter.labels_)


@pytest.mark.parametrize("method", ["contours", "quantized"])
def test_labels_mean_the_same_in_another_image(method: str, picture: Any) -> None:
    image, _ = picture
    other, truth = landscape(70, 110, random_state=5)
    segmenter = Segmenter(5, method=method, random_state=0).fit(image)
    assert same(segmenter.predict(other), truth) > 0.95
    sky = segmenter.labels_[0, 0]
    assert segmenter.predict(other)[0, 0] == sky


@pytest.mark.parametrize("method", ["contours", "quantized"])
@pytest.mark.parametrize("kind", ["uint16", "float32", "float64", "range"])
def test_labels_do_not_depend_on_the_dtype(method: str, kind: str, picture: Any) -> None:
    image, _ = picture
    other: np.ndarray = {
        "uint16": image.astype(np.uint16) * 257,
        "float32": (image / 255).astype(np.float32),
        "float64": image / 255,
        "range": (image.astype(np.float64) - image.min()) * 7 - 1000,
    }[kind]
    wanted = image if kind != "range" else (image - image.min()) / np.ptp(image)
    labels = segment(wanted, 5, method=method, random_state=0)
    assert same(segment(other, 5, method=method, random_state=0), labels) > 0.99


@pytest.mark.parametrize("method", ["contours", "quantized"])
def test_gray_many_channels_and_channels_first(method: str, picture: Any) -> None:
    image, truth = picture
    gray = image.mean(axis=2).astype(np.uint8)
    rgb = np.repeat(gray[:, :, None], 3, axis=2)
    assert (
        same(
            segment(gray, 4, method=method, random_state=0),
            segment(rgb, 4, method=method, random_state=0),
        )
        > 0.99
    )
    seven = np.concatenate([image, image, gray[:, :, None]], axis=2)
    assert same(segment(seven, 5, method=method, random_state=0), truth) > 0.9
    first = np.moveaxis(image, -1, 0)
    np.testing.assert_array_equal(
        segment(first, 5, channel_axis=0, method=method, random_state=0),
        segment(image, 5, method=method, random_state=0),
    )


@pytest.mark.parametrize("method", ["contours", "quantized"])
def test_transparent_and_masked_pixels_have_no_say(method: str, picture: Any) -> None:
    image, _ = picture
    mask = np.ones(image.shape[:2], bool)
    mask[:, :40] = False
    noise = np.random.default_rng(0).integers(0, 255, image.shape, np.uint8)
    spoilt = np.where(mask[:, :, None], image, noise)
    labels = segment(image, 4, mask=mask, method=method, random_state=0)
    assert (labels[~mask] == 0).all()
    assert (labels[mask] > 0).all()
    np.testing.assert_array_equal(
        segment(spoilt, 4, mask=mask, method=method, random_state=0), labels
    )
    rgba = np.dstack([spoilt, 255 * mask.astype(np.uint8)])
    np.testing.assert_array_equal(segment(rgba, 4, method=method, random_state=0), labels)
    assert (
        segment(image, 4, mask=mask, start_label=0, method=method, random_state=0)[~mask] == -1
    ).all()
    bands = segment(
        np.dstack([image, image[:, :, 0]]), 4, alpha=False, method=method, random_state=0
    )
    assert bands.min() == 1


def test_own_features(picture: Any) -> None:
    image, truth = picture
    F = image.astype(np.float64) / 255
    segmenter = Segmenter(3, features=F, random_state=0).fit(image)
    np.testing.assert_array_equal(segmenter.predict(image, features=F), segmenter.labels_)
    assert same(segmenter.labels_, truth) > 0.3
    with pytest.raises(ValueError, match="features=…"):
        segmenter.predict(image)
    with pytest.raises(ValueError, match="2 numbers per pixel"):
        segmenter.predict(image, features=F[:, :, :2])
    with pytest.raises(ValueError, match=r"pass .*one row of numbers per pixel"):
        Segmenter(3, features=F[:-1]).fit(image)


def test_connected_segments_are_connected(picture: Any) -> None:
    labels = segment(picture[0], 3, connected=True, random_state=0)
    parts = connected_regions(labels, outside=0)
    assert parts.max() + 1 == len(np.unique(labels))
    whole = segment(picture[0], 3, random_state=0)
    assert len(np.unique(labels)) >= len(np.unique(whole))


@pytest.mark.parametrize("method", ["contours", "quantized"])
def test_batches(method: str, picture: Any) -> None:
    image, _ = picture
    images = [image, image[::2, ::2], image[:, :, 0]]
    found = list(segment_batch(images, 3, n_jobs=2, method=method, random_state=0))
    for labels, one in zip(found, images, strict=True):
        np.testing.assert_array_equal(labels, segment(one, 3, method=method, random_state=0))
    stack = np.stack([image, image[::-1]])
    assert [labels.shape for labels in segment_batch(stack, 3)] == [image.shape[:2]] * 2
    segmenter = Segmenter(5, method=method, random_state=0).fit(image)
    shared = list(segment_batch([image], segmenter=segmenter, masks=[None]))
    np.testing.assert_array_equal(shared[0], segmenter.labels_)
    with pytest.raises(ValueError, match="pass no others"):
        segment_batch(images, 3, segmenter=segmenter)


@pytest.mark.parametrize(
    ("method", "words"),
    [("contours", "stronger than scale=0.5"), ("quantized", "largest relative gap")],
)
def test_auto_says_why(method: str, words: str, picture: Any) -> None:
    segmenter = Segmenter(method=method, random_state=0).fit(picture[0])
    assert 2 <= segmenter.n_segments_ <= 15
    assert words in str(segmenter.report_)


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["contours", "quantized"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 1, 3), (1, 50, 3), (50, 1, 3), (2, 3, 4)])
def test_tiny_images(method: str, shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    k = 1 if image[..., 0].size == 1 or shape == (1, 1) else 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        labels = segment(image, k, method=method, random_state=0)
    assert labels.shape == shape[:2]
    assert labels.min() >= 0


@pytest.mark.parametrize("value", [0, 128, 255])
def test_constant_images(value: int) -> None:
    plain = np.full((40, 60, 3), value, np.uint8)
    labels = segment(plain, 4, method="quantized", random_state=0)
    assert len(np.unique(labels)) == 4  # pieces of the plane: places differ
    with pytest.warns(MercerWarning, match="only 1 of n_segments=4"):
        assert (segment(plain, 4, method="contours") == 1).all()  # no contour anywhere
    for method in ("contours", "quantized"):
        labels = segment(np.full((40, 60), 0.3), method=method, random_state=0)
        assert labels.shape == (40, 60)


@pytest.mark.parametrize(
    ("image", "options", "words"),
    [
        (np.full((5, 5), np.nan), {}, ["25 pixels", "row 0, column 0", "mask"]),
        (np.array([[0.0, np.inf]]), {}, ["column 1"]),
        (np.zeros((3, 40, 60)), {"channel_axis": -1}, ["channel_axis=0"]),
        (np.zeros((40, 60, 3)), {"channel_axis": 5}, ["not an axis"]),
        (np.zeros((40, 60, 3)), {"channel_axis": None}, ["channel_axis=-1"]),
        (np.zeros((2, 40, 60, 3)), {}, ["segment_batch"]),
        (np.zeros((0, 5, 3)), {}, ["no pixels"]),
        (np.zeros((3, 3)), {"n_segments": 10}, ["exceeds the 9 pixels"]),
        (np.zeros((3, 3)), {"mask": np.ones((3, 4))}, ["(3, 4)", "(3, 3)"]),
        (np.zeros((3, 3)), {"mask": np.zeros((3, 3), bool)}, ["no pixel is left"]),
        (np.zeros((3, 3)), {"mask": np.full((3, 3), 7)}, ["booleans"]),
        (np.zeros((3, 3, 5)), {"features": "labxy"}, ["5 channels", "rgbxy"]),
        (np.zeros((3, 3)), {"features": "sift"}, ["'rgbxy', 'labxy' or 'histogram'"]),
        (np.zeros((9, 9)), {"features": "histogram", "window": 4}, ["odd"]),
        (np.zeros((9, 9)), {"method": "landmarks", "radius": 3.0}, ["quantized"]),
        (np.full((3, 3), 1e35), {}, ["scale them down"]),
    ],
)
def test_bad_images_get_one_clear_error(image: Any, options: Any, words: list[str]) -> None:
    options = {"n_segments": 2, "random_state": 0, **options}
    with pytest.raises(ValueError) as caught:
        segment(image, **options)
    assert all(word in str(caught.value) for word in words), caught.value


def test_words_are_no_image() -> None:
    with pytest.raises(TypeError, match="read_image"):
        segment(np.array([["a"]]), 1)


def test_nan_outside_the_mask_is_fine(picture: Any) -> None:
    image = picture[0] / 255.0
    image[:10] = np.nan
    mask = np.isfinite(image).all(axis=2)
    for features in ("rgbxy", "labxy", "histogram"):
        labels = segment(image, 3, mask=mask, features=features, random_state=0)
        assert (labels[:10] == 0).all()


def test_a_radius_of_millions_of_representatives_is_refused_with_the_estimate() -> None:
    image = np.random.default_rng(0).integers(0, 256, (300, 300, 3), np.uint8)
    with pytest.raises(ValueError, match=r"radius=0.5 makes more than .* by estimate .* raise"):
        segment(image, 4, radius=0.5)


def test_too_little_memory_is_refused_before_the_work() -> None:
    with pytest.raises(BudgetError, match="scale the image down"):
        segment(np.zeros((2000, 2000, 3), np.uint8), 3, max_memory="10MB")


def test_fewer_representatives_than_segments_are_told() -> None:
    with pytest.warns(MercerWarning, match="lower radius"):
        labels = segment(np.zeros((6, 6), np.uint8), 30, random_state=0, radius=400.0)
    assert labels.max() == 1


def test_a_failed_fit_leaves_the_segmenter_as_it_was(picture: Any) -> None:
    segmenter = Segmenter(3, random_state=0).fit(picture[0])
    before = segmenter.labels_
    with pytest.raises(ValueError):
        segmenter.fit(np.full((4, 4), np.nan))
    assert segmenter.labels_ is before


# Files --------------------------------------------------------------------------------------------


def test_files_of_many_kinds(tmp_path: Path, picture: Any) -> None:
    image = picture[0]
    rgb = PIL.fromarray(image)
    deep = image[:, :, 0].astype(np.uint16) * 257
    saved = {
        "rgb.png": (rgb, image),
        "gray.png": (rgb.convert("L"), None),
        "palette.png": (rgb.quantize(8), None),
        "deep.png": (PIL.fromarray(deep), deep),
        "print.jpg": (rgb.convert("CMYK"), None),
        "lossless.tif": (rgb, image),
    }
    for name, (pil, wanted) in saved.items():
        pil.save(tmp_path / name)
        values, visible = read_image(tmp_path / name)
        assert values.shape[:2] == image.shape[:2], name
        assert visible is None
        if wanted is not None:
            np.testing.assert_array_equal(values, wanted)
    assert read_image(tmp_path / "deep.png")[0].dtype == np.uint16
    rgba = np.dstack([image, np.full(image.shape[:2], 255, np.uint8)])
    rgba[:5, :, 3] = 0
    PIL.fromarray(rgba).save(tmp_path / "rgba.png")
    values, visible = read_image(tmp_path / "rgba.png")
    np.testing.assert_array_equal(visible, rgba[:, :, 3] > 0)
    np.testing.assert_array_equal(values[5:], image[5:])


def test_bad_files(tmp_path: Path, picture: Any) -> None:
    write_image(tmp_path / "good.png", picture[0])
    whole = (tmp_path / "good.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "words.png").write_text("no picture")
    (tmp_path / "empty.jpg").write_bytes(b"")
    spoilt = bytearray(whole)
    spoilt[100:140] = bytes(40)
    (tmp_path / "spoilt.png").write_bytes(spoilt)
    for name in ("cut.png", "words.png", "empty.jpg", "spoilt.png"):
        with pytest.raises(ValueError, match=name):
            read_image(tmp_path / name)
    with pytest.raises(IsADirectoryError, match="directory"):
        read_image(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_image(tmp_path / "none.png")


def test_labels_survive_as_files(tmp_path: Path) -> None:
    few, many = np.arange(200).reshape(10, 20), np.arange(1000).reshape(20, 50)
    for labels, kind in ((few, np.uint8), (many, np.uint16)):
        write_labels_image(tmp_path / "labels.png", labels)
        values, _ = read_image(tmp_path / "labels.png")
        assert values.dtype == kind
        np.testing.assert_array_equal(values, labels)
    write_labels_image(tmp_path / "labels.npy", many - 5)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), many - 5)
    with pytest.raises(ValueError, match=r"\.npy"):
        write_labels_image(tmp_path / "labels.png", many - 5)
    with pytest.raises(ValueError, match=r"\.png"):
        write_image(tmp_path / "picture.xyz", np.zeros((2, 2, 3), np.uint8))


@pytest.mark.parametrize("kind", ["boundaries", "average", "labels"])
def test_overlays(kind: Any, picture: Any) -> None:
    pytest.importorskip("skimage")
    image, truth = picture
    drawn = draw_overlay(image, truth + 1, kind)
    assert drawn.shape == image.shape
    assert drawn.dtype == np.uint8
    if kind == "average":
        sky = image[truth == 0].mean(axis=0)
        np.testing.assert_allclose(drawn[truth == 0].mean(axis=0), sky, atol=1.0)
    if kind == "boundaries":
        assert (drawn == (255, 230, 0)).all(axis=2).any()
        np.testing.assert_array_equal(drawn[0, 0], image[0, 0])
    assert draw_overlay(image[:, :, 0], truth, kind).shape == image.shape
    with pytest.raises(ValueError, match="one per pixel"):
        draw_overlay(image, truth[1:], kind)


def test_labels_are_not_written_where_they_would_change(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"may change labels.*\.png"):
        write_labels_image(tmp_path / "labels.jpg", np.arange(12).reshape(3, 4))
    assert not list(tmp_path.iterdir())


def test_representatives_and_features_stay_within_memory(picture: Any) -> None:
    with pytest.raises(BudgetError, match="representatives that radius"):
        Segmenter(4, radius=14.0, max_memory="20MB").fit(picture[0])
    wide = np.zeros((*picture[0].shape[:2], 600))
    with pytest.raises(BudgetError, match="pixels"):
        Segmenter(4, features=wide, max_memory="20MB").fit(picture[0])
