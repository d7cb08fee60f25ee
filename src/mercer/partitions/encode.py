"""A code book for given scores: the encodings as published, and further starts.

Where eigenvalues agree, any rotation of the eigenvectors is as good, and words of signs depend on
it: two clusters may share an orthant. Directions do not, so "bas" also starts from the directions
of training rows, and keeps the code book that its criterion scores highest.
"""

from __future__ import annotations

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer.embeddings.scores import ScoreMap, Scores
from mercer.linalg.products import unit_rows
from mercer.partitions.codebooks import (
    Codebook,
    Encoding,
    angle_codebook,
    direction_codebook,
    farthest_directions,
    refine_directions,
    sign_codebook,
)
from mercer.partitions.cones import find_cones
from mercer.partitions.criteria import criterion
from mercer.rows.sample import evenly

DIRECTION_ROWS = 2000  # training rows that directions are sought among


@frozen
class Encoded:
    """A code book, and how the k-means that found its directions ended."""

    codebook: Codebook
    n_iter: int = 1
    is_settled: bool = True


def encode(
    encoding: Encoding,
    train: Scores,
    weights: FloatArray,
    model: ScoreMap,
    k: int,
    *,
    n_init: int = 0,
    max_iter: int = 300,
    tol: float = 1e-4,
    rng: np.random.Generator | None = None,
) -> Encoded:
    """k clusters from the scores of the training rows.

    Rows of weight 0 are ignored. `n_init` runs of k-means on directions are tried beside the
    published start (bas only).
    """
    if not weights.all():
        counted = np.flatnonzero(weights)
        train, weights = train.part(counted), weights[counted]
    Y = train.coordinates(encoding, k)
    if encoding == "blf":
        return Encoded(sign_codebook(Y, weights, k))
    if encoding == "ams":
        return Encoded(angle_codebook(Y, weights, k))
    coefficients = model.linear_map(encoding, k)[0]
    some = evenly(len(Y), DIRECTION_ROWS)
    rows, w = unit_rows(Y[some]), weights[some]
    published = direction_codebook(coefficients, k)
    tried = [published] if len(published) == k else []
    tried.append(_directions(refine_directions(rows, farthest_directions(Y[some], k), w)))
    n_iter, is_settled = 1, True
    if n_init:
        assert rng is not None
        cones = find_cones(
            rows,
            w,
            k,
            assign_labels="kmeans",
            n_init=n_init,
            rng=rng,
            max_iter=max_iter,
            tol=tol,
        )
        tried.append(_directions(cones.directions))
        n_iter, is_settled = cones.n_iter, cones.is_converged
    best = max(tried, key=lambda book: criterion(book, rows, w))
    counts = np.bincount(best.labels(rows), weights=w, minlength=k).astype(np.float64)
    return Encoded(Codebook("bas", best.prototypes, counts), n_iter, is_settled)


def _directions(directions: FloatArray) -> Codebook:
    return Codebook("bas", directions, np.ones(len(directions)))
