"""
Kernel features for linear models
=================================

A linear classifier on kernel features is a kernel classifier at linear cost.
:class:`~mercer.KernelFeatures` replaces scikit-learn's ``Nystroem`` and ``RBFSampler``.
"""

# %%
# Accuracy by rank
# ----------------

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from mercer import KernelFeatures

X, y = load_digits(return_X_y=True)
gamma = KernelFeatures(random_state=0).fit(X).kernel_.gamma  # chosen from the data
print(f"gamma = {gamma:.2g}")

ranks = (16, 32, 64, 128, 256)
methods = {
    "KernelFeatures": lambda rank: KernelFeatures(gamma=gamma, rank=rank, random_state=0),
    "Nystroem": lambda rank: Nystroem(gamma=gamma, n_components=rank, random_state=0),
    "RBFSampler": lambda rank: RBFSampler(gamma=gamma, n_components=rank, random_state=0),
}
scores = {
    name: [
        cross_val_score(make_pipeline(make(rank), RidgeClassifier()), X, y, cv=3).mean()
        for rank in ranks
    ]
    for name, make in methods.items()
}
linear = cross_val_score(RidgeClassifier(), X, y, cv=3).mean()

figure, panel = plt.subplots(figsize=(5, 3.5), layout="constrained")
for name, values in scores.items():
    panel.plot(ranks, values, marker="o", label=name)
    print(f"{name:15} {values[-1]:.3f} at rank {ranks[-1]}")
panel.axhline(linear, color="gray", linestyle=":", label="linear")
panel.set(xlabel="rank", ylabel="accuracy")
panel.legend(frameon=False)

# %%
# The error of the approximation is known without labels:

for rank in ranks:
    factor = KernelFeatures(gamma=gamma, rank=rank, random_state=0).fit(X).factor_
    print(f"rank {rank:3}: {factor.trace_error:.1%} of the trace is left")
plt.show()
