"""The door to the eigensolvers, for matrices whose eigenvalues are nearly all equal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from mercer.linalg.eigen import leading_eigenpairs

pytestmark = pytest.mark.numeric


@pytest.mark.parametrize("n", [5, 12, 30, 31, 100])
def test_a_complete_graph_has_eigenvectors(n):
    """Besides 1 all eigenvalues are -1/(n - 1), which LAPACK's MRRR fails at on some CPUs."""
    walk = (np.ones((n, n)) - np.eye(n)) / (n - 1)
    known = np.full((1, n), n**-0.5)
    for k in range(2, min(n, 25)):
        found = leading_eigenpairs(walk, k, known=known, rng=np.random.default_rng(0))
        assert found.values == pytest.approx(np.r_[1.0, np.full(k - 1, -1 / (n - 1))], abs=1e-9)
        assert found.vectors.T @ found.vectors == pytest.approx(np.eye(k), abs=1e-9)


def test_a_failure_of_lapack_costs_only_time(monkeypatch):
    def fail(*_, **__):
        raise np.linalg.LinAlgError("Internal Error.")

    monkeypatch.setattr(scipy.linalg, "eigh", fail)
    A = np.diag(np.arange(30.0))
    found = leading_eigenpairs(A, 3, rng=np.random.default_rng(0))
    assert found.values == pytest.approx([29.0, 28.0, 27.0])
