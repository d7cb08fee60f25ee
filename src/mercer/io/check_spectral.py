"""Are the landmark graphs, ensembles and cones of a model file sound?

Loops without bounds checks follow their numbers: after these checks, none leads out of an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.factors.binning import BinningFactor
from mercer.factors.landmarks import LandmarkGraph, Search
from mercer.factors.neighbors import AffinityGraph
from mercer.io.check_binning import check_bin_vectors, check_binning_model
from mercer.io.check_models import FACTORS, check_factor_model, check_features
from mercer.io.check_rows import is_array, is_double
from mercer.io.damage import demand
from mercer.kernels.exponential import RBF
from mercer.kernels.given import Precomputed
from mercer.partitions.ensemble import Bases, Consensus
from mercer.rows.format import RowFormat

FACTORS_AND_GRAPHS = (*FACTORS, LandmarkGraph, AffinityGraph, BinningFactor)


def check_landmark_graph(graph: LandmarkGraph) -> None:
    """Any row finds its landmarks and weights."""
    demand(isinstance(graph.format, RowFormat), "the graph has no format for its rows")
    demand(not graph.format.blocks, "the graph's rows come in column blocks")
    demand(isinstance(graph.search, Search), "the graph has no landmarks")
    p, q = graph.search.landmarks.shape
    projection, m, gamma = graph.projection, graph.n_neighbors, graph.gamma
    demand(
        projection is None or (is_double(projection, 2) and projection.shape[1] == q),
        f"the projection does not lead to the {q} columns of the landmarks",
    )
    demand(
        type(m) is int and 1 <= m <= p,
        f"the number of neighbours is not between 1 and the {p} landmarks",
    )
    is_positive = isinstance(gamma, float) and 0 < gamma < np.inf
    demand(is_positive, "the graph's gamma is no positive number")
    demand(type(graph.ties_rows) is bool, "whether the graph ties rows to each other is not told")
    demand(graph.weighting in ("gaussian", "rank"), "the graph's weighting is unknown")
    demand(graph.training_edges is None, "the graph holds ties of rows that it was fitted on")


def check_affinity_graph(graph: AffinityGraph) -> None:
    """Its items are columns of a row."""
    n, items = graph.n_items, graph.items
    demand(type(n) is int and n >= 1, "the graph has no items")
    demand(
        is_array(items, 1, "i") and bool(((items >= 0) & (items < n)).all()),
        f"an item of the graph is not among its {n}",
    )
    demand(graph.training_matrix is None, "the graph holds the affinities of its fit")


def check_bases(bases: Bases) -> None:
    """Each partition has a stretch of columns, in which its landmarks' clusters lie."""
    scores, own, offsets = bases.scores, bases.own, bases.offsets
    demand(is_double(scores, 2) and min(scores.shape) > 0, "the ensemble has no scores")
    demand(
        is_array(own, 2, "i") and len(own) > 0 and own.shape[1] == len(scores),
        "the ensemble's clusters of landmarks do not match its scores",
    )
    demand(
        is_array(offsets, 1, "i") and len(offsets) == len(own) + 1,
        "the ensemble's offsets do not match its partitions",
    )
    is_ascending = offsets[0] == 0 and bool((offsets[1:] > offsets[:-1]).all())
    demand(
        is_ascending and offsets[-1] == scores.shape[1],
        "the ensemble's offsets do not divide the columns of its scores",
    )
    is_own = (own >= offsets[:-1, None]) & (own < offsets[1:, None])
    demand(bool(is_own.all()), "a landmark's base cluster is not one of its partition")


def check_consensus(consensus: Consensus) -> None:
    """There is a vector for each base cluster, and the cones live among them."""
    bases, vectors = consensus.bases, consensus.vectors
    demand(isinstance(bases, Bases), "the consensus has no base partitions")
    t = bases.scores.shape[1]
    demand(
        is_double(vectors, 2) and len(vectors) == t,
        f"the consensus does not have a vector for each of its {t} base clusters",
    )
    _check_directions(consensus.directions, vectors)
    demand(is_array(consensus.values, 1), "the eigenvalues of the consensus are no numbers")
    demand(type(consensus.n_iter) is int, "the sweeps of the consensus are no number")


def check_spectral_clustering(model: Any) -> None:
    """The cones, the vectors and the graph or factor belong together."""
    graph, consensus = model.factor_, model.consensus_
    if isinstance(graph, LandmarkGraph):
        _check_landmark_model(model)
    elif isinstance(graph, AffinityGraph):
        check_features(model)
        is_same = isinstance(model.kernel_, Precomputed) and graph.n_items == model.n_features_in_
        demand(is_same, "the graph's items are not the columns of its rows")
    elif isinstance(graph, BinningFactor):
        check_features(model)
        check_binning_model(model)
    else:
        check_factor_model(model)
    if consensus is None:
        _check_vectors(model)
        directions = model.directions_
    else:
        alone = model.vectors_ is None and model.directions_ is None
        demand(alone, "it has both a consensus and vectors of its own")
        is_tied = isinstance(graph, LandmarkGraph) and len(consensus.bases.scores) == graph.rank
        demand(is_tied, "the ensemble's partitions are not those of the landmarks")
        directions = consensus.directions
    weights = model.cluster_weights_
    demand(
        is_array(weights, 1) and len(weights) == len(directions) == model.n_clusters_,
        "the weights and the number of clusters do not match the clusters' directions",
    )
    demand(is_array(model.eigenvalues_, 1), "the eigenvalues are no numbers")
    _check_ranking(model.n_clusters_ranking_)


def _check_landmark_model(model: Any) -> None:
    """Rows have the columns that lead to the landmarks, and the kernel is the graph's."""
    check_features(model)
    graph, n_features = model.factor_, model.n_features_in_
    towards = graph.search.landmarks.T if graph.projection is None else graph.projection
    demand(
        len(towards) == n_features,
        f"the landmarks are reached from {len(towards)} columns, but n_features_in_ is "
        f"{n_features}",
    )
    shift, kernel = graph.format.shift, model.kernel_
    demand(
        shift is None or len(shift) == n_features,
        "the shift of the rows does not match their columns",
    )
    own = graph.kernel.in_units(-graph.format.exponent)
    is_same = isinstance(kernel, RBF) and kernel.columns is None and kernel.gamma == own.gamma
    demand(is_same, "the kernel is not that of the landmark graph")


def _check_vectors(model: Any) -> None:
    vectors, rank = model.vectors_, model.factor_.rank
    if isinstance(model.factor_, BinningFactor):
        check_bin_vectors(vectors, model.factor_)
        _check_directions(model.directions_, vectors)
        return
    demand(
        is_double(vectors, 2) and len(vectors) == rank,
        f"the vectors do not match the factor, which has rank {rank}",
    )
    _check_directions(model.directions_, vectors)


def _check_directions(directions: Any, vectors: Any) -> None:
    demand(
        is_double(directions, 2)
        and min(directions.shape) > 0
        and directions.shape[1] == vectors.shape[1],
        "the clusters' directions do not match the vectors",
    )


def _check_ranking(ranking: Any) -> None:
    sound = all(
        isinstance(pair, tuple) and [type(part) for part in pair] == [int, float]
        for pair in ranking
    )
    demand(sound, "the ranking of numbers of clusters is no list of numbers and gaps")
