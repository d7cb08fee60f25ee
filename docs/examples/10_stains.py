"""
Tissue stains: clusters of pixels
=================================

A microscope image of colon tissue: cell nuclei are stained blue, a protein brown. Pixels are
clustered by colour, wherever they are in the image, and the fitted model labels another part of the
slide.
"""

# %%
# Cluster the left half, label the right half
# -------------------------------------------
#
# Each pixel is a row of three numbers: lightness and two colour differences (CIELAB), in which
# distances are close to what we see.

import matplotlib.pyplot as plt
import numpy as np
from skimage.color import rgb2lab
from skimage.data import immunohistochemistry

from mercer import KernelKMeans
from mercer.image import Segmenter, draw_overlay

image = immunohistochemistry()[::2, ::2]  # comes with scikit-image
left, right = image[:, :128], image[:, 128:]
model = KernelKMeans(3, random_state=0).fit(rgb2lab(left).reshape(-1, 3))
segments = model.labels_.reshape(left.shape[:2])
predicted = model.predict(rgb2lab(right).reshape(-1, 3)).reshape(right.shape[:2])

# %%
# The mean colour of each cluster: tissue with much of the brown stain, with less, and the rest.

means = np.stack([left[segments == c].mean(axis=0) for c in range(3)])
for c in range(3):
    share = (segments == c).mean()
    print(f"cluster {c}: {share:.0%} of the pixels, mean colour {means[c].round().astype(int)}")

figure, panels = plt.subplots(1, 4, figsize=(10, 4.6), layout="constrained")
panels[0].imshow(left)
panels[1].imshow(means[segments].astype(np.uint8))
panels[2].imshow(right)
panels[3].imshow(means[predicted].astype(np.uint8))
titles = ("left half", "clusters", "right half", "predicted")
for panel, title in zip(panels, titles, strict=True):
    panel.set(title=title, xticks=[], yticks=[])

# %%
# Regions instead of colours
# --------------------------
#
# :class:`~mercer.image.Segmenter` finds connected regions with strong contours; a colour may then
# occur in several regions.

regions = Segmenter(12).fit(image)
figure, panel = plt.subplots(figsize=(4, 4), layout="constrained")
panel.imshow(draw_overlay(image, regions.labels_, "boundaries"))
panel.set(title="12 regions", xticks=[], yticks=[])
plt.show()
