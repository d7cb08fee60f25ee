"""Merging the nodes of a graph: what a tree is, and that the chain finds the nearest pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import dendrogram, is_valid_linkage

from marking import seeds
from mercer.linalg.merging import cut_tree, merge_graph
from mercer.metrics import adjusted_rand

every_seed = seeds(10, quick=3)


def random_graph(seed, p=60):
    A = sp.random_array((p, p), density=0.15, rng=np.random.default_rng(seed))
    path = sp.diags_array(np.full(p - 1, 0.01), offsets=1, shape=(p, p))
    return sp.csr_array(A + A.T + path + path.T)


def merged_greedily(W, n_clusters):
    """The nearest of all pairs merged, again and again, on a dense matrix."""
    W, groups = W.toarray(), [[i] for i in range(W.shape[0])]
    degrees = W.sum(axis=1)
    while len(groups) > n_clusters:
        lifts = W / np.outer(degrees, degrees)
        np.fill_diagonal(lifts, -1.0)
        a, b = sorted(np.unravel_index(lifts.argmax(), lifts.shape))
        W[a] += W[b]
        W[:, a] += W[:, b]
        degrees[a] += degrees[b]
        groups[a] += groups.pop(b)
        W = np.delete(np.delete(W, b, axis=0), b, axis=1)
        degrees = np.delete(degrees, b)
    labels = np.empty(sum(map(len, groups)), int)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


@every_seed
@pytest.mark.parametrize("n_clusters", [2, 5, 20])
def test_the_chain_merges_as_the_greedy_search_does(seed, n_clusters):
    W = random_graph(seed)
    labels = cut_tree(merge_graph(W), n_clusters)
    assert adjusted_rand(labels, merged_greedily(W, n_clusters)) == 1.0


@every_seed
def test_the_tree_is_a_linkage_matrix_that_scipy_draws(seed):
    tree = merge_graph(random_graph(seed))
    assert is_valid_linkage(tree)
    assert (np.diff(tree[:, 2]) >= 0).all()
    assert tree[-1, 3] == 60
    assert len(dendrogram(tree, no_plot=True)["leaves"]) == 60


@every_seed
def test_partitions_of_one_tree_are_nested(seed):
    tree = merge_graph(random_graph(seed))
    fine = cut_tree(tree, 30)
    for n_clusters in range(29, 0, -1):
        coarse = cut_tree(tree, n_clusters)
        assert len(np.unique(coarse)) == n_clusters
        assert len(np.unique(fine * 60 + coarse)) == n_clusters + 1  # one more: each in one
        fine = coarse


@every_seed
def test_permuted_nodes_are_merged_alike(seed):
    W, order = random_graph(seed), np.random.default_rng(seed).permutation(60)
    labels = cut_tree(merge_graph(W), 7)
    assert adjusted_rand(labels[order], cut_tree(merge_graph(W[order][:, order]), 7)) == 1.0


def test_unconnected_parts_are_joined_last():
    W = sp.csr_array(sp.block_diag([random_graph(0), random_graph(1), random_graph(2, p=30)]))
    tree = merge_graph(W)
    assert is_valid_linkage(tree)
    np.testing.assert_array_equal(cut_tree(tree, 3), np.repeat([0, 1, 2], [60, 60, 30]))
    np.testing.assert_array_equal(cut_tree(tree, 2), np.repeat([0, 1], [120, 30]))


def test_a_graph_without_edges_and_one_node():
    tree = merge_graph(sp.csr_array(np.eye(3)))
    assert is_valid_linkage(tree)
    np.testing.assert_array_equal(cut_tree(tree, 3), [0, 1, 2])
    assert merge_graph(sp.csr_array(np.eye(1))).shape == (0, 4)


@every_seed
def test_merges_that_rounding_puts_below_their_parts(seed):
    """Nodes that are all equally far apart, up to rounding."""
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.1, 3.0, 80)
    W = np.outer(scale, scale) * 0.01 + np.diag(scale)
    tree = merge_graph(sp.csr_array(W))
    assert is_valid_linkage(tree)
    assert (np.diff(tree[:, 2]) >= 0).all()
    assert len(np.unique(cut_tree(tree, 9))) == 9
