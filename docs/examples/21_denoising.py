"""
Removing noise with kernel PCA
==============================

Noisy digits are projected on the leading kernel principal components of clean digits, and mapped
back to pixels. The noise lies mostly in the directions that are left out.
"""

# %%
# Fit on clean digits, project noisy ones
# ---------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mercer import KernelPCA

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
train, test = X[:1400], X[1400:]
noisy = test + rng.normal(scale=5.0, size=test.shape)

kernel_pca = KernelPCA(64, gamma=5e-4, fit_inverse_transform=True, alpha=1e-2, random_state=0).fit(
    train
)
restored = {
    "noisy": noisy,
    "PCA": (pca := PCA(20).fit(train)).inverse_transform(pca.transform(noisy)),
    "KernelPCA": kernel_pca.inverse_transform(kernel_pca.transform(noisy)),
}
for name, pictures in restored.items():
    print(f"{name:10} mean squared error {np.mean((pictures - test) ** 2):.1f}")

# %%
# Pictures
# --------

figure, panels = plt.subplots(4, 8, figsize=(8, 4.2), layout="constrained")
for row, (name, pictures) in enumerate({"clean": test, **restored}.items()):
    for column, panel in enumerate(panels[row]):
        panel.imshow(pictures[column].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        panel.set(xticks=[], yticks=[])
    panels[row, 0].set_ylabel(name)
plt.show()
