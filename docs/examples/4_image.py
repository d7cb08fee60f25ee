"""
Image: a photograph cut into parts
==================================

Pixels are rows of colour and place; a segmentation is a clustering of them. A few hundred
representatives stand for all pixels, so that a photograph takes a fraction of a second.
"""

# %%
# One call
# --------

import matplotlib.pyplot as plt
from sklearn.datasets import load_sample_image

from mercer.image import draw_overlay, segment

image = load_sample_image("china.jpg")  # comes with scikit-learn, 427 × 640
labels = segment(image, 4, random_state=0)

figure, panels = plt.subplots(1, 3, figsize=(9, 2.4), layout="constrained")
panels[0].imshow(image)
panels[1].imshow(draw_overlay(image, labels, "boundaries"))
panels[2].imshow(draw_overlay(image, labels, "average"))
for panel, title in zip(panels, ("photograph", "borders", "mean colours"), strict=True):
    panel.set(title=title, xticks=[], yticks=[])

# %%
# A model for other pictures
# --------------------------
#
# A :class:`~mercer.image.Segmenter` keeps what it learnt: the same numbers for the same kinds of
# pixels in another picture. Pixels are described by their colour (in CIELAB, where distances are
# nearer to what we see) and their place within the picture.

from mercer.image import Segmenter

left, right = image[:, :320], image[:, 320:]
colours = Segmenter(4, features="labxy", random_state=0).fit(left)
figure, panels = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
panels[0].imshow(colours.labels_, cmap="viridis")
panels[1].imshow(colours.predict(right), cmap="viridis")
for panel, title in zip(panels, ("fitted: left half", "predicted: right half"), strict=True):
    panel.set(title=title, xticks=[], yticks=[])

# %%
# How long it took, and where:

print(colours.report_)
plt.show()
