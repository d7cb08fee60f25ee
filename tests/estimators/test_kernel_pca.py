"""KernelPCA: scikit-learn's scores, for any factor."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import decomposition
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    RBF,
    BudgetError,
    KernelPCA,
    Laplacian,
    MercerWarning,
    ModelFileError,
    Nystrom,
    Quantized,
    load,
)

APPROXIMATIONS = {
    "cholesky": "cholesky",
    "nystrom": "nystrom",
    "kmeans": Nystrom(60, sampling="kmeans"),
    "fourier": "fourier",
    "quantized": "quantized",
    "radius": Quantized(radius=1.0),
    "exact": "exact",
}
MOST_ERROR = {"fourier": 0.2, "quantized": 1e-2, "radius": 1e-2, "exact": 1e-12}

every_approximation = pytest.mark.parametrize(
    "approximation", APPROXIMATIONS.values(), ids=APPROXIMATIONS.keys()
)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def cloud(seed, n=400, d=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * [3.0, 2.0, 1.0][:d] + 5.0).astype(dtype)
    X.flags.writeable = False
    return X


def pca(approximation="cholesky", **params):
    named = isinstance(approximation, str) and approximation != "exact"
    size = {"rank": 60} if named else {}
    defaults = {"n_components": 3, "gamma": 0.02, "random_state": 0, "approximation": approximation}
    return KernelPCA(**defaults | size | params)


def misfit(S, Z):
    """‖S - Z Q‖² / ‖S‖² for the best linear map Q."""
    return float(((S - Z @ np.linalg.lstsq(Z, S, rcond=None)[0]) ** 2).sum() / (S**2).sum())


@parametrize_with_checks(
    [
        KernelPCA(random_state=0),
        KernelPCA(n_components=2, approximation="exact", random_state=0),
        KernelPCA(n_components=2, approximation="quantized", rank=10, random_state=0),
        KernelPCA(n_components=2, approximation=Quantized(radius=0.5), random_state=0),
        KernelPCA(n_components=2, fit_inverse_transform=True, random_state=0),
        KernelPCA(n_components=2, kernel="cosine", rank=5, random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")  # the checks fit odd data
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.numeric
@pytest.mark.parametrize("name", APPROXIMATIONS)
@every_dtype
def test_scores_are_those_of_scikit_learn(name, dtype):
    X, Y = cloud(0, dtype=dtype), cloud(1, n=100, dtype=dtype)
    peer = decomposition.KernelPCA(3, kernel="rbf", gamma=0.02).fit(X.astype(np.float64))
    model = pca(APPROXIMATIONS[name]).fit(X)
    for rows in (X, Y):
        most = max(MOST_ERROR.get(name, 1e-4), 1e-9 if dtype == np.float32 else 0.0)
        assert misfit(peer.transform(rows.astype(np.float64)), model.transform(rows)) < most
    rtol = 30 * max(MOST_ERROR.get(name, 1e-3), 1e-9)
    assert np.allclose(model.eigenvalues_, peer.eigenvalues_, rtol=rtol)


@pytest.mark.numeric
def test_exact_scores_and_eigenvalues_agree_up_to_sign():
    X = cloud(0)
    peer = decomposition.KernelPCA(3, kernel="rbf", gamma=0.02).fit(X)
    model = pca("exact").fit(X)
    assert np.allclose(model.eigenvalues_, peer.eigenvalues_, rtol=1e-10)
    ours, theirs = model.transform(X), peer.transform(X)
    assert np.allclose(ours, theirs * np.sign((ours * theirs).sum(axis=0)), atol=1e-8)
    K = decomposition.KernelPCA(None, kernel="rbf", gamma=0.02).fit(X).eigenvalues_
    assert np.allclose(model.explained_variance_ratio_, K[:3] / K.sum(), rtol=1e-8)


@pytest.mark.numeric
@every_approximation
def test_scores_are_centred_and_uncorrelated(approximation):
    X = cloud(2)
    Z = pca(approximation).fit_transform(X)
    gram = Z.T @ Z
    slack = 0.1 if "uantized" in str(approximation) else 1e-6
    assert np.abs(Z.mean(axis=0)).max() < slack * np.abs(Z).max()
    assert np.abs(gram - np.diag(np.diag(gram))).max() < slack * gram.max()


@pytest.mark.numeric
@every_approximation
@every_dtype
def test_the_scores_of_a_row_are_its_own(approximation, dtype):
    X = cloud(3, dtype=dtype)
    model = pca(approximation).fit(X)
    whole = model.transform(X)
    assert whole.dtype == np.float64
    pieces = np.concatenate([model.transform(X[i : i + 7]) for i in range(0, len(X), 7)])
    assert np.array_equal(whole, pieces)
    assert np.array_equal(whole, model.set_params(n_jobs=2).transform(X))


@every_approximation
@every_dtype
def test_fit_transform_is_fit_then_transform(approximation, dtype):
    X = np.vstack([cloud(3, n=100, dtype=dtype), cloud(3, n=50, dtype=dtype)])
    w = np.arange(len(X)) % 3
    scores = pca(approximation).fit_transform(X, sample_weight=w)
    assert np.array_equal(scores, pca(approximation).fit(X, sample_weight=w).transform(X))


@pytest.mark.numeric
@every_approximation
def test_weights_are_rows_twice(approximation):
    X = cloud(4, n=150)
    w = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = pca(approximation).fit(X, sample_weight=w)
    repeated = pca(approximation).fit(np.repeat(X, w, axis=0))
    assert np.allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-6)
    assert misfit(repeated.transform(X), weighted.transform(X)) < 1e-10


@pytest.mark.numeric
def test_sparse_is_dense():
    X = np.where(cloud(5) > 5, cloud(5), 0.0)
    for approximation in ("cholesky", "quantized", "exact"):
        dense = pca(approximation).fit(X)
        sparse = pca(approximation).fit(sp.csr_array(X))
        assert misfit(dense.transform(X), sparse.transform(sp.csr_array(X))) < 1e-2


def test_rows_from_a_file(tmp_path):
    X = cloud(6)
    np.save(tmp_path / "rows.npy", X)
    for approximation in ("cholesky", "quantized"):
        scores = pca(approximation).fit(tmp_path / "rows.npy").transform(tmp_path / "rows.npy")
        assert np.array_equal(scores, pca(approximation).fit(X).transform(X))


def test_a_precomputed_kernel():
    X, Y = cloud(7), cloud(8, n=20)
    by_rows = pca("exact", kernel=RBF(0.02), gamma="auto").fit(X)
    K, new = RBF(0.02).matrix(X, X), RBF(0.02).matrix(Y, X)
    given = pca("exact", kernel="precomputed", gamma="auto").fit(K)
    assert misfit(by_rows.transform(Y), given.transform(new)) < 1e-10


def test_rows_that_are_all_alike_score_nothing():
    with pytest.warns(MercerWarning, match="has 1 by a factor"):
        model = pca().fit(np.ones((10, 3)))
    assert np.array_equal(model.transform(np.ones((2, 3))), np.zeros((2, 1)))
    assert np.array_equal(model.explained_variance_ratio_, [0.0])


def test_more_components_than_there_are():
    with pytest.warns(MercerWarning, match="n_components=50, but the centred kernel"):
        model = pca("quantized", n_components=50, rank=20).fit(cloud(0))
    assert model.transform(cloud(0)).shape[1] == 19  # centring takes one


@pytest.mark.numeric
def test_every_component_is_given_by_default():
    X = cloud(0, n=50)
    model = pca("exact", n_components=None).fit(X)
    assert np.isclose(model.explained_variance_ratio_.sum(), 1.0)
    assert list(model.get_feature_names_out()[:2]) == ["kernelpca0", "kernelpca1"]


def test_the_report_tells_how_sure():
    for approximation in ("cholesky", "quantized"):
        report = pca(approximation, n_components=1).fit(cloud(0)).report_
        assert any("explain" in note for note in report.notes)
        assert any("Davis-Kahan" in note for note in report.notes)
        assert str(report)


# the way back


def test_inverse_transform_returns_rows():
    X = cloud(0) * [1.0, 1.0, 0.01]  # nearly a plane
    model = pca(n_components=8, fit_inverse_transform=True, alpha=1e-3).fit(X)
    back = model.inverse_transform(model.transform(X))
    assert back.shape == X.shape
    assert ((back - X) ** 2).sum() < 0.02 * ((X - X.mean(axis=0)) ** 2).sum()


@pytest.mark.numeric
def test_inverse_transform_is_the_ridge_regression_of_scikit_learn():
    X = cloud(0) - cloud(0).mean(axis=0)
    model = pca("exact", fit_inverse_transform=True, alpha=0.5).fit(X)
    Z = model.transform(X)
    K = RBF(model.preimage_.gamma).matrix(Z, Z)
    wanted = K @ np.linalg.solve(K + 0.5 * np.eye(len(K)), X)
    assert np.allclose(model.inverse_transform(Z), wanted, atol=1e-8)


def test_inverse_transform_of_many_rows_is_anchored_at_few():
    X = cloud(1, n=3000)
    model = pca(n_components=6, fit_inverse_transform=True, alpha=1e-3).fit(X)
    back = model.inverse_transform(model.transform(X))
    assert len(model.preimage_.centers) == 1000
    assert ((back - X) ** 2).sum() < 0.1 * ((X - X.mean(axis=0)) ** 2).sum()


def test_inverse_transform_says_when_it_cannot():
    model = pca().fit(cloud(0))
    with pytest.raises(ValueError, match="fit_inverse_transform=True"):
        model.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="one dense table"):
        pca(fit_inverse_transform=True).fit(sp.csr_array(cloud(0)))
    fitted = pca(fit_inverse_transform=True).fit(cloud(0))
    with pytest.raises(ValueError, match="2 columns, but this KernelPCA has 3"):
        fitted.inverse_transform(np.zeros((2, 2)))


# bad requests and files


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"n_components": 0}, "n_components"),
        (
            {"kernel": "polynomial", "gamma": "auto", "approximation": "quantized"},
            "mean of near rows",
        ),
        ({"approximation": Quantized(radius=1e-6, rank=100)}, "raise radius"),
        ({"approximation": "much"}, "unknown"),
        ({"alpha": 0.0}, "alpha"),
    ],
)
def test_what_cannot_work_is_refused(params, words):
    with pytest.raises(ValueError, match=words):
        pca(**params).fit(cloud(0))


def test_a_budget_too_small_is_refused_before_the_work():
    with pytest.raises(BudgetError, match="max_memory"):
        pca("exact", max_memory="2MB").fit(cloud(0, n=2000))


@every_approximation
def test_save_and_load_is_identity(approximation, tmp_path):
    X = cloud(0)
    model = pca(approximation, fit_inverse_transform=True).fit(X)
    model.save(tmp_path / "pca.model")
    loaded = load(tmp_path / "pca.model")
    Z = model.transform(X)
    assert np.array_equal(loaded.transform(X), Z)
    assert np.array_equal(loaded.inverse_transform(Z), model.inverse_transform(Z))
    assert np.array_equal(loaded.eigenvalues_, model.eigenvalues_)
    assert str(loaded.report_) == str(model.report_)


def test_a_laplacian_kernel_and_its_file(tmp_path):
    model = pca("quantized", kernel=Laplacian(0.1), gamma="auto").fit(cloud(0))
    model.save(tmp_path / "pca.model")
    assert np.array_equal(
        load(tmp_path / "pca.model").transform(cloud(1)), model.transform(cloud(1))
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("components_", lambda a: a[1:]),
        ("offset_", lambda a: a[1:]),
        ("eigenvalues_", lambda a: a[None]),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(name, change, tmp_path):
    model = pca("quantized").fit(cloud(0))
    setattr(model, name, change(getattr(model, name)))
    model.save(tmp_path / "pca.model")
    with pytest.raises(ModelFileError):
        load(tmp_path / "pca.model")


@pytest.mark.numeric
def test_components_of_random_bins():
    X = np.random.default_rng(0).normal(size=(300, 3)) * [4.0, 1.0, 0.2]
    model = KernelPCA(2, kernel="laplacian", approximation="binning", rank=2000, random_state=0)
    scores = model.fit_transform(X)
    exact = KernelPCA(2, kernel="laplacian", gamma=model.kernel_.gamma, approximation="exact")
    S = exact.fit_transform(X)
    Q = np.linalg.lstsq(scores, S, rcond=None)[0]
    assert np.linalg.norm(S - scores @ Q) < 0.3 * np.linalg.norm(S)
