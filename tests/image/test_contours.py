"""The tree of regions: nested levels, the same by any thread, from tiny images to huge ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mercer import MercerWarning
from mercer.image import RegionTree, Segmenter, connected_regions, landscape, segment
from mercer.image import _contours_jit as loops
from mercer.image.contours import WORK_PIXELS, WorkImage
from mercer.image.contrast import FIRST, N_CUES, region_graph
from mercer.image.pixels import as_pixels
from mercer.image.planes import Planes
from mercer.image.tree import WEIGHTS, merge_room, merge_tree
from mercer.metrics import adjusted_rand

IMAGE, TRUTH = landscape(90, 130, random_state=0)
IMAGE.flags.writeable = False


def same(a: np.ndarray, b: np.ndarray) -> float:
    return adjusted_rand(a.ravel(), b.ravel())


def is_nested(fine: np.ndarray, coarse: np.ndarray) -> bool:
    pairs = np.unique(fine.ravel().astype(np.int64) * (int(coarse.max()) + 2) + coarse.ravel())
    return len(np.unique(fine)) == len(pairs)


def graph_of(image: np.ndarray) -> Any:
    pixels = as_pixels(image)
    work = WorkImage.of(pixels, pixels.color_range())
    return region_graph(
        Planes.fit(pixels, work.values, work.inside).planes(work.values), work.inside
    )


# Levels -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree() -> RegionTree:
    return Segmenter(min_size=0).fit(IMAGE).levels_


def test_levels_are_nested_and_lose_one_segment_at_a_time(tree: RegionTree) -> None:
    before = tree.labels(tree.n_regions)
    for k in range(tree.n_regions, 0, -7):
        labels = tree.labels(k)
        assert np.unique(labels).tolist() == list(range(1, k + 1))
        assert is_nested(before, labels)
        before = labels


def test_strengths_rise_and_scales_are_levels(tree: RegionTree) -> None:
    assert (np.diff(tree.strengths) >= 0).all()
    assert tree.strengths.min() >= 0
    assert tree.strengths.max() <= 1
    counts = [tree.count(scale) for scale in np.linspace(0, 1, 21)]
    assert (np.diff(counts) <= 0).all()
    assert tree.count(1.0) == 1
    for scale in (0.3, 0.5, 0.8):
        k = tree.count(scale)
        np.testing.assert_array_equal(tree.labels(scale=scale), tree.labels(k))
        assert tree.scale(k) > scale


def test_one_tree_gives_every_setting() -> None:
    levels = Segmenter().fit(IMAGE).levels_
    np.testing.assert_array_equal(segment(IMAGE, 5), levels.labels(5))
    np.testing.assert_array_equal(segment(IMAGE, scale=0.7), levels.labels(scale=0.7))
    np.testing.assert_array_equal(segment(IMAGE), levels.labels())
    with pytest.raises(ValueError, match="is not between 1 and"):
        levels.labels(10**6)


def test_segments_are_connected_and_not_small() -> None:
    for least in (20, 200):
        labels = segment(IMAGE, scale=0.2, min_size=least)
        regions = connected_regions(labels, outside=0)
        assert regions.max() + 1 == labels.max()
        assert np.bincount(regions.ravel()).min() >= least


def test_other_methods_have_no_levels() -> None:
    segmenter = Segmenter(4, random_state=0).fit(IMAGE)
    assert segmenter.levels_.n_regions > 4
    segmenter.set_params(method="quantized").fit(IMAGE)
    assert not hasattr(segmenter, "levels_")


# Parts --------------------------------------------------------------------------------------------


@given(
    arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(0, 5))
)
@settings(max_examples=60, deadline=None)
def test_pixels_flow_downhill_to_one_basin(strength: np.ndarray) -> None:
    owner = np.empty(strength.shape, np.int32)
    scratch = np.empty((2, strength.size), np.int32)
    n = loops.find_basins(strength, np.ones(strength.shape, bool), owner.reshape(-1), *scratch)
    height, width = strength.shape
    key = [(float(strength.flat[i]), i) for i in range(strength.size)]

    def sink(i: int) -> int:
        y, x = divmod(i, width)
        near = [(y, x), (y - 1, x), (y, x - 1), (y, x + 1), (y + 1, x)]
        lowest = min((key[a * width + b] for a, b in near if 0 <= a < height and 0 <= b < width))[1]
        return i if lowest == i else sink(lowest)

    sinks = np.array([sink(i) for i in range(strength.size)])
    assert n == len(np.unique(sinks))
    assert is_nested(owner, sinks.reshape(owner.shape))
    assert is_nested(sinks, owner)


def plain_merge(graph: Any, least: float, speck: np.ndarray) -> tuple[list[Any], list[float]]:
    """The slow procedure: after each merge, all borders are compared again."""
    members = {r: [r] for r in range(len(graph))}
    pairs: list[Any] = []
    heights: list[float] = []
    H, sizes = graph.histograms.copy(), graph.sizes.copy()
    while True:
        root = {r: into for into, group in members.items() for r in group}
        borders: dict[tuple[int, int], list[int]] = {}
        for e, (a, b) in enumerate(graph.ends.tolist()):
            if root[a] != root[b]:
                borders.setdefault((min(root[a], root[b]), max(root[a], root[b])), []).append(e)
        if not borders:
            return pairs, heights
        found = []
        for (a, b), edges in borders.items():
            length, sums = graph.lengths[edges].sum(), graph.sums[edges].sum(axis=0)
            value = float(WEIGHTS[:N_CUES] @ np.sqrt(sums / length))
            for g in range(4):
                bins = slice(FIRST[g], FIRST[g + 1])
                p, q = H[a, bins] / sizes[a], H[b, bins] / sizes[b]
                chi = 0.5 * ((p - q) ** 2 / (p + q + 1e-12)).sum()
                value += WEIGHTS[N_CUES + g] * np.sqrt(chi)
            smaller = min(sizes[a], sizes[b])
            value += min(0.0, speck[0] * np.log(smaller / speck[1]))
            found.append((value - 1e3 if smaller < least else value, a, b))
        height, a, b = min(found)
        if (sizes[a], -a) < (sizes[b], -b):
            a, b = b, a
        pairs.append((a, b))
        heights.append(max([height, *heights[-1:]]))
        H[a] += H[b]
        sizes[a] += sizes[b]
        members[a] += members.pop(b)


@pytest.mark.parametrize("least", [0.0, 12.0])
def test_the_heap_merges_what_the_slow_procedure_merges(least: float) -> None:
    graph = graph_of(IMAGE[40:70, 20:60])
    speck = np.array([0.5, 150.0])
    pairs, heights = np.empty((len(graph) - 1, 2), np.int64), np.empty(len(graph) - 1)
    parts = (graph.ends, graph.sums, graph.lengths, graph.histograms, graph.sizes)
    copies = [part.copy() for part in parts]
    room = merge_room(graph.sizes, len(graph.ends))
    n = loops.merge_regions(*copies, FIRST, WEIGHTS, speck, least, 0.0, pairs, heights, *room)
    assert n == len(graph) - 1
    wanted, wanted_heights = plain_merge(graph, least, speck)
    assert [tuple(pair) for pair in pairs.tolist()] == wanted
    np.testing.assert_allclose(heights, wanted_heights, atol=1e-9)


def test_histograms_and_borders_add_up() -> None:
    graph = graph_of(IMAGE)
    assert graph.sizes.sum() == IMAGE.shape[0] * IMAGE.shape[1]
    np.testing.assert_allclose(graph.histograms.sum(axis=1), 4 * graph.sizes, rtol=1e-9)
    across = (graph.owner[:, 1:] != graph.owner[:, :-1]).sum()
    down = (graph.owner[1:] != graph.owner[:-1]).sum()
    assert graph.lengths.sum() == across + down
    assert (graph.ends[:, 0] < graph.ends[:, 1]).all()


def test_planes_are_cielab() -> None:
    color = pytest.importorskip("skimage.color")
    rgb = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    pixels = as_pixels(rgb)
    planes = Planes.fit(pixels, rgb, np.ones(rgb.shape[:2], bool)).of(pixels)
    np.testing.assert_allclose(planes, color.rgb2lab(rgb).reshape(-1, 3), atol=1e-3)


# Images of all kinds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 2), (2, 1, 3), (1, 50, 3), (50, 1), (2, 3, 4), (3, 3, 9)]
)
@pytest.mark.parametrize("n_segments", ["auto", 1])
def test_tiny_images_have_levels(shape: tuple[int, ...], n_segments: Any) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    if image.shape[-1] == 4:
        image[..., 3] = 255
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        segmenter = Segmenter(n_segments, method="contours").fit(image)
    assert segmenter.labels_.shape == shape[:2]
    assert segmenter.labels_.min() == 1
    np.testing.assert_array_equal(segmenter.predict(image), segmenter.labels_)


@pytest.mark.parametrize("threads", [1, 3])
def test_huge_images_are_worked_on_in_blocks(threads: int) -> None:
    image, truth = landscape(1500, 2100, random_state=0)
    segmenter = Segmenter(5, n_jobs=threads).fit(image)
    assert image.shape[0] * image.shape[1] > 4 * WORK_PIXELS
    assert same(segmenter.labels_[::4, ::4], truth[::4, ::4]) > 0.99
    assert is_nested(segmenter.levels_.labels(30), segmenter.labels_)
    np.testing.assert_array_equal(segmenter.labels_, segment(image, 5, n_jobs=1))
    np.testing.assert_array_equal(segmenter.predict(image), segmenter.labels_)


def test_a_mask_of_islands() -> None:
    mask = np.zeros(IMAGE.shape[:2], bool)
    mask[:40, :50] = mask[60:, 80:] = True
    labels = segment(IMAGE, 2, mask=mask, method="contours")
    assert (labels[~mask] == 0).all()
    assert same(labels[mask], connected_regions(mask.astype(int), outside=0)[mask]) == 1.0
    with pytest.warns(MercerWarning, match="n_segments=1"):
        assert (segment(IMAGE, 1, mask=mask)[mask] == 1).all()
    huge = np.kron(mask, np.ones((9, 9), bool))
    large = landscape(*huge.shape, random_state=1)[0]
    assert ((segment(large, mask=huge) > 0) == huge).all()


def test_sixteen_bits_and_alpha_of_huge_images() -> None:
    image = landscape(700, 900, random_state=2)[0]
    wanted = segment(image, 5)
    deep = image.astype(np.uint16) * 257
    assert same(segment(deep, 5), wanted) > 0.99
    opaque = np.dstack([image, np.full(image.shape[:2], 255, np.uint8)])
    np.testing.assert_array_equal(segment(opaque, 5), wanted)


def test_images_of_one_appearance_keep_their_own_labels() -> None:
    """Equal histograms: places decide, so that predict gives back what fit found."""
    image = np.full((60, 90), 40, np.uint8)
    for x in (10, 40, 70):
        image[25:35, x : x + 10] = 200
    segmenter = Segmenter(4, method="contours", min_size=0).fit(image)
    assert segmenter.n_segments_ == 4
    np.testing.assert_array_equal(segmenter.predict(image), segmenter.labels_)


def test_every_coin_is_a_segment_whichever_way_it_is_seen() -> None:
    """A photograph that no constant was chosen on: 24 coins on one ground."""
    coins = pytest.importorskip("skimage.data").coins()
    labels = segment(coins)
    assert 24 <= labels.max() <= 26
    for turned in (np.fliplr, np.flipud, np.transpose):
        seen = segment(np.ascontiguousarray(turned(coins)))
        assert same(seen, turned(labels)) > 0.98


# Requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_segments": 3, "scale": 0.5}, "pass one of them"),
        ({"scale": 0.5, "method": "quantized"}, "belongs to method='contours'"),
        ({"method": "contours", "radius": 3.0}, "belongs to method='quantized'"),
        ({"method": "contours", "features": "labxy"}, "features and weights of its own"),
        ({"scale": 1.5}, "scale"),
        ({"max_memory": "1MB"}, "max_memory"),
    ],
)
def test_wrong_requests(options: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, MemoryError), match=words):
        Segmenter(**options).fit(IMAGE)


def test_given_features_choose_the_method_of_clusters() -> None:
    assert "quantized" in Segmenter(3, radius=40.0).fit(IMAGE).report_.estimator
    assert "contours" in Segmenter(3).fit(IMAGE).report_.estimator


def test_regions_that_do_not_touch_are_joined_at_last() -> None:
    graph = graph_of(np.zeros((4, 4), np.uint8))
    pairs, strengths = merge_tree(graph, 0.0)
    assert len(pairs) == len(strengths) == len(graph) - 1 == 0
