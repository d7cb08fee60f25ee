"""Columns of very different spread are said in words, and only where they matter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from mercer import KernelKMeans, SpectralClustering

WORDS = "more than a hundredfold"


def told(model, X):
    """The notes of a fit about spreads; where its clusters are good, it warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return [text for text in model.report_.notes if WORDS in text]


@pytest.mark.parametrize("kind", [SpectralClustering, KernelKMeans])
def test_unscaled_columns_are_noted(kind):
    X = load_wine().data
    (words,) = told(kind(3, random_state=0), X)
    assert "column 12 (314)" in words
    assert "--scaler standard" in words
    assert not told(kind(3, random_state=0), StandardScaler().fit_transform(X))


def test_columns_are_named():
    wine = load_wine(as_frame=True).data
    (words,) = told(KernelKMeans(3, random_state=0), wine)
    assert "proline" in words


def test_two_columns_are_enough():
    X = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 500.0]
    assert told(KernelKMeans(2, random_state=0), X)
    assert not told(KernelKMeans(2, random_state=0), X / [1.0, 50.0])


def test_a_few_narrow_columns_are_usual():
    assert not told(KernelKMeans(10, random_state=0), load_digits().data)


@pytest.mark.parametrize(
    ("kernel", "make"),
    [("cosine", np.asarray), ("histogram_intersection", np.abs), ("rbf", sp.csr_array)],
)
def test_other_kernels_and_sparse_rows_are_not_meant(kernel, make):
    X = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 500.0]
    assert not told(KernelKMeans(2, kernel=kernel, random_state=0), make(X))


def test_a_constant_column_is_none():
    X = np.random.default_rng(0).normal(size=(200, 2))
    assert not told(KernelKMeans(2, random_state=0), np.c_[X, np.full(200, 3.0)])
