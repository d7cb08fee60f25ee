"""Every stage against a dense float64 oracle, over random problems of any size, scale and dtype.

The oracle forms whole matrices and calls numpy; nothing in it is shared with the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import reference
from counting import counted
from mercer.embeddings.kpca import principal_map
from mercer.embeddings.weighted_kpca import weighted_kpca
from mercer.factors import Exact, IncompleteCholesky, Nystrom, RandomBinning, RandomFourier
from mercer.factors.base import as_sample
from mercer.factors.binning import BinGraph
from mercer.factors.dense import dense_spectral_map
from mercer.factors.landmarks import Landmarks
from mercer.factors.quantized import Quantized
from mercer.kernels import RBF, Chi2, Cosine, HistogramIntersection, Laplacian, Polynomial
from mercer.linalg.eigen import leading_eigenpairs
from mercer.linalg.lloyd import WeightedRows
from mercer.linalg.walks import leading_walk
from mercer.partitions.codebooks import Codebook
from mercer.partitions.kmeans import kmeans_plus_plus

pytestmark = pytest.mark.numeric

STAGE = "oracle examples"
EPS = {"f4": np.finfo("f4").eps, "f8": np.finfo("f8").eps}


@dataclass(frozen=True)
class Problem:
    """Rows, their weights and a bandwidth that suits them."""

    X: Any  # (n, d) float32 or float64, read-only
    weights: Any  # (n,) float64
    gamma: float
    seed: int

    @property
    def dtype(self) -> str:
        return self.X.dtype.str[1:]

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @property
    def kernel(self) -> RBF:
        return RBF(self.gamma)

    def kernel_matrix(self) -> Any:
        return dense_rbf(self.X, self.X, self.gamma)

    def sample(self) -> Any:
        return as_sample(self.kernel, self.X, self.weights)


@st.composite
def problems(
    draw: st.DrawFn, least: int = 4, most: int = 40, dtypes: tuple[str, ...] = ("f4", "f8")
) -> Problem:
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n, d = draw(st.integers(least, most)), draw(st.integers(1, 5))
    scale = 10.0 ** draw(st.integers(-6, 6))
    groups = rng.normal(0, 4, (draw(st.integers(1, 4)), d))
    X = groups[rng.integers(0, len(groups), n)] + rng.normal(size=(n, d))
    X = (scale * X).astype(draw(st.sampled_from(dtypes)))
    X.flags.writeable = False
    weights = rng.integers(1, 4, n).astype(float) if draw(st.booleans()) else np.ones(n)
    gamma = 10.0 ** draw(st.floats(-2, 1)) / (d * scale**2)
    return Problem(X, weights, gamma, seed)


def dense_rbf(X: Any, Y: Any, gamma: float) -> Any:
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    return np.exp(-gamma * ((X[:, None] - Y[None]) ** 2).sum(axis=2))


def leading(A: Any, m: int) -> tuple[Any, Any]:
    """The m largest eigenvalues of a symmetric matrix, and their vectors."""
    values, vectors = np.linalg.eigh(A)
    return values[::-1][:m], vectors[:, ::-1][:, :m]


def assert_same_spaces(found: Any, A: Any, m: int, tol: float) -> None:
    """Each found vector is in the span of the oracle's with nearly the same eigenvalue.

    Eigenvectors of close eigenvalues mix: what is determined is A v = λ v.
    """
    length = np.linalg.norm(found, axis=0)
    assert (length > 0).all()
    V = found / length
    ritz = np.einsum("ij,ij->j", V, A @ V)
    assert np.abs(A @ V - V * ritz).max() < tol
    assert np.abs(np.sort(ritz)[::-1] - leading(A, m)[0]).max() < tol


# Kernels


KERNELS = {
    "rbf": (lambda g: RBF(g), reference.rbf),
    "laplacian": (lambda g: Laplacian(g), reference.laplacian),
    "chi2": (lambda g: Chi2(g), reference.chi2),
    "cosine": (lambda g: Cosine(), lambda g: reference.cosine),
    "polynomial": (
        lambda g: Polynomial(3, g, coef0=1.0),
        lambda g: reference.polynomial(3, g, 1.0),
    ),
    "intersection": (
        lambda g: HistogramIntersection(),
        lambda g: reference.histogram_intersection,
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    make, oracle = KERNELS[name]

    @given(problems(least=2, most=12))
    @counted(STAGE, f"kernel {name}")
    def compare(problem: Problem) -> None:
        X = np.abs(problem.X) if name in ("chi2", "intersection") else problem.X
        d = X.shape[1]
        scale = float(np.abs(X).max())
        gamma = problem.gamma if name in ("rbf", "polynomial") else 0.1 / (d * max(scale, 1e-30))
        kernel, function = make(gamma), oracle(gamma)
        Y = X[::-2].copy()
        wanted = reference.kernel_values(function, X, Y)
        found = kernel.matrix(X, Y)
        # rounding of the inner products, in units of the values the kernel has here
        size = max(np.abs(wanted).max(), np.abs(reference.kernel_values(function, X, X)).max())
        far = gamma * d * scale**2 if name == "rbf" else 1.0
        tol = 100 * EPS[problem.dtype] * (d + far)
        assert np.abs(found - wanted).max() <= tol * size
        diagonal = np.diagonal(reference.kernel_values(function, X, X))
        assert np.abs(kernel.diagonal(X) - diagonal).max() <= tol * size

    compare()


# Factors


PROJECTIONS = {
    "cholesky": lambda rank: IncompleteCholesky(rank),
    "cholesky greedy": lambda rank: IncompleteCholesky(rank, pivots="greedy"),
    "nystrom": lambda rank: Nystrom(rank),
    "nystrom k-means": lambda rank: Nystrom(rank, sampling="kmeans"),
    "nystrom leverage": lambda rank: Nystrom(rank, sampling="leverage"),
    "exact": lambda rank: Exact(),
    "exact cholesky": lambda rank: Exact("cholesky"),
}


@pytest.mark.parametrize("name", PROJECTIONS)
def test_projections(name: str) -> None:
    """F Fᵀ = C W⁺ Cᵀ for the pivots that were chosen; the trace error is that of K - F Fᵀ."""

    @given(problems(), st.integers(1, 40))
    @counted(STAGE, f"factor {name}")
    def compare(problem: Problem, rank: int) -> None:
        factor = PROJECTIONS[name](min(rank, len(problem.X))).fit(
            problem.kernel, problem.sample(), rng=problem.rng
        )
        K = problem.kernel_matrix()
        F = factor.training_rows.astype(np.float64)
        # pivots are rows in the factor's own frame, shifted by its format
        rows = factor.format.apply(problem.X).astype(np.float64)
        C = dense_rbf(rows, factor.pivots, problem.gamma)
        W = dense_rbf(factor.pivots, factor.pivots, problem.gamma)
        mixed = np.asarray(factor.mix, np.float64)
        # rounding of kernel values is amplified by 1/√λ of the least eigenvalue that is kept
        tol = {"f8": 1e-5, "f4": 2e-2}[problem.dtype]
        assert np.abs(F - C @ mixed).max() < tol
        unit = mixed.T @ W @ mixed
        assert np.abs(unit - np.eye(factor.rank)).max() < tol + 1e-14 * (mixed**2).sum()
        assert np.linalg.eigvalsh(K - F @ F.T).min() > -tol * len(K)
        assert np.abs(factor.rows(problem.X) - F).max() < tol
        if np.linalg.cond(W) < 1e5:  # nothing is left out for its size
            wanted = C @ np.linalg.solve(W, C.T)
            assert np.abs(F @ F.T - wanted).max() < tol
        if factor.trace_error is not None:
            w = problem.weights
            plain = np.trace(K - F @ F.T) / np.trace(K)
            weighted = w @ np.diagonal(K - F @ F.T) / (w @ np.diagonal(K))
            assert min(abs(factor.trace_error - e) for e in (plain, weighted)) < tol

    compare()


@given(problems(dtypes=("f8",)), st.integers(1, 30), st.booleans())
@counted(STAGE, "factor fourier")
def test_fourier_features(problem: Problem, rank: int, orthogonal: bool) -> None:
    """F = √(2/R) cos(X waves + phase), sine by sine: their products are those of the waves."""
    approximation = RandomFourier(rank, orthogonal=orthogonal)
    factor = approximation.fit(problem.kernel, problem.X, rng=problem.rng)
    rows = factor.format.apply(problem.X).astype(np.float64)
    angles = rows @ np.asarray(factor.waves, np.float64).T + factor.phases
    both = np.hstack([np.cos(angles), np.sin(angles)])
    F = factor.rows(problem.X)
    assert F.shape == (len(problem.X), rank)
    # each column is one of the waves' cosines or sines, scaled alike
    if rank % 2 == 0:
        wanted = both @ both.T / (rank // 2)
        assert np.abs(F @ F.T - wanted).max() < 1e-9
        assert np.abs(np.diagonal(F @ F.T) - 1.0).max() < 1e-9


@given(problems(least=4), st.integers(1, 40), st.floats(-1, 1))
@counted(STAGE, "factor binning")
def test_binning(problem: Problem, n_grids: int, width: float) -> None:
    """Z Zᵀ is the share of grids in which two rows fall into one bin."""
    gamma = 10**width / max(float(np.ptp(problem.X.astype("f8"))), 1e-30)
    factor = RandomBinning(n_grids).fit(Laplacian(gamma), problem.X, rng=problem.rng)
    rows = factor.format.apply(problem.X).astype(np.float64)
    K = np.zeros((len(rows), len(rows)))
    for g in range(n_grids):
        ids = factor.training_bins.ids[g]
        K += ids[:, None] == ids
    Z = factor.rows(problem.X)
    assert np.abs((Z @ Z.T).toarray() - K / n_grids).max() < 1e-6
    graph = BinGraph(factor)
    V = problem.rng.normal(size=(len(rows), 3))
    found = graph.product(V) + graph.diagonal()[:, None] * V
    tied = graph.is_connected()
    assert np.abs(found - K / n_grids @ V)[tied].max(initial=0.0) < 1e-9


@given(problems(least=6, dtypes=("f8",)), st.integers(2, 20))
@counted(STAGE, "factor quantized")
def test_quantized(problem: Problem, rank: int) -> None:
    """The rows of blocks factor the block matrix; its eigenvalues are those of the N×N one."""
    kernel = problem.kernel
    approximation = Quantized(
        rank=min(rank, len(problem.X)), refine=None, variance_correction=False
    )
    factor = approximation.fit(kernel, problem.sample(), rng=problem.rng)
    T = np.asarray(factor.pivots)
    beta = dense_rbf(T, T, problem.gamma)
    F = factor.block_rows()
    assert np.abs(F @ F.T - beta).max() < 1e-6
    n = factor.block_weights
    assert np.isclose(n.sum(), problem.weights.sum())
    roots = np.sqrt(n)
    found = reference.quantized_eigen(factor.quantization, kernel, 3, correction=False)
    wanted, _ = leading(roots[:, None] * beta * roots, len(found.values))
    assert np.abs(found.values - wanted).max() < 1e-9 * wanted[0]


@given(problems(least=8), st.integers(3, 20), st.integers(1, 4))
@counted(STAGE, "factor landmarks")
def test_landmarks(problem: Problem, n_landmarks: int, n_neighbors: int) -> None:
    """Each row is tied to its nearest landmarks, by distances in float64."""
    approximation = Landmarks(min(n_landmarks, len(problem.X)), n_neighbors=n_neighbors)
    factor = approximation.fit(None, problem.X, rng=problem.rng)
    Z = factor.format.apply(problem.X).astype(np.float64)
    Z = Z if factor.projection is None else Z @ factor.projection
    L = factor.search.landmarks
    distances = ((Z[:, None] - L[None]) ** 2).sum(axis=2)
    ids, found = factor.nearest(problem.X)
    m = ids.shape[1]
    wanted = np.sort(distances, axis=1)[:, :m]
    size = max(float((Z**2).sum(axis=1).max()), 1e-300)
    assert np.abs(found - wanted).max() < 1e-10 * size
    assert np.abs(np.take_along_axis(distances, ids, axis=1) - wanted).max() < 1e-10 * size
    shares = factor.rows(problem.X).toarray()
    assert np.abs(shares.sum(axis=1) - 1).max() < 1e-9
    m, sample = min(2, factor.rank), as_sample(RBF(1.0), problem.X)
    embedded = factor.spectral_map(sample, m, solver="auto", rng=problem.rng)
    B = np.zeros_like(shares)  # the ties themselves; the shares are D⁻¹ B
    np.put_along_axis(B, factor.training_edges.idx, factor.training_edges.weights, axis=1)
    E = B.T @ (B / B.sum(axis=1, keepdims=True))
    scale = 1 / np.sqrt(np.maximum(E.sum(axis=1), 1e-10 * E.sum(axis=1).mean()))
    oracle, _ = leading(scale[:, None] * E * scale, m)
    assert np.abs(embedded.values - oracle).max() < 1e-7


# Eigenvalues and embeddings


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 60),
    st.integers(1, 8),
    st.sampled_from(["auto", "dense", "arpack", "lobpcg"]),
    st.integers(-100, 100),
)
@counted(STAGE, "eigen")
def test_eigenpairs(seed: int, n: int, k: int, solver: Any, power: int) -> None:
    """The largest eigenvalues, orthonormal vectors, and residuals that are what they say."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    spectrum = np.sort(rng.random(n) ** 3)[::-1] * 10.0**power
    A = Q * spectrum @ Q.T
    A = (A + A.T) / 2
    k = min(k, n)
    assume(solver in ("auto", "dense") or 5 * k < n)
    n_steps = 100 if solver == "lobpcg" else 2000
    found = leading_eigenpairs(A, k, solver=solver, rng=rng, tol=1e-9, max_iter=n_steps)
    size = spectrum[0]
    told = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0)
    assert np.abs(told - found.residuals).max() < 1e-9 * size
    assert np.abs(found.vectors.T @ found.vectors - np.eye(k)).max() < 1e-8
    assert (np.diff(found.values) <= 1e-12 * size).all()
    if found.residuals.max() < 1e-6 * size and solver != "lobpcg":
        assert np.abs(found.values - leading(A, k)[0]).max() < 1e-6 * size


