"""
Segments of a photograph
========================

Regions of a photograph are merged by the contrast along their common border, weakest first. The
result is one tree, from thousands of regions to the whole image, and each level is nested in the
next.
"""

# %%
# One call
# --------

import matplotlib.pyplot as plt
from sklearn.datasets import load_sample_image

from mercer.image import Segmenter, draw_overlay

image = load_sample_image("china.jpg")  # comes with scikit-learn, 427 × 640
segmenter = Segmenter().fit(image)
labels = segmenter.labels_

figure, panels = plt.subplots(1, 3, figsize=(9, 2.4), layout="constrained")
panels[0].imshow(image)
panels[1].imshow(draw_overlay(image, labels, "boundaries"))
panels[2].imshow(draw_overlay(image, labels, "average"))
for panel, title in zip(panels, ("photograph", "contours", "mean colours"), strict=True):
    panel.set(title=title, xticks=[], yticks=[])

# %%
# Levels
# ------
#
# All levels come from one fit: by the number of segments, or by the strength of the weakest
# contour.

figure, panels = plt.subplots(1, 3, figsize=(9, 2.4), layout="constrained")
for panel, n_segments in zip(panels, (3, 8, 60), strict=True):
    level = segmenter.levels_.labels(n_segments)
    panel.imshow(draw_overlay(image, level))
    strength = segmenter.levels_.scale(n_segments)
    panel.set(title=f"{n_segments} segments, scale {strength:.2f}", xticks=[], yticks=[])

# %%
# A model for other pictures
# --------------------------
#
# A :class:`~mercer.image.Segmenter` keeps what it learnt: the same numbers for the same kinds of
# pixels in another picture. Here pixels are described by their colour (in CIELAB, where distances
# are nearer to what we see) and their place within the picture, and clustered.

left, right = image[:, :320], image[:, 320:]
colours = Segmenter(4, features="labxy", random_state=0).fit(left)
figure, panels = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
panels[0].imshow(colours.labels_, cmap="viridis")
panels[1].imshow(colours.predict(right), cmap="viridis")
for panel, title in zip(panels, ("fitted: left half", "predicted: right half"), strict=True):
    panel.set(title=title, xticks=[], yticks=[])

# %%
# How long it took, and where:

print(segmenter.report_)
plt.show()
