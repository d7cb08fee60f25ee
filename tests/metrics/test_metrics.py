"""Scores of partitions: laws of all of them, then cases to check by hand."""

from __future__ import annotations

import doctest
import importlib
import itertools
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marking import seeds
from mercer import metrics

SYMMETRIC = [
    metrics.accuracy,
    metrics.normalized_mutual_info,
    metrics.adjusted_rand,
    metrics.rand_index,
    metrics.pairwise_f,
]
DIRECTED = [metrics.purity, metrics.mean_f]
SCORES = SYMMETRIC + DIRECTED
SEEDS = range(10)
ROUNDING = 1e-12  # sums of a few hundred float64 terms

every_score = pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
every_seed = seeds(len(SEEDS), quick=3)


def labellings(seed, n=60, n_classes=4, n_clusters=6):
    """Two labellings that agree in part, read-only."""
    rng = np.random.default_rng(seed)
    y_true = rng.integers(n_classes, size=n)
    y_pred = np.where(rng.random(n) < 0.6, y_true, rng.integers(n_clusters, size=n))
    y_true.flags.writeable = y_pred.flags.writeable = False
    return y_true, y_pred


def renamed(labels, seed):
    """The same partition under other names: strings in random order."""
    names = np.random.default_rng(seed).permutation(["ant", "bee", "cat", "dog", "elk", "fox"])
    return names[labels]


def pair_counts(y_true, y_pred):
    """TP, FP, FN, TN by looking at every pair."""
    TP = FP = FN = TN = 0
    for i, j in itertools.combinations(range(len(y_true)), 2):
        in_class, in_cluster = y_true[i] == y_true[j], y_pred[i] == y_pred[j]
        TP += in_class and in_cluster
        FP += not in_class and in_cluster
        FN += in_class and not in_cluster
        TN += not in_class and not in_cluster
    return TP, FP, FN, TN


# Laws


@every_score
@every_seed
def test_names_of_labels_do_not_matter(score, seed):
    y_true, y_pred = labellings(seed)
    expected = score(y_true, y_pred)
    assert score(renamed(y_true, seed), renamed(y_pred, seed + 1)) == pytest.approx(
        expected, abs=ROUNDING
    )


@every_score
@every_seed
def test_order_of_rows_does_not_matter(score, seed):
    y_true, y_pred = labellings(seed)
    order = np.random.default_rng(seed).permutation(len(y_true))
    assert score(y_true[order], y_pred[order]) == pytest.approx(score(y_true, y_pred), abs=ROUNDING)


@every_score
@every_seed
def test_an_equal_partition_scores_one(score, seed):
    y_true, _ = labellings(seed)
    assert score(y_true, renamed(y_true, seed)) == pytest.approx(1.0, abs=ROUNDING)


@pytest.mark.parametrize("score", SYMMETRIC, ids=lambda score: score.__name__)
@every_seed
def test_symmetric_scores_are_symmetric(score, seed):
    y_true, y_pred = labellings(seed)
    assert score(y_pred, y_true) == pytest.approx(score(y_true, y_pred), abs=ROUNDING)


@every_score
@given(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=12))
def test_scores_are_floats_of_at_most_one(score, pairs):
    y_true, y_pred = zip(*pairs, strict=True)
    value = score(y_true, y_pred)
    assert type(value) is float
    lowest = -1.0 if score is metrics.adjusted_rand else 0.0
    assert lowest <= value <= 1.0 + ROUNDING


@every_seed
def test_pair_scores_agree_with_counting_every_pair(seed):
    y_true, y_pred = labellings(seed)
    TP, FP, FN, TN = pair_counts(y_true, y_pred)
    precision, recall = TP / (TP + FP), TP / (TP + FN)
    by_hand = 2 * precision * recall / (precision + recall)
    assert metrics.pairwise_f(y_true, y_pred) == pytest.approx(by_hand, abs=ROUNDING)
    by_hand = (TP + TN) / (TP + FP + FN + TN)
    assert metrics.rand_index(y_true, y_pred) == pytest.approx(by_hand, abs=ROUNDING)


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
@every_seed
def test_accuracy_is_the_best_of_all_matchings(seed, n_clusters):
    y_true, _ = labellings(seed, n_classes=3)
    y_pred = np.random.default_rng(seed).integers(n_clusters, size=len(y_true))
    names = itertools.permutations(range(max(3, n_clusters)), n_clusters)
    best = max(np.mean(y_true == np.array(name)[y_pred]) for name in names)
    assert metrics.accuracy(y_true, y_pred) == pytest.approx(best, abs=ROUNDING)


@every_seed
def test_mean_f_follows_its_definition(seed):
    y_true, y_pred = labellings(seed)
    total = 0.0
    for c in np.unique(y_true):
        in_class = y_true == c
        best = 0.0
        for k in np.unique(y_pred):
            in_cluster = y_pred == k
            n_both = np.sum(in_class & in_cluster)
            if n_both:
                precision, recall = n_both / in_cluster.sum(), n_both / in_class.sum()
                best = max(best, 2 * precision * recall / (precision + recall))
        total += in_class.mean() * best
    assert metrics.mean_f(y_true, y_pred) == pytest.approx(total, abs=ROUNDING)


@every_seed
def test_purity_bounds_accuracy_and_only_grows_when_clusters_are_split(seed):
    y_true, y_pred = labellings(seed)
    split = 2 * y_pred + np.random.default_rng(seed).integers(2, size=len(y_pred))
    assert metrics.accuracy(y_true, y_pred) <= metrics.purity(y_true, y_pred)
    assert metrics.purity(y_true, y_pred) <= metrics.purity(y_true, split)


