"""
The same labels on a Dask cluster
=================================

Inside ``with mercer.on(client):`` every pass over the rows runs on the workers of a cluster. The
labels are the same as in a single process, bit for bit.
"""

# %%
# A cluster, here on this machine
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster

import mercer
from mercer.datasets import rings

N_ROWS = 50_000

if __name__ == "__main__":
    X, y = rings(N_ROWS, random_state=0)
    alone = mercer.SpectralClustering(3, random_state=0).fit(X)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        mercer.on(client),
    ):
        together = mercer.SpectralClustering(3, random_state=0).fit(X)
    print("the same labels:", np.array_equal(alone.labels_, together.labels_))

    figure, panels = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained")
    for panel, model, title in zip(
        panels, (alone, together), ("one process", "two Dask workers"), strict=True
    ):
        panel.scatter(*X[:3000].T, c=model.labels_[:3000], s=2, cmap="viridis")
        panel.set(title=title, xticks=[], yticks=[])
        panel.set_aspect("equal")
    plt.show()