@given(problems(), st.integers(1, 4))
@counted(STAGE, "spectral map")
def test_spectral_map(problem: Problem, m: int) -> None:
    """Coordinates from the thin factor are eigenvectors of D^-½ F Fᵀ D^-½ with weights."""
    sample = problem.sample()
    factor = Exact().fit(problem.kernel, sample, rng=problem.rng)
    F, w = factor.training_rows.astype(np.float64), sample.weights
    found = dense_spectral_map(F, w, m, solver="auto", rng=problem.rng)
    K = F @ F.T
    scale = np.sqrt(w / (K @ w))
    A = scale[:, None] * K * scale
    n_kept = len(found.values)
    wanted, _ = leading(A, n_kept)
    # rows of D⁻¹ K W sum to 1, which is the largest eigenvalue but for entries that rounding
    # made negative: no eigenvalue exceeds the sum of absolute values in a row
    excess = 2 * float((np.maximum(-K, 0) @ w / (K @ w)).max())
    assert -1e-9 < found.values[0] - 1 < excess + 1e-9
    assert np.abs(found.values - wanted).max() < 1e-7
    assert_same_spaces(scale[:, None] * (F @ found.vectors), A, n_kept, 1e-4)
    assert np.abs(found.points - F @ found.vectors).max() < 1e-6 * np.abs(found.points).max()


