"""benchmarks.papers: what the scripts compute themselves, by hand; the command that runs all."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, pairwise_distances

pytest.importorskip("matplotlib")  # the pages draw

from benchmarks import __main__ as everything
from benchmarks.papers import paper_001, paper_002_kpca, paper_003, verdict_page
from mercer import RBF, Laplacian, RandomBinning
from mercer.factors.base import as_sample

ROOT = Path(__file__).parent.parent


def test_the_printed_f_is_the_plain_mean_over_clusters():
    y = np.array([0, 0, 0, 1])
    labels = np.array([0, 0, 1, 1])
    first, second = 2 * 2 / (2 + 3), 2 * 1 / (2 + 1)  # the best class of each cluster
    assert paper_003.cluster_f(y, labels) == pytest.approx((first + second) / 2)


def test_methods_that_are_alike_to_three_digits_share_the_best_rank():
    rows = {name: dict.fromkeys(paper_003.METRICS, value)
            for name, value in (("a", 0.5001), ("b", 0.5003), ("c", 0.4))}  # fmt: skip
    ranks = [row["average_rank"] for row in paper_003.ranked(rows).values()]
    assert ranks == [1, 1, 3]


def test_kappa_of_bins_that_hold_all_rows_is_one():
    X = np.random.default_rng(0).random((50, 2))
    wide, narrow = Laplacian(1e-9), Laplacian(1e9)
    kappas = []
    for kernel in (wide, narrow):
        factor = RandomBinning(4).fit(kernel, as_sample(kernel, X), rng=np.random.default_rng(0))
        kappas.append(paper_003.kappa(factor))
    assert kappas[0] == pytest.approx(1, abs=0.2)
    assert kappas[1] > 10


def test_waves_stand_for_the_laplacian_kernel():
    X = np.random.default_rng(0).random((30, 3))
    K = np.exp(-0.5 * pairwise_distances(X, metric="manhattan"))
    s = 1 / np.sqrt(K.sum(axis=1))
    M = paper_003.waves(X, 0.5, 20_000, np.random.default_rng(1))
    assert np.abs(M - s[:, None] * K * s).max() < 0.01


def test_lloyd_on_the_whole_kernel_matrix_finds_separated_blobs():
    X, y = make_blobs(200, centers=3, cluster_std=0.5, random_state=0)
    K = RBF(0.05).matrix(X, X)
    found = [paper_001.kernel_lloyd(K, 3, np.random.default_rng(s)) for s in range(5)]
    assert max(adjusted_rand_score(y, labels) for labels in found) > 0.9


def test_a_centred_component_of_rounding_size_is_cut():
    X = np.random.default_rng(0).random((60, 2))
    labels = np.arange(60) % 3
    blocks = paper_002_kpca.quantize(X, labels, 3)
    kernel = RBF(0.1)
    assert paper_002_kpca._by_blocks(kernel, blocks)(X).shape == (60, 2)
    assert paper_002_kpca._by_blocks(kernel, blocks, centred=False)(X).shape == (60, 3)


def test_verdicts_are_words_of_a_table():
    text = verdict_page.verdicts([("a claim", "1.00", "holds"), ("another", "2.00", "not")])
    assert "| a claim | 1.00 | holds |" in text
    assert "| another | 2.00 | **does not hold** |" in text
    assert [verdict_page.decide(share) for share in (1, 0.5, 0.1)] == ["holds", "partly", "not"]


def test_the_independent_script_is_short_and_does_not_use_us():
    source = (ROOT / "benchmarks" / "independent.py").read_text()
    assert len(source.splitlines()) <= 200
    names = {
        name
        for node in ast.walk(ast.parse(source))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not any(name.startswith(("mercer", "benchmarks")) for name in names)


def test_every_benchmark_is_a_module_that_exists():
    for one in everything.BENCHMARKS:
        for words in filter(None, (one.words, one.quick)):
            assert importlib.util.find_spec(words.split()[0]) is not None, words
