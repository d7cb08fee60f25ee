"""Which levels of a tree are kept, and how their clusters are numbered."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from marking import seeds
from mercer import MercerWarning, SpectralClustering
from mercer.linalg.merging import cut_tree
from mercer.partitions.layers import Layers, find_layers, persistence, with_distances

every_seed = seeds(10, quick=3)


def nested_affinities(seed, sizes=(4, 3, 5)):
    """Groups of clusters: affinities of about 1 within a group, of about 0.01 between two."""
    rng, group = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    W = np.where(group[:, None] == group, 1.0, 0.01) * rng.uniform(0.8, 1.2, (12, 12))
    return (W + W.T) / 2 + 5.0 * np.eye(12), group


@every_seed
def test_groups_of_clusters_are_a_layer(seed):
    W, group = nested_affinities(seed)
    layers = find_layers(W, np.ones(12))
    numbers = [parents.max() + 1 for parents in layers.parents]
    assert 3 in numbers
    parents = layers.parents[numbers.index(3)]
    np.testing.assert_array_equal(parents, np.array([1, 2, 0])[group])  # by decreasing weight
    assert layers.evidence[numbers.index(3)] == max(layers.evidence) >= 1.0


@every_seed
def test_each_layer_is_a_coarsening_of_the_next(seed):
    W, _ = nested_affinities(seed)
    parents = [*find_layers(W, np.arange(1.0, 13.0)).parents, np.arange(12)]
    for coarse, fine in pairwise(parents):
        assert coarse.max() < fine.max()
        assert len(np.unique(fine * 12 + coarse)) == fine.max() + 1


def test_even_steps_are_no_evidence():
    tree = np.column_stack([np.zeros((9, 2)), np.arange(9.0), np.arange(2, 11)])
    assert max(persistence(tree).values()) < 1.0


def test_one_and_two_clusters_have_no_layers():
    assert find_layers(np.eye(1), np.ones(1)).parents.shape == (0, 1)
    assert find_layers(np.ones((2, 2)), np.ones(2)).parents.shape == (0, 2)
    assert Layers.none(3).tree.shape == (0, 4)


def test_means_order_clusters_that_the_graph_does_not_connect():
    """Three pairs of clusters without any edge between two clusters."""
    means = np.array([0.0, 1.0, 10.0, 11.0, 30.0, 31.0])
    labels = np.repeat(np.arange(6), 5)
    rows = means[labels][:, None] + np.zeros((1, 2))
    W = with_distances(np.eye(6), rows, np.ones(30), labels)
    assert abs(W - W.T).max() == 0.0
    tree = find_layers(W, np.ones(6)).tree
    np.testing.assert_array_equal(cut_tree(tree, 3), [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(cut_tree(tree, 2), [0, 0, 0, 0, 1, 1])
    connected = np.eye(6)
    connected[0, 5] = connected[5, 0] = 0.5  # an edge of the graph counts for more
    tree = find_layers(with_distances(connected, rows, np.ones(30), labels), np.ones(6)).tree
    np.testing.assert_array_equal(tree[0, :2], [0, 5])


@pytest.mark.parametrize("ensemble", [None, 4])
def test_layers_of_more_rows_than_are_clustered(ensemble, monkeypatch):
    """Coordinates of part of the rows make the clusters; all rows have labels."""
    monkeypatch.setattr("mercer.factors.neighbors.POINTS", 600)
    X, _ = make_blobs(900, 4, centers=6, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = SpectralClustering(5, ensemble=ensemble, random_state=0).fit(X)
    assert model.layers_.shape[1] == 5
    assert model.tree_.shape in ((4, 4), (0, 4))