@given(problems(least=6), st.integers(1, 4))
@counted(STAGE, "walk")
def test_walks(problem: Problem, m: int) -> None:
    """The walk on a graph: eigenvectors of D^-½ W D^-½, weights counting items."""
    W, w = problem.kernel_matrix(), problem.weights
    np.fill_diagonal(W, 0)
    assume((W @ w).min() > 1e-8)
    found = leading_walk(W, w, m, solver="auto", rng=problem.rng)
    scale = np.sqrt(w / (W @ w))
    wanted, _ = leading(scale[:, None] * W * scale, len(found.values))
    assert np.abs(found.values - wanted).max() < 1e-6


@given(problems(), st.integers(1, 5))
@counted(STAGE, "kernel PCA")
def test_kernel_pca(problem: Problem, k: int) -> None:
    """Eigenvalues of the centred kernel matrix; scores with Σ w score² = λ and mean zero."""
    sample = problem.sample()
    factor = Exact().fit(problem.kernel, sample, rng=problem.rng)
    found = principal_map(factor, problem.kernel, sample, k, solver="auto", rng=problem.rng)
    K, w = problem.kernel_matrix(), problem.weights
    mean = w / w.sum()
    H = np.eye(len(K)) - np.outer(np.ones(len(K)), mean)
    centred = H @ K @ H.T
    roots = np.sqrt(w)
    wanted, _ = leading(roots[:, None] * centred * roots, len(found.values))
    tol = 1e-6 if problem.dtype == "f8" else 1e-3
    size = w.sum()
    assert np.abs(found.values - wanted).max() < tol * size
    scores = factor.rows(problem.X).astype(np.float64) @ found.vectors - found.offset
    assert np.abs(w @ scores**2 - found.values).max() < tol * size
    assert np.abs(w @ scores).max() < tol * size
    total = float(np.trace(roots[:, None] * centred * roots))
    assert abs(found.total - total) < tol * size


