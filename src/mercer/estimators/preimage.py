"""From scores back to rows: a ridge regression of the rows on a kernel of their scores."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from mercer._run.frozen import frozen
from mercer._run.records import Record, stored
from mercer._run.types import FloatArray
from mercer.kernels.exponential import RBF
from mercer.rows.source import spans

MOST_CENTERS = 1000  # rows whose scores the regression is anchored at


@frozen
class PreImage(Record):
    """x ≈ k(z, centers) @ coefficients + mean."""

    gamma: float = stored("float, finite, > 0")
    centers: FloatArray = stored("(m, c) float, finite")  # scores
    coefficients: FloatArray = stored("(m, d) float, finite")
    mean: FloatArray = stored("(d,) float, finite")

    def sizes(self) -> dict[str, int]:
        """c: components; d: columns of rows."""
        return {"c": self.centers.shape[1], "d": self.coefficients.shape[1]}

    def rows(self, Z: FloatArray) -> FloatArray:
        out = np.empty((len(Z), len(self.mean)))
        against = RBF(self.gamma).against(self.centers)
        for start, stop in spans(len(Z)):
            out[start:stop] = against(Z[start:stop]) @ self.coefficients + self.mean
        return out


def fit_preimage(
    Z: FloatArray,
    X: FloatArray,
    weights: FloatArray,
    *,
    alpha: float,
    rng: np.random.Generator,
) -> PreImage:
    """min Σ w‖x - k(z, C) B‖² + α tr(Bᵀ k(C, C) B): kernel ridge regression on up to 1,000 C.

    The rows are centred first, so that the ridge pulls towards their mean. Memory O(tile · 1,000).
    """
    kernel = RBF("auto").resolve(Z, weights, rng=rng)
    mean = np.average(X, axis=0, weights=weights)
    centers = Z
    if len(Z) > MOST_CENTERS:
        centers = Z[np.sort(rng.choice(len(Z), MOST_CENTERS, replace=False))]
    K = kernel.matrix(centers, centers)
    if centers is Z:  # the same minimum, better conditioned
        K[np.diag_indices_from(K)] += alpha / weights
        B = scipy.linalg.solve(K, X - mean, assume_a="pos")
        return PreImage(float(kernel.gamma), centers, B, mean)
    against = kernel.against(centers)
    left, right = alpha * K, np.zeros((len(centers), X.shape[1]))
    for start, stop in spans(len(Z)):
        k = against(Z[start:stop])
        weighted = k.T * weights[start:stop]
        left += weighted @ k
        right += weighted @ (X[start:stop] - mean)
    left[np.diag_indices_from(left)] += 1e-10 * np.trace(left) / len(left)
    B = scipy.linalg.solve(left, right, assume_a="pos")
    return PreImage(float(kernel.gamma), centers, B, mean)
