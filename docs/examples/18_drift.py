"""
Drift: a stream whose clusters change
=====================================

Handwritten digits arrive in batches. At first there are only the digits 0 to 4; later 5 to 9 appear
as well. ``forgetting`` lets the model follow, and ``report_.stream`` shows the change.
"""

# %%
# A stream in two phases
# ----------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import StreamingKernelKMeans
from mercer.metrics import normalized_mutual_info

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
early = np.flatnonzero(y < 5)
phases = [rng.choice(early, 100) for _ in range(20)]
phases += [rng.choice(len(X), 100) for _ in range(40)]

# %%
# Two models, with and without forgetting
# ---------------------------------------

models = {
    "forgetting=0": StreamingKernelKMeans(
        10, initial_size=500, max_size=1000, batch_size=100, random_state=0
    ),
    "forgetting=0.1": StreamingKernelKMeans(
        10, initial_size=500, max_size=1000, batch_size=100, forgetting=0.1, random_state=0
    ),
}
history = {name: [] for name in models}
unexplained = []
for number, rows in enumerate(phases):
    batch = X[rows] + rng.normal(scale=0.5, size=(len(rows), 64))
    for name, model in models.items():
        model.partial_fit(batch)
        if number >= 5:
            recent = rng.choice(phases[number], 100)
            found = model.predict(X[recent])
            history[name].append(normalized_mutual_info(y[recent], found))
    if number >= 5:
        unexplained.append(models["forgetting=0.1"].report_.stream["unexplained"])

figure, panels = plt.subplots(2, 1, figsize=(7, 4), layout="constrained", sharex=True)
for name, values in history.items():
    smooth = np.convolve(values, np.ones(5) / 5, mode="valid")
    panels[0].plot(np.arange(len(smooth)) + 7, smooth, label=name)
panels[0].axvline(20, color="gray", linestyle=":")
panels[0].set(ylabel="NMI on recent rows")
panels[0].legend(frameon=False)
panels[1].plot(np.arange(len(unexplained)) + 5, unexplained)
panels[1].axvline(20, color="gray", linestyle=":")
panels[1].set(xlabel="batch (new digits after the dotted line)", ylabel="unexplained rows")

# %%
# The last batches:

for name, values in history.items():
    print(f"{name:15} NMI {np.mean(values[-10:]):.2f}")
plt.show()