@given(problems(least=8, dtypes=("f8",)), st.integers(1, 3))
@counted(STAGE, "weighted kernel PCA")
def test_weighted_kernel_pca(problem: Problem, m: int) -> None:
    """Eigenvalues of D⁻¹ M_D Ω, the original problem of kernel spectral clustering."""
    sample = as_sample(problem.kernel, problem.X)
    factor = Exact().fit(problem.kernel, sample, rng=problem.rng)
    F = factor.training_rows
    K = F @ F.T
    d = K.sum(axis=1)
    assume(d.min() > 1e-3)
    found = weighted_kpca(F, sample.weights, m, rng=problem.rng)
    centring = np.eye(len(K)) - np.outer(np.ones(len(K)), 1 / d) / (1 / d).sum()
    roots = 1 / np.sqrt(d)
    wanted, _ = leading(roots[:, None] * (centring @ K @ centring.T) * roots, len(found.values))
    assert np.abs(found.values - wanted).max() < 1e-6


# Partitions


@given(problems(least=6), st.integers(1, 6))
@counted(STAGE, "k-means")
def test_kmeans(problem: Problem, k: int) -> None:
    """Where Lloyd's algorithm stops, each row is nearest to its centre and each centre a mean."""
    F, w = problem.X, problem.weights
    F = (F / np.abs(F).max()).astype(F.dtype)
    norms = np.einsum("ij,ij->i", F, F, dtype=np.float64)
    rows = WeightedRows(F, w, norms)
    found = rows.lloyd(kmeans_plus_plus(rows, k, rng=problem.rng), max_iter=300)
    distances = ((F[:, None].astype("f8") - found.centers.astype("f8")) ** 2).sum(axis=2)
    tol = 1e4 * EPS[problem.dtype]
    nearest = distances.min(axis=1)
    assert abs(found.inertia - w @ nearest) <= tol * max(w @ norms, 1e-300)
    labels = distances.argmin(axis=1)
    gaps = np.sort(distances, axis=1)
    clear = k == 1 or (gaps[:, 1] - gaps[:, 0] > tol).all()
    if found.is_converged and clear and len(set(labels)) == k:
        groups = [labels == c for c in range(k)]
        means = np.array([np.average(F[of], axis=0, weights=w[of]) for of in groups])
        assert np.abs(means - found.centers).max() < tol


