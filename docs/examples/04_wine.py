"""
A table with an unknown number of clusters
==========================================

178 wines, 13 chemical measurements in different units, and no idea how many types there are. Scale
the columns, let the number of clusters be chosen, look at the grade, and see what distinguishes the
clusters.
"""

# %%
# Look at the units first
# -----------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SpectralClustering
from mercer.metrics import adjusted_rand

wine = load_wine(as_frame=True)
print(wine.data.std().sort_values(ascending=False).round(2).head(4))

# %%
# Proline varies by hundreds, most other columns by less than one. Without scaling it would decide
# everything, and the fit says so:

unscaled = SpectralClustering(3, random_state=0).fit(wine.data)
print(*unscaled.report_.notes, sep="\n")

# %%
# Scale, and let the number be chosen
# -----------------------------------

scaled = StandardScaler().set_output(transform="pandas").fit_transform(wine.data)
model = SpectralClustering("auto", random_state=0).fit(scaled)
print(f"{model.n_clusters_} clusters; {model.report_.trust}")
for n_clusters, probability, *_ in model.n_clusters_ranking_[:3]:
    print(f"  {n_clusters} clusters: probability {probability:.2f}")

# %%
# The wines come from three cultivars, which the fit has not seen:

print(f"unscaled: ARI {adjusted_rand(wine.target, unscaled.labels_):.2f}")
print(f"scaled:   ARI {adjusted_rand(wine.target, model.labels_):.2f}")

# %%
# What distinguishes the clusters
# -------------------------------
#
# Effects are differences of means in standard deviations.

profiles = model.profiles()
figure, panels = plt.subplots(1, len(profiles), figsize=(9, 3), layout="constrained", sharex=True)
for profile, panel in zip(profiles, panels, strict=True):
    columns = profile.columns[:6][::-1]
    effects = [column.effect for column in columns]
    panel.barh(
        [column.name for column in columns],
        effects,
        color=np.where(np.array(effects) > 0, "C0", "C1"),
    )
    panel.set_title(f"cluster {profile.cluster}: {profile.weight:.0f} wines", size=10)
    panel.tick_params(labelsize=7)

# %%
# Typical wines of the first cluster, and a model for tomorrow
# ------------------------------------------------------------

print(wine.data.iloc[model.exemplars_[0], :5])

import tempfile
from pathlib import Path

path = Path(tempfile.mkdtemp()) / "wine.mercer"
pipeline = make_pipeline(StandardScaler(), SpectralClustering(model.n_clusters_, random_state=0))
mercer.save(pipeline.fit(wine.data), path)  # the scaler is part of the file
same = mercer.load(path).predict(wine.data)
print(f"same labels after loading: {np.array_equal(same, model.labels_)}")
plt.show()
