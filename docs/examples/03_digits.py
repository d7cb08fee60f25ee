"""
Digits: real data compared with k-means
=======================================

1,797 handwritten digits of 8 × 8 pixels come with scikit-learn. We cluster them without
using their classes, and use the classes afterwards to measure the result.
"""

# %%
# Four methods, three seeds
# -------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from mercer import KernelKMeans, SpectralClustering
from mercer.metrics import accuracy, normalized_mutual_info

X, y = load_digits(return_X_y=True)
methods = {
    "k-means": lambda seed: KMeans(10, n_init=10, random_state=seed),
    "KernelKMeans": lambda seed: KernelKMeans(10, n_init=5, random_state=seed),
    "SpectralClustering": lambda seed: SpectralClustering(10, random_state=seed),
    "… ensemble=20": lambda seed: SpectralClustering(10, ensemble=20, random_state=seed),
}
print(f"{'':20} {'NMI':>6} {'± sd':>6} {'accuracy':>9}")
for name, make in methods.items():
    labels = [make(seed).fit_predict(X) for seed in range(3)]
    nmi = [normalized_mutual_info(y, found) for found in labels]
    right = np.mean([accuracy(y, found) for found in labels])
    print(f"{name:20} {np.mean(nmi):6.3f} {np.std(nmi):6.3f} {right:9.3f}")

# %%
# The spread over seeds shows which differences are significant.
#
# What the clusters look like
# ---------------------------
#
# The mean image of each cluster, and the classes of its rows.

model = SpectralClustering(10, ensemble=20, random_state=0).fit(X)
figure, panels = plt.subplots(2, 5, figsize=(8, 4), layout="constrained")
for cluster, panel in enumerate(panels.flat):
    members = model.labels_ == cluster
    classes, counts = np.unique(y[members], return_counts=True)
    share = counts.max() / counts.sum()
    panel.imshow(X[members].mean(axis=0).reshape(8, 8), cmap="gray_r")
    panel.set(xticks=[], yticks=[])
    panel.set_title(f"{counts.sum()} rows\n{share:.0%} are {classes[counts.argmax()]}", fontsize=9)

# %%
# The embedding
# -------------
#
# The coordinates in which the clusters were found, projected to two dimensions:

from mercer.report import EmbeddingDisplay

EmbeddingDisplay.from_estimator(model, X)

# %%
# The same estimator on all 70,000 images of MNIST takes seconds. 5,000 of them, by coordinates:
# on the left the ten clusters, on the right the true digits. The clusters merge 4 and 9, and split
# slanted ones from upright ones. (``docs/mnist_picture.py`` makes
# the picture.)
#
# .. image:: /images/mnist-embedding.jpg
#    :alt: Images of MNIST by their spectral coordinates, coloured by cluster and by digit
#
# Save the model
# --------------
#
# A model file contains numbers and no code. Predictions are the same, bit for bit.

import tempfile
from pathlib import Path

from mercer import load

path = Path(tempfile.mkdtemp()) / "digits.mercer"
model.save(path)
again = load(path).predict(X)
print(f"{path.stat().st_size / 1e3:.0f} kB, same labels: {np.array_equal(again, model.labels_)}")
plt.show()