@given(
    st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 5), st.sampled_from(["ams", "blf"])
)
@counted(STAGE, "codes")
def test_codes(seed: int, k: int, q: int, encoding: Any) -> None:
    """The nearest word by Hamming distance, the nearest direction by cosine."""
    rng = np.random.default_rng(seed)
    Y, counts = rng.normal(size=(30, q)), rng.permutation(k).astype(float) + 1
    if encoding == "blf":
        words = np.unique(np.sign(rng.normal(size=(4 * k, q))), axis=0)[:k]
        book = Codebook(encoding, words, counts[: len(words)])
        distances = (np.sign(Y)[:, None] != words).sum(axis=2)
    elif q == 1:
        book = Codebook(encoding, np.sort(rng.normal(size=(k, 1)), axis=0), counts)
        distances = np.abs(Y - book.prototypes[:, 0])
    else:
        P = rng.normal(size=(k, q))
        book = Codebook(encoding, P / np.linalg.norm(P, axis=1, keepdims=True), counts)
        distances = 1 - Y @ book.prototypes.T / np.linalg.norm(Y, axis=1, keepdims=True)
    labels = book.labels(Y)
    chosen = np.take_along_axis(distances, labels[:, None], axis=1)[:, 0]
    assert (chosen <= distances.min(axis=1) + 1e-12).all()
    ties = distances <= distances.min(axis=1, keepdims=True)
    assert (book.counts[labels] >= np.where(ties, book.counts, 0).max(axis=1) - 1e-12).all()
    shares = book.memberships(Y)
    assert np.abs(shares.sum(axis=1) - 1).max() < 1e-12
    assert shares.min() >= 0


@given(problems(least=8), st.integers(2, 5), st.integers(1, 4))
@counted(STAGE, "cones")
def test_cones(problem: Problem, k: int, m: int) -> None:
    """A row belongs to the direction with the largest inner product with its coordinates."""
    sample = problem.sample()
    factor = IncompleteCholesky(min(10, len(problem.X))).fit(
        problem.kernel, sample, rng=problem.rng
    )
    rng = problem.rng
    V, directions = rng.normal(size=(factor.rank, m)), rng.normal(size=(k, m))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    labels = factor.labeller(V, directions).labels()(problem.X)
    C = dense_rbf(factor.format.apply(problem.X), np.asarray(factor.pivots), problem.gamma)
    scores = C @ (factor.mix @ V @ directions.T)
    size = np.abs(C @ np.abs(factor.mix @ V @ directions.T)).max()
    chosen = np.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    assert (scores.max(axis=1) - chosen).max() < 1e3 * EPS[problem.dtype] * size * (1 + 100)
