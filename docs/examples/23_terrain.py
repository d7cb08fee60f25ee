"""
Terrain: a map from elevations
==============================

Elevations of a mountain landscape become types of terrain: each place is described by its height,
its slope and the roughness around it. The number of rows is that of a small satellite product.
"""

# %%
# Features of each place
# ----------------------

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.ndimage import gaussian_filter, sobel
from sklearn.preprocessing import StandardScaler

from mercer import KernelSpectralClustering

with get_sample_data("jacksboro_fault_dem.npz") as data:  # comes with matplotlib
    elevation = data["elevation"].astype(float)
smooth = gaussian_filter(elevation, 1.5)
slope = np.hypot(sobel(smooth, 0), sobel(smooth, 1))
rough = gaussian_filter((elevation - gaussian_filter(elevation, 4)) ** 2, 4) ** 0.5
features = np.stack([smooth, np.log1p(slope), np.log1p(rough)], axis=-1)
X = StandardScaler().fit_transform(features.reshape(-1, 3))
print(f"{X.shape[0]:,} places")

# %%
# Soft memberships
# ----------------
#
# Types of terrain have no sharp limits. ``encoding="ams"`` gives each place a degree of membership.

model = KernelSpectralClustering(4, encoding="ams", random_state=0).fit(X)
memberships = model.memberships(X)
labels = model.labels_.reshape(elevation.shape)

figure, panels = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
panels[0].imshow(elevation, cmap="terrain")
panels[1].imshow(labels, cmap="tab10", vmax=9)
panels[2].imshow(memberships.max(axis=1).reshape(elevation.shape), cmap="gray", vmin=0.25, vmax=1)
titles = ("elevation", "four types of terrain", "strength of membership")
for panel, title in zip(panels, titles, strict=True):
    panel.set(title=title, xticks=[], yticks=[])

# %%
# What the types are:

for cluster in range(4):
    rows = model.labels_ == cluster
    height, steep = features.reshape(-1, 3)[rows][:, :2].mean(axis=0)
    print(f"type {cluster}: {rows.mean():.0%}, height {height:.0f} m, log slope {steep:.1f}")
plt.show()
