"""What `from mercer import SpectralClustering` loads beside scikit-learn's clusterers."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, sklearn.cluster
before = set(sys.modules)
from {home} import {name}
print(*(set(sys.modules) - before))
"""
MODULES = 140  # of Mercer, that one estimator needs: each costs about half a millisecond


@pytest.mark.parametrize("name", ["SpectralClustering", "KernelKMeans"])
def test_an_estimator_loads_little_that_scikit_learn_does_not(name: str) -> None:
    program = PROGRAM.format(home="mercer", name=name)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    ours = {module for module in loaded if module.partition(".")[0] == "mercer"}
    assert loaded == ours, "only Mercer's own: scipy.cluster alone costs as much as half of these"
    assert len(ours) <= MODULES
    estimators = {module for module in ours if module.startswith("mercer.estimators.kernel_")}
    assert len(estimators) == (name == "KernelKMeans")
