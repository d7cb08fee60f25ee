"""
Tuning: how many clusters, how wide a kernel
============================================

Both are chosen by a criterion on held-out rows, without using any classes. The result is a
table with runners-up, not a single number.
"""

# %%
# A search
# --------

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelSpectralClustering
from mercer.datasets import circles_and_gaussians
from mercer.metrics import adjusted_rand
from mercer.selection import search

N_ROWS = 20_000

X, y = circles_and_gaussians(N_ROWS, radii=(1.0, 2.0), n_gaussians=3, random_state=0)
found = search(
    KernelSpectralClustering(random_state=0, n_jobs=2),
    X,
    n_clusters=range(2, 9),
    gamma=np.geomspace(0.5, 200, 9),
)
print("best:", found.best)
for candidate in found.ranking()[1:4]:
    print("next:", candidate)

# %%
# The table as a picture. A broad dark band in one column means that the answer does not depend on
# the bandwidth; a single dark cell is unreliable. A white row is infeasible: a kernel so narrow
# that 256 pivots leave some rows without a similar pivot.

figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
picture = panel.imshow(found.scores, cmap="Blues", aspect="auto")
panel.set_xticks(range(len(found.n_clusters)), found.n_clusters)
panel.set_yticks(range(len(found.gammas)), [f"{gamma:.3g}" for gamma in found.gammas])
panel.set(xlabel="n_clusters", ylabel="gamma", title=f"criterion {found.criterion!r}")
figure.colorbar(picture, label="score")

# %%
# The same within an estimator
# ----------------------------
#
# ``KernelSpectralClustering("auto")`` chooses the number of clusters as `SpectralClustering` does:
# ``n_clusters_ranking_`` has the candidates with their probabilities, and where several are about
# as probable, the criterion above decides. ``selection_`` is the comparison of bandwidths.

model = KernelSpectralClustering("auto", random_state=0).fit(X)
print(model.n_clusters_, "clusters, ARI against the five that were drawn:", end=" ")
print(f"{adjusted_rand(y, model.labels_):.3f}")

figure, panel = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
few = slice(0, 5000)
panel.scatter(*X[few].T, c=model.labels_[few], s=2, cmap="tab10")
panel.set(title="number of clusters chosen automatically", xticks=[], yticks=[])
panel.set_aspect("equal")
plt.show()

# %%
# From a shell: ``mercer tune rows.npy --clusters 2:8 --gamma 0.5:200:9 --plot tune.png``.
