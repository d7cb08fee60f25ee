"""
A stream of rows
================

Rows arrive in batches and are not stored. :class:`~mercer.StreamingKernelKMeans` keeps a bounded
buffer of informative rows and labels new rows at any time.
"""

# %%
# Batches
# -------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from mercer import StreamingKernelKMeans
from mercer.metrics import normalized_mutual_info

N_ROWS = 20_000

rng = np.random.default_rng(0)
centres = 8.0 * rng.normal(size=(20, 8))


def batch(size):
    """Rows of twenty clusters, some of them rare."""
    y = np.minimum(rng.geometric(0.15, size) - 1, 19)
    return centres[y] + rng.normal(size=(size, 8)), y


model = StreamingKernelKMeans(20, initial_size=1000, max_size=2500, random_state=0)
for _ in range(N_ROWS // 1000):
    X, _ = batch(1000)
    model.partial_fit(X)

# %%
# Labels, at any time
# -------------------

X_new, y_new = batch(2000)
print(f"NMI on new rows: {normalized_mutual_info(y_new, model.predict(X_new)):.3f}")
print(model.report_)

# %%
# The buffer
# ----------
#
# New rows, and the rows that the model keeps: rare clusters are represented too.

plane = PCA(2).fit(centres)
figure, panels = plt.subplots(
    1, 2, figsize=(8, 3.6), layout="constrained", sharex=True, sharey=True
)
panels[0].scatter(*plane.transform(X_new).T, c=model.predict(X_new), s=3, cmap="tab20")
panels[0].set(title="new rows", xticks=[], yticks=[])
panels[1].scatter(*plane.transform(model.buffer_).T, c=model.buffer_labels_, s=3, cmap="tab20")
panels[1].set(title=f"buffer: {len(model.buffer_):,} of {model.n_seen_:,} rows")
plt.show()
