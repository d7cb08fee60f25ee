"""Use the installed package as a user would, far from the repository: scripts/package runs this."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import metadata
from importlib.resources import files
from pathlib import Path

import numpy as np

import mercer
from mercer.datasets import rings
from mercer.metrics import adjusted_rand

root = Path(mercer.__file__).resolve()
assert "site-packages" in root.parts, f"not the installed package: {root}"
assert metadata("mercer")["Version"] == mercer.__version__
assert (files("mercer") / "py.typed").is_file()
assert (files("mercer") / "report" / "templates").is_dir()

X, y = rings(1000, random_state=0)
model = mercer.SpectralClustering(3, random_state=0).fit(X)
assert adjusted_rand(y, model.labels_) > 0.99
model.save("rings.mercer")
np.save("rows.npy", X)
mercer.show_versions()
command = [sys.executable, "-m", "mercer", "predict", "rings.mercer", "rows.npy"]
subprocess.run([*command, "--out", "labels.npy"], check=True)
assert np.array_equal(np.load("labels.npy"), model.labels_)
