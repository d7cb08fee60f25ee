"""A few far rows can be a cluster; stray rows are none, and a wide Gaussian hides no narrow one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from mercer import KernelSpectralClustering, SpectralClustering
from mercer.datasets import gaussian_pair

MAKERS = {
    "single": SpectralClustering,
    "ensemble": lambda k, **params: SpectralClustering(k, ensemble=20, **params),
    "ksc": KernelSpectralClustering,
}
every_maker = pytest.mark.parametrize("name", MAKERS)
pytestmark = pytest.mark.filterwarnings("ignore::mercer.MercerWarning")


def agreement(name, X, y):
    model = MAKERS[name](len(set(y)), random_state=0).fit(X)
    return adjusted_rand_score(y, model.labels_)


@every_maker
@pytest.mark.parametrize("place", [(40.0, 0.0), (15.0,) * 8], ids=["2 columns", "8 columns"])
def test_five_rows_far_away_are_a_cluster(name, place):
    centers = np.array([np.zeros(len(place)), place])
    X, y = make_blobs([2000, 5], centers=centers, random_state=0)
    assert agreement(name, X, y) == 1.0


@every_maker
def test_stray_rows_of_a_table_are_no_cluster(name):
    """The eigenvectors of many graphs separate three rows of these 569 (ARI .01)."""
    X, y = load_breast_cancer(return_X_y=True)
    assert agreement(name, StandardScaler().fit_transform(X), y) > 0.65


@every_maker
@pytest.mark.parametrize("spread", [3, 8])
@pytest.mark.parametrize("n_features", [4, 32])
def test_a_wide_gaussian_beside_a_narrow_one(name, n_features, spread):
    """Graphs of few neighbours make a cluster of one row of the wide one (ARI 0)."""
    X, y = gaussian_pair(n_features=n_features, spread=spread, random_state=0)
    assert agreement(name, X, y) > 0.7
