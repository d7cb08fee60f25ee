"""
A file larger than memory
=========================

``max_memory`` limits the memory of a fit, whatever the size of the file. Labels are written to a
file, in the order of the rows.
"""

# %%
# A large file
# ------------
#
# Here it has two and a half million rows and 160 MB, and we allow 128 MB.

import tempfile
from pathlib import Path

import numpy as np

N_ROWS = 2_500_000

folder = Path(tempfile.mkdtemp())
path = folder / "rows.npy"
rng = np.random.default_rng(0)
centres = 6.0 * rng.normal(size=(12, 16))
rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(N_ROWS, 16))
true = np.empty(N_ROWS, np.int8)
for start in range(0, N_ROWS, 100_000):
    part = slice(start, min(start + 100_000, N_ROWS))
    true[part] = rng.integers(12, size=part.stop - start)
    rows[part] = centres[true[part]] + rng.normal(size=(part.stop - start, 16))
rows.flush()
del rows
print(f"{path.stat().st_size / 1e6:.0f} MB")

# %%
# Fit on the path
# ---------------
#
# The graph is built on a seeded sample; one pass labels every row. The file is read in blocks.

from mercer import SpectralClustering
from mercer.io import read_labels
from mercer.metrics import adjusted_rand

model = SpectralClustering(12, max_memory="128MB", random_state=0, n_jobs=2).fit(path)
labels = model.predict(path, out=folder / "labels.npy")
print(f"{labels.name}: ARI {adjusted_rand(true, read_labels(labels)):.4f}")
print(model.report_)

# %%
# Every 500th row, in its first two principal components:

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA

every = slice(0, N_ROWS, 500)
seen = PCA(2).fit_transform(np.load(path, mmap_mode="r")[every])
figure, panel = plt.subplots(figsize=(5, 4), layout="constrained")
panel.scatter(*seen.T, c=read_labels(labels)[every], s=4, cmap="tab20")
panel.set(title="twelve clusters in 16 dimensions", xticks=[], yticks=[])

# %%
# The same in a shell is
# ``mercer cluster rows.npy -k 12 --max-memory 128MB --seed 0 --out labels.npy``.
#
# A fit that would need more memory fails before it starts; the error suggests settings that fit:

from mercer import BudgetError, KernelKMeans

try:
    KernelKMeans(12, approximation="exact", max_memory="128MB").fit(path)
except BudgetError as error:
    print(error)

# %%
# Block sizes and threads do not change a label
# ---------------------------------------------

again = model.set_params(max_memory="1GB", n_jobs=1).predict(path)
same = np.array_equal(again, read_labels(labels))
print(f"the same {N_ROWS:,} labels with 1 GB and one thread: {same}")
plt.show()
