"""Pivots for rows that the sample hardly has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import RBF, IncompleteCholesky, KernelKMeans
from mercer.factors.base import as_sample
from mercer.factors.cholesky import _residuals
from mercer.rows import as_source

pytestmark = pytest.mark.numeric


def far_rows(n: int = 20_000, n_rare: int = 12) -> Any:
    """A blob, and a few rows far from it; read-only."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[rng.choice(n, n_rare, replace=False)] += 20
    X.setflags(write=False)
    return X


def explained(factor: Any, X: Any) -> Any:
    rows = factor.format.apply(X, np.float64)
    return _residuals(factor, rows, factor.rows(X))


@pytest.mark.parametrize("as_file", [True, False])
def test_rows_that_the_sample_misses_get_pivots(as_file: bool, tmp_path: Path) -> None:
    X, rng = far_rows(), np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", X)
    source = as_source(tmp_path / "rows.npy" if as_file else X)
    kernel, far = RBF(0.1), X[:, 0] > 10
    sample = as_sample(kernel, X[~far][:2000])
    plain = IncompleteCholesky(32).fit(kernel, sample, rng=np.random.default_rng(0))
    factor = IncompleteCholesky(32, rare=1 / 8).fit(kernel, sample, rng=rng, source=source)
    assert factor.rank == 32 == len(set(factor.pivot_ids))
    assert_allclose(explained(plain, X[far]), 1.0)
    assert explained(factor, X[far]).mean() < 0.6
    assert_array_equal(factor.pivots[-4:], factor.format.apply(X[factor.pivot_ids[-4:]]))
    assert_allclose(factor.training_rows, factor.rows(X[~far][:2000]))
    assert explained(factor, X).max() <= explained(plain, X).max() + 1e-9


def test_a_factor_with_rare_pivots_is_a_projection() -> None:
    X = far_rows(300)
    factor = IncompleteCholesky(40, rare=0.25).fit(RBF(0.3), X, rng=np.random.default_rng(0))
    F = factor.rows(X)
    gap = RBF(0.3)(X) - F @ F.T
    assert np.linalg.eigvalsh(gap).min() > -1e-9
    assert factor.trace_error == pytest.approx(np.trace(gap) / len(X))


def test_equal_rows_do_not_take_all_places() -> None:
    X = np.concatenate([np.zeros((500, 2)), np.full((500, 2), 50.0), np.full((3, 2), -50.0)])
    factor = IncompleteCholesky(3, rare=0.67).fit(
        RBF(1.0), as_sample(RBF(1.0), X[:1]), rng=np.random.default_rng(0), source=as_source(X)
    )
    assert factor.rank == 1  # one row to sample from leaves no pivots for others
    factor = IncompleteCholesky(3, rare=0.67).fit(
        RBF(1.0), as_sample(RBF(1.0), X[:3]), rng=np.random.default_rng(0), source=as_source(X)
    )
    assert explained(factor, X).max() < 1e-9


def test_estimators_take_it_and_fewer_rows_come_out_the_same(tmp_path: Path) -> None:
    X = far_rows(9000, n_rare=0) + 9.0 * (np.arange(9000) % 2)[:, None]
    np.save(tmp_path / "rows.npy", X)
    model = KernelKMeans(2, approximation=IncompleteCholesky(32, rare=1 / 8), random_state=0)
    labels = model.fit(X).labels_
    assert_array_equal(model.fit(tmp_path / "rows.npy").predict(X), labels)
    with pytest.raises(ValueError, match="rare"):
        model.set_params(approximation=IncompleteCholesky(8, rare=1.0)).fit(X)
