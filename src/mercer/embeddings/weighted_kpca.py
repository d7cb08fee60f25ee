"""Weighted kernel PCA on a thin factor: the scores of kernel spectral clustering [novak2023].

The dual problem D⁻¹ M_D Ω β = λ β (eq. 4) is solved in its symmetric form (eq. 9) with Ω ≈ G Gᵀ:
X = D^-½ M_D G = Q Σ Vᵀ gives α = X V / σ, β = D^-½ α and λ = σ² (eq. 10). Neither Q nor β is needed
for what comes after, because the rows of X are centred by the weights that scale them:

    Gᵀβ = Xᵀ X V / σ = V σ        and        dᵀβ = (Gᵀ1 - n·μ)ᵀ V / σ,

so one pass for the degrees and one for the Gram matrix XᵀX is all the work.
"""

from __future__ import annotations

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray
from mercer.linalg.eigen import leading_eigenpairs
from mercer.rows.source import spans

LEAST_DEGREE = 1e-6  # of the mean: a low-rank degree below it is an error of the approximation
LEAST_VALUE = 1e-10  # of the largest eigenvalue: below it there is no direction
SAFE = 1e-6  # a Gram matrix keeps half the digits of smaller eigenvalues: QR keeps all


@frozen
class WeightedKpca:
    """Leading directions: the score of a row with factor row f is f @ directions + bias."""

    values: FloatArray  # (m,) λ, largest first
    next_value: float  # the eigenvalue after them, or 0
    vectors: FloatArray  # (rank, m) V
    mean: FloatArray  # (rank,) μ: the mean of G's rows by weights 1/d
    ones: FloatArray  # (rank,) Gᵀ1: the degree of a row is f @ ones
    bias: FloatArray  # (m,) b = (λ - 1)(dᵀβ)/n
    least_degree: float
    n_clamped: int  # rows whose low-rank degree is not positive: they are ignored
    error: float  # of the solver: the largest ‖XᵀX v - λ v‖

    @property
    def directions(self) -> FloatArray:
        """Gᵀβ: (rank, m)."""
        return self.vectors * np.sqrt(self.values)

    @property
    def degree_direction(self) -> FloatArray:
        """The same for the constant eigenvector β₀ = 1/√Σd that centring removes: (rank,)."""
        return self.ones / np.linalg.norm(self.ones)

    def degrees(self, F: FloatArray) -> FloatArray:
        """d of rows of the factor, in float64."""
        return np.maximum((F @ self.ones.astype(F.dtype)).astype(np.float64), self.least_degree)

    def multipliers(self, F: FloatArray) -> FloatArray:
        """β of rows of the factor: (n, m)."""
        projected = (F - self.mean) @ (self.vectors / np.sqrt(self.values))
        d = self.degrees(F)
        return np.where((d > self.least_degree)[:, None], projected / d[:, None], 0.0)


def weighted_kpca(
    F: FloatArray,
    weights: FloatArray,
    m: int,
    *,
    rng: np.random.Generator,
    by_qr: bool | None = None,
) -> WeightedKpca:
    """At most m leading directions of weighted kernel PCA on K ≈ F Fᵀ.

    A row of weight w counts as w rows, of weight 0 as none. Cost: O(n·rank²). `by_qr` takes the
    paper's route, QR of X and SVD of R, which holds another n·rank numbers; None does where
    eigenvalues below 10⁻⁶ of the largest are asked for, as a Gram matrix would blur them.
    """
    total = float(weights.sum())
    ones = sum((F[a:b].T @ weights[a:b].astype(F.dtype) for a, b in spans(len(F))), np.zeros(1))
    ones = np.asarray(ones, np.float64)
    d = (F @ ones.astype(F.dtype)).astype(np.float64)
    least = max(LEAST_DEGREE * float(weights @ d) / total, np.finfo(np.float64).tiny)
    is_used = d > least
    v = np.where(is_used, weights / np.maximum(d, least), 0.0)  # eq. 4: V = D⁻¹
    mean = sum((v[a:b].astype(F.dtype) @ F[a:b] for a, b in spans(len(F))), np.zeros(1)) / v.sum()
    wanted = min(m + 1, F.shape[1])
    if by_qr:
        values, vectors, error = _by_qr(F, v, mean, wanted)
    else:
        pairs = leading_eigenpairs(_gram(F, v, mean), wanted, rng=rng)
        values, vectors, error = pairs.values, pairs.vectors, float(pairs.residuals.max(initial=0))
        is_whole = len(values) == wanted  # LAPACK gives up on some multiples of the identity
        if not is_whole or (by_qr is None and values[-1] < SAFE * values[0]):
            values, vectors, error = _by_qr(F, v, mean, wanted)
    n_kept = min(int((values > LEAST_VALUE * max(values[0], SAFE)).sum()), m)
    kept, V = values[:n_kept], vectors[:, :n_kept]
    used = weights if is_used.all() else weights * is_used
    average = ones / total if used is weights else (used @ F) / used.sum()
    bias = (kept - 1.0) * ((average - mean) @ (V / np.sqrt(kept)))
    following = float(values[n_kept]) if len(values) > n_kept else 0.0
    n_clamped = int(((weights > 0) & ~is_used).sum())
    return WeightedKpca(kept, following, V, mean, ones, bias, least, n_clamped, error)


def trimmed_weights(F: FloatArray, weights: FloatArray, share: float) -> FloatArray:
    """The weights, 0 for rows of least degree that make up at most this share of their sum."""
    if share <= 0:
        return weights
    degrees = F @ (F.T @ weights.astype(F.dtype))
    order = np.argsort(degrees, kind="stable")
    n_left_out = np.searchsorted(np.cumsum(weights[order]), share * weights.sum(), side="right")
    kept = weights.copy()
    kept[order[:n_left_out]] = 0.0
    return kept


def _gram(F: FloatArray, v: FloatArray, mean: FloatArray) -> FloatArray:
    """XᵀX = Σ v (g - μ)(g - μ)ᵀ, tile by tile."""
    G, root = np.zeros((F.shape[1], F.shape[1])), np.sqrt(v).astype(F.dtype)[:, None]
    for a, b in spans(len(F)):
        scaled = F[a:b] * root[a:b]
        G += scaled.T @ scaled
    G -= v.sum() * np.outer(mean, mean)
    return (G + G.T) / 2


def _by_qr(
    F: FloatArray, v: FloatArray, mean: FloatArray, wanted: int
) -> tuple[FloatArray, FloatArray, float]:
    """X = QR, R = U Σ Vᵀ (eq. 10): λ = Σ² with all its digits, V with signs as `eigen` has them."""
    X = (F - mean) * np.sqrt(v)[:, None]
    _, sigma, Vt = np.linalg.svd(np.linalg.qr(X, mode="r"))
    V = Vt[:wanted].T
    signs = np.sign(V[np.abs(V).argmax(axis=0), np.arange(wanted)])
    return sigma[:wanted] ** 2, V * np.where(signs == 0, 1.0, signs), float(np.finfo(float).eps)
