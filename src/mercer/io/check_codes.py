"""Are the code books, scores and searches of a model file sound?"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.io.check_models import check_factor_model
from mercer.io.check_rows import is_array, is_double
from mercer.io.damage import demand
from mercer.partitions.codebooks import ENCODINGS, Codebook
from mercer.selection.result import Selection


def check_codebook(codebook: Codebook) -> None:
    """Clusters with a weight each, in an encoding that is known."""
    demand(
        isinstance(codebook.encoding, str) and codebook.encoding in ENCODINGS,
        "the code book's encoding is unknown",
    )
    prototypes, counts = codebook.prototypes, codebook.counts
    demand(
        is_double(prototypes, 2) and len(prototypes) > 0,
        "the code book's prototypes are no matrix of numbers",
    )
    demand(
        is_double(counts, 1) and len(counts) == len(prototypes),
        "the counts of the code book do not match its prototypes",
    )


def check_selection(selection: Selection) -> None:
    """A score for each pair, at least one of them feasible."""
    sizes, gammas, scores = selection.n_clusters, selection.gammas, selection.scores
    demand(
        isinstance(selection.criterion, str) and isinstance(selection.balance, float),
        "the search has no criterion",
    )
    demand(
        isinstance(sizes, tuple) and all(type(k) is int and k >= 1 for k in sizes),
        "the search's numbers of clusters are no numbers",
    )
    demand(
        isinstance(gammas, tuple) and all(g is None or type(g) is float for g in gammas),
        "the search's bandwidths are no numbers",
    )
    demand(
        isinstance(scores, np.ndarray)
        and scores.dtype == np.float64
        and scores.shape == (len(gammas), len(sizes))
        and scores.size > 0
        and not np.isnan(scores).all(),
        "the search's scores do not match its pairs",
    )
    counts = (selection.n_train, selection.n_validation)
    demand(all(type(count) is int for count in counts), "the search's rows have no number")


def check_kernel_spectral(model: Any) -> None:
    """The coefficients belong to the factor, the code book to the coefficients."""
    check_factor_model(model)
    k, codebook, n_features = model.n_clusters_, model.codebook_, len(model.factor_.mix)
    coefficients, bias = model.coefficients_, model.bias_
    demand(len(codebook) == k, "the number of clusters is not that of the code book")
    demand(
        is_double(coefficients, 2) and coefficients.shape == (n_features, k - 1),
        f"the coefficients do not match the {n_features} pivots and {k} clusters",
    )
    degrees = model.degree_coefficients_
    demand(
        is_double(degrees, 1) and len(degrees) == n_features,
        "the coefficients of the degree do not match the pivots",
    )
    demand(is_double(bias, 1) and len(bias) == k - 1, "the bias does not match the clusters")
    demand(
        is_array(model.eigenvalues_, 1) and len(model.eigenvalues_) == k - 1,
        "the eigenvalues do not match the clusters",
    )
    is_plane = k == 2 and codebook.encoding == "bas"  # the score and the degree
    n_coordinates = 2 if is_plane else k - 1
    demand(
        codebook.prototypes.shape[1] == n_coordinates,
        f"the code book does not have the {n_coordinates} coordinates of its encoding",
    )
    weights = model.cluster_weights_
    demand(
        is_array(weights, 1) and len(weights) == k,
        "the weights of the clusters do not match the code book",
    )
