"""Which bandwidth, how many clusters: compare all pairs on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer._run.engine import each
from mercer._run.frozen import frozen
from mercer._run.progress import tell
from mercer._run.random import as_generator
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray
from mercer._run.warn import warn
from mercer.factors.base import as_sample
from mercer.kernels.exponential import RBF
from mercer.kernels.registry import as_kernel
from mercer.partitions.codebooks import ENCODINGS
from mercer.partitions.criteria import BALANCE, balanced_mean
from mercer.rows.source import Source
from mercer.selection.cut_comparison import Neighbors, nearest_rows
from mercer.selection.grid import check_validation_size
from mercer.selection.result import Selection

TRAIN_ROWS = 10_000
VALIDATION_ROWS = 20_000
# Clusters of a degenerate graph are clear to themselves: a few rows that see no others. A bandwidth
# is rejected beyond DEGENERATE · (the least cut of one with as many clusters) + SLIGHT, or where
# the evidence of the fit calls it too narrow or too wide and that of another does not. Set on 4,000
# + 2,000 rows of mnist, pendigits, satimage and letter, random binning, ten bandwidths from 1/16 to
# 64 times the rule: cuts were .07 to .26 at the best NMI of each set, and .38 to .81 where clusters
# had fallen apart (NMI below .2), but for letter, whose 26 clusters need the second condition.
DEGENERATE, SLIGHT = 1.5, 0.02


def search(
    estimator: Any,
    X: Any,
    *,
    n_clusters: Iterable[int] = range(2, 11),
    gamma: Iterable[float] | None = None,
    criterion: str | None = None,
    balance: float = BALANCE,
    outlier: float = 0.0,
    validation_size: int = VALIDATION_ROWS,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Selection:
    """Score every pair of a number of clusters and a bandwidth on held-out rows: larger is better.

    Models are fitted on the estimator's `train_size` (10,000) rows and scored on others. Where each
    pair is a fit of its own, a bandwidth is not feasible if its clusters split close neighbours
    among the held-out rows much more often than those of another, or if rows are similar to no
    others. For a `KernelSpectralClustering` each bandwidth costs one factor and one decomposition
    for all numbers of clusters; with its `kernel_cholesky`, one of each serves all bandwidths.
    Threads run over bandwidths.

    Parameters
    ----------
    estimator : KernelSpectralClustering, SpectralClustering or KernelKMeans
        The estimator to choose parameters for; it is not changed. `KernelSpectralClustering` takes
        every criterion, the others "bas" and "ams", by the distances of rows to directions (to
        centres); there each pair is a fit of its own.
    X : anything `mercer.as_source` takes
        The rows.
    n_clusters : iterable of int, default=range(2, 11)
        Numbers of clusters, each at least 2.
    gamma : iterable of float or None, default=None
        Bandwidths. None takes the estimator's own, and for `KernelSpectralClustering` with
        gamma="auto" compares it with wider and narrower ones.
    criterion : "bas", "ams", "blf" or None, default=None
        What the scores measure: how well rows point along one direction each ("bas"), how far
        their mean scores are apart ("ams"), or how well their signs fit code words ("blf"). None
        is the estimator's encoding, or "bas".
    balance : float, default=0.2
        η, the weight of balanced cluster sizes.
    outlier : float, default=0.0
        Clusters of at most this weight on the held-out rows count as noise.
    validation_size : int, default=20000
        Held-out rows, at most.
    sample_weight : array of shape (n_rows,) or None, default=None
        Weight of each row.
    n_jobs : int or None, default=None
        Number of threads; None is the estimator's.

    Returns
    -------
    Selection
        The table of scores, its best pair and the runners-up.

    Examples
    --------
    >>> from mercer import KernelSpectralClustering
    >>> from mercer.datasets import rings
    >>> from mercer.selection import search
    >>> X, y = rings(3000, random_state=0)
    >>> search(KernelSpectralClustering(random_state=0), X, n_clusters=range(2, 6)).best.n_clusters
    3
    """
    sizes = _sizes(n_clusters)
    gammas = _gammas(gamma)
    named = estimator._default_criterion() if criterion is None else criterion
    if named not in ENCODINGS:
        raise ValueError(f"criterion={named!r} is unknown; choose one of {list(ENCODINGS)}")
    for value, name, most in ((balance, "balance", 1.0), (outlier, "outlier", np.inf)):
        if not 0 <= value <= most:
            raise ValueError(f"{name}={value!r} must be between 0 and {most:g}")
    if not isinstance(validation_size, Integral) or validation_size < sizes[-1]:
        raise ValueError(
            f"validation_size={validation_size!r} is smaller than n_clusters={sizes[-1]}: the "
            "held-out rows cannot show every cluster; raise validation_size"
        )
    threads = n_threads(estimator.n_jobs if n_jobs is None else n_jobs)
    options = {
        "encoding": named,
        "balance": float(balance),
        "outlier": float(outlier),
        "n_validation": int(validation_size),
        "threads": threads,
    }
    if estimator._compares_at_once:
        found: Selection = estimator.search_scores(X, sample_weight, sizes, gammas, **options)
    else:
        found = _search_by_fits(estimator, X, sample_weight, sizes, gammas, **options)
    if gammas and found.demand_feasible().is_at_edge:
        warn(
            f"the best score ({found.best.score:.3f}) is at the edge of the {len(gammas)} "
            "bandwidths compared: give gamma a wider range"
        )
    return found.demand_feasible()


def _search_by_fits(
    estimator: Any,
    X: Any,
    sample_weight: Any,
    sizes: tuple[int, ...],
    gammas: tuple[float, ...],
    *,
    encoding: str,
    balance: float,
    outlier: float,
    n_validation: int,
    threads: int,
) -> Selection:
    """A fit for each pair, scored by the distances of held-out rows to its clusters."""
    from mercer.rows.checks import checked_source, checked_weights

    if encoding == "blf":
        raise ValueError(
            f"criterion='blf' needs the scores of KernelSpectralClustering; with "
            f"{type(estimator).__name__} use 'bas' or 'ams'"
        )
    if as_kernel(estimator.kernel or "rbf").is_precomputed:
        raise ValueError(
            f"search fits {type(estimator).__name__} on part of the rows, which a precomputed "
            "matrix does not have; pass rows and a kernel of them"
        )
    source = checked_source(X)
    weights = checked_weights(sample_weight, source.n_rows)
    rng = as_generator(estimator.random_state)
    n_train = min(TRAIN_ROWS, source.n_rows - max(source.n_rows // 3, 1))
    order = rng.permutation(source.n_rows)
    held_out = np.sort(order[n_train : n_train + n_validation])
    check_validation_size(len(held_out), sizes[-1])
    train = _Rows.of(source, np.sort(order[:n_train]), weights)
    held = _Rows.of(source, held_out, weights)
    pairs = [(gamma, k) for gamma in gammas or (None,) for k in sizes]

    sample = as_sample(None, held.rows, held.weights)
    near = nearest_rows(RBF(1.0), sample, sizes[-1]) if len(gammas) > 1 else None
    score = FitScore(clone(estimator), train, held, near, encoding, balance, outlier)
    found = []
    with single_threaded_blas():
        for number, value in enumerate(each(score, pairs, threads)):
            tell("search", (number + 1) * len(held_out), len(pairs) * len(held_out))
            found.append(value)
    scores, cuts, suits = np.array(found).reshape(-1, len(sizes), 3).transpose(2, 0, 1)
    scores[(suits == 0) & suits.any(axis=0)] = np.nan
    least = np.fmin.reduce(np.where(np.isnan(scores), np.nan, cuts), axis=0)
    scores[cuts > DEGENERATE * least + SLIGHT] = np.nan
    return Selection(
        encoding, balance, sizes, gammas or (None,), scores, len(train.weights), len(held_out)
    )


@frozen
class _Rows:
    """Some rows of a source, with their weights."""

    rows: Any
    weights: FloatArray

    @classmethod
    def of(cls, source: Source, ids: Any, weights: FloatArray | None) -> _Rows:
        return cls(source.take(ids), np.ones(len(ids)) if weights is None else weights[ids])


@frozen
class FitScore:
    """A bandwidth and a number of clusters → what a model fitted with them is worth.

    The criterion, the cut (0 where it is not measured), and 1 if the bandwidth suits the rows, else
    0; NaN and 0 where there are no clusters.
    """

    estimator: Any
    train: _Rows
    held: _Rows
    neighbors: Neighbors | None  # of held-out rows, where bandwidths are compared
    encoding: str
    balance: float
    outlier: float

    def __call__(self, pair: tuple[float | None, int]) -> tuple[float, float, float]:
        chosen = {} if pair[0] is None else {"gamma": pair[0]}
        model = clone(self.estimator).set_params(n_clusters=pair[1], n_jobs=1, **chosen)
        model.fit(self.train.rows, sample_weight=self.train.weights)
        distances = model._cluster_distances(self.held.rows)
        k = distances.shape[1]
        if k < 2:
            return float("nan"), float("nan"), 0.0
        score = _criterion_of(
            distances, self.held.weights, self.encoding, self.balance, self.outlier
        )
        if self.neighbors is None:
            return score, 0.0, 1.0
        return score, self.neighbors.cut(distances.argmin(axis=1), k), _suits(model)


def _suits(model: Any) -> float:
    """1, or 0 where the kernel is too narrow or too wide for the rows."""
    evidence = () if model.report_.trust is None else model.report_.trust.evidence
    return float(all(e.grade == "good" for e in evidence if e.name == "bandwidth"))


def _criterion_of(
    distances: FloatArray, weights: FloatArray, encoding: str, balance: float, outlier: float
) -> float:
    """Mean over clusters of 1 - d₁/d₂ (bas) or of the membership ∝ 1/d (ams), and balance."""
    k = distances.shape[1]
    nearest = np.sort(distances, axis=1)
    if encoding == "ams":
        closeness = 1.0 / np.maximum(nearest, 1e-100)
        clear = closeness[:, 0] / closeness.sum(axis=1)
    else:
        clear = 1.0 - nearest[:, 0] / np.maximum(nearest[:, 1], np.finfo(float).tiny)
    return balanced_mean(clear, distances.argmin(axis=1), weights, k, balance, outlier)


def _sizes(n_clusters: Iterable[int]) -> tuple[int, ...]:
    given: list[Any] = [n_clusters] if isinstance(n_clusters, Integral) else list(n_clusters)
    if not given or not all(isinstance(k, Integral) and int(k) >= 2 for k in given):
        raise ValueError(
            f"n_clusters={given!r} must be whole numbers of 2 or more, at least one of them"
        )
    return tuple(sorted({int(k) for k in given}))


def _gammas(gamma: Iterable[float] | None) -> tuple[float, ...]:
    if gamma is None:
        return ()
    given = np.atleast_1d(np.asarray(gamma, np.float64)).ravel()
    if not len(given) or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(f"gamma={gamma!r} must be positive numbers, at least one of them")
    return tuple(float(g) for g in np.unique(given))