@every_seed
def test_evaluate_gives_every_score_by_name(seed):
    y_true, y_pred = labellings(seed)
    assert metrics.evaluate(y_true, y_pred) == {
        score.__name__: score(y_true, y_pred) for score in SCORES
    }


@every_seed
def test_average_ranks_share_out_all_ranks(seed):
    scores = np.random.default_rng(seed).integers(4, size=(7, 5)) / 4  # many ties
    ranks = metrics.average_ranks(scores)
    assert ranks.sum() == pytest.approx(7 * 8 / 2, abs=ROUNDING)
    order = np.random.default_rng(seed).permutation(7)
    np.testing.assert_allclose(metrics.average_ranks(scores[order]), ranks[order])
    np.testing.assert_allclose(metrics.average_ranks(-scores, higher_is_better=False), ranks)
    np.testing.assert_allclose(metrics.average_ranks(np.exp(scores)), ranks)  # only order counts


# Cases to check by hand


def test_one_row_out_of_place():
    # The table is [[2, 0], [1, 1]]: class 0 whole in cluster 0, class 1 torn apart.
    scores = metrics.evaluate([0, 0, 1, 1], [0, 0, 0, 1])
    assert scores["accuracy"] == 3 / 4
    assert scores["purity"] == 3 / 4
    assert scores["rand_index"] == 3 / 6
    assert scores["adjusted_rand"] == 0.0
    assert scores["pairwise_f"] == pytest.approx(2 / 5)
    assert scores["mean_f"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    # I = 3/2 ln 2 - 3/4 ln 3, H(y_true) = ln 2, H(y_pred) = 2 ln 2 - 3/4 ln 3
    ln2, ln3 = np.log([2.0, 3.0])
    expected = 2 * (1.5 * ln2 - 0.75 * ln3) / (3 * ln2 - 0.75 * ln3)
    assert scores["normalized_mutual_info"] == pytest.approx(expected)


def test_clusters_beyond_the_classes_count_as_wrong():
    assert metrics.accuracy([0, 0, 0, 0], [0, 0, 1, 2]) == 2 / 4
    assert metrics.purity([0, 0, 0, 0], [0, 0, 1, 2]) == 1.0


def test_one_cluster_for_all_classes():
    scores = metrics.evaluate([0, 0, 1, 1], [5, 5, 5, 5])
    assert scores["accuracy"] == scores["purity"] == 0.5
    assert scores["adjusted_rand"] == scores["normalized_mutual_info"] == 0.0
    assert scores["mean_f"] == pytest.approx(2 / 3)  # the cluster is the best of both classes


@pytest.mark.parametrize("labels", [[3], [0, 0, 0], [0, 1, 2]], ids=["row", "one", "single"])
def test_degenerate_partitions_that_are_equal_score_one(labels):
    assert set(metrics.evaluate(labels, labels).values()) == {1.0}


def test_labels_may_be_strings_booleans_or_whole_floats():
    assert metrics.accuracy(["a", "a", "b"], [True, True, False]) == 1.0
    assert metrics.accuracy([1.0, 1.0, 2.0], np.array([7, 7, 8], dtype=np.uint8)) == 1.0


def test_many_clusters_do_not_need_a_dense_table():
    labels = np.arange(200_000)  # dense, the table would take 320 GB
    assert metrics.purity(labels, labels) == metrics.mean_f(labels, labels) == 1.0
    assert metrics.adjusted_rand(labels, labels) == 1.0


def test_ties_share_the_mean_of_their_ranks():
    ranks = metrics.average_ranks([[0.5, 0.9], [0.5, 0.1], [0.1, 0.5]])
    np.testing.assert_array_equal(ranks, [(1.5 + 1) / 2, (1.5 + 3) / 2, (3 + 2) / 2])


# Errors


@pytest.mark.parametrize("score", [*SCORES, metrics.evaluate], ids=lambda score: score.__name__)
class TestErrors:
    def test_different_lengths(self, score):
        with pytest.raises(ValueError, match="y_true has 3 labels and y_pred 2"):
            score([0, 1, 2], [0, 1])

    def test_empty(self, score):
        with pytest.raises(ValueError, match="empty"):
            score([], [])

    def test_a_column_instead_of_labels(self, score):
        with pytest.raises(ValueError, match=r"y_pred has shape \(2, 1\)"):
            score([0, 1], [[0], [1]])

    @pytest.mark.parametrize("odd", [np.nan, np.inf, 0.5])
    def test_numbers_that_are_no_labels(self, score, odd):
        with pytest.raises(ValueError, match="y_true holds fractions, NaN or infinity"):
            score([0.0, odd], [0, 1])

    def test_labels_of_mixed_types(self, score):
        with pytest.raises(TypeError, match="y_true mixes labels"):
            score(np.array(["a", None], dtype=object), [0, 1])


@pytest.mark.parametrize("scores", [[], [1.0, 2.0], [[]]])
def test_ranks_want_a_table(scores):
    with pytest.raises(ValueError, match="methods × metrics"):
        metrics.average_ranks(scores)


def test_nan_has_no_rank():
    with pytest.raises(ValueError, match=r"scores\[1, 0\] is NaN"):
        metrics.average_ranks([[0.1, 0.2], [np.nan, 0.3]])


# Documentation and import


def test_examples_in_docstrings():
    for module in pkgutil.iter_modules(metrics.__path__, prefix="mercer.metrics."):
        assert doctest.testmod(importlib.import_module(module.name)).failed == 0


def test_importing_metrics_loads_no_further_packages():
    program = """if True:
        import sys, mercer
        before = set(sys.modules)
        import mercer.metrics
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(new & {"scipy", "sklearn", "numba", "pandas"})
    """
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "set()"
