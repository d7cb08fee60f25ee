"""
Spirals: clusters that k-means cannot find
==========================================

k-means separates clusters by straight boundaries, which cannot separate two spirals. A graph of
neighbouring rows follows the arms, and its eigenvectors separate them.
"""

# %%
# Three methods
# -------------

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans

from mercer import KernelKMeans, SpectralClustering
from mercer.datasets import spirals
from mercer.metrics import adjusted_rand

N_ROWS = 100_000

X, y = spirals(N_ROWS, random_state=0)
methods = {
    "k-means": KMeans(2, n_init=1, random_state=0),
    "KernelKMeans": KernelKMeans(2, random_state=0),
    "SpectralClustering": SpectralClustering(2, random_state=0),
}

figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
few = slice(0, 4000)
for panel, (name, method) in zip(panels, methods.items(), strict=True):
    labels = method.fit_predict(X)
    panel.scatter(*X[few].T, c=labels[few], s=2, cmap="coolwarm")
    panel.set(title=f"{name}: ARI {adjusted_rand(y, labels):.2f}", xticks=[], yticks=[])
    panel.set_aspect("equal")

# %%
# Kernel k-means needs clusters that are compact *in feature space*; no bandwidth makes long arms
# compact. Choose :class:`~mercer.KernelKMeans` where k-means is nearly right, and
# :class:`~mercer.SpectralClustering` where shapes matter.
#
# The fit report
# --------------
#
# Every fit has a report: settings, eigenvalues, the time and memory of each stage, a grade, and
# warnings.

model = methods["SpectralClustering"]
print(model.report_)

# %%
# Two eigenvalues are 1: the graph has two nearly separate parts. The third is close to 1 as well,
# because an arm is long and easily cut in two; ``n_clusters="auto"`` finds the two arms here and
# warns that the gap is not a clear one.
#
# New rows
# --------
#
# The model labels any point of the plane.

import numpy as np

axis = np.linspace(-1.2, 1.2, 300)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
regions = model.predict(plane).reshape(300, 300)

figure, panel = plt.subplots(figsize=(4, 4), layout="constrained")
panel.imshow(regions, extent=(-1.2, 1.2, -1.2, 1.2), origin="lower", cmap="coolwarm", alpha=0.3)
panel.scatter(*X[few].T, c=model.labels_[few], s=1, cmap="coolwarm")
panel.set(title="where new rows would go", xticks=[], yticks=[])
plt.show()
