"""
Embeddings: clusters on several levels
======================================

Vectors like embeddings of text: unit vectors, 24 topics in six themes, generated here so that
nothing has to be downloaded. They are compared by angle, clustered once, and shown on several
levels. With your own embeddings, start at the fit.
"""

# %%
# Topics in themes
# ----------------

import numpy as np

N_ROWS, N_FEATURES = 6000, 96

rng = np.random.default_rng(0)
themes = np.repeat(rng.standard_normal((6, N_FEATURES)), 4, axis=0)
topics = themes + 0.7 * rng.standard_normal((24, N_FEATURES))
y = rng.integers(24, size=N_ROWS)
X = topics[y] + 0.9 * rng.standard_normal((N_ROWS, N_FEATURES))
X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)

# %%
# One fit, by angle
# -----------------

from mercer import SpectralClustering
from mercer.metrics import adjusted_rand

model = SpectralClustering(24, kernel="cosine", random_state=0).fit(X)
print(f"24 topics: ARI {adjusted_rand(y, model.labels_):.3f}")

# %%
# Layers
# ------
#
# Clusters are merged two by two, the most tightly connected first; the partitions that persist are
# layers. ``predict(X, layer=i)`` labels any rows on that level.

for number, (layer, evidence) in enumerate(zip(model.layers_, model.layer_evidence_, strict=True)):
    agreement = adjusted_rand(y // 4, model.predict(X, layer=number))
    print(f"layer of {layer.max() + 1}: evidence {evidence:.1f}, ARI with themes {agreement:.3f}")

# %%
# The tree is a linkage matrix, which scipy draws:

import matplotlib.pyplot as plt
from scipy.cluster.hierarchy import dendrogram

figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
drawing = dendrogram(model.tree_, ax=axes, color_threshold=0, above_threshold_color="tab:gray")
axes.set(xlabel="cluster", ylabel="log height")
plt.show()
