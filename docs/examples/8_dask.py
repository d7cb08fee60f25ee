"""
The same labels on a Dask cluster
=================================

Inside ``with mercer.on(client):`` every pass over the rows runs on the cluster's workers. The
labels are those of the plain loop, bit for bit: the arithmetic runs on fixed tiles wherever they
are.
"""

# %%
# A cluster, here on this machine
# -------------------------------

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
