"""
Ten million rows
================

Clusters of any shape in ten million rows, on one thread, in bounded memory: a graph of landmarks is
built on a sample, and one pass labels every row.
"""

# %%
# Data
# ----

import time

import matplotlib.pyplot as plt

from mercer import SpectralClustering
from mercer.datasets import circles_and_gaussians
from mercer.metrics import adjusted_rand

N_ROWS = 10_000_000

X, y = circles_and_gaussians(N_ROWS, random_state=0)
print(f"{X.nbytes / 1e6:.0f} MB, {y.max() + 1} clusters")

# %%
# Fit
# ---

start = time.perf_counter()
model = SpectralClustering(int(y.max() + 1), max_memory="1GB", random_state=0).fit(X)
print(f"{time.perf_counter() - start:.1f} s, ARI {adjusted_rand(y, model.labels_):.4f}")

# %%
# Where the time went:

for stage in model.report_.stages:
    print(f"{stage.name:14} {stage.seconds:6.2f} s")

# %%
# Every five-hundredth row:

few = slice(0, N_ROWS, max(N_ROWS // 20_000, 1))
figure, panel = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
panel.scatter(*X[few].T, c=model.labels_[few], s=1, cmap="tab20")
panel.set(xticks=[], yticks=[])
panel.set_aspect("equal")
plt.show()
