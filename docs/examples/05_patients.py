"""
A table with numbers and categories
===================================

442 patients with age, sex, body mass index, blood pressure and six blood values, as in a customer
table: columns of different units, and a category. A ``ColumnTransformer`` prepares the
columns; the whole pipeline is saved as one file.
"""

# %%
# Prepare the columns
# -------------------

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mercer import SpectralClustering

patients = load_diabetes(scaled=False, as_frame=True)
table = patients.data.assign(sex=patients.data["sex"].map({1.0: "a", 2.0: "b"}))
print(table.head(3))

numbers = [column for column in table if column != "sex"]
prepare = ColumnTransformer(
    [("numbers", StandardScaler(), numbers), ("sex", OneHotEncoder(), ["sex"])],
    verbose_feature_names_out=False,
).set_output(transform="default")

# %%
# Cluster, and read the grade
# ---------------------------

model = make_pipeline(prepare, SpectralClustering("auto", random_state=0)).fit(table)
clusters = model[-1]
print(clusters.n_clusters_, "clusters;", clusters.report_.trust)

# %%
# Real tables often have no sharp clusters, and the grade says how far to rely on them. Groups can
# still be useful as a summary: here they differ in blood values, and in the progression of the
# disease one year later, which was not used.

summary = table[numbers].assign(cluster=clusters.labels_, progression=patients.target)
print(summary.groupby("cluster").mean().round(1).T)

figure, panels = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
panels[0].scatter(table["s5"], table["bmi"], c=clusters.labels_, s=8, cmap="tab10")
panels[0].set(xlabel="s5 (log triglycerides)", ylabel="body mass index")
groups = [patients.target[clusters.labels_ == c] for c in range(clusters.n_clusters_)]
panels[1].boxplot(groups, tick_labels=range(clusters.n_clusters_))
panels[1].set(xlabel="cluster", ylabel="progression")

# %%
# How the category is distributed:

print(pd.crosstab(clusters.labels_, table["sex"]))
plt.show()
