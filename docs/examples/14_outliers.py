"""
Outliers: the most unusual digits
=================================

Every fit scores how unusual each row is in its cluster. High scores point to mislabelled, damaged
or rare rows; leaving them out makes the remaining labels more reliable.
"""

# %%
# Scores
# ------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import SpectralClustering
from mercer.metrics import normalized_mutual_info

X, y = load_digits(return_X_y=True)
model = SpectralClustering(10, random_state=0).fit(X)
scores = model.outlier_scores_
print(f"median {np.median(scores):.2f}, 99th percentile {np.quantile(scores, 0.99):.2f}")

figure, panels = plt.subplots(2, 8, figsize=(9, 2.8), layout="constrained")
unusual = np.argsort(scores)[-8:]
for row, rows in enumerate((model.exemplars_[:8, 0], unusual)):
    for panel, number in zip(panels[row], rows, strict=True):
        panel.imshow(X[number].reshape(8, 8), cmap="gray_r")
        panel.set(xticks=[], yticks=[])
        panel.set_title(f"{scores[number]:.2f}", size=8)
panels[0, 0].set_ylabel("typical")
panels[1, 0].set_ylabel("unusual")

# %%
# Reliability
# -----------
#
# Agreement with the true digits, as rows with high scores are left out:

shares = np.array([1.0, 0.95, 0.9, 0.8, 0.7])
nmi = []
for share in shares:
    kept = scores <= np.quantile(scores, share)
    nmi.append(normalized_mutual_info(y[kept], model.labels_[kept]))
    print(f"{share:4.0%} of the rows: NMI {nmi[-1]:.3f}")
figure, panel = plt.subplots(figsize=(4.5, 2.8), layout="constrained")
panel.plot(1 - shares, nmi, marker="o")
panel.set(xlabel="share of rows left out", ylabel="NMI with the digits")

# %%
# Noise labels
# ------------
#
# ``noise`` turns scores into the label -1, in ``predict`` too:

noisy = SpectralClustering(10, noise="auto", random_state=0).fit(X)
print(f"{(noisy.labels_ == -1).mean():.1%} of the digits are labelled as noise")
pictures = np.random.default_rng(0).uniform(0, 16, size=(5, 64))  # not digits
print(noisy.predict(pictures), model.outlier_scores(pictures).round(2))
plt.show()
