"""The same rows by k-means, for comparison."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.types import IdArray
from mercer.metrics.information import normalized_mutual_info
from mercer.metrics.pairs import adjusted_rand
from mercer.rows.rows import BlockRows, Rows

MOST_CLUSTERS = 200  # more would take longer than all else on a page


@frozen
class Peer:
    """Another partition of the sampled rows into as many clusters."""

    name: str
    labels: IdArray  # (n,) numbered to agree most with the model's clusters
    sizes: tuple[int, ...]
    nmi: float
    ari: float


def compare_with_kmeans(rows: Rows, labels: IdArray, *, seed: int) -> Peer | None:
    """Cluster these rows by scikit-learn's k-means; None where it does not apply."""
    n_clusters = int(labels.max()) + 1
    is_one = len(np.unique(labels)) < 2 or n_clusters >= len(labels)
    if isinstance(rows, BlockRows) or is_one or n_clusters > MOST_CLUSTERS:
        return None
    from scipy.optimize import linear_sum_assignment
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    X = rows if sp.issparse(rows) else np.asarray(rows, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        found = KMeans(n_clusters, n_init=3, random_state=seed).fit_predict(X)
    table = np.zeros((n_clusters, n_clusters))
    np.add.at(table, (labels, found), 1)
    mine, theirs = linear_sum_assignment(-table)  # the numbering that agrees most
    renamed = np.empty(n_clusters, np.intp)
    renamed[theirs] = mine
    same = renamed[found]
    sizes = tuple(np.bincount(same, minlength=n_clusters).tolist())
    nmi, ari = normalized_mutual_info(labels, same), adjusted_rand(labels, same)
    return Peer("k-means", same, sizes, float(nmi), float(ari))
