"""Scores of segmentations: boundaries and regions against those of people."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mercer.metrics import (
    boundaries,
    boundary_f,
    boundary_score,
    probabilistic_rand,
    segmentation_covering,
    variation_of_information,
)
from mercer.metrics.boundaries import _pairs_within, _strict

maps = arrays(np.intp, (8, 9), elements=st.integers(0, 2))


def two_halves(column: int, shape: tuple[int, int] = (60, 80)) -> np.ndarray:
    labels = np.ones(shape, int)
    labels[:, column:] = 2
    return labels


def test_boundaries_are_one_pixel_wide() -> None:
    edges = boundaries(two_halves(40))
    assert (np.flatnonzero(edges.any(axis=0)) == [39]).all()
    assert edges[:, 39].all()


@given(labels=maps)
def test_equal_maps_score_one(labels: np.ndarray) -> None:
    for matching in ("strict", "loose"):
        assert boundary_f(labels, [labels], matching=matching) == 1.0
    assert segmentation_covering(labels, [labels]) == pytest.approx(1.0)
    assert probabilistic_rand(labels, [labels]) == 1.0
    assert variation_of_information(labels, [labels]) == pytest.approx(0.0, abs=1e-12)


@given(ours=maps, theirs=st.lists(maps, min_size=1, max_size=3), tolerance=st.floats(0, 0.3))
def test_loose_is_never_below_strict(
    ours: np.ndarray, theirs: list[np.ndarray], tolerance: float
) -> None:
    strict = boundary_score(ours, theirs, tolerance=tolerance)
    loose = boundary_score(ours, theirs, matching="loose", tolerance=tolerance)
    assert loose.precision >= strict.precision
    assert loose.recall >= strict.recall
    assert 0.0 <= strict.f <= 1.0


@given(ours=maps, theirs=maps, reach=st.floats(0, 4))
def test_strict_is_a_maximum_matching(ours: np.ndarray, theirs: np.ndarray, reach: float) -> None:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    a, b = boundaries(ours), boundaries(theirs)
    right, found = _strict(a, b, reach)
    assert right.sum() == found.sum()
    rows, columns = _pairs_within(a, b, reach)
    shape = (max(len(right), 1), max(len(found), 1))
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    assert right.sum() == (maximum_bipartite_matching(graph) >= 0).sum()


def test_a_shift_within_the_tolerance_costs_nothing() -> None:
    tolerance = 0.0075 * 100  # the diagonal is 100 pixels
    assert boundary_f(two_halves(40), [two_halves(40)]) == 1.0
    assert boundary_f(two_halves(41), [two_halves(40)]) == 0.0
    assert boundary_f(two_halves(42), [two_halves(40)], tolerance=2 / 100) == 1.0
    assert tolerance < 1.0


def test_several_people() -> None:
    ours, others = two_halves(40), [two_halves(40), two_halves(20)]
    score = boundary_score(ours, others)
    assert score.precision == 1.0  # someone drew it
    assert score.recall == 0.5  # of all that was drawn


def test_doubled_lines_cost_precision_only_when_strict() -> None:
    doubled = np.ones((60, 80), int)
    doubled[:, 40] = 2
    strict = boundary_score(doubled, [two_halves(40)], tolerance=0.02)
    loose = boundary_score(doubled, [two_halves(40)], matching="loose", tolerance=0.02)
    assert strict.precision == pytest.approx(0.5, abs=0.01)
    assert loose.precision == 1.0


def test_no_boundaries() -> None:
    blank = np.zeros((10, 10), int)
    assert boundary_f(blank, [blank]) == 1.0
    assert boundary_f(blank, [two_halves(5, (10, 10))]) == 0.0
    assert boundary_f(two_halves(5, (10, 10)), [blank]) == 0.0


def test_overlaps_by_hand() -> None:
    ours, theirs = [[1, 1, 2, 2]], [[1, 1, 1, 2]]
    covering = (3 * (2 / 3) + 1 * (1 / 2)) / 4
    assert segmentation_covering(ours, [theirs]) == pytest.approx(covering)
    assert probabilistic_rand(ours, [theirs]) == pytest.approx(3 / 6)
    halves = 2 * (1.5 * np.log(2)) - np.log(2) - (np.log(4) - 0.75 * np.log(3))
    assert variation_of_information(ours, [theirs]) == pytest.approx(halves)


def test_bad_maps() -> None:
    labels = two_halves(40)
    for score in (boundary_f, segmentation_covering, probabilistic_rand, variation_of_information):
        with pytest.raises(ValueError, match="at least one"):
            score(labels, [])
        with pytest.raises(ValueError, match=r"humans\[0\]"):
            score(labels, [labels[1:]])
    with pytest.raises(ValueError, match="pass a label image"):
        boundaries(np.zeros(5))
    with pytest.raises(ValueError, match="strict"):
        boundary_f(labels, [labels], matching="fuzzy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tolerance"):
        boundary_f(labels, [labels], tolerance=-1.0)
