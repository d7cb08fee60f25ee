"""
Coins: regions in a grey photograph
===================================

Ancient coins on an uneven background, which a single threshold cannot separate. Regions are merged
by the contrast along their common boundary, so the slow change of the background does not matter.
"""

# %%
# A threshold, and regions
# ------------------------

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import coins
from skimage.filters import threshold_otsu

from mercer.image import Segmenter, draw_overlay

image = coins()  # comes with scikit-image
segmenter = Segmenter(40).fit(image)
threshold = image > threshold_otsu(image)

figure, panels = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
panels[0].imshow(image, cmap="gray")
panels[1].imshow(threshold, cmap="gray")
panels[2].imshow(draw_overlay(image, segmenter.labels_, "boundaries"))
titles = ("photograph", "Otsu's threshold", "40 regions")
for panel, title in zip(panels, titles, strict=True):
    panel.set(title=title, xticks=[], yticks=[])

# %%
# How many regions?
# -----------------
#
# All levels come from one fit. The contrast at which regions merge drops once the coins are
# separated:

counts = np.arange(5, 80, 5)
strengths = [segmenter.levels_.scale(int(count)) for count in counts]
figure, panel = plt.subplots(figsize=(5, 2.8), layout="constrained")
panel.plot(counts, strengths, marker="o")
panel.set(xlabel="number of regions", ylabel="scale")
plt.show()
