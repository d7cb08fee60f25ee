"""
Faces: clusters of small pictures
=================================

200 grey pictures of 25 × 25 pixels, half of them faces, half of them other things. Pictures are
compared by their gradients, and clustered into two groups without any labels.
"""

# %%
# Features that ignore brightness
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import lfw_subset
from skimage.feature import hog

from mercer import KernelPCA, SpectralClustering
from mercer.metrics import accuracy

pictures = lfw_subset()  # comes with scikit-image: 100 faces, then 100 others
y = np.repeat([0, 1], 100)
gradients = np.stack([hog(p, pixels_per_cell=(5, 5), cells_per_block=(2, 2)) for p in pictures])
print(gradients.shape)

# %%
# Two clusters
# ------------

for name, X in {"pixels": pictures.reshape(200, -1), "gradients": gradients}.items():
    model = SpectralClustering(2, random_state=0).fit(X)
    print(f"{name:10} accuracy {accuracy(y, model.labels_):.2f}; {model.report_.trust.grade}")

# %%
# The most typical and the most unusual picture of each cluster:

figure, panels = plt.subplots(2, 6, figsize=(8, 3), layout="constrained")
for cluster in range(2):
    members = np.flatnonzero(model.labels_ == cluster)
    unusual = members[np.argsort(-model.outlier_scores_[members])[:3]]
    shown = [*model.exemplars_[cluster], *unusual]
    for column, (row, panel) in enumerate(zip(shown, panels[cluster], strict=True)):
        panel.imshow(pictures[row], cmap="gray")
        panel.set(xticks=[], yticks=[])
        if cluster == 0 and column in (1, 4):
            panel.set_title("typical" if column == 1 else "unusual", size=9)

# %%
# A map
# -----
#
# Kernel principal components of the gradients:

scores = KernelPCA(2, random_state=0).fit_transform(gradients)
figure, panel = plt.subplots(figsize=(4.5, 3.5), layout="constrained")
for cluster, marker in enumerate("os"):
    rows = model.labels_ == cluster
    panel.scatter(*scores[rows].T, c=y[rows], marker=marker, s=18, cmap="coolwarm", vmin=0, vmax=1)
panel.set(title="colour: class, marker: cluster", xticks=[], yticks=[])
plt.show()
